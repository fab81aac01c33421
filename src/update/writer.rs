//! Changes of an index that a program makes one by one and commits together.

use super::side::Held;
use super::{Gone, Update, Updated};
use crate::build::{BuildError, BuildOptions};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::generation::{Generation, with_live};
use crate::input::memory::OwnedDocument;
use crate::shown::chain;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Notes documents to be added, replaced and deleted, until they are committed. Nothing of them is
/// seen before; what is not committed when it is dropped is lost. The index is locked only while a
/// commit is under way.
///
/// Threads that share a writer share its changes: who commits while another commit is under way
/// waits for that, and then one commit takes what all who wait have noted.
///
/// What a commit has opened stays open for the next one: all documents of the index, which the
/// first commit verifies as an open index does. Memory: 8 bytes for each of them, and the names and
/// texts which are not committed.
///
/// From the second commit on runs are merged by a thread, beside commits and queries: what comes of
/// it is a part of the first commit behind its end. Dropping the writer ends a merge that is under
/// way, and waits for the thread; then the runs stay as they are.
#[derive(Debug)]
pub struct Writer {
    index: PathBuf,
    /// The most memory that a commit allocates, in bytes; 1 GiB by default. A merge beside commits
    /// takes up to a quarter of it besides.
    pub memory: u64,
    /// Worker threads of a commit, at most: as many as cores by default.
    pub workers: usize,
    /// Waits while another job holds the index. It does by default.
    pub wait: bool,
    /// Commits may leave less than half of the documents, or none. They may not by default.
    pub allow_shrink: bool,
    pending: Mutex<Pending>,
    /// Of the thread that commits.
    pub(super) held: Mutex<Held>,
    /// A commit has ended.
    ended: Condvar,
}

/// What is noted and not committed.
#[derive(Debug, Default)]
struct Pending {
    /// In the order in which they came; one that a later one replaces has nothing.
    documents: Vec<(String, Option<OwnedDocument>)>,
    /// What passes one of these goes before they come.
    filters: Vec<String>,
    /// The place of a name's last change.
    last: HashMap<String, usize>,
    /// One of those who wait for the next commit wants a point.
    keep_point: bool,
    /// Changes that were ever noted, and those of them that no commit has to take any more.
    noted: u64,
    settled: u64,
    is_committing: bool,
    /// What the last commit did, and what was live behind it.
    updated: Updated,
    open: Option<Arc<Generation>>,
}

/// The turn to commit, until it is dropped.
struct Turn<'a>(&'a Writer);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.pending).is_committing = false;
        self.0.ended.notify_all();
    }
}

impl Pending {
    fn note(&mut self, name: String, document: Option<OwnedDocument>) {
        let place = self.documents.len();
        if let Some(before) = self.last.insert(name.clone(), place) {
            self.documents[before].1 = None;
        }
        self.documents.push((name, document));
        self.noted += 1;
    }

    /// The last change of each name.
    fn changes(&self) -> impl Iterator<Item = &(String, Option<OwnedDocument>)> {
        let all = self.documents.iter().enumerate();
        all.filter(|(at, (name, _))| self.last.get(name) == Some(at)).map(|(_, change)| change)
    }

    /// Leaves nothing to be committed.
    fn take(&mut self) -> Self {
        Self {
            documents: std::mem::take(&mut self.documents),
            filters: std::mem::take(&mut self.filters),
            last: std::mem::take(&mut self.last),
            keep_point: std::mem::take(&mut self.keep_point),
            noted: self.noted,
            ..Self::default()
        }
    }

    /// Notes these changes again, before those that came since they were taken.
    fn put_before(&mut self, taken: Self) {
        let (newer, noted) = (self.take(), self.noted);
        (self.documents, self.last) = (taken.documents, taken.last);
        self.filters = taken.filters;
        self.filters.extend(newer.filters.iter().cloned());
        for (name, document) in newer.changes() {
            self.note(name.clone(), document.clone());
        }
        self.keep_point = taken.keep_point || newer.keep_point;
        self.noted = noted;
    }
}

impl Writer {
    /// Of the index in a folder, which is not looked at before the first commit.
    pub fn new(index: impl Into<PathBuf>) -> Self {
        let BuildOptions { index, memory, workers, .. } =
            BuildOptions::of_paths(index, Vec::<PathBuf>::new());
        let (pending, held, ended) = Default::default();
        Self { index, memory, workers, wait: true, allow_shrink: false, pending, held, ended }
    }

    /// The folder of the index.
    pub fn index(&self) -> &Path {
        &self.index
    }

    /// Adds a document; it replaces all that have its name.
    pub fn update(&self, name: impl Into<String>, text: impl Into<String>) {
        self.update_document(OwnedDocument::new(name, text));
    }

    /// The same for a document that has texts of fields of the index, or values.
    pub fn update_document(&self, document: OwnedDocument) {
        lock(&self.pending).note(document.name.clone(), Some(document));
    }

    /// Deletes all documents of a name.
    pub fn delete(&self, name: impl Into<String>) {
        lock(&self.pending).note(name.into(), None);
    }

    /// Deletes all documents that pass a filter by the columns of the index. Those are looked at
    /// that are there when the commit begins: what is added with it stays.
    pub fn delete_passing(&self, filter: impl Into<String>) {
        let mut pending = lock(&self.pending);
        pending.filters.push(filter.into());
        pending.noted += 1;
    }

    /// Drops what is not committed and no commit has begun to take, of all threads.
    pub fn abort(&self) {
        lock(&self.pending).take();
    }

    /// How many names are to be changed, and filters to be applied.
    pub fn pending(&self) -> usize {
        let pending = lock(&self.pending);
        pending.last.len() + pending.filters.len()
    }

    /// The generation that the last commit has made, for [`Index::move_to`](crate::Index::move_to);
    /// none before the first.
    pub fn generation(&self) -> Option<Arc<Generation>> {
        lock(&self.pending).open.clone()
    }

    /// Publishes all changes together as a new generation: a point to which a rollback goes back if
    /// that is to be kept. Without any change nothing is published. What is told is that of the
    /// commit which took the changes that this thread noted, with those of others.
    ///
    /// # Errors
    /// As [`Update::update`]; then the changes are still there. If only opening the new generation
    /// failed, they are committed.
    pub fn commit(&self, keep_point: bool) -> Result<Updated, BuildError> {
        let mut pending = lock(&self.pending);
        pending.keep_point |= keep_point;
        let noted = pending.noted;
        let has_changes = noted > pending.settled;
        while pending.is_committing {
            pending = self.ended.wait(pending).unwrap_or_else(PoisonError::into_inner);
            // Another thread took what this one had noted, with its own.
            if has_changes && pending.settled >= noted {
                return Ok(pending.updated.clone());
            }
        }
        pending.is_committing = true;
        let taken = pending.take();
        drop(pending);
        let _turn = Turn(self);
        let held = &mut *lock(&self.held);
        let mut updated = match self.publish(&taken, held) {
            Ok(updated) => updated,
            Err(error) => {
                lock(&self.pending).put_before(taken);
                return Err(error);
            }
        };
        let mut failed = None;
        if let Some(number) = updated.generation {
            let begins = held.merges_beside;
            match with_live(&self.index, |folder| held.follow(folder)) {
                Ok(_) if begins => {
                    let begun = held.begin(&self.index, self.memory, self.workers);
                    let remark =
                        |error| format!("no merge began beside commits: {}", chain(&error));
                    updated.remarks.extend(begun.err().map(remark));
                }
                Ok(_) => {}
                Err(error) => failed = Some(IndexError::live(number)(error)),
            }
        }
        let mut pending = lock(&self.pending);
        (pending.settled, pending.updated) = (taken.noted, updated.clone());
        pending.open.clone_from(&held.open);
        drop(pending);
        failed.map_or(Ok(updated), |error| Err(error.into()))
    }

    fn publish(&self, taken: &Pending, held: &mut Held) -> Result<Updated, BuildError> {
        let mut names = Vec::new();
        let mut documents = Vec::new();
        for (name, document) in taken.changes() {
            match document.clone() {
                Some(document) => documents.push(document),
                None => names.push(name.clone().into_bytes()),
            }
        }
        let bytes = documents.iter().map(OwnedDocument::bytes).sum();
        let bytes = (!documents.is_empty()).then_some(bytes);
        let mut build = BuildOptions::of_documents(&self.index, documents);
        (build.memory, build.workers) = (self.memory, self.workers);
        build.command = "millrace::Writer".to_string();
        let (wait, allow_shrink) = (self.wait, self.allow_shrink);
        let keep_point = taken.keep_point;
        let update = Update { wait, keep_point, allow_shrink, ..Update::new(build) };
        let filters = taken.filters.clone();
        update.change(&Gone { names, filters }, bytes, Some(held))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        // What the merge has written is removed by the next job, if another one writes now.
        if held.end() && matches!(current(&self.index), Ok(Some(_))) {
            _ = IndexLock::acquire(&self.index).and_then(|lock| lock.remove_debris());
        }
    }
}
