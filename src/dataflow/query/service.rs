//! Answers a stream of queries: options and queries in, answers and a report out; nothing here
//! knows a command line.
//!
//! ```no_run
//! use millrace::QueryOptions;
//! use millrace::QueryService;
//! use millrace::Sink;
//! use millrace::Lines;
//! use millrace::inside::query::AnswerForm;
//! use millrace::inside::query::RunTag;
//! use millrace::Scoring;
//! use millrace::Snapshot;
//!
//! let snapshot = Snapshot::open("index".as_ref(), Scoring::default())?;
//! let (service, asker) = QueryService::new(snapshot, QueryOptions::default());
//! asker.ask_in_background(Lines::new(std::fs::File::open("queries")?))?;
//! let report = service.run(Sink::text(AnswerForm::Trec(RunTag::default()), std::io::stdout()))?;
//! println!("{} queries, {} hits", report.queries, report.hits);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub(crate) use super::collect::Sink;
pub(crate) use super::context::Hooks;
pub(crate) use super::inbox::Asker;
pub(crate) use crate::query::engines::shard::Shard;

use super::collect::AnswerWriter;
use super::context::{Context, QueryTally, StreamState};
use super::desk::QueryDesk;
use super::follower::Mover;
use super::inbox::Inbox;
use super::shards::ShardWiring;
use super::shards::follow::{Following, TogetherMover};
use crate::cluster::hosts::Hosts;
use crate::cluster::wire::SealedLine;
use crate::crew::lock;
use crate::dataflow::control::{Control, JobError, OperatorTime};
use crate::dataflow::query::{Wiring, assemble};
use crate::dataflow::timeline::ProgressLog;
use crate::dataflow::workers;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::answers::latencies::{Latencies, LatencyReport};
use crate::query::engines::engine::{Engines, Model, Wakers};
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use crate::shown::number_of;
use crate::text::unspaced::Unspaced;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How queries are answered.
pub struct QueryOptions {
    /// Defaults for what queries leave open.
    pub wanted: Wanted,
    /// Algorithms that queries of other processes may name beside the usual ones.
    #[doc(hidden)]
    pub algorithms: HandedAlgorithms,
    /// Whether the document that has the name of a query is left out of its hits.
    pub remove_query: bool,
    /// How they are spread over the workers.
    pub model: Model,
    /// Worker threads.
    pub workers: NonZeroUsize,
    /// The most queries of a batch.
    pub batch: NonZeroUsize,
    /// How long a batch waits for more queries.
    pub delay: Duration,
    /// Queries that may wait before the asker has to.
    pub room: usize,
    /// The most queries that are open at once; if left out, some full batches for each worker.
    pub most_open: Option<NonZeroUsize>,
    /// A query that has waited for longer when its turn comes is left unanswered, which its answer
    /// says; in one process.
    pub shed: Option<Duration>,
    /// Whether latencies are measured.
    pub latencies: bool,
    /// Callbacks.
    pub hooks: Hooks,
}

impl Default for QueryOptions {
    /// The best ten documents with any term, whole queries, a worker for each core.
    fn default() -> Self {
        Self {
            wanted: Wanted::default(),
            algorithms: &[],
            remove_query: false,
            model: Model::default(),
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            batch: const { NonZeroUsize::new(64).expect("it is not 0") },
            delay: Duration::from_millis(5),
            room: 1 << 14,
            most_open: None,
            shed: None,
            latencies: false,
            hooks: Hooks::default(),
        }
    }
}

/// The result of a query job.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryReport {
    /// The part of the index that this process searched.
    pub shard: Shard,
    /// Worker threads of this process.
    pub workers: usize,
    /// Queries answered.
    pub queries: u64,
    /// Queries that were left unanswered since they had waited too long.
    pub late: u64,
    /// Lines that were no queries.
    pub refused: u64,
    /// Queries of which no term is in the index.
    pub unknown: u64,
    /// The name of one of these whose letters mostly are such that the analysis does not cut.
    pub unspaced: Option<(String, Unspaced)>,
    /// Hits found.
    pub hits: u64,
    /// Queries that this process merged, of several, and of which it asked some shards again.
    pub asked_again: u64,
    /// Batches written.
    pub batches: u64,
    /// From when the workers were started to when they ended.
    pub took: Duration,
    /// From when the first batch was taken to when the last was written.
    pub answering: Duration,
    /// From when a worker took a query to when its answer was there, if that was measured and there
    /// were any.
    pub latency: Option<LatencyReport>,
    /// Queries that were answered by when, if latencies were measured.
    pub progress: ProgressLog,
    /// Working times of all operators.
    pub operators: Vec<OperatorTime>,
}

impl fmt::Display for QueryReport {
    /// The shard, if there are several, queries, hits and time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shard { process, processes, .. } = self.shard;
        if process > 0 {
            write!(f, " (shard {process} of {processes})")?;
        }
        let seconds = self.took.as_secs_f64();
        let per_second = self.queries as f64 / seconds;
        let of_queries = |n| number_of(n, "query", "queries");
        let queries = of_queries(self.queries);
        let hits = number_of(self.hits, "hit", "hits");
        write!(f, ": {queries}, {hits} in {seconds:.3} s ({per_second:.0} queries/s)")?;
        if self.late > 0 {
            write!(f, "; {} came too late and had no answer", of_queries(self.late))?;
        }
        match self.unknown {
            0 => Ok(()),
            unknown => write!(f, "; {} with no indexed term", of_queries(unknown)),
        }
    }
}

/// Answers queries.
pub struct QueryService {
    options: QueryOptions,
    shard: Shard,
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    inbox: Arc<Inbox>,
    engines: Box<dyn Engines>,
    wakers: Arc<Wakers>,
    following: Option<Arc<Following>>,
    stream: Arc<StreamState>,
    control: Arc<Control>,
}

impl QueryService {
    /// A service that answers from an index that is whole, and its asker.
    pub fn new(snapshot: Arc<Snapshot>, options: QueryOptions) -> (Self, Asker) {
        Self::of_shard(snapshot, Shard::WHOLE, options)
    }

    /// A service that answers from a shard, together with those of other processes. Queries are put
    /// to that of process 0 alone.
    pub fn of_shard(snapshot: Arc<Snapshot>, shard: Shard, options: QueryOptions) -> (Self, Asker) {
        let model = options.model;
        Self::with_engines(snapshot, shard, options, |wakers| model.engines(wakers))
    }

    /// A service with engines of any kind, whatever model the options name.
    pub fn with_engines(
        snapshot: Arc<Snapshot>,
        shard: Shard,
        options: QueryOptions,
        engines: impl FnOnce(&Arc<Wakers>) -> Box<dyn Engines>,
    ) -> (Self, Asker) {
        let room = options.most_open.map_or(options.room, |most| options.room.min(most.get()));
        let (asker, inbox) = Asker::new(room);
        let wakers = Wakers::new(options.workers.get());
        let engines = engines(&wakers);
        let snapshot = Arc::new(Mutex::new(snapshot));
        let control = Arc::new(Control::default());
        let (following, stream) = Default::default();
        let service =
            Self { options, shard, snapshot, inbox, engines, wakers, following, stream, control };
        (service, asker)
    }

    /// Replaces its control by a shared one.
    pub fn with_control(self, control: Arc<Control>) -> Self {
        Self { control, ..self }
    }

    /// Follows the index together with the services of other processes, each of which has to.
    /// Process 0 announces its generations by what this returns.
    pub fn following(self, following: Following) -> (Self, TogetherMover) {
        let following = Arc::new(following);
        let mover = TogetherMover { stream: self.stream.clone(), following: following.clone() };
        (Self { following: Some(following), ..self }, mover)
    }

    /// Ends the service early.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Moves the service over to another version of its index.
    pub fn mover(&self) -> Mover {
        Mover(self.snapshot.clone())
    }

    /// Answers queries until the [`Asker`] is dropped and all that it asked are answered.
    ///
    /// # Errors
    /// When the index is damaged, queries cannot be read or answers not be written, and when the
    /// [`Control`] ends the service.
    pub fn run(self, sink: Sink) -> Result<QueryReport, JobError> {
        self.run_by(sink, |workers, control, build| workers::run(workers, control, build))
    }

    /// Answers queries together with the services of the other `hosts`, to which `lines` lead, by
    /// their numbers.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when another process fails.
    pub fn run_with_others(
        self,
        sink: Sink,
        hosts: &Hosts,
        lines: Vec<Option<SealedLine>>,
    ) -> Result<QueryReport, JobError> {
        let process = self.shard.process;
        self.run_by(sink, |workers, control, build| {
            workers::run_with_others(workers, process, hosts, lines, control, build)
        })
    }

    fn run_by(
        self,
        sink: Sink,
        run: impl FnOnce(usize, &Arc<Control>, BuildDataflow) -> Result<(), JobError>,
    ) -> Result<QueryReport, JobError> {
        let start = Instant::now();
        let Self { options, shard, snapshot, inbox, engines, wakers, following, stream, control } =
            self;
        let QueryOptions {
            wanted,
            algorithms,
            remove_query,
            workers,
            batch,
            delay,
            most_open,
            shed,
            hooks,
            latencies,
            ..
        } = options;
        let workers = workers.get();
        let layout = sink.layout();
        let context = Arc::new(Context {
            wanted,
            algorithms,
            remove_query,
            batch: batch.get(),
            delay,
            most_open,
            shed,
            workers,
            shard,
            snapshot,
            opened: Mutex::default(),
            stream,
            layout,
            hooks,
            tally: QueryTally {
                latencies: latencies.then(Latencies::default),
                ..QueryTally::default()
            },
            control: control.clone(),
        });
        let wiring = Arc::new(Wiring {
            inbox,
            writer: AnswerWriter::new(Some(sink)),
            engines,
            whole: Arc::new(QueryDesk::new(wakers.clone())),
            shards: ShardWiring::new(&wakers),
            following,
            wakers,
        });
        let shared = context.clone();
        run(workers, &control, Box::new(move |worker| assemble(&shared, &wiring, worker)))?;
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let QueryTally {
            queries,
            refused,
            unknown,
            unspaced,
            late,
            hits,
            asked_again,
            batches,
            answering,
            latencies,
            progress,
        } = &context.tally;
        let answering = lock(answering).map_or(Duration::ZERO, |(first, last)| last - first);
        Ok(QueryReport {
            shard,
            workers,
            queries: load(queries),
            late: load(late),
            refused: load(refused),
            unknown: load(unknown),
            unspaced: unspaced.get().cloned(),
            hits: load(hits),
            asked_again: load(asked_again),
            batches: load(batches),
            took: start.elapsed(),
            answering,
            latency: latencies.as_ref().and_then(Latencies::report),
            progress: lock(progress).clone(),
            operators: control.operator_times(),
        })
    }
}

type BuildDataflow = Box<dyn Fn(&mut timely::worker::Worker) + Send + Sync>;
