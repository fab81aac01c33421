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
//! | `Bpref` | Buckley and Voorhees (SIGIR 2004): of the first R irrelevant, how many are behind |
//! | `Judged@k` | judged documents among the first k, by k or the ranking's length |
//!
//! A measure of which a denominator is 0 is 0. `RR@k` and `Judged@k` are not in trec_eval; as in
//! ir_measures, equal scores are ordered by name for them, the lesser first.

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
    Bpref,
    Judged,
}

/// The first name is the one that is written.
const NAMES: [(MeasureKind, &[&str]); 8] = [
    (MeasureKind::Ndcg, &["nDCG"]),
    (MeasureKind::AveragePrecision, &["AP", "MAP"]),
    (MeasureKind::ReciprocalRank, &["RR", "MRR"]),
    (MeasureKind::Precision, &["P", "Precision"]),
    (MeasureKind::Recall, &["R", "Recall"]),
    (MeasureKind::Success, &["Success"]),
    (MeasureKind::Bpref, &["Bpref"]),
    (MeasureKind::Judged, &["Judged"]),
];

/// A measure with its cutoff and the least relevant level, written and read as in ir_measures:
/// `nDCG@10`, `AP(rel=2)`, `RR(rel=2)@10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    kind: MeasureKind,
    cutoff: Option<usize>,
    rel: i32,
}

impl Measure {
    /// The default measures.
    pub fn usual() -> Vec<Self> {
        ["nDCG@10", "AP", "RR", "P@10", "R@100", "R@1000", "Success@10", "Bpref", "Judged@10"]
            .iter()
            .map(|name| name.parse().expect("each of these is a measure"))
            .collect()
    }

    pub(crate) fn of(&self, ranked: &RankedLevels, judged: &Judged) -> f64 {
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
        if self.rel != 1 {
            write!(f, "(rel={})", self.rel)?;
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
        let known = "they are nDCG, nDCG@k, AP, AP@k, RR, RR@k, P@k, R@k, Success@k, Bpref, Judged@k, \
                     also as P(rel=2)@k where 2 is the least relevance that counts";
        let (head, cutoff) = match text.split_once('@') {
            None => (text, None),
            Some((head, digits)) => match digits.parse() {
                Ok(cutoff) if cutoff > 0 => (head, Some(cutoff)),
                _ => return Err(wrong("a cutoff is a whole number, 1 or more")),
            },
        };
        let (name, rel) = match head.split_once("(rel=") {
            None => (head, 1),
            Some((name, rest)) => match rest.strip_suffix(')').map(str::parse) {
                Some(Ok(rel)) if rel > 0 => (name, rel),
                _ => return Err(wrong("a relevance level is a whole number, 1 or more")),
            },
        };
        let is = |names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
        let kind = NAMES.iter().find(|(_, names)| is(names)).map(|&(kind, _)| kind);
        let kind = kind.ok_or_else(|| wrong(known))?;
        let needs = matches!(
            kind,
            MeasureKind::Precision
                | MeasureKind::Recall
                | MeasureKind::Success
                | MeasureKind::Judged
        );
        match (kind, cutoff) {
            (_, None) if needs => return Err(wrong("it needs a cutoff, as in P@10")),
            (MeasureKind::Bpref, Some(_)) => return Err(wrong("it takes no cutoff")),
            (MeasureKind::Ndcg | MeasureKind::Judged, _) if rel != 1 => {
                return Err(wrong("it takes no relevance level"));
            }
            _ => {}
        }
        Ok(Self { kind, cutoff, rel })
    }
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
        assert_eq!("bpref".parse::<Measure>().unwrap().to_string(), "Bpref");
        for bad in ["", "X", "P", "P@0", "P@x", "P(rel=)@3", "P(rel=0)@3", "nDCG(rel=2)", "Bpref@3"]
        {
            assert!(bad.parse::<Measure>().is_err(), "{bad}");
        }
    }

    /// Worked out by hand.
    #[test]
    fn values_are_those_of_the_definitions() {
        let qrels = "q 0 a 1\nq 0 b 3\nq 0 c 0\nq 0 d 0\nq 0 e 2\nq 0 z -1\n";
        let qrels = Qrels::read("", qrels.as_bytes()).unwrap();
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
            ("Bpref", (2.0 * (1.0 - 1.0 / 2.0)) / 3.0),
            ("Judged@2", 0.5),
            ("Judged@10", 4.0 / 5.0),
        ] {
            let got = name.parse::<Measure>().unwrap().of(&ranked, judged);
            assert!((got - value).abs() < 1e-12, "{name}: {got}, not {value}");
        }
        for measure in Measure::usual() {
            assert_eq!(measure.of(&RankedLevels::default(), judged), 0.0, "{measure}");
        }
    }
}
