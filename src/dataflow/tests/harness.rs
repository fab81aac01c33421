//! A small dataflow around one operator, for tests: records go in step by step, and what comes out
//! is kept with its times and the operator's frontier.

use super::control::{Control, JobError};
use super::sole_time::SoleTime;
use crate::dataflow::build::context::{Build, BuildPlan, BuildWiring};
use crate::dataflow::build::flow::Flow;
use crate::dictionary::indexer::Indexing;
use crate::dictionary::owners::Owners;
use crate::index::list::Form;
use crate::input::splits::InputPlan;
use crate::order::{Budget, PIECE_BYTES};
use crate::text::analysis::Analysis;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Input, Probe};
use timely::dataflow::{ProbeHandle, StreamVec};

/// Records that go in at once with their times, and the least time of later ones; none if there are
/// no later ones.
pub(crate) struct WorkerStep<I> {
    pub(crate) records: Vec<(u64, I)>,
    pub(crate) then: Option<u64>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct HarnessPassed<R> {
    /// After each step, with their times.
    pub(crate) records: Vec<Vec<(u64, R)>>,
    /// After each step, the least time at which more may come out; none if nothing will.
    pub(crate) frontier: Vec<Option<u64>>,
}

/// Steps of the worker after each step of the input, and the longest pause between them.
const LOOKS: usize = 12;
const PAUSE: Duration = Duration::from_millis(1);

/// Lets records through an operator on one worker; `keep` makes of each that comes out what is
/// kept.
pub(crate) fn pass<I, O, R>(
    steps: impl FnOnce() -> Vec<WorkerStep<I>> + Send + Sync + 'static,
    operator: impl for<'scope> FnOnce(StreamVec<'scope, u64, I>) -> StreamVec<'scope, u64, O>
    + Send
    + Sync
    + 'static,
    mut keep: impl FnMut(O) -> R + Send + Sync + 'static,
) -> HarnessPassed<R>
where
    I: 'static,
    O: 'static,
    R: Send + 'static,
{
    timely::execute_directly(move |worker| {
        let found = Rc::new(RefCell::new(Vec::new()));
        let probe = ProbeHandle::new();
        let records = found.clone();
        let mut input = worker.dataflow::<u64, _, _>(|scope| {
            // timely's inputs may copy records; these are taken once.
            let (input, stream) = scope.new_input::<Vec<Rc<RefCell<Option<I>>>>>();
            let out = operator(stream.map(|once| once.take().expect("a record is taken once")));
            let kept = out.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Pipeline,
                "Keep",
                move |_, _| {
                    move |input, _| {
                        input.for_each(|cap, data| {
                            let time = *cap.time();
                            let kept = data.drain(..).map(|record| (time, keep(record)));
                            records.borrow_mut().extend(kept);
                        });
                    }
                },
            );
            kept.probe_with(&probe);
            Some(input)
        });
        let mut passed = HarnessPassed { records: Vec::new(), frontier: Vec::new() };
        for WorkerStep { records, then } in steps() {
            let handle = input.as_mut().expect("records come before the end");
            for (time, record) in records {
                handle.advance_to(time);
                handle.send(Rc::new(RefCell::new(Some(record))));
            }
            match then {
                Some(time) => handle.advance_to(time),
                None => input = None,
            }
            for _ in 0..LOOKS {
                worker.step_or_park(Some(PAUSE));
            }
            passed.records.push(found.take());
            passed.frontier.push(probe.with_frontier(|frontier| frontier.first().copied()));
        }
        drop(input);
        let dataflows = worker.installed_dataflows();
        dataflows.into_iter().for_each(|dataflow| worker.drop_dataflow(dataflow));
        passed
    })
}

/// The context of a build of `plan` into `folder`, with one worker that owns all.
pub(crate) fn build(plan: InputPlan, folder: &Path) -> Build {
    let budget = Budget::new(64 << 20, 1).unwrap();
    let wiring = BuildWiring {
        control: Arc::default(),
        writing: 0,
        start_inverter: Box::new(|_| Err("no device was asked for".into())),
        batch_bytes: 1 << 20,
        indexing: Indexing::Postings,
        all_read: true,
        claims: Default::default(),
        flow: Flow::new(1 << 30, 1, 0..1, PIECE_BYTES),
        buffers: Arc::default(),
        texts: Arc::default(),
        turns: Arc::default(),
        lengths: Default::default(),
        shared: Default::default(),
        encoded: vec![Default::default()],
    };
    let plan = BuildPlan {
        input: plan,
        analysis: Analysis::default(),
        form: Form::default(),
        budget,
        max_document: 1 << 20,
        strict: false,
        allow_empty: false,
        allow_cut: false,
        workers: 1,
        owners: Arc::new(Owners::in_turn(1)),
        directory: folder.to_path_buf(),
        first_run: 0,
        wanted: None,
    };
    Build { plan: Arc::new(plan), wiring: Arc::new(wiring), progress: Arc::default() }
}

/// A plan of one new file with this content.
pub(crate) fn plan_of(folder: &Path, name: &str, content: &[u8]) -> InputPlan {
    std::fs::write(folder.join(name), content).unwrap();
    InputPlan::new(&[folder.join(name)], None).unwrap()
}

/// An operator that has failed, and why.
pub(crate) type Failure = (&'static str, String);

pub(crate) fn failure(control: &Control) -> Option<Failure> {
    match control.take_failure()? {
        JobError::Operator { operator, source, .. } => {
            let mut text = source.to_string();
            let mut next = source.source();
            while let Some(cause) = next {
                text = format!("{text}: {cause}");
                next = cause.source();
            }
            Some((operator, text))
        }
        error => panic!("{error}"),
    }
}
