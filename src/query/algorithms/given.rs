//! Scores given documents and no others, whether they have a term of the query or not.
//!
//! The lists are read one after the other, each in one pass that skips the blocks without a given
//! document. A document's scores are added up in the order of the query's terms, as everywhere.

use crate::index::list::ListError;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::scratch::Scratch;

impl RunSearch<'_> {
    /// Leaves in the scratch's sums the score and the number of terms of each of the `given`
    /// documents of the run, which rise.
    ///
    /// # Errors
    /// If a list is damaged.
    pub(crate) fn score_given(
        &self,
        given: &[u32],
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let places = || given.iter().map(|&docid| docid - self.first_docid);
        scratch.sums.clear();
        scratch.sums.extend(places().map(|place| (self.norms.static_of(place), 0)));
        for RunTerm { weight, list } in self.terms {
            let Some(list) = list else { continue };
            let norms = self.norms_for(*weight).documents;
            scratch.reset_cursors(1);
            let cursor = &mut scratch.cursors[0];
            for (place, (sum, matched)) in places().zip(&mut scratch.sums) {
                cursor.seek(list, self.documents, place, self.level)?;
                if cursor.docids[..cursor.len].get(cursor.at) == Some(&place) {
                    *sum += weight.score(cursor.tf(list)?, norms[place as usize]);
                    *matched += 1;
                }
            }
        }
        Ok(())
    }
}
