//! The twin of the kernel in plain Rust, on postings that are not coded.

use crate::papers::methods::batch::FoundHits;
use crate::query::top_k::Hit;
use crate::score::bm25::score;
use crate::score::wang::is_over;

/// Postings are (docid, tf) of the whole list, rising.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WangTwinTerm<'a> {
    pub weight: f32,
    pub postings: &'a [(u32, u32)],
    /// How many of the first ones are on the device.
    pub there: usize,
}

impl<'a> WangTwinTerm<'a> {
    fn there(&self) -> &'a [(u32, u32)] {
        &self.postings[..self.there]
    }

    fn tf(&self, docid: u32) -> Option<u32> {
        let there = self.there();
        there.binary_search_by_key(&docid, |posting| posting.0).ok().map(|at| there[at].1)
    }
}

/// By docid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwinWorth<'a> {
    pub norms: &'a [f32],
    pub statics: &'a [f32],
    pub globals: &'a [f32],
}

/// The best k documents with all terms, by rounds of `round` of the shortest list; and the rounds.
///
/// # Panics
/// If there is no term.
pub(crate) fn by_rounds(
    terms: &[WangTwinTerm<'_>],
    worth: TwinWorth<'_>,
    k: usize,
    round: usize,
) -> (FoundHits, u32) {
    let documents = worth.norms.len() as u32;
    let cut = terms.iter().filter(|term| term.there < term.postings.len());
    let cut = cut.map(|term| term.there().last().map_or(0, |last| last.0 + 1)).min();
    let shortest = terms.iter().min_by_key(|term| term.postings.len()).expect("a term").there();
    let mut hits: Vec<Hit> = Vec::new();
    let mut rounds: u32 = 0;
    let mut rest = cut;
    for begin in (0..shortest.len()).step_by(round) {
        rounds += 1;
        let end = shortest.len().min(begin + round);
        for &(docid, _) in &shortest[begin..end] {
            let tfs: Option<Vec<u32>> = terms.iter().map(|term| term.tf(docid)).collect();
            let Some(tfs) = tfs else { continue };
            let mut sum = worth.statics[docid as usize];
            let norm = worth.norms[docid as usize];
            terms.iter().zip(tfs).for_each(|(term, tf)| sum += score(term.weight, tf, norm));
            hits.push(Hit { docid, score: sum });
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(k);
        let next = shortest.get(end).map_or(documents, |posting| posting.0);
        let unfinished = next.min(cut.unwrap_or(documents));
        if hits.len() == k
            && let Some(&global) = worth.globals.get(unfinished as usize)
            && is_over(hits[k - 1].score, global, terms.len())
        {
            rest = None;
            break;
        }
        if cut.is_some_and(|cut| next >= cut) {
            break;
        }
    }
    (FoundHits { hits, rest }, rounds)
}
