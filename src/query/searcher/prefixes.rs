//! Searches by rounds that tell how far they went, or use only the beginnings of lists: for the
//! choice of cached parts of lists (`query::caching`).

use super::{Searcher, blame, norms_of, recycle};
use crate::index::error::IndexError;
use crate::index::list::{ListError, ListView};
use crate::query::algorithms::wang;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::engines::share::{ALL, SearchedLists};
use crate::query::plan::Plan;
use crate::query::scratch::Scratch;
use crate::query::top_k::{Hit, TopK};

impl Searcher {
    /// The best documents with all terms; sets how many blocks of each term's list were visited and
    /// how many there are, run by run and term by term.
    pub(crate) fn visit(
        &mut self,
        plan: &Plan,
        blocks: &mut Vec<(usize, usize)>,
    ) -> Result<&[Hit], IndexError> {
        blocks.clear();
        let mut visited = Vec::new();
        let runs = plan.snapshot().generation().runs().len();
        self.by_rounds(plan, runs, |run, top, scratch| {
            wang::visits(run, top, scratch, &mut visited)?;
            let of_list = |(term, docid): (&RunTerm<'_>, &Option<u32>)| {
                let of = |list: ListView<'_>| {
                    let visited = docid.map_or(0, |docid| list.block_of(0, docid) + 1);
                    (visited.min(list.blocks()), list.blocks())
                };
                term.list.map_or((0, 0), of)
            };
            blocks.extend(run.terms.iter().zip(&visited).map(of_list));
            Ok(())
        })?;
        Ok(&self.hits)
    }

    /// The best documents with all terms, from the first `prefixes` blocks of each term's list if
    /// they suffice, and whether they did. The index must have one run.
    ///
    /// # Panics
    /// If the index has no run.
    pub fn answer_prefixes(
        &mut self,
        plan: &Plan,
        prefixes: &[usize],
    ) -> Result<(&[Hit], bool), IndexError> {
        let mut complete = true;
        self.by_rounds(plan, 1, |run, top, scratch| {
            let rest = wang::search_prefixes(run, prefixes, top, scratch)?;
            if let Some(from) = rest {
                wang::go_on(run, from, top, scratch)?;
            }
            complete = rest.is_none();
            Ok(())
        })?;
        Ok((&self.hits, complete))
    }

    /// Completes a query, whose best documents before `from` are `hits`, from that docid on. The
    /// index must have one run.
    ///
    /// # Panics
    /// If the index has no run.
    pub fn go_on(&mut self, plan: &Plan, hits: &[Hit], from: u32) -> Result<&[Hit], IndexError> {
        self.by_rounds(plan, 1, |run, top, scratch| {
            hits.iter().for_each(|hit| top.offer(hit.docid, hit.score));
            wang::go_on(run, from, top, scratch)
        })?;
        Ok(&self.hits)
    }

    /// Calls `work` with the lists and documents of each of the first runs, and takes its hits.
    fn by_rounds(
        &mut self,
        plan: &Plan,
        runs: usize,
        mut work: impl FnMut(&RunSearch<'_>, &mut TopK, &mut Scratch) -> Result<(), ListError>,
    ) -> Result<(), IndexError> {
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
        })
    }
}
