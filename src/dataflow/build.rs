//! What do the operators of the build job share, and how are they joined?

use super::control::Control;
use crate::dictionary::lengths::RunLengths;
use crate::dictionary::owners::Owners;
use crate::dictionary::tally::Tally;
use crate::index::list::Form;
use crate::input::Compression;
use crate::input::splits::Plan;
use crate::order::BLOCK_BYTES;
use crate::order::Budget;
use crate::text::analysis::Analysis;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::decompress::Decompress;
use super::documents::{DocumentsDone, write_documents};
use super::encode::{CHUNK_BYTES, Encode};
use super::flow::Flow;
use super::flush::{Flush, RunDone};
use super::index::Index;
use super::parse::Parse;
use super::read::{Claims, read};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::{Concat, Probe};
use timely::worker::Worker;

/// Blocks that wait for a decompressor, for each worker that is to be fed.
const BLOCKS_BY_WORKER: usize = 8;

/// Everything that the operators of one build job share.
pub struct Build {
    /// Inputs and splits.
    pub plan: Plan,
    /// How text becomes terms.
    pub analysis: Analysis,
    /// How lists are coded.
    pub form: Form,
    /// The memory.
    pub budget: Budget,
    /// Documents longer than this are skipped, in bytes.
    pub max_document: u64,
    /// Duplicate names and everything that would be skipped are errors.
    pub strict: bool,
    /// Worker threads.
    pub workers: usize,
    /// Who owns which trie collection.
    pub owners: Arc<Owners>,
    /// The generation's folder.
    pub directory: PathBuf,
    /// Whether the job goes on.
    pub control: Arc<Control>,
    /// Which split is next.
    pub claims: Claims,
    /// What is under way.
    pub flow: Flow,
    /// Lengths of the documents of runs that are being encoded.
    pub lengths: RunLengths,
    /// Encoded chunks of each owner that are written.
    pub written_chunks: Vec<AtomicU64>,
    /// What a progress display shows.
    pub progress: Progress,
    /// What came out.
    pub done: Mutex<Done>,
}

/// Counters that grow while the job runs.
#[derive(Default)]
pub struct Progress {
    /// Bytes of the input files that were read.
    pub read_bytes: AtomicU64,
    /// Bytes of uncompressed input that were parsed.
    pub parsed_bytes: AtomicU64,
    /// Documents that were parsed.
    pub documents: AtomicU64,
    /// Runs that are written.
    pub runs: AtomicU64,
}

/// What the dataflow leaves behind.
#[derive(Default)]
pub struct Done {
    /// Runs in order.
    pub runs: Vec<RunDone>,
    /// The documents' table.
    pub documents: Option<DocumentsDone>,
    /// The inputs that were read.
    pub inputs: Vec<InputRead>,
}

/// An input that was read to its end.
#[derive(Clone, Copy, Debug)]
pub struct InputRead {
    /// Its number.
    pub input: u32,
    /// Its bytes, as they lie in the file.
    pub bytes: u64,
    /// Their hash.
    pub hash: u64,
    /// How they are compressed.
    pub compression: Compression,
}

impl Progress {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl Build {
    /// Blocks that a reader may read ahead of its decompressor. The `first` split that is not done
    /// feeds all parsers between two turns of its reader; the readers of the others share as much.
    pub(super) fn blocks_ahead(&self, first: bool) -> usize {
        let blocks = self.budget.worker as usize / 48 * self.workers / BLOCK_BYTES;
        let readers = self.budget.open_files.min(self.plan.splits.len()).max(1);
        let share = if first { blocks } else { blocks / readers };
        share.clamp(2, BLOCKS_BY_WORKER * self.workers)
    }

    /// Encoded chunks of one owner that the writer has not written, at most.
    pub(super) fn unwritten_chunks(&self) -> u64 {
        (self.budget.worker / 8 / CHUNK_BYTES as u64).max(3)
    }
}

/// Joins the operators on one worker:
///
/// ```text
/// read -> decompress -> parse -> (exchange by owner) -> index -> encode -> (exchange) -> flush
///                         `----> (exchange) -> documents
/// ```
pub fn assemble(build: &Arc<Build>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("build", |scope| {
        let absorbed = ProbeHandle::new();
        let (blocks, feed) = read(scope, build);
        let (groups, batches) =
            blocks.decompress(build, feed, absorbed.clone()).parse::<Tally>(build);
        let (runs, indexed) = groups.index(build);
        let written = write_documents(batches, build);
        indexed.concat(written).probe_with(&absorbed);
        runs.encode(build).flush(build);
    });
}
