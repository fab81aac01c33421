//! Searches that go run by run: the rest of a query that a device has begun, and what papers count.

use super::known::norms_of;
use super::{Searcher, blame, recycle};
use crate::index::error::IndexError;
use crate::index::list::ListError;
use crate::query::algorithms::and;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::engines::share::{ALL, SearchedLists};
use crate::query::plan::Plan;
use crate::query::scratch::Scratch;
use crate::query::top_k::{Hit, TopK};
use crate::query::wanted::Algorithm;

impl RunSearch<'_> {
    /// Calls `work` with the lists from the block of a document of the run on; `top` takes no
    /// document before it.
    pub(crate) fn rest<R>(
        &self,
        from: u32,
        top: &mut TopK,
        work: impl FnOnce(&RunSearch<'_>, &mut TopK) -> R,
    ) -> R {
        let mut rest = self.terms.to_vec();
        for term in &mut rest {
            term.list = term.list.and_then(|list| list.within(from..self.documents));
        }
        // A block may begin with documents that were looked at.
        top.only(self.first_docid + from..self.first_docid + self.documents);
        work(&RunSearch { terms: &rest, ..*self }, top)
    }
}

impl Searcher {
    /// Completes a query of AND, whose best documents before `from` are `hits`, from that docid on.
    /// The index must have one run.
    ///
    /// # Panics
    /// If the index has no run.
    pub fn go_on(&mut self, plan: &Plan, hits: &[Hit], from: u32) -> Result<&[Hit], IndexError> {
        let mut handed = std::mem::take(&mut self.handed);
        self.by_runs(plan, 1, |run, top, scratch| {
            hits.iter().for_each(|hit| top.offer(hit.docid, hit.score));
            run.rest(from, top, |rest, top| match plan.wanted().algorithm {
                Algorithm::Handed(algorithm) if algorithm.finds_all() => {
                    handed.of(algorithm).search_rest(rest, top, scratch)
                }
                _ => and::search(rest, top, scratch),
            })
        })?;
        self.handed = handed;
        Ok(&self.hits)
    }

    /// Calls `work` with the lists and documents of each of the first runs, and takes its hits.
    pub(crate) fn by_runs(
        &mut self,
        plan: &Plan,
        runs: usize,
        mut work: impl FnMut(&RunSearch<'_>, &mut TopK, &mut Scratch) -> Result<(), ListError>,
    ) -> Result<&[Hit], IndexError> {
        self.with_lists(plan, &ALL, |searcher, lists| {
            plan.snapshot().begin(&mut searcher.top, plan.wanted().k);
            let runs = &plan.snapshot().generation().runs()[..runs];
            for ((number, run), lists) in
                runs.iter().enumerate().zip(lists.chunks(plan.terms().len().max(1)))
            {
                let docids = ALL.place(run, number);
                let mut terms = recycle(std::mem::take(&mut searcher.run_terms));
                let weighted = plan.terms().iter().zip(lists);
                terms.extend(weighted.map(|(term, &list)| RunTerm { weight: term.weight, list }));
                let top = &mut searcher.top;
                let scratch = &mut searcher.scratch;
                let norms = norms_of(plan, &docids);
                let search = scratch.run(&terms, docids, norms);
                let worked = work(&search, top, scratch);
                searcher.run_terms = recycle(terms);
                worked.map_err(|error| blame(run, plan.split_terms(), error))?;
            }
            searcher.top.take(&mut searcher.hits);
            Ok(())
        })?;
        Ok(&self.hits)
    }
}
