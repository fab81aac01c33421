//! `millrace explain`.

use crate::Usage;
use crate::args::Common;
use crate::query_score::Scored;
use millrace::index::find::{DocumentKey, find_in, open_plain};
<<<<<<< HEAD
use millrace::query::explain::{Explanation, explain};
use millrace::query::snapshot::Snapshot;
use std::fmt::Write as _;
=======
use millrace::query::explain::explain;
use millrace::score::bm25::{Bm25, IdfKind};
>>>>>>> main
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
    #[command(flatten)]
    scored: Scored,
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
    let scoring = args.scored.scoring()?;
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
    let snapshot = Snapshot::new(generation, scoring)?;
    let found = explain(&snapshot, query, docid, args.k)?;
    let documents = snapshot.generation().documents();
    let name = String::from_utf8_lossy(documents.name(docid).unwrap_or_default());
    let text = if args.json {
        let mut object = serde_json::to_value(&found)?;
        object["name"] = name.into();
        object["query"] = query.as_str().into();
        object["k"] = args.k.into();
        object["score_name"] = scoring.score.name().into();
        format!("{object}\n")
    } else {
        found.text(&name, args.k)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let totals = serde_json::json!({"job": "explain", "docid": docid});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}
<<<<<<< HEAD

fn readable(found: &Explanation, name: &str, k: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(text, "document  {} (docid {})", crate::show::visible(name), found.docid)?;
    let (length, mean, norm) = (found.length, found.mean_length, found.norm);
    writeln!(text, "length    {length} tokens, {mean:.1} in the mean: norm {norm:.4}")?;
    writeln!(text, "score     {}", found.score)?;
    if found.begins_with != 0.0 {
        writeln!(text, "          begins with {}", found.begins_with)?;
    }
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
    let [mut columns, mut rows] = [String::new(), String::new()];
    for (number, term) in found.terms.iter().enumerate() {
        // Columns that the score has nothing for are left out.
        let cells = [
            ("times", Some(term.times.to_string()), 5),
            ("df", Some(term.df.to_string()), 10),
            ("cf", term.cf.map(|cf| cf.to_string()), 10),
            ("idf", term.idf.map(|idf| format!("{idf:.4}")), 9),
            ("weight", Some(format!("{:.4}", term.weight)), 9),
            ("more", found.has_more().then(|| format!("{:.4}", term.more)), 9),
            ("tf", Some(term.tf.to_string()), 6),
            ("score", Some(format!("{:.4}", term.score)), 9),
        ];
        write!(rows, "{:<width$}", term.term)?;
        for (name, cell, wide) in cells.into_iter().filter_map(|(n, c, w)| Some((n, c?, w))) {
            if number == 0 {
                write!(columns, "  {name:>wide$}")?;
            }
            write!(rows, "  {cell:>wide$}")?;
        }
        rows += "\n";
    }
    writeln!(text, "\n{:<width$}{columns}\n{rows}", "term")?;
    text.truncate(text.trim_end().len());
    text += "\n";
    Ok(text)
}
=======
>>>>>>> main
