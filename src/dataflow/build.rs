//! What do the operators of the build job share, and how are they joined?

use super::control::{Cause, Control};
use crate::dictionary::indexer::TokenIndexer;
use crate::dictionary::lengths::RunLengths;
use crate::dictionary::owners::Owners;
use crate::dictionary::regroup::TokenTally;
use crate::dictionary::tally::Tally;
use crate::index::list::Form;
use crate::index::run::{CHUNK_BYTES, WrittenRun};
use crate::input::Compression;
use crate::input::splits::Plan;
use crate::input::turns::Turns;
use crate::order::BLOCK_BYTES;
use crate::order::Budget;
use crate::rebuild::wanted::Wanted;
use crate::text::analysis::Analysis;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::decompress::Decompress;
use super::documents::{DocumentsDone, write_documents};
use super::encode::Encode;
use super::flow::Flow;
use super::flush::Flush;
use super::index::Index;
use super::index_tokens::{IndexTokens, IndexerWork};
use super::parse::Parse;
use super::read::{Claims, read};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::{Concat, Probe};
use timely::worker::Worker;

/// Blocks that wait for a decompressor, for each worker that is to be fed.
const BLOCKS_BY_WORKER: usize = 8;

/// What indexers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Postings: the counts of each piece.
    Postings,
    /// Tokens, one by one, as in the paper `wei11`.
    Tokens,
}

/// Makes the indexer with a number.
pub type MakeIndexer = Box<dyn Fn(u32) -> Result<Box<dyn TokenIndexer>, Cause> + Send + Sync>;

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
    /// Input without any content is taken, and not an error.
    pub allow_empty: bool,
    /// What stands before the damage or the early end of a compressed stream is taken.
    pub allow_cut: bool,
    /// Worker threads.
    pub workers: usize,
    /// The worker that writes runs (`schedule::roles`).
    pub writing: usize,
    /// Makes an indexer that takes tokens, by its number.
    pub make_indexer: MakeIndexer,
    /// How indexers get what is parsed.
    pub indexing: Indexing,
    /// Bytes of text that an indexer of tokens takes together, if memory allows it.
    pub parse_block: u64,
    /// Who owns which trie collection.
    pub owners: Arc<Owners>,
    /// The generation's folder.
    pub directory: PathBuf,
    /// The documents that are indexed; all of them if nothing is said.
    pub wanted: Option<Wanted>,
    /// Whether the job goes on.
    pub control: Arc<Control>,
    /// Which split is next.
    pub claims: Claims,
    /// What is under way.
    pub flow: Flow,
    /// Room for long documents while they are parsed.
    pub turns: Arc<Turns>,
    /// Lengths of the documents of runs that are being encoded.
    pub lengths: RunLengths,
    /// What of each owner is encoded.
    pub encoded: Vec<Encoded>,
    /// What a progress display shows.
    pub progress: Progress,
    /// What came out.
    pub done: Mutex<Done>,
}

/// What of one owner is encoded.
#[derive(Default)]
pub struct Encoded {
    /// Chunks that are written.
    pub written_chunks: AtomicU64,
    /// Terms of all runs.
    pub terms: AtomicU64,
    /// Their postings.
    pub postings: AtomicU64,
    /// Bytes of the suffixes of those terms.
    pub characters: AtomicU64,
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
    pub runs: Vec<WrittenRun>,
    /// The documents' table.
    pub documents: Option<DocumentsDone>,
    /// The inputs that were read.
    pub inputs: Vec<InputRead>,
    /// What the indexers of tokens have done.
    pub indexers: Vec<IndexerWork>,
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
/// read -> decompress -> parse -> (exchange by owner) -> index or index_tokens -> encode -> (exchange) -> flush
///                         `----> (exchange) -> documents
/// ```
pub fn assemble(build: &Arc<Build>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("build", |scope| {
        let absorbed = ProbeHandle::new();
        let (blocks, feed) = read(scope, build);
        let pieces = blocks.decompress(build, feed, absorbed.clone());
        let (runs, indexed, batches) = match build.indexing {
            Indexing::Postings => {
                let (groups, batches) = pieces.parse::<Tally>(build);
                let (runs, indexed) = groups.index(build);
                (runs, indexed, batches)
            }
            Indexing::Tokens => {
                let (groups, batches) = pieces.parse::<TokenTally>(build);
                let (runs, indexed) = groups.index_tokens(build);
                (runs, indexed, batches)
            }
        };
        let written = write_documents(batches, build);
        indexed.concat(written).probe_with(&absorbed);
        runs.encode(build).flush(build);
    });
}
