//! `millrace demo`: an index over a small collection, and a handful of queries, readably.

use crate::args::command;
use crate::build::explain;
use crate::signals;
use anyhow::Context;
use millrace::build::{BuildOptions, build};
use millrace::query::lines::{Lines, Query};
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::Wanted;
use std::fmt::Write as _;
use std::io::{IsTerminal, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The collection that comes with millrace, and queries for it.
const FILES: [(&str, &[u8]); 2] = [
    ("a.jsonl", include_bytes!("../datasets/tiny/a.jsonl")),
    ("b.jsonl.gz", include_bytes!("../datasets/tiny/b.jsonl.gz")),
];
const QUERIES: &str = include_str!("../datasets/tiny/queries.tsv");
/// Hits that are shown for a query.
const SHOWN: usize = 5;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// A file or folder of your own; type queries at the prompt.
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

/// Runs the job.
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
    // At the prompt nobody looks at the control.
    signals::watch(&control, Some(Duration::from_secs(1)))?;
    let report = build(options).map_err(explain)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "Indexed {}: {} documents, {} terms, {} postings.",
        args.path
            .as_deref()
            .unwrap_or(Path::new("the collection that comes with millrace"))
            .display(),
        report.documents,
        report.terms,
        report.postings
    )?;
    let snapshot = Snapshot::open(&index, false, Scoring::default())?;
    let demo = Demo { snapshot, wanted: Wanted { k: SHOWN, ..Wanted::default() } };
    if args.path.is_none() {
        demo.answer_all(QUERIES.as_bytes())?;
        writeln!(out, "\nNow with your own files: millrace demo PATH, or see README.md.")?;
        return Ok(());
    }
    if std::io::stdin().is_terminal() {
        writeln!(out, "Type a query and press Enter; Ctrl-D ends.")?;
    }
    demo.answer_all(std::io::stdin())
}

/// What queries are answered from.
struct Demo {
    snapshot: Arc<Snapshot>,
    wanted: Wanted,
}

impl Demo {
    /// Answers the queries of a stream; says what is wrong with a line that is none.
    fn answer_all(&self, queries: impl Read) -> anyhow::Result<()> {
        let mut searcher = Searcher::new();
        for query in Lines::new(queries) {
            match query.context("reading the queries")? {
                Ok(query) => self.answer(&mut searcher, &query)?,
                Err(refused) => writeln!(std::io::stdout(), "\n{refused}")?,
            }
        }
        Ok(())
    }

    /// Prints the best hits, each with the begin of its record.
    fn answer(&self, searcher: &mut Searcher, query: &Query) -> anyhow::Result<()> {
        let wanted = query.wanted(&self.wanted);
        let (hits, known) = searcher.search(&self.snapshot, &wanted, &query.text)?;
        let mut text = format!("\n{}\n", query.text);
        if !known {
            text += "     no term of this query is in the index\n";
        }
        let documents = self.snapshot.generation().documents();
        for (hit, rank) in hits.iter().zip(1..) {
            let name = String::from_utf8_lossy(documents.name(hit.docid).unwrap_or_default());
            writeln!(text, "  {rank}. {name}  ({:.2})", hit.score)?;
        }
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
