//! `millrace bench cpu-queries`: the CPU rows of the papers' tables, with the engines of this index.
//!
//! - `ding09`, table 2: AND, OR and AND+OR, and what decompression, intersection and scoring take.
//! - `huang`, table 1: AND, OR, WAND and BMW for the best 1, 10 and 20.
//! - `huang`, figure 3: the same by the number of blocks of the query's lists.
//!
//! Isolated: one searcher, one query at a time, the index in memory; analysis and look-up of the terms
//! are a stage of their own. All points are measured in turn, pass by pass, and of a query the fastest
//! pass counts. Stages are measured by doing them again: a search that decodes every block five times
//! takes what decoding takes four times more than a search that decodes it once. What is left
//! is called intersection: finding the documents, of OR adding them up, and keeping the best; what it
//! takes to bring a list from memory to the caches for the first time is in it too. That a stage may be
//! done again costs every search a little, so that table 2 needs the feature `stages`.

use super::all_queries;
use super::rows::print_if;
use crate::query::score::parse_idf;
use millrace::index::generations::generation::Generation;
#[cfg(feature = "stages")]
use millrace::query::again::Again;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use millrace::score::bm25::IdfKind;
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number of measured passes over the queries. One pass before them is not measured.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// Weight of rare terms: robertson as in the papers, or lucene.
    #[arg(long, default_value = "robertson", value_parser = parse_idf, value_name = "robertson|lucene")]
    idf: IdfKind,
    /// Print an object for each row instead of tables.
    #[arg(long)]
    json: bool,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

/// How often a stage is done more than once to measure it.
const TIMES: u8 = 4;

/// The rows of table 2 of `ding09`, for the best ten.
#[cfg(feature = "stages")]
const STAGES: [(&str, Mode, Algorithm); 5] = [
    ("AND", Mode::And, Algorithm::Auto),
    ("OR", Mode::Or, Algorithm::Exhaustive),
    ("AND+OR", Mode::AndOr, Algorithm::Exhaustive),
    ("OR, pruned", Mode::Or, Algorithm::Auto),
    ("AND+OR, pruned", Mode::AndOr, Algorithm::Auto),
];

/// The rows of table 1 and figure 3 of `huang`.
const PRUNING: [(&str, Mode, Algorithm); 5] = [
    ("AND", Mode::And, Algorithm::Auto),
    ("OR", Mode::Or, Algorithm::Exhaustive),
    ("WAND", Mode::Or, Algorithm::Wand),
    ("BMW", Mode::Or, Algorithm::Bmw),
    ("MaxScore", Mode::Or, Algorithm::Auto),
];

/// Hits of table 1 of `huang`.
const BEST: [usize; 3] = [1, 10, 20];

/// What is measured: a searcher and the time of each query.
struct Point {
    snapshot: Arc<Snapshot>,
    wanted: Wanted,
    searcher: Searcher,
    /// Only analyses the query and looks its terms up.
    looks_up: bool,
    /// The least time of each query.
    micros: Vec<f64>,
}

impl Point {
    fn new(snapshot: &Arc<Snapshot>, (mode, algorithm): (Mode, Algorithm), k: usize) -> Self {
        let (snapshot, wanted) = (snapshot.clone(), Wanted { k, mode, algorithm });
        Self { snapshot, wanted, searcher: Searcher::new(), looks_up: false, micros: Vec::new() }
    }

    /// Does stages of the searches again.
    #[cfg(feature = "stages")]
    fn repeat(mut self, again: Again) -> Self {
        self.searcher.repeat(again);
        self
    }

    /// Goes through the queries once.
    fn pass(&mut self, queries: &[Query], counts: bool) -> anyhow::Result<()> {
        self.micros.resize(queries.len(), f64::INFINITY);
        for (query, micros) in queries.iter().zip(&mut self.micros) {
            let start = Instant::now();
            let (snapshot, wanted) = (&self.snapshot, &self.wanted);
            if self.looks_up {
                black_box(self.searcher.look_up(snapshot, wanted, &query.text)?);
            } else {
                black_box(self.searcher.search(snapshot, wanted, &query.text)?);
            }
            if counts {
                *micros = micros.min(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(())
    }

    fn mean_us(&self) -> f64 {
        mean(&self.micros)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A row of table 2: the whole, and with a stage done again.
struct Stages {
    name: &'static str,
    whole: usize,
    decodes: usize,
    scores: usize,
}

/// Microseconds of a query's stages in the mean.
struct Shares {
    whole: f64,
    look_up: f64,
    decompression: f64,
    intersection: f64,
    scoring: f64,
}

impl Stages {
    fn shares(&self, points: &[Point], look_up: f64) -> Shares {
        let whole = points[self.whole].mean_us();
        let of_stage = |point: usize| {
            let more = points[point].mean_us() - whole;
            (more / f64::from(TIMES)).max(0.0)
        };
        let (decompression, scoring) = (of_stage(self.decodes), of_stage(self.scores));
        let intersection = whole - look_up - decompression - scoring;
        Shares { whole, look_up, decompression, intersection, scoring }
    }
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let queries = all_queries(args.queries.as_deref())?;
    let scoring = Scoring { idf: args.idf, ..Scoring::default() };
    let snapshot = Snapshot::open(&args.index, false, scoring)?;
    let blocks = blocks_of(snapshot.generation(), &queries)?;
    let mut points = Vec::new();
    let mut add = |point: Point| {
        points.push(point);
        points.len() - 1
    };
    let mut looking_up = Point::new(&snapshot, (Mode::Or, Algorithm::Auto), 10);
    looking_up.looks_up = true;
    let looking_up = add(looking_up);
    let stages = stages(&snapshot, &mut add);
    let mut pruning = Vec::new();
    for (name, mode, algorithm) in PRUNING {
        for k in BEST {
            pruning.push((name, k, add(Point::new(&snapshot, (mode, algorithm), k))));
        }
    }
    for pass in 0..=args.passes.get() {
        for point in &mut points {
            point.pass(&queries, pass > 0)?;
        }
    }
    let look_up = points[looking_up].mean_us();
    let shares: Vec<_> =
        stages.iter().map(|row| (row.name, row.shares(&points, look_up))).collect();
    let classes = by_blocks(&blocks);
    let mut out = std::io::stdout().lock();
    let manifest = snapshot.generation().manifest();
    let setting = json!({
        "table": "setting", "queries": queries.len(), "documents": manifest.statistics.documents,
        "postings": manifest.statistics.postings, "codec": manifest.settings.codec,
        "block": manifest.settings.block_size, "idf": format!("{:?}", args.idf).to_lowercase(),
        "blocks_a_query": mean(&blocks.iter().map(|&n| n as f64).collect::<Vec<_>>()),
    });
    if !args.json {
        writeln!(out, "{setting}\n")?;
    }
    print_if(args.json, setting)?;
    for row in rows(&shares, &pruning, &classes, &points) {
        print_if(args.json, row)?;
    }
    if !args.json {
        if cfg!(feature = "stages") {
            print_stages(&mut out, &shares)?;
        } else {
            writeln!(out, "ding09, table 2: needs a build with --features stages")?;
        }
        print_best(&mut out, &pruning, &points)?;
        print_by_blocks(&mut out, &pruning, &classes, &points)?;
    }
    Ok(())
}

/// What the rows of table 2 are measured by.
#[cfg(feature = "stages")]
fn stages(snapshot: &Arc<Snapshot>, add: &mut impl FnMut(Point) -> usize) -> Vec<Stages> {
    let row = |(name, mode, algorithm)| {
        let mut of = |again| add(Point::new(snapshot, (mode, algorithm), 10).repeat(again));
        let (whole, once) = (of(Again::default()), Again::default());
        let decodes = of(Again { decode: TIMES, ..once });
        Stages { name, whole, decodes, scores: of(Again { score: TIMES, ..once }) }
    };
    STAGES.into_iter().map(row).collect()
}

/// What does a stage again is not compiled in.
#[cfg(not(feature = "stages"))]
fn stages(_: &Arc<Snapshot>, _: &mut impl FnMut(Point) -> usize) -> Vec<Stages> {
    Vec::new()
}

/// How many blocks the lists of each query have, the tails counted as blocks.
fn blocks_of(generation: &Generation, queries: &[Query]) -> anyhow::Result<Vec<u64>> {
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut all = Vec::new();
    for query in queries {
        let mut terms = BTreeSet::new();
        analysis.terms(query.text.as_bytes(), |term| {
            terms.insert(term.to_owned());
        });
        let mut blocks = 0;
        for (run, term) in
            generation.runs().iter().flat_map(|run| terms.iter().map(move |t| (run, t)))
        {
            let collection = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
            let list = run.find(collection, suffix)?;
            blocks += list.map_or(0, |list| list.blocks() as u64);
        }
        all.push(blocks);
    }
    Ok(all)
}

/// The numbers of the queries, by the power of two that their blocks reach; those without blocks are
/// left out.
fn by_blocks(blocks: &[u64]) -> BTreeMap<u64, Vec<usize>> {
    let mut classes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (query, blocks) in blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
        classes.entry(1 << blocks.ilog2()).or_default().push(query);
    }
    classes
}

type Row = (&'static str, usize, usize);

/// The mean over some queries.
fn mean_of(point: &Point, queries: &[usize]) -> f64 {
    let times: Vec<f64> = queries.iter().map(|&query| point.micros[query]).collect();
    mean(&times)
}

/// What all tables show, a row a line of them.
fn rows(
    shares: &[(&str, Shares)],
    pruning: &[Row],
    classes: &BTreeMap<u64, Vec<usize>>,
    points: &[Point],
) -> Vec<Value> {
    let mut found = Vec::new();
    for (name, of) in shares {
        found.push(json!({
            "table": "ding09 table 2", "algorithm": name, "k": 10, "mean_us": of.whole,
            "look_up_us": of.look_up, "decompression_us": of.decompression,
            "intersection_us": of.intersection, "scoring_us": of.scoring,
        }));
    }
    for &(name, k, point) in pruning {
        let mean_us = points[point].mean_us();
        found
            .push(json!({"table": "huang table 1", "algorithm": name, "k": k, "mean_us": mean_us}));
    }
    for (from, queries) in classes {
        for &(name, k, point) in pruning.iter().filter(|row| row.1 == 10) {
            found.push(json!({
                "table": "huang figure 3", "algorithm": name, "k": k, "blocks_from": from,
                "queries": queries.len(), "mean_us": mean_of(&points[point], queries),
            }));
        }
    }
    found
}

fn print_stages(out: &mut impl Write, shares: &[(&str, Shares)]) -> std::io::Result<()> {
    writeln!(
        out,
        "ding09, table 2: best 10, microseconds of a query, and the share of each stage"
    )?;
    writeln!(
        out,
        "{:<16} {:>10} {:>9} {:>14} {:>13} {:>8}",
        "", "mean", "look-up", "decompression", "intersection", "scoring"
    )?;
    for (name, of) in shares {
        let share = |part: f64| format!("{:.0} %", 100.0 * part / of.whole);
        writeln!(
            out,
            "{name:<16} {:>10.1} {:>9} {:>14} {:>13} {:>8}",
            of.whole,
            share(of.look_up),
            share(of.decompression),
            share(of.intersection),
            share(of.scoring)
        )?;
    }
    Ok(())
}

fn print_best(out: &mut impl Write, pruning: &[Row], points: &[Point]) -> std::io::Result<()> {
    writeln!(out, "\nhuang, table 1: microseconds of a query in the mean")?;
    write!(out, "{:<16}", "")?;
    for k in BEST {
        write!(out, " {:>10}", format!("best {k}"))?;
    }
    for row in pruning.chunks(BEST.len()) {
        write!(out, "\n{:<16}", row[0].0)?;
        for &(_, _, point) in row {
            write!(out, " {:>10.1}", points[point].mean_us())?;
        }
    }
    writeln!(out)
}

fn print_by_blocks(
    out: &mut impl Write,
    pruning: &[Row],
    classes: &BTreeMap<u64, Vec<usize>>,
    points: &[Point],
) -> std::io::Result<()> {
    writeln!(out, "\nhuang, figure 3: best 10, microseconds by blocks of the query")?;
    write!(out, "{:<10} {:>8}", "blocks", "queries")?;
    let rows: Vec<&Row> = pruning.iter().filter(|row| row.1 == 10).collect();
    for (name, ..) in &rows {
        write!(out, " {name:>10}")?;
    }
    for (from, queries) in classes {
        write!(out, "\n{from:<10} {:>8}", queries.len())?;
        for (_, _, point) in &rows {
            write!(out, " {:>10.1}", mean_of(&points[*point], queries))?;
        }
    }
    writeln!(out)
}
