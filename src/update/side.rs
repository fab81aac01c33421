//! What an open writer keeps between its commits: the generation that was live behind the last one,
//! and a merge of some of its runs by a thread, beside commits and queries.
//!
//! The folder of a generation that will never live has what the merge writes. Its manifest is that
//! of the generation whose runs are merged, and in use, so that no job removes either; if the
//! process is killed, the next job does. The first commit behind the end of the merge takes what
//! came of it. Meanwhile commits leave these runs as they are, except for deletions.

use super::{MOST_RUNS, WORN_PART};
use crate::crew::Awaited;
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::generations::draft::{Draft, MergedAside, due, merge_aside};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::generation::Generation;
use crate::index::generations::in_use::InUse;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::merge::Merging;
use crate::shown::chain;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A merge begins where there are more runs, and leaves this many, so that commits which come
/// before its end do not have to merge.
const MANY_RUNS: usize = 14;
const LEFT_RUNS: usize = 9;

/// A merge takes a part in this many of the memory and of the threads of a commit.
const BESIDE: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) open: Option<Arc<Generation>>,
    /// Merges are put off to a thread. Not by the first commit, which may be the only one.
    pub(super) merges_beside: bool,
    merge: Option<SideMerge>,
    /// A merge is taken by the commit that is this many behind its beginning, for tests.
    #[cfg(test)]
    pub(super) lag: Option<usize>,
}

#[derive(Debug)]
struct SideMerge {
    generation: Arc<Generation>,
    runs: Range<usize>,
    #[cfg(test)]
    commits: usize,
    stop: Stop,
    // Dropped in this order: the thread is waited for.
    thread: Awaited<Result<MergedAside, IndexError>>,
    _in_use: InUse,
}

impl Held {
    /// Opens the generation in a folder; of what is open nothing is opened again.
    pub(super) fn follow(&mut self, folder: &Path) -> Result<Arc<Generation>, IndexError> {
        let next = match &self.open {
            Some(open) => open.next(folder)?,
            None => Some(Generation::open_folder(folder)?),
        };
        let live = next.map(Arc::new).or_else(|| self.open.clone());
        self.merges_beside = self.open.is_some();
        self.open.clone_from(&live);
        Ok(live.expect("a generation is open"))
    }

    /// Begins a merge if one is due and none is under way, in a thread. None begins while another
    /// job holds the index.
    pub(super) fn begin(
        &mut self,
        index: &Path,
        memory: u64,
        workers: usize,
    ) -> Result<(), IndexError> {
        let (Some(generation), None) = (self.open.clone(), &self.merge) else { return Ok(()) };
        let manifest = generation.manifest();
        // Where there are as many as may be, the next commit merges, and may choose of all.
        if manifest.runs.len() >= MOST_RUNS {
            return Ok(());
        }
        let worn = |documents| documents / WORN_PART;
        let most = if manifest.runs.len() > MANY_RUNS { LEFT_RUNS } else { MOST_RUNS };
        let Some(runs) = due(&manifest.runs, most, worn).pop() else { return Ok(()) };
        let lock = match IndexLock::acquire(index) {
            Err(IndexError::Locked { .. }) => return Ok(()),
            lock => lock?,
        };
        let (number, folder) = lock.next_generation()?;
        let named = Manifest { generation: number, is_commit: true, ..manifest.clone() };
        named.write(&folder)?;
        let in_use = InUse::of(&folder)?;
        drop(lock);
        let stop = Stop::default();
        let merging = Merging {
            memory_bytes: memory / BESIDE,
            threads: workers.div_ceil(BESIDE as usize),
            form: manifest.settings.form().unwrap_or_default(),
            columns: manifest.settings.columns.clone(),
            record_parts: manifest.settings.record_parts(),
            stop: stop.clone(),
        };
        let (of, places, to) = (generation.clone(), runs.clone(), folder.join("part"));
        let merge = move || merge_aside(&of, places, to, &merging);
        let thread = Awaited::begin("merger", merge);
        let thread = thread.map_err(IndexError::storage("start a thread", &folder))?;
        self.merge = Some(SideMerge {
            generation,
            runs,
            #[cfg(test)]
            commits: 0,
            stop,
            thread,
            _in_use: in_use,
        });
        Ok(())
    }

    /// Whether a run is being merged.
    pub(super) fn merges(&self, run: &RunEntry) -> bool {
        self.merge.as_ref().is_some_and(|merge| {
            merge.generation.manifest().runs[merge.runs.clone()]
                .iter()
                .any(|of| of.name == run.name)
        })
    }

    /// Puts what came of the merge into the draft of a commit, if the merge has ended. Returns what
    /// is to be told of it.
    pub(super) fn put(&mut self, draft: &mut Draft) -> Result<Option<String>, IndexError> {
        let has_ended = |merge: &mut SideMerge| {
            #[cfg(test)]
            if let Some(lag) = self.lag {
                merge.commits += 1;
                return merge.commits > lag;
            }
            merge.thread.has_ended()
        };
        let Some(merge) = self.merge.take_if(has_ended) else { return Ok(None) };
        let SideMerge { generation, runs, thread, .. } = merge;
        match thread.made() {
            Ok(merged) => Ok(draft.put(merged, &generation, runs)?.map(str::to_string)),
            Err(error) => Ok(Some(format!("a merge beside commits failed: {}", chain(&error)))),
        }
    }

    /// Ends the merge, if one is under way, and waits for its thread. What it wrote is left to
    /// the next job. Returns whether there was one.
    pub(super) fn end(&mut self) -> bool {
        let merge = self.merge.take();
        merge.as_ref().inspect(|merge| merge.stop.set()).is_some()
    }
}
