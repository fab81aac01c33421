//! Searches by rounds that tell how far they went, or use only the beginnings of lists: for the
//! choice of cached parts of lists ([`demand`](super::demand)).

use super::rounds::WangSearcher;
use crate::index::error::IndexError;
use crate::index::list::ListView;
use crate::query::cursor::RunTerm;
use crate::query::plan::Plan;
use crate::query::searcher::Searcher;
use crate::query::top_k::Hit;

/// Searches one query after the other.
#[derive(Default)]
pub struct Visitor {
    searcher: Searcher,
    wang: WangSearcher,
    /// Of a run, by term.
    visited: Vec<Option<u32>>,
    /// Of the last query, run by run and term by term: how many blocks of the list were visited,
    /// and how many there are.
    pub(super) blocks: Vec<(usize, usize)>,
}

impl Visitor {
    /// The best documents with all terms; sets [`blocks`](Self::blocks).
    pub(super) fn visit(&mut self, plan: &Plan) -> Result<&[Hit], IndexError> {
        let Self { searcher, wang, visited, blocks } = self;
        blocks.clear();
        let runs = plan.snapshot().generation().runs().len();
        searcher.by_runs(plan, runs, |run, top, scratch| {
            wang.visits(run, top, scratch, visited)?;
            let of_list = |(term, docid): (&RunTerm<'_>, &Option<u32>)| {
                let of = |list: ListView<'_>| {
                    let visited = docid.map_or(0, |docid| list.block_of(0, docid) + 1);
                    (visited.min(list.blocks()), list.blocks())
                };
                term.list.map_or((0, 0), of)
            };
            blocks.extend(run.terms.iter().zip(&*visited).map(of_list));
            Ok(())
        })
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
        let Self { searcher, wang, .. } = self;
        let mut complete = true;
        let hits = searcher.by_runs(plan, 1, |run, top, scratch| {
            let rest = wang.search_prefixes(run, prefixes, top, scratch)?;
            complete = rest.is_none();
            rest.map_or(Ok(()), |from| wang.go_on(run, from, top, scratch))
        })?;
        Ok((hits, complete))
    }
}
