//! Inverts the texts of all pieces on a device, and gives each owner its part of the closed runs.
//!
//! - In: the texts of each piece and its documents without lengths and hashes, all exchanged to
//!   worker 0. Out: the documents with lengths, hashes and counts, at the position of their piece;
//!   an owner's part of a run, at the position of the run's last piece, or the lists of a run that
//!   the device has encoded; and a stream without records whose frontier tells which pieces are
//!   absorbed.
//! - Pieces wait until every earlier piece has come, and go to the device in batches of
//!   `BuildWiring::batch_bytes` of text; early where the input ends, when the device has little to
//!   do, when nothing more may be under way, or when nothing comes: the index does not depend on
//!   where batches end.
//! - The device has a thread of its own
//!   ([`InvertService`](crate::gpu::invert::service::InvertService)), which wakes this operator;
//!   nothing here waits. Where the device does not encode lists, the next run is inverted when the
//!   last one is encoded: there is memory for one.
//! - Work per activation: what has come, and what the device has done.

use super::encode::count;
use super::feed::{RunShare, wake_of};
use crate::crew::lock;
use crate::dataflow::build::context::{Build, PAUSE};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use crate::dictionary::closed::ClosedShare;
use crate::dictionary::device::inverted::InvertedTerms;
use crate::dictionary::device::texts::PieceText;
use crate::dictionary::owners::Owners;
use crate::dictionary::parsed::PieceGroup;
use crate::gpu::invert::runs::{RunEnd, RunEvent};
use crate::gpu::invert::service::InvertService;
use crate::gpu::invert::text::MOST_PIECES;
use crate::index::documents::pieces::PieceDocuments;
use crate::index::run::{LaidChunk, RunPart};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// Batches that a device has at a time, if there is room: one that is counted, up to three whose
/// forms are found, the uploaded ones, one being uploaded, and the next.
const MOST_BATCHES: usize = 8;
/// A batch that is sent early has at least such a part of the bytes of a whole one, if there is
/// room for more of the first file.
const LEAST_PART: usize = 4;
/// After so long without input the device takes what there is: a reader may wait until all before a
/// long document is counted.
const IDLE: Duration = Duration::from_millis(20);

/// Closed runs, documents, the frontier of what is absorbed, and lists of runs that are encoded.
pub(crate) type Inverted<'scope> = (
    StreamVec<'scope, u64, Local<RunShare>>,
    StreamVec<'scope, u64, Local<PieceDocuments>>,
    StreamVec<'scope, u64, ()>,
    StreamVec<'scope, u64, Local<LaidChunk>>,
);

/// The capabilities of a piece: for the run that it may end, for its documents, and for what is
/// absorbed.
struct Caps {
    run: RunCaps,
    documents: Capability<u64>,
    _absorbed: Capability<u64>,
}

struct RunCaps {
    parts: Capability<u64>,
    encoded: Capability<u64>,
}

/// A piece that waits for earlier ones, or for one of its two halves.
#[derive(Default)]
struct WaitingPiece {
    text: Option<(Caps, PieceText)>,
    documents: Option<PieceDocuments>,
}

struct SentPiece {
    caps: Caps,
    documents: PieceDocuments,
    bytes: usize,
    ends_batch: bool,
}

/// The worker that has the device: the one of the documents' table.
const DEVICES: u64 = 0;

pub(crate) fn invert<'scope>(
    texts: StreamVec<'scope, u64, Local<PieceText>>,
    documents: StreamVec<'scope, u64, Local<PieceDocuments>>,
    build: &Build,
) -> Inverted<'scope> {
    let build = build.clone();
    let scope = texts.scope();
    let worker = scope.index();
    let mut builder = OperatorBuilder::new("Invert".to_owned(), scope);
    let mut texts = builder.new_input(texts, Exchange::new(|_: &Local<PieceText>| DEVICES));
    let to_device = Exchange::new(|_: &Local<PieceDocuments>| DEVICES);
    let mut halves = builder.new_input(documents, to_device);
    let (runs_out, runs) = builder.new_output();
    let (documents_out, documents) = builder.new_output();
    let (absorbed_out, absorbed) = builder.new_output::<Vec<()>>();
    let (encoded_out, encoded) = builder.new_output();
    let mut encoded_out = OutputBuilder::from(encoded_out);
    let mut runs_out = OutputBuilder::from(runs_out);
    let mut documents_out = OutputBuilder::from(documents_out);
    drop(absorbed_out);
    let address = builder.operator_info().address;
    let wake = wake_of(scope.worker().sync_activator_for(address.to_vec()));
    let activator = scope.activator_for(address);
    builder.build(move |_| {
        let guard = OperatorGuard::new(&build.wiring.control, "Invert", worker);
        let mut lane = (worker as u64 == DEVICES)
            .then(|| guard.work(|| Ok(Inverting::new((build.wiring.start_inverter)(wake)?))))
            .flatten();
        move |frontiers| {
            let Some(inverting) = &mut lane else { return };
            texts.for_each(|cap, data| {
                for Local(group) in data.drain(..) {
                    let caps = Caps {
                        run: RunCaps { parts: cap.retain(0), encoded: cap.retain(3) },
                        documents: cap.retain(1),
                        _absorbed: cap.retain(2),
                    };
                    inverting.waiting.entry(*cap.time()).or_default().text = Some((caps, group));
                }
            });
            halves.for_each(|cap, data| {
                for Local(batch) in data.drain(..) {
                    inverting.waiting.entry(*cap.time()).or_default().documents = Some(batch);
                }
            });
            let arrived = |time: &u64| frontiers.iter().all(|frontier| !frontier.less_equal(time));
            let over = frontiers.iter().all(|frontier| frontier.is_empty());
            let look = guard.work(|| {
                inverting.gather(arrived);
                inverting.send(&build, over);
                let mut documents_out = documents_out.activate();
                let mut runs_out = runs_out.activate();
                let mut encoded_out = encoded_out.activate();
                inverting.receive(
                    &build,
                    |cap, documents| documents_out.session(cap).give(Local(documents)),
                    |cap, end| {
                        let parts = parts(end, &build.plan.owners).map(Local);
                        runs_out.session(cap).give_iterator(parts);
                    },
                    |cap, chunk| encoded_out.session(cap).give(Local(chunk)),
                )?;
                // What the device has finished makes room for more.
                inverting.send(&build, over);
                Ok(inverting.has_gathered())
            });
            match look {
                Some(true) => activator.activate_after(PAUSE),
                Some(false) => {}
                // The job ends, and with it the device's thread.
                None => lane = None,
            }
        }
    });
    (runs, documents, absorbed, encoded)
}

/// The parts of the owners of a run that has ended.
fn parts(end: RunEnd, owners: &Arc<Owners>) -> impl Iterator<Item = RunShare> {
    let lengths = Arc::new(end.lengths.concat());
    (0..owners.len()).map(move |owner| {
        let terms = InvertedTerms::new(end.inverted.clone(), owners.clone(), owner as u32);
        RunShare {
            part: RunPart {
                run: end.run,
                first_docid: end.first_docid,
                documents: end.documents,
                owner,
            },
            number: 0,
            share: ClosedShare::whole(terms),
            lengths: lengths.clone(),
            unwritten: Arc::new(()),
            busy: Arc::default(),
        }
    })
}

struct Inverting {
    service: InvertService,
    waiting: BTreeMap<u64, WaitingPiece>,
    gathered: Vec<(Caps, PieceDocuments, PieceText)>,
    gathered_bytes: usize,
    /// When the last piece came.
    came: Instant,
    sent: VecDeque<SentPiece>,
    batches: usize,
    /// Of the last piece that was counted; its run goes out with it.
    last: Option<RunCaps>,
    ended: bool,
}

impl Inverting {
    fn new(service: InvertService) -> Self {
        let came = Instant::now();
        let (waiting, gathered, gathered_bytes, sent, batches, last, ended) = Default::default();
        Self { service, waiting, gathered, gathered_bytes, came, sent, batches, last, ended }
    }

    fn has_gathered(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Takes the pieces that all earlier ones have preceded.
    fn gather(&mut self, arrived: impl Fn(&u64) -> bool) {
        while let Some(entry) = self.waiting.first_entry()
            && arrived(entry.key())
        {
            // Both halves of a piece have its time, which both frontiers have passed.
            if let WaitingPiece { text: Some((caps, group)), documents: Some(documents) } =
                entry.remove()
            {
                self.gathered_bytes += group.bytes.len();
                self.came = Instant::now();
                self.gathered.push((caps, documents, group));
            }
        }
    }

    /// Hands batches to the device; `over`: no more pieces will come.
    fn send(&mut self, build: &Build, over: bool) {
        let ends = over && self.waiting.is_empty();
        while self.batches < MOST_BATCHES && self.has_gathered() {
            let full = self.gathered_bytes >= build.wiring.batch_bytes
                || self.gathered.len() >= MOST_PIECES;
            // An idle device takes what there is, but no crumbs while more can come: each batch
            // waits for some thirty calls.
            let some = self.gathered_bytes >= build.wiring.batch_bytes / LEAST_PART;
            let starved = match self.batches {
                0 => some || !build.wiring.flow.has_room(true) || self.came.elapsed() >= IDLE,
                1 => some,
                _ => false,
            };
            if !(full || ends || starved) {
                break;
            }
            let mut taken = 0;
            let mut bytes = 0;
            while taken < self.gathered.len().min(MOST_PIECES) && bytes < build.wiring.batch_bytes {
                bytes += self.gathered[taken].2.bytes.len();
                taken += 1;
            }
            self.gathered_bytes -= bytes;
            let mut pieces: Vec<PieceText> = Vec::with_capacity(taken);
            for (n, (caps, documents, group)) in self.gathered.drain(..taken).enumerate() {
                let bytes = group.memory_bytes();
                self.sent.push_back(SentPiece {
                    caps,
                    documents,
                    bytes,
                    ends_batch: n + 1 == taken,
                });
                pieces.push(group);
            }
            self.service.send(pieces);
            self.batches += 1;
        }
        if ends && self.gathered.is_empty() && !std::mem::replace(&mut self.ended, ends) {
            self.service.end();
        }
    }

    fn last(&self) -> Result<&RunCaps, Cause> {
        self.last.as_ref().ok_or_else(|| "a run ends with a piece".into())
    }

    fn receive(
        &mut self,
        build: &Build,
        mut documents: impl FnMut(&Capability<u64>, PieceDocuments),
        mut parts: impl FnMut(&Capability<u64>, RunEnd),
        mut encoded: impl FnMut(&Capability<u64>, LaidChunk),
    ) -> Result<(), Cause> {
        while let Some(outcome) = self.service.outcome() {
            match outcome? {
                RunEvent::Piece { counts, lengths, contents } => {
                    let mut sent = self.sent.pop_front().ok_or("a device counts what it has")?;
                    build.wiring.flow.absorbed(sent.bytes);
                    sent.documents.count(counts, lengths, contents);
                    documents(&sent.caps.documents, sent.documents);
                    self.batches -= usize::from(sent.ends_batch);
                    // Kept until all is over, for the last outcome.
                    self.last = Some(sent.caps.run);
                }
                RunEvent::Run(end) => parts(&self.last()?.parts, end),
                RunEvent::Encoded(chunk) => {
                    count(&chunk, &build.wiring.encoded[chunk.part.owner]);
                    encoded(&self.last()?.encoded, chunk);
                }
                RunEvent::End(work) => {
                    self.last = None;
                    lock(&build.progress.done).inverted = Some(work);
                }
            }
        }
        Ok(())
    }
}
