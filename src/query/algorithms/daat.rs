//! What do all algorithms that take documents one after another have in common?

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

    /// What the posting that a term's cursor stands at adds to the score of its document.
    #[inline]
    pub(crate) fn score(
        &self,
        cursor: &mut Cursor,
        term: usize,
        docid: u32,
    ) -> Result<f32, ListError> {
        let RunTerm { weight, list: Some(list) } = &self.terms[term] else { return Ok(0.0) };
        Ok(weight.score(cursor.tf(list)?, self.norms.documents[docid as usize]))
    }
}

/// What a list may add to a score in any document.
pub(crate) fn list_most(list: &ListView<'_>, weight: Weight, norms: &Norms<'_>) -> f32 {
    // No saturation is above its weight, but for rounding; of others nothing is known without a
    // bound.
    let weight_most = match weight.is_saturation() {
        true => weight.factor() * (1.0 + 2.0 * f32::EPSILON),
        false => f32::INFINITY,
    };
    let bounds = list.list_bounds().iter().map(|bound| norms.bounds.most(weight, bound));
    bounds.reduce(f32::max).map_or(weight_most, |most| most.min(weight_most))
}

/// Sums of bounds have to exceed this for a document to get in that is offered behind all smaller
/// docids: `terms` scores may be rounded up when they are added.
pub(crate) fn bar(top: &TopK, terms: usize) -> f64 {
    f64::from(top.threshold()) / rounding(terms)
}

/// How much rounding may add to a sum of scores, as a factor.
pub(crate) fn rounding(terms: usize) -> f64 {
    1.0 + (terms + 4) as f64 * f64::from(f32::EPSILON)
}
