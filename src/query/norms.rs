//! Norms and bounds: what a search needs, beside postings, to score the documents of a run.

use crate::score::bounds::BoundNorms;

#[derive(Clone, Copy, Debug)]
pub struct Norms<'a> {
    pub documents: &'a [f32],
    /// With the same parameters.
    pub bounds: &'a BoundNorms,
    /// The static part of each document's score; empty if 0. Algorithms that go by bounds take
    /// none.
    pub statics: &'a [f32],
    /// The global score of each document, if documents are in that order; else empty. Only the
    /// algorithm `wang` uses them.
    pub globals: &'a [f32],
}

impl Norms<'_> {
    #[inline]
    pub(crate) fn static_of(&self, docid: u32) -> f32 {
        self.statics.get(docid as usize).copied().unwrap_or(0.0)
    }
}
