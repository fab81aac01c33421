//! Changes of an index that a program makes one by one and commits together.

use super::{Update, Updated};
use crate::build::{BuildError, BuildOptions};
use crate::input::memory::OwnedDocument;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Notes documents to be added, replaced and deleted, until they are committed. Nothing of them is
/// seen before; what is not committed when it is dropped is lost. The index is locked only while a
/// commit is under way.
///
/// Memory: that of the names and texts which are not committed.
#[derive(Debug)]
pub struct Writer {
    index: PathBuf,
    /// The most memory that a commit allocates, in bytes; 1 GiB by default.
    pub memory: u64,
    /// Worker threads of a commit: as many as cores by default.
    pub workers: usize,
    /// Waits while another job holds the index. It does by default.
    pub wait: bool,
    /// Commits may leave less than half of the documents, or none. They may not by default.
    pub allow_shrink: bool,
    /// In the order in which they came; one that a later one replaces has no text.
    documents: Vec<(String, Option<String>)>,
    /// The place of a name's last change.
    last: HashMap<String, usize>,
}

impl Writer {
    /// Of the index in a folder, which is not looked at before the first commit.
    pub fn new(index: impl Into<PathBuf>) -> Self {
        let BuildOptions { index, memory, workers, .. } =
            BuildOptions::of_paths(index, Vec::<PathBuf>::new());
        let (documents, last) = Default::default();
        Self { index, memory, workers, wait: true, allow_shrink: false, documents, last }
    }

    /// The folder of the index.
    pub fn index(&self) -> &Path {
        &self.index
    }

    /// Adds a document; it replaces all that have its name.
    pub fn update(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.note(name.into(), Some(text.into()));
    }

    /// Deletes all documents of a name.
    pub fn delete(&mut self, name: impl Into<String>) {
        self.note(name.into(), None);
    }

    fn note(&mut self, name: String, text: Option<String>) {
        let place = self.documents.len();
        if let Some(before) = self.last.insert(name.clone(), place) {
            self.documents[before].1 = None;
        }
        self.documents.push((name, text));
    }

    /// Drops what is not committed.
    pub fn abort(&mut self) {
        self.documents.clear();
        self.last.clear();
    }

    /// How many names are to be changed.
    pub fn pending(&self) -> usize {
        self.last.len()
    }

    /// Publishes all changes together as a new generation: a point to which a rollback goes back if
    /// that is to be kept. Without any change nothing is published.
    ///
    /// # Errors
    /// As [`Update::update`]; then the changes are still there.
    pub fn commit(&mut self, keep_point: bool) -> Result<Updated, BuildError> {
        let is_last =
            |(at, (name, _)): &(usize, &(String, Option<String>))| self.last.get(name) == Some(at);
        let mut names = Vec::new();
        let mut documents = Vec::new();
        for (_, (name, text)) in self.documents.iter().enumerate().filter(is_last) {
            match text.clone() {
                Some(text) => documents.push(OwnedDocument { name: name.clone(), text }),
                None => names.push(name.clone().into_bytes()),
            }
        }
        let has_input = !documents.is_empty();
        let mut build = BuildOptions::of_documents(&self.index, documents);
        (build.memory, build.workers) = (self.memory, self.workers);
        build.command = "millrace::Writer".to_string();
        let (wait, allow_shrink) = (self.wait, self.allow_shrink);
        let update = Update { wait, keep_point, allow_shrink, ..Update::new(build) };
        let updated = update.change(&names, has_input)?;
        self.abort();
        Ok(updated)
    }
}
