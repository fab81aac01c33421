//! What is checked and found out before a build writes anything?

use super::devices::{self, Chosen};
use super::error::{BuildError, OptionsError};
use super::generation::{Built, Which, build_generation};
use super::guards::documents_of;
use super::note::Note;
use super::options::{BuildOptions, Indexer, Input, MOST_DEVICE_DOCUMENT, OnProgress};
use super::report::BuildReport;
use super::{lost, memory, place, shard};
use crate::dataflow::build_context::InputRead;
use crate::dataflow::together::Setting;
use crate::index::publish::{IndexLock, current};
use crate::input::Format;
use crate::input::folder::Walk;
use crate::input::sample::Sample;
use crate::input::splits::Plan;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A build whose options and input are good, and which has written nothing yet.
pub struct Prepared {
    pub(super) options: BuildOptions,
    pub(super) input: Ready,
    /// What all processes have to have alike; none for a build by one process.
    pub(super) settings: Vec<Setting>,
}

/// What a build reads and how.
pub(super) struct Ready {
    pub(super) began: Instant,
    /// Resident memory of the process when the build began, in bytes.
    pub(super) resident: u64,
    pub(super) gpus: Chosen,
    pub(super) roles: Roles,
    pub(super) budget: Budget,
    pub(super) plan: Plan,
    /// What the input holds, where the start of a GPU's driver left time to find out.
    pub(super) sample: Option<Sample>,
    /// Whether this is all of the input, or the share of one of several processes.
    pub(super) whole: bool,
}

impl Prepared {
    /// Checks the options, lists the input and finds devices. One that takes texts may still be looked for then, and be missed when the build runs.
    ///
    /// # Errors
    /// `Options`, `Input`, `Devices`, `NoGpu`, `Thread`. The other processes of the build are told.
    pub fn new(mut options: BuildOptions) -> Result<Self, BuildError> {
        let is_ordered = options.order.is_some() || options.ranks.is_some();
        if is_ordered && (options.peers.is_some() || !options.merge) {
            return Err(OptionsError::OrderOfMany.into());
        }
        match options.peers.clone() {
            None => {
                let input = Ready::new(&mut options, true)?;
                Ok(Self { options, input, settings: Vec::new() })
            }
            Some(peers) => shard::prepare(options, &peers),
        }
    }

    /// Builds and publishes.
    ///
    /// # Errors
    /// See [`build`](super::build).
    pub fn run(self) -> Result<BuildReport, BuildError> {
        match self.options.peers.clone() {
            None => self.alone(),
            Some(peers) => {
                let report = shard::run(self, &peers, None)?;
                Ok(report.expect("nobody was asked whether to build"))
            }
        }
    }

    /// Builds and publishes together with the other processes, if process 0 `wants` to; nobody does if it does not. What
    /// others say does not count.
    ///
    /// # Errors
    /// See [`build`](super::build).
    ///
    /// # Panics
    /// If there are no other processes.
    pub fn run_if(self, wants: bool) -> Result<Option<BuildReport>, BuildError> {
        let peers = self.options.peers.clone().expect("a build of several processes");
        shard::run(self, &peers, Some(wants))
    }

    /// Builds in this process alone.
    fn alone(self) -> Result<BuildReport, BuildError> {
        let Self { mut options, input, .. } = self;
        let began = input.began;
        let is_new = !options.index.exists();
        let lock = IndexLock::acquire(&options.index)?.keeping(options.guards.keep);
        lock.remove_debris()?;
        let before = current(&options.index)?;
        // A build that begins again goes on telling.
        let progress = options.progress.take().map(|tell| Arc::new(Mutex::new(tell)));
        let build = |options: &mut BuildOptions, input| {
            options.progress = progress.clone().map(|tell| {
                let lend = move |snapshot: &_| {
                    tell.lock().unwrap_or_else(PoisonError::into_inner)(snapshot)
                };
                Box::new(lend) as OnProgress
            });
            let result = build_and_publish(options, input, &lock, before.as_deref());
            if result.is_err() {
                // What cannot be removed now is removed by the next build.
                _ = lock.abandon(before.as_deref());
            }
            // A build that is told to end also fails elsewhere; that it was told is the reason.
            result.map_err(|error| options.control.take_failure().map_or(error, BuildError::from))
        };
        let built = match build(&mut options, input) {
            Err(failure) => match lost::on_cpu(&mut options, &failure)? {
                Some(input) => build(&mut options, input)?,
                None => {
                    let failure = failure.of_beginning();
                    if is_new
                        && matches!(failure, BuildError::NeedsGpu { .. } | BuildError::Devices(_))
                    {
                        // The input was read before anybody knew; nothing is to be seen of that.
                        _ = lock.remove_index();
                    }
                    return Err(failure);
                }
            },
            built => built?,
        };
        Ok(BuildReport::new(&options, &built, None, None, began.elapsed()))
    }
}

/// Builds and publishes the next generation.
fn build_and_publish(
    options: &mut BuildOptions,
    input: Ready,
    lock: &IndexLock,
    before: Option<&Path>,
) -> Result<Built, BuildError> {
    let (number, directory) = lock.next_generation()?;
    let built = build_generation(options, input, number, directory, Which::default())?;
    let statistics = &built.manifest.statistics;
    let before = || before.map(documents_of).transpose();
    options.guards.check(statistics.documents, &statistics.skipped, before)?;
    if let Some(accept) = options.accept.take() {
        accept(&built.manifest).map_err(BuildError::Refused)?;
    }
    lock.publish(number)?;
    Ok(built)
}

impl Ready {
    /// Of `whole` the input is sampled while devices are found; a share is not known yet.
    pub(super) fn new(options: &mut BuildOptions, whole: bool) -> Result<Self, BuildError> {
        let began = Instant::now();
        let resident = memory::resident();
        let (memory, workers) = (options.memory, options.workers);
        Budget::new(memory, workers).map_err(OptionsError::Memory)?;
        if options.max_document >= 4 << 30 {
            return Err(OptionsError::MaxDocument { got: options.max_document }.into());
        }
        if options.indexer == Indexer::Gpu && options.max_document > MOST_DEVICE_DOCUMENT {
            let (got, most) = (options.max_document, MOST_DEVICE_DOCUMENT);
            let indexer = options.indexer;
            return Err(OptionsError::MaxDocumentOfDevice { got, most, indexer }.into());
        }
        if options.pipeline.readers == Some(0) {
            return Err(OptionsError::Readers.into());
        }
        let plan = match &mut options.input {
            Input::Paths(paths) => {
                let walk = Walk { index: Some(options.index.clone()) };
                let mut plan = Plan::walked(paths, options.format, &walk)?;
                plan.fields = options.fields.clone();
                plan
            }
            Input::Documents(documents) => Plan::of_documents(std::mem::take(documents))?,
            Input::Plan(plan) => plan.only(|_| true),
        };
        accept_passed(options, &plan)?;
        let guessed = options.format.is_none() && matches!(options.input, Input::Paths(_));
        if guessed && plan.inputs.len() == 1 && plan.inputs.format(0) == Format::Text {
            options.note(&Note::OneDocument(plan.path(0)));
        }
        let read = plan.inputs.len() * size_of::<InputRead>();
        let budget = Budget::beside(memory, workers, plan.memory() + read as u64);
        let mut budget = budget.map_err(OptionsError::Memory)?;
        budget.run_limit = crate::fault::run_limit(budget.run_limit);
        budget.open_files = budget.open_files.min(options.pipeline.readers.unwrap_or(usize::MAX));
        if options.indexer == Indexer::Auto
            && !(whole && !plan.reads_once() && options.may_choose_gpu(plan.bytes()))
        {
            options.indexer = Indexer::Fast;
        }
        // Nothing fails between the beginning and the end of this.
        let finding = devices::begin_to_find(options.gpus, options.indexer)?;
        let early = whole && finding.is_under_way() && options.indexer != Indexer::Auto;
        let sample = if early { place::sample_of(options, &plan) } else { None };
        let is_given = options.pipeline.make_machines.is_some();
        let gpus = match whole && options.device_encodes() && !is_given {
            true => finding.open(options, plan.bytes())?,
            false => finding.choose(options, plan.bytes())?,
        };
        if options.indexer == Indexer::Auto {
            options.indexer = gpus.indexer(options, plan.bytes());
            options.chose_gpu = options.indexer == Indexer::Gpu;
        }
        let roles = gpus.roles(options, &budget)?;
        Ok(Self { began, resident, gpus, roles, budget, plan, sample, whole })
    }
}

/// What folders hold and cannot be read is an error of a strict build, and else a remark.
fn accept_passed(options: &BuildOptions, plan: &Plan) -> Result<(), BuildError> {
    let (count, first) = (plan.passed.unreadable(), &plan.passed.first);
    if options.strict
        && let Some(first) = first.first()
    {
        return Err(BuildError::Unreadable { count, first: first.clone() });
    }
    for index in &plan.passed.indexes {
        options.note(&Note::IsIndex(index.clone()));
    }
    for message in first {
        options.note(&Note::Skipped(message.clone()));
    }
    if count > first.len() as u64 {
        options.note(&Note::UnreadableInAll(count));
    }
    Ok(())
}
