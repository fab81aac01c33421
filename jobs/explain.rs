//! `millrace explain`.

use crate::Usage;
use crate::args::Common;
use millrace::index::find::{DocumentKey, find_in, open_plain};
use millrace::query::explain::{Explanation, explain};
use millrace::score::bm25::{Bm25, IdfKind};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The document's docid, in place of its name.
    #[arg(long, value_name = "N")]
    docid: Option<u32>,
    /// The hits of which the document may be one.
    #[arg(short, default_value_t = 10, value_name = "K")]
    k: usize,
    /// Term frequency saturation of BM25, 0 or more.
    #[arg(long, default_value_t = 1.2)]
    k1: f64,
    /// Length normalisation of BM25, from 0 to 1.
    #[arg(long, default_value_t = 0.75)]
    b: f64,
    /// Weight of rare terms: lucene, or robertson as in the papers.
    #[arg(long, default_value = "lucene", value_name = "lucene|robertson", value_parser = ["lucene", "robertson"])]
    idf: String,
    /// As one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
    /// The document's name, unless --docid is given, and the query.
    #[arg(value_name = "[NAME] QUERY", required = true, num_args = 1..=2)]
    words: Vec<String>,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let bm25 = Bm25::new(args.k1, args.b).map_err(|e| Usage(e.to_string()))?;
    let idf = if args.idf == "robertson" { IdfKind::Robertson } else { IdfKind::Lucene };
    let (key, query) = match (&args.words[..], args.docid) {
        ([query], Some(docid)) => (DocumentKey::Docid(docid), query),
        ([name, query], None) => (DocumentKey::Name(name), query),
        _ => {
            let wrong = "give --docid N and the query, or the document's name and the query";
            return Err(Usage(wrong.into()).into());
        }
    };
    let generation = open_plain(&args.index)?;
    let docid = find_in(&generation, &args.index, key)?;
    let found = explain(&generation, (&bm25, idf), query, docid, args.k)?;
    let name = String::from_utf8_lossy(generation.documents().name(docid).unwrap_or_default());
    let text = if args.json {
        let mut object = serde_json::to_value(&found)?;
        object["name"] = name.into();
        object["query"] = query.as_str().into();
        object["k"] = args.k.into();
        format!("{object}\n")
    } else {
        readable(&found, &name, args.k)?
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let totals = serde_json::json!({"job": "explain", "docid": docid});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

fn readable(found: &Explanation, name: &str, k: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(text, "document  {} (docid {})", crate::show::visible(name), found.docid)?;
    let (length, mean, norm) = (found.length, found.mean_length, found.norm);
    writeln!(text, "length    {length} tokens, {mean:.1} in the mean: norm {norm:.4}")?;
    writeln!(text, "score     {}", found.score)?;
    let place = |rank: Option<u64>, of: u64, which: &str| match rank {
        Some(rank) => format!("{rank} of {of} documents with {which}"),
        None => format!("none among {of} documents with {which}"),
    };
    writeln!(text, "place     {}", place(found.rank, found.with_any, "any term"))?;
    if found.terms.len() > 1 {
        writeln!(text, "          {}", place(found.rank_of_all, found.with_all, "all terms"))?;
    }
    if let (Some(rank), Some(threshold)) = (found.rank, found.threshold)
        && rank > k as u64
    {
        let missing = threshold - found.score;
        writeln!(
            text,
            "          not in the first {k}: the last of them has {threshold}, which is {missing:.4} more"
        )?;
    }
    let absent: Vec<&str> =
        found.terms.iter().filter(|term| term.tf == 0).map(|term| &*term.term).collect();
    if !absent.is_empty() {
        writeln!(text, "lacks     {}", absent.join(", "))?;
    }
    if found.terms.is_empty() {
        writeln!(text, "the query has no term: all its words are stop words")?;
        return Ok(text);
    }
    let width = found.terms.iter().map(|term| term.term.chars().count()).max().unwrap_or(0).max(4);
    writeln!(
        text,
        "\n{:<width$}  {:>5}  {:>10}  {:>9}  {:>9}  {:>6}  {:>9}",
        "term", "times", "df", "idf", "weight", "tf", "score"
    )?;
    for term in &found.terms {
        writeln!(
            text,
            "{:<width$}  {:>5}  {:>10}  {:>9.4}  {:>9.4}  {:>6}  {:>9.4}",
            term.term, term.times, term.df, term.idf, term.weight, term.tf, term.score
        )?;
    }
    Ok(text)
}
