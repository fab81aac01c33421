//! The runs of an index that several processes have built: each run is held by the process that
//! wrote it, on whose disk it lies. One process may have all of them open, if all are on its disk,
//! or each process its own.

use super::{Manifest, RunEntry, Statistics};
use crate::index::error::IndexError;
use crate::index::files::packed::on_disk;
use crate::index::format::{FileKind, run_of_file};
use std::collections::HashSet;
use std::path::Path;

/// The runs of a generation that are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhichRuns {
    All,
    /// Those that a process holds.
    Of(usize),
    /// Those that lie on this disk.
    Here,
}

/// The generation of which some runs alone are open. These have docids of their own, from 0 on.
#[derive(Debug, PartialEq)]
pub(crate) struct WholeGeneration {
    pub(crate) which: WhichRuns,
    pub(crate) manifest: Manifest,
    /// Of the runs that are open, by their places among these.
    pub(crate) first_docids: Vec<u32>,
    /// Of each run of the generation whether it is open.
    pub(crate) open: Vec<bool>,
}

impl RunEntry {
    /// The process that holds it.
    pub(crate) fn holder(&self) -> usize {
        self.process.unwrap_or(0) as usize
    }

    /// Whether it lies on this disk, `generation` being the folder of the manifest.
    pub(crate) fn is_here(&self, generation: &Path) -> bool {
        on_disk(&self.path(generation, FileKind::Lexicon)).exists()
    }

    /// `Elsewhere` if another process holds it, and it is not on this disk.
    pub(crate) fn check_here(&self, generation: &Path) -> Result<(), IndexError> {
        match self.process {
            Some(process) if !self.is_here(generation) => {
                let path = on_disk(&self.path(generation, FileKind::Lexicon)).to_path_buf();
                Err(IndexError::Elsewhere { path, process })
            }
            _ => Ok(()),
        }
    }
}

impl WhichRuns {
    /// The manifest of these runs, and of the whole generation if they are not all of it.
    pub(crate) fn of(
        self,
        generation: &Path,
        mut manifest: Manifest,
    ) -> (Manifest, Option<WholeGeneration>) {
        let which: Box<dyn Fn(&RunEntry) -> bool> = match self {
            Self::All => return (manifest, None),
            Self::Of(process) => Box::new(move |run| run.holder() == process),
            Self::Here => Box::new(|run| run.is_here(generation)),
        };
        let open: Vec<bool> = manifest.runs.iter().map(which).collect();
        let whole = manifest.clone();
        let mut opens = open.iter();
        manifest.runs.retain(|_| opens.next() == Some(&true));
        let first_docids = manifest.runs.iter().map(|run| run.first_docid).collect();
        let mut next = 0;
        for run in &mut manifest.runs {
            run.first_docid = next;
            next += run.documents;
        }
        let names: HashSet<&str> = manifest.runs.iter().map(|run| &*run.name).collect();
        manifest.files.retain(|file| run_of_file(&file.name).is_none_or(|run| names.contains(run)));
        let terms = manifest.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.terms));
        manifest.statistics = Statistics { terms, ..Statistics::of_runs(&manifest.runs) };
        manifest.statistics.field_tokens.resize(manifest.settings.fields.len(), 0);
        (manifest, Some(WholeGeneration { which: self, manifest: whole, first_docids, open }))
    }
}

impl Statistics {
    /// What some runs hold together, except for terms; postings as of the deleted documents that
    /// are counted.
    pub(crate) fn of_runs(runs: &[RunEntry]) -> Self {
        let mut all = Self::default();
        for run in runs {
            let deleted = run.deleted.unwrap_or_default();
            all.field_tokens.resize(run.field_tokens.len(), 0);
            let fields = all.field_tokens.iter_mut().zip(&run.field_tokens);
            fields.for_each(|(sum, tokens)| *sum += tokens);
            all.documents += u64::from(run.live_documents());
            all.tokens += run.tokens.saturating_sub(deleted.tokens);
            all.postings += run.postings.saturating_sub(deleted.postings);
        }
        all
    }
}

impl Manifest {
    /// The fewest processes that hold all runs together.
    pub fn processes(&self) -> usize {
        self.runs.iter().map(|run| run.holder() + 1).max().unwrap_or(1)
    }

    /// `Elsewhere` if a run is not on this disk, so that one process can read it.
    pub(crate) fn check_here(&self, generation: &Path) -> Result<(), IndexError> {
        self.runs.iter().try_for_each(|run| run.check_here(generation))
    }

    /// Whether this many processes can have it open, each the runs that it holds: some hold none
    /// where there was little input. An index of one process is for one.
    pub fn is_for(&self, processes: usize) -> bool {
        let is_spread = self.runs.is_empty() || self.runs.iter().any(|run| run.process.is_some());
        processes == 1 || is_spread && self.processes() <= processes
    }
}
