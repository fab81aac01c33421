//! How many hits each shard is asked for first, which shards are asked again, and the merge.
//!
//! Were documents dealt to shards at random, a shard with part p of the matches would have k p of
//! the best k, give or take √(k p). It is asked for three of these more, and for one behind: as
//! long as its last hit is none of the best k, nothing behind that is. Only a shard whose last hit
//! is among them is asked again, for what reaches the k-th score so far.
//!
//! Of OR one shard is asked before the others. The score of its last hit is a floor for them: what
//! is below is most likely none of the best k. So they skip from their first posting on, and all of
//! them together take about as long as one search of all documents. If fewer than k documents reach
//! the floor, it was wrong, and all are asked again without.

use super::messages::{ShardHits, StageHits};
use crate::query::listing::best;
use crate::query::top_k::Hit;
use crate::query::wanted::{Mode, Wanted};
use std::cmp::Ordering;

/// The part of the best k that each of some shards will have, by the document frequencies of the
/// terms in each: those of the rarest term are most likely among the best, then those of the next.
/// None if no term is in any shard.
pub(super) fn parts<'a>(
    terms: impl Iterator<Item = &'a [u64]>,
    shards: usize,
    k: usize,
) -> Option<Vec<f64>> {
    let mut terms: Vec<(u64, &[u64])> = terms.map(|dfs| (dfs.iter().sum(), dfs)).collect();
    terms.sort_unstable_by_key(|(df, _)| *df);
    let mut parts = vec![0.0; shards];
    let mut left = k.max(1) as f64;
    for (df, dfs) in terms.into_iter().filter(|(df, _)| *df > 0) {
        let share = left.min(df as f64) / df as f64;
        parts.iter_mut().zip(dfs).for_each(|(part, &df)| *part += share * df as f64);
        left -= left.min(df as f64);
    }
    let sum: f64 = parts.iter().sum();
    parts.iter_mut().for_each(|part| *part /= sum);
    (sum > 0.0).then_some(parts)
}

/// How many hits a shard is asked for first, that will have this part of the matches.
pub(super) fn first_share(k: usize, part: f64) -> usize {
    let expected = k as f64 * part;
    ((expected + 3.0 * expected.sqrt()).ceil() as usize).saturating_add(1).min(k)
}

/// The shards that may have matches of a query of words, by the document frequencies of its terms
/// in each: those with any term, or with all. One at least, which tells how nothing looks.
pub(super) fn with_matches(dfs: &[&[u64]], all: bool, shards: usize) -> Vec<usize> {
    let has = |shard: usize| move |dfs: &&[u64]| dfs.get(shard).is_some_and(|&df| df > 0);
    let may = |&shard: &usize| match all {
        true => dfs.iter().all(has(shard)),
        false => dfs.iter().any(has(shard)),
    };
    let with: Vec<usize> = (0..shards).filter(may).collect();
    if with.is_empty() { vec![0] } else { with }
}

/// The shard of some that is asked first: each in `turn`, or one that will have far more than the
/// others.
pub(super) fn first_shard(among: &[usize], parts: &[f64], turn: u64) -> usize {
    let greatest = among.iter().copied().max_by(|&a, &b| parts[a].total_cmp(&parts[b]));
    let is_far_more = |&shard: &usize| among.len() as f64 * parts[shard] > 2.0;
    let in_turn = || among[(turn % among.len() as u64) as usize];
    greatest.filter(is_far_more).unwrap_or_else(in_turn)
}

/// The answers of the shards to a query, and how many hits each was asked for.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) asked: Vec<usize>,
    pub(super) hits: Vec<Option<ShardHits>>,
    /// The shards that were asked for what reaches a floor.
    floored: Vec<bool>,
    /// If hits of one stage were asked for again: whether of any term.
    again: Option<bool>,
}

/// What some shards are asked for again.
#[derive(Debug, PartialEq)]
pub(super) struct Again {
    pub(super) shards: Vec<usize>,
    pub(super) mode: Mode,
    /// Whether facets and counts are needed again.
    pub(super) whole: bool,
    pub(super) floor: f32,
}

/// Best first.
fn order(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid))
}

impl Found {
    pub(super) fn new(asked: Vec<usize>) -> Self {
        let hits = asked.iter().map(|_| None).collect();
        let floored = vec![false; asked.len()];
        Self { asked, hits, floored, again: None }
    }

    /// What all shards `among` some are asked for but `first`, which has answered.
    pub(super) fn rest(&mut self, among: &[usize], first: usize, k: usize) -> Again {
        let hits = self.hits[first].as_ref().map_or(&[][..], |of| &of.first.hits);
        let last = hits.last().filter(|_| hits.len() == self.asked[first]);
        let shards: Vec<usize> = among.iter().copied().filter(|&shard| shard != first).collect();
        for &shard in shards.iter().filter(|_| last.is_some()) {
            // As many as may well reach the floor.
            self.asked[shard] = self.asked[shard].saturating_mul(2).min(k);
            self.floored[shard] = true;
        }
        let floor = last.map_or(f32::NEG_INFINITY, |hit| hit.score);
        Again { shards, mode: Mode::Or, whole: true, floor }
    }

    /// Takes the answer of a shard. Those that came before count on where a stage was asked for
    /// again.
    pub(super) fn take(&mut self, of: ShardHits) -> Result<(), String> {
        let process = of.process as usize;
        let place = self.hits.get_mut(process).ok_or_else(|| format!("no shard {process}"))?;
        match (place, self.again) {
            (Some(before), Some(any)) => {
                let stage = if any { &mut before.any } else { &mut before.first };
                let StageHits { hits, names, keys, values, .. } = of.first;
                *stage = StageHits { hits, names, keys, values, ..std::mem::take(stage) };
            }
            (place, _) => *place = Some(of),
        }
        Ok(())
    }

    pub(super) fn stages(&self, any: bool) -> impl Iterator<Item = (usize, &StageHits)> {
        let told = self.hits.iter().enumerate().filter_map(|(at, of)| Some((at, of.as_ref()?)));
        told.map(move |(at, of)| (at, if any { &of.any } else { &of.first }))
    }

    fn count(&self, any: bool) -> usize {
        self.stages(any).map(|(_, stage)| stage.hits.len()).sum()
    }

    /// Whether a shard may have more than it has told.
    fn is_open(&self, shard: usize, stage: &StageHits, k: usize) -> bool {
        self.asked[shard] < k && stage.hits.len() >= self.asked[shard]
    }

    /// The shards that may have more of the best k of a stage, and the k-th score so far.
    fn open_shards(&self, any: bool, k: usize) -> (Vec<usize>, f32) {
        let mut all: Vec<Hit> =
            self.stages(any).flat_map(|(_, stage)| &stage.hits).copied().collect();
        let kth = (k > 0 && all.len() >= k).then(|| *all.select_nth_unstable_by(k - 1, order).1);
        let may = |hit: &Hit| kth.is_none_or(|kth| order(hit, &kth) == Ordering::Less);
        let open = |&(shard, stage): &(usize, &StageHits)| {
            self.is_open(shard, stage, k) && stage.hits.last().is_none_or(may)
                || self.floored[shard] && kth.is_none()
        };
        let shards = self.stages(any).filter(open).map(|(shard, _)| shard).collect();
        (shards, kth.map_or(f32::NEG_INFINITY, |kth| kth.score))
    }

    /// Which shards are asked again, once all have answered.
    pub(super) fn again(&mut self, wanted: &Wanted) -> Option<Again> {
        let k = wanted.k;
        let asked_all = |(&asked, &floored): (&usize, &bool)| asked >= k && !floored;
        if self.asked.iter().zip(&self.floored).all(asked_all) {
            return None;
        }
        let mut any = false;
        if wanted.mode == Mode::AndOr && self.count(false) < k {
            // Whether there are k with all terms is not known.
            let first_is_open = |(shard, stage)| self.is_open(shard, stage, k);
            if self.stages(false).any(first_is_open) {
                let shards = (0..self.asked.len()).collect();
                let floor = f32::NEG_INFINITY;
                return Some(Again { shards, mode: Mode::AndOr, whole: true, floor });
            }
            any = true;
        }
        let (shards, floor) = self.open_shards(any, k);
        let mode = match wanted.mode {
            Mode::AndOr if any => Mode::Or,
            Mode::AndOr => Mode::And,
            mode => mode,
        };
        self.again = (!shards.is_empty()).then_some(any);
        (!shards.is_empty()).then_some(Again { shards, mode, whole: false, floor })
    }

    /// The best k of all, in order, each with its shard and its place there; and the stage that
    /// they are of.
    pub(super) fn merge(&self, wanted: &Wanted, falls: Option<bool>) -> (Vec<MergedHit>, bool) {
        let any = wanted.mode == Mode::AndOr && self.count(false) < wanted.k;
        let mut keyed = Vec::with_capacity(self.count(any));
        for (shard, stage) in self.stages(any) {
            for (at, &hit) in stage.hits.iter().enumerate() {
                keyed.push((stage.keys.get(at).cloned().flatten(), hit, (shard, at)));
            }
        }
        best(falls, &mut keyed, wanted.k);
        let merged = |(_, hit, (shard, at))| MergedHit { hit, shard, at };
        (keyed.into_iter().map(merged).collect(), any)
    }
}

/// A hit of a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MergedHit {
    pub(super) hit: Hit,
    pub(super) shard: usize,
    /// Its place among the hits of the stage.
    pub(super) at: usize,
}
