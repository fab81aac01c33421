//! What does a search know of the documents of a run, beside their postings?

use crate::score::bounds::BoundNorms;

/// What a search needs to score the documents of a run.
#[derive(Clone, Copy, Debug)]
pub struct Norms<'a> {
    /// The length norm of each document.
    pub documents: &'a [f32],
    /// What bounds are worth with the same parameters.
    pub bounds: &'a BoundNorms,
    /// What the score of each document begins with; empty if with 0. Algorithms that go by bounds
    /// take none.
    pub statics: &'a [f32],
    /// The global score of each document, where they stand in the order of those; empty if not. The
    /// algorithm `wang` alone goes by them.
    pub globals: &'a [f32],
}

impl Norms<'_> {
    /// What the score of a document begins with.
    #[inline]
    pub(super) fn static_of(&self, docid: u32) -> f32 {
        self.statics.get(docid as usize).copied().unwrap_or(0.0)
    }
}
