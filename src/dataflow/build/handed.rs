//! Where the lane of an indexer that was handed in joins the dataflow of a build.

use super::feed::Indexed;
use super::parse::{Parsed, parse_input};
use crate::dataflow::build::context::Build;
use crate::dataflow::query::local::Local;
use crate::dictionary::parsed::Regroup;
use crate::index::documents::pieces::PieceDocuments;
use std::sync::Arc;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// What an indexer makes of the input, and the documents of the pieces.
pub(crate) type Joined<'scope> = (Indexed<'scope>, StreamVec<'scope, u64, Local<PieceDocuments>>);

/// The indexers of one build, on any worker.
pub(crate) trait HandedLane: Send + Sync {
    /// Lets the input be parsed to groups of its own, and [feeds](super::feed) its indexers.
    fn join<'scope>(self: Arc<Self>, at: Joining<'_, 'scope>) -> Joined<'scope>;
}

/// A worker's place in the dataflow.
pub(crate) struct Joining<'a, 'scope> {
    pub(super) scope: Scope<'scope, u64>,
    pub(super) build: &'a Build,
    pub(super) absorbed: &'a ProbeHandle<u64>,
}

impl<'scope> Joining<'_, 'scope> {
    pub(crate) fn build(&self) -> &Build {
        self.build
    }

    /// Reads and parses the whole input; groups are as `regroup` makes them.
    pub(crate) fn parse<R: Regroup + 'static>(self, regroup: R) -> Parsed<'scope, R::Group> {
        parse_input(self.scope, self.build, self.absorbed, regroup)
    }
}
