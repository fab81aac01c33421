//! `millrace import`.

use crate::args::{Common, ExchangeFormat, show_count, size};
use crate::index_args::IndexArgs;
use anyhow::Context;
use millrace::index::ciff::{Import, import};
use millrace::index::manifest::Settings;
use millrace::input::hash::entry_of;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index; a new generation in it.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    format: ExchangeFormat,
    #[command(flatten)]
    how: IndexArgs,
    /// Generations to keep that were live before.
    #[arg(long, default_value_t = 1, value_name = "N")]
    keep: usize,
    /// The memory for sorting names and counting terms; terms and lengths come on top.
    #[arg(long, default_value = "64M", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    common: Common,
    /// The file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let (analysis, form) = (args.how.analysis()?, args.how.form()?);
    let (memory_bytes, format) = (args.memory, args.format.name().to_string());
    let settings = Settings { memory_bytes, format, ..Settings::of(&analysis, form) };
    let input = entry_of(&args.file, &settings.format)
        .with_context(|| format!("reading {}", args.file.display()))?;
    let (command, keep) = (crate::args::command(), args.keep);
    let what = Import { command, settings, input, keep, memory_bytes };
    let manifest = import(&args.file, &args.index, what)?;
    let (seconds, found) = (start.elapsed().as_secs_f64(), &manifest.statistics);
    if !args.common.quiet {
        say!(
            "{}: {} terms, {} postings and {} documents in {seconds:.2} s, generation {}",
            args.index.display(),
            show_count(found.terms),
            show_count(found.postings),
            show_count(found.documents),
            manifest.generation
        );
    }
    let totals = serde_json::json!({
        "job": "import", "generation": manifest.generation, "documents": found.documents,
        "terms": found.terms, "postings": found.postings, "tokens": found.tokens,
    });
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}
