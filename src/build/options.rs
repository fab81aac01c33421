//! The options of a build.

#![warn(missing_docs)]

use super::guards::Guards;
use super::handed::HandedIndexers;
use super::indexer::Indexer;
use super::note::{Note, Notes};
use crate::cluster::hosts::Hosts;
use crate::cluster::wire::Secret;
use crate::crew::cores;
use crate::dataflow::control::{Cause, Control};
#[cfg(feature = "gpu")]
use crate::gpu::invert::machine::MakeMachine;
use crate::index::columns::Column;
use crate::index::documents::duplicates::SameName;
use crate::index::generations::manifest::Manifest;
use crate::index::list::Form;
use crate::index::order::DocumentOrder;
use crate::input::Format;
use crate::input::formats::fields::Fields;
use crate::input::memory::{GivenDocuments, OwnedDocument};
use crate::input::sample::SAMPLE_BYTES;
use crate::input::splits::InputPlan;
use crate::input::streams::encoded::TextEncoding;
use crate::order::MAX_DOCUMENT_BYTES;
use crate::schedule::placement::Rates;
use crate::settings::Gpus;
use crate::text::analysis::Analysis;
use crate::text::fields::IndexFields;
use crate::text::tokenizer::Tokenizer;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives figures about ten times a second, from a thread of its own.
pub type OnProgress = Box<dyn FnMut(&BuildProgress) + Send>;

/// What a build has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildProgress {
    /// Bytes of the input files, as they lie there, as far as their sizes are known.
    pub total_bytes: u64,
    /// Bytes of them that were read.
    pub read_bytes: u64,
    /// Bytes of uncompressed input that were parsed.
    pub parsed_bytes: u64,
    /// Documents that were parsed.
    pub documents: u64,
    /// Runs that were written.
    pub runs: u64,
    /// Postings that were merged, and of how many, once runs are being merged.
    pub merged: Option<(u64, u64)>,
}

/// Says whether a generation that is written may be published, or why not.
pub(crate) type Accept = Box<dyn FnOnce(&Manifest) -> Result<(), Cause> + Send>;

/// What is indexed.
#[derive(Debug)]
pub enum Input {
    /// Files, folders, or `-` for standard input, in this order.
    Paths(Vec<PathBuf>),
    /// Documents that the program has.
    Documents(GivenDocuments),
    /// What was listed before.
    Plan(Box<InputPlan>),
}

/// The longest document that a device may be given: a batch has
/// [`MOST_BYTES`](crate::gpu::invert::text::MOST_BYTES), and a piece has a few documents more.
pub(super) const MOST_DEVICE_DOCUMENT: u64 = 512 << 20;

/// Sixteen workers take a quarter of the time with a device for 8.4 GB of text with rare words, and
/// a twentieth less for 1.9 GB of English, since finding and opening it takes 0.2 to 0.5 s
/// (`docs/inside/indexing.md`); one takes as long for a sixteenth of it.
const GPU_FROM: u64 = 128 << 20;

/// A GPU works well with so much, and with more it waits longer for the first, and the batches that
/// it has take the room of what is to come.
const TEXTS_AT_ONCE: usize = 256 << 20;

/// How workers share the steps of a build. The index does not depend on it.
pub struct Pipeline {
    /// Workers that parse, the last ones; all of them if none is given.
    pub parsers: Option<usize>,
    /// Indexers of tokens on the CPU; as many as workers if none is given.
    pub cpu_indexers: Option<usize>,
    /// Indexers of tokens on GPUs; if none is given, one for each worker, at most 16 on a GPU.
    pub gpu_indexers: Option<usize>,
    /// Bytes of text that an indexer of tokens takes together.
    pub parse_block: u64,
    /// Most files that are read at once, each by one worker; if none is given, workers read a file
    /// together where they can, and others as the parsers need them and memory allows.
    pub readers: Option<usize>,
    /// Bytes of each gigabyte of input by which trie collections are given to indexers; 0 deals
    /// them out in turn.
    pub sample: u64,
    /// Rates by which collections are placed; if none, those measured here, or else the default.
    pub rates: Option<Rates>,
    /// The indexers that are handed in, for messages that name them.
    pub handed: HandedIndexers,
    /// Makes the device that takes texts in place of a GPU of this machine.
    #[cfg(feature = "gpu")]
    pub make_machine: Option<MakeMachine>,
    /// Bytes of texts that a GPU counts together, at most, unless one piece has more.
    pub texts_at_once: usize,
    /// Bytes of input for each worker from which on a GPU is taken where no indexer is named.
    pub gpu_from: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            parsers: None,
            cpu_indexers: None,
            gpu_indexers: None,
            parse_block: 16 << 20,
            readers: None,
            sample: SAMPLE_BYTES,
            rates: None,
            handed: &[],
            #[cfg(feature = "gpu")]
            make_machine: None,
            texts_at_once: TEXTS_AT_ONCE,
            gpu_from: GPU_FROM,
        }
    }
}

/// The processes of a build, of which this is one.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Where all are.
    pub hosts: Hosts,
    /// How long to wait for the others to come.
    pub wait: Duration,
    /// What they know and nobody else, if anything.
    pub secret: Secret,
}

/// What is built, of what, and how. Everything but the index and the input has a default.
pub struct BuildOptions {
    /// Folder of the index; made if it is not there.
    pub index: PathBuf,
    /// What is indexed.
    pub input: Input,
    /// How documents are found in files; found out for each file if none is given.
    pub format: Option<Format>,
    /// Which fields of JSON and columns of CSV in files are names and text.
    pub fields: Fields,
    /// Fields that are indexed beside all text: fields of JSON, columns of CSV, parts of pages.
    pub index_fields: IndexFields,
    /// The encoding of texts that do not tell another.
    pub encoding: Option<TextEncoding>,
    /// What the weights of vectors are multiplied by; if none is given, 1 where the first of them
    /// are whole numbers, otherwise 100.
    pub factor: Option<f64>,
    /// How text becomes terms; English by default. Terms of vectors stay as they are.
    pub analysis: Analysis,
    /// How postings are coded.
    pub form: Form,
    /// The values of records that documents have; none by default.
    pub columns: Vec<Column>,
    /// Whether the index keeps texts as they are indexed; not by default.
    pub store: bool,
    /// The fields of records that the index keeps; none by default.
    pub store_fields: Vec<String>,
    /// Who finds terms and postings.
    pub indexer: Indexer,
    /// The most memory that the build allocates, in bytes: 1 GiB by default. For resident memory
    /// to stay below it too, a program calls
    /// [`memory::give_back_large_buffers`](super::memory::give_back_large_buffers) at its start.
    pub memory: u64,
    /// A longer document is skipped, in bytes; 64 MiB by default, below 4 GiB.
    pub max_document: u64,
    /// Whether runs are merged to one at the end. Queries are answered alike.
    pub merge: bool,
    /// How documents are numbered; as they lie in the input if none is given. Takes one run.
    pub order: Option<DocumentOrder>,
    /// A file with PageRanks ([`read_ranks`](crate::index::ranks::read_ranks)). Takes one run.
    pub ranks: Option<PathBuf>,
    /// Which documents of a name are indexed; all by default.
    pub duplicates: SameName,
    /// Refuses duplicate names and everything that would be skipped.
    pub strict: bool,
    /// What is refused although it could be built.
    pub guards: Guards,
    /// Worker threads: as many as cores by default.
    pub workers: usize,
    /// Devices that may be used.
    pub gpus: Gpus,
    /// How workers share the steps.
    pub pipeline: Pipeline,
    /// The processes that build a shard each; none for a build by this process alone.
    pub peers: Option<Peers>,
    /// What asked for the build, for the manifest.
    pub command: String,
    /// Ends the build when it is told to. A control serves one build.
    pub control: Arc<Control>,
    /// Has the last word before publishing, but not in a build by several processes.
    pub accept: Option<Accept>,
    /// Receives figures while the build runs.
    pub progress: Option<OnProgress>,
    /// Receives remarks.
    pub notes: Option<Notes>,
    /// Nobody has named the indexer, which is a GPU.
    pub(super) chose_gpu: bool,
}

impl BuildOptions {
    /// The defaults, for an index in the folder `index`.
    pub fn new(index: impl Into<PathBuf>, input: Input) -> Self {
        Self {
            index: index.into(),
            input,
            format: None,
            fields: Fields::default(),
            index_fields: IndexFields::default(),
            encoding: None,
            factor: None,
            analysis: Analysis::default(),
            form: Form::default(),
            columns: Vec::new(),
            store: false,
            store_fields: Vec::new(),
            indexer: Indexer::default(),
            memory: 1 << 30,
            max_document: MAX_DOCUMENT_BYTES,
            merge: true,
            order: None,
            ranks: None,
            duplicates: SameName::All,
            strict: false,
            guards: Guards::default(),
            workers: cores(),
            gpus: Gpus::Auto,
            pipeline: Pipeline::default(),
            peers: None,
            command: "millrace::build".to_string(),
            control: Arc::new(Control::default()),
            accept: None,
            progress: None,
            notes: None,
            chose_gpu: false,
        }
    }

    /// The defaults, for files and folders.
    pub fn of_paths<P: Into<PathBuf>>(
        index: impl Into<PathBuf>,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        Self::new(index, Input::Paths(paths.into_iter().map(Into::into).collect()))
    }

    /// The defaults, for documents that the program has. The iterator is asked by a thread of its
    /// own, a little ahead of the build, and dropped when the build ends.
    pub fn of_documents<I>(index: impl Into<PathBuf>, documents: I) -> Self
    where
        I: IntoIterator<Item = OwnedDocument>,
        I::IntoIter: Send + 'static,
    {
        Self::new(index, Input::Documents(GivenDocuments::new(documents)))
    }

    /// Whether documents that share a name are an error.
    pub(super) fn refuses_duplicates(&self) -> bool {
        self.strict || self.duplicates == SameName::Refuse
    }

    /// Whether a device encodes the lists, as long as it has room for them.
    pub(super) fn device_encodes(&self) -> bool {
        self.indexer == Indexer::Gpu && self.form == Form::BP128
    }

    /// Whether a GPU may be taken for so many bytes of files, if there is one: nobody has named an
    /// indexer, and it pays or GPUs are asked for.
    pub(super) fn may_choose_gpu(&self, bytes: u64) -> bool {
        let Pipeline { cpu_indexers, gpu_indexers, gpu_from, .. } = &self.pipeline;
        let pays = match self.gpus {
            Gpus::None => false,
            Gpus::Number(_) => true,
            Gpus::Auto => bytes >= gpu_from.saturating_mul(self.workers as u64),
        };
        // Only files can be read again if the device is lost, and other lists than these are
        // encoded by the host.
        let is_fit = matches!(self.input, Input::Paths(_))
            && self.analysis.tokenizer != Tokenizer::Whitespace
            && self.form == Form::BP128
            && self.index_fields.is_empty()
            && self.max_document <= MOST_DEVICE_DOCUMENT;
        let is_plain = self.peers.is_none() && cpu_indexers.or(*gpu_indexers).is_none();
        self.indexer == Indexer::Auto && pays && is_fit && is_plain
    }

    /// The indexers of tokens that there are, as messages name them.
    pub(super) fn indexers_of_tokens(&self) -> String {
        let names: Vec<&str> = self.pipeline.handed.iter().map(|one| one.name()).collect();
        if names.is_empty() { "of tokens".into() } else { names.join(" or ") }
    }

    pub(super) fn note(&self, note: &Note) {
        if let Some(notes) = &self.notes {
            notes(note);
        }
    }
}
