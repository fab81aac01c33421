//! `millrace info`.

use crate::args::{Common, show_bytes, show_count};
use millrace::index::format::shard_name;
use millrace::index::generation::Generation;
use millrace::index::merge::count_distinct_terms;
use millrace::index::shards::ShardedManifest;
use millrace::rebuild::history::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
    /// What its rebuilds have done, the oldest first.
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.history {
        return history(args);
    }
    if let Some(manifest) = ShardedManifest::live(&args.index)? {
        return sharded(args, &manifest);
    }
    let generation = Generation::open(&args.index, false)?;
    let m = generation.manifest();
    let s = &m.statistics;
    let deleted: u64 =
        m.runs.iter().map(|run| u64::from(run.documents - run.live_documents())).sum();
    let json = serde_json::json!({
        "documents": s.documents,
        "terms": s.terms,
        "postings": s.postings,
        "tokens": s.tokens,
        "codec": m.settings.codec,
        "block_size": m.settings.block_size,
        "runs": m.runs.len(),
        "deleted_documents": deleted,
        "generation": m.generation,
        "settings": m.settings,
        "order": m.order,
        "empty_documents": s.empty_documents,
        "duplicate_names": s.duplicate_names,
        "skipped": s.skipped,
        "inputs": m.inputs.len(),
        "bytes": m.files.iter().map(|f| f.bytes).sum::<u64>(),
        "files": m.files,
    });
    let mut text = String::new();
    if args.json {
        writeln!(text, "{json}")?;
    } else {
        let mut row = |name: &str, value: String| writeln!(text, "{name:<16} {value}");
        row("documents", show_count(s.documents))?;
        row("terms", show_count(s.terms))?;
        row("postings", show_count(s.postings))?;
        row("tokens", show_count(s.tokens))?;
        row("empty documents", show_count(s.empty_documents))?;
        row("duplicate names", show_count(s.duplicate_names))?;
        if deleted > 0 {
            row("deleted", format!("{} documents, which a merge drops", show_count(deleted)))?;
        }
        for (reason, n) in &s.skipped {
            row("skipped", format!("{} {reason}", show_count(*n)))?;
        }
        row("stemmer", m.settings.stemmer.clone())?;
        let words = &m.settings.stop_words;
        row("stop words", format!("{} ({} words)", words.name, words.words.len()))?;
        row("codec", format!("{}, blocks of {}", m.settings.codec, m.settings.block_size))?;
        if let Some(order) = &m.order {
            row("order", order.to_string())?;
        }
        row("runs", show_count(m.runs.len() as u64))?;
        row("generation", m.generation.to_string())?;
        row("made", format!("{} s after 1970 by `{}`", m.created, m.command))?;
        for input in &m.inputs {
            row(
                "input",
                format!("{} ({}, {})", input.path, input.format, show_bytes(input.bytes)),
            )?;
        }
        for file in &m.files {
            row("file", format!("{} ({})", file.name, show_bytes(file.bytes)))?;
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let path = args.common.report.as_deref();
    crate::report::write(path, serde_json::json!({"job": "info", "index": json}), 0.0, 1, &[])
}

/// Prints the history of the rebuilds: an array of JSON, or a line each.
fn history(args: &Args) -> anyhow::Result<()> {
    let records = millrace::rebuild::history::read(&args.index)?;
    let mut text = String::new();
    if args.json {
        text = serde_json::to_string_pretty(&records)? + "\n";
    }
    for record in records.iter().filter(|_| !args.json) {
        let outcome = match (record.outcome, record.incremental) {
            (Outcome::Failed, _) => "failed",
            (Outcome::Unchanged, _) => "unchanged",
            (Outcome::Published, true) => "added to",
            (Outcome::Published, false) => "built",
        };
        let generation = record.generation.map_or("-".into(), |number| number.to_string());
        let (documents, inputs) = (record.documents, record.inputs);
        writeln!(
            text,
            "{} {:>9.2} s  {outcome:<9}  generation {generation}  {} documents (+{} ~{} -{})  files +{} ~{} -{}{}",
            record.started.split('.').next().unwrap_or_default(),
            record.seconds,
            show_count(documents.live),
            show_count(documents.added),
            show_count(documents.changed),
            show_count(documents.removed),
            inputs.added,
            inputs.changed,
            inputs.removed,
            record.reason.as_ref().map(|reason| format!("  {reason}")).unwrap_or_default(),
        )?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let path = args.common.report.as_deref();
    let totals = serde_json::json!({"job": "info", "history": records});
    crate::report::write(path, totals, 0.0, 1, &[])
}

/// Memory to count terms in.
const COUNT_BYTES: u64 = 64 << 20;

/// Counts the different terms that the shards have together; nobody knows if some are on other disks.
fn distinct_terms(index: &Path, m: &ShardedManifest) -> anyhow::Result<Option<u64>> {
    let shards = 0..m.shards.len();
    if shards.clone().any(|shard| !m.folder(index, shard).is_dir()) {
        return Ok(None);
    }
    let open = |shard| m.open(index, shard, false);
    let shards = shards.map(open).collect::<Result<Vec<_>, _>>()?;
    let mut runs = Vec::new();
    for shard in &shards {
        runs.extend(shard.manifest().runs.iter().map(|run| (shard.path(), run)));
    }
    Ok(Some(count_distinct_terms(&runs, COUNT_BYTES)?))
}

/// Prints what the manifest of an index of several shards says.
fn sharded(args: &Args, m: &ShardedManifest) -> anyhow::Result<()> {
    let mut skipped = BTreeMap::new();
    for (reason, n) in m.shards.iter().flat_map(|shard| &shard.statistics.skipped) {
        *skipped.entry(reason.as_str()).or_insert(0u64) += n;
    }
    let terms = distinct_terms(&args.index, m)?;
    let json = serde_json::json!({
        "documents": m.documents(),
        "terms": terms,
        "postings": m.sum(|s| s.postings),
        "tokens": m.tokens(),
        "codec": m.settings.codec,
        "block_size": m.settings.block_size,
        "runs": m.shards.iter().map(|shard| shard.runs).sum::<u64>(),
        "generation": m.generation,
        "settings": m.settings,
        "empty_documents": m.sum(|s| s.empty_documents),
        "duplicate_names": m.duplicate_names,
        "skipped": skipped,
        "inputs": m.shards.iter().map(|shard| shard.inputs).sum::<u64>(),
        "bytes": m.shards.iter().map(|shard| shard.bytes).sum::<u64>(),
        "shards": m.shards,
    });
    let mut text = String::new();
    if args.json {
        writeln!(text, "{json}")?;
    } else {
        let mut row = |name: &str, value: String| writeln!(text, "{name:<16} {value}");
        row("documents", show_count(m.documents()))?;
        row("terms", terms.map_or("unknown: some shards are not here".into(), show_count))?;
        row("postings", show_count(m.sum(|s| s.postings)))?;
        row("tokens", show_count(m.tokens()))?;
        row("empty documents", show_count(m.sum(|s| s.empty_documents)))?;
        row("duplicate names", show_count(m.duplicate_names))?;
        for (reason, n) in &skipped {
            row("skipped", format!("{} {reason}", show_count(*n)))?;
        }
        row("stemmer", m.settings.stemmer.clone())?;
        let words = &m.settings.stop_words;
        row("stop words", format!("{} ({} words)", words.name, words.words.len()))?;
        row("codec", format!("{}, blocks of {}", m.settings.codec, m.settings.block_size))?;
        row("generation", m.generation.to_string())?;
        row("made", format!("{} s after 1970 by `{}`", m.created, m.command))?;
        for (number, shard) in m.shards.iter().enumerate() {
            let s = &shard.statistics;
            let value = format!(
                "{} documents from docid {}, {} terms, {} runs, {}",
                show_count(s.documents),
                shard.first_docid,
                show_count(s.terms),
                shard.runs,
                show_bytes(shard.bytes)
            );
            row(&shard_name(number), value)?;
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let path = args.common.report.as_deref();
    crate::report::write(path, serde_json::json!({"job": "info", "index": json}), 0.0, 1, &[])
}
