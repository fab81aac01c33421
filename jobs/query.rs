//! `millrace query`.

mod candidates;
mod columns;
mod engines;
pub(crate) mod expanded;
pub(crate) mod follow;
pub(crate) mod gpus;
pub(crate) mod input;
mod measured;
pub(crate) mod ranking;
pub(crate) mod score;
#[cfg(feature = "serve")]
pub(crate) mod serving;
mod shards;
mod spread;
pub(crate) mod talk;

use self::candidates::CandidateArgs;
use self::columns::ColumnArgs;
use self::engines::EngineMaker;
use self::expanded::Expansion;
use self::follow::{QUIET, Renew, when_quiet};
use self::gpus::Where;
use self::input::{Queries, QueryInput, end, has_words, telling};
use self::measured::MeasuredAnswers;
use self::ranking::RankingArgs;
use self::spread::SpreadingArgs;
use crate::Usage;
use crate::cli::args::Workers;
use crate::cli::index_args::with_option;
use crate::cli::{report, signals};
use crate::cluster::SharedSetting;
use crate::papers;
use millrace::inside::cluster::Hosts;
use millrace::inside::dataflow::{AnsweredBy, Hooks, Mover};
use millrace::inside::gpu::{CpuWork, Devices};
use millrace::inside::query::{
    AnswerForm, Engines, Model, ReadQuery, Refusals, RenewedEngines, RunTag, Shard, Wakers,
};
use millrace::inside::score::Score;
use millrace::{
    Algorithm, Asker, Control, QueryOptions, QueryReport, QueryService, Sink, Snapshot,
};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Queries of a batch, if that is left out: by the CPU, and with devices.
const BATCH: NonZeroUsize = NonZeroUsize::new(64).expect("it is not 0");
const BATCH_OF_DEVICES: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not 0");

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) ranking: RankingArgs,
    /// Output format. trec: qid Q0 name rank score tag. jsonl: one object for each query. tsv: qid,
    /// rank, name, docid, score. text: a list to read, with a part of each text. binary: docids and
    /// scores (docs/queries.md). [default: trec; text if a query is typed, or given by --query, and
    /// the output is a terminal]
    #[arg(long, value_name = "trec|jsonl|tsv|text|binary")]
    #[arg(value_parser = ["trec", "jsonl", "tsv", "text", "binary"], hide_possible_values = true)]
    format: Option<String>,
    /// With --format jsonl, add a part of the text to each hit.
    #[arg(long)]
    snippets: bool,
    /// Greatest number of queries in a batch [default: 64, 64 for each of several processes, or
    /// 1024 with a GPU].
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroUsize>,
    /// Milliseconds that a batch waits for more queries.
    #[arg(long, default_value_t = 5, value_name = "MS")]
    delay_ms: u64,
    /// Greatest number of queries that are read and not yet answered [default: 4 batches for each
    /// worker]. As many again are read ahead; then reading stops until answers are written.
    #[arg(long, value_name = "N")]
    max_queue: Option<NonZeroUsize>,
    /// Do not answer queries that have waited for longer than --deadline-ms. The output says so in
    /// every format, and the report counts them.
    #[arg(long)]
    shed: bool,
    /// Leave out the document that has the name of the query, for queries that are documents of the
    /// index. There are k hits all the same.
    #[arg(long)]
    remove_query: bool,
    /// Name of the run: the last word of each line with --format trec.
    #[arg(long, default_value = "millrace", value_parser = parse_tag, value_name = "NAME")]
    tag: RunTag,
    /// File of judgements: measure the answers too. The values go to standard error and into the
    /// report, when all answers are written. Judged queries without an answer count as 0.
    #[arg(long, value_name = "FILE")]
    qrels: Option<PathBuf>,
    #[command(flatten)]
    input: QueryInput,
    #[command(flatten)]
    expansion: Expansion,
    #[command(flatten)]
    candidates: CandidateArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    spreading: SpreadingArgs,
    #[command(flatten)]
    place: Where,
}

pub(crate) fn parse_tag(text: &str) -> Result<RunTag, String> {
    RunTag::new(text)
        .ok_or_else(|| format!("give one word of at most {} bytes", RunTag::MOST_BYTES))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.is_talk()? {
        return args.talk();
    }
    let job = QueryJob::of(args)?;
    match &job.hosts {
        None => job.alone()?,
        Some(hosts) => job.in_processes(hosts)?,
    }
    end(&job.refused)
}

/// A job whose options go together.
pub(crate) struct QueryJob<'a> {
    args: &'a Args,
    pub(crate) hosts: Option<Hosts>,
    workers: usize,
    model: Model,
    score: Score,
    measured: Option<MeasuredAnswers>,
    refused: Refusals,
    pub(crate) control: Arc<Control>,
}

impl<'a> QueryJob<'a> {
    pub(crate) fn of(args: &'a Args) -> anyhow::Result<Self> {
        let workers = args.workers.count()?;
        let score = args.ranking.scoring()?.score;
        let hosts = args.workers.together.hosts()?;
        // Candidates are few: each worker ranks those of a query whole.
        let model = match args.candidates.is_asked() {
            true => Model::Inter,
            false => args.spreading.model()?,
        };
        let measured = args.measured(hosts.as_ref().map_or(0, Hosts::process))?;
        let (refused, control) = Default::default();
        let job = Self { args, hosts, workers, model, score, measured, refused, control };
        if job.processes() > 1 {
            args.ranking.scored.in_shards()?;
            // No process has all names and texts.
            for (name, is_given) in [
                ("rm3", args.expansion.is_asked()),
                ("candidates", args.candidates.is_asked()),
                ("shed", args.shed),
                ("snippets", args.snippets),
            ] {
                if is_given {
                    return Err(Usage(format!("--{name} works in one process")).into());
                }
            }
        }
        args.ranking.check_count(args.format.as_deref())?;
        args.columns.check_format(args.format.as_deref())?;
        if args.snippets && args.format.as_deref() != Some("jsonl") {
            let why = "--snippets goes with --format jsonl; --format text has them always";
            return Err(Usage(why.into()).into());
        }
        Ok(job)
    }

    fn processes(&self) -> usize {
        self.hosts.as_ref().map_or(1, Hosts::processes)
    }

    /// The devices that are asked for.
    pub(crate) fn devices(&self) -> anyhow::Result<Option<Devices>> {
        let args = self.args;
        let algorithm = args.ranking.algorithm;
        if args.leaves_devices(self.score) {
            algorithm.without_devices().map_err(Usage::from)?;
            let part = if self.score == Score::Impact { ", except for --mode or" } else { "" };
            let name = self.score.name();
            say!("millrace: the score {name} is computed by the CPU alone{part}: no GPU is used");
            return Ok(None);
        }
        if args.candidates.is_asked() {
            return Ok(None);
        }
        let k = args.ranking.k().saturating_add(usize::from(args.remove_query));
        args.place.devices(k, self.processes(), self.model == Model::Inter, algorithm)
    }

    /// In one process, by devices or by the CPU.
    fn alone(&self) -> anyhow::Result<()> {
        let args = self.args;
        let devices = self.devices()?;
        let queries = args.open_queries()?;
        let snapshot = args.ranking.open_for_any()?;
        args.ranking.scored.remark(&snapshot);
        args.columns.check(&snapshot)?;
        let queries = telling(queries, has_words(snapshot.generation()));
        let queries = args.columns.give(queries);
        let queries = args.expansion.prepare(&args.ranking, &snapshot, queries, self.workers)?;
        let queries = args.candidates.prepare(&args.ranking, &snapshot, queries)?;
        let devices =
            devices.or_else(|| args.devices_for_work(self.workers, self.model, &snapshot));
        let answer = |service, asker, by| self.answer(service, asker, queries, by);
        self.by(devices, snapshot, Box::new(|_| {}), answer)
    }

    /// Makes the service, by devices or by the CPU, that follows its index and calls `moved` behind
    /// each move, and lets `run` run it.
    pub(crate) fn by(
        &self,
        devices: Option<Devices>,
        snapshot: Arc<Snapshot>,
        moved: Renew,
        run: impl FnOnce(QueryService, Asker, AnsweredBy) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Some(devices) = devices {
            return self.by_devices(devices, snapshot, moved, run);
        }
        let options = self.args.options(self.workers, self.model, &self.refused, BATCH);
        let (service, asker) = QueryService::new(snapshot.clone(), options);
        self.args.follow(&snapshot, service.mover(), moved)?;
        drop(snapshot);
        run(service, asker, AnsweredBy::default())
    }

    fn by_devices(
        &self,
        devices: Devices,
        snapshot: Arc<Snapshot>,
        mut moved: Renew,
        run: impl FnOnce(QueryService, Asker, AnsweredBy) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let args = self.args;
        // All cores look up many terms, or count the occurrences of terms.
        let workers = match args.workers.workers.is_some() || self.score.is_slow_to_plan() {
            true => self.workers,
            false => devices.workers(args.place.is_hybrid(), self.workers),
        };
        let options = args.options(workers, self.model, &self.refused, BATCH_OF_DEVICES);
        let mut by = AnsweredBy::default();
        let mut failed = None;
        let mut renewer = None;
        let maker = EngineMaker::new(args, devices);
        let engines = |wakers: &Arc<Wakers>| -> Box<dyn Engines> {
            match maker.make(&snapshot, wakers) {
                Ok(engines) => {
                    by.devices = Some(maker.counts.clone());
                    by.shares = args.place.is_hybrid().then(|| maker.shares.clone());
                    let engines = RenewedEngines::new(engines, snapshot.clone(), wakers);
                    renewer = Some(engines.renewer());
                    Box::new(engines)
                }
                // They are thrown away if devices were asked for.
                Err(error) => {
                    failed = Some(error);
                    Model::Inter.engines(wakers)
                }
            }
        };
        let (service, asker) =
            QueryService::with_engines(snapshot.clone(), Shard::WHOLE, options, engines);
        if let Some(error) = failed {
            if args.place.is_gpu() {
                return Err(error);
            }
            tell!("millrace: {error:#}; the CPU answers");
        }
        let mut renew: Renew = match renewer {
            Some(renewer) => when_quiet(
                QUIET,
                move |snapshot| maker.renew(&renewer, snapshot),
                || {
                    tell!(
                        "millrace: generations come often: the CPU answers until none has come for 10 s"
                    )
                },
            )?,
            None => Box::new(|_| {}),
        };
        let both = move |snapshot: &Arc<Snapshot>| {
            moved(snapshot);
            renew(snapshot);
        };
        args.follow(&snapshot, service.mover(), Box::new(both))?;
        drop(snapshot);
        run(service, asker, by)
    }

    /// Answers the queries of one process.
    fn answer(
        &self,
        service: QueryService,
        asker: Asker,
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
        by: AnsweredBy,
    ) -> anyhow::Result<()> {
        // A write of answers may wait for a reader for ever, and leaves nothing behind that
        // matters.
        signals::watch(&self.control, Some(Duration::from_secs(1)))?;
        let (queries, drawn) = self.args.input.drawn(queries);
        asker.ask_in_background(queries)?;
        let measured = self.measured.as_ref();
        let service = service.with_control(self.control.clone());
        let report = service.run(self.args.answers(measured))?;
        drop(drawn);
        totals(self.args, &report, by, measured)
    }
}

impl Args {
    /// Devices are asked for that do not have the score.
    fn leaves_devices(&self, score: Score) -> bool {
        self.place.is_gpu() && !self.ranking.algorithm.has_score(score, self.ranking.mode)
    }

    /// Lets the job follow its index, or report that it does not.
    fn follow(&self, snapshot: &Arc<Snapshot>, mover: Mover, renew: Renew) -> anyhow::Result<()> {
        match self.expansion.is_asked() || self.candidates.is_asked() {
            true => follow::stay(&self.ranking, snapshot),
            false => follow::follow(&self.ranking, snapshot, mover, renew),
        }
    }

    fn open_queries(&self) -> anyhow::Result<Queries> {
        self.input.open(self.ranking.syntax, self.qrels.is_some())
    }

    /// For process 0, which writes the answers.
    fn measured(&self, process: usize) -> anyhow::Result<Option<MeasuredAnswers>> {
        if self.qrels.is_some() && self.format.as_deref() == Some("binary") {
            let why = "--qrels measures names, and --format binary has none";
            return Err(Usage(why.into()).into());
        }
        let qrels = self.qrels.as_deref().filter(|_| process == 0);
        qrels.map(MeasuredAnswers::new).transpose()
    }

    fn answers(&self, measured: Option<&MeasuredAnswers>) -> Sink {
        let form = match self.format.as_deref() {
            Some("jsonl") if self.snippets => AnswerForm::Snippets,
            Some("jsonl") => AnswerForm::Jsonl,
            Some("tsv") => AnswerForm::Tsv,
            Some("binary") => AnswerForm::Binary,
            _ => AnswerForm::Trec(self.tag),
        };
        let out = io::BufWriter::with_capacity(1 << 16, io::stdout());
        match measured {
            Some(measured) => Sink::text(form, measured.written.beside(out)),
            None => Sink::text(form, out),
        }
    }

    /// Devices that are taken without being asked for.
    fn devices_for_work(
        &self,
        workers: usize,
        model: Model,
        snapshot: &Snapshot,
    ) -> Option<Devices> {
        let RankingArgs { mode, algorithm, count, .. } = self.ranking;
        if count
            || self.candidates.is_asked()
            || snapshot.scoring().is_of_fields()
            || self.columns.are_of_cpu()
            || !algorithm.has_score(snapshot.scoring().score, mode)
        {
            return None;
        }
        if model != Model::Inter || algorithm.on_cpu() != Algorithm::Auto {
            return None;
        }
        let file = self.input.path().and_then(|path| path.metadata().ok());
        let bytes = file.filter(|file| file.is_file())?.len();
        let documents = snapshot.whole().documents;
        self.place.for_work(self.ranking.k(), &CpuWork { bytes, documents, mode, workers })
    }

    fn options(
        &self,
        workers: usize,
        model: Model,
        refused: &Refusals,
        batch: NonZeroUsize,
    ) -> QueryOptions {
        let refused = refused.clone();
        QueryOptions {
            wanted: self.ranking.wanted(),
            algorithms: papers::ALGORITHMS,
            remove_query: self.remove_query,
            model,
            workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
            batch: self.batch.unwrap_or(batch),
            delay: Duration::from_millis(self.delay_ms),
            most_open: self.max_queue,
            shed: self.shed.then(|| self.place.deadline()),
            latencies: report::is_asked(),
            hooks: Hooks {
                on_refused: Some(Box::new(move |line| {
                    say!("millrace: {line}");
                    refused.add();
                })),
                ..Hooks::default()
            },
            ..QueryOptions::default()
        }
    }

    /// The settings that all processes must share.
    fn alike(&self, workers: usize) -> Vec<SharedSetting> {
        let RankingArgs { mode, algorithm, scored, docids, .. } = &self.ranking;
        let mut rows = vec![
            ("--workers", workers.to_string()),
            ("-k", self.ranking.k().to_string()),
            ("--remove-query", self.remove_query.to_string()),
            ("--mode", mode.name().to_string()),
            ("--algorithm", algorithm.name().to_string()),
            ("--docids", docids.to_string()),
            ("--format", self.format.clone().unwrap_or_default()),
            ("--tag", self.tag.name().to_string()),
        ];
        rows.extend(scored.settings());
        rows.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

pub(crate) fn totals(
    args: &Args,
    report: &QueryReport,
    by: AnsweredBy,
    measured: Option<&MeasuredAnswers>,
) -> anyhow::Result<()> {
    let index = args.ranking.index.display().to_string();
    tell!("{index}{report}{}", by.remark());
    if let Some((qid, unspaced)) = &report.unspaced {
        let letters = with_option(unspaced);
        say!(
            "query {qid}: no term of it is in the index; its letters are mostly {letters} (said once)"
        );
    }
    by.warning().inspect(|warning| tell!("millrace: {warning}"));
    let all = args.candidates.is_asked().then_some(usize::MAX);
    let depth = args.ranking.k.or(all).unwrap_or_else(|| args.ranking.k());
    let measures = measured.map(|measured| measured.end(args.tag.name(), depth)).transpose()?;
    let score = args.ranking.scoring()?.score;
    let by = AnsweredBy { score_is_of_cpu: args.leaves_devices(score), ..by };
    let mut totals = by.totals(report, score);
    totals["index"] = index.into();
    totals["measures"] = measures.into();
    report::write_of(totals, report.took.as_secs_f64(), report.workers, &report.operators)
}
