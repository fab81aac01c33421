//! `millrace query`.

use crate::args::{Workers, show_count};
use crate::cluster::{Cluster, Setting, refuse, together};
use crate::{Usage, report, signals};
use anyhow::Context;
use millrace::dataflow::batch::Received;
use millrace::dataflow::control::{self, Control};
use millrace::dataflow::fgqp::Crew;
use millrace::dataflow::query::{Parallelism, QueryJob, Shard, assemble};
use millrace::index::generation::Generation;
use millrace::index::shards::ShardedManifest;
use millrace::query::output::{Form, Query};
use millrace::query::searcher::{ALL, Algorithm, Cutting, Mode, Settings, Shared, Whole};
use millrace::score::bm25::{Bm25, IdfKind};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How queries are answered: options that several jobs have.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Ranking {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: PathBuf,
    /// The most hits for a query.
    #[arg(short, default_value_t = 10, value_name = "K")]
    pub(crate) k: usize,
    /// or: any term; and: all terms; and-or: all terms, or any if that finds fewer than k.
    #[arg(long, default_value = "or", value_parser = parse_mode, value_name = "or|and|and-or")]
    pub(crate) mode: Mode,
    /// How the best are found. OR: exhaustive, maxscore, wand, bmw; AND: galloping, small-adaptive;
    /// auto: what is fastest. All find the same.
    #[arg(long, default_value = "auto", value_parser = parse_algorithm, value_name = "NAME")]
    pub(crate) algorithm: Algorithm,
    /// Term frequency saturation of BM25, 0 or more.
    #[arg(long, default_value_t = 1.2)]
    pub(crate) k1: f64,
    /// Length normalisation of BM25, from 0 to 1.
    #[arg(long, default_value_t = 0.75)]
    pub(crate) b: f64,
    /// Weight of rare terms: lucene, or robertson as in the papers.
    #[arg(long, default_value = "lucene", value_parser = parse_idf, value_name = "lucene|robertson")]
    pub(crate) idf: IdfKind,
    /// Verify the checksums of all postings first.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Answer with documents A to B-1 alone, by docid; either end may be left out. Scores stay those
    /// of the whole collection.
    #[arg(long, default_value = "..", hide_default_value = true, value_parser = parse_docids, value_name = "A..B")]
    pub(crate) docids: Docids,
}

/// A range of docids of the whole index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Docids(Range<u32>);

impl Docids {
    /// The docids of a shard whose first document has this docid.
    fn of_shard(&self, first: u32) -> Range<u32> {
        if self.0 == ALL {
            return ALL;
        }
        self.0.start.saturating_sub(first)..self.0.end.saturating_sub(first)
    }
}

fn parse_docids(text: &str) -> Result<Docids, String> {
    let wrong = || "give A..B, A.. or ..B with docids from 0".to_string();
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, open: u32| match text {
        "" => Ok(open),
        text => text.parse().map_err(|_| wrong()),
    };
    let docids = number(start, ALL.start)?..number(end, ALL.end)?;
    if docids.start > docids.end {
        return Err(format!("{} is behind {}", docids.start, docids.end));
    }
    Ok(Docids(docids))
}

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) ranking: Ranking,
    #[command(flatten)]
    spreading: Spreading,
    /// Where queries are answered: auto, cpu; this version uses no GPU.
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu"])]
    device: String,
    /// trec: qid Q0 name rank score millrace; jsonl: an object a query; tsv: qid, rank, name, docid, score.
    #[arg(long, default_value = "trec", value_parser = parse_form, value_name = "trec|jsonl|tsv")]
    format: Form,
    /// Queries that are answered together at most.
    #[arg(long, default_value = "64", value_name = "N")]
    batch: std::num::NonZeroUsize,
    /// How long a batch waits for more queries, in milliseconds.
    #[arg(long, default_value_t = 5, value_name = "MS")]
    delay_ms: u64,
    #[command(flatten)]
    workers: Workers,
    /// A query a line: `qid TAB text`, or text alone; standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

/// How queries are spread over workers.
#[derive(clap::Args, Clone, Debug)]
struct Spreading {
    /// inter: a query to a worker; docp-ui: each query to all workers, by docid; docp-pi: so, in
    /// copies; fgqp: in tasks. All answer the same.
    #[arg(long, default_value = "inter", value_name = "inter|docp-ui|docp-pi|fgqp")]
    #[arg(value_parser = ["inter", "docp-ui", "docp-pi", "fgqp"])]
    parallelism: String,
    /// Of fgqp: no new query is cut while more tasks are open; 5 is for latency, 150 for throughput.
    #[arg(long, value_name = "N")]
    delta: Option<usize>,
    /// Of fgqp: queries that take fewer microseconds, as estimated, are not cut (100 if left out).
    #[arg(long, value_name = "US")]
    cut_us: Option<u32>,
    /// Of fgqp: a worker without work looks for more for so many microseconds before it sleeps, since
    /// to be woken takes longer (200 if left out).
    #[arg(long, value_name = "US")]
    spin_us: Option<u32>,
}

/// What --delta is if it is left out.
pub(crate) const DELTA: usize = 5;
/// How long a worker of fgqp looks for work, by --spin-us.
pub(crate) fn patience(spin_us: Option<u32>) -> Duration {
    Duration::from_micros(spin_us.unwrap_or(200).into())
}

impl Spreading {
    fn model(&self, processes: usize) -> Result<Model, Usage> {
        let model = match &*self.parallelism {
            "docp-ui" => Model::DocpUi,
            "docp-pi" => Model::DocpPi,
            "fgqp" => {
                let mut cutting = Cutting::default();
                if let Some(us) = self.cut_us {
                    cutting.least_ns = f64::from(us) * 1e3;
                }
                let patience = patience(self.spin_us);
                Model::Fgqp { delta: self.delta.unwrap_or(DELTA), cutting, patience }
            }
            _ => Model::Inter,
        };
        if !matches!(model, Model::Fgqp { .. }) {
            for (name, given) in [
                ("delta", self.delta.is_some()),
                ("cut-us", self.cut_us.is_some()),
                ("spin-us", self.spin_us.is_some()),
            ] {
                if given {
                    return Err(Usage(format!("--{name} goes with --parallelism fgqp")));
                }
            }
        }
        if processes > 1 && model != Model::Inter {
            let name = &self.parallelism;
            return Err(Usage(format!(
                "--parallelism {name} works in one process; with --processes give inter"
            )));
        }
        Ok(model)
    }
}

/// A model of `tatikonda11`, before it has workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    Inter,
    DocpUi,
    DocpPi,
    Fgqp { delta: usize, cutting: Cutting, patience: Duration },
}

impl Model {
    /// The model for so many workers.
    pub(crate) fn of(self, workers: usize, settings: &Settings) -> Parallelism {
        match self {
            Model::Inter => Parallelism::Inter,
            Model::DocpUi => Parallelism::DocpUi,
            Model::DocpPi => Parallelism::DocpPi,
            Model::Fgqp { delta, cutting, patience } => {
                let crew = Crew::new(delta, cutting, patience, workers, *settings);
                Parallelism::Fgqp(Box::new(crew))
            }
        }
    }
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    match text {
        "or" => Ok(Mode::Or),
        "and" => Ok(Mode::And),
        "and-or" => Ok(Mode::AndOr),
        _ => Err("give or, and, or and-or".into()),
    }
}

fn parse_algorithm(text: &str) -> Result<Algorithm, String> {
    match text {
        "auto" => Ok(Algorithm::Auto),
        "exhaustive" => Ok(Algorithm::Exhaustive),
        "maxscore" => Ok(Algorithm::MaxScore),
        "wand" => Ok(Algorithm::Wand),
        "bmw" => Ok(Algorithm::Bmw),
        "galloping" => Ok(Algorithm::Galloping),
        "small-adaptive" => Ok(Algorithm::SmallAdaptive),
        _ => Err("give auto, exhaustive, maxscore, wand, bmw, galloping, or small-adaptive".into()),
    }
}

fn parse_idf(text: &str) -> Result<IdfKind, String> {
    match text {
        "lucene" => Ok(IdfKind::Lucene),
        "robertson" => Ok(IdfKind::Robertson),
        _ => Err("give lucene or robertson".into()),
    }
}

fn parse_form(text: &str) -> Result<Form, String> {
    match text {
        "trec" => Ok(Form::Trec),
        "jsonl" => Ok(Form::Jsonl),
        "tsv" => Ok(Form::Tsv),
        _ => Err("give trec, jsonl, or tsv".into()),
    }
}

impl Ranking {
    /// These settings, and the defaults of all others.
    pub(crate) fn plain(index: &Path, mode: Mode, algorithm: Algorithm, k: usize) -> Self {
        let (index, docids) = (index.to_path_buf(), Docids(ALL));
        let (k1, b, idf) = (1.2, 0.75, IdfKind::Lucene);
        Self { index, k, mode, algorithm, k1, b, idf, docids, verify: false }
    }

    /// Opens the index for these settings.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<Shared>> {
        let settings = self.settings()?;
        let generation = Generation::open(&self.index, self.verify)?;
        let documents = generation.documents().len();
        let whole = Whole { documents, tokens: generation.manifest().statistics.tokens };
        Ok(Shared::of_shard(generation, settings, whole, self.docids.of_shard(0))?)
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let bm25 = Bm25::new(self.k1, self.b).map_err(|e| Usage(e.to_string()))?;
        let Self { k, mode, algorithm, idf, .. } = *self;
        Ok(Settings { k, mode, algorithm, bm25, idf })
    }

    /// Opens the shard of this process; process 0 says which generation is live.
    fn open_shard(&self, cluster: &Cluster) -> anyhow::Result<(Arc<Shared>, Shard)> {
        let settings = self.settings()?;
        let (process, processes) = (cluster.process, cluster.processes);
        let manifest = if process == 0 {
            let live = ShardedManifest::live_for(&self.index, processes)?;
            cluster.tell_others(&live)?;
            live
        } else {
            cluster.hear_first::<ShardedManifest>()?
        };
        let listed =
            manifest.shards.get(process).context("the index has no shard for this process")?;
        let shard = Shard { process, processes, first_docid: listed.first_docid };
        let generation = manifest.open(&self.index, process, self.verify)?;
        // The manifest has at most as many documents as there are docids.
        let documents = manifest.documents().try_into().unwrap_or(u32::MAX);
        let whole = Whole { documents, tokens: manifest.tokens() };
        let docids = self.docids.of_shard(shard.first_docid);
        Ok((Shared::of_shard(generation, settings, whole, docids)?, shard))
    }
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let workers = args.workers.count()?;
    args.ranking.settings()?;
    let hosts = args.workers.hosts()?;
    let model = args.spreading.model(hosts.as_ref().map_or(1, |hosts| hosts.processes()))?;
    let control = Arc::new(Control::default());
    let Some(hosts) = hosts else {
        let queries = open_queries(args.queries.as_deref())?;
        let job = new_job(args, (workers, model), args.ranking.open()?, Shard::WHOLE, &control);
        // A write of answers may wait for a reader for ever, and leaves nothing behind that matters.
        signals::watch(&control, Some(Duration::from_secs(1)))?;
        read_in_background(&job, queries)?;
        let shared = job.clone();
        control::run(workers, &control, move |worker| assemble(&shared, worker))?;
        return totals(args, &job, start);
    };
    signals::watch(&control, Some(Duration::from_secs(3)))?;
    let process = hosts.process();
    let early = || -> anyhow::Result<_> {
        if process > 0 {
            return Ok(None);
        }
        // What is wrong here need not wait for the others.
        ShardedManifest::live_for(&args.ranking.index, hosts.processes())?;
        Ok(Some(open_queries(args.queries.as_deref())?))
    };
    let queries = match early() {
        Ok(queries) => queries,
        Err(error) => return Err(refuse((hosts, &args.workers), ("query", true), &control, error)),
    };
    together((hosts.clone(), &args.workers), ("query", true), &control, |cluster, sockets| {
        cluster.agree(&args.alike(workers))?;
        let (shared, shard) = args.ranking.open_shard(cluster)?;
        let job = new_job(args, (workers, model), shared, shard, &control);
        if let Some(queries) = queries {
            read_in_background(&job, queries)?;
        }
        let shared = job.clone();
        control::run_with_others(workers, process, (&hosts, sockets), &control, move |worker| {
            assemble(&shared, worker);
        })?;
        totals(args, &job, start)
    })
}

impl Args {
    /// The settings that all processes have to have alike.
    fn alike(&self, workers: usize) -> Vec<Setting> {
        let Ranking { k, mode, algorithm, k1, b, idf, docids, .. } = &self.ranking;
        let rows: [(&str, String); 8] = [
            ("--workers", workers.to_string()),
            ("-k", k.to_string()),
            ("--mode", format!("{mode:?}")),
            ("--algorithm", format!("{algorithm:?}")),
            ("--k1", k1.to_string()),
            ("--b", b.to_string()),
            ("--idf", format!("{idf:?}")),
            ("--docids", format!("{}..{}", docids.0.start, docids.0.end)),
        ];
        rows.map(|(name, value)| (name.to_string(), value)).into()
    }
}

fn new_job(
    args: &Args,
    (workers, model): (usize, Model),
    shared: Arc<Shared>,
    shard: Shard,
    control: &Arc<Control>,
) -> Arc<QueryJob> {
    Arc::new(QueryJob {
        parallelism: model.of(workers, shared.settings()),
        shared,
        form: args.format,
        batch: args.batch.get(),
        delay: Duration::from_millis(args.delay_ms),
        workers,
        shard,
        received: Mutex::default(),
        waker: Mutex::default(),
        output: Mutex::new(Some(Box::new(io::BufWriter::with_capacity(1 << 16, io::stdout())))),
        control: control.clone(),
        queries: Default::default(),
        unknown: Default::default(),
        hits: Default::default(),
        batches: Default::default(),
        on_answer: None,
    })
}

/// Starts the thread that reads queries. It may stay in a read for ever; the process ends without
/// it.
fn read_in_background(
    job: &Arc<QueryJob>,
    queries: impl Read + Send + 'static,
) -> anyhow::Result<()> {
    let (sender, receiver) = sync_channel(1 << 14);
    *job.received.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(receiver);
    let job = job.clone();
    std::thread::Builder::new().name("queries".into()).spawn(move || {
        read_queries(queries, &sender, &job);
        drop(sender);
        wake(&job);
    })?;
    Ok(())
}

/// Prints and reports what the job came to.
fn totals(args: &Args, job: &QueryJob, start: Instant) -> anyhow::Result<()> {
    let seconds = start.elapsed().as_secs_f64();
    let load = |n: &std::sync::atomic::AtomicU64| n.load(Ordering::Relaxed);
    let (queries, unknown, hits) = (load(&job.queries), load(&job.unknown), load(&job.hits));
    if !args.workers.common.quiet {
        let of = match job.shard {
            Shard { process: 0, .. } => String::new(),
            Shard { process, processes, .. } => format!(" (shard {process} of {processes})"),
        };
        let mut line = format!(
            "{}{of}: {} queries, {} hits in {seconds:.3} s ({:.0} queries/s)",
            args.ranking.index.display(),
            show_count(queries),
            show_count(hits),
            queries as f64 / seconds
        );
        if unknown > 0 {
            line += &format!("; {} queries with no indexed term", show_count(unknown));
        }
        say!("{line}");
    }
    let totals = json!({
        "job": "query",
        "index": args.ranking.index.display().to_string(),
        "process": job.shard.process,
        "processes": job.shard.processes,
        "queries": queries,
        "queries_without_indexed_term": unknown,
        "hits": hits,
        "batches": load(&job.batches),
        "queries_per_s": queries as f64 / seconds,
    });
    let (path, shares) = (args.workers.common.report.as_deref(), job.control.shares());
    report::write(path, totals, seconds, job.workers, &shares)
}

/// Opens a file of queries, or standard input.
pub(crate) fn open_queries(path: Option<&Path>) -> anyhow::Result<Box<dyn Read + Send>> {
    match path {
        None => Ok(Box::new(io::stdin())),
        Some(path) if path.as_os_str() == "-" => Ok(Box::new(io::stdin())),
        Some(path) => {
            let named = || format!("reading the queries {}", path.display());
            let file = File::open(path).with_context(named)?;
            if file.metadata().with_context(named)?.is_dir() {
                anyhow::bail!("{}: is a folder, not a file of queries", path.display());
            }
            Ok(Box::new(file))
        }
    }
}

/// The longest line that is a query.
const MOST_QUERY_BYTES: u64 = 1 << 20;

/// Reads queries until the stream ends or `take` has had enough.
pub(crate) fn each_query(stream: impl Read, mut take: impl FnMut(anyhow::Result<Query>) -> bool) {
    let mut lines = BufReader::with_capacity(1 << 16, stream);
    let (mut line, mut number, mut read) = (Vec::new(), 1, 0u64);
    loop {
        line.clear();
        read += 1;
        let query = match lines.by_ref().take(MOST_QUERY_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(n) if n as u64 == MOST_QUERY_BYTES => {
                Err(anyhow::anyhow!("line {read} of the queries is over {MOST_QUERY_BYTES} bytes"))
            }
            Ok(_) => match Query::parse(&String::from_utf8_lossy(&line), number) {
                None => continue,
                Some(query) => Ok(query),
            },
            Err(error) => Err(anyhow::Error::from(error).context("reading the queries")),
        };
        number += 1;
        let failed = query.is_err();
        if !take(query) || failed {
            return;
        }
    }
}

fn read_queries(stream: impl Read, sender: &SyncSender<Received>, job: &QueryJob) {
    each_query(stream, |query| {
        let went = sender.send(query.map_err(|e| format!("{e:#}").into())).is_ok();
        wake(job);
        went
    });
}

/// Lets the batch operator look at what has come.
pub(crate) fn wake(job: &QueryJob) {
    let waker = job.waker.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(waker) = &*waker {
        // It fails when the worker has ended, which needs no waking.
        _ = waker.activate();
    }
}
