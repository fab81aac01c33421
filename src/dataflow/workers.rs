//! Workers: threads that run a dataflow until it is complete or the job ends.
//!
//! Over several processes timely's threads panic when a connection breaks, and poison the queues of
//! the workers. Then the process at the other end has gone, and the watch over the control lines
//! ([`cluster::control_lines`](crate::cluster::control_lines)) gives the reason. The workers of a
//! failed job are not joined, for what they would drop is poisoned; the process ends.

use super::control::{Control, JobError};
use super::data_line::DataLine;
use crate::cluster::control_lines::SILENCE;
use crate::cluster::hosts::Hosts;
use crate::cluster::wire::SealedLine;
use crate::crew::spawn;
use crate::shown::panicked;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::worker::Worker;
use tracing::debug;

thread_local! {
    /// Message and place of the last panic of this thread.
    static PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// Keeps message and place of a worker's panic for the job's error, instead of printing them; other
/// threads panic as before. It replaces the panic hook of the process, so a program has to call it,
/// once, and no job does. Without it the old hook prints, and the error has the message alone.
pub fn keep_panic_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let worker = std::thread::current().name().is_some_and(|n| n.starts_with("timely"));
            let message = panicked(info.payload());
            if worker {
                let place = info.location().map(|l| format!(" at {l}")).unwrap_or_default();
                PANIC.set(Some(format!("{message}{place}")));
            } else if !message.contains(CLOSEDIR) {
                before(info);
            }
        }));
    });
}

/// What the standard library panics with where the system cannot close a folder: no bug of ours, so
/// that the job's own message is enough.
const CLOSEDIR: &str = "unexpected error during closedir";

/// How long a worker without work sleeps before it looks whether the job goes on.
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs a dataflow on `workers` threads of this process until it is complete or the job ends. Fails
/// with the first failure of any worker.
pub fn run(
    workers: usize,
    control: &Arc<Control>,
    build: impl Fn(&mut Worker) + Send + Sync + 'static,
) -> Result<(), JobError> {
    debug!(workers, "starting");
    let communication = match workers {
        1 => timely::CommunicationConfig::Thread,
        n => timely::CommunicationConfig::Process(n),
    };
    let (builders, _) = communication.try_build().map_err(JobError::Start)?;
    let shared = control.clone();
    let guards = start(builders, move |worker| {
        if let Err(failure) = step(worker, &shared, &build) {
            shared.fail(failure);
        }
        // timely would step the rest until it is complete, which it will never be.
        let dropped = catch(worker.index(), || {
            for dataflow in worker.installed_dataflows() {
                worker.drop_dataflow(dataflow);
            }
        });
        if let Err(failure) = dropped {
            shared.fail(failure);
        }
    })?;
    join(guards, control)
}

/// Runs a dataflow on `workers` threads of each of several processes. `sockets` lead to the others
/// of the `hosts`, by their numbers; that of this `process` has none. Fails with the first failure
/// of any worker of this process, or the reason why another one made it end.
pub(crate) fn run_with_others(
    workers: usize,
    process: usize,
    hosts: &Hosts,
    sockets: Vec<Option<SealedLine>>,
    control: &Arc<Control>,
    build: impl Fn(&mut Worker) + Send + Sync + 'static,
) -> Result<(), JobError> {
    let hooks = Hooks::default();
    let line = |(other, line)| Option::map(line, |line| DataLine::new(line, other, hosts, control));
    let sockets = sockets.into_iter().enumerate().map(line).collect();
    let inside = ProcessBuilder::new_typed_vector(workers, hooks.refill.clone(), None);
    let (builders, lines) =
        initialize_networking_from_sockets(inside, sockets, process, workers, hooks)
            .map_err(|error| JobError::Start(error.to_string()))?;
    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
    let shared = control.clone();
    let (completed, completions) = channel();
    let guards = start(builders, move |worker| {
        match step(worker, &shared, &build) {
            Err(JobError::Panic { worker, message }) if message.contains(POISONED) => {
                let start = Instant::now();
                while !shared.stopped() && start.elapsed() < SILENCE + PATIENCE {
                    std::thread::sleep(PATIENCE);
                }
                shared.fail(JobError::Panic { worker, message });
            }
            Err(failure) => shared.fail(failure),
            Ok(()) => {}
        }
        while shared.stopped() {
            std::thread::park();
        }
        // The job ends without this worker when nothing receives.
        _ = completed.send(());
    })?;
    let mut working = workers;
    while working > 0 && !control.stopped() {
        match completions.recv_timeout(PATIENCE) {
            Ok(()) => working -= 1,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
    if control.stopped() {
        std::mem::forget((guards, lines));
        return control.take_failure().map_or(Ok(()), Err);
    }
    // Closing waits for the others, who may go at last; what timely's threads say of it is kept.
    let closing = spawn("timely:close", {
        let control = control.clone();
        move || {
            let joined = join(guards, &control);
            drop(lines);
            joined
        }
    });
    let closing = closing.map_err(|error| JobError::Start(error.to_string()))?;
    while !closing.is_finished() && !control.stopped() {
        std::thread::sleep(PATIENCE / 20);
    }
    if let Some(failure) = control.take_failure() {
        return Err(failure);
    }
    closing.join().unwrap_or_else(|cause| Err(JobError::Start(panicked(&*cause).to_string())))
}

/// timely's panic when the thread at the other end of a queue has panicked.
const POISONED: &str = "MergeQueue poisoned";

fn start(
    builders: Vec<AllocatorBuilder>,
    work: impl Fn(&mut Worker) + Send + Sync + 'static,
) -> Result<WorkerGuards<()>, JobError> {
    let config = timely::WorkerConfig::default();
    timely::execute::execute_from(builders, Box::new(()), config, work).map_err(JobError::Start)
}

/// Builds the dataflow of a worker and steps it until it is complete or the job ends.
fn step(
    worker: &mut Worker,
    control: &Control,
    build: &impl Fn(&mut Worker),
) -> Result<(), JobError> {
    catch(worker.index(), || {
        build(worker);
        while !control.stopped() && worker.has_dataflows() {
            worker.step_or_park(Some(PATIENCE));
        }
    })
}

fn catch(worker: usize, work: impl FnOnce()) -> Result<(), JobError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| {
        let message = PANIC.take().unwrap_or_else(|| panicked(&*cause).to_string());
        JobError::Panic { worker, message }
    })
}

fn join(guards: WorkerGuards<()>, control: &Control) -> Result<(), JobError> {
    for outcome in guards.join() {
        if let Err(message) = outcome {
            control.fail(JobError::Start(message));
        }
    }
    control.take_failure().map_or(Ok(()), Err)
}
