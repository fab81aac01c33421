//! A model tree that predicts how long something takes from a few numbers: Quinlan's M5 (*Learning
//! with continuous classes*, 1992), which `ding09`, section 9, uses in the form of rules.
//!
//! A node splits the examples where the standard deviation falls most; each node has a linear
//! model, and a subtree that predicts no better than the model of its root is cut off. A prediction
//! is that of the leaf, smoothed with the models on the way to it. It predicts logarithms, so that
//! relative errors become small.

use serde::{Deserialize, Serialize};

pub(crate) const FEATURES: usize = 4;

const LEAST_EXAMPLES: usize = 12;

/// Nodes whose standard deviation is below this part of the whole tree's are leaves.
const EVEN: f64 = 0.05;

const SMOOTHING: f64 = 15.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Example {
    pub features: [f64; FEATURES],
    /// In any unit, above 0.
    pub took: f64,
}

/// A constant, then a factor for each feature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Linear([f64; FEATURES + 1]);

impl Linear {
    fn at(&self, features: &[f64; FEATURES]) -> f64 {
        let products = self.0[1..].iter().zip(features).map(|(factor, x)| factor * x);
        self.0[0] + products.sum::<f64>()
    }

    /// Least squares, with a small penalty on factors, so that dependent features do no harm.
    fn fit(examples: &[(Example, f64)]) -> Self {
        const N: usize = FEATURES + 1;
        let n = examples.len() as f64;
        let mean = |of: &dyn Fn(&(Example, f64)) -> f64| examples.iter().map(of).sum::<f64>() / n;
        let means: [f64; FEATURES] = std::array::from_fn(|i| mean(&|e| e.0.features[i]));
        let mean_y = mean(&|e| e.1);
        // Normal equations after the means are subtracted; the constant follows from them.
        let mut rows = [[0.0; N]; FEATURES];
        for (example, y) in examples {
            let x: [f64; FEATURES] = std::array::from_fn(|i| example.features[i] - means[i]);
            for i in 0..FEATURES {
                for j in 0..FEATURES {
                    rows[i][j] += x[i] * x[j];
                }
                rows[i][FEATURES] += x[i] * (y - mean_y);
            }
        }
        for (i, row) in rows.iter_mut().enumerate() {
            row[i] += 1e-3 * n;
        }
        let factors = solve(rows);
        let at_means: f64 = factors.iter().zip(means).map(|(factor, mean)| factor * mean).sum();
        let mut all = [0.0; N];
        all[0] = mean_y - at_means;
        all[1..].copy_from_slice(&factors);
        Self(all)
    }
}

/// Solves a symmetric, positive definite system; the last column is the right side.
fn solve(mut rows: [[f64; FEATURES + 1]; FEATURES]) -> [f64; FEATURES] {
    for i in 0..FEATURES {
        let pivot = rows[i];
        for row in rows.iter_mut().skip(i + 1) {
            let factor = row[i] / pivot[i];
            row.iter_mut().zip(pivot).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let mut found = [0.0; FEATURES];
    for i in (0..FEATURES).rev() {
        let known: f64 = (i + 1..FEATURES).map(|j| rows[i][j] * found[j]).sum();
        found[i] = (rows[i][FEATURES] - known) / rows[i][i];
    }
    found
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ModelNode {
    model: Linear,
    examples: usize,
    /// Feature, border, and the nodes up to it and beyond it.
    split: Option<(usize, f64, Box<[ModelNode; 2]>)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelTree {
    root: ModelNode,
    /// Logarithms of the least and the greatest time seen.
    range: [f64; 2],
}

fn deviation(ys: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = ys.clone().count() as f64;
    let mean = ys.clone().sum::<f64>() / n;
    (ys.map(|y| (y - mean) * (y - mean)).sum::<f64>() / n).sqrt()
}

/// The feature and border with the least deviation on both sides together, and that deviation.
fn best_split(examples: &mut [(Example, f64)]) -> Option<(usize, f64, f64)> {
    let mut best: Option<(usize, f64, f64)> = None;
    let n = examples.len();
    for feature in 0..FEATURES {
        examples.sort_by(|a, b| a.0.features[feature].total_cmp(&b.0.features[feature]));
        let (sum, squares) =
            examples.iter().fold((0.0, 0.0), |(sum, squares), (_, y)| (sum + y, squares + y * y));
        let mut below = 0.0;
        let mut below_squares = 0.0;
        for at in 1..n {
            let y = examples[at - 1].1;
            below += y;
            below_squares += y * y;
            let [low, high] = [at - 1, at].map(|at| examples[at].0.features[feature]);
            if low == high || at < LEAST_EXAMPLES || n - at < LEAST_EXAMPLES {
                continue;
            }
            // n times the deviation of each side.
            let left = |n: f64, sum: f64, squares: f64| (n * squares - sum * sum).max(0.0).sqrt();
            let left = left(at as f64, below, below_squares)
                + left((n - at) as f64, sum - below, squares - below_squares);
            if best.is_none_or(|(.., least)| left < least) {
                best = Some((feature, (low + high) / 2.0, left));
            }
        }
    }
    best
}

impl ModelNode {
    /// Grows and prunes a tree; returns its mean error too, times the [`penalty`] of its factors.
    fn grow(examples: &mut [(Example, f64)], even: f64) -> (Self, f64) {
        let n = examples.len();
        let model = Linear::fit(examples);
        let errors = examples.iter().map(|(example, y)| (model.at(&example.features) - y).abs());
        let error = errors.sum::<f64>() / n as f64;
        let mut node = Self { model, examples: n, split: None };
        let own = error * penalty(n, FEATURES + 1);
        if n < 2 * LEAST_EXAMPLES || deviation(examples.iter().map(|(_, y)| *y)) <= even {
            return (node, own);
        }
        let Some((feature, border, _)) = best_split(examples) else { return (node, own) };
        examples.sort_by(|a, b| a.0.features[feature].total_cmp(&b.0.features[feature]));
        let at = examples.partition_point(|(example, _)| example.features[feature] <= border);
        let (below, above) = examples.split_at_mut(at);
        let parts =
            [(below.len(), Self::grow(below, even)), (above.len(), Self::grow(above, even))];
        let below_it = parts.iter().map(|(len, (_, error))| *len as f64 * error).sum::<f64>();
        let below_it = below_it / n as f64;
        if below_it < own {
            let [(_, (below, _)), (_, (above, _))] = parts;
            node.split = Some((feature, border, Box::new([below, above])));
            return (node, below_it);
        }
        (node, own)
    }

    fn predict(&self, features: &[f64; FEATURES]) -> f64 {
        let own = self.model.at(features);
        let Some((feature, border, parts)) = &self.split else { return own };
        let part = &parts[usize::from(features[*feature] > *border)];
        let n = part.examples as f64;
        (n * part.predict(features) + SMOOTHING * own) / (n + SMOOTHING)
    }

    fn leaves(&self) -> usize {
        self.split.as_ref().map_or(1, |(.., parts)| parts.iter().map(Self::leaves).sum())
    }
}

/// The factor from errors on training examples to those on others.
fn penalty(examples: usize, factors: usize) -> f64 {
    let n = examples as f64;
    let v = factors as f64;
    if n > v { (n + v) / (n - v) } else { 10.0 }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// The mean of |prediction - true| / true.
    pub mean_relative: f64,
    /// The sum of |prediction - true| over that of |mean of all - true|.
    pub relative_absolute: f64,
    /// The 99th percentile of true / prediction; 1 at least.
    pub tail: f64,
}

const TAIL: f64 = 0.99;

impl ModelTree {
    /// `None` without examples, or if one took no time or has a feature that is not finite.
    pub(crate) fn learn(examples: &[Example]) -> Option<Self> {
        let sound = |example: &Example| {
            example.took > 0.0
                && example.took.is_finite()
                && example.features.iter().all(|x| x.is_finite())
        };
        if examples.is_empty() || !examples.iter().all(sound) {
            return None;
        }
        let mut with_logs: Vec<(Example, f64)> =
            examples.iter().map(|example| (*example, example.took.ln())).collect();
        let logs = || examples.iter().map(|example| example.took.ln());
        let range =
            [logs().fold(f64::INFINITY, f64::min), logs().fold(f64::NEG_INFINITY, f64::max)];
        let even = EVEN * deviation(logs());
        Some(Self { root: ModelNode::grow(&mut with_logs, even).0, range })
    }

    /// Never less or more than any example took.
    pub(crate) fn predict(&self, features: &[f64; FEATURES]) -> f64 {
        self.root.predict(features).clamp(self.range[0], self.range[1]).exp()
    }

    pub fn leaves(&self) -> usize {
        self.root.leaves()
    }

    pub fn errors(&self, examples: &[Example]) -> Errors {
        let n = examples.len().max(1) as f64;
        let mean = examples.iter().map(|example| example.took).sum::<f64>() / n;
        let mut relative = 0.0;
        let mut absolute = 0.0;
        let mut spread = 0.0;
        let mut ratios = Vec::with_capacity(examples.len());
        for example in examples {
            let predicted = self.predict(&example.features);
            ratios.push(example.took / predicted);
            let off = (predicted - example.took).abs();
            relative += off / example.took;
            absolute += off;
            spread += (mean - example.took).abs();
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let at = (TAIL * n).ceil() as usize;
        let tail = ratios.get(at.saturating_sub(1)).map_or(1.0, |ratio| ratio.max(1.0));
        Errors { mean_relative: relative / n, relative_absolute: absolute / spread, tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pseudorandom numbers between 0 and 1.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        }
    }

    fn examples(n: usize, seed: u64, took: impl Fn(&[f64; FEATURES]) -> f64) -> Vec<Example> {
        let mut next = random(seed);
        (0..n)
            .map(|_| {
                let features = std::array::from_fn(|_| 10.0 * next());
                Example { features, took: took(&features) * (0.95 + 0.1 * next()) }
            })
            .collect()
    }

    #[test]
    fn a_law_of_powers_is_one_model() {
        let took = |f: &[f64; FEATURES]| (0.5 * f[0] - 0.2 * f[1] + 1.0).exp();
        let tree = ModelTree::learn(&examples(500, 1, took)).unwrap();
        let errors = tree.errors(&examples(200, 2, took));
        assert!(errors.mean_relative < 0.04, "{errors:?}");
    }

    #[test]
    fn a_step_is_found() {
        let took = |f: &[f64; FEATURES]| if f[2] > 6.0 { 100.0 } else { 3.0 + f[3] };
        let tree = ModelTree::learn(&examples(800, 3, took)).unwrap();
        assert!(tree.leaves() >= 2);
        let errors = tree.errors(&examples(300, 4, took));
        assert!(errors.mean_relative < 0.1 && errors.relative_absolute < 0.1, "{errors:?}");
        // Two queries that take three times what they should are covered, one in a hundred is not.
        let mut late = examples(200, 4, took);
        (0..2).for_each(|at| late[at].took *= 3.0);
        assert!(tree.errors(&late).tail < 2.0);
        late[2].took *= 3.0;
        assert!(tree.errors(&late).tail > 2.0);
        // What has no structure is hardly split.
        let even = ModelTree::learn(&examples(800, 3, |_| 7.0)).unwrap();
        assert!(even.leaves() <= 3);
    }

    #[test]
    fn it_reads_what_it_writes_and_refuses_what_took_no_time() {
        let tree = ModelTree::learn(&examples(300, 5, |f| 1.0 + f[0] * f[1])).unwrap();
        let text = serde_json::to_string(&tree).unwrap();
        let read: ModelTree = serde_json::from_str(&text).unwrap();
        let features = [1.0, 2.0, 3.0, 4.0];
        assert!((read.predict(&features) / tree.predict(&features) - 1.0).abs() < 1e-9);
        assert!(ModelTree::learn(&[]).is_none());
        assert!(ModelTree::learn(&[Example { features, took: 0.0 }]).is_none());
        assert!(ModelTree::learn(&[Example { features: [f64::NAN; 4], took: 1.0 }]).is_none());
    }

    proptest! {
        #[test]
        fn predictions_stay_within_what_was_seen(seed in any::<u64>(), n in 1usize..60, x in -1e6..1e6f64) {
            let seen = examples(n, seed, |f| 1.0 + f[0]);
            let tree = ModelTree::learn(&seen).unwrap();
            let predicted = tree.predict(&[x, -x, x, 0.0]);
            let least = seen.iter().map(|e| e.took).fold(f64::INFINITY, f64::min);
            let most = seen.iter().map(|e| e.took).fold(0.0, f64::max);
            prop_assert!((least * 0.999..=most * 1.001).contains(&predicted));
        }
    }
}
