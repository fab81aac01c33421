//! What processes that share an index tell each other of the terms of queries.

use super::Plan;
use crate::index::error::IndexError;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use crate::text::fields::collection_of;
use crate::text::trie_collection::implied_prefix_len;
use std::sync::Arc;

impl Plan {
    /// A plan of all terms of a text, without their lists.
    ///
    /// # Errors
    /// `Query` if the text is no query.
    pub(crate) fn of_terms(
        snapshot: &Arc<Snapshot>,
        wanted: Wanted,
        text: &str,
    ) -> Result<Self, IndexError> {
        let refused = |why| IndexError::Query { why };
        let mut plan = Self::of_text(snapshot, wanted, text).map_err(refused)?;
        if !snapshot.fields().is_empty() {
            plan.spread().map_err(refused)?;
        }
        Ok(plan)
    }
}

impl Snapshot {
    /// Documents with a term, in this generation.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn df(&self, term: &str) -> Result<u32, IndexError> {
        let collection = collection_of(self.fields().len(), term);
        let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
        let generation = self.generation();
        let mut df: u32 = 0;
        for run in generation.runs() {
            if let Some(list) = run.lexicon().find(collection, suffix)? {
                df = df.saturating_add(run.live_df(&list)?);
            }
        }
        // A damaged index may claim more postings than there are documents.
        Ok(df.min(generation.documents().len()))
    }
}
