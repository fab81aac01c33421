//! Algorithms that a program hands in beside those of this folder: by value, wherever a query says
//! or is told how it is answered.

use crate::index::list::ListError;
use crate::query::cursor::RunSearch;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;
use std::fmt;

/// An algorithm that is handed in. It finds what all others find.
pub trait SearchAlgorithm: Send + Sync {
    /// As users write it, unlike the name of any other.
    fn name(&self) -> &'static str;

    /// Whether it finds the documents with all terms, or those with any. Queries of the other kind
    /// are answered as if no algorithm was named.
    fn finds_all(&self) -> bool;

    /// Whether it ends early by the order of documents alone: for AND, the score `wang`, and an
    /// index in global order.
    fn is_for_global_order(&self) -> bool {
        false
    }

    /// Nanoseconds in which a document of the shortest list goes through the others, if that is one
    /// document at a time: longer than blocks take together.
    fn candidate_ns(&self) -> Option<f64> {
        None
    }

    /// Begins to search for one searcher, with no memory yet.
    fn begin(&self) -> Box<dyn RunSearcher>;
}

/// An algorithm with its memory, which it keeps from query to query. [`Scratch`] has what all use.
pub trait RunSearcher: Send {
    /// Offers to `top` the documents of a run that may be among the best; some may have been
    /// offered before a damaged list is an error.
    fn search(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError>;

    /// Completes a search that has offered to `top` the best before document `from` of the run.
    /// `run` has the lists from the block of that document on, and `top` takes no document before.
    fn search_rest(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        self.search(run, top, scratch)
    }
}

pub type HandedAlgorithms = &'static [&'static dyn SearchAlgorithm];

impl PartialEq for dyn SearchAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn SearchAlgorithm {}

impl fmt::Debug for dyn SearchAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The algorithm that was used last, with its memory.
#[derive(Default)]
pub(crate) struct LastSearcher(Option<(&'static str, Box<dyn RunSearcher>)>);

impl LastSearcher {
    pub(crate) fn of(&mut self, algorithm: &dyn SearchAlgorithm) -> &mut dyn RunSearcher {
        let name = algorithm.name();
        self.0.take_if(|(last, _)| *last != name);
        &mut *self.0.get_or_insert_with(|| (name, algorithm.begin())).1
    }
}
