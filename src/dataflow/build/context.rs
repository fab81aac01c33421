//! What all operators of a build know, and what joins them beside their streams. It needs no
//! operator, and none needs the file that joins them ([`build`](crate::dataflow::build)).

use super::flow::Flow;
use crate::buffers::TextBuffers;
use crate::dataflow::control::{Cause, Control};
use crate::dataflow::rebuild::seen::{SeenDocuments, SeenWriter};
use crate::dictionary::closed::{SHARE_BYTES, Wake};
use crate::dictionary::indexer::{IndexerWork, Indexing};
use crate::dictionary::lengths::RunLengths;
use crate::dictionary::owners::Owners;
use crate::dictionary::shared::SharedRuns;
#[cfg(feature = "gpu")]
use crate::gpu::invert::inverter::InverterWork;
#[cfg(feature = "gpu")]
use crate::gpu::invert::service::InvertService;
use crate::index::documents::pieces::table::DocumentsDone;
use crate::index::list::Form;
use crate::index::run::{CHUNK_BYTES, WrittenRun};
use crate::input::cutter::Cutter;
use crate::input::error::InputError;
use crate::input::splits::InputPlan;
use crate::input::streams::shared_file::SharedFile;
use crate::input::turns::Turns;
use crate::input::wanted::WantedInput;
use crate::input::{Compression, Format};
use crate::order::{Budget, LONG_BYTES};
use crate::schedule::claims::{Claims, SharedSplit};
use crate::text::analysis::Analysis;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// After this an operator that nothing wakes looks again.
pub(crate) const PAUSE: Duration = Duration::from_micros(500);

/// Starts the thread of the device that inverts; it wakes the given operator.
#[cfg(feature = "gpu")]
pub(crate) type StartInverter = Box<dyn Fn(Wake) -> Result<InvertService, Cause> + Send + Sync>;

/// A build that runs. All workers share its three parts; an operator takes those that it uses.
#[derive(Clone)]
pub(crate) struct Build {
    pub(crate) plan: Arc<BuildPlan>,
    pub(crate) wiring: Arc<BuildWiring>,
    pub(crate) progress: Arc<Progress>,
}

/// What a build is to do.
pub(crate) struct BuildPlan {
    pub(crate) input: InputPlan,
    pub(crate) analysis: Analysis,
    pub(crate) form: Form,
    pub(crate) budget: Budget,
    /// In bytes; longer documents are skipped.
    pub(crate) max_document: u64,
    /// Duplicate names and everything that would be skipped are errors.
    pub(crate) strict: bool,
    /// Input without any content is no error.
    pub(crate) allow_empty: bool,
    /// What precedes the damage or early end of a compressed stream is taken.
    pub(crate) allow_cut: bool,
    pub(crate) workers: usize,
    /// By trie collection.
    pub(crate) owners: Arc<Owners>,
    pub(crate) directory: PathBuf,
    /// The number of the first run that is written.
    pub(crate) first_run: u32,
    /// The documents that are indexed; none: all.
    pub(crate) wanted: Option<WantedInput>,
}

/// What joins the operators beside their streams.
pub(crate) struct BuildWiring {
    pub(crate) control: Arc<Control>,
    /// The worker that writes runs (`schedule::roles`).
    pub(crate) writing: usize,
    /// Starts the device that takes texts, if one does.
    #[cfg(feature = "gpu")]
    pub(crate) start_inverter: StartInverter,
    /// Of text that the device takes together, if memory allows it.
    pub(crate) batch_bytes: usize,
    pub(crate) indexing: Indexing,
    /// All workers read a file together where they can; not where the number of readers is given.
    pub(crate) all_read: bool,
    pub(crate) claims: Claims<SharedFile>,
    pub(crate) flow: Flow,
    pub(crate) buffers: Arc<TextBuffers>,
    /// Those of texts for a device.
    pub(crate) texts: Arc<TextBuffers>,
    /// Room for long documents while they are parsed.
    pub(crate) turns: Arc<Turns>,
    /// Of runs that are being encoded.
    pub(crate) lengths: RunLengths,
    pub(crate) shared: SharedRuns,
    /// By owner.
    pub(crate) encoded: Vec<Encoded>,
}

#[derive(Default)]
pub(crate) struct Encoded {
    pub terms: AtomicU64,
    pub postings: AtomicU64,
    /// Of the suffixes of those terms.
    pub characters: AtomicU64,
}

/// How far a build is, and what came of it.
#[derive(Default)]
pub(crate) struct Progress {
    /// Of the input files.
    pub read_bytes: AtomicU64,
    /// Of uncompressed input.
    pub parsed_bytes: AtomicU64,
    pub documents: AtomicU64,
    pub runs: AtomicU64,
    pub done: Mutex<BuildDone>,
    /// Notes all documents too, until the dataflow takes it.
    pub seen: Mutex<Option<SeenWriter>>,
}

#[derive(Default)]
pub(crate) struct BuildDone {
    pub runs: Vec<WrittenRun>,
    pub documents: Option<DocumentsDone>,
    pub inputs: Vec<InputRead>,
    pub indexers: Vec<IndexerWork>,
    #[cfg(feature = "gpu")]
    pub inverted: Option<InverterWork>,
    /// If they were to be noted.
    pub seen: Option<SeenDocuments>,
}

#[derive(Clone, Debug)]
pub(crate) struct InputRead {
    pub input: u32,
    /// As they lie in the file.
    pub bytes: u64,
    pub hash: u64,
    pub compression: Compression,
    /// The hashes of the chunks that were read, if other processes read the rest.
    pub cut: Option<Vec<u64>>,
}

impl Progress {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl BuildPlan {
    /// Cuts a stream into pieces.
    pub(crate) fn cutter(&self, format: Format, buffers: Arc<TextBuffers>) -> Cutter {
        Cutter::of_pieces(format, self.max_document, self.budget.piece_bytes())
            .holding(self.budget.longest_document(self.workers))
            .with_buffers(buffers)
    }

    /// Opens a file that all workers read together, if it can be.
    pub(crate) fn open_shared(
        &self,
        split: usize,
    ) -> Result<Option<SharedSplit<SharedFile>>, InputError> {
        let splits = &self.input.splits;
        let opened = self.input.open_shared(&splits[split], self.budget.piece_bytes())?;
        Ok(opened.map(|file| SharedSplit { stretches: file.stretches(), file: Arc::new(file) }))
    }

    /// Bytes of a piece that grows before all that precedes it is absorbed: a longer one holds a
    /// long document, and waits.
    pub(crate) fn longest_ahead(&self) -> usize {
        let usual = LONG_BYTES.max(2 * self.budget.piece_bytes());
        usual.max(self.budget.under_way() as usize / 4)
    }

    /// The most encoded chunks of one share that the writer has not written.
    pub(crate) fn unwritten_chunks(&self) -> usize {
        let waiting = self.budget.waiting as usize / self.owners.len();
        ((self.budget.worker as usize / 8 + waiting) / CHUNK_BYTES).max(3)
    }

    /// The most shares of one owner that are not wholly written: two for each worker, as far as
    /// their terms and their lists fit where the chunks of a whole part may wait.
    pub(crate) fn unwritten_shares(&self) -> usize {
        let fit = self.unwritten_chunks() * CHUNK_BYTES / (2 * SHARE_BYTES as usize);
        // The writer may keep the last two until more comes.
        fit.min(2 * self.workers).max(3)
    }
}
