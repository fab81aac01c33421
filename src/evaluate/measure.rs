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
//! | `SetP` | relevant documents, by the ranking's length; `relative`: by R if that is less |
//! | `NumRet`, `NumRet(rel=1)` | documents, relevant documents; summed up over queries |
//! | `infAP` | AP if a sample of the pool is judged and the rest of it at a level below 0 |
//! | `IPrec@r` | the greatest P@i at any i from where r R relevant documents are found |
//!
//! A measure of which a denominator is 0 is 0. `ERR` is that of gdeval, whose levels go to 4, and
//! `RBP` that of cwl_eval, both with trec_eval's order of equal scores. `RR@k` and `Judged@k` are
//! not in trec_eval; as in ir_measures, equal scores are ordered by name for them, the lesser
//! first.

#![warn(missing_docs)]

use super::qrels::Judged;
use super::run::RankedLevels;

mod names;

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
    SetPrecision,
    Retrieved,
    InferredPrecision,
    InterpolatedPrecision,
}

/// The p of RBP unless one is given.
const PERSISTENCE: f64 = 0.8;

/// The greatest level that ERR knows.
const MOST_LEVEL: i32 = 4;

/// The rankings of TREC have this many documents; measures without a cutoff are meant for these.
const USUAL_DEPTH: usize = 1000;

/// What trec_eval adds to counts of judged documents, which may be 0.
const INFERRED_EPSILON: f64 = 0.00001;

/// A measure with its cutoff and the least relevant level, written and read as in ir_measures:
/// `nDCG@10`, `AP(rel=2)`, `RR(rel=2)@10`. Names of trec_eval are read too: `ndcg_cut_10`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    kind: MeasureKind,
    cutoff: Option<usize>,
    /// 0 for `NumRet` of all documents.
    rel: i32,
    /// Of RBP: how likely a reader goes on to the next document. Of IPrec: the recall.
    p: f64,
    /// Leaves out documents that are not judged.
    judged_only: bool,
    /// Of SetP: by the greatest value that this many documents can have.
    is_relative: bool,
}

impl Measure {
    /// The default measures.
    pub fn usual() -> Vec<Self> {
        ["nDCG@10", "AP", "RR", "P@10", "R@100", "R@1000", "Success@10", "Bpref", "Judged@10"]
            .iter()
            .map(|name| name.parse().expect("each of these is a measure"))
            .collect()
    }

    /// The most documents of a ranking that it looks at; 0 if it is one of a ranking as it is.
    fn depth(&self) -> usize {
        let usual = match self.kind {
            MeasureKind::SetPrecision | MeasureKind::Retrieved => 0,
            _ => USUAL_DEPTH,
        };
        self.cutoff.unwrap_or(usual)
    }

    /// Values of queries are added up, not averaged.
    pub(crate) fn is_count(&self) -> bool {
        self.kind == MeasureKind::Retrieved
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
    pub(crate) fn of(&self, ranked: &RankedLevels, judged: &Judged<'_>) -> f64 {
        self.value(ranked, judged) + 0.0
    }

    /// The least and the greatest value that other orders of equal scores give, if there are such
    /// on both sides of the cutoff.
    pub(crate) fn of_ties(&self, ranked: &RankedLevels, judged: &Judged<'_>) -> Option<[f64; 2]> {
        let cut = self.cutoff?;
        let tie = ranked.ties.iter().find(|tie| tie.start < cut && cut < tie.end)?.clone();
        Some([false, true].map(|is_best| {
            let mut levels = ranked.levels.clone();
            levels[tie.clone()].sort_unstable();
            if is_best {
                levels[tie.clone()].reverse();
            }
            let ranked = RankedLevels { lesser_name_first: levels.clone(), levels, ties: vec![] };
            self.of(&ranked, judged)
        }))
    }

    fn value(&self, ranked: &RankedLevels, judged: &Judged<'_>) -> f64 {
        let ranked = match (self.kind, self.cutoff) {
            (MeasureKind::Judged, _) | (MeasureKind::ReciprocalRank, Some(_)) => {
                &ranked.lesser_name_first
            }
            _ => &ranked.levels,
        };
        let of_judged: Vec<_>;
        let ranked = if self.judged_only {
            of_judged = ranked.iter().copied().filter(|level| *level >= Some(0)).collect();
            &of_judged
        } else {
            ranked
        };
        let cut = self.cutoff.unwrap_or(ranked.len());
        let first = &ranked[..cut.min(ranked.len())];
        let relevant = |level: &Option<i32>| level.is_some_and(|level| level >= self.rel);
        let found = || first.iter().filter(|level| relevant(level)).count() as f64;
        let all = judged.levels().iter().filter(|&&level| level >= self.rel).count() as f64;
        // Of each relevant document, with how many there are up to it.
        let precisions = || {
            let places = first.iter().zip(1..).filter(|(level, _)| relevant(level)).zip(1..);
            places.map(|((_, rank), found)| (f64::from(found), f64::from(found) / f64::from(rank)))
        };
        match self.kind {
            MeasureKind::Precision => ratio(found(), cut as f64),
            MeasureKind::Recall => ratio(found(), all),
            MeasureKind::Success => f64::from(first.iter().any(relevant)),
            MeasureKind::ReciprocalRank => {
                first.iter().position(relevant).map_or(0.0, |at| 1.0 / (at + 1) as f64)
            }
            MeasureKind::AveragePrecision => ratio(precisions().map(|(_, p)| p).sum(), all),
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
            MeasureKind::SetPrecision => {
                let most = if self.is_relative { all } else { f64::INFINITY };
                ratio(found(), most.min(first.len() as f64))
            }
            MeasureKind::Retrieved if self.rel == 0 => first.len() as f64,
            MeasureKind::Retrieved => found(),
            MeasureKind::InferredPrecision => ratio(self.inferred(first), all),
            MeasureKind::InterpolatedPrecision => {
                // As trec_eval rounds.
                let least = (self.p * all + 0.9).floor();
                let deeper = precisions().filter(|(found, _)| *found >= least);
                deeper.map(|(_, p)| p).fold(0.0, f64::max)
            }
        }
    }

    /// The sum of precisions (Yilmaz and Aslam, CIKM 2006, as trec_eval has it), each from those
    /// documents before it that are judged, as far as those before it are in the pool.
    fn inferred(&self, ranked: &[Option<i32>]) -> f64 {
        let [mut found, mut not, mut open] = [0.0; 3];
        let mut sum = 0.0;
        for (level, before) in ranked.iter().zip(0u32..) {
            let before = f64::from(before);
            match *level {
                None => {}
                Some(..0) => open += 1.0,
                Some(level) if level < self.rel => not += 1.0,
                Some(_) => {
                    let judged =
                        (found + INFERRED_EPSILON) / (found + not + 2.0 * INFERRED_EPSILON);
                    let pool = before / (before + 1.0) * ((found + not + open) / before);
                    sum += if before > 0.0 { 1.0 / (before + 1.0) + pool * judged } else { 1.0 };
                    found += 1.0;
                }
            }
        }
        sum
    }

    fn bpref(&self, ranked: &[Option<i32>], judged: &Judged<'_>, all: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::super::qrels::Qrels;
    use super::*;

    /// Worked out by hand.
    #[test]
    fn values_are_those_of_the_definitions() {
        let qrels = "q 0 a 1\nq 0 b 3\nq 0 c 0\nq 0 d 0\nq 0 e 2\nq 0 z -1\n";
        let qrels = Qrels::read("", Ok(qrels.as_bytes())).unwrap();
        let judged = &qrels.judged("q");
        // c, x (not judged), b, z (not in the pool), a
        let levels = vec![Some(0), None, Some(3), Some(-1), Some(1)];
        let ranked = RankedLevels { lesser_name_first: levels.clone(), levels, ties: Vec::new() };
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
            ("SetP", 2.0 / 5.0),
            ("SetP(rel=2)", 1.0 / 5.0),
            ("SetP(relative=True)", 2.0 / 3.0),
            ("SetP(judged_only=True)", 2.0 / 3.0),
            ("NumRet", 5.0),
            ("NumRet(rel=1)", 2.0),
            ("NumRet(rel=3)", 1.0),
            ("IPrec@0", 2.0 / 5.0),
            ("IPrec@0.5", 2.0 / 5.0),
            ("IPrec@1", 0.0),
            ("IPrec(judged_only=True)@0.3", 2.0 / 3.0),
            ("IPrec(rel=3)@1", 1.0 / 3.0),
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
