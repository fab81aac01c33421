//! Fusion of several rankings of the same queries into one.

use super::error::EvaluateError;
use super::run::Rankings;
use crate::settings::SettingError;
use std::collections::HashMap;
use std::io::{self, Write};

/// What is made of the runs that found a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Reciprocal rank fusion: the sum of 1 / (k + rank), ranks from 1 (Cormack, Clarke and
    /// Büttcher, *Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
    /// methods*, SIGIR 2009, where k is 60).
    Rrf {
        /// The greater, the less the first ranks stand out.
        k: f64,
    },
    /// The sum of its scores, scaled by run and query to the range from 0 to 1; 1 if all are equal
    /// (Fox and Shaw, *Combination of Multiple Searches*, TREC-2, 1994, as the next three; the
    /// range after Lee, *Analyses of Multiple Evidence Combination*, SIGIR 1997). An infinite score
    /// counts as one that is as far beyond the finite ones as these are apart.
    CombSum,
    /// That sum times the number of runs that found the document.
    CombMnz,
    /// The greatest of the scaled scores.
    CombMax,
    /// The least of the scaled scores, of the runs that found the document.
    CombMin,
}

impl Method {
    /// The names of all.
    pub const NAMES: [&str; 5] = ["rrf", "combsum", "combmnz", "combmax", "combmin"];

    /// The method of one of [`NAMES`](Self::NAMES); `rrf_k` is 60 if left out.
    ///
    /// # Errors
    /// If there is none of this name, or the number is below 0 or of another method.
    pub fn named(name: &str, rrf_k: Option<f64>) -> Result<Self, SettingError> {
        match (name, rrf_k) {
            ("rrf", Some(k)) if !(k >= 0.0 && k.is_finite()) => {
                Err(SettingError::value("rrf-k", "expected a number, 0 or more"))
            }
            ("rrf", k) => Ok(Self::Rrf { k: k.unwrap_or(60.0) }),
            (_, Some(_)) => Err(SettingError::alone("rrf-k", "method rrf")),
            ("combsum", None) => Ok(Self::CombSum),
            ("combmnz", None) => Ok(Self::CombMnz),
            ("combmax", None) => Ok(Self::CombMax),
            ("combmin", None) => Ok(Self::CombMin),
            _ => {
                let names = Self::NAMES.join(", ");
                Err(SettingError::value("method", format!("`{name}` is not one of {names}")))
            }
        }
    }
}

pub(crate) type NamedRanking = (String, Vec<(Vec<u8>, f64)>);

/// # Errors
/// If there is not a weight for each of this many runs, one is below 0 or not finite, or all are 0.
pub fn check_weights(weights: &[f64], runs: usize) -> Result<(), SettingError> {
    let are_numbers = weights.iter().all(|weight| *weight >= 0.0 && weight.is_finite());
    if weights.len() == runs && are_numbers && weights.iter().any(|weight| *weight > 0.0) {
        return Ok(());
    }
    let why = "expected a number for each run, 0 or more, and not 0 for all";
    Err(SettingError::value("weights", format!("{why}; found {weights:?} for {runs} runs")))
}

/// Writes a ranking as lines of a TREC run with the tag `tag`.
pub fn write_run((qid, ranking): &NamedRanking, tag: &str, out: &mut impl Write) -> io::Result<()> {
    for ((name, score), rank) in ranking.iter().zip(1..) {
        write!(out, "{qid} Q0 ")?;
        out.write_all(name)?;
        writeln!(out, " {rank} {score} {tag}")?;
    }
    Ok(())
}

/// One ranking of at most `depth` documents for each query of any run, in the order in which they
/// first name them; each is made when it is asked for. What a run gives a document is multiplied by
/// the run's weight, 1 where there is none. Equal results go by name, the lesser first.
///
/// # Errors
/// If a run names a document twice for a query.
pub fn fuse(
    runs: &[Rankings],
    method: Method,
    weights: &[f64],
    depth: usize,
) -> Result<impl Iterator<Item = NamedRanking>, EvaluateError> {
    for run in runs {
        run.queries().try_for_each(|qid| run.best_first(qid).map(drop))?;
    }
    let queries = runs.iter().enumerate().flat_map(move |(at, run)| {
        run.queries().filter(move |qid| !runs[..at].iter().any(|before| before.hits.has(qid)))
    });
    Ok(queries.map(move |qid| {
        let mut found: HashMap<&[u8], (f64, f64)> = HashMap::new();
        for (at, run) in runs.iter().enumerate() {
            let weight = weights.get(at).copied().unwrap_or(1.0);
            let ranking = run.best_first(qid).expect("no document is there twice");
            let finite = without_infinities(&ranking);
            let end = |hit: Option<&(&[u8], f32)>| hit.map_or(0.0, |hit| finite(hit.1));
            let (most, least) = (end(ranking.first()), end(ranking.last()));
            for (&(name, score), rank) in ranking.iter().zip(1..) {
                let gets = match method {
                    Method::Rrf { k } => 1.0 / (k + f64::from(rank)),
                    _ if most > least => (finite(score) - least) / (most - least),
                    _ => 1.0,
                };
                let none = if method == Method::CombMin { f64::INFINITY } else { 0.0 };
                let (all, runs) = found.entry(name).or_insert((none, 0.0));
                *runs += 1.0;
                *all = match method {
                    Method::CombMax => all.max(weight * gets),
                    Method::CombMin => all.min(weight * gets),
                    _ => *all + weight * gets,
                };
            }
        }
        let times = |runs| if method == Method::CombMnz { runs } else { 1.0 };
        let found = found.into_iter().map(|(name, (all, runs))| (name.to_vec(), all * times(runs)));
        let mut ranking: Vec<_> = found.collect();
        ranking.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranking.truncate(depth);
        (qid.to_string(), ranking)
    }))
}

/// Puts infinite scores one range of the finite ones beyond these, so that all can be scaled.
fn without_infinities(ranking: &[(&[u8], f32)]) -> impl Fn(f32) -> f64 + use<> {
    let finite = ranking.iter().map(|&(_, score)| f64::from(score)).filter(|s| s.is_finite());
    let least = finite.clone().reduce(f64::min).unwrap_or(0.0);
    let most = finite.reduce(f64::max).unwrap_or(0.0);
    let beyond = if most > least { most - least } else { 1.0 };
    move |score| f64::from(score).clamp(least - beyond, most + beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(texts: &[&str], method: Method, depth: usize) -> Vec<(String, Vec<(String, f64)>)> {
        let runs: Vec<Rankings> =
            texts.iter().map(|text| Rankings::read("run", Ok(text.as_bytes())).unwrap()).collect();
        let fused = fuse(&runs, method, &[], depth).unwrap();
        let name = |(name, sum)| (String::from_utf8(name).unwrap(), sum);
        fused.map(|(qid, docs)| (qid, docs.into_iter().map(name).collect())).collect()
    }

    const ONE: &str = "q Q0 a 1 9 t\nq Q0 b 2 5 t\nq Q0 c 3 1 t\np Q0 x 1 2 t\n";
    const TWO: &str = "r Q0 y 1 1 t\nq Q0 d 1 4 t\nq Q0 b 2 3 t\n";

    #[test]
    fn ranks_are_added_up() {
        let found = fused(&[ONE, TWO], Method::Rrf { k: 60.0 }, 3);
        let qids: Vec<_> = found.iter().map(|(qid, _)| &**qid).collect();
        assert_eq!(qids, ["q", "p", "r"]);
        let expected = [("b", 2.0 / 62.0), ("a", 1.0 / 61.0), ("d", 1.0 / 61.0)];
        assert_eq!(found[0].1, expected.map(|(name, sum)| (name.to_string(), sum)));
        assert_eq!(found[2].1, [("y".to_string(), 1.0 / 61.0)]);
    }

    #[test]
    fn scores_are_stretched_and_added_up() {
        let found = fused(&[ONE, TWO], Method::CombSum, 10);
        let expected = [("a", 1.0), ("d", 1.0), ("b", 0.5), ("c", 0.0)];
        assert_eq!(found[0].1, expected.map(|(name, sum)| (name.to_string(), sum)));
        assert_eq!(found[1].1, [("x".to_string(), 1.0)]);
    }

    #[test]
    fn other_methods_take_the_same_scores() {
        for (method, expected) in [
            (Method::CombMnz, [("a", 1.0), ("b", 1.0), ("d", 1.0), ("c", 0.0)]),
            (Method::CombMax, [("a", 1.0), ("d", 1.0), ("b", 0.5), ("c", 0.0)]),
            (Method::CombMin, [("a", 1.0), ("d", 1.0), ("b", 0.0), ("c", 0.0)]),
        ] {
            let expected = expected.map(|(name, all)| (name.to_string(), all));
            assert_eq!(fused(&[ONE, TWO], method, 9)[0].1, expected);
        }
        assert!(check_weights(&[0.0, 2.5], 2).is_ok());
        for wrong in [&[1.0][..], &[-1.0, 1.0], &[f64::NAN, 1.0], &[f64::INFINITY, 1.0], &[0.0; 2]]
        {
            assert!(check_weights(wrong, 2).is_err());
        }
    }

    /// Every order of the run is kept, and nothing is NaN or infinite.
    #[test]
    fn infinite_scores_are_the_ends_of_the_range() {
        for (scores, expected) in [
            (["inf", "3", "1"], [1.0, 0.5, 0.0]),
            (["3", "1", "-inf"], [1.0, 0.5, 0.0]),
            (["inf", "3", "-inf"], [1.0, 0.5, 0.0]),
            (["inf", "inf", "3"], [1.0, 1.0, 0.0]),
            (["inf", "inf", "-inf"], [1.0, 1.0, 0.0]),
            (["inf", "inf", "inf"], [1.0, 1.0, 1.0]),
            (["-inf", "-inf", "-inf"], [1.0, 1.0, 1.0]),
            (["3.4e38", "0", "-3.4e38"], [1.0, 0.5, 0.0]),
        ] {
            let lines = ["a", "b", "c"].iter().zip(scores);
            let text: String =
                lines.map(|(name, score)| format!("q Q0 {name} 1 {score} t\n")).collect();
            let sums: Vec<f64> =
                fused(&[&text], Method::CombSum, 9)[0].1.iter().map(|(_, sum)| *sum).collect();
            assert_eq!(sums, expected, "{scores:?}");
        }
    }

    #[test]
    fn a_run_with_itself_is_the_run() {
        for method in [Method::Rrf { k: 1.0 }, Method::CombSum] {
            let names = |texts: &[&str]| -> Vec<String> {
                fused(texts, method, 9)[0].1.iter().map(|(name, _)| name.clone()).collect()
            };
            assert_eq!(names(&[ONE, ONE, ONE]), ["a", "b", "c"]);
            assert_eq!(names(&[ONE]), ["a", "b", "c"]);
        }
    }
}
