//! The twin of `kernels/query.cu` in plain Rust: sums of upper bounds, exact scores, and the best k
//! of a query, by the definitions alone.

use super::list::{DeviceList, PlacedList, Windows};
use super::plan::{QueryRecord, TermRecord};
use crate::query::top_k::Hit;
use crate::score::bm25::score;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<'a> {
    pub arena: &'a [u8],
    pub terms: &'a [TermRecord],
    pub norms: &'a [f32],
    pub windows: Windows,
}

impl<'a> Memory<'a> {
    fn terms(&self, record: &QueryRecord) -> &'a [TermRecord] {
        &self.terms[record.first_term as usize..][..record.terms as usize]
    }

    fn list(&self, term: &TermRecord) -> DeviceList<'a> {
        let placed = PlacedList { postings: term.postings, exceptions: term.exceptions };
        DeviceList::new(self.windows, placed, &self.arena[term.place as usize..])
    }

    /// Of all documents in range with any term, or with all.
    pub(crate) fn scores(&self, record: &QueryRecord, all_terms: bool) -> Vec<Hit> {
        let mut hits = Vec::new();
        for window in 0..self.windows.len() {
            let size = 1usize << self.windows.bits;
            let mut sums = vec![0.0f32; size];
            let mut matched = vec![0; size];
            let first = (window << self.windows.bits) as u32;
            for term in self.terms(record) {
                let list = self.list(term);
                for posting in list.window(window).filter(|posting| posting.impact > 0) {
                    let norm = self.norms[(first + posting.offset) as usize];
                    sums[posting.offset as usize] += score(term.weight, list.tf(posting.at), norm);
                    matched[posting.offset as usize] += 1;
                }
            }
            let need = if all_terms { record.terms } else { 1 };
            let found = (first..).zip(sums).zip(matched).filter(|&((docid, score), lists)| {
                lists >= need && score > 0.0 && (record.from..record.to).contains(&docid)
            });
            hits.extend(found.map(|((docid, score), _)| Hit { docid, score }));
        }
        hits
    }

    pub(crate) fn best(&self, record: &QueryRecord, all_terms: bool) -> Vec<Hit> {
        let mut hits = self.scores(record, all_terms);
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(record.k as usize);
        hits
    }
}
