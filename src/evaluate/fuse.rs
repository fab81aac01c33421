//! Fusion of several rankings of the same queries into one.

use super::error::EvaluateError;
use super::run::Rankings;
use std::collections::HashMap;
use std::io::{self, Write};

/// What each run adds to a document that it found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Reciprocal rank fusion: 1 / (k + rank), ranks from 1 (Cormack, Clarke and Büttcher,
    /// *Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods*, SIGIR
    /// 2009, where k is 60).
    Rrf {
        /// The greater, the less the first ranks stand out.
        k: f64,
    },
    /// Its score, scaled by run and query to the range from 0 to 1; 1 if all are equal (Fox and
    /// Shaw, *Combination of Multiple Searches*, TREC-2, 1994; the range after Lee, *Analyses of
    /// Multiple Evidence Combination*, SIGIR 1997). An infinite score counts as one that is as far
    /// beyond the finite ones as these are apart.
    CombSum,
}

pub(crate) type NamedRanking = (String, Vec<(Vec<u8>, f64)>);

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
/// first name them. Equal sums go by name, the lesser first.
///
/// # Errors
/// If a run names a document twice for a query.
pub fn fuse(
    runs: &mut [Rankings],
    method: Method,
    depth: usize,
) -> Result<Vec<NamedRanking>, EvaluateError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut sums: Vec<(String, HashMap<Vec<u8>, f64>)> = Vec::new();
    for run in runs {
        let qids: Vec<String> = run.queries().map(str::to_string).collect();
        for qid in qids {
            let place = *places.entry(qid.clone()).or_insert_with(|| {
                sums.push((qid.clone(), HashMap::new()));
                sums.len() - 1
            });
            let ranking = run.best_first(&qid)?;
            let finite = without_infinities(&ranking);
            let (most, least) = match (ranking.first(), ranking.last()) {
                (Some(first), Some(last)) => (finite(first.1), finite(last.1)),
                _ => continue,
            };
            for (rank, &(name, score)) in ranking.iter().enumerate() {
                let gets = match method {
                    Method::Rrf { k } => 1.0 / (k + (rank + 1) as f64),
                    Method::CombSum if most > least => (finite(score) - least) / (most - least),
                    Method::CombSum => 1.0,
                };
                *sums[place].1.entry(name.to_vec()).or_default() += gets;
            }
        }
    }
    let best = |(qid, sums): (String, HashMap<Vec<u8>, f64>)| {
        let mut ranking: Vec<_> = sums.into_iter().collect();
        ranking.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranking.truncate(depth);
        (qid, ranking)
    };
    Ok(sums.into_iter().map(best).collect())
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
        let mut runs: Vec<Rankings> =
            texts.iter().map(|text| Rankings::read("run", Ok(text.as_bytes())).unwrap()).collect();
        let fused = fuse(&mut runs, method, depth).unwrap().into_iter();
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
