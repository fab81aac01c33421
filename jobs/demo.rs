//! `millrace demo`: an index over a small collection, and readable answers to a few queries.

use crate::build::explain;
use crate::cli::args::{command, workers_of};
use crate::cli::{report, signals};
use crate::query::talk::{PROMPT, columns};
use anyhow::Context;
use millrace::inside::query::Talk;
use millrace::inside::shown::number_of;
use millrace::{BuildOptions, Lines, Scoring, Snapshot, Wanted, build};
use serde_json::json;
use std::io::{IsTerminal, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The collection that comes with millrace, and queries for it.
const FILES: [(&str, &[u8]); 2] = [
    ("a.jsonl", include_bytes!("../datasets/tiny/a.jsonl")),
    ("b.jsonl.gz", include_bytes!("../datasets/tiny/b.jsonl.gz")),
];
const QUERIES: &str = include_str!("../datasets/tiny/queries.tsv");
const SHOWN: usize = 5;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// File or folder of your own. Queries are then read from the keyboard.
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Show a page to search in, at this address and port.
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8080")]
    serve: Option<std::net::SocketAddr>,
    /// Number of worker threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("millrace-demo-").tempdir()?;
    let index = folder.path().join("index");
    let input = match &args.path {
        Some(path) => path.clone(),
        None => {
            let input = folder.path().join("collection");
            std::fs::create_dir(&input)?;
            for (name, bytes) in FILES {
                std::fs::write(input.join(name), bytes).context("unpacking the collection")?;
            }
            input
        }
    };
    let mut options = BuildOptions::of_paths(&index, [input]);
    let control = options.control.clone();
    options.command = command();
    options.workers = workers_of(args.workers)?;
    #[cfg(feature = "serve")]
    if let Some(listen) = args.serve {
        options.store = true;
        build(options).map_err(explain)?;
        return crate::serve::run(&crate::serve::Args::of_demo(&index, listen)?);
    }
    // The prompt does not poll the control.
    signals::watch(&control, Some(Duration::from_secs(1)))?;
    let built = build(options).map_err(explain)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "Indexed {}: {}, {}, {}.",
        args.path
            .as_deref()
            .unwrap_or(Path::new("the collection that comes with millrace"))
            .display(),
        number_of(built.documents, "document", "documents"),
        number_of(built.terms, "term", "terms"),
        number_of(built.postings, "posting", "postings")
    )?;
    let snapshot = Snapshot::open(&index, Scoring::default())?;
    let wanted = Wanted { k: SHOWN, ..Wanted::default() };
    let mut talk = Talk::new(snapshot, wanted, columns()).bold(std::io::stdout().is_terminal());
    if args.path.is_none() {
        for query in Lines::new(QUERIES.as_bytes()) {
            let query = query.context("reading the queries")??;
            write!(out, "\n{}\n{}", query.text, talk.answer(&query)?)?;
        }
        writeln!(out, "\nNow with your own files: millrace demo PATH, or see README.md.")?;
    } else {
        let is_terminal = std::io::stdin().is_terminal();
        if is_terminal {
            writeln!(out, "Type a query and press Enter; Ctrl-D ends.")?;
        }
        let prompt = is_terminal.then_some(PROMPT);
        talk.answer_all(Lines::new(std::io::stdin()), prompt, out)?;
    }
    let totals = json!({
        "job": "demo",
        "documents": built.documents,
        "terms": built.terms,
        "postings": built.postings,
    });
    report::write(totals, built.workers)
}
