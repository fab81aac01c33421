//! Runs that are merged beside the jobs that make generations: the merge reads an open generation
//! and writes to a folder of its own, and a draft of a later generation takes what came of it.

use super::ranks::ranks_left;
use super::{Draft, LOST_RANKS, PACKED_BYTES, names_of};
use crate::index::deletions::live_runs;
use crate::index::error::IndexError;
use crate::index::files::storage;
use crate::index::format::{FileKind, RUNS, file_path};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::merge::{Merging, merge_runs, verify};
use crate::index::run::WrittenRun;
use crate::index::scores::write_scores;
use std::ops::Range;
use std::path::PathBuf;

/// What came of neighbouring runs of an open generation.
#[derive(Debug)]
pub(crate) struct MergedAside {
    folder: PathBuf,
    merged: WrittenRun,
    /// It is synced.
    lasts: bool,
    /// PageRanks that some of the runs had are lost.
    lost: bool,
}

/// Merges neighbouring runs of a generation to one in the new folder `to`, without its deleted
/// documents. What is merged is verified.
///
/// # Errors
/// As [`Draft::merge`].
pub(crate) fn merge_aside(
    generation: &Generation,
    runs: Range<usize>,
    to: PathBuf,
    merging: &Merging,
) -> Result<MergedAside, IndexError> {
    let (from, manifest) = (generation.path(), generation.manifest());
    let old = &live_runs(from, &manifest.runs)?[runs.clone()];
    let names = names_of(&manifest.runs[runs]);
    verify(from, manifest.files.iter().filter(|file| names.contains(&file.name)), merging)?;
    [to.clone(), to.join(RUNS)].iter().try_for_each(|folder| storage::create_dir(folder))?;
    let (ranks, ranked) = ranks_left(from, &manifest.files, old)?;
    let (run, mut files) = merge_runs(from, old, |_| true, &to, 0, merging)?;
    if ranked == old.len() {
        files.push(write_scores(&to, &run.file(FileKind::Scores), &ranks, None)?);
    }
    // Few bytes are packed, and synced with others.
    let lasts = files.iter().map(|file| file.bytes).sum::<u64>() > PACKED_BYTES;
    if lasts {
        let paths: Vec<_> = files.iter().map(|file| file_path(&to, &file.name)).collect();
        storage::sync_all(&paths)?;
    }
    let lost = ranked > 0 && ranked < old.len();
    Ok(MergedAside { folder: to, merged: (run, files), lasts, lost })
}

/// The message where a merge beside commits came to nothing.
const GONE: &str = "a merge beside commits came to nothing, since another job has changed its runs";

impl Draft {
    /// Puts what came of runs of the `before` in the place of these, without the documents that
    /// were deleted since. Returns what is to be told of it: if the runs do not stand here as they
    /// did, nothing is changed.
    pub(crate) fn put(
        &mut self,
        aside: MergedAside,
        before: &Generation,
        runs: Range<usize>,
    ) -> Result<Option<&'static str>, IndexError> {
        let Some(place) = self.place_of(before, runs.clone()) else { return Ok(Some(GONE)) };
        let (mut base, mut gone) = (0, Vec::new());
        for (now, run) in self.deletions[place..].iter().zip(&before.runs()[runs.clone()]) {
            let then = run.deletions();
            let Some(more) = now.more_than(then) else { return Ok(Some(GONE)) };
            gone.extend(more.iter().map(|docid| base + docid - then.before(*docid)));
            base += run.documents() - then.before(run.documents());
        }
        let MergedAside { folder, merged: (old, files), lasts, lost } = aside;
        let run = self.adopt(&folder, &old, files)?;
        if lasts && !run.packed {
            self.lasting.extend(names_of(std::slice::from_ref(&run)));
        }
        self.drop_runs(place..place + runs.len())?;
        self.runs.insert(place, run);
        self.deletions.insert(place, Default::default());
        self.delete(place, &gone)?;
        Ok(lost.then_some(LOST_RANKS))
    }

    /// Where runs of a generation stand here, side by side and with the same files.
    fn place_of(&self, before: &Generation, runs: Range<usize>) -> Option<usize> {
        let Manifest { runs: old, files, .. } = before.manifest();
        let old = &old[runs];
        let place = self.runs.iter().position(|run| run.name == old[0].name)?;
        // The same except for what is deleted of it.
        let is = |(run, old): (&RunEntry, &RunEntry)| {
            let RunEntry { first_docid, deleted, .. } = *run;
            let field_tokens = run.field_tokens.clone();
            RunEntry { first_docid, deleted, field_tokens, ..old.clone() } == *run
        };
        let here = self.runs.get(place..place + old.len())?;
        let names = names_of(old);
        let mut files = files.iter().filter(|file| names.contains(&file.name));
        let are = here.iter().zip(old).all(is) && files.all(|file| self.files.contains(file));
        are.then_some(place)
    }
}
