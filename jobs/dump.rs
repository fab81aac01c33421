//! `millrace dump`.

use crate::cli::progress::{DrawnProgress, in_things};
use millrace::Generation;
use millrace::inside::index::{Stop, documents, terms};
use serde_json::json;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// jsonl: one JSON object on each line. tsv: the same fields, with one line for each posting.
    #[arg(long, default_value = "jsonl", value_name = "jsonl|tsv", value_parser = ["jsonl", "tsv"])]
    format: String,
    /// terms: term, df, cf, bytes; postings: term, docids and tfs; documents: docid, name, tokens,
    /// input, offset, bytes.
    #[arg(value_name = "terms|postings|documents", value_parser = ["terms", "postings", "documents"])]
    what: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let generation = Generation::open(&args.index)?;
    let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    let progress = Stop::default();
    let line = in_things("writing", "line", "lines");
    let is_drawn = !std::io::stdout().is_terminal();
    let _drawn = is_drawn.then(|| DrawnProgress::start(&progress, line));
    let tsv = args.format == "tsv";
    let rows = match &*args.what {
        "documents" => documents(&generation, tsv, &mut out, &progress)?,
        what => terms(&generation, tsv, what == "postings", &mut out, &progress)?,
    };
    anyhow::Context::context(out.flush(), "writing what the index holds")?;
    crate::cli::report::write(json!({"job": "dump", "what": args.what, "rows": rows}), 1)
}
