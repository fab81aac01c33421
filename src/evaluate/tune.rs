//! The choice of parameters by cross-validation: the best of many settings on the same queries
//! looks better than it is, so it is chosen on some queries and measured on others.

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CrossValidated {
    pub folds: Vec<Fold>,
    /// The value of each query with the parameters that were chosen without it.
    pub held_out: Vec<f64>,
}

/// Queries that are measured with the choice of all others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fold {
    /// A place among the candidates.
    pub chosen: usize,
    pub train: f64,
    pub test: f64,
    pub queries: usize,
}

/// The candidate with the highest mean over some queries, the first of equal ones, and that mean.
/// `values` is `[candidates][queries]`.
///
/// # Panics
/// If there is no candidate, or `queries` names one that has no value.
pub(crate) fn best(
    values: &[Vec<f64>],
    queries: impl Iterator<Item = usize> + Clone,
) -> (usize, f64) {
    let mean = |of: &Vec<f64>| {
        let (sum, count) = queries.clone().fold((0.0, 0u32), |(sum, n), q| (sum + of[q], n + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    };
    let means = values.iter().map(mean).enumerate();
    // Of equal ones `max_by` takes the last, so they come in reverse.
    means.rev().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a candidate")
}

/// Chooses for each fold on the queries outside of it; query `i` is in fold `i % folds`.
///
/// # Panics
/// If there is no candidate, or there are not 2 folds or more and as many queries.
pub(crate) fn cross_validate(values: &[Vec<f64>], folds: usize) -> CrossValidated {
    let queries = values[0].len();
    assert!((2..=queries).contains(&folds), "{folds} folds of {queries} queries");
    let mut held_out = vec![0.0; queries];
    let of_fold = |fold| {
        let (chosen, train) = best(values, (0..queries).filter(|query| query % folds != fold));
        let mut sum = 0.0;
        let mut count = 0;
        for query in (fold..queries).step_by(folds) {
            held_out[query] = values[chosen][query];
            sum += held_out[query];
            count += 1;
        }
        Fold { chosen, train, test: sum / count as f64, queries: count }
    };
    let folds = (0..folds).map(of_fold).collect();
    CrossValidated { folds, held_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_candidates_is_chosen() {
        let values = [vec![0.5, 0.1], vec![0.1, 0.5], vec![0.3, 0.3]];
        assert_eq!(best(&values, 0..2), (0, 0.3));
        assert_eq!(best(&values, 1..2), (1, 0.5));
    }

    #[test]
    fn every_query_is_held_out_once() {
        let values: Vec<Vec<f64>> =
            (0..4).map(|c| (0..11).map(|q| f64::from((c * 7 + q * 5) % 13)).collect()).collect();
        for folds in [2, 3, 11] {
            let found = cross_validate(&values, folds);
            assert_eq!(found.folds.iter().map(|fold| fold.queries).sum::<usize>(), 11);
            for (query, value) in found.held_out.iter().enumerate() {
                let fold = found.folds[query % folds];
                assert_eq!(*value, values[fold.chosen][query]);
                let others = (0..11).filter(|other| other % folds != query % folds);
                assert_eq!((fold.chosen, fold.train), best(&values, others));
            }
        }
    }
}
