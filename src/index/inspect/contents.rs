//! The contents of an index by its manifests.

use crate::index::cache_plan::CachePlan;
use crate::index::deletions::live_runs;
use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::format::shard_name;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::sharded::{ShardEntry, ShardedManifest};
use crate::index::generations::manifest::{RunEntry, Settings, Statistics};
use crate::index::inputs::InputEntry;
use crate::index::merge::count_distinct_terms;
use crate::index::order::OrderEntry;
use crate::shown::{bytes, count, number_of, visible};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

const COUNT_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug, Serialize)]
pub struct Contents {
    /// Empty ones too, deleted ones not.
    pub documents: u64,
    /// Different terms; unknown if some shards are on other disks. Terms and postings are those of
    /// deleted documents too, as far as these are not counted.
    pub terms: Option<u64>,
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
    /// Empty if there are shards.
    pub input_files: Vec<InputEntry>,
    /// Bytes of all files but the manifests.
    pub bytes: u64,
    /// Those of shards are in their manifests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_plan: Option<PlanEntry>,
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
    /// Reads the manifests of the live generation of the index in the folder `index`, and all
    /// lexicons of shards to count the terms.
    pub fn of(index: &Path) -> Result<Self, IndexError> {
        match ShardedManifest::live(index)? {
            Some(manifest) => Self::of_shards(index, manifest),
            None => {
                let generation = Generation::open(index)?;
                let plan = CachePlan::open(&generation)?;
                let mut contents = Self::of_whole(&generation)?;
                contents.cache_plan = plan.as_ref().map(PlanEntry::of);
                Ok(contents)
            }
        }
    }

    fn of_whole(generation: &Generation) -> Result<Self, IndexError> {
        let manifest = generation.manifest().clone();
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
            terms: Some(terms),
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
            shards: Vec::new(),
            cache_plan: None,
        })
    }

    fn of_shards(index: &Path, manifest: ShardedManifest) -> Result<Self, IndexError> {
        let mut skipped = BTreeMap::new();
        for (reason, n) in manifest.shards.iter().flat_map(|shard| &shard.statistics.skipped) {
            *skipped.entry(reason.clone()).or_insert(0) += n;
        }
        // The manifest may say anything.
        let all = |number: fn(&ShardEntry) -> u64| {
            manifest.shards.iter().map(number).fold(0, u64::saturating_add)
        };
        Ok(Self {
            documents: manifest.documents(),
            terms: distinct_terms(index, &manifest)?,
            postings: manifest.sum(|s| s.postings),
            tokens: manifest.tokens(),
            field_tokens: manifest.field_tokens(),
            codec: manifest.settings.codec.clone(),
            block_size: manifest.settings.block_size,
            runs: all(|shard| shard.runs),
            deleted_documents: all(|s| u64::from(s.docids).saturating_sub(s.statistics.documents)),
            uncounted_documents: 0,
            generation: manifest.generation,
            created: manifest.created,
            command: manifest.command.clone(),
            settings: manifest.settings.clone(),
            order: None,
            empty_documents: manifest.sum(|s| s.empty_documents),
            duplicate_names: manifest.duplicate_names,
            skipped,
            inputs: all(|shard| shard.inputs),
            input_files: Vec::new(),
            bytes: all(|shard| shard.bytes),
            files: Vec::new(),
            shards: manifest.shards,
            cache_plan: None,
        })
    }
}

/// Different terms of all shards; unknown if some are on other disks.
fn distinct_terms(index: &Path, manifest: &ShardedManifest) -> Result<Option<u64>, IndexError> {
    let shards = 0..manifest.shards.len();
    if shards.clone().any(|shard| !manifest.folder(index, shard).is_dir()) {
        return Ok(None);
    }
    let open = |shard| manifest.open(index, shard);
    let shards = shards.map(open).collect::<Result<Vec<_>, _>>()?;
    let mut runs = Vec::new();
    for shard in &shards {
        let live = live_runs(shard.path(), &shard.manifest().runs)?;
        runs.extend(live.into_iter().map(|live| (shard.path(), live)));
    }
    count_distinct_terms(&runs, COUNT_BYTES, |_| Ok(true)).map(Some)
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
        row("terms", self.terms.map_or("unknown: some shards are not here".into(), count))?;
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
        for (number, shard) in self.shards.iter().enumerate() {
            let s = &shard.statistics;
            let value = format!(
                "{} from docid {}, {}, {}, {}",
                number_of(s.documents, "document", "documents"),
                shard.first_docid,
                number_of(s.terms, "term", "terms"),
                number_of(shard.runs, "run", "runs"),
                bytes(shard.bytes)
            );
            row(&shard_name(number), value)?;
        }
        Ok(())
    }
}
