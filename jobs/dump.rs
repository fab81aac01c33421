//! `millrace dump`.

use crate::args::Common;
use millrace::index::IndexError;
use millrace::index::browse::for_each_term;
use millrace::index::find::{DocumentRow, open_plain};
use millrace::index::generation::Generation;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// jsonl: an object a line; tsv: the same fields, postings a line each.
    #[arg(long, default_value = "jsonl", value_name = "jsonl|tsv", value_parser = ["jsonl", "tsv"])]
    format: String,
    #[command(flatten)]
    common: Common,
    /// terms: term, df, cf, bytes; postings: term, docids and tfs; documents: docid, name, tokens,
    /// input, offset, bytes.
    #[arg(value_name = "terms|postings|documents", value_parser = ["terms", "postings", "documents"])]
    what: String,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    let generation = open_plain(&args.index)?;
    let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
    let tsv = args.format == "tsv";
    let rows = match &*args.what {
        "documents" => documents(&generation, tsv, &mut out)?,
        what => terms(&generation, tsv, what == "postings", &mut out)?,
    };
    out.flush()?;
    let totals = json!({"job": "dump", "what": args.what, "rows": rows});
    let seconds = start.elapsed().as_secs_f64();
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}

/// Why a walk over the terms ends.
enum Ended {
    Index(IndexError),
    Output(std::io::Error),
}

impl From<IndexError> for Ended {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

fn terms(
    generation: &Generation,
    tsv: bool,
    postings: bool,
    out: &mut impl Write,
) -> anyhow::Result<u64> {
    let mut rows = 0;
    let done = for_each_term::<Ended>(generation, |lists| {
        let term = String::from_utf8_lossy(&lists.term);
        let (df, bytes) = (lists.df(), lists.bytes());
        rows += 1;
        if !postings {
            let mut cf = 0u64;
            lists.postings(generation, |_, tfs| {
                cf += tfs.iter().map(|&tf| u64::from(tf)).sum::<u64>()
            })?;
            match tsv {
                true => writeln!(out, "{term}\t{df}\t{cf}\t{bytes}")?,
                false => {
                    writeln!(out, "{}", json!({"term": term, "df": df, "cf": cf, "bytes": bytes}))?
                }
            }
            return Ok(());
        }
        // A list may be long, so its line is written as it is read.
        let (mut first, mut failed) = (true, Ok(()));
        if !tsv {
            write!(out, "{{\"term\":{},\"df\":{df},\"postings\":[", json!(term))?;
        }
        lists.postings(generation, |docids, tfs| {
            for (docid, tf) in docids.iter().zip(tfs) {
                let comma = if std::mem::take(&mut first) { "" } else { "," };
                let written = match tsv {
                    true => writeln!(out, "{term}\t{docid}\t{tf}"),
                    false => write!(out, "{comma}[{docid},{tf}]"),
                };
                if failed.is_ok() {
                    failed = written;
                }
            }
        })?;
        failed?;
        if !tsv {
            writeln!(out, "]}}")?;
        }
        Ok(())
    });
    match done {
        Ok(()) => Ok(rows),
        Err(Ended::Index(error)) => Err(error.into()),
        Err(Ended::Output(error)) => Err(error.into()),
    }
}

fn documents(generation: &Generation, tsv: bool, out: &mut impl Write) -> anyhow::Result<u64> {
    let documents = generation.documents().len();
    for docid in 0..documents {
        let row = DocumentRow::of(generation, docid)?;
        if tsv {
            let DocumentRow { docid, name, tokens, input, offset, bytes } = row;
            let name = name.replace(['\t', '\n', '\r'], " ");
            writeln!(out, "{docid}\t{name}\t{tokens}\t{input}\t{offset}\t{bytes}")?;
        } else {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        }
    }
    Ok(documents.into())
}
