//! The twin of `kernels/query.cu` in plain Rust: sums of upper bounds, exact scores, and the best k
//! of a query, by the definitions alone.

use super::list::{DeviceList, PlacedList, Windows};
use super::plan::{QueryRecord, TermRecord};
use crate::query::top_k::Hit;
use crate::score::weight::{Formula, Weight};

/// By their numbers in kernels.
pub(crate) const FORMULAS: [Formula; 4] =
    [Formula::Saturation, Formula::Lifted, Formula::Dirichlet, Formula::Dph];

/// A term's weight in a query that has it this many times.
pub(crate) fn weight(formula: Formula, times: f32, more: f32) -> Weight {
    let is_lifted = formula == Formula::Lifted;
    Weight::new(formula, times, if is_lifted { times * more } else { more })
}

/// A norm as the formula has it, of one from 0 on.
pub(crate) fn norm(formula: Formula, norm: f32) -> f32 {
    match formula {
        Formula::Dirichlet if norm.is_finite() => -norm,
        Formula::Dph => 9.0 * norm,
        _ => norm,
    }
}

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
        let TermRecord { postings, exceptions, .. } = *term;
        let placed = PlacedList { postings, exceptions, most: 0.0 };
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
                let formula = FORMULAS[usize::from(term.formula)];
                let weight = Weight::new(formula, term.weight, term.more);
                for posting in list.window(window).filter(|posting| posting.impact > 0) {
                    let norm = self.norms[(first + posting.offset) as usize];
                    sums[posting.offset as usize] += weight.score(list.tf(posting.at), norm);
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
