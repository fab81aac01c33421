//! `millrace bench codecs`: bytes and decoding speed of every codec on the lists that real queries
//! touch, by length (ding09, figures 3 and 4, table 1).

mod measure;

use super::all_queries;
use super::rows::print_if;
use crate::Usage;
use measure::{Figures, Lists, Setting, settings};
use millrace::index::generations::generation::Generation;
use millrace::index::run::Run;
use millrace::query::reading::lines::Query;
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use synthetic::permutation::permutation;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number of times that each list is decoded. The fastest counts.
    #[arg(long, default_value = "5", value_name = "N")]
    passes: NonZeroUsize,
    /// Greatest number of lists of each length. The first lists that the queries read are taken.
    #[arg(long, default_value = "200", value_name = "N")]
    lists: NonZeroUsize,
    /// Only this codec; may be given several times.
    #[arg(long, value_name = "NAME")]
    codec: Vec<String>,
    /// Give the documents new docids in a random order first, by this seed: what codecs gain by the
    /// order of the collection goes away.
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Print an object a codec, setting and length instead of tables.
    #[arg(long)]
    json: bool,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let queries = all_queries(args.queries.as_deref())?;
    let generation = Generation::open(&args.index, false)?;
    let classes = touched(&generation, &queries, args)?;
    if classes.iter().all(|class| class.is_empty()) {
        anyhow::bail!("no term of the queries is in the index");
    }
    if let Some(name) =
        args.codec.iter().find(|name| !settings().iter().any(|s| s.codec.name() == **name))
    {
        let mut names: Vec<&str> = settings().iter().map(|setting| setting.codec.name()).collect();
        names.dedup();
        let text = format!("{name}: there is no such codec; there are {}", names.join(", "));
        return Err(Usage(text).into());
    }
    let found = |row| print_if(args.json, row);
    let mut rows = Vec::new();
    let asked = |setting: &Setting| {
        args.codec.is_empty() || args.codec.iter().any(|name| name == setting.codec.name())
    };
    for setting in settings().into_iter().filter(asked) {
        let mut all = Figures::default();
        let mut by_length = Vec::new();
        for (power, class) in classes.iter().enumerate().filter(|(_, class)| !class.is_empty()) {
            let figures = measure::measure(&setting, class, args.passes.get())?;
            all.add(&figures);
            found(line(args, &setting, Some(power), &figures))?;
            by_length.push((power, figures));
        }
        found(line(args, &setting, None, &all))?;
        rows.push((setting, by_length, all));
    }
    if !args.json {
        let mut out = std::io::stdout().lock();
        print_all(&mut out, &rows)?;
        print_figure_3(&mut out, &rows)?;
        print_by_length(&mut out, &rows)?;
    }
    Ok(())
}

/// The lists of the distinct terms of the queries, by the power of two that their length reaches.
fn touched(generation: &Generation, queries: &[Query], args: &Args) -> anyhow::Result<Vec<Lists>> {
    let order = |run: &Run| args.shuffle.map(|seed| permutation(seed, run.documents()));
    let orders: Vec<_> = generation.runs().iter().map(order).collect();
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut seen = BTreeSet::new();
    let mut classes = vec![Lists::default(); 32];
    for query in queries {
        let mut terms = Vec::new();
        analysis.terms(query.text.as_bytes(), |term| terms.push(term.to_owned()));
        for term in terms {
            if seen.contains(&term) {
                continue;
            }
            let collection = trie_collection(&term);
            let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
            for (run, order) in generation.runs().iter().zip(&orders) {
                let Some(list) = run.find(collection, suffix)? else { continue };
                let class = &mut classes[list.df().ilog2() as usize];
                if class.len() < args.lists.get() {
                    let read = |each: &mut dyn FnMut(&[u32], &[u32])| {
                        list.check(run.documents(), None, each)
                    };
                    class.add(order.as_deref(), read)?;
                }
            }
            seen.insert(term);
        }
    }
    Ok(classes)
}

fn line(
    args: &Args,
    setting: &Setting,
    power: Option<usize>,
    figures: &Figures,
) -> serde_json::Value {
    json!({
        "codec": setting.codec.name(),
        "levels": setting.levels,
        "block": setting.block_len,
        "default": setting.is_default(),
        "shuffled": args.shuffle.is_some(),
        "length_from": power.map(|power| 1u64 << power),
        "lists": figures.lists,
        "postings": figures.postings,
        "bytes_a_docid": figures.gaps.bytes_each(),
        "bytes_a_tf": figures.tfs.bytes_each(),
        "codes_a_docid": figures.gaps.codes_each(),
        "gaps_per_s": figures.gaps.values_per_s(),
        "docids_per_s": figures.docids_per_s(),
        "tfs_per_s": figures.tfs.values_per_s(),
        "encoded_gaps_per_s": figures.gaps.encoded_per_s(),
    })
}

type Row = (Setting, Vec<(usize, Figures)>, Figures);

/// A title, and what it shows of some lists.
type Table = (&'static str, fn(&Figures) -> f64);

/// All lengths together, a line a setting.
fn print_all(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    if let Some((_, _, all)) = rows.first() {
        writeln!(out, "{} lists, {} postings; speeds in G/s\n", all.lists, all.postings)?;
    }
    writeln!(
        out,
        "{:<14} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "codec", "block", "B/docid", "B/tf", "sum", "gaps", "docids", "tfs", "encode"
    )?;
    for (setting, _, all) in rows {
        let (docid, tf) = (all.gaps.bytes_each(), all.tfs.bytes_each());
        writeln!(
            out,
            "{:<14} {:>5} {docid:>8.3} {tf:>8.3} {:>8.3} {:>8.2} {:>8.2} {:>8.2} {:>8.3}",
            setting.label(),
            setting.block_len,
            docid + tf,
            all.gaps.values_per_s() / 1e9,
            all.docids_per_s() / 1e9,
            all.tfs.values_per_s() / 1e9,
            all.gaps.encoded_per_s() / 1e9,
        )?;
    }
    Ok(())
}

/// Figure 3 of ding09: bytes a docid of Rice codes, of PForDelta with a width for each list without
/// recursion and with one to four levels, and of the older one with a width for each block; beside them
/// the codes alone, without what a block is found by, which the papers do not count.
fn print_figure_3(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    let named = |setting: &Setting| ["rice", "pfor", "pfor-blocks"].contains(&setting.codec.name());
    let rows: Vec<&Row> =
        rows.iter().filter(|(s, ..)| named(s) && s.block_len == s.codec.block_lens()[0]).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nding09, figure 3: bytes a docid\n{:<16} {:>8} {:>12}",
        "codec", "all", "codes alone"
    )?;
    for (setting, _, all) in rows {
        let (label, gaps) = (setting.label(), &all.gaps);
        writeln!(out, "{label:<16} {:>8.3} {:>12.3}", gaps.bytes_each(), gaps.codes_each())?;
    }
    Ok(())
}

/// The codecs of an index at their default block, a line a length.
fn print_by_length(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    let rows: Vec<&Row> = rows.iter().filter(|(setting, ..)| setting.is_default()).collect();
    let tables: [Table; 4] = [
        ("bytes a docid", |figures| figures.gaps.bytes_each()),
        ("bytes a tf", |figures| figures.tfs.bytes_each()),
        ("gaps decoded, G/s", |figures| figures.gaps.values_per_s() / 1e9),
        ("docids decoded, G/s", |figures| figures.docids_per_s() / 1e9),
    ];
    for (title, value) in tables {
        write!(out, "\n{title}\n{:>10} {:>6}", "length", "lists")?;
        for (setting, ..) in &rows {
            write!(out, " {:>8}", setting.label())?;
        }
        writeln!(out)?;
        let Some((_, first, _)) = rows.first() else { continue };
        for (at, (power, figures)) in first.iter().enumerate() {
            write!(out, "{:>10} {:>6}", 1u64 << power, figures.lists)?;
            for (_, by_length, _) in &rows {
                write!(out, " {:>8.3}", value(&by_length[at].1))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
