//! The contents of an index by its manifest.

use crate::index::cache_plan::CachePlan;
use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::format::generation_name;
use crate::index::generations::generation::{Generation, with_live};
use crate::index::generations::keep::kept;
use crate::index::generations::manifest::held::WhichRuns;
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::manifest::{Manifest, RunEntry, Settings, Statistics};
use crate::index::inputs::InputEntry;
use crate::index::inspect::totals::Totals;
use crate::index::order::OrderEntry;
use crate::shown::{bytes, count, number_of, visible};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

#[derive(Clone, Debug, Serialize)]
pub struct Contents {
    /// Empty ones too, deleted ones not.
    pub documents: u64,
    /// Different terms. Terms and postings are those of deleted documents too, as far as these are
    /// not counted.
    pub terms: u64,
    pub postings: u64,
    pub tokens: u64,
    /// Of each field of the index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub field_tokens: Vec<u64>,
    pub codec: String,
    pub block_size: u32,
    pub runs: u64,
    /// Documents that are left out of runs until a merge.
    pub deleted_documents: u64,
    /// Those of them that `terms` and `postings` still have.
    pub uncounted_documents: u64,
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    pub created: u64,
    pub command: String,
    pub settings: Settings,
    pub order: Option<OrderEntry>,
    /// Documents without an indexed token.
    pub empty_documents: u64,
    /// Documents whose name an earlier one has.
    pub duplicate_names: u64,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
    pub inputs: u64,
    pub input_files: Vec<InputEntry>,
    /// Bytes of all files but the manifests.
    pub bytes: u64,
    pub files: Vec<FileEntry>,
    /// By process, of an index of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Totals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_plan: Option<PlanEntry>,
    /// Generations to which one can go back, the one that was live last at the end.
    pub kept: Vec<KeptEntry>,
}

#[derive(Clone, Debug, Serialize)]
pub struct KeptEntry {
    pub generation: u32,
    /// Seconds since 1970 (UTC).
    pub created: u64,
    pub documents: u64,
}

impl fmt::Display for KeptEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let documents = number_of(self.documents, "document", "documents");
        write!(f, "generation {}, {}, {documents}", self.generation, date(self.created))
    }
}

impl KeptEntry {
    /// Those of an index that can be read; `check` tells of others.
    fn all(index: &Path) -> Vec<Self> {
        let numbers = kept(index).unwrap_or_default().into_iter();
        let read = |number| Summary::read(&index.join(generation_name(number))).ok();
        let entry = |Summary { generation, created, statistics, .. }| Self {
            generation,
            created,
            documents: statistics.documents,
        };
        numbers.filter_map(read).map(entry).collect()
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct PlanEntry {
    pub generation: u32,
    pub cache: String,
    /// The greatest share of a list.
    pub lambda: f64,
    /// Hits of the queries whose visits were counted.
    pub k: u32,
    /// Queries of the log that counted.
    pub queries: u64,
    /// The memory that the plan was made for.
    pub memory_bytes: u64,
    pub cached_bytes: u64,
    /// Lists of which something is cached.
    pub lists: u64,
}

impl PlanEntry {
    fn of(plan: &CachePlan) -> Self {
        let &CachePlan { of, policy, lambda, k, queries, memory_bytes, cached_bytes, .. } = plan;
        let cache = policy.name().into();
        let lists = plan.cached.lists().len() as u64;
        let generation = of.generation;
        Self { generation, cache, lambda, k, queries, memory_bytes, cached_bytes, lists }
    }
}

impl Contents {
    /// Reads the manifest of the live generation of the index in the folder `index`, and opens its
    /// runs, as far as they are on this disk.
    pub fn of(index: &Path) -> Result<Self, IndexError> {
        let generation = with_live(index, |folder| match Generation::open_folder(folder) {
            Err(IndexError::Elsewhere { .. }) => Generation::open_some(folder, WhichRuns::Here),
            opened => opened,
        })?;
        let plan = CachePlan::open(&generation)?;
        let mut contents = Self::of_whole(&generation)?;
        contents.cache_plan = plan.as_ref().map(PlanEntry::of);
        contents.kept = KeptEntry::all(index);
        Ok(contents)
    }

    fn of_whole(generation: &Generation) -> Result<Self, IndexError> {
        let manifest = generation.whole_manifest().clone();
        let processes = held(generation.path(), &manifest);
        let deleted = |run: &RunEntry| run.documents - run.live_documents();
        let uncounted = |run: &RunEntry| deleted(run) - run.counted();
        let Statistics {
            documents,
            terms,
            postings,
            tokens,
            field_tokens,
            empty_documents,
            duplicate_names,
            skipped,
        } = manifest.statistics;
        Ok(Self {
            documents,
            terms,
            postings,
            tokens,
            field_tokens,
            codec: manifest.settings.codec.clone(),
            block_size: manifest.settings.block_size,
            runs: manifest.runs.len() as u64,
            deleted_documents: manifest.runs.iter().map(|run| u64::from(deleted(run))).sum(),
            uncounted_documents: manifest.runs.iter().map(|run| u64::from(uncounted(run))).sum(),
            generation: manifest.generation,
            created: manifest.created,
            command: manifest.command,
            settings: manifest.settings,
            order: manifest.order,
            empty_documents,
            duplicate_names,
            skipped,
            inputs: manifest.inputs,
            input_files: generation.inputs()?.all()?,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            files: manifest.files,
            processes,
            cache_plan: None,
            kept: Vec::new(),
        })
    }
}

/// What each process holds; nothing of an index of one.
fn held(generation: &Path, manifest: &Manifest) -> Vec<Totals> {
    if manifest.runs.iter().all(|run| run.process.is_none()) {
        return Vec::new();
    }
    let of = |process| WhichRuns::Of(process).of(generation, manifest.clone()).0;
    (0..manifest.processes()).map(|process| Totals::of(&of(process))).collect()
}

const SHOWN_INPUTS: usize = 10;

fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
    time.map_or(format!("{seconds} s after 1970"), |time| {
        time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
    })
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Paths, fields and the command come from elsewhere.
        let mut row = |name: &str, value: String| writeln!(f, "{name:<16} {}", visible(&value));
        row("documents", count(self.documents))?;
        row("terms", count(self.terms))?;
        row("postings", count(self.postings))?;
        row("tokens", count(self.tokens))?;
        for (field, tokens) in self.settings.fields.iter().zip(&self.field_tokens) {
            row("field", format!("{field}: {}", number_of(*tokens, "token", "tokens")))?;
        }
        row("empty documents", count(self.empty_documents))?;
        row("duplicate names", count(self.duplicate_names))?;
        if self.deleted_documents > 0 {
            let deleted = number_of(self.deleted_documents, "document", "documents");
            let still = match self.uncounted_documents {
                0 => String::new(),
                some => format!("; terms and postings still have those of {}", count(some)),
            };
            row("deleted", format!("{deleted}, dropped by the next merge{still}"))?;
        }
        for (reason, n) in &self.skipped {
            row("skipped", format!("{} {reason}", count(*n)))?;
        }
        let tokenizer = self.settings.tokenizer.as_deref().unwrap_or("words");
        let folded = if self.settings.fold { ", folded" } else { "" };
        row("tokenizer", format!("{tokenizer}{folded}"))?;
        row("stemmer", self.settings.stemmer.clone())?;
        let words = &self.settings.stop_words;
        row(
            "stop words",
            format!("{} ({})", words.name, number_of(words.words.len() as u64, "word", "words")),
        )?;
        row("codec", format!("{}, blocks of {}", self.codec, self.block_size))?;
        self.settings.positions.then(|| row("positions", "of all terms".into())).transpose()?;
        self.settings.texts.then(|| row("texts", "kept".to_string())).transpose()?;
        let (columns, stored) = (&self.settings.columns, &self.settings.stored);
        stored.iter().try_for_each(|field| row("stored", field.clone()))?;
        columns.iter().try_for_each(|column| row("column", column.to_string()))?;
        if let Some(order) = &self.order {
            row("order", order.to_string())?;
        }
        if let Some(plan) = &self.cache_plan {
            let value = format!(
                "{} {}: {} in {}, by {} for {}",
                plan.cache,
                plan.lambda,
                bytes(plan.cached_bytes),
                number_of(plan.lists, "list", "lists"),
                number_of(plan.queries, "query", "queries"),
                number_of(plan.k as u64, "hit", "hits"),
            );
            row("cache plan", value)?;
        }
        row("runs", count(self.runs))?;
        row("generation", self.generation.to_string())?;
        row("made", format!("{} by `{}`", date(self.created), self.command))?;
        self.kept.iter().try_for_each(|kept| row("kept", kept.to_string()))?;
        for input in self.input_files.iter().take(SHOWN_INPUTS) {
            let fields = |what: &str, fields: &[String]| match fields {
                [] => String::new(),
                fields => format!(", {what} from {}", fields.join(", ")),
            };
            let names = fields("names", &input.id_fields);
            let texts = fields("text", &input.taken_fields);
            let InputEntry { path, format, bytes: read, .. } = input;
            row("input", format!("{} ({format}, {}{names}{texts})", path.display(), bytes(*read)))?;
        }
        if let Some(others) =
            self.input_files.get(SHOWN_INPUTS..).filter(|others| !others.is_empty())
        {
            let sum = others.iter().map(|input| input.bytes).sum();
            let others = number_of(others.len() as u64, "other file", "other files");
            row("input", format!("{others} ({}); JSON lists all", bytes(sum)))?;
        }
        for file in &self.files {
            row("file", format!("{} ({})", file.name, bytes(file.bytes)))?;
        }
        for (number, held) in self.processes.iter().enumerate() {
            let value = format!(
                "{}, {}, {}",
                number_of(held.documents, "document", "documents"),
                number_of(held.postings, "posting", "postings"),
                bytes(held.index_bytes)
            );
            row(&format!("process {number}"), value)?;
        }
        Ok(())
    }
}
