//! What does a generation consist of, and how was it made? `manifest.json`, which the checksum at
//! its end protects, and whose list of files protects all others (`docs/FORMAT.md`, Manifest).

#![forbid(unsafe_code)]

use crate::index::error::IndexError;
use crate::index::format::{MANIFEST, VERSION};
use crate::index::storage::{self, FileEntry};
use crate::text::analysis::Analysis;
use crate::text::stop_words::StopWords;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The manifest of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format version.
    pub format: u32,
    /// Number of the generation.
    pub generation: u32,
    /// When it was made, in seconds since 1970.
    pub created: String,
    /// The command that made it.
    pub command: Vec<String>,
    /// Worker threads of that command.
    pub workers: usize,
    /// How text became terms and terms became bytes.
    pub settings: Settings,
    /// What the generation holds.
    pub statistics: Statistics,
    /// Its runs in the order of docids.
    pub runs: Vec<RunEntry>,
    /// The files that it was built from.
    pub inputs: Vec<InputEntry>,
    /// Its own files but this one.
    pub files: Vec<FileEntry>,
}

/// How text became terms and terms became bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name of the stemmer.
    pub stemmer: String,
    /// The stop words.
    pub stop_words: StopWordsSetting,
    /// Name of the codec of postings.
    pub codec: String,
    /// Postings coded together.
    pub block_size: u32,
    /// Who found terms and postings.
    pub indexer: String,
    /// `--memory`, in bytes.
    pub memory_bytes: u64,
    /// `--max-document`, in bytes.
    pub max_document_bytes: u64,
}

/// The stop words of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWordsSetting {
    /// `english`, `none`, or `custom`.
    pub name: String,
    /// The words, sorted.
    pub words: Vec<String>,
}

impl StopWordsSetting {
    /// Records a set of words.
    pub fn new(words: &StopWords) -> Self {
        let name = words.name().to_string();
        Self { name, words: words.words().map(str::to_string).collect() }
    }
}

/// What a generation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Documents.
    pub documents: u64,
    /// Distinct terms.
    pub terms: u64,
    /// Postings.
    pub postings: u64,
    /// Indexed tokens: the sum of the documents' lengths.
    pub tokens: u64,
    /// Documents without an indexed token.
    pub empty_documents: u64,
    /// Documents whose name an earlier one has.
    pub duplicate_names: u64,
    /// Records of the input that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A run of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// Its name, from which its files have theirs.
    pub name: String,
    /// Docid of its first document.
    pub first_docid: u32,
    /// Documents.
    pub documents: u32,
    /// Terms.
    pub terms: u64,
    /// Postings.
    pub postings: u64,
}

/// A file that a generation was built from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputEntry {
    /// Where it was; `-` for standard input.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// A hash of them: `xxh3:` and 16 hexadecimal digits.
    pub hash: String,
    /// How documents were found in it.
    pub format: String,
}

/// The last member, which covers what stands before it.
const CHECKSUM: &str = "\"checksum\"";

impl Manifest {
    /// Describes a generation that this process has just written.
    pub fn new(
        generation: u32,
        workers: usize,
        settings: Settings,
        statistics: Statistics,
        runs: Vec<RunEntry>,
        inputs: Vec<InputEntry>,
        mut files: Vec<FileEntry>,
    ) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let command = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let created = now();
        Self {
            format: VERSION,
            generation,
            created,
            command,
            workers,
            settings,
            statistics,
            runs,
            inputs,
            files,
        }
    }

    /// The file of this name.
    ///
    /// # Errors
    /// `Damaged` if the manifest in `folder` does not list it.
    pub fn file(&self, folder: &Path, name: &str) -> Result<&FileEntry, IndexError> {
        self.files.iter().find(|file| file.name == name).ok_or_else(|| {
            IndexError::damaged(&folder.join(MANIFEST), 0, format_args!("a file {name}"), "none")
        })
    }

    /// The analysis that the index in `folder` was made with.
    ///
    /// # Errors
    /// `Damaged` if this program does not know it.
    pub fn analysis(&self, folder: &Path) -> Result<Analysis, IndexError> {
        let Settings { stemmer, stop_words, .. } = &self.settings;
        let unknown =
            |what: &str, found: String| IndexError::damaged(&folder.join(MANIFEST), 0, what, found);
        Ok(Analysis {
            stemmer: stemmer.parse().map_err(|e| unknown("a stemmer", format!("{e}")))?,
            stop_words: StopWords::from_words(&stop_words.words)
                .map_err(|e| unknown("stop words", e.to_string()))?,
        })
    }

    /// Lays the manifest out, with its checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(self).expect("strings and numbers are JSON");
        // The last member goes before the closing brace of the object.
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        text.push_str(",\n  ");
        let crc = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("{CHECKSUM}: \"{crc:08x}\"\n}}\n"));
        text.into_bytes()
    }

    /// Writes the manifest into the folder of its generation and syncs it.
    ///
    /// # Errors
    /// `Storage`.
    pub fn write(&self, folder: &Path) -> Result<(), IndexError> {
        storage::write_whole(&folder.join(MANIFEST), &self.to_bytes())
    }

    /// Reads the manifest of the generation in `folder`.
    ///
    /// # Errors
    /// `Storage`; `Damaged`, also for a manifest of another program; `Newer`.
    pub fn read(folder: &Path) -> Result<Self, IndexError> {
        let path = folder.join(MANIFEST);
        let bytes = std::fs::read(&path).map_err(IndexError::storage("read", &path))?;
        Self::parse(&path, &bytes)
    }

    /// Reads a manifest from its bytes; `path` is for messages.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let whole = memchr::memmem::rfind(bytes, CHECKSUM.as_bytes());
        let at = whole.ok_or_else(|| {
            IndexError::damaged(path, bytes.len() as u64, "a manifest with a checksum", "its end")
        })?;
        let expected = format!("{CHECKSUM}: \"{:08x}\"\n}}\n", crc32fast::hash(&bytes[..at]));
        if &bytes[at..] != expected.as_bytes() {
            let found = String::from_utf8_lossy(&bytes[at..]).trim().to_string();
            return Err(IndexError::damaged(path, at as u64, expected.trim(), found));
        }
        let mut value: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(bytes)
                .map_err(|e| IndexError::damaged(path, 0, "a manifest in JSON", e))?;
        let version = value.get("format").and_then(serde_json::Value::as_u64);
        if let Some(found) = version.filter(|&version| version > u64::from(VERSION)) {
            return Err(IndexError::Newer { path: path.to_path_buf(), found, supported: VERSION });
        }
        value.remove("checksum");
        serde_json::from_value(value.into())
            .map_err(|e| IndexError::damaged(path, 0, "a manifest of this format", e))
    }
}

/// The time now, in seconds since 1970.
fn now() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let words = StopWordsSetting::new(&StopWords::english());
        let settings = Settings {
            stemmer: "english".into(),
            stop_words: words,
            codec: "bp128".into(),
            block_size: 128,
            indexer: "fast".into(),
            memory_bytes: 1,
            max_document_bytes: 2,
        };
        let skipped = [("bad JSON".to_string(), 3)].into();
        let statistics = Statistics { documents: 5, skipped, ..Statistics::default() };
        Manifest::new(7, 2, settings, statistics, Vec::new(), Vec::new(), Vec::new())
    }

    #[test]
    fn reads_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let written = manifest();
        written.write(folder.path()).unwrap();
        let read = Manifest::read(folder.path()).unwrap();
        assert_eq!(read, written);
        let analysis = read.analysis(folder.path()).unwrap();
        assert_eq!(analysis.stemmer.name(), "english");
        assert!(analysis.stop_words.contains("the"));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = manifest().to_bytes();
        let path = Path::new("manifest.json");
        for at in 0..bytes.len() {
            Manifest::parse(path, &bytes[..at]).unwrap_err();
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                Manifest::parse(path, &damaged).unwrap_err();
            }
        }
    }

    #[test]
    fn a_newer_format_is_named_as_such() {
        let mut newer = manifest();
        newer.format = 9;
        let error = Manifest::parse(Path::new("m"), &newer.to_bytes()).unwrap_err();
        assert!(matches!(error, IndexError::Newer { found: 9, .. }), "{error}");
    }
}
