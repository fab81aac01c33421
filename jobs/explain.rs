//! `millrace explain`.

use crate::Usage;
use crate::query::ranking::syntaxes;
use crate::query::score::Scored;
use millrace::inside::index::{DocumentKey, find_in};
use millrace::{Generation, Snapshot, Syntax, Wanted, explain};
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Docid of the document, in place of its name.
    #[arg(long, value_name = "N")]
    docid: Option<u32>,
    /// Number of hits that the document is compared with.
    #[arg(short, default_value = "10", value_name = "K", value_parser = crate::query::ranking::parse_k)]
    k: usize,
    #[arg(long, default_value = "words", value_name = "words|operators")]
    #[arg(help = "How the query is read, as in `millrace query`", value_parser = syntaxes())]
    #[arg(hide_possible_values = true)]
    syntax: Syntax,
    #[command(flatten)]
    scored: Scored,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Name of the document (not with --docid), and the words of the query.
    #[arg(value_name = "[NAME] QUERY", required = true)]
    words: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let scoring = args.scored.scoring()?;
    let (key, query) = match (&args.words[..], args.docid) {
        (query @ [_, ..], Some(docid)) => (DocumentKey::Docid(docid), query.join(" ")),
        ([name, query @ ..], None) if !query.is_empty() => {
            (DocumentKey::Name(name), query.join(" "))
        }
        _ => {
            let wrong = "give --docid N and the query, or the document's name and the query";
            return Err(Usage(wrong.into()).into());
        }
    };
    let generation = Generation::open(&args.index)?;
    let docid = find_in(&generation, &args.index, key)?;
    let snapshot = Snapshot::new(generation, scoring.clone())?;
    let wanted = Wanted { k: args.k, syntax: args.syntax, ..Wanted::default() };
    let found = explain(&snapshot, &wanted, &query, docid)?;
    let documents = snapshot.generation().documents();
    let name = documents.name(docid)?;
    let name = String::from_utf8_lossy(&name);
    let mut object = serde_json::to_value(&found)?;
    object["name"] = (&*name).into();
    object["query"] = query.into();
    object["k"] = args.k.into();
    object["score_name"] = scoring.score.name().into();
    crate::cli::report::print(args.json, &object, || found.text(&name, args.k))?;
    let totals = serde_json::json!({"job": "explain", "docid": docid});
    crate::cli::report::write(totals, 1)
}
