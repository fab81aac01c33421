//! `millrace show`.

use crate::cli::report;
use anyhow::bail;
use millrace::Generation;
use millrace::inside::index::{DocumentKey, DocumentRow, DocumentVector, find_document};
use millrace::inside::query::{TermStatistics, record_of};
use millrace::inside::score::Bm25;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Docid of a document.
    #[arg(long, value_name = "N", conflicts_with = "name")]
    docid: Option<u32>,
    /// Name of a document.
    #[arg(value_name = "NAME", required_unless_present_any = ["docid", "term", "analyze"])]
    name: Option<String>,
    /// Print what the index has for a word: df, cf, bytes, bounds and the first postings.
    #[arg(long, value_name = "WORD", conflicts_with_all = ["docid", "name", "analyze"])]
    term: Option<String>,
    /// Print the term that each token of a text becomes.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["docid", "name"])]
    analyze: Option<String>,
    /// Print the terms of the document and how often it has each, in the order of `dump`; they are
    /// looked for in all lists of its run.
    #[arg(long, conflicts_with_all = ["term", "analyze"])]
    vector: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(word) = &args.term {
        return term(args, word);
    }
    if let Some(text) = &args.analyze {
        return analyze(args, text);
    }
    // The command line has a name when it has no docid.
    let name = DocumentKey::Name(args.name.as_deref().unwrap_or_default());
    let found = find_document(&args.index, args.docid.map_or(name, DocumentKey::Docid))?;
    let row = DocumentRow::of(&found.generation, found.docid)?.with_stored(&found.generation)?;
    let docid = found.generation.docid_in_whole(row.docid);
    if args.vector {
        let vector = DocumentVector::of(&found.generation, found.docid)?;
        let text = match args.json {
            true => {
                let terms = serde_json::to_string(&vector)?;
                let name = json!(row.name);
                format!("{{\"docid\":{docid},\"name\":{name},\"vector\":{terms}}}\n")
            }
            false => vector.lines(),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        return report::write(json!({"job": "show", "docid": docid}), 1);
    }
    let record = record_of(&found.generation, &row);
    let mut out = std::io::stdout().lock();
    if args.json {
        // Null if there is no record: the row is worth something without it.
        let text = record.as_ref().ok().map(|record| String::from_utf8_lossy(record));
        let mut object = serde_json::to_value(&row)?;
        object["docid"] = docid.into();
        object["record"] = json!(text);
        writeln!(out, "{object}")?;
        record?;
    } else {
        writeln!(out, "docid     {docid}\n{row}")?;
        let record = record?;
        out.write_all(&record)?;
        if !record.ends_with(b"\n") {
            writeln!(out)?;
        }
    }
    report::write(json!({"job": "show", "docid": docid}), 1)
}

const SHOWN_POSTINGS: usize = 10;

fn term(args: &Args, word: &str) -> anyhow::Result<()> {
    let generation = Generation::open(&args.index)?;
    let bm25 = Bm25::default();
    let found = TermStatistics::of_word(&generation, word, &bm25, SHOWN_POSTINGS)?;
    if found.is_empty() {
        let index = args.index.display();
        bail!("{index}: `{word}` has no term; it is a stop word, or has no letter and no digit");
    }
    let object = json!({"word": word, "terms": found});
    report::print(args.json, &object, || {
        let texts = found.iter().map(|found| found.text(&generation, &bm25));
        texts.collect::<Vec<_>>().join("\n")
    })?;
    let terms: Vec<&str> = found.iter().map(|found| &*found.term).collect();
    report::write(json!({"job": "show", "terms": terms}), 1)
}

fn analyze(args: &Args, text: &str) -> anyhow::Result<()> {
    let generation = Generation::open(&args.index)?;
    let rows = generation.manifest().analysis(generation.path())?.tokens(text.as_bytes());
    let token = |(token, term): &(_, Option<_>)| json!({"token": token, "term": term});
    let tokens: Vec<Value> = rows.iter().map(token).collect();
    let width = rows.iter().map(|(token, _)| token.chars().count()).max().unwrap_or(0);
    let line = |(token, term): &(String, Option<String>)| {
        format!("{token:<width$}  {}\n", term.as_deref().unwrap_or("(stop word)"))
    };
    let object = json!({"text": text, "tokens": tokens});
    report::print(args.json, &object, || rows.iter().map(line).collect())?;
    report::write(json!({"job": "show", "tokens": rows.len()}), 1)
}
