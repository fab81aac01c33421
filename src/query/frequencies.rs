//! Frequencies of terms in all documents. An index does not store them, so the term frequencies of
//! a list are added up when a query first needs it, and stored: about 24 bytes for each list. Lists
//! are known by run and offset, and belong to one snapshot.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::lexicon::TermEntry;
use crate::index::run::Run;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

#[derive(Debug, Default)]
pub(super) struct Frequencies {
    /// By number of the run and offset of the list.
    known: RwLock<HashMap<(usize, u64), u64>>,
}

impl Frequencies {
    /// The sum of the term frequencies of a list in run `number`. Documents with infinite norms are
    /// deleted and do not count; `norms` are those of the run's documents.
    pub(super) fn of(
        &self,
        number: usize,
        run: &Run,
        entry: TermEntry,
        norms: &[f32],
    ) -> Result<u64, IndexError> {
        let key = (number, entry.offset);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&sum) = known.get(&key) {
            return Ok(sum);
        }
        drop(known);
        let mut sum = 0;
        let add = |docids: &[u32], tfs: &[u32]| {
            for (&docid, &tf) in docids.iter().zip(tfs) {
                let is_live = norms[docid as usize].is_finite();
                sum += if is_live { u64::from(tf) } else { 0 };
            }
        };
        let start = HEADER_BYTES as u64 + entry.offset;
        let checked = run.list(entry)?.check(run.documents(), None, add);
        checked.map_err(IndexError::list(run.postings_path(), start))?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(key, sum);
        Ok(sum)
    }
}
