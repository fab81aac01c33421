//! `millrace show`.

use crate::args::Common;
use anyhow::{Context, bail};
use millrace::index::find::{DocumentKey, DocumentRow, find_document, open_plain};
use millrace::index::format::IMPORTED;
use millrace::input::record::fetch;
use millrace::input::splits::{MEMORY, STDIN};
use millrace::query::term_statistics::{PostingRow, TermStatistics};
use millrace::score::bm25::Bm25;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The document's docid.
    #[arg(long, value_name = "N", conflicts_with = "name")]
    docid: Option<u32>,
    /// The document's name.
    #[arg(value_name = "NAME", required_unless_present_any = ["docid", "term", "analyze"])]
    name: Option<String>,
    /// Show what the index has of a word: df, cf, bytes, bounds and its first postings.
    #[arg(long, value_name = "WORD", conflicts_with_all = ["docid", "name", "analyze"])]
    term: Option<String>,
    /// Show the term that each token of a text becomes.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["docid", "name"])]
    analyze: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Runs the job.
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
    let DocumentRow { docid, name, tokens, input, offset, bytes } =
        DocumentRow::of(&found.generation, found.docid)?;
    let docid = found.first_docid + docid;
    let mut out = std::io::stdout().lock();
    writeln!(out, "docid     {docid}")?;
    writeln!(out, "name      {}", visible(&name))?;
    writeln!(out, "tokens    {tokens}")?;
    writeln!(out, "input     {}", visible(&input))?;
    writeln!(out, "offset    {offset}")?;
    writeln!(out, "bytes     {bytes}")?;
    writeln!(out)?;
    match &*input {
        _ if found.generation.manifest().settings.indexer == IMPORTED => {
            bail!("the index was imported, without the texts of its documents")
        }
        STDIN => bail!("the text came from standard input and is not kept"),
        MEMORY => bail!("the text came from the memory of a program and is not kept"),
        _ => {}
    }
    let record = fetch(Path::new(&input), offset, bytes)
        .with_context(|| format!("fetching the text from {input}"))?;
    out.write_all(&record)?;
    if !record.ends_with(b"\n") {
        writeln!(out)?;
    }
    let totals = json!({"job": "show", "docid": docid});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

/// Makes control characters visible: a name comes from the input, and must not steer a terminal.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // What changes the direction of the text around it misleads as well.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(character.escape_unicode());
            }
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Postings of a term that are shown.
const SHOWN_POSTINGS: usize = 10;

/// Shows what the index has of a word.
fn term(args: &Args, word: &str) -> anyhow::Result<()> {
    let generation = open_plain(&args.index)?;
    let (documents, bm25) = (generation.documents(), Bm25::default());
    let of = |term: &str| TermStatistics::new(&generation, term, &bm25, SHOWN_POSTINGS);
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut terms = Vec::new();
    analysis.terms(word.as_bytes(), |term| terms.push(term.to_string()));
    // A term that was copied from elsewhere may be one that no word becomes.
    if !terms.iter().any(|term| term == word) && of(word)?.df > 0 {
        terms.insert(0, word.to_string());
    }
    if terms.is_empty() {
        let index = args.index.display();
        bail!("{index}: `{word}` has no term; it is a stop word, or has no letter and no digit");
    }
    let mut out = std::io::stdout().lock();
    for (number, term) in terms.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let found = of(term)?;
        let TermStatistics { df, cf, most_tf, idf, bytes, runs, most_score, bound, .. } = found;
        writeln!(out, "term      {term}")?;
        writeln!(out, "df        {df} of {} documents", documents.len())?;
        if df == 0 {
            continue;
        }
        writeln!(out, "cf        {cf}; at most {most_tf} in a document")?;
        writeln!(out, "idf       {idf:.4}")?;
        writeln!(out, "lists     {bytes} bytes in {runs} of {} runs", generation.runs().len())?;
        let bound = if bound > 0.0 { format!("; its bound is {bound:.4}") } else { String::new() };
        writeln!(
            out,
            "score     at most {most_score:.4} (k1 {}, b {}){bound}",
            bm25.k1(),
            bm25.b()
        )?;
        writeln!(out, "{:>10}  {:>6}  {:>8}  name", "docid", "tf", "tokens")?;
        for &PostingRow { docid, tf, tokens } in &found.first {
            let name = String::from_utf8_lossy(documents.name(docid).unwrap_or_default());
            writeln!(out, "{docid:>10}  {tf:>6}  {tokens:>8}  {}", visible(&name))?;
        }
        if df > found.first.len() as u64 {
            writeln!(out, "... and {} more", df - found.first.len() as u64)?;
        }
    }
    let totals = json!({"job": "show", "terms": terms});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

/// Shows the term that each token of a text becomes.
fn analyze(args: &Args, text: &str) -> anyhow::Result<()> {
    let generation = open_plain(&args.index)?;
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut rows = Vec::new();
    analysis.tokenizer.for_each_token(text.as_bytes(), |token| {
        let term = analysis.analyze_token(token).map(std::borrow::Cow::into_owned);
        rows.push((token.to_string(), term));
    });
    let width = rows.iter().map(|(token, _)| token.chars().count()).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for (token, term) in &rows {
        writeln!(out, "{token:<width$}  {}", term.as_deref().unwrap_or("(stop word)"))?;
    }
    let totals = json!({"job": "show", "tokens": rows.len()});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}
