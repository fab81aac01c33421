//! Which devices answer queries, and what is said of them?

use crate::Usage;
use crate::query::Ranking;
use anyhow::bail;
use millrace::build::chain;
use millrace::gpu::ding09::{self, MOST_MERGE_LEVELS, Merging};
use millrace::gpu::huang::device::Tuning;
use millrace::gpu::huang::{self, Traversal};
use millrace::gpu::query::choose::{Choice, ChoiceError, Chosen, Devices};
use millrace::gpu::query::engine::{GpuEngines, Method, OnLost};
use millrace::gpu::query::service::Counts;
use millrace::gpu::query::worth::CpuWork;
use millrace::gpu::wang;
use millrace::query::engine::Wakers;
use millrace::query::engine::hybrid::Models;
use millrace::query::snapshot::Snapshot;
use millrace::query::wanted::Algorithm;
use millrace::schedule::queues::Policy;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// That of the CPU which devices have, too.
const WANG: Chosen = Chosen::Cpu(Algorithm::Wang);

/// Where queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    /// Where queries are answered: cpu, gpu; hybrid: by both, as --schedule says; auto: on GPUs that can be used if
    /// the CPU would take long for a file of queries (docs/gpu-queries.md), else on the CPU. All give the same answers.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|gpu|hybrid")]
    #[arg(value_parser = ["auto", "cpu", "gpu", "hybrid"])]
    device: String,
    /// Who answers which query, with --device hybrid: ding09 (three groups by cost, with stealing), best, best-serial,
    /// sd (halves by chance), lbd:N and lbd-reverse:N (by blocks of lists), cpu, gpu.
    #[arg(long, default_value = "ding09", value_name = "NAME", hide_default_value = true)]
    schedule: Policy,
    /// Answers should be there after so many milliseconds, with --device hybrid: what has waited 70 % of it goes first.
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
    #[arg(long, value_name = "N", value_parser = parse_splitters)]
    splitters: Option<u32>,
    /// Threads that huang has for a query: 32, 64, 128, 256, 320, 512 (64 if left out, as in the paper); and that wang has
    /// on a GPU, which are as many documents of a round: 64, 128, 256, 512, 1024 (256).
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    query_threads: Option<u32>,
    /// How huang's threads find documents with any term: exhaustive, wand, bmw (bmw if left out).
    #[arg(long, value_name = "NAME", value_parser = parse_traversal)]
    traversal: Option<Traversal>,
    /// What huang's threads pass over documents by: own, each by the best that it has found, as in the paper; shared, by
    /// the best of those of all threads of the query.
    #[arg(long, value_name = "own|shared", value_parser = ["own", "shared"])]
    threshold: Option<String>,
    /// Folder of compiled kernels.
    #[arg(long, value_name = "DIR", hide = true)]
    gpu_cache: Option<PathBuf>,
}

pub(crate) fn parse_splitters(text: &str) -> Result<u32, String> {
    let splitters = text.parse().ok().filter(|n| Merging::is_number_of_splitters(*n));
    splitters.ok_or_else(|| format!("give a power of two from 2 to {}", ding09::MOST_SPLITTERS))
}

pub(crate) fn parse_threads(text: &str) -> Result<u32, String> {
    let mut known = [&huang::THREADS[..], &wang::ROUNDS].concat();
    known.sort_unstable();
    known.dedup();
    let threads = text.parse().ok().filter(|threads| known.contains(threads));
    let all = || known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    threads.ok_or_else(|| format!("give {}", all()))
}

fn parse_traversal(text: &str) -> Result<Traversal, String> {
    let names = || Traversal::ALL.map(|traversal| traversal.on_cpu().name()).join(", ");
    Traversal::named(text).ok_or_else(|| format!("give {}", names()))
}

impl Where {
    /// Whether devices answer, alone or not.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device == "gpu" || self.is_hybrid()
    }

    fn is_hybrid(&self) -> bool {
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
        for (name, given, with) in [
            ("merge-levels", self.merge_levels.is_some(), Chosen::Ding09),
            ("splitters", self.splitters.is_some(), Chosen::Ding09),
            ("traversal", self.traversal.is_some(), Chosen::Huang),
            ("threshold", self.threshold.is_some(), Chosen::Huang),
        ] {
            if given && algorithm != with {
                let text = format!("--{name} goes with --algorithm {}", with.name());
                return Err(Usage(text).into());
            }
        }
        self.check_threads(algorithm)?;
        if !self.is_gpu() {
            without_devices(algorithm)?;
            for (name, given) in [
                ("query-threads", self.query_threads.is_some()),
                ("gpus", self.gpus.is_some()),
                ("gpu-memory", self.gpu_memory.is_some()),
                ("gpu-partition", self.gpu_partition),
            ] {
                if given {
                    return Err(Usage(format!("--{name} goes with --device gpu")).into());
                }
            }
            return Ok(None);
        }
        if processes > 1 {
            return Err(Usage("--device gpu works in one process".into()).into());
        }
        if !inter {
            return Err(Usage("--device gpu goes with --parallelism inter".into()).into());
        }
        if (algorithm.is_of_devices() || algorithm == WANG) && self.gpu_partition {
            let text = format!("--algorithm {} goes without --gpu-partition", algorithm.name());
            return Err(Usage(text).into());
        }
        self.chosen(k, algorithm).map(Some)
    }

    /// Makes sure that the algorithm takes so many threads.
    fn check_threads(&self, algorithm: Chosen) -> Result<(), Usage> {
        let Some(threads) = self.query_threads else { return Ok(()) };
        let known = match algorithm {
            Chosen::Huang => &huang::THREADS[..],
            WANG => &wang::ROUNDS,
            _ => {
                let text = "--query-threads goes with --algorithm huang, or wang on a GPU";
                return Err(Usage(text.into()));
            }
        };
        if known.contains(&threads) {
            return Ok(());
        }
        let (name, known) = (algorithm.name(), known.iter().map(u32::to_string));
        let known: Vec<String> = known.collect();
        Err(Usage(format!("--query-threads: {name} takes {}", known.join(", "))))
    }

    /// The devices that are asked for.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn chosen(&self, k: usize, algorithm: Chosen) -> anyhow::Result<Devices> {
        let method = match algorithm {
            WANG => Method::Wang { round: self.query_threads.unwrap_or(wang::DEFAULT_ROUND) },
            Chosen::Cpu(_) => Method::Bounds,
            Chosen::Ding09 => Method::Ding09(Merging {
                levels: self.merge_levels.unwrap_or(Merging::default().levels),
                splitters: self.splitters,
            }),
            Chosen::Huang => {
                let usual = Tuning::default();
                Method::Huang(Tuning {
                    threads: self.query_threads.unwrap_or(usual.threads),
                    traversal: self.traversal.unwrap_or(usual.traversal),
                    shared_threshold: match self.threshold.as_deref() {
                        Some(threshold) => threshold == "shared",
                        None => usual.shared_threshold,
                    },
                })
            }
        };
        Devices::of_machine(&self.choice(k, method)).map_err(explain)
    }

    fn choice(&self, k: usize, method: Method) -> Choice {
        Choice {
            method,
            k,
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

    /// The costs by which queries are scheduled over the CPU and devices, if that is asked for.
    ///
    /// # Errors
    /// Nobody has measured, or not this mode.
    pub(crate) fn models(
        &self,
        devices: &Devices,
        ranking: &Ranking,
        quiet: bool,
    ) -> anyhow::Result<Option<Models>> {
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
        if !models.knows(ranking.mode) {
            bail!(
                "no costs of --mode {name} are known: run millrace calibrate --mode {name} first"
            );
        }
        Ok(Some(models))
    }

    /// By which rule, and until when queries should be answered.
    pub(crate) fn policy(&self) -> (Policy, Duration) {
        (self.schedule, Duration::from_millis(self.deadline_ms))
    }

    /// The devices, if queries of so much work are worth the time until they answer, and the choice is left
    /// to this program. Devices that cannot be used are not.
    pub(crate) fn for_work(&self, k: usize, work: &CpuWork) -> Option<Devices> {
        let worth = self.device == "auto" && work.is_worth_devices();
        if worth { Devices::of_machine(&self.choice(k, Method::Bounds)).ok() } else { None }
    }
}

/// Opens devices, and says so if one is lost later.
///
/// # Errors
/// One cannot be opened, has too little memory, or does not read the lists of the index.
pub(crate) fn open(
    devices: &Devices,
    snapshot: &Arc<Snapshot>,
    wakers: &Arc<Wakers>,
    quiet: bool,
) -> anyhow::Result<GpuEngines> {
    let on_lost: OnLost = Arc::new(move |error| {
        if !quiet {
            let chain = chain(error);
            say!("millrace: {chain}; its queries are answered by the CPU from now on");
        }
    });
    devices.open(snapshot, wakers, &on_lost).map_err(explain)
}

/// Says with which option, or after which job, devices would answer.
fn explain(error: ChoiceError) -> anyhow::Error {
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

/// Makes sure that ding09 reads the lists of an index.
///
/// # Errors
/// It does not.
pub(crate) fn check_ding09_form(snapshot: &Snapshot) -> anyhow::Result<()> {
    let form = ding09::list::form_of(snapshot.generation());
    form.map(drop).map_err(|error| explain(error.into()))
}

/// Makes sure that huang reads the lists of an index.
///
/// # Errors
/// It does not.
pub(crate) fn check_huang_form(snapshot: &Snapshot) -> anyhow::Result<()> {
    let form = huang::list::check_form(snapshot.generation());
    form.map_err(|error| explain(error.into()))
}

/// Makes sure that an algorithm is not for devices alone.
///
/// # Errors
/// It is.
pub(crate) fn without_devices(algorithm: Chosen) -> Result<(), Usage> {
    if !algorithm.is_of_devices() {
        return Ok(());
    }
    Err(Usage(format!("--algorithm {} goes with --device gpu", algorithm.name())))
}

/// What is said of queries that the CPU answered; nothing if there were none.
pub(crate) fn note(counts: &Counts) -> Option<String> {
    let back = counts.by_cpu();
    (back > 0).then(|| format!("{} of the queries by the CPU", crate::args::show_count(back)))
}
