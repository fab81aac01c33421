//! Which devices answer queries, and what is said of them?

use crate::Usage;
use crate::query::Ranking;
use anyhow::{Context as _, bail};
use millrace::build::chain;
use millrace::gpu::ding09::MOST_MERGE_LEVELS;
use millrace::gpu::huang::Traversal;
use millrace::gpu::query::choose::{ChoiceError, Chosen, Devices};
use millrace::gpu::query::engine::{GpuEngines, Method, OnLost};
use millrace::gpu::query::given::{self, Given};
use millrace::gpu::query::service::Counts;
use millrace::gpu::query::worth::CpuWork;
use millrace::gpu::wang::Cached;
use millrace::query::engine::Wakers;
use millrace::query::engine::hybrid::{OnSlow, Scheduling, Shares};
use millrace::query::snapshot::Snapshot;
use millrace::schedule::policy::Schedule;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    /// Where queries are answered: cpu, gpu; hybrid: by both, as --schedule says; auto: on GPUs that can be used if
    /// the CPU would take long for a file of queries (docs/gpu-queries.md), else on the CPU. All give the same answers.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|gpu|hybrid")]
    #[arg(value_parser = ["auto", "cpu", "gpu", "hybrid"])]
    device: String,
    /// Who answers which query, with --device hybrid: auto (the best of these for this machine, as calibrate has found),
    /// ding09 (three groups by cost, with stealing), best, best-serial, sd (halves by chance), lbd (by blocks of lists;
    /// lbd:N or lbd-reverse:N by N blocks), cached-first:F (docs/hybrid.md), cpu, gpu.
    #[arg(long, default_value = "auto", value_name = "NAME", hide_default_value = true)]
    schedule: Schedule,
    /// Answers should be there after so many milliseconds: with --device hybrid what has waited 70 % of it goes first,
    /// with --shed what has waited longer is left unanswered.
    #[arg(long, default_value_t = 500, value_name = "MS", hide_default_value = true)]
    deadline_ms: u64,
    /// GPUs that are used; the batches are dealt to them (with --device gpu; all if left out).
    #[arg(long, value_name = "N")]
    gpus: Option<NonZeroUsize>,
    /// Each GPU has a part of the documents, and all answer every query, so that an index may be larger than
    /// the memory of one.
    #[arg(long)]
    gpu_partition: bool,
    /// Memory of each GPU that holds postings lists, such as 40G; most of what is free if left out.
    /// Queries whose lists have no room are answered by the CPU.
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size)]
    gpu_memory: Option<u64>,
    /// Levels of splitters by which ding09 merges, 0 to 4 (3 if left out, as in the paper).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_MERGE_LEVELS)))]
    merge_levels: Option<u32>,
    /// Splitters of ding09 for each of the level before, a power of two (if left out, of m elements the root of m that
    /// divides them evenly among the levels).
    #[arg(long, value_name = "N", value_parser = given::splitters)]
    splitters: Option<u32>,
    /// Threads that huang has for a query: 32, 64, 128, 256, 320, 512 (64 if left out, as in the paper); and that wang has
    /// on a GPU, which are as many documents of a round: 64, 128, 256, 512, 1024 (256).
    #[arg(long, value_name = "N", value_parser = given::threads)]
    query_threads: Option<u32>,
    /// How huang's threads find documents with any term: exhaustive, wand, bmw (bmw if left out).
    #[arg(long, value_name = "NAME", value_parser = given::traversal)]
    traversal: Option<Traversal>,
    /// What huang's threads pass over documents by: own, each by the best that it has found, as in the paper; shared, by
    /// the best of those of all threads of the query.
    #[arg(long, value_name = "own|shared", value_parser = ["own", "shared"])]
    threshold: Option<String>,
    /// Lists that wang has on a GPU for good: planned, what the plan of `millrace cache` says, or the longest if there is none;
    /// longest (planned if left out).
    #[arg(long, value_name = "planned|longest", value_parser = ["planned", "longest"])]
    cached: Option<String>,
    /// Folder of compiled kernels.
    #[arg(long, value_name = "DIR", hide = true)]
    gpu_cache: Option<PathBuf>,
}

impl Where {
    /// Whether devices answer, alone or not.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device == "gpu" || self.is_hybrid()
    }

    pub(crate) fn is_hybrid(&self) -> bool {
        self.device == "hybrid"
    }

    /// The devices, if queries are to be answered by some; `processes` and `inter` say how else they are
    /// spread, and `algorithm` how they have to be answered.
    ///
    /// # Errors
    /// There is none, or options do not go together.
    pub(crate) fn devices(
        &self,
        k: usize,
        processes: usize,
        inter: bool,
        algorithm: Chosen,
    ) -> anyhow::Result<Option<Devices>> {
        self.given().check(algorithm, self.is_gpu()).map_err(Usage::from)?;
        if !self.is_gpu() {
            return Ok(None);
        }
        if processes > 1 {
            return Err(Usage("--device gpu works in one process".into()).into());
        }
        if !inter {
            return Err(Usage("--device gpu goes with --parallelism inter".into()).into());
        }
        self.chosen(k, algorithm).map(Some)
    }

    /// The devices that are asked for.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn chosen(&self, k: usize, algorithm: Chosen) -> anyhow::Result<Devices> {
        let given = self.given();
        Devices::of_machine(&given.choice(k, given.method(algorithm))).map_err(explain)
    }

    fn given(&self) -> Given {
        Given {
            merge_levels: self.merge_levels,
            splitters: self.splitters,
            threads: self.query_threads,
            traversal: self.traversal,
            shared_threshold: self.threshold.as_ref().map(|threshold| threshold == "shared"),
            cached: self.cached.as_deref().map(|cached| match cached {
                "longest" => Cached::Longest,
                _ => Cached::Planned,
            }),
            devices: self.gpus,
            partition: self.gpu_partition,
            memory: self.gpu_memory,
            cache: self.gpu_cache.clone(),
        }
    }

    /// Workers, if their number is left to the program.
    pub(crate) fn workers(&self, devices: &Devices, cores: usize) -> usize {
        devices.workers(self.is_hybrid(), cores)
    }

    /// How queries are scheduled over the CPU and devices, if that is asked for.
    ///
    /// # Errors
    /// Nobody has measured what they cost, or not in this mode.
    pub(crate) fn scheduling(
        &self,
        devices: &Devices,
        ranking: &Ranking,
        (shed, quiet): (bool, bool),
        shares: &Arc<Shares>,
    ) -> anyhow::Result<Option<Scheduling>> {
        if !self.is_hybrid() {
            return Ok(None);
        }
        let models = devices.models(&ranking.index).map_err(explain)?;
        let (of, here) = (&models.machine, devices.machine());
        if *of != here && !quiet {
            say!(
                "millrace: costs were measured on another machine ({of}, not {here}): run millrace calibrate here"
            );
        }
        let name = ranking.mode.name();
        let Some(model) = models.of(ranking.mode) else {
            bail!(
                "no costs of --mode {name} are known: run millrace calibrate --mode {name} first"
            );
        };
        let policy = self.schedule.policy(model.choice.as_ref());
        let policy =
            policy.context("the best --schedule is not known: run millrace calibrate again")?;
        let on_slow: OnSlow = Box::new(move |patience| {
            if !quiet {
                let seconds = patience.as_secs_f64();
                say!(
                    "millrace: a GPU has not answered for {seconds:.1} s: the CPU answers its queries, until it is there again"
                );
            }
        });
        let predict = models.predict();
        let (deadline, on_slow) = (self.deadline(), Some(on_slow));
        Ok(Some(Scheduling { policy, deadline, shed, predict, on_slow, shares: shares.clone() }))
    }

    /// The GPUs that are asked for.
    pub(crate) fn gpus(&self) -> Option<usize> {
        self.gpus.map(NonZeroUsize::get)
    }

    /// After which time answers should be there.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The devices, if queries of so much work are worth the time until they answer, and the choice is left
    /// to this program. Devices that cannot be used are not.
    pub(crate) fn for_work(&self, k: usize, work: &CpuWork) -> Option<Devices> {
        let worth = self.device == "auto" && work.is_worth_devices();
        if worth { Devices::of_machine(&self.given().choice(k, Method::Bounds)).ok() } else { None }
    }
}

/// Opens devices, and says so if one is lost later; what they do is added to `counts`.
///
/// # Errors
/// One cannot be opened, has too little memory, or does not read the lists of the index.
pub(crate) fn open(
    devices: &Devices,
    snapshot: &Arc<Snapshot>,
    wakers: &Arc<Wakers>,
    quiet: bool,
    counts: &Arc<Counts>,
) -> anyhow::Result<GpuEngines> {
    let on_lost: OnLost = Arc::new(move |error| {
        if !quiet {
            let chain = chain(error);
            say!("millrace: {chain}; its queries are answered by the CPU from now on");
        }
    });
    devices.open(snapshot, wakers, &on_lost, counts).map_err(explain)
}

/// Says with which option, or after which job, devices would answer.
pub(crate) fn explain(error: ChoiceError) -> anyhow::Error {
    let remedy = match &error {
        ChoiceError::Ding09Form(_) => "build it with --codec pfor, or merge it so",
        ChoiceError::HuangForm(_) => "build it with --codec newpfd --block-size 64, or merge it so",
        ChoiceError::NoCosts { .. } | ChoiceError::BadCosts { .. } => {
            "run millrace calibrate first"
        }
        ChoiceError::TooFew { .. } => "--gpus",
        _ => "--device gpu",
    };
    anyhow::Error::from(error).context(remedy)
}
