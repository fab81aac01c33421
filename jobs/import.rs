//! `millrace import`.

use crate::Usage;
use crate::args::{Common, show_count, size};
use anyhow::Context;
use millrace::index::ciff::{Import, import};
use millrace::index::error::IndexError;
use millrace::index::list::{Form, ListCodec};
use millrace::index::manifest::{Settings, StopWordsEntry};
use millrace::input::hash::entry_of;
use millrace::text::stemmer::Stemmer;
use millrace::text::stop_words::StopWords;
use millrace::text::tokenizer::Tokenizer;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index; a new generation in it.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The form: ciff, the Common Index File Format.
    #[arg(long, default_value = "ciff", value_parser = ["ciff"])]
    format: String,
    /// How queries are cut into tokens: as the exporter's documents were.
    #[arg(long, default_value = "words", value_parser = crate::args::tokenizer, value_name = "NAME")]
    tokenizer: Tokenizer,
    /// The stemmer of queries: the exporter's.
    #[arg(long, default_value = "english")]
    stemmer: Stemmer,
    /// Words of queries that are left out: those that the exporter has not indexed.
    #[arg(long, default_value = "english", value_name = "NAME|FILE")]
    stopwords: PathBuf,
    /// How postings are coded: bp128, newpfd, vbyte, rice or pfor.
    #[arg(long, default_value = "bp128", value_parser = crate::args::codec, value_name = "NAME")]
    codec: ListCodec,
    /// Postings coded together: 64, 128 or 512 (newpfd: 64 or 128).
    #[arg(long, default_value = "128", value_parser = crate::args::block_size, value_name = "N")]
    block_size: usize,
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
    let (codec, block_len) = (args.codec, args.block_size);
    let form = Form::new(codec, block_len)
        .ok_or_else(|| Usage(IndexError::NoForm { codec, block_len }.to_string()))?;
    let words = StopWords::from_option(&args.stopwords).context("reading the stop words")?;
    let settings = Settings {
        tokenizer: args.tokenizer.recorded(),
        stemmer: args.stemmer.name().to_string(),
        stop_words: StopWordsEntry {
            name: words.name().to_string(),
            words: words.words().map(str::to_string).collect(),
        },
        codec: form.name().to_string(),
        block_size: form.block_len() as u32,
        memory_bytes: args.memory,
        format: args.format.clone(),
        ..Settings::default()
    };
    let input = entry_of(&args.file, &args.format)
        .with_context(|| format!("reading {}", args.file.display()))?;
    let (command, keep) = (crate::args::command(), args.keep);
    let what = Import { command, settings, input, keep, memory_bytes: args.memory };
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
