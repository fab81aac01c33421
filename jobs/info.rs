//! `millrace info`.

use crate::args::{Common, show_bytes, show_count};
use millrace::index::generation::Generation;
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
    #[command(flatten)]
    common: Common,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let generation = Generation::open(&args.index, false)?;
    let m = generation.manifest();
    let s = &m.statistics;
    let json = serde_json::json!({
        "documents": s.documents,
        "terms": s.terms,
        "postings": s.postings,
        "tokens": s.tokens,
        "codec": m.settings.codec,
        "block_size": m.settings.block_size,
        "runs": m.runs.len(),
        "generation": m.generation,
        "settings": m.settings,
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
        for (reason, n) in &s.skipped {
            row("skipped", format!("{} {reason}", show_count(*n)))?;
        }
        row("stemmer", m.settings.stemmer.clone())?;
        let words = &m.settings.stop_words;
        row("stop words", format!("{} ({} words)", words.name, words.words.len()))?;
        row("codec", format!("{}, blocks of {}", m.settings.codec, m.settings.block_size))?;
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
