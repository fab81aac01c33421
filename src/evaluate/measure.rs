//! The measures of a ranking.
//!
//! The definitions are trec_eval's (version 9). Let rel(i) be the level of the document at rank i,
//! from 1, and R the number of relevant documents, those judged at level `rel` or above, 1 by
//! default. A document without judgement is not relevant.
//!
//! | name | value |
//! | --- | --- |
//! | `P@k` | relevant documents among the first k, by k |
//! | `R@k` | relevant documents among the first k, by R |
//! | `Success@k` | 1 if a relevant document is among the first k |
//! | `RR`, `RR@k` | 1 by the rank of the first relevant document (among the first k) |
//! | `AP`, `AP@k` | the sum of P@i over all i (up to k) with a relevant document, by R |
//! | `nDCG`, `nDCG@k` | sum of rel(i) / log2(i + 1), by that of the best ranking |
//! | `Rprec` | relevant documents among the first R, by R |
//! | `ERR@k` | Chapelle and others (CIKM 2009); a reader stops by (2^rel(i) - 1) / 16 |
//! | `RBP(p=0.8,rel=1)` | Moffat and Zobel (TOIS 27(1), 2008): (1 - p) p^(i - 1) summed up |
//! | `Bpref` | Buckley and Voorhees (SIGIR 2004): of the first R irrelevant, how many are behind |
//! | `Judged@k` | judged documents among the first k, by k or the ranking's length |
//!
//! A measure of which a denominator is 0 is 0. `ERR` is that of gdeval, whose levels go to 4, and
//! `RBP` that of cwl_eval, both with trec_eval's order of equal scores. `RR@k` and `Judged@k` are
//! not in trec_eval; as in ir_measures, equal scores are ordered by name for them, the lesser
//! first.

#![warn(missing_docs)]

use super::error::EvaluateError;
use super::qrels::Judged;
use super::run::RankedLevels;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeasureKind {
    Precision,
    Recall,
    Success,
    ReciprocalRank,
    AveragePrecision,
    Ndcg,
    RPrecision,
    ExpectedReciprocalRank,
    RankBiasedPrecision,
    Bpref,
    Judged,
}

/// The first name is the one that is written. Others are trec_eval's and usual ones.
const NAMES: [(MeasureKind, &[&str]); 11] = [
    (MeasureKind::Ndcg, &["nDCG"]),
    (MeasureKind::AveragePrecision, &["AP", "MAP"]),
    (MeasureKind::ReciprocalRank, &["RR", "MRR", "recip_rank"]),
    (MeasureKind::Precision, &["P", "Precision"]),
    (MeasureKind::Recall, &["R", "Recall"]),
    (MeasureKind::Success, &["Success"]),
    (MeasureKind::RPrecision, &["Rprec", "R-Prec", "RPrecision"]),
    (MeasureKind::ExpectedReciprocalRank, &["ERR"]),
    (MeasureKind::RankBiasedPrecision, &["RBP"]),
    (MeasureKind::Bpref, &["Bpref"]),
    (MeasureKind::Judged, &["Judged"]),
];

/// The p of RBP unless one is given.
const PERSISTENCE: f64 = 0.8;

/// The greatest level that ERR knows.
const MOST_LEVEL: i32 = 4;

/// The rankings of TREC have so many documents; measures without a cutoff are meant for these.
const USUAL_DEPTH: usize = 1000;

/// A measure with its cutoff and the least relevant level, written and read as in ir_measures:
/// `nDCG@10`, `AP(rel=2)`, `RR(rel=2)@10`. Names of trec_eval are read too: `ndcg_cut_10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    kind: MeasureKind,
    cutoff: Option<usize>,
    rel: i32,
    /// Of RBP: how likely a reader goes on to the next document.
    p: f64,
}

impl Measure {
    /// The default measures.
    pub fn usual() -> Vec<Self> {
        ["nDCG@10", "AP", "RR", "P@10", "R@100", "R@1000", "Success@10", "Bpref", "Judged@10"]
            .iter()
            .map(|name| name.parse().expect("each of these is a measure"))
            .collect()
    }

    /// The most documents of a ranking that it looks at.
    fn depth(&self) -> usize {
        self.cutoff.unwrap_or(USUAL_DEPTH)
    }

    /// A remark if some measures need more documents than rankings of `k` have.
    pub fn remark_on_depth(measures: &[Self], k: usize) -> Option<String> {
        let deeper = || measures.iter().filter(|measure| measure.depth() > k);
        let needed = deeper().map(Self::depth).max()?;
        let names: Vec<String> = deeper().map(ToString::to_string).collect();
        let names = names.join(", ");
        Some(format!(
            "{names}: only the first {k} hits of a query count here, so values may be too low; \
             -k {needed} is enough"
        ))
    }

    /// Never a negative zero, which would be written with its sign.
    pub(crate) fn of(&self, ranked: &RankedLevels, judged: &Judged) -> f64 {
        self.value(ranked, judged) + 0.0
    }

    fn value(&self, ranked: &RankedLevels, judged: &Judged) -> f64 {
        let ranked = match (self.kind, self.cutoff) {
            (MeasureKind::Judged, _) | (MeasureKind::ReciprocalRank, Some(_)) => {
                &ranked.lesser_name_first
            }
            _ => &ranked.levels,
        };
        let cut = self.cutoff.unwrap_or(ranked.len());
        let first = &ranked[..cut.min(ranked.len())];
        let relevant = |level: &Option<i32>| level.is_some_and(|level| level >= self.rel);
        let found = || first.iter().filter(|level| relevant(level)).count() as f64;
        let all = judged.levels().iter().filter(|&&level| level >= self.rel).count() as f64;
        match self.kind {
            MeasureKind::Precision => ratio(found(), cut as f64),
            MeasureKind::Recall => ratio(found(), all),
            MeasureKind::Success => f64::from(first.iter().any(relevant)),
            MeasureKind::ReciprocalRank => {
                first.iter().position(relevant).map_or(0.0, |at| 1.0 / (at + 1) as f64)
            }
            MeasureKind::AveragePrecision => {
                let mut found = 0.0;
                let mut sum = 0.0;
                for (at, _) in first.iter().enumerate().filter(|(_, level)| relevant(level)) {
                    found += 1.0;
                    sum += found / (at + 1) as f64;
                }
                ratio(sum, all)
            }
            MeasureKind::Ndcg => {
                let ideal = judged.levels().iter().copied().take(self.cutoff.unwrap_or(usize::MAX));
                ratio(gain(first.iter().map(|level| level.unwrap_or(0))), gain(ideal))
            }
            MeasureKind::RPrecision => {
                let best = ranked.iter().take(all as usize);
                ratio(best.filter(|level| relevant(level)).count() as f64, all)
            }
            MeasureKind::ExpectedReciprocalRank => {
                let mut reads_on = 1.0;
                let mut sum = 0.0;
                for (at, level) in first.iter().enumerate() {
                    let level = level.unwrap_or(0).clamp(0, MOST_LEVEL);
                    let stops = (f64::from(level).exp2() - 1.0) / f64::from(MOST_LEVEL).exp2();
                    sum += reads_on * stops / (at + 1) as f64;
                    reads_on *= 1.0 - stops;
                }
                sum
            }
            MeasureKind::RankBiasedPrecision => {
                let mut weight = 1.0 - self.p;
                let mut sum = 0.0;
                for level in first {
                    sum += if relevant(level) { weight } else { 0.0 };
                    weight *= self.p;
                }
                sum
            }
            MeasureKind::Bpref => self.bpref(ranked, judged, all),
            MeasureKind::Judged => {
                let judged = first.iter().filter(|level| level.is_some()).count();
                ratio(judged as f64, first.len() as f64)
            }
        }
    }

    fn bpref(&self, ranked: &[Option<i32>], judged: &Judged, all: f64) -> f64 {
        // A negative level marks a document that was not in the pool.
        let not = |level: &i32| (0..self.rel).contains(level);
        let all_not = judged.levels().iter().filter(|level| not(level)).count() as f64;
        let mut before = 0.0f64;
        let mut sum = 0.0;
        for level in ranked.iter().flatten() {
            if not(level) {
                before += 1.0;
            } else if *level >= self.rel {
                sum += if before > 0.0 { 1.0 - before.min(all) / all_not.min(all) } else { 1.0 };
            }
        }
        ratio(sum, all)
    }
}

/// Discounted cumulated gain (Järvelin and Kekäläinen, TOIS 20(4), 2002, as trec_eval has it).
fn gain(levels: impl Iterator<Item = i32>) -> f64 {
    let gains = levels.zip(2u32..).filter(|&(level, _)| level > 0);
    gains.map(|(level, place)| f64::from(level) / f64::from(place).log2()).sum()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES.iter().find(|(kind, _)| *kind == self.kind);
        f.write_str(names.map_or("", |(_, names)| names[0]))?;
        // The level of RBP is always written: ir_measures has no default for it.
        let rel = self.rel != 1 || self.kind == MeasureKind::RankBiasedPrecision;
        match (self.p != PERSISTENCE, rel) {
            (true, _) => write!(f, "(p={},rel={})", self.p, self.rel)?,
            (false, true) => write!(f, "(rel={})", self.rel)?,
            (false, false) => {}
        }
        match self.cutoff {
            Some(cutoff) => write!(f, "@{cutoff}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Measure {
    type Err = EvaluateError;

    fn from_str(text: &str) -> Result<Self, EvaluateError> {
        let wrong = |expected| EvaluateError::Measure { found: text.to_string(), expected };
        let known = "they are nDCG, nDCG@k, AP, AP@k, RR, RR@k, P@k, R@k, Success@k, Rprec, ERR@k, \
                     RBP(p=0.8), Bpref, Judged@k, also as P(rel=2)@k where 2 is the least relevance \
                     that counts, and trec_eval's names such as ndcg_cut_10";
        let (head, cutoff) = match text.split_once('@').or_else(|| trec_cutoff(text)) {
            None => (text, None),
            Some((head, digits)) => match digits.parse() {
                Ok(cutoff) if cutoff > 0 => (head, Some(cutoff)),
                _ => return Err(wrong("a cutoff is a whole number, 1 or more")),
            },
        };
        let (name, parameters) = match head.split_once('(') {
            None => (head, None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(|| wrong(known))?)),
        };
        let is = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
        let kind = NAMES.iter().find(|(_, names)| is(names)).map(|&(kind, _)| kind);
        let kind = kind.ok_or_else(|| wrong(known))?;
        let mut found = Self { kind, cutoff, rel: 1, p: PERSISTENCE };
        for parameter in parameters.into_iter().flat_map(|all| all.split(',')) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match (name.trim(), kind) {
                ("rel", _) => match value.trim().parse() {
                    Ok(rel) if rel > 0 => found.rel = rel,
                    _ => return Err(wrong("a relevance level is a whole number, 1 or more")),
                },
                ("p", MeasureKind::RankBiasedPrecision) => match value.trim().parse() {
                    Ok(p) if p > 0.0 && p < 1.0 => found.p = p,
                    _ => return Err(wrong("p is a number between 0 and 1")),
                },
                _ => return Err(wrong("the parameters are rel, as in P(rel=2)@10, and p of RBP")),
            }
        }
        let needs = matches!(
            kind,
            MeasureKind::Precision
                | MeasureKind::Recall
                | MeasureKind::Success
                | MeasureKind::ExpectedReciprocalRank
                | MeasureKind::Judged
        );
        match (kind, cutoff) {
            (_, None) if needs => Err(wrong("it needs a cutoff, such as @10")),
            (MeasureKind::Bpref | MeasureKind::RPrecision, Some(_)) => {
                Err(wrong("it takes no cutoff"))
            }
            (MeasureKind::Ndcg | MeasureKind::Judged | MeasureKind::ExpectedReciprocalRank, _)
                if found.rel != 1 =>
            {
                Err(wrong("it takes no relevance level"))
            }
            _ => Ok(found),
        }
    }
}

/// The name and the cutoff of one of trec_eval's names: `P_10`, `ndcg_cut.10`.
fn trec_cutoff(text: &str) -> Option<(&str, &str)> {
    let (name, digits) = text.rsplit_once(['_', '.'])?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (name.strip_suffix("_cut").unwrap_or(name), digits))
}

#[cfg(test)]
mod tests {
    use super::super::qrels::Qrels;
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["nDCG", "nDCG@10", "AP", "AP(rel=2)@100", "RR@10", "P(rel=3)@5", "R@1000"] {
            assert_eq!(name.parse::<Measure>().unwrap().to_string(), name);
        }
        assert_eq!("map".parse::<Measure>().unwrap().to_string(), "AP");
        assert_eq!("mrr@10".parse::<Measure>().unwrap().to_string(), "RR@10");
        for (read, written) in [
            ("bpref", "Bpref"),
            ("ndcg_cut_10", "nDCG@10"),
            ("ndcg_cut.10", "nDCG@10"),
            ("ndcg", "nDCG"),
            ("map_cut_100", "AP@100"),
            ("recip_rank", "RR"),
            ("P_10", "P@10"),
            ("recall_1000", "R@1000"),
            ("success_5", "Success@5"),
            ("RPrec", "Rprec"),
            ("err@20", "ERR@20"),
            ("RBP", "RBP(rel=1)"),
            ("RBP(rel=2, p=0.5)@10", "RBP(p=0.5,rel=2)@10"),
            ("P(rel=1)@3", "P@3"),
        ] {
            assert_eq!(read.parse::<Measure>().unwrap().to_string(), written);
        }
        for bad in
            ["ndcg_cut", "P_", "P_x", "P_0", "set_P", "gm_map", "iprec_at_recall_0.10", "num_q"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
        for bad in ["ERR", "Rprec@3", "ERR(rel=2)@3", "RBP(p=1)", "RBP(p=x)", "P(p=0.5)@3", "RBP()"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
        for bad in ["", "X", "P", "P@0", "P@x", "P(rel=)@3", "P(rel=0)@3", "nDCG(rel=2)", "Bpref@3"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
    }

    /// Worked out by hand.
    #[test]
    fn values_are_those_of_the_definitions() {
        let qrels = "q 0 a 1\nq 0 b 3\nq 0 c 0\nq 0 d 0\nq 0 e 2\nq 0 z -1\n";
        let qrels = Qrels::read("", Ok(qrels.as_bytes())).unwrap();
        let judged = qrels.get("q").unwrap();
        // c, x (not judged), b, z (not in the pool), a
        let levels = vec![Some(0), None, Some(3), Some(-1), Some(1)];
        let ranked = RankedLevels { lesser_name_first: levels.clone(), levels };
        let log = |n: f64| n.log2();
        let ideal = 3.0 + 2.0 / log(3.0) + 1.0 / log(4.0);
        for (name, value) in [
            ("P@3", 1.0 / 3.0),
            ("P@10", 0.2),
            ("R@3", 1.0 / 3.0),
            ("R@100", 2.0 / 3.0),
            ("Success@2", 0.0),
            ("Success@3", 1.0),
            ("RR", 1.0 / 3.0),
            ("RR@2", 0.0),
            ("AP", (1.0 / 3.0 + 2.0 / 5.0) / 3.0),
            ("AP@3", 1.0 / 9.0),
            ("AP(rel=2)", 1.0 / 6.0),
            ("nDCG", (3.0 / log(4.0) + 1.0 / log(6.0)) / ideal),
            ("nDCG@3", (3.0 / log(4.0)) / ideal),
            ("nDCG@2", 0.0),
            ("Rprec", 1.0 / 3.0),
            ("Rprec(rel=3)", 0.0),
            ("ERR@2", 0.0),
            ("ERR@10", 7.0 / 16.0 / 3.0 + 9.0 / 16.0 / 16.0 / 5.0),
            ("RBP", 0.2 * (0.8f64.powi(2) + 0.8f64.powi(4))),
            ("RBP(p=0.5,rel=2)", 0.5f64.powi(3)),
            ("RBP@3", 0.2 * 0.8f64.powi(2)),
            ("Bpref", (2.0 * (1.0 - 1.0 / 2.0)) / 3.0),
            ("Judged@2", 0.5),
            ("Judged@10", 4.0 / 5.0),
        ] {
            let got = name.parse::<Measure>().unwrap().of(&ranked, judged);
            assert!((got - value).abs() < 1e-12, "{name}: {got}, not {value}");
        }
        for measure in Measure::usual() {
            let nothing = measure.of(&RankedLevels::default(), judged);
            assert_eq!(nothing.to_bits(), 0.0f64.to_bits(), "{measure}");
        }
    }

    #[test]
    fn rankings_that_are_too_short_are_remarked_on() {
        let remark = |k| Measure::remark_on_depth(&Measure::usual(), k);
        assert_eq!(remark(1000), None);
        let some = remark(100).unwrap();
        assert!(some.starts_with("AP, RR, R@1000, Bpref: only the first 100 hits"), "{some}");
        assert!(some.ends_with("-k 1000 is enough"), "{some}");
        assert!(remark(5).unwrap().starts_with("nDCG@10, AP, RR, P@10, R@100, R@1000, Success@10"));
        let deeper = ["P@5".parse().unwrap(), "R@3000".parse().unwrap()];
        assert!(Measure::remark_on_depth(&deeper, 2000).unwrap().ends_with("-k 3000 is enough"));
    }
}
