//! `millrace show`.

use crate::args::Common;
use crate::dump::open_whole;
use anyhow::{Context, bail};
use millrace::index::browse::TermLists;
use millrace::index::format::shard_name;
use millrace::index::generation::Generation;
use millrace::index::shards::ShardedManifest;
use millrace::input::Compression;
use millrace::input::unpacked::Unpacked;
use millrace::score::bm25::{Bm25, IdfKind, idf, score};
use millrace::score::bounds::BoundNorms;
use millrace::text::tokenizer::for_each_token;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
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
    let index = args.index.display();
    let (generation, first_docid, docid) = find(args)?;
    let documents = generation.documents();
    let at = |what| format!("{index}: document {docid} has no {what}");
    let location = documents.location(docid).with_context(|| at("place"))?;
    let name = documents.name(docid).with_context(|| at("name"))?;
    let length = documents.length(docid).with_context(|| at("length"))?;
    let input = generation.manifest().inputs.get(location.input as usize).with_context(|| {
        format!(
            "{index}: document {docid} lies in input {}, which the manifest lacks",
            location.input
        )
    })?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "docid     {}", first_docid + docid)?;
    writeln!(out, "name      {}", visible(&String::from_utf8_lossy(name)))?;
    writeln!(out, "tokens    {length}")?;
    writeln!(out, "input     {}", visible(&input.path))?;
    writeln!(out, "offset    {}", location.offset)?;
    writeln!(out, "bytes     {}", location.bytes)?;
    writeln!(out)?;
    if input.path == millrace::input::splits::STDIN {
        bail!("the text came from standard input and is not kept");
    }
    if input.path == millrace::input::splits::MEMORY {
        bail!("the text came from the memory of a program and is not kept");
    }
    let record = fetch(Path::new(&input.path), location.offset, location.bytes)
        .with_context(|| format!("fetching the text from {}", input.path))?;
    out.write_all(&record)?;
    if !record.ends_with(b"\n") {
        writeln!(out)?;
    }
    let totals = serde_json::json!({"job": "show", "docid": first_docid + docid});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

/// Makes control characters visible: a name comes from the input, and must not steer a terminal.
fn visible(text: &str) -> String {
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
    let index = args.index.display();
    let generation = open_whole(&args.index)?;
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut terms = Vec::new();
    analysis.terms(word.as_bytes(), |term| terms.push(term.to_string()));
    // A term that was copied from elsewhere may be one that no word becomes.
    if TermLists::find(&generation, word)?.df() > 0 && !terms.iter().any(|term| term == word) {
        terms.insert(0, word.to_string());
    }
    if terms.is_empty() {
        bail!("{index}: `{word}` has no term; it is a stop word, or has no letter and no digit");
    }
    let documents = generation.documents();
    let mean = generation.manifest().statistics.tokens as f64 / f64::from(documents.len().max(1));
    let bm25 = Bm25::default();
    let bounds = BoundNorms::new(&bm25, mean);
    let mut out = std::io::stdout().lock();
    for (number, term) in terms.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let lists = TermLists::find(&generation, term)?;
        let df = lists.df();
        writeln!(out, "term      {term}")?;
        writeln!(out, "df        {df} of {} documents", documents.len())?;
        if df == 0 {
            continue;
        }
        // An index has fewer than 2^32 documents.
        let idf = idf(documents.len(), df as u32, IdfKind::Lucene);
        let weight = bm25.weight(idf, 1);
        let (mut cf, mut most_tf, mut most, mut first) = (0u64, 0, 0f32, Vec::new());
        lists.postings(&generation, |docids, tfs| {
            for (&docid, &tf) in docids.iter().zip(tfs) {
                cf += u64::from(tf);
                most_tf = most_tf.max(tf);
                let length = documents.lengths()[docid as usize];
                most = most.max(score(weight, tf, bm25.norm(length, mean)));
                if first.len() < SHOWN_POSTINGS {
                    first.push((docid, tf, length));
                }
            }
        })?;
        let (mut bound, mut runs) = (0f32, 0);
        for &(number, entry) in &lists.lists {
            let list = generation.runs()[number].list(entry)?;
            let bounds = list.list_bounds().iter().map(|pairs| bounds.most(weight, pairs));
            bound = bounds.fold(bound, f32::max);
            runs += 1;
        }
        writeln!(out, "cf        {cf}; at most {most_tf} in a document")?;
        writeln!(out, "idf       {idf:.4}")?;
        writeln!(
            out,
            "lists     {} bytes in {runs} of {} runs",
            lists.bytes(),
            generation.runs().len()
        )?;
        let bound = if bound > 0.0 { format!("; its bound is {bound:.4}") } else { String::new() };
        writeln!(out, "score     at most {most:.4} (k1 {}, b {}){bound}", bm25.k1(), bm25.b())?;
        writeln!(out, "{:>10}  {:>6}  {:>8}  name", "docid", "tf", "tokens")?;
        for &(docid, tf, length) in &first {
            let name = String::from_utf8_lossy(documents.name(docid).unwrap_or_default());
            writeln!(out, "{docid:>10}  {tf:>6}  {length:>8}  {name}")?;
        }
        if df > first.len() as u64 {
            writeln!(out, "... and {} more", df - first.len() as u64)?;
        }
    }
    let totals = serde_json::json!({"job": "show", "terms": terms});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

/// Shows the term that each token of a text becomes.
fn analyze(args: &Args, text: &str) -> anyhow::Result<()> {
    let generation = open_whole(&args.index)?;
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut rows = Vec::new();
    for_each_token(text.as_bytes(), |token| {
        let term = analysis.analyze_token(token).map(std::borrow::Cow::into_owned);
        rows.push((token.to_string(), term));
    });
    let width = rows.iter().map(|(token, _)| token.chars().count()).max().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for (token, term) in &rows {
        writeln!(out, "{token:<width$}  {}", term.as_deref().unwrap_or("(stop word)"))?;
    }
    let totals = serde_json::json!({"job": "show", "tokens": rows.len()});
    crate::report::write(args.common.report.as_deref(), totals, 0.0, 1, &[])
}

/// Finds the document: the generation, or the shard of it, that has it, the docid of the first one
/// there, and its docid counted from that.
fn find(args: &Args) -> anyhow::Result<(Generation, u32, u32)> {
    let index = args.index.display();
    // The command line has a name when it has no docid.
    let name = args.name.as_deref().unwrap_or_default();
    let too_few = |docid, documents: u64| {
        format!("{index}: there are {documents} documents, no docid {docid}")
    };
    let nobody = || format!("{index}: no document is named `{name}`");
    let Some(manifest) = ShardedManifest::live(&args.index)? else {
        let generation = Generation::open(&args.index, false)?;
        let documents = generation.documents();
        let docid = match args.docid {
            Some(docid) if generation.is_deleted(docid) => {
                bail!("{index}: document {docid} is deleted")
            }
            Some(docid) if docid < documents.len() => docid,
            Some(docid) => bail!(too_few(docid, documents.len().into())),
            None => generation.find_name(name.as_bytes()).with_context(nobody)?,
        };
        return Ok((generation, 0, docid));
    };
    if let Some(docid) = args.docid {
        let shard = manifest.shard_of(docid);
        let shard = shard.with_context(|| too_few(docid, manifest.documents()))?;
        let generation = manifest.open(&args.index, shard, false)?;
        let first = manifest.shards[shard].first_docid;
        return Ok((generation, first, docid - first));
    }
    let mut elsewhere = Vec::new();
    for shard in 0..manifest.shards.len() {
        if !manifest.folder(&args.index, shard).exists() {
            elsewhere.push(shard_name(shard));
            continue;
        }
        let generation = manifest.open(&args.index, shard, false)?;
        if let Some(docid) = generation.find_name(name.as_bytes()) {
            return Ok((generation, manifest.shards[shard].first_docid, docid));
        }
    }
    if elsewhere.is_empty() {
        bail!(nobody());
    }
    bail!("{} in the shards on this disk; not here: {}", nobody(), elsewhere.join(", "))
}

/// Reads `bytes` at `offset` of a file's uncompressed stream.
fn fetch(path: &Path, offset: u64, bytes: u32) -> anyhow::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head)?;
    let mut stream: Box<dyn Read> = if Compression::by_content(&head) == Compression::None {
        file.seek(SeekFrom::Start(offset))?;
        Box::new(file)
    } else {
        let mut stream = Unpacked::open(path)?;
        std::io::copy(&mut stream.by_ref().take(offset), &mut std::io::sink())?;
        Box::new(stream)
    };
    let mut record = Vec::new();
    stream.by_ref().take(u64::from(bytes)).read_to_end(&mut record)?;
    if record.len() != bytes as usize {
        bail!(
            "byte {offset}: expected a record of {bytes} bytes, found {}: the file has changed since",
            record.len()
        );
    }
    Ok(record)
}
