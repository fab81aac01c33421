//! Checks an index: compares every byte of the live generation with its checksum, and every number
//! with what it says about others, so that damage is found, and also what a faulty program wrote
//! and sealed. The check goes on behind a problem wherever what follows can still be understood.

mod documents;
mod run;
#[cfg(test)]
mod tests;

use crate::index::block_bounds::check_bounds;
use crate::index::cache_plan::CachePlan;
use crate::index::deletions::{LiveRun, live_runs};
use crate::index::error::IndexError;
use crate::index::files::map::{Map, verify_all};
use crate::index::files::packed::check_pack;
use crate::index::files::storage::{FileEntry, Stop};
use crate::index::format::{
    CACHE_PLAN, FileKind, HEADER_BYTES, MANIFEST, file_path, padding, run_file, run_of_file,
};
use crate::index::generations::folder::{current, entries, is_being_written};
use crate::index::generations::generation::Generation;
use crate::index::generations::held::held;
use crate::index::generations::manifest::read::read_manifest;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::generations::publish::debris;
use crate::index::inputs::InputsFile;
use crate::index::merge::count_distinct_terms;
use crate::index::scores::RunScores;
use crate::shown::{self, number_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

const BODY: u64 = HEADER_BYTES as u64;
const MOST_PROBLEMS: usize = 1000;
const ATTEMPTS: usize = 4;
/// Memory to count the terms of several runs in.
const COUNT_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    pub generation: PathBuf,
    /// With the manifest.
    pub files: u64,
    pub bytes: u64,
    pub documents: u64,
    /// Different terms.
    pub terms: u64,
    pub postings: u64,
    /// What failed jobs have left; the next build or merge removes it.
    pub debris: Vec<PathBuf>,
    /// A job is writing a generation beside the one that was checked, so debris was not looked for.
    pub being_written: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents = number_of(self.documents, "document", "documents");
        let terms = number_of(self.terms, "term", "terms");
        let postings = number_of(self.postings, "posting", "postings");
        write!(f, "{documents}, {terms}, {postings}")?;
        write!(f, "; {}", shown::bytes(self.bytes))
    }
}

#[derive(Clone, Copy, Debug)]
struct Share {
    threads: usize,
    /// A thread takes lists that have at least this many bytes together.
    least: u64,
}

impl Share {
    fn of(threads: usize) -> Self {
        Self { threads, least: 256 << 10 }
    }
}

/// Checks the live generation of the index in the folder `index` with one thread.
///
/// Memory: 4 bytes for each document of the largest run, beside the mapped files.
///
/// # Errors
/// Every problem that was found, up to a thousand of them, and at least one.
#[cfg(any(test, fuzzing))]
pub(crate) fn check(index: &Path) -> Result<Report, Vec<IndexError>> {
    check_watched(index, 1, &Stop::default())
}

/// Checks as `check` does, with `threads`, and reports progress to `watched`, which does not stop
/// it. What it finds does not depend on the threads, except for tokens of documents: several
/// threads compare sums of them, which agree by chance once in 2^32.
pub fn check_watched(
    index: &Path,
    threads: usize,
    watched: &Stop,
) -> Result<Report, Vec<IndexError>> {
    check_by(index, Share::of(threads), watched)
}

fn check_by(index: &Path, share: Share, watched: &Stop) -> Result<Report, Vec<IndexError>> {
    let mut attempt = 1;
    loop {
        let live = current(index).map_err(|error| vec![error])?;
        let none = || vec![IndexError::NoIndex { path: index.to_path_buf() }];
        let generation = live.ok_or_else(none)?;
        let checked = check_generation(&generation, share, watched).and_then(|mut report| {
            held(index).map_err(|error| vec![error])?;
            // First, since what a living job has written by now is not left from a dead one.
            report.being_written = is_being_written(index);
            if !report.being_written {
                report.debris = debris(index, &[&generation]).map_err(|error| vec![error])?;
            }
            Ok(report)
        });
        let replaced = || current(index).is_ok_and(|now| now.as_ref() != Some(&generation));
        if checked.is_ok() || attempt == ATTEMPTS || !replaced() {
            return checked;
        }
        attempt += 1;
    }
}

/// Checks the generation in a folder; does not look for debris.
fn check_generation(
    generation: &Path,
    share: Share,
    watched: &Stop,
) -> Result<Report, Vec<IndexError>> {
    let manifest = read_manifest(generation).map_err(|error| vec![error])?;
    let mut check = Check { generation, manifest: &manifest, share, watched, problems: Vec::new() };
    // All of it for its checksums, and the lists for what they say.
    let lists =
        manifest.files.iter().filter(|file| file.name.ends_with(FileKind::Postings.extension()));
    let bytes_of = |file: &FileEntry| file.bytes;
    watched.expect(manifest.files.iter().chain(lists).map(bytes_of).fold(0, u64::saturating_add));
    // What lies on other disks is not checked, which is told once.
    for entry in &manifest.runs {
        check.note(entry.check_here(generation));
    }
    let bytes = check.files();
    check.packs();
    check.unknown_files();
    check.inputs();
    if let Err(problem) = manifest.analysis(generation) {
        check.problems.push(problem);
    }
    let mut empty = Some(0);
    // Whether they fit the lists is seen when those are read.
    let live = check.note(live_runs(generation, &manifest.runs));
    for (place, entry) in manifest.runs.iter().enumerate() {
        if entry.check_here(generation).is_err() {
            empty = None;
            continue;
        }
        let documents = check.documents(entry);
        let deletions = live.as_ref().map(|live| &live[place].deletions);
        let more = documents.as_ref().zip(deletions);
        let more = more.map(|(documents, deletions)| documents::count_empty(documents, deletions));
        empty = empty.zip(more).map(|(empty, more)| empty + more);
        check.run(entry, documents.as_ref(), deletions);
        check.scores(entry);
        check.bounds(entry);
    }
    if check.problems.is_empty() && generation.join(CACHE_PLAN).exists() {
        let plan = Generation::open_folder(generation).and_then(|it| CachePlan::open(&it));
        check.problems.extend(plan.err());
    }
    if let Some(empty) = empty.filter(|empty| *empty != manifest.statistics.empty_documents) {
        let found = manifest.statistics.empty_documents;
        check.damaged(MANIFEST, 0, format!("{empty} empty documents"), found);
    }
    check.terms(live);
    if !check.problems.is_empty() {
        return Err(check.problems);
    }
    Ok(Report {
        generation: generation.to_path_buf(),
        files: manifest.files.len() as u64 + 1,
        bytes,
        documents: manifest.statistics.documents,
        terms: manifest.statistics.terms,
        postings: manifest.statistics.postings,
        ..Report::default()
    })
}

struct Check<'a> {
    generation: &'a Path,
    manifest: &'a Manifest,
    share: Share,
    watched: &'a Stop,
    problems: Vec<IndexError>,
}

impl Check<'_> {
    fn note<T>(&mut self, result: Result<T, IndexError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                // A file that cannot be opened, say, is met more than once.
                let text = error.to_string();
                let known = self.problems.iter().any(|problem| problem.to_string() == text);
                if !known && self.problems.len() < MOST_PROBLEMS {
                    self.problems.push(error);
                }
                None
            }
        }
    }

    fn damaged(&mut self, name: &str, at: u64, expected: impl ToString, found: impl ToString) {
        let path = file_path(self.generation, name);
        self.note(Err::<(), _>(IndexError::damaged(&path, at, expected, found)));
    }

    fn full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    /// Compares length and checksum of every file. Returns the bytes of all.
    fn files(&mut self) -> u64 {
        let manifest = fs::metadata(self.generation.join(MANIFEST)).map_or(0, |file| file.len());
        let mut bytes = manifest;
        let away = self.manifest.runs.iter().filter(|run| run.check_here(self.generation).is_err());
        let away: BTreeSet<&str> = away.map(|run| &*run.name).collect();
        let is_here =
            |entry: &&FileEntry| run_of_file(&entry.name).is_none_or(|run| !away.contains(run));
        for entry in self.manifest.files.iter().filter(is_here) {
            let verified = Map::open(&file_path(self.generation, &entry.name)).and_then(|map| {
                verify_all(self.share.threads, &[(&map, entry.bytes, entry.crc32)])
            });
            self.note(verified);
            self.watched.pass(entry.bytes);
            // The manifest may say anything.
            bytes = bytes.saturating_add(entry.bytes);
        }
        bytes
    }

    fn packs(&mut self) {
        for run in self.manifest.runs.iter().filter(|run| run.packed) {
            let path = file_path(self.generation, &run_file(&run.name, FileKind::Packed));
            self.note(check_pack(&path));
        }
    }

    fn unknown_files(&mut self) {
        let known: BTreeSet<_> = self.manifest.files.iter().map(|entry| &*entry.name).collect();
        for (name, _) in self.note(entries(self.generation)).unwrap_or_default() {
            if !known.contains(&*name) && ![MANIFEST, CACHE_PLAN].contains(&&*name) {
                self.damaged(&name, 0, "no file that the manifest does not name", "one");
            }
        }
    }

    fn zeros(&mut self, name: &str, start: u64) {
        self.zero_bytes(name, start, padding(start));
    }

    fn zero_bytes(&mut self, name: &str, start: u64, bytes: u64) {
        let path = file_path(self.generation, name);
        let wrong = Map::open(&path).and_then(|map| {
            let bytes = map.slice(start, bytes)?;
            Ok(bytes.iter().position(|byte| *byte != 0).map(|at| (at, bytes[at])))
        });
        if let Some(Some((at, found))) = self.note(wrong) {
            self.damaged(name, start + at as u64, "a zero byte of padding", found);
        }
    }

    fn inputs(&mut self) {
        let inputs = InputsFile::open_unverified(self.generation, self.manifest);
        self.note(inputs.and_then(|inputs| inputs.check()));
    }

    fn scores(&mut self, entry: &RunEntry) {
        let name = entry.file(FileKind::Scores);
        if self.manifest.files.iter().any(|file| file.name == name) {
            let scores = RunScores::open_unverified(self.generation, entry);
            self.note(scores.and_then(|scores| scores.check()));
        }
    }

    fn bounds(&mut self, entry: &RunEntry) {
        let name = entry.file(FileKind::Bounds);
        if self.manifest.files.iter().any(|file| file.name == name) {
            self.note(check_bounds(self.generation, entry, self.share.threads));
        }
    }

    fn terms(&mut self, live: Option<Vec<LiveRun<'_>>>) {
        // The manifest's reader has compared the numbers if there is one run without counts.
        let runs = &self.manifest.runs;
        let is_compared = runs.len() <= 1 && runs.iter().all(|run| run.counted() == 0);
        if !is_compared && self.problems.is_empty() {
            let live = live.unwrap_or_default().into_iter();
            let runs: Vec<_> = live.map(|live| (self.generation, live)).collect();
            let counted = self.note(count_distinct_terms(&runs, COUNT_BYTES, |_| Ok(true)));
            let found = self.manifest.statistics.terms;
            if counted.is_some_and(|counted| counted != found) {
                let expected = format!("{} different terms", counted.unwrap_or_default());
                self.damaged(MANIFEST, 0, expected, found);
            }
        }
    }
}
