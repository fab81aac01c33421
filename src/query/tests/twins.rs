//! The pruning algorithms as their papers have them, document by document, over lists of docids and
//! scores that are not negative: to be read before the fast ones, and to be compared with them.
//!
//! A document that ties with the last hit comes in if its docid is smaller, so one that is met
//! later does not.

use super::known::KnownCase;
use super::{Algorithm, Postings};
use crate::query::top_k::Hit;
use crate::score::weight::Weight;
use proptest::prelude::*;

/// Of a query that twins are asked.
const MOST_POSTINGS: usize = 20_000;

/// Rising docids, each with the score of its term.
type ScoredList = Vec<(u32, f32)>;

/// The best `k`, best first.
struct Best {
    k: usize,
    hits: ScoredList,
}

impl Best {
    fn new(k: usize) -> Self {
        Self { k, hits: Vec::new() }
    }

    /// Whether a document may come in whose score is at most a sum of these. The sum of a score is
    /// rounded after each addition, that of bounds is not.
    fn takes(&self, bounds: f64) -> bool {
        let last = self.hits.last().map_or(-1.0, |hit| f64::from(hit.1));
        self.hits.len() < self.k || bounds * (1.0 + 1e-6) > last
    }

    /// Takes a document with what its terms give, which is added in the order of the query.
    fn offer(&mut self, docid: u32, scores: &[Option<f32>]) {
        let score = scores.iter().flatten().sum::<f32>();
        let place = self.hits.partition_point(|hit| hit.1 >= score);
        self.hits.insert(place, (docid, score));
        self.hits.truncate(self.k);
    }
}

/// The greatest score of some postings.
fn bound(postings: &[(u32, f32)]) -> f64 {
    postings.iter().map(|posting| f64::from(posting.1)).fold(0.0, f64::max)
}

/// The score of a document in a list whose place is at it or before, and moves behind it.
fn seek(list: &ScoredList, at: &mut usize, docid: u32) -> Option<f32> {
    *at += list[*at..].partition_point(|posting| posting.0 < docid);
    let found = list.get(*at).filter(|posting| posting.0 == docid)?;
    *at += 1;
    Some(found.1)
}

/// MaxScore (Turtle and Flood, 1995).
fn max_score(lists: &[ScoredList], k: usize) -> ScoredList {
    let mut best = Best::new(k);
    let mut at = vec![0; lists.len()];
    // 1. Lists by rising bounds, and the sums of the bounds of the first ones.
    let mut order: Vec<usize> = (0..lists.len()).collect();
    order.sort_by(|a, b| bound(&lists[*a]).total_cmp(&bound(&lists[*b])));
    let mut sums = vec![0.0];
    order.iter().for_each(|list| sums.push(sums[sums.len() - 1] + bound(&lists[*list])));
    let mut optional = 0;
    loop {
        // 2. Documents that have only terms of the optional lists cannot come in.
        while optional < order.len() && !best.takes(sums[optional + 1]) {
            optional += 1;
        }
        let next = order[optional..].iter().filter_map(|&list| lists[list].get(at[list]));
        let Some(docid) = next.map(|posting| posting.0).min() else { return best.hits };
        let mut scores = vec![None; lists.len()];
        for &list in &order[optional..] {
            scores[list] = seek(&lists[list], &mut at[list], docid);
        }
        // 3. The optional ones are looked at, the greatest bound first, while it may come in.
        let mut sum: f64 = scores.iter().flatten().map(|score| f64::from(*score)).sum();
        for number in (0..optional).rev() {
            if !best.takes(sum + sums[number + 1]) {
                break;
            }
            let list = order[number];
            scores[list] = seek(&lists[list], &mut at[list], docid);
            sum += f64::from(scores[list].unwrap_or_default());
        }
        if best.takes(sum) {
            best.offer(docid, &scores);
        }
    }
}

/// WAND (Broder and others, 2003); with blocks of this many postings, Block-Max WAND (Ding and
/// Suel, 2011).
fn wand(lists: &[ScoredList], k: usize, block: Option<usize>) -> ScoredList {
    let mut best = Best::new(k);
    let mut at = vec![0; lists.len()];
    let bounds: Vec<f64> = lists.iter().map(|list| bound(list)).collect();
    loop {
        // 1. Lists by the documents that they stand at.
        let here = |list: usize, at: &[usize]| lists[list].get(at[list]).map(|posting| posting.0);
        let mut order: Vec<usize> = (0..lists.len()).collect();
        order.retain(|&list| here(list, &at).is_some());
        order.sort_by_key(|&list| here(list, &at));
        // 2. The pivot is the first document whose lists, and those before it, may be enough.
        let mut sum = 0.0;
        let pivot = order.iter().position(|&list| {
            sum += bounds[list];
            best.takes(sum)
        });
        let Some(pivot) = pivot else { return best.hits };
        let docid = here(order[pivot], &at).expect("lists that have ended are left out");
        let there = order.iter().take_while(|&&list| here(list, &at) <= Some(docid)).count();
        // 3. So may the blocks in which the pivot would be; if not, it goes behind the first end.
        let mut in_blocks = 0.0;
        let mut end = order.get(there).and_then(|&list| here(list, &at)).unwrap_or(u32::MAX);
        for &list in &order[..there] {
            let Some(size) = block else {
                in_blocks += bounds[list];
                continue;
            };
            let place = lists[list].partition_point(|posting| posting.0 < docid);
            let block = lists[list].chunks(size).nth(place / size).unwrap_or_default();
            in_blocks += bound(block);
            end = end.min(block.last().map_or(u32::MAX, |posting| posting.0.saturating_add(1)));
        }
        let mut scores = vec![None; lists.len()];
        let is_candidate = best.takes(in_blocks);
        let until = if is_candidate { docid } else { end };
        for &list in &order[..there] {
            let found = seek(&lists[list], &mut at[list], until);
            match is_candidate {
                true => scores[list] = found,
                // What stands at the end has not been looked at yet.
                false => at[list] -= usize::from(found.is_some()),
            }
        }
        if is_candidate {
            best.offer(docid, &scores);
        }
    }
}

/// What an algorithm has to find: the same as its plain twin does, where it has one.
pub(super) fn expected<'a>(known: &'a KnownCase<'_>, algorithm: Algorithm, k: usize) -> &'a [Hit] {
    let case = known.case;
    let expected = known.hits(algorithm.is_and(), k);
    // Much takes its time here; the test below has more hits.
    let postings: usize = case.terms.iter().flat_map(|(_, list)| list).map(Vec::len).sum();
    if k > 10 || postings > MOST_POSTINGS {
        return expected;
    }
    let list = |(weight, list): &(Weight, Option<Postings>)| -> ScoredList {
        let score =
            |(docid, tf): &(u32, u32)| (*docid, weight.score(*tf, case.norms[*docid as usize]));
        list.iter().flatten().map(score).collect()
    };
    let lists: Vec<ScoredList> = case.terms.iter().map(list).collect();
    if lists.iter().flatten().any(|(_, score)| *score < 0.0) {
        return expected;
    }
    let found = match algorithm {
        Algorithm::MaxScore => max_score(&lists, k),
        Algorithm::Handed(of) if of.name() == "wand" => wand(&lists, k, None),
        Algorithm::Handed(of) if of.name() == "bmw" => wand(&lists, k, Some(case.form.block_len())),
        _ => return expected,
    };
    let hit = |(docid, score)| Hit { docid: case.first_docid + docid, score };
    let found: Vec<Hit> = found.into_iter().map(hit).collect();
    assert_eq!(found, expected, "{algorithm:?}");
    expected
}

/// All documents are scored.
fn exhaustive(lists: &[ScoredList], k: usize) -> ScoredList {
    let mut best = Best::new(k);
    let mut docids: Vec<u32> = lists.iter().flatten().map(|posting| posting.0).collect();
    docids.sort_unstable();
    docids.dedup();
    for docid in docids {
        let score = |list: &ScoredList| seek(list, &mut 0, docid);
        best.offer(docid, &lists.iter().map(score).collect::<Vec<_>>());
    }
    best.hits
}

proptest! {
    #[test]
    fn twins_find_what_scoring_all_finds(
        lists in prop::collection::vec(
            prop::collection::btree_map(0u32..200, (0u8..20).prop_map(|n| f32::from(n) * 0.3), 0..80),
            0..6,
        ),
        k in 1usize..20,
        block in 1usize..9,
    ) {
        let lists: Vec<ScoredList> =
            lists.into_iter().map(|list| list.into_iter().collect()).collect();
        let expected = exhaustive(&lists, k);
        prop_assert_eq!(&max_score(&lists, k), &expected);
        prop_assert_eq!(&wand(&lists, k, None), &expected);
        prop_assert_eq!(&wand(&lists, k, Some(block)), &expected);
    }
}
