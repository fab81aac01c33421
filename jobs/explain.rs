//! `millrace explain`.

use crate::Usage;
use crate::args::Common;
use millrace::index::find::{DocumentKey, find_in, open_plain};
use millrace::query::explain::explain;
use millrace::score::bm25::{Bm25, IdfKind};
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
        found.text(&name, args.k)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    let totals = serde_json::json!({"job": "explain", "docid": docid});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}
