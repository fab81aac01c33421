//! The manifest of a generation: how it was built, what it holds, and length and checksum of every
//! file (`docs/index-format.md`, Manifest).

pub(crate) mod held;
pub(crate) mod read;
pub(crate) mod summary;
#[cfg(test)]
mod tests;

use crate::index::columns::Column;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, write_whole};
use crate::index::format::{
    DELETIONS, FileKind, INPUTS, MANIFEST, VECTORS, VERSION, file_path, is_run_name, packed_file,
    run_file,
};
use crate::index::list::Form;
use crate::index::order::{DocumentOrder, GlobalEntry, OrderEntry};
use crate::text::analysis::Analysis;
use crate::text::fields::IndexFields;
use crate::text::stop_words::StopWords;
use crate::text::tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    pub created: u64,
    pub command: String,
    /// It is no point to which one goes back: an update or a delete has published it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_commit: bool,
    pub workers: u32,
    pub settings: Settings,
    pub statistics: Statistics,
    pub runs: Vec<RunEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderEntry>,
    /// How many there are.
    pub inputs: u64,
    /// Every file but the manifest.
    pub files: Vec<FileEntry>,
}

/// Processes that hold an index together are fewer.
const MOST_PROCESSES: usize = 1 << 16;

/// The version of the lists of names by which documents are read: of fields for names and texts,
/// and of stop words in the program. Raised when one changes, so that rebuilds read all again.
pub(crate) const LISTS_VERSION: u32 = 3;

/// How the input became terms and lists. Queries take their analysis from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// If it is not `words`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The version of the analysis; none is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<u32>,
    /// The version of the lists of names by which documents were read; none is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fold: bool,
    pub stemmer: String,
    pub stop_words: StopWordsEntry,
    pub codec: String,
    pub block_size: u32,
    /// Runs have the positions of terms.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub positions: bool,
    /// The names of fields that are indexed beside all text, by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The values that documents have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// Runs have the texts of documents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub texts: bool,
    /// The fields of records that runs keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<String>,
    pub indexer: String,
    pub memory_bytes: u64,
    /// Longer documents were skipped.
    pub max_document_bytes: u64,
    /// The format that the build was told to read, such as `auto`.
    pub format: String,
    /// The factor of the weights of learned vectors, as a decimal; none for texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_factor: Option<String>,
}

impl Settings {
    /// For an index with such terms and lists; all else is left open.
    pub fn of(analysis: &Analysis, form: Form) -> Self {
        let &Analysis { tokenizer, fold, stemmer, ref stop_words, .. } = analysis;
        let (tokenizer, analysis) = tokenizer.recorded();
        Self {
            tokenizer,
            analysis,
            lists: Some(LISTS_VERSION),
            fold,
            stemmer: stemmer.name().to_string(),
            stop_words: StopWordsEntry {
                name: stop_words.name().to_string(),
                words: stop_words.words().map(str::to_string).collect(),
            },
            codec: form.name().to_string(),
            block_size: form.block_len() as u32,
            positions: form.has_positions(),
            ..Self::default()
        }
    }

    /// What was written is accepted, and the names of what was read were.
    pub(crate) fn index_fields(&self) -> IndexFields {
        IndexFields::new(self.fields.iter().map(String::as_str)).unwrap_or_default()
    }

    /// What runs keep of each record: nothing in place of a name is its text.
    pub(crate) fn parts_of_records(&self) -> impl Iterator<Item = Option<&str>> {
        let text = self.texts.then_some(None);
        text.into_iter().chain(self.stored.iter().map(|name| Some(&**name)))
    }

    /// Whether documents have values or stored fields, which the hashes of documents tell too.
    pub(crate) fn has_values(&self) -> bool {
        !(self.columns.is_empty() && self.stored.is_empty())
    }

    pub(crate) fn record_parts(&self) -> usize {
        usize::from(self.texts) + self.stored.len()
    }

    /// Whether terms have impacts of learned vectors in the place of frequencies, and are given.
    pub fn has_impacts(&self) -> bool {
        self.format == VECTORS
    }

    /// A manifest that was read or written has a form that is known.
    pub(crate) fn form(&self) -> Option<Form> {
        let form = Form::named(&self.codec, self.block_size as usize)?;
        Some(form.with_positions(self.positions))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWordsEntry {
    /// Its name or the file that it came from.
    pub name: String,
    pub words: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    pub documents: u64,
    /// Of all documents but the counted ones of those that are deleted.
    pub terms: u64,
    /// See `terms`.
    pub postings: u64,
    pub tokens: u64,
    /// Tokens of each field of the index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_tokens: Vec<u64>,
    /// Documents without an indexed token.
    pub empty_documents: u64,
    /// Documents whose name an earlier one has.
    pub duplicate_names: u64,
    /// Documents that could not be read, by reason.
    pub skipped: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEntry {
    /// Six digits, for life: no other run of the index has them.
    pub name: String,
    pub first_docid: u32,
    pub documents: u32,
    pub terms: u64,
    pub postings: u64,
    pub tokens: u64,
    /// Tokens of each field of the index, in documents that are not deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_tokens: Vec<u64>,
    /// The first of the manifest's inputs that its documents lie in: number 0 of its own.
    pub first_input: u32,
    /// How many inputs there are from that one to the last.
    pub inputs: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    /// Its own files are in a pack.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packed: bool,
    /// The generation that wrote its moves, if documents lie elsewhere than when it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<u32>,
    /// The generation that gave it other static scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<u32>,
    /// The process that holds it, of an index of several; none is process 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

/// What a generation leaves out of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deleted {
    /// At least 1.
    pub documents: u32,
    pub tokens: u64,
    /// Of this many of the documents the postings are known by list.
    pub counted: u32,
    /// Of the counted documents.
    pub postings: u64,
}

impl RunEntry {
    /// The name of one of its files, as the manifest has it.
    pub(crate) fn file(&self, kind: FileKind) -> String {
        let revised = match kind {
            FileKind::Moves => self.moves,
            FileKind::Scores => self.scores,
            _ => None,
        };
        match revised {
            None if self.packed && FileKind::OWN.contains(&kind) => packed_file(&self.name, kind),
            None => run_file(&self.name, kind),
            Some(generation) => run_file(&format!("{}-{generation:06}", self.name), kind),
        }
    }

    /// Where this file lies, if a generation in the folder `generation` has the run.
    pub(crate) fn path(&self, generation: &Path, kind: FileKind) -> PathBuf {
        file_path(generation, &self.file(kind))
    }

    pub(crate) fn live_documents(&self) -> u32 {
        self.documents.saturating_sub(self.deleted.unwrap_or_default().documents)
    }

    /// Documents that are left out of the counts of terms and postings.
    pub(crate) fn counted(&self) -> u32 {
        self.deleted.unwrap_or_default().counted
    }
}

impl Manifest {
    /// The analysis of the documents, and so of queries. `Damaged` if this program does not know
    /// it; `generation` is the folder of the manifest.
    pub fn analysis(&self, generation: &Path) -> Result<Analysis, IndexError> {
        let path = generation.join(MANIFEST);
        let unknown = |what: &str, found: String| IndexError::damaged(&path, 0, what, found);
        let Settings { tokenizer, analysis, fold, stemmer, stop_words, .. } = &self.settings;
        let tokenizer = Tokenizer::of_record(tokenizer.as_deref(), *analysis).ok_or_else(|| {
            let name = tokenizer.as_deref().unwrap_or("words");
            let version = analysis.unwrap_or(1);
            unknown("a tokenizer", format!("`{name}` of version {version} of the analysis"))
        })?;
        Ok(Analysis {
            tokenizer,
            fold: *fold,
            stemmer: stemmer.parse().map_err(|e| unknown("a stemmer", format!("{e}")))?,
            stop_words: StopWords::from_words(&stop_words.words, tokenizer)
                .map_err(|e| unknown("stop words", e.to_string()))?,
            parts_at_controls: tokenizer == Tokenizer::Whitespace
                && !self.settings.fields.is_empty(),
        })
    }

    pub(crate) fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// The text of its file.
    pub(crate) fn encode(&self) -> String {
        sealed(self)
    }

    /// Writes the manifest into the folder of its generation, and does not sync it. `Refused` if it
    /// could not be read again.
    pub(crate) fn write(&self, generation: &Path) -> Result<(), IndexError> {
        let path = generation.join(MANIFEST);
        match self.inconsistency() {
            Some(wrong) => Err(IndexError::refused(&path, wrong)),
            None => write_whole(&path, sealed(self).as_bytes()),
        }
    }

    fn wrong_order(&self) -> Option<String> {
        let OrderEntry { name, global } = self.order.as_ref()?;
        let is_global = |order| matches!(order, DocumentOrder::Global { .. });
        if DocumentOrder::named(name).map(is_global) != Some(global.is_some()) {
            return Some(format!("the order `{name}` is not known"));
        }
        let Statistics { documents: all, tokens: of_all, .. } = self.statistics;
        let fits = |global: &GlobalEntry| {
            let GlobalEntry { documents, tokens, .. } = *global;
            u64::from(documents) == all && tokens == of_all && global.parameters().is_some()
        };
        let is_one = matches!(&self.runs[..], [RunEntry { deleted: None, .. }]);
        match global {
            Some(global) if !is_one || !fits(global) => {
                Some("the global order is that of other documents".into())
            }
            _ => None,
        }
    }

    fn wrong_fields(&self) -> Option<String> {
        let Settings { fields, .. } = &self.settings;
        if let Err(error) = IndexFields::new(fields.iter().map(String::as_str)) {
            return Some(error.to_string());
        }
        let mut sums = vec![0u64; fields.len()];
        for run in &self.runs {
            if run.field_tokens.len() != fields.len() {
                let found = run.field_tokens.len();
                return Some(format!("run {} has {found} fields of {}", run.name, fields.len()));
            }
            let fields = sums.iter_mut().zip(&run.field_tokens);
            fields.for_each(|(sum, tokens)| *sum = sum.saturating_add(*tokens));
        }
        let found = &self.statistics.field_tokens;
        (sums != *found).then(|| format!("fields of runs have {sums:?} tokens, of all {found:?}"))
    }

    /// What is wrong when the parts are looked at together.
    fn inconsistency(&self) -> Option<String> {
        if self.format != VERSION {
            return Some(format!("format is {} and not {VERSION}", self.format));
        }
        if self.settings.form().is_none() {
            let Settings { codec, block_size, .. } = &self.settings;
            return Some(format!("codec `{codec}` with blocks of {block_size} is not known"));
        }
        if let Some(wrong) = self.wrong_order().or_else(|| self.wrong_fields()) {
            return Some(wrong);
        }
        let mut next = 0u64;
        let mut postings = 0u64;
        let mut terms = 0u64;
        let mut tokens = 0u64;
        let mut documents = 0u64;
        let mut expected = vec![INPUTS.to_string()];
        let mut optional = Vec::new();
        for run in &self.runs {
            if !is_run_name(&run.name) {
                return Some(format!("`{}` is not the name of a run", run.name));
            }
            if run.holder() >= MOST_PROCESSES {
                return Some(format!("process {} holds run {}", run.holder(), run.name));
            }
            if u64::from(run.first_docid) != next {
                return Some(format!(
                    "run {} begins at {} and not at {next}",
                    run.name, run.first_docid
                ));
            }
            next += u64::from(run.documents);
            let deleted = run.deleted.unwrap_or_default();
            let left = (
                run.documents.checked_sub(deleted.documents),
                run.postings.checked_sub(deleted.postings),
                run.tokens.checked_sub(deleted.tokens),
                deleted.documents.checked_sub(deleted.counted),
            );
            let (Some(more), Some(more_postings), Some(more_tokens), Some(_)) = left else {
                return Some(format!("more is deleted of run {} than there is", run.name));
            };
            if run.deleted.is_some() && deleted.documents == 0 {
                return Some(format!("nothing is deleted of run {}", run.name));
            }
            documents += u64::from(more);
            postings = postings.saturating_add(more_postings);
            tokens = tokens.saturating_add(more_tokens);
            terms = terms.saturating_add(run.terms);
            let end = u64::from(run.first_input) + u64::from(run.inputs);
            if end > self.inputs {
                return Some(format!("run {} lies in {end} inputs of {}", run.name, self.inputs));
            }
            expected.extend(FileKind::OF_RUN.map(|kind| run.file(kind)));
            expected.extend(self.settings.positions.then(|| run.file(FileKind::Positions)));
            let has_fields = !self.settings.fields.is_empty();
            expected.extend(has_fields.then(|| run.file(FileKind::Fields)));
            let has_columns = !self.settings.columns.is_empty();
            expected.extend(has_columns.then(|| run.file(FileKind::Columns)));
            let has_records = self.settings.record_parts() > 0;
            expected.extend(has_records.then(|| run.file(FileKind::Texts)));
            optional.extend(FileKind::OPTIONAL.map(|kind| run.file(kind)));
        }
        if self.runs.iter().any(|run| run.deleted.is_some()) {
            expected.push(DELETIONS.to_string());
        }
        let statistics = &self.statistics;
        if documents != statistics.documents || next > u64::from(u32::MAX) {
            return Some(format!("runs hold {documents} documents of {}", statistics.documents));
        }
        if postings != statistics.postings {
            return Some(format!("runs hold {postings} postings of {}", statistics.postings));
        }
        if tokens != statistics.tokens {
            return Some(format!("runs hold {tokens} tokens of {}", statistics.tokens));
        }
        // A term whose documents are all deleted and counted is none of the index.
        let whole = self.runs.iter().filter(|run| run.counted() == 0);
        let most = whole.map(|run| run.terms).max().unwrap_or(0);
        if !(most..=terms).contains(&statistics.terms) {
            return Some(format!("{} terms do not fit those of the runs", statistics.terms));
        }
        let has_files = self.has_files(expected, &optional);
        (!has_files).then(|| "files are not those of every run".into())
    }

    /// Whether the files are those that are expected, and perhaps some that are optional.
    fn has_files(&self, mut expected: Vec<String>, optional: &[String]) -> bool {
        let files = self.files.iter().filter(|file| !optional.contains(&file.name));
        let mut found: Vec<_> = files.map(|entry| entry.name.clone()).collect();
        expected.sort();
        found.sort();
        expected == found
    }
}

pub(crate) fn find_file<'a>(
    files: &'a [FileEntry],
    generation: &Path,
    name: &str,
) -> Result<&'a FileEntry, IndexError> {
    files.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let expected = format!("an entry for {name}");
        IndexError::damaged(&generation.join(MANIFEST), 0, expected, "none")
    })
}

/// The text of a manifest, or of another small file of an index, with its checksum.
pub(crate) fn sealed(manifest: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(manifest);
    let text = text.expect("numbers, strings and lists of them are always JSON");
    // The checksum takes the place of the closing brace.
    let start = text.strip_suffix("\n}").unwrap_or(&text).to_string() + ",\n  ";
    let crc = crc32fast::hash(start.as_bytes());
    start + &tail(crc)
}

/// The end of a manifest, from its checksum on.
fn tail(crc: u32) -> String {
    format!("\"checksum\": \"{crc:08x}\"\n}}\n")
}
