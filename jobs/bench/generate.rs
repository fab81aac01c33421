//! `millrace bench generate`: a synthetic collection of any size, and queries for it.

mod vectors;

use crate::Usage;
use crate::cli::args::{Workers, show_bytes, show_count, size};
use crate::cli::progress::{DrawnProgress, in_bytes};
use crate::cli::{report, signals};
use anyhow::Context;
use millrace::Control;
use millrace::inside::input::STDIN;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use synthetic::collection::{self, Amount, Collection, Compression, Layout, WriteError, Written};
use synthetic::log::QueryLog;
use synthetic::queries::Queries;
use synthetic::vectors::Vectors;
use synthetic::{Format, Model, Recipe, RecipeError, pagerank};
use vectors::VectorArgs;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the collection: its files come into DIR/documents, which must be empty. With - the
    /// documents go to standard output, as one file.
    #[arg(long, value_name = "DIR|-")]
    output: PathBuf,
    /// Folder of queries, the log and PageRank values [default: that of --output].
    #[arg(long, value_name = "DIR")]
    beside: Option<PathBuf>,
    /// How much text to write, before compression, such as 64M or 4G.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    #[arg(required_unless_present = "documents", conflicts_with = "documents")]
    bytes: Option<u64>,
    /// How many documents to write.
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Files, of equal size.
    #[arg(long, default_value = "1", value_name = "N")]
    files: NonZeroU32,
    /// How documents lie in the files.
    #[arg(long, default_value = "jsonl")]
    format: FormatName,
    /// How files are compressed.
    #[arg(long, default_value = "none")]
    compress: CompressionName,
    /// Level of compression: 0 to 9 for gzip [default: 6], 1 to 19 for zstd [default: 3].
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// Another seed makes another collection.
    #[arg(long, default_value_t = Recipe::default().seed, value_name = "N")]
    seed: u64,
    /// Distinct terms at most [default: 1000000000, or 30522 with --vectors].
    #[arg(long, value_name = "N")]
    vocabulary: Option<u32>,
    /// Exponent of Zipf's law among the first 8192 terms.
    #[arg(long, default_value_t = Recipe::default().zipf, value_name = "F")]
    zipf: f64,
    /// Exponent of Heaps' law: n tokens have about n to the power of F distinct terms.
    #[arg(long, default_value_t = Recipe::default().heaps, value_name = "F")]
    heaps: f64,
    /// Mean tokens of a document.
    #[arg(long, default_value_t = Recipe::default().mean_tokens, value_name = "F")]
    mean_tokens: f64,
    /// Standard deviation of the logarithm of a document's tokens.
    #[arg(long, default_value_t = Recipe::default().sigma, value_name = "F")]
    sigma: f64,
    /// Share of tokens that come from a topic which neighbouring documents share, from 0 to 0.5.
    /// With 0, neighbours have nothing in common.
    #[arg(long, default_value_t = Recipe::default().clustering, value_name = "F")]
    clustering: f64,
    /// Neighbouring documents that are about the same.
    #[arg(long, default_value_t = Recipe::default().cluster, value_name = "N")]
    cluster: NonZeroU32,
    /// Write N queries too, into queries.tsv.
    #[arg(long, default_value = "0", value_name = "N")]
    queries: u64,
    /// Write N queries of each number of terms from 2 to 10 too, into lengths.tsv.
    #[arg(long, default_value = "0", value_name = "N")]
    lengths: u64,
    /// Write a log of N queries, some of which are asked again and again: its first half into
    /// log-train.tsv, its second half into log-test.tsv.
    #[arg(long, default_value = "0", value_name = "N")]
    log: u64,
    /// The different queries of the log, at most.
    #[arg(long, default_value = "100000", value_name = "N")]
    log_distinct: NonZeroU32,
    /// The r-th most frequent query of the log comes in proportion to r^-F.
    #[arg(long, default_value = "0.83", value_name = "F")]
    log_skew: f64,
    /// Only queries of the log of which, by chance, this many documents have all terms.
    #[arg(long, default_value = "0", value_name = "N")]
    log_hits: f64,
    /// Write made-up PageRank values too, `name TAB value`, into pagerank.tsv.
    #[arg(long)]
    pagerank: bool,
    #[command(flatten)]
    vectors: VectorArgs,
    #[command(flatten)]
    workers: Workers,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum FormatName {
    Jsonl,
    Tsv,
    Warc,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum CompressionName {
    None,
    Gzip,
    Zstd,
}

enum Source {
    Texts(Model),
    Vectors(Vectors),
}

impl Args {
    fn is_stream(&self) -> bool {
        self.output.as_os_str() == STDIN
    }

    /// The folder of what is beside documents, which is made.
    fn beside(&self) -> anyhow::Result<&Path> {
        let has_any = self.queries > 0 || self.lengths > 0 || self.log > 0 || self.pagerank;
        let folder = self.beside.as_deref().unwrap_or(&self.output);
        if self.is_stream() && self.files.get() > 1 {
            return Err(Usage("--output - is one file: leave out --files".into()).into());
        }
        if self.is_stream() && self.beside.is_none() && has_any {
            let why = "--output - has no folder for queries and PageRank values: give --beside DIR";
            return Err(Usage(why.into()).into());
        }
        if has_any {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        Ok(folder)
    }

    fn recipe(&self) -> Recipe {
        Recipe {
            seed: self.seed,
            vocabulary: self.vocabulary.unwrap_or(Recipe::default().vocabulary),
            zipf: self.zipf,
            heaps: self.heaps,
            mean_tokens: self.mean_tokens,
            sigma: self.sigma,
            clustering: self.clustering,
            cluster: self.cluster,
        }
    }

    fn layout(&self) -> Result<Layout, Usage> {
        if !(0.2..=3.0).contains(&self.log_skew) {
            let given = self.log_skew;
            return Err(Usage(format!("--log-skew is {given}; it must be from 0.2 to 3")));
        }
        let amount = match (self.bytes, self.documents) {
            (Some(bytes), _) => Amount::Bytes(bytes),
            (None, documents) => Amount::Documents(documents.unwrap_or(0)),
        };
        let (compression, most) = match (self.compress, self.level) {
            (CompressionName::None, None) => (Compression::None, 0),
            (CompressionName::None, Some(_)) => {
                return Err(Usage("--level goes with --compress gzip or zstd".into()));
            }
            (CompressionName::Gzip, level) => (Compression::Gzip(level.unwrap_or(6)), 9),
            (CompressionName::Zstd, level) => {
                let level = level.unwrap_or(3);
                if level == 0 {
                    return Err(Usage("--level 0: the least for zstd is 1".into()));
                }
                (Compression::Zstd(i32::try_from(level).unwrap_or(i32::MAX)), 19)
            }
        };
        if self.level.is_some_and(|level| level > most) {
            return Err(Usage(format!("--level: the most is {most}")));
        }
        let format = match self.format {
            FormatName::Jsonl => Format::Jsonl,
            FormatName::Tsv => Format::Tsv,
            FormatName::Warc => Format::Warc,
        };
        let folder = self.output.join("documents");
        Ok(Layout { folder, stream: None, amount, files: self.files, format, compression })
    }
}

/// Prints what was written as one JSON line, unless standard output has the documents.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let threads = args.workers.count()?;
    let mut layout = args.layout()?;
    let wrong = |error: RecipeError| Usage(format!("--{error}"));
    let source = match args.vectors.recipe(args.documents, args.vocabulary, args.seed) {
        Some(recipe) => Source::Vectors(Vectors::new(recipe).map_err(wrong)?),
        None => Source::Texts(Model::new(args.recipe()).map_err(wrong)?),
    };
    let beside = args.beside()?;
    if args.is_stream() {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        layout.stream = Some(Arc::new(out.into()));
    }
    let control = Arc::new(Control::default());
    // A write to a pipe may wait for a reader for ever.
    signals::watch(&control, args.is_stream().then_some(Duration::from_secs(1)))?;
    let collection: &dyn Collection = match &source {
        Source::Texts(model) => model,
        Source::Vectors(vectors) => vectors,
    };
    let (progress, drawn) = DrawnProgress::begin(in_bytes("writing"));
    progress.expect(match layout.amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Documents(n) => (n as f64 * collection.document_bytes(layout.format)) as u64,
    });
    let written = collection::write(collection, &layout, threads, &|text_bytes| {
        progress.pass(text_bytes);
        control.stopped()
    });
    drop(drawn);
    let written = match written {
        Err(WriteError::Stopped) => {
            return Err(control.take_failure().map_or(WriteError::Stopped.into(), Into::into));
        }
        written => written?,
    };
    let seconds = start.elapsed().as_secs_f64();
    match &source {
        Source::Texts(model) => write_beside(args, beside, model, layout.format, &written)?,
        Source::Vectors(vectors) if args.queries > 0 => {
            let path = beside.join("queries.tsv");
            write_queries(&path, 0..args.queries, |number| Some(vectors.query(number)))?;
        }
        Source::Vectors(_) => {}
    }
    totals(args, &written, threads, seconds)
}

fn write_beside(
    args: &Args,
    beside: &Path,
    model: &Model,
    format: Format,
    written: &Written,
) -> anyhow::Result<()> {
    if args.queries > 0 || args.lengths > 0 || args.log > 0 {
        let queries = Queries::new(model, format, &written.documents);
        let mut queries = queries.context("there are no documents to ask for")?;
        if args.queries > 0 {
            write_queries(&beside.join("queries.tsv"), 0..args.queries, |number| {
                Some(queries.query(number))
            })?;
        }
        if args.lengths > 0 {
            write_queries(&beside.join("lengths.tsv"), 0..9 * args.lengths, |number| {
                Some(queries.query_of(2 + (number % 9) as usize, number))
            })?;
        }
        let half = args.log.div_ceil(2);
        let mut log = QueryLog::new(
            &mut queries,
            args.seed,
            (args.log_distinct.get(), args.log_skew),
            args.log_hits,
        );
        if args.log > 0 {
            for (name, numbers) in [("log-train.tsv", 0..half), ("log-test.tsv", half..args.log)] {
                write_queries(&beside.join(name), numbers, |number| log.line(number))?;
            }
        }
    }
    if args.pagerank {
        let path = beside.join("pagerank.tsv");
        write_file(&path, |out| pagerank::write(out, args.seed, &written.documents))?;
    }
    Ok(())
}

/// Each with its number from 1 on.
fn write_queries(
    path: &Path,
    numbers: Range<u64>,
    mut query: impl FnMut(u64) -> Option<String>,
) -> anyhow::Result<()> {
    write_file(path, |out| {
        numbers.into_iter().try_for_each(|n| {
            let found = query(n).ok_or("too few queries have so many documents: give fewer hits");
            writeln!(out, "{}\t{}", n + 1, found.map_err(io::Error::other)?)
        })
    })
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let written = || {
        let mut out = BufWriter::new(File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    written().with_context(|| format!("{}: cannot be written", path.display()))
}

fn totals(args: &Args, written: &Written, threads: usize, seconds: f64) -> anyhow::Result<()> {
    let documents: u64 = written.documents.iter().sum();
    let mb_per_s = written.text_bytes as f64 / 1e6 / seconds;
    tell!(
        "{}: {} documents, {} {}, {} of text, {} in {}, in {seconds:.2} s ({mb_per_s:.1} MB/s of text)",
        args.output.display(),
        show_count(documents),
        show_count(written.tokens),
        if args.vectors.vectors { "weights" } else { "tokens" },
        show_bytes(written.text_bytes),
        show_bytes(written.file_bytes),
        millrace::inside::shown::number_of(args.files.get().into(), "file", "files"),
    );
    let totals = json!({
        "job": "bench generate",
        "documents": documents,
        "tokens": written.tokens,
        "queries": args.queries,
        "files": args.files,
        "text_bytes": written.text_bytes,
        "file_bytes": written.file_bytes,
        "seconds": seconds,
        "mb_per_s": mb_per_s,
    });
    if !args.is_stream() {
        writeln!(io::stdout(), "{totals}")?;
    }
    report::write(totals, threads)
}
