//! The documents that a searcher looks at: all, or a docid range where several searchers answer
//! every query together (`tatikonda11`, DOCP-UI).

use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::index::list::ListView;
use crate::index::run::Run;
use std::ops::Range;

pub(crate) const ALL: Range<u32> = 0..u32::MAX;

/// The lists of a searcher's documents. Run `number` of the generation is `run`.
pub(crate) trait SearchedLists {
    /// The postings of these documents in a list; `None` if there are none.
    fn list<'a>(
        &'a self,
        run: &'a Run,
        number: usize,
        term: TermEntry,
    ) -> Result<Option<ListView<'a>>, IndexError>;

    /// The docids that the lists of a run are of; they count from the first.
    fn place(&self, run: &Run, number: usize) -> Range<u32>;

    fn docids(&self) -> Range<u32>;
}

impl SearchedLists for Range<u32> {
    #[inline]
    fn list<'a>(
        &'a self,
        run: &'a Run,
        _: usize,
        term: TermEntry,
    ) -> Result<Option<ListView<'a>>, IndexError> {
        if *self == ALL {
            return run.list(term).map(Some);
        }
        let docids = local(self, run);
        if docids.is_empty() {
            return Ok(None);
        }
        Ok(run.list(term)?.within(docids))
    }

    #[inline]
    fn place(&self, run: &Run, _: usize) -> Range<u32> {
        run.first_docid()..run.first_docid() + run.documents()
    }

    #[inline]
    fn docids(&self) -> Range<u32> {
        self.clone()
    }
}

/// Share `number` of `shares` of some docids, which are of equal size except for one document.
pub(crate) fn share_of(docids: &Range<u32>, number: usize, shares: usize) -> Range<u32> {
    let documents = docids.len() as u128;
    let cut = |number| docids.start + (documents * number as u128 / shares.max(1) as u128) as u32;
    cut(number)..cut(number + 1)
}

/// Docids as they count from the docid `first`; all are all.
pub(crate) fn counted_from(docids: &Range<u32>, first: u32) -> Range<u32> {
    if *docids == ALL {
        return ALL;
    }
    docids.start.saturating_sub(first)..docids.end.saturating_sub(first)
}

/// The documents of a run that lie in a range of docids, counted from the run's first.
pub(crate) fn local(docids: &Range<u32>, run: &Run) -> Range<u32> {
    let Range { start, end } = counted_from(docids, run.first_docid());
    start.min(run.documents())..end.min(run.documents())
}
