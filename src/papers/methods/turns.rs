//! The thread of a device that answers one batch after the other: it takes planned queries from all
//! workers, has the lists that travel with them laid out, answers those of AND and of OR in batches
//! that alternate, and sends results back. A query of AND+OR is one of AND, and one of OR if that
//! finds too few (ding09, section 8.3). What the device cannot answer goes back to its worker.

use super::DeviceMethod;
use super::batch::{AskedPart, FoundHits, MethodBatch};
use super::device::MethodDevice;
use crate::gpu::floor::error::GpuError;
use crate::gpu::query::service::{DeviceDesk, DeviceJob, Why};
use crate::query::wanted::Stage;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

struct OpenTurn {
    job: DeviceJob,
    terms: Vec<AskedPart>,
    stage: Stage,
}

pub(in crate::papers) struct MethodTurns<M: DeviceMethod> {
    device: MethodDevice<M>,
    how: M,
    /// The documents of the device.
    docids: Range<u32>,
    batch: usize,
    /// Queries of AND, and of OR.
    ready: [VecDeque<OpenTurn>; 2],
    desk: DeviceDesk,
}

impl<M: DeviceMethod> MethodTurns<M> {
    pub(in crate::papers) fn new(
        device: MethodDevice<M>,
        how: M,
        docids: Range<u32>,
        batch: usize,
        desk: DeviceDesk,
    ) -> Self {
        Self { device, how, docids, batch, ready: Default::default(), desk }
    }

    /// Answers queries until nobody can send any more. If the device fails, all its queries go
    /// back, and those that still come.
    pub(in crate::papers) fn run(mut self) {
        let failed = loop {
            let mut came = Vec::new();
            if self.ready.iter().all(VecDeque::is_empty) {
                match self.desk.jobs.recv() {
                    Ok(job) => came.push(job),
                    Err(_) => return,
                }
            }
            let waiting = self.ready.iter().map(VecDeque::len).sum::<usize>();
            came.extend(self.desk.jobs.try_iter().take((2 * self.batch).saturating_sub(waiting)));
            self.take(came);
            match self.round() {
                Ok(()) => self.desk.send(),
                Err(error) => break error,
            }
        };
        let ready = self.ready.into_iter().flatten().map(|open| open.job);
        self.desk.close(&failed, ready);
    }

    fn take(&mut self, jobs: Vec<DeviceJob>) {
        let asked: Vec<_> = jobs.iter().map(|job| AskedPart::of_plan(&job.plan)).collect();
        // A damaged list is found again with its query, a device that fails with the next batch.
        _ = self.device.grow(asked.iter().flatten());
        _ = self.device.lay_ahead(asked.iter().flatten());
        for (job, terms) in jobs.into_iter().zip(asked) {
            let stage = Stage::first(job.plan.wanted().mode);
            // With a term that no document has AND finds none.
            let stage = if job.plan.may_find(stage) { stage } else { Stage::Any };
            self.queue(OpenTurn { job, terms, stage });
        }
    }

    fn queue(&mut self, open: OpenTurn) {
        self.ready[usize::from(open.stage == Stage::Any)].push_back(open);
    }

    /// A batch of each kind.
    fn round(&mut self) -> Result<(), GpuError> {
        for all_terms in [true, false] {
            let Some((batch, open)) = self.fill(all_terms) else { continue };
            match self.device.answer(&batch) {
                Ok(answers) => self.answered(open, answers),
                Err(error) => {
                    open.into_iter().for_each(|open| self.queue(open));
                    return Err(error);
                }
            }
        }
        let list_bytes = self.device.list_bytes();
        self.desk.counts.list_bytes.store(list_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn fill(&mut self, all_terms: bool) -> Option<(MethodBatch<M>, Vec<OpenTurn>)> {
        let mut batch = self.device.batch(self.how, all_terms);
        let mut taken = Vec::new();
        let ready = usize::from(!all_terms);
        while taken.len() < self.batch {
            let Some(open) = self.ready[ready].pop_front() else { break };
            let k = open.job.plan.wanted().k as u32;
            let docids = self.docids.clone();
            let why = match self.device.add(&mut batch, &open.terms, k, docids) {
                Ok(true) => {
                    taken.push(open);
                    continue;
                }
                Ok(false) => Why::Unsuited,
                // The CPU, which answers the query, finds out where the index is damaged.
                Err(_) => Why::Lists,
            };
            if !taken.is_empty() {
                self.ready[ready].push_front(open);
                break;
            }
            self.desk.back(&open.job, why);
        }
        if taken.is_empty() {
            return None;
        }
        batch.finish();
        self.desk.counts.batches.fetch_add(1, Ordering::Relaxed);
        Some((batch, taken))
    }

    fn answered(&mut self, open: Vec<OpenTurn>, answers: Vec<FoundHits>) {
        for (open, FoundHits { hits, rest }) in open.into_iter().zip(answers) {
            match open.stage.next(open.job.plan.wanted(), hits.len()) {
                Some(stage) => self.queue(OpenTurn { stage, ..open }),
                None => self.desk.hits(&open.job, hits, rest),
            }
        }
    }
}
