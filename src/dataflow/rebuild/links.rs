//! Where do the pages of the input lead to, without indexing them?
//!
//! ```text
//! read -> decompress -> parse (of links) -> (exchange) -> take
//! ```
//!
//! - In: the inputs of a build. Out: the links of each page, in no order, to whoever asked.
//! - Memory: a build's for what is under way.
//! - Work per activation: as in a build; in `take` all that has come.

use crate::crew::lock;
use crate::dataflow::build::context::Build;
use crate::dataflow::build::documents::take_in_order;
use crate::dataflow::build::parse::parse_input;
use crate::dataflow::control::{Cause, Guard, JobError};
use crate::dataflow::query::local::Local;
use crate::dataflow::workers;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::index::documents::pieces::PieceDocuments;
use crate::order::PieceCounts;
use crate::rebuild::links::PageLinks;
use crate::text::html::{HtmlText, Page};
use std::sync::{Arc, Mutex};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{ProbeHandle, StreamVec};
use timely::worker::Worker;

/// Takes the links of a page.
pub(crate) type Take = Box<dyn FnMut(&PageLinks) -> Result<(), Cause> + Send>;

/// Reads the inputs of `build`, on its workers, and gives the links of their pages to `take`, on
/// one of them.
///
/// # Errors
/// When an input cannot be read or is cut short, `take` fails, or the job is told to end.
pub(crate) fn links(build: &Arc<Build>, take: Take) -> Result<(), JobError> {
    let (shared, take) = (build.clone(), Mutex::new(Some(take)));
    workers::run(build.workers, &build.control, move |worker| {
        let take = (worker.index() == 0).then(|| lock(&take).take()).flatten();
        assemble(worker, &shared, take);
    })
}

fn assemble(worker: &mut Worker, build: &Arc<Build>, take: Option<Take>) {
    worker.dataflow_named::<u64, _, _>("links", |scope| {
        let absorbed = ProbeHandle::new();
        let (groups, batches) = parse_input(scope, build, &absorbed, Links::default());
        take_links(groups, build, take).probe_with(&absorbed);
        let nobody = (scope.index() == 0).then_some(Ok(()));
        let forget = |(): &mut (), build: &Build, batch: PieceDocuments| {
            build.wiring.flow.absorbed(batch.bytes());
            Ok(None::<()>)
        };
        take_in_order("Pages", (batches, build), nobody, forget, |(), _| Ok(()))
            .probe_with(&absorbed);
    });
}

fn take_links<'scope>(
    stream: StreamVec<'scope, u64, Local<LinkGroup>>,
    build: &Arc<Build>,
    mut take: Option<Take>,
) -> StreamVec<'scope, u64, ()> {
    let (build, worker) = (build.clone(), stream.scope().index());
    let to_first = Exchange::new(|_: &Local<LinkGroup>| 0);
    stream.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_first, "Links", move |_, _| {
        let guard = Guard::new(&build.control, "Links", worker);
        move |input, _output| {
            input.for_each(|_, groups| {
                for Local(group) in groups.drain(..) {
                    build.wiring.flow.absorbed(group.memory_bytes());
                    guard.work(|| {
                        let take = take.as_mut().ok_or("links go to worker 0")?;
                        group.pages.iter().try_for_each(take)
                    });
                }
            });
        }
    })
}

/// Looks for the links of pages, and makes nothing of documents.
#[derive(Default)]
struct Links {
    html: HtmlText,
    pages: Vec<PageLinks>,
    documents: u32,
}

struct LinkGroup {
    pages: Vec<PageLinks>,
    counts: Arc<PieceCounts>,
    lengths: Arc<[u8]>,
}

impl PieceGroup for LinkGroup {
    fn memory_bytes(&self) -> usize {
        self.pages.iter().map(PageLinks::memory_bytes).sum()
    }

    fn owner(&self) -> u32 {
        0
    }

    fn counts(&self) -> &Arc<PieceCounts> {
        &self.counts
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

impl Regroup for Links {
    type Group = LinkGroup;

    fn page(&mut self, input: u32, page: &Page<'_>) {
        self.pages.extend(PageLinks::of(input, page, &mut self.html));
        self.html.shrink();
    }

    fn document(&mut self, _: &[u8]) -> u32 {
        self.documents += 1;
        0
    }

    fn documents(&self) -> u32 {
        self.documents
    }

    fn finish(&mut self) -> Vec<LinkGroup> {
        self.documents = 0;
        let (counts, lengths) = (Arc::default(), Arc::default());
        vec![LinkGroup { pages: std::mem::take(&mut self.pages), counts, lengths }]
    }
}
