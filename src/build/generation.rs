//! Builds a generation, or a part of one, in its folder.

pub(super) mod finish;

#[cfg(feature = "gpu")]
use super::devices::ChosenDevices;
use super::error::BuildError;
use super::handed::HandedBuild;
use super::options::BuildOptions;
use super::place::place;
use super::placement::Placement;
use super::prepare::Ready;
use super::progress::ProgressThread;
use crate::buffers::TextBuffers;
use crate::crew::lock;
use crate::dataflow::build::assemble;
#[cfg(feature = "gpu")]
use crate::dataflow::build::context::StartInverter;
use crate::dataflow::build::context::{Build, BuildPlan, BuildWiring, InputRead, Progress};
use crate::dataflow::build::flow::Flow;
use crate::dataflow::build::handed::HandedLane;
use crate::dataflow::rebuild::seen::SeenWriter;
use crate::dataflow::workers;
use crate::dictionary::indexer::Indexing;
#[cfg(feature = "gpu")]
use crate::gpu::invert::service::{InvertService, InvertSettings};
use crate::index::generations::draft::NewGeneration;
use crate::index::generations::run_files::next_run;
use crate::index::inputs::InputEntry;
use crate::input::hash as input_hash;
use crate::input::splits::{GIVEN, InputPlan, MEMORY, STDIN};
use crate::input::turns::Turns;
use crate::input::wanted::WantedInput;
#[cfg(feature = "gpu")]
use crate::order::Budget;
use crate::schedule::claims::Claims;
use finish::{CutInputs, Finished, finish};
use serde::Serialize;
#[cfg(feature = "gpu")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A generation, or a part of one, that is written and not published.
pub(super) struct Built {
    pub(super) build: Build,
    pub(super) new: NewGeneration,
    pub(super) read_bytes: u64,
    /// Of inputs that other processes read too, the hashes of the chunks that this one has read.
    pub(super) cut: CutInputs,
    pub(super) placement: Placement,
    pub(super) phases: PhasesReport,
    /// The first records that were skipped: place and reason.
    pub(super) first_skipped: Vec<String>,
}

/// Where the time of a build goes, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PhasesReport {
    /// Devices are found, the input is listed and a sample of it placed.
    pub prepare_s: f64,
    pub dataflow_s: f64,
    /// Runs are merged and described.
    pub finish_s: f64,
}

/// Share of the text memory kept back for rounding: 1 of this many parts.
const TEXTS_PART: usize = 8;

#[derive(Default)]
pub(super) struct Which {
    /// All if there is none.
    pub(super) wanted: Option<WantedInput>,
    /// Notes all documents.
    pub(super) seen: Option<SeenWriter>,
}

/// Builds generation `number` in its empty folder; publishes nothing.
pub(super) fn build_generation(
    options: &mut BuildOptions,
    input: Ready,
    number: u32,
    directory: PathBuf,
    which: Which,
) -> Result<Built, BuildError> {
    let Ready { began, resident, whole, .. } = input;
    let workers = options.workers;
    let BuildJob { build, handed, placement } = dataflow_of(options, input, directory, which)?;
    let watching = ProgressThread::start(options.progress.take(), &build)?;
    let shared = build.clone();
    let prepared = began.elapsed();
    workers::run(workers, &options.control, move |worker| {
        assemble(&shared, handed.as_ref(), worker);
    })?;
    let flowed = began.elapsed();
    let Finished { new, read_bytes, cut, first_skipped } =
        finish(options, &build, number, whole, resident)?;
    let phases = PhasesReport {
        prepare_s: prepared.as_secs_f64(),
        dataflow_s: (flowed - prepared).as_secs_f64(),
        finish_s: (began.elapsed() - flowed).as_secs_f64(),
    };
    if let Some(failure) = options.control.take_failure() {
        return Err(failure.into());
    }
    drop(watching);
    Ok(Built { build, new, read_bytes, cut, placement, phases, first_skipped })
}

/// A build that is about to begin.
pub(super) struct BuildJob {
    pub(super) build: Build,
    handed: Option<Arc<dyn HandedLane>>,
    placement: Placement,
}

pub(super) fn dataflow_of(
    options: &mut BuildOptions,
    input: Ready,
    directory: PathBuf,
    which: Which,
) -> Result<BuildJob, BuildError> {
    let Ready { gpus, roles, budget, mut plan, sample, .. } = input;
    plan.columns = options.columns.as_slice().into();
    plan.store = options.store;
    plan.store_fields = options.store_fields.as_slice().into();
    let (owners, placement) = place(options, &plan, &gpus, &roles, sample)?;
    let workers = options.workers;
    let first_run = next_run(&directory)?;
    let handed = options.indexer.handed().map(|indexer| {
        indexer.wire(HandedBuild {
            found: gpus.found(options.notes.as_ref()),
            roles,
            budget: &budget,
            plan: &plan,
            parse_block: options.pipeline.parse_block,
        })
    });
    let pinned = handed.as_ref().map_or(0, |wired| wired.pinned) * roles.gpu_indexers;
    let indexing = options.indexer.indexing();
    let under_way = match indexing {
        Indexing::Texts => budget.texts_under_way(),
        Indexing::Postings | Indexing::Tokens => budget.under_way(),
    };
    let under_way = under_way as usize * workers;
    let texts = TextBuffers::for_device(under_way - pinned);
    // Where texts have all of their memory, what is rounded up has its part of it: memory that goes
    // back to the system is pinned again.
    let others = if indexing == Indexing::Texts { (under_way - pinned) / TEXTS_PART } else { 0 };
    let in_flow = under_way - pinned - others;
    // The device has something to do, and the next batch is gathered.
    let batch_bytes = (under_way / 7).max(budget.piece_bytes()).min(options.pipeline.texts_at_once);
    #[cfg(feature = "gpu")]
    let start_inverter = inverter_of(options, gpus, &budget, &texts, (&directory, first_run));
    let wiring = BuildWiring {
        control: options.control.clone(),
        writing: roles.writing(),
        #[cfg(feature = "gpu")]
        start_inverter,
        batch_bytes,
        indexing,
        all_read: options.pipeline.readers.is_none(),
        claims: Claims::default(),
        turns: Arc::new(Turns::new(
            budget.long_documents(workers),
            budget.parsed_at_once(workers, options.indexer.parser_times()),
            budget.of_document(workers),
        )),
        flow: Flow::new(in_flow, workers, roles.parsing(), budget.piece_bytes()),
        // Beside what is under way, which a few pieces of each worker are.
        buffers: TextBuffers::new(under_way / 8),
        texts,
        lengths: Default::default(),
        shared: Default::default(),
        encoded: (0..owners.len()).map(|_| Default::default()).collect(),
    };
    let plan = BuildPlan {
        input: plan,
        analysis: options.analysis.clone(),
        form: options.form,
        budget,
        max_document: options.max_document,
        strict: options.strict,
        allow_empty: options.guards.allow_empty,
        allow_cut: options.guards.allow_cut,
        workers,
        owners: owners.clone(),
        directory,
        first_run,
        wanted: which.wanted,
    };
    let progress = Progress { seen: Mutex::new(which.seen), ..Progress::default() };
    let (plan, wiring, progress) = (Arc::new(plan), Arc::new(wiring), Arc::new(progress));
    let build = Build { plan, wiring, progress };
    Ok(BuildJob { build, handed: handed.map(|wired| wired.lane), placement })
}

#[cfg(feature = "gpu")]
fn inverter_of(
    options: &mut BuildOptions,
    gpus: ChosenDevices,
    budget: &Budget,
    texts: &Arc<TextBuffers>,
    (folder, first_run): (&Path, u32),
) -> StartInverter {
    let given = options.pipeline.make_machine.take();
    let machine = given.unwrap_or_else(|| gpus.make_machine(options.indexer));
    let analysis = options.analysis.clone();
    let threads = options.workers;
    let run_limit = budget.run_limit;
    let encodes = options.device_encodes();
    let buffers = texts.clone();
    let folder = folder.to_path_buf();
    Box::new(move |wake| {
        let machine = machine.clone();
        let (analysis, buffers, folder) = (analysis.clone(), buffers.clone(), folder.clone());
        let how =
            InvertSettings { analysis, threads, first_run, run_limit, encodes, buffers, folder };
        Ok(InvertService::start(Box::new(move || (*machine)()), how, wake)?)
    })
}

pub(super) fn describe(plan: &InputPlan, read: &InputRead) -> InputEntry {
    let &InputRead { input, bytes, hash, compression, .. } = read;
    let reading = plan.inputs.reading(input as usize);
    let fields = &reading.fields;
    InputEntry {
        path: absolute(plan, input),
        bytes,
        hash: format!("{}:{hash:016x}", input_hash::NAME),
        format: plan.inputs.format(input as usize).to_string(),
        compression: compression.to_string(),
        encoding: lock(&plan.encodings).get(&input).map(|found| found.name().to_string()),
        asked_encoding: reading.encoding.map(|asked| asked.name().to_string()),
        id_fields: fields.names.clone(),
        text_fields: fields.texts.clone(),
        taken_fields: plan.taken_fields(input),
    }
}

/// The path from the root, so that a document's text is found from any folder.
fn absolute(plan: &InputPlan, input: u32) -> PathBuf {
    match plan.inputs.path(input as usize) {
        Some(path) => std::path::absolute(&path).unwrap_or(path),
        None if plan.path(input) == GIVEN => MEMORY.into(),
        None => STDIN.into(),
    }
}
