//! The job `rebuild`: it brings an index up to date with its sources, from a job file to a
//! [`HistoryRecord`].
//!
//! ```text
//! list the sources -> hash them -> read what changed -> compare -> index what is new -> guard
//! -> merge, rank, put in order -> publish
//! ```
//!
//! A file whose hash is that of the live generation is not read again. Of the others every document
//! is compared by name and content with those of the live generation
//! ([`dataflow::changes`](crate::dataflow::rebuild::changes)). Only new and changed documents are
//! indexed; the runs of the live generation stay, less the documents that are gone. Where there is
//! no index, or its settings are others, everything is built. Whatever fails, the live generation
//! stays. A [`Daemon`] does that on a schedule.

pub(crate) mod daemon;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod handed;
pub(crate) mod history;
pub(crate) mod job_file;
mod links;
pub(crate) mod live;
mod look;
mod nodes;
mod page_links;
mod publish;
mod rank;
mod schedule;
pub(crate) mod status;
mod together;
pub(crate) mod values;

pub(crate) use error::RebuildError;
pub(crate) use look::{PlannedRebuild, RebuildKind};

use crate::build::{BuildOptions, Guards, Note};
use crate::crew::cores;
use crate::dataflow::control::Control;
use crate::index::error::IndexError;
use crate::index::files::storage;
use crate::index::format::WRITABLE;
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::manifest::{Manifest, Settings};
use crate::index::merge::Merging;
use crate::input::streams::unpacked::whole_text;
use crate::rebuild::history::{FOLDER, HistoryRecord, RebuildOutcome};
use crate::rebuild::job_file::JobFile;
use crate::rebuild::job_file::keys::{BuildKeys, GuardKeys};
use crate::shown::now;
use crate::text::analysis::Analysis;
use crate::text::stop_words::StopList;
use daemon::Daemon;
use links::FoundLinks;
use live::Live;
use look::For;
use publish::{Publishing, is_ordered};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The scratch folder of a rebuild, in the folder of the history, which is locked.
const WORK: &str = "work";

/// What is known of the sources' files, in the same folder.
const FILES: &str = "files.json";

/// One attempt to bring an index up to date.
pub struct Rebuild<'a> {
    pub job: &'a JobFile,
    /// What else is said of its rebuilds.
    daemon: &'a Daemon,
    pub control: Arc<Control>,
}

impl Rebuild<'_> {
    /// Says what a rebuild would do now, and if a guard refuses that; scratch files go elsewhere.
    ///
    /// # Errors
    /// What else would fail the rebuild before it builds.
    pub fn plan(&self) -> Result<(PlannedRebuild, Result<(), RebuildError>), RebuildError> {
        self.job.log_files()?;
        let work = tempfile::tempdir().map_err(RebuildError::io(&std::env::temp_dir()))?;
        let mut looked = self.look(work.path(), For::Plan, &mut HistoryRecord::default())?;
        let accepted = looked.check(self.job, None);
        if matches!(looked.planned.how, RebuildKind::Whole(_)) {
            looked.planned.read_bytes = looked.plan.bytes();
        }
        Ok((looked.planned, accepted))
    }

    /// Rebuilds if the sources have changed. `attempt` is its number, from 1.
    ///
    /// # Errors
    /// Why the live generation stays. The record is in the history all the same, unless another
    /// rebuild is under way or the history cannot be written.
    pub(crate) fn run(&self, attempt: u32) -> Result<HistoryRecord, RebuildError> {
        let began = Instant::now();
        let started = now().to_string();
        let folder = self.job.index.join(FOLDER);
        if let Some(peers) = &self.daemon.peers {
            let JobFile { logs, build, .. } = self.job;
            if self.job.ranks().is_some() || logs.is_some() || build.order.is_some() {
                return Err(RebuildError::OneProcess);
            }
            if peers.hosts.process() > 0 {
                self.together(peers, None)?;
                return Ok(HistoryRecord {
                    started,
                    attempt,
                    outcome: RebuildOutcome::Unchanged,
                    ..HistoryRecord::default()
                });
            }
        }
        let _lock = IndexLock::acquire(&folder).map_err(|error| match error {
            IndexError::Locked { path, .. } => RebuildError::Busy { folder: path },
            error => error.into(),
        })?;
        let mut record = HistoryRecord { started, attempt, ..HistoryRecord::default() };
        let work = folder.join(WORK);
        let result = fresh(&work)
            .and_then(|()| match &self.daemon.peers {
                None => self.attempt(&work, &mut record),
                Some(peers) => self.together(peers, Some(&mut record)),
            })
            // Other failures follow from being told to end, which is the reason then.
            .map_err(|error| self.control.take_failure().map_or(error, RebuildError::from))
            .map_err(|error| error.of_index(&self.job.index));
        // What cannot be removed now is removed by the next rebuild.
        _ = storage::caught(&work, || Ok(fs::remove_dir_all(&work)));
        record.seconds = began.elapsed().as_secs_f64();
        // The reason of a failed rebuild tells what it could not read.
        let live = current(&self.job.index).ok().flatten();
        if let Some(live) = live.and_then(|path| Manifest::read(&path).ok()) {
            record.generation = Some(live.generation);
            record.documents.live = live.statistics.documents;
            record.runs = live.runs.len() as u32;
            record.index_bytes = live.files.iter().map(|file| file.bytes).sum();
        }
        let published = record.generation.filter(|_| record.outcome == RebuildOutcome::Published);
        let behind = |error| match published {
            Some(generation) => RebuildError::Live { generation, source: Box::new(error) },
            None => error,
        };
        let result = result.map_err(behind);
        if let Err(error) = &result {
            record.outcome = RebuildOutcome::Failed;
            record.reason = Some(error.chain());
        }
        history::append(&self.job.index, &record).map_err(behind)?;
        result.map(|()| record)
    }

    fn attempt(&self, work: &Path, record: &mut HistoryRecord) -> Result<(), RebuildError> {
        // Missing logs are reported before anything is built.
        self.job.log_files()?;
        self.mark_writable()?;
        // A killed job may have left scratch, or one generation too many.
        match IndexLock::acquire(&self.job.index) {
            Ok(lock) => {
                let lock = lock.keeping(guards(self.job).keep);
                let cleaned = lock.keep_few().and_then(|()| lock.remove_debris());
                if !self.daemon.from_nothing {
                    cleaned?;
                }
            }
            Err(IndexError::Locked { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let mut looked = self.look(work, For::Build, record)?;
        looked.tell(record);
        if let Some(hold) = &looked.planned.held {
            record.outcome = RebuildOutcome::Unchanged;
            record.reason = Some(hold.to_string());
            return Ok(());
        }
        let how = looked.planned.how;
        if how != RebuildKind::Nothing {
            if let (RebuildKind::Whole(reason), Some(_)) = (how, &looked.live) {
                record.reason = Some(reason.to_string());
                self.note(&Note::Anew(reason));
            }
            if matches!(how, RebuildKind::Whole(_))
                && self.job.ranks().is_none()
                && looked.live.as_ref().is_some_and(Live::has_ranks)
            {
                self.note_of_ranks("documents that are built again have no PageRanks".into());
            }
            record.time("build", || self.index_new(&mut looked, work))?;
            looked.tell(record);
            looked.check(self.job, None)?;
            let read = looked.read.iter();
            looked.known.complete(read.map(|input| (&*input.path, &*input.hash)));
        }
        let links = match (&self.job.links, self.job.ranks()) {
            (Some(links), Some(asked)) => {
                Some(record.time("rank", || self.links(links, asked, &looked, work))?)
            }
            _ => None,
        };
        let done = looked
            .live
            .take_if(|live| how == RebuildKind::Nothing && self.is_done(live, links.as_ref()));
        let (live, ranked) = match done {
            Some(live) => {
                record.outcome = RebuildOutcome::Unchanged;
                self.lift()?;
                (live, None)
            }
            None => {
                let links = links.as_ref();
                let published =
                    Publishing { rebuild: self, looked: &looked, links }.publish(record)?;
                record.outcome = RebuildOutcome::Published;
                record.incremental = !matches!(how, RebuildKind::Whole(_));
                published
            }
        };
        looked.known.generation = live.manifest.generation;
        files::replace_json(&self.job.index.join(FOLDER).join(FILES), &looked.known)?;
        if let (Some(links), Some(ranked)) = (&links, ranked) {
            ranked.write(self, &live, links)?;
            record.ranks = Some(ranked.counts);
        }
        if let (Some(keys), Some(planner)) = (&self.job.logs, self.job.planner) {
            let planned = record.time("logs", || planner.plan(self, &live, keys));
            record.logs = planned?;
        }
        Ok(())
    }

    /// Lets updates by call know whether the job file allows them.
    fn mark_writable(&self) -> Result<(), RebuildError> {
        let mark = self.job.index.join(FOLDER).join(WRITABLE);
        match (self.job.writable, mark.exists()) {
            (true, false) => files::replace(&mark, b""),
            (false, true) => fs::remove_file(&mark).map_err(RebuildError::io(&mark)),
            _ => Ok(()),
        }
    }

    /// Whether the live generation, whose sources have not changed, has all that is asked for.
    fn is_done(&self, live: &Live, links: Option<&FoundLinks>) -> bool {
        links.is_none_or(|links| rank::are_of(self, live, links))
            && self.job.build.order.is_none_or(|order| is_ordered(&live.manifest, order))
    }

    fn note_of_ranks(&self, remark: String) {
        self.note(&Note::Ranks(remark));
    }

    fn note(&self, note: &Note) {
        if let Some(notes) = &self.daemon.notes {
            notes(note);
        }
    }

    fn options(&self) -> Result<BuildOptions, RebuildError> {
        let keys: &BuildKeys = &self.job.build;
        let mut options = BuildOptions::of_paths(&self.job.index, Vec::<PathBuf>::new());
        let stop_words = keys.stopwords.as_ref().map(|words| words.get_ref().as_path());
        let stop_words = stop_words.map(|words| StopList::Named(words, whole_text));
        options.analysis = Analysis::of(keys.tokenizer, keys.fold, keys.stemmer, stop_words)?;
        options.form = keys.form;
        options.index_fields = keys.index_fields.clone();
        options.columns = keys.column.clone();
        options.store = keys.store;
        options.store_fields = keys.store_fields.clone();
        options.indexer = keys.indexer;
        options.pipeline.handed = keys.handed;
        options.memory = keys.memory;
        if let Some(bytes) = keys.max_document {
            options.max_document = bytes;
        }
        options.merge = !keys.no_merge;
        options.strict = keys.strict;
        options.guards = guards(self.job);
        options.gpus = keys.gpus;
        options.workers = self.workers();
        options.command = self.daemon.command.clone();
        options.control = self.control.clone();
        options.notes = self.daemon.notes.clone();
        options.progress = (self.daemon.progress)();
        if self.job.has_vectors() {
            options.analysis = Analysis::of_given_terms();
            options.factor = keys.factor.or_else(|| self.live_factor());
        }
        Ok(options)
    }

    /// What the weights of vectors in the live generation were multiplied by.
    fn live_factor(&self) -> Option<f64> {
        let live = Summary::read(&current(&self.job.index).ok()??).ok()?;
        live.settings.impact_factor?.parse().ok()
    }

    fn merging(&self, of: &Settings) -> Merging {
        let form = of.form().unwrap_or_default();
        let (columns, record_parts) = (of.columns.clone(), of.record_parts());
        let threads = self.workers();
        let stop = self.control.stop().clone();
        Merging { memory_bytes: self.job.build.memory, threads, form, columns, record_parts, stop }
    }

    pub(crate) fn workers(&self) -> usize {
        self.job.build.workers.map_or_else(cores, |workers| workers as usize)
    }
}

fn guards(job: &JobFile) -> Guards {
    let GuardKeys { min_documents, min_tokens, max_skipped, allow_cut, allow_empty } = job.guard;
    let min_documents = Some(min_documents);
    let min_tokens = Some(min_tokens);
    let max_skipped = Some(max_skipped);
    // The job file counts the live generation too.
    let keep = job.keep.generations as usize - 1;
    Guards { allow_empty, allow_cut, max_skipped, min_documents, min_tokens, keep }
}

fn fresh(folder: &Path) -> Result<(), RebuildError> {
    let error = RebuildError::io(folder);
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(error(source)),
        _ => {}
    }
    fs::create_dir(folder).map_err(error)
}
