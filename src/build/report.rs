//! The report of a build. Serialised, a [`BuildReport`] is what `build --report` writes.

#![warn(missing_docs)]

use super::generation::{Built, PhasesReport};
use super::options::BuildOptions;
use super::placement::Placement;
use crate::crew::lock;
use crate::dataflow::build::context::Build;
use crate::dataflow::control::OperatorTime;
#[cfg(feature = "gpu")]
use crate::gpu::invert::inverter::InverterWork;
use crate::index::files::storage::FileEntry;
use crate::index::format::generation_name;
use crate::index::generations::manifest::{Manifest, Statistics};
use crate::shown::{bytes, number_of};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What this process has built: a generation, or a part of one. Sizes are in bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Folder of the index.
    #[serde(serialize_with = "display")]
    pub index: PathBuf,
    /// Number of this process.
    pub process: usize,
    /// Processes of the build.
    pub processes: usize,
    /// Number of the generation.
    pub generation: u32,
    /// Documents, empty ones too.
    pub documents: u64,
    /// Different terms.
    pub terms: u64,
    /// Postings.
    pub postings: u64,
    /// Indexed tokens.
    pub tokens: u64,
    /// Documents without an indexed token.
    pub empty_documents: u64,
    /// Documents whose name an earlier one has.
    pub duplicate_names: u64,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The first of them, with file, byte, line and reason.
    pub skipped_examples: Vec<String>,
    /// Files of folders that no format claims.
    pub ignored_files: u64,
    /// Runs of the generation.
    pub runs: usize,
    /// Runs that the dataflow wrote.
    pub runs_before_merge: u64,
    /// Bytes of the input files.
    pub read_bytes: u64,
    /// Bytes of the input after decompression.
    pub uncompressed_bytes: u64,
    /// Of those, in units of 10^6, by second of the build.
    pub mb_per_s: f64,
    /// What the weights of vectors were multiplied by; nothing of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact_factor: Option<String>,
    /// Bytes of the generation's files.
    pub index_bytes: u64,
    /// The generation's files.
    pub files: Vec<FileEntry>,
    /// The memory that the build was given.
    pub memory_bytes: u64,
    /// How trie collections were given to indexers.
    pub placement: Placement,
    /// What each owner of trie collections has done.
    pub indexers: Vec<IndexerReport>,
    /// What the device has done that takes texts; nothing without one.
    #[cfg(feature = "gpu")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverter: Option<InverterWork>,
    /// How fast the indexers of tokens were by split of the input, the slowest of them; nothing
    /// where there are more than 2,000 splits.
    pub splits: Vec<SplitReport>,
    /// Where the time went.
    pub phases: PhasesReport,
    /// What process 0 has published, in a build by several processes.
    #[serde(skip)]
    pub whole: Option<WholeReport>,
    /// Seconds of all.
    #[serde(skip)]
    pub seconds: f64,
    /// Worker threads.
    #[serde(skip)]
    pub workers: usize,
    /// The working time of each operator on each worker.
    #[serde(skip)]
    pub operators: Vec<OperatorTime>,
}

fn display<S: serde::Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// A generation of several processes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WholeReport {
    /// Its number.
    pub generation: u32,
    /// Those that built a part each.
    pub processes: usize,
    /// Documents of all.
    pub documents: u64,
    /// Postings of all.
    pub postings: u64,
    /// Documents whose name an earlier one has, in any part.
    pub duplicate_names: u64,
}

impl WholeReport {
    pub(super) fn of(manifest: &Manifest, processes: usize) -> Self {
        let &Statistics { documents, postings, duplicate_names, .. } = &manifest.statistics;
        Self { generation: manifest.generation, processes, documents, postings, duplicate_names }
    }
}

/// What an owner of trie collections has done.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct IndexerReport {
    /// Its number; those on GPUs come first.
    pub indexer: u32,
    /// The worker that it ran on.
    pub worker: usize,
    /// Terms of all of its runs.
    pub terms: u64,
    /// Their postings.
    pub postings: u64,
    /// Bytes of those terms, without the prefixes that their trie collections imply.
    pub characters: u64,
    /// What it took, if it takes tokens.
    #[serde(flatten)]
    pub took: Option<TokensTaken>,
}

/// What an indexer of tokens took, and how long that took.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TokensTaken {
    /// Blocks.
    pub blocks: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Seconds in which it, or its device, had something to do.
    pub busy_s: f64,
    /// Seconds of its worker's time.
    pub worked_s: f64,
    /// Seconds in which it waited for parsers or the encoder.
    pub waited_s: f64,
}

/// A split of the input, as the indexers of tokens have seen it.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct SplitReport {
    /// Its number.
    pub split: u32,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Seconds that the slowest indexer was busy.
    pub seconds: f64,
}

impl BuildReport {
    /// Describes what was built by this process, a part of this many, if there are several.
    pub(super) fn new(
        options: &BuildOptions,
        built: &Built,
        shard: Option<(usize, usize)>,
        whole: Option<WholeReport>,
        took: Duration,
    ) -> Self {
        let Built { build, new, placement, phases, first_skipped, .. } = built;
        let manifest = &new.manifest;
        let statistics = &manifest.statistics;
        let parsed = build.progress.parsed_bytes.load(Relaxed);
        let seconds = took.as_secs_f64();
        let (process, processes) = shard.unwrap_or((0, 1));
        Self {
            index: options.index.clone(),
            process,
            processes,
            generation: manifest.generation,
            documents: statistics.documents,
            terms: statistics.terms,
            postings: statistics.postings,
            tokens: statistics.tokens,
            empty_documents: statistics.empty_documents,
            duplicate_names: statistics.duplicate_names,
            skipped: statistics.skipped.clone(),
            skipped_examples: first_skipped.clone(),
            ignored_files: build.plan.input.ignored,
            runs: manifest.runs.len(),
            runs_before_merge: build.progress.runs.load(Relaxed),
            read_bytes: build.progress.read_bytes.load(Relaxed),
            uncompressed_bytes: parsed,
            mb_per_s: parsed as f64 / 1e6 / seconds,
            impact_factor: manifest.settings.impact_factor.clone(),
            index_bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            files: manifest.files.clone(),
            memory_bytes: options.memory,
            placement: placement.clone(),
            indexers: indexers(build),
            #[cfg(feature = "gpu")]
            inverter: inverted(build),
            splits: splits(build),
            phases: *phases,
            whole,
            seconds,
            workers: build.plan.workers,
            operators: build.wiring.control.operator_times(),
        }
    }

    /// The folder of the generation.
    pub fn folder(&self) -> PathBuf {
        self.index.join(generation_name(self.generation))
    }

    /// What was built, in lines for people: by process 0 the whole, if there are several, and what
    /// this process built.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let index = self.index.display();
        let seconds = self.seconds;
        if let Some(whole) = &self.whole {
            let duplicates = match whole.duplicate_names {
                0 => String::new(),
                n => format!("; {}", number_of(n, "duplicate name", "duplicate names")),
            };
            lines.push(format!(
                "{index}: {}, {} in {} in {seconds:.2} s; generation {}{duplicates}",
                number_of(whole.documents, "document", "documents"),
                number_of(whole.postings, "posting", "postings"),
                number_of(whole.processes as u64, "part", "parts"),
                whole.generation,
            ));
        }
        let runs = number_of(self.runs as u64, "run", "runs");
        let of = match self.processes {
            1 => String::new(),
            processes => format!(" (part {} of {processes})", self.process),
        };
        let mut line = format!(
            "{index}{of}: {}, {}, {} from {} in {seconds:.2} s ({:.1} MB/s of text); {} in {runs}, generation {}",
            number_of(self.documents, "document", "documents"),
            number_of(self.terms, "term", "terms"),
            number_of(self.postings, "posting", "postings"),
            bytes(self.read_bytes),
            self.mb_per_s,
            bytes(self.index_bytes),
            self.generation,
        );
        if let Some(factor) = &self.impact_factor {
            line += &format!(", weights times {factor}");
        }
        let also = [
            (self.skipped.values().sum(), ["skipped"; 2]),
            (self.duplicate_names, ["duplicate name", "duplicate names"]),
            (self.empty_documents, ["empty"; 2]),
            (
                self.ignored_files,
                ["file of no known format ignored", "files of no known format ignored"],
            ),
        ];
        for (n, [one, more]) in also {
            if n > 0 {
                line += &format!("; {}", number_of(n, one, more));
            }
        }
        lines.push(line);
        lines
    }
}

fn splits(build: &Build) -> Vec<SplitReport> {
    const MOST: usize = 2000;
    let done = lock(&build.progress.done);
    let mut splits: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    for (&split, &(text_bytes, seconds)) in done.indexers.iter().flat_map(|work| &work.splits) {
        let slowest = splits.entry(split).or_default();
        *slowest = (slowest.0.max(text_bytes), slowest.1.max(seconds));
    }
    let row = |(split, (text_bytes, seconds))| SplitReport { split, text_bytes, seconds };
    if splits.len() > MOST { Vec::new() } else { splits.into_iter().map(row).collect() }
}

#[cfg(feature = "gpu")]
fn inverted(build: &Build) -> Option<InverterWork> {
    lock(&build.progress.done).inverted
}

/// What each owner of trie collections has done; of those that take postings, what was encoded.
fn indexers(build: &Build) -> Vec<IndexerReport> {
    let done = lock(&build.progress.done);
    let row = |owner: u32| {
        let encoded = &build.wiring.encoded[owner as usize];
        let work = done.indexers.iter().find(|work| work.owner == owner);
        IndexerReport {
            indexer: owner,
            worker: build.plan.owners.worker(owner),
            terms: encoded.terms.load(Relaxed),
            postings: encoded.postings.load(Relaxed),
            characters: encoded.characters.load(Relaxed),
            took: work.map(|work| TokensTaken {
                blocks: work.blocks,
                tokens: work.tokens,
                busy_s: work.busy,
                worked_s: work.worked,
                waited_s: work.waited,
            }),
        }
    };
    (0..build.plan.owners.len() as u32).map(row).collect()
}
