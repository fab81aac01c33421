//! The documents that a searcher looks at: all, or a docid range where several searchers answer
//! every query together (`tatikonda11`, DOCP-UI).

use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::index::list::ListView;
use crate::index::run::Run;
use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub(crate) enum DocumentShare {
    #[default]
    Whole,
    Range(Range<u32>),
}

/// The lists of a searcher's documents. Run `number` of the generation is `run`.
pub(crate) trait Source {
    /// The postings of these documents in a list; `None` if there are none.
    fn list<'a>(
        &'a self,
        run: &'a Run,
        number: usize,
        term: TermEntry,
    ) -> Result<Option<ListView<'a>>, IndexError>;

    /// The docid from which the lists of a run count, and the number of their documents.
    fn place(&self, run: &Run, number: usize) -> (u32, u32);

    fn docids(&self) -> Range<u32>;
}

impl DocumentShare {
    /// The range of share `number` of `shares`, which are of equal size but for one document.
    pub(crate) fn range(documents: u32, number: usize, shares: usize) -> Range<u32> {
        let cut =
            |number: usize| (u128::from(documents) * number as u128 / shares.max(1) as u128) as u32;
        cut(number)..cut(number + 1)
    }
}

impl Source for DocumentShare {
    #[inline]
    fn list<'a>(
        &'a self,
        run: &'a Run,
        _: usize,
        term: TermEntry,
    ) -> Result<Option<ListView<'a>>, IndexError> {
        match self {
            DocumentShare::Whole => run.list(term).map(Some),
            DocumentShare::Range(docids) => {
                let docids = local(docids, run);
                if docids.is_empty() {
                    return Ok(None);
                }
                Ok(run.list(term)?.within(docids))
            }
        }
    }

    #[inline]
    fn place(&self, run: &Run, _: usize) -> (u32, u32) {
        (run.first_docid(), run.documents())
    }

    #[inline]
    fn docids(&self) -> Range<u32> {
        match self {
            DocumentShare::Whole => 0..u32::MAX,
            DocumentShare::Range(docids) => docids.clone(),
        }
    }
}

/// The documents of a run that lie in a range of docids, relative to the run's first.
pub(crate) fn local(docids: &Range<u32>, run: &Run) -> Range<u32> {
    let within = |docid: u32| docid.saturating_sub(run.first_docid()).min(run.documents());
    within(docids.start)..within(docids.end)
}
