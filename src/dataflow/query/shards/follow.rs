//! Lets several processes follow their index: a dataflow of its own beside that of the queries.
//!
//! Process 0 hears of a new live generation and announces its manifest to every process. Each opens
//! what it holds of it, in a thread, beside what it has open, and says so. When all have, process 0
//! takes the next batch from it; queries name their generation to every process. Until every query
//! of the generation before is answered none is announced again, so that two are open at most.

use super::words::{list, put_list};
use crate::crew::{lock, spawn};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::{Crossing, CrossingRecord, Words, put_text, to_worker};
use crate::dataflow::query::context::{Context, StreamState, number_of};
use crate::dataflow::query::follower::{Followed, Follower};
use crate::dataflow::sole_time::SoleTime;
use crate::index::error::IndexError;
use crate::index::generations::manifest::Manifest;
use crate::query::snapshot::Snapshot;
use crate::shown::chain;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::{Operator, source};
use timely::dataflow::{ProbeHandle, Scope, Stream};
use timely::worker::Worker;

/// Opens what this process holds of a generation.
type OpenPart = Box<dyn Fn(&Manifest) -> Result<Arc<Snapshot>, IndexError> + Send + Sync>;

/// Takes what has become of a generation that was announced.
type TellMove = Box<dyn FnMut(Followed) + Send>;

/// How the services of several processes follow their index.
pub struct Following {
    open: OpenPart,
    tell: Mutex<TellMove>,
    announced: Mutex<Option<Manifest>>,
}

impl Following {
    /// `open` opens what a process holds of a generation, and `tell` is called in process 0.
    pub fn new(
        open: impl Fn(&Manifest) -> Result<Arc<Snapshot>, IndexError> + Send + Sync + 'static,
        tell: impl FnMut(Followed) + Send + 'static,
    ) -> Self {
        let tell: TellMove = Box::new(tell);
        Self { open: Box::new(open), tell: tell.into(), announced: Mutex::default() }
    }
}

/// A service of several processes, in process 0.
#[derive(Clone)]
pub struct TogetherMover {
    pub(crate) stream: Arc<StreamState>,
    pub(crate) following: Arc<Following>,
}

impl Follower {
    /// Announces every generation of the index in the folder `index` that becomes live after that
    /// with this `manifest` to all processes of a service.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn announce(
        index: &Path,
        manifest: &Manifest,
        processes: usize,
        mover: TogetherMover,
    ) -> io::Result<Self> {
        let mut manifest = manifest.clone();
        let folder = index.to_path_buf();
        Self::look_out(index, move |watch, again| {
            let other = watch.is_other(&manifest, again);
            let other = other.and_then(|other| {
                other.then(|| Manifest::live_for(&folder, processes)).transpose()
            });
            match other {
                Ok(None) => {}
                Ok(Some(live)) => {
                    manifest = live.clone();
                    *lock(&mover.following.announced) = Some(live);
                    mover.stream.wake();
                }
                Err(error) => lock(&mover.following.tell)(Followed::Failed(error)),
            }
        })
    }
}

/// A generation that is announced to the worker of a process.
#[derive(Clone, Debug)]
struct Announced {
    worker: u32,
    /// The generation that queries are answered from.
    live: u64,
    /// The manifest of process 0.
    manifest: String,
}

/// What has become of it there.
#[derive(Clone, Debug)]
struct Opened {
    generation: u64,
    error: Option<String>,
}

impl CrossingRecord for Announced {
    fn write(&self, to: &mut Vec<u64>) {
        to.extend([self.worker.into(), self.live]);
        put_text(&self.manifest, to);
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        Some(Self { worker: words.small()?, live: words.word()?, manifest: words.text()? })
    }
}

impl CrossingRecord for Opened {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.generation);
        put_list(self.error.as_slice(), to, |error, to| put_text(error, to));
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let generation = words.word()?;
        Some(Self { generation, error: list(words, |words| words.text())?.pop() })
    }
}

/// How long to wait for the queries of the generation before.
const PAUSE: Duration = Duration::from_millis(5);

/// `written` follows the far end of the dataflow of the queries.
pub(crate) fn follow(
    context: &Arc<Context>,
    following: &Arc<Following>,
    written: ProbeHandle<u64>,
    worker: &mut Worker,
) {
    worker.dataflow_named::<u64, _, _>("follow", |scope| {
        let announced = announce(scope, context, following, written);
        conclude(open(announced, context, following), context, following);
    });
}

fn announce<'scope>(
    scope: Scope<'scope, u64>,
    context: &Arc<Context>,
    following: &Arc<Following>,
    written: ProbeHandle<u64>,
) -> Stream<'scope, u64, Crossing<Announced>> {
    let (context, following) = (context.clone(), following.clone());
    source::<_, CapacityContainerBuilder<_>, _, _>(scope, "Announce", move |cap, info| {
        let guard = OperatorGuard::new(&context.control, "Announce", scope.index());
        let activator = scope.activator_for(info.address.clone());
        let mut cap = Some(cap).filter(|_| scope.index() == 0);
        if cap.is_some() {
            let waker = scope.worker().sync_activator_for(info.address.to_vec());
            *lock(&context.stream.waker) = Some(waker);
        }
        move |output| {
            let Some(own) = &mut cap else { return };
            if context.stream.ended.load(Ordering::Acquire) {
                cap = None;
                return;
            }
            let stream = &context.stream;
            if stream.moving.load(Ordering::Relaxed) || lock(&following.announced).is_none() {
                return;
            }
            let moved_at = stream.moved_at.load(Ordering::Relaxed);
            if moved_at > 0 && written.less_equal(&(moved_at - 1)) {
                return activator.activate_after(PAUSE);
            }
            stream.moving.store(true, Ordering::Relaxed);
            guard.work(|| {
                let Some(manifest) = lock(&following.announced).take() else { return Ok(()) };
                let manifest = serde_json::to_string(&manifest)?;
                let live = number_of(&context.snapshot());
                let mut session = output.session(&*own);
                for process in 0..context.shard.processes {
                    let (worker, manifest) = (context.first_of(process), manifest.clone());
                    session.give(Announced { worker, live, manifest });
                }
                Ok(())
            });
            let next = *own.time() + 1;
            own.downgrade(&next);
        }
    })
}

/// Opens generations, one after the other, in a thread.
fn open<'scope>(
    announced: Stream<'scope, u64, Crossing<Announced>>,
    context: &Arc<Context>,
    following: &Arc<Following>,
) -> Stream<'scope, u64, Crossing<Opened>> {
    let (context, following) = (context.clone(), following.clone());
    let scope = announced.scope();
    let guard = OperatorGuard::new(&context.control, "Open", scope.index());
    let named = to_worker(|announced: &Announced| announced.worker);
    announced.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Open", move |_, info| {
        let waker = Arc::new(scope.worker().sync_activator_for(info.address.to_vec()));
        let (done, opened) = channel::<(u64, u64, Result<Arc<Snapshot>, IndexError>)>();
        let mut caps = VecDeque::new();
        move |input, output| {
            input.for_each(|cap, data| {
                for announced in data.0.drain(..) {
                    caps.push_back(cap.retain(0));
                    guard.work(|| {
                        let Announced { live, manifest, .. } = announced?;
                        let manifest: Manifest = serde_json::from_str(&manifest)?;
                        let (following, done) = (following.clone(), done.clone());
                        let waker = waker.clone();
                        spawn("opener", move || {
                            let opened = (following.open)(&manifest);
                            // Nobody listens any more when the job has ended.
                            _ = done.send((manifest.generation.into(), live, opened));
                            _ = waker.activate();
                        })?;
                        Ok(())
                    });
                }
            });
            for (generation, live, opened) in opened.try_iter() {
                let Some(cap) = caps.pop_front() else { return };
                let error = opened.map(|snapshot| context.keep(snapshot, live)).err();
                let error = error.map(|error| chain(&error));
                output.session(&cap).give(Opened { generation, error });
            }
        }
    })
}

/// Moves process 0 over when all processes have opened a generation.
fn conclude(
    opened: Stream<'_, u64, Crossing<Opened>>,
    context: &Arc<Context>,
    following: &Arc<Following>,
) {
    let (context, following) = (context.clone(), following.clone());
    let guard = OperatorGuard::new(&context.control, "Move", opened.scope().index());
    let to_first = to_worker(|_: &Opened| 0);
    // How many processes have opened a generation, and why one could not.
    let mut counts: BTreeMap<u64, (usize, Option<String>)> = BTreeMap::new();
    opened.sink(to_first, "Move", move |(input, _)| {
        let mut heard = Vec::new();
        input.for_each(|_, data| heard.append(&mut data.0));
        guard.work(|| {
            for opened in heard {
                let Opened { generation, error } = opened?;
                let (count, failed) = counts.entry(generation).or_default();
                *count += 1;
                *failed = failed.take().or(error);
                if *count < context.shard.processes {
                    continue;
                }
                let failed = counts.remove(&generation).and_then(|(_, failed)| failed);
                let outcome = match failed {
                    Some(why) => {
                        let path = context.snapshot().generation().path().to_path_buf();
                        Followed::Failed(IndexError::lacks(&path, why))
                    }
                    None => {
                        let snapshot = context.snapshot_of(generation)?;
                        *lock(&context.snapshot) = snapshot.clone();
                        let sent = context.stream.sent.load(Ordering::Relaxed);
                        context.stream.moved_at.store(sent, Ordering::Relaxed);
                        Followed::Moved(snapshot)
                    }
                };
                context.stream.moving.store(false, Ordering::Relaxed);
                lock(&following.tell)(outcome);
                context.stream.wake();
            }
            Ok(())
        });
    });
}
