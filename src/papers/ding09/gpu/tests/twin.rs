//! The twins of the kernels in plain Rust, by the definitions alone.

use crate::query::top_k::Hit;
use crate::score::bm25::score;
use std::ops::Range;

/// Postings are (docid, tf), rising.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DingTwinTerm<'a> {
    pub weight: f32,
    pub postings: &'a [(u32, u32)],
}

/// Parallel Merge Find: of each `a[i]` the place j with `b[j - 1] < a[i] <= b[j]`.
pub(crate) fn merge_find(a: &[u32], b: &[u32]) -> Vec<u32> {
    a.iter().map(|&docid| b.partition_point(|&head| head < docid) as u32).collect()
}

/// The best k documents that have any term, or all, best first.
pub(crate) fn best(
    terms: &[DingTwinTerm<'_>],
    norms: &[f32],
    (k, docids): (usize, Range<u32>),
    all_terms: bool,
) -> Vec<Hit> {
    let mut scores = vec![0.0f32; norms.len()];
    let mut lists = vec![0; norms.len()];
    for term in terms {
        for &(docid, tf) in term.postings {
            scores[docid as usize] += score(term.weight, tf, norms[docid as usize]);
            lists[docid as usize] += 1;
        }
    }
    let need = if all_terms { terms.len() } else { 1 };
    let mut hits: Vec<Hit> = (0..)
        .zip(scores)
        .zip(lists)
        .filter(|((docid, score), lists)| *lists >= need && *score > 0.0 && docids.contains(docid))
        .map(|((docid, score), _)| Hit { docid, score })
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
    hits.truncate(k);
    hits
}
