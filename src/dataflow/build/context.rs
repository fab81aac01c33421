//! What do all operators of a build know, and what joins them beside their streams? It needs no
//! operator, and the file that joins them ([`build`](crate::dataflow::build)) is needed by none.

use super::flow::Flow;
use crate::dataflow::control::{Cause, Control};
use crate::dataflow::rebuild::scanned::{Scan, Scanned};
use crate::dictionary::closed::Wake;
use crate::dictionary::device::lines::AsLines;
use crate::dictionary::device::text_buffers::TextBuffers;
use crate::dictionary::indexer::{IndexerWork, Indexing, TokenIndexer};
use crate::dictionary::lengths::RunLengths;
use crate::dictionary::owners::Owners;
use crate::gpu::invert::inverter::InverterWork;
use crate::gpu::invert::service::InvertService;
use crate::index::documents::pieces::table::DocumentsDone;
use crate::index::list::Form;
use crate::index::run::{CHUNK_BYTES, WrittenRun};
use crate::input::Compression;
use crate::input::error::InputError;
use crate::input::splits::InputPlan;
use crate::input::streams::shared_file::SharedFile;
use crate::input::turns::{LONG_BYTES, Turns};
use crate::input::wanted::Wanted;
use crate::order::Budget;
use crate::schedule::claims::{Claims, Shared};
use crate::text::analysis::Analysis;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Makes the indexer with a number.
pub(crate) type MakeIndexer =
    Box<dyn Fn(u32) -> Result<Box<dyn TokenIndexer>, Cause> + Send + Sync>;

/// Starts the thread of the device that inverts; it wakes whoever is given.
pub(crate) type StartInverter = Box<dyn Fn(Wake) -> Result<InvertService, Cause> + Send + Sync>;

/// What all operators of a build know.
pub(crate) struct Build {
    pub(crate) plan: InputPlan,
    /// How text becomes terms.
    pub(crate) analysis: Analysis,
    /// How lists are coded.
    pub(crate) form: Form,
    pub(crate) budget: Budget,
    /// Documents longer than this are skipped, in bytes.
    pub(crate) max_document: u64,
    /// Duplicate names and everything that would be skipped are errors.
    pub(crate) strict: bool,
    /// Input without any content is taken, and not an error.
    pub(crate) allow_empty: bool,
    /// What stands before the damage or the early end of a compressed stream is taken.
    pub(crate) allow_cut: bool,
    pub(crate) workers: usize,
    /// Who owns which trie collection.
    pub(crate) owners: Arc<Owners>,
    /// The generation's folder.
    pub(crate) directory: PathBuf,
    /// The documents that are indexed; all of them if nothing is said.
    pub(crate) wanted: Option<Wanted>,
    /// What notes all documents beside that, until the dataflow has it.
    pub(crate) scan: Mutex<Option<Scan>>,
    /// Whether the job goes on.
    pub(crate) control: Arc<Control>,
    /// What joins them beside their streams.
    pub(crate) wiring: BuildWiring,
    pub(crate) progress: Progress,
    pub(crate) done: Mutex<Done>,
}

/// What joins the operators of a build beside their streams.
pub(crate) struct BuildWiring {
    /// The worker that writes runs (`schedule::roles`).
    pub(crate) writing: usize,
    /// Makes an indexer that takes tokens, by its number.
    pub(crate) make_indexer: MakeIndexer,
    /// Starts the device that takes texts, if one does.
    pub(crate) start_inverter: StartInverter,
    /// Bytes of text that it takes together, if memory allows it.
    pub(crate) batch_bytes: usize,
    /// How indexers get what is parsed.
    pub(crate) indexing: Indexing,
    /// Bytes of text that an indexer of tokens takes together, if memory allows it.
    pub(crate) parse_block: u64,
    /// All workers read a file together where they can; not where somebody said how many read.
    pub(crate) all_read: bool,
    pub(crate) claims: Claims<SharedFile>,
    pub(crate) flow: Flow,
    /// Buffers of pieces.
    pub(crate) buffers: Arc<TextBuffers>,
    /// Those of texts for a device.
    pub(crate) texts: Arc<TextBuffers>,
    /// Which pieces go to the device as lines, if some may: not where some documents are left out,
    /// or all of them noted.
    pub(crate) as_lines: Option<Arc<AsLines>>,
    /// Room for long documents while they are parsed.
    pub(crate) turns: Arc<Turns>,
    /// Lengths of the documents of runs that are being encoded.
    pub(crate) lengths: RunLengths,
    /// What of each owner is encoded.
    pub(crate) encoded: Vec<Encoded>,
}

/// What of one owner is encoded.
#[derive(Default)]
pub(crate) struct Encoded {
    pub written_chunks: Arc<AtomicU64>,
    pub terms: AtomicU64,
    pub postings: AtomicU64,
    /// Bytes of the suffixes of those terms.
    pub characters: AtomicU64,
}

/// Counters that grow while the job runs.
#[derive(Default)]
pub(crate) struct Progress {
    /// Bytes of the input files that were read.
    pub read_bytes: AtomicU64,
    /// Bytes of uncompressed input that were parsed.
    pub parsed_bytes: AtomicU64,
    pub documents: AtomicU64,
    pub runs: AtomicU64,
}

/// What the dataflow leaves behind.
#[derive(Default)]
pub(crate) struct Done {
    pub runs: Vec<WrittenRun>,
    pub documents: Option<DocumentsDone>,
    pub inputs: Vec<InputRead>,
    /// What the indexers of tokens have done.
    pub indexers: Vec<IndexerWork>,
    /// What the device has done that takes texts.
    pub inverted: Option<InverterWork>,
    /// All documents, if they were to be noted.
    pub scanned: Option<Scanned>,
}

/// An input that was read to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputRead {
    pub input: u32,
    /// Its bytes, as they lie in the file.
    pub bytes: u64,
    pub hash: u64,
    /// How they are compressed.
    pub compression: Compression,
}

impl Progress {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl Build {
    /// Opens a split, if all workers read it together.
    pub(crate) fn open_shared(
        &self,
        split: usize,
    ) -> Result<Option<Shared<SharedFile>>, InputError> {
        if !self.wiring.all_read {
            return Ok(None);
        }
        let opened = self.plan.open_shared(&self.plan.splits[split], self.budget.piece_bytes())?;
        Ok(opened.map(|file| Shared { stretches: file.stretches(), file: Arc::new(file) }))
    }

    /// Bytes of a piece that grows before all that comes before it is absorbed: a longer one holds
    /// a long document, and waits.
    pub(crate) fn longest_ahead(&self) -> usize {
        let usual = LONG_BYTES.max(2 * self.budget.piece_bytes());
        usual.max(self.budget.under_way() as usize / 4)
    }

    /// Encoded chunks of one owner that the writer has not written, at most.
    pub(crate) fn unwritten_chunks(&self) -> u64 {
        (self.budget.worker / 8 / CHUNK_BYTES as u64).max(3)
    }
}
