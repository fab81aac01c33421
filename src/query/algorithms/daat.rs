//! What all algorithms share that go document at a time (DAAT).

use crate::index::list::{ListError, ListView};
use crate::query::cursor::{Cursor, Norms, RunSearch, RunTerm};
use crate::query::top_k::TopK;
use crate::score::weight::Weight;

impl RunSearch<'_> {
    /// Brings the cursor of a term to the first posting from `docid` on.
    #[inline]
    pub(crate) fn seek(
        &self,
        cursors: &mut [Cursor],
        term: usize,
        docid: u32,
    ) -> Result<(), ListError> {
        match &self.terms[term].list {
            Some(list) => cursors[term].seek(list, self.documents, docid, self.level),
            None => Ok(()),
        }
    }

    /// The score of the posting at a term's cursor.
    #[inline]
    pub(crate) fn score(
        &self,
        cursor: &mut Cursor,
        term: usize,
        docid: u32,
    ) -> Result<f32, ListError> {
        let RunTerm { weight, list: Some(list) } = &self.terms[term] else { return Ok(0.0) };
        Ok(weight.score(cursor.tf(list)?, self.norms_for(*weight).documents[docid as usize]))
    }
}

/// The most that a list adds to a score.
pub(crate) fn list_most(list: &ListView<'_>, weight: Weight, norms: &Norms<'_>) -> f32 {
    // No saturation exceeds its weight except for rounding; others have no limit without a bound.
    let weight_most = match weight.is_saturation() {
        true => weight.factor() * (1.0 + 2.0 * f32::EPSILON),
        false => f32::INFINITY,
    };
    let bounds = list.list_bounds().iter().map(|bound| norms.bounds.most(weight, bound));
    bounds.reduce(f32::max).map_or(weight_most, |most| most.min(weight_most))
}

/// The sum of bounds that a document must exceed to get in if it is offered after all smaller
/// docids: additions of `terms` scores may round up.
pub(crate) fn bar(top: &TopK, terms: usize) -> f64 {
    f64::from(top.threshold()) / rounding(terms)
}

/// The most that rounding adds to a sum of scores, as a factor.
pub(crate) fn rounding(terms: usize) -> f64 {
    1.0 + (terms + 4) as f64 * f64::from(f32::EPSILON)
}
