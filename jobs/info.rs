//! `millrace info`.

use crate::args::{Common, show_bytes, show_count};
use millrace::index::contents::Contents;
use millrace::index::format::shard_name;
use millrace::rebuild::history::Outcome;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

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
    let contents = Contents::of(&args.index)?;
    let json = serde_json::to_value(&contents)?;
    let text = match args.json {
        true => format!("{json}\n"),
        false => readable(&contents)?,
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let path = args.common.report.as_deref();
    crate::report::write(path, serde_json::json!({"job": "info", "index": json}), 0.0, 1, &[])
}

/// A row for each thing.
fn readable(c: &Contents) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut row = |name: &str, value: String| writeln!(text, "{name:<16} {value}");
    row("documents", show_count(c.documents))?;
    row("terms", c.terms.map_or("unknown: some shards are not here".into(), show_count))?;
    row("postings", show_count(c.postings))?;
    row("tokens", show_count(c.tokens))?;
    row("empty documents", show_count(c.empty_documents))?;
    row("duplicate names", show_count(c.duplicate_names))?;
    if c.deleted_documents > 0 {
        let deleted = show_count(c.deleted_documents);
        row("deleted", format!("{deleted} documents, which a merge drops"))?;
    }
    for (reason, n) in &c.skipped {
        row("skipped", format!("{} {reason}", show_count(*n)))?;
    }
    row("tokenizer", c.settings.tokenizer.clone().unwrap_or_else(|| "words".into()))?;
    row("stemmer", c.settings.stemmer.clone())?;
    let words = &c.settings.stop_words;
    row("stop words", format!("{} ({} words)", words.name, words.words.len()))?;
    row("codec", format!("{}, blocks of {}", c.codec, c.block_size))?;
    if let Some(order) = &c.order {
        row("order", order.to_string())?;
    }
    if let Some(plan) = &c.cache_plan {
        let of = match plan.generation == c.generation {
            true => String::new(),
            false => format!("; about generation {}, so of no use now", plan.generation),
        };
        let value = format!(
            "{} {}: {} in {} lists, by {} queries for {} hits{of}",
            plan.cache,
            plan.lambda,
            show_bytes(plan.cached_bytes),
            show_count(plan.lists),
            show_count(plan.queries),
            plan.k,
        );
        row("cache plan", value)?;
    }
    row("runs", show_count(c.runs))?;
    row("generation", c.generation.to_string())?;
    row("made", format!("{} s after 1970 by `{}`", c.created, c.command))?;
    for input in &c.input_files {
        row("input", format!("{} ({}, {})", input.path, input.format, show_bytes(input.bytes)))?;
    }
    for file in &c.files {
        row("file", format!("{} ({})", file.name, show_bytes(file.bytes)))?;
    }
    for (number, shard) in c.shards.iter().enumerate() {
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
    Ok(text)
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
