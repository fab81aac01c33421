//! Searches of queries as they ask for it: filtered, sorted, counted, and of all documents.

use super::Searcher;
use crate::index::error::IndexError;
use crate::query::engines::share::SearchedLists;
use crate::query::listing::Listing;
use crate::query::listing::facets::FoundFacets;
use crate::query::plan::Plan;
use crate::query::reading::asked::Query;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::Wanted;
use std::sync::Arc;

impl Searcher {
    /// The best hits for a query with its filter, order, facets and offset, and whether any of its
    /// terms is in the index; `usual` has what it leaves open. Values that it returns are left to
    /// the caller.
    ///
    /// # Errors
    /// `Query` if it is none for this index; if that is damaged.
    pub fn ask(
        &mut self,
        snapshot: &Arc<Snapshot>,
        usual: &Wanted,
        query: &Query,
    ) -> Result<(&[Hit], bool), IndexError> {
        let filter = query.filter.as_deref();
        let snapshot = &filter.map_or(Ok(snapshot.clone()), |filter| snapshot.filtered(filter))?;
        let listing = query.listing(&snapshot.generation().manifest().settings);
        let listing = listing.map_err(|why| IndexError::Query { why })?;
        let wanted = query.wanted(usual);
        let wanted = Wanted { k: wanted.k.saturating_add(query.offset), ..wanted };
        let known = self.with_plan(snapshot, &wanted, &query.text, listing, |searcher, plan| {
            searcher.answer(plan)?;
            Ok(plan.known())
        })?;
        Ok((&self.hits[query.offset.min(self.hits.len())..], known))
    }

    /// The facets of the last query, if it asks for any.
    pub fn take_facets(&mut self) -> FoundFacets {
        std::mem::take(&mut self.facets)
    }

    /// Finds all documents that are not left out, or the first of them.
    pub(super) fn find_all(&mut self, plan: &Plan, source: &impl SearchedLists) {
        let (depth, within) = (plan.depth(), source.docids());
        let norms = plan.snapshot().norms();
        let mut found = 0;
        for (number, run) in plan.snapshot().generation().runs().iter().enumerate() {
            let docids = source.place(run, number);
            let docids = docids.start.max(within.start)..docids.end.min(within.end);
            for docid in docids.filter(|docid| norms[*docid as usize].is_finite()) {
                found += 1;
                if self.hits.len() < depth {
                    self.hits.push(Hit { docid, score: 0.0 });
                } else if !plan.wanted().count {
                    return;
                }
            }
        }
        self.found = plan.wanted().count.then_some(found);
    }

    /// Puts all that matches in the order that is asked for, if there is one, and leaves the best.
    pub(super) fn arrange(&mut self, plan: &Plan) -> Result<(), IndexError> {
        let generation = plan.snapshot().generation();
        let listing = plan.listing_of_all();
        let arrange = |of: &Listing| of.arrange(generation, &mut self.hits, plan.wanted().k);
        self.facets = listing.map(arrange).transpose()?.unwrap_or_default();
        Ok(())
    }
}
