//! All queries once, batch after batch; threads end queries where the device cannot.

use super::{BATCH, WangBench};
use crate::numbers::{Middle, PASSES, middle};
use crate::rig::lock;
use crate::threads::threads;
use millrace::inside::papers::{AskedPart, BatchRoom, DeviceMethod as _, FoundHits, WangTuning};
use millrace::inside::query::Plan;
use millrace::{Algorithm, Hit, Searcher, Wanted};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Instant;

#[derive(Clone, Copy)]
pub(super) struct PassSettings {
    pub(super) round: u32,
    pub(super) queries: usize,
    pub(super) room: BatchRoom,
    /// This thread ends queries that the device has begun, behind each batch. Else all others do,
    /// one for each core that is left, while the device answers the next batch.
    pub(super) behind: bool,
    /// Threads that have nothing to end answer whole queries by galloping, from the last one on.
    pub(super) beside: bool,
}

#[derive(Clone, Copy, Default)]
pub(super) struct PassTimes {
    pub(super) seconds: f64,
    /// Of the fastest and the slowest pass, where there were several.
    pub(super) spread: [f64; 2],
    /// To write queries and lists for the copy, and to copy them, both at once.
    pub(super) copy_s: f64,
    /// To end queries, summed over threads.
    pub(super) post_s: f64,
    /// From when a query's batch was begun until it was answered, in the mean.
    pub(super) latency_s: f64,
    pub(super) list_bytes: u64,
    pub(super) batches: usize,
    /// Queries that the CPU ended.
    pub(super) begun: usize,
    /// Queries that the device answered or began.
    pub(super) by_device: usize,
}

/// A query that has to be ended: its number, its hits before a docid, and when its batch was begun.
type BegunQuery = (usize, Vec<Hit>, u32, Instant);

/// One that was ended: its number, hits, seconds to end it, and those since its batch was begun.
type Ended = (usize, Vec<Hit>, f64, f64);

impl WangBench<'_> {
    /// Answers queries, of which plans say the k, in their order.
    pub(super) fn device_pass(
        &mut self,
        plans: &[Plan],
        how: PassSettings,
    ) -> anyhow::Result<(Vec<Vec<Hit>>, PassTimes)> {
        let start = Instant::now();
        let end = |searcher: &mut Searcher, (number, hits, from, since): BegunQuery| {
            let start = Instant::now();
            let hits = searcher.go_on(&plans[number], &hits, from)?.to_vec();
            let seconds = start.elapsed().as_secs_f64();
            anyhow::Ok((number, hits, seconds, since.elapsed().as_secs_f64()))
        };
        let (sender, receiver) = channel::<BegunQuery>();
        let receiver = Mutex::new(receiver);
        let left = Mutex::new(0..plans.len());
        let work = || -> anyhow::Result<Vec<Ended>> {
            let mut searcher = Searcher::new();
            let mut ended = Vec::new();
            loop {
                if let Ok(begun) = lock(&receiver).try_recv() {
                    ended.push(end(&mut searcher, begun)?);
                    continue;
                }
                let last = if how.beside { lock(&left).next_back() } else { None };
                if let Some(number) = last {
                    let mut plan = plans[number].clone();
                    plan.want(Wanted { algorithm: Algorithm::Galloping, ..*plan.wanted() });
                    let hits = searcher.answer(&plan)?.to_vec();
                    ended.push((number, hits, 0.0, start.elapsed().as_secs_f64()));
                    continue;
                }
                let begun = lock(&receiver).recv();
                let Ok(begun) = begun else { return Ok(ended) };
                ended.push(end(&mut searcher, begun)?);
            }
        };
        let mut searcher = Searcher::new();
        let mut ended = Vec::new();
        let (mut answers, mut took) = std::thread::scope(|scope| {
            // The one that feeds the device is one of the threads.
            let count = if how.behind { 0 } else { (threads() - 1).max(1) };
            let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            let done = self.batches(plans, &left, how, |begun| {
                if how.behind {
                    ended.push(end(&mut searcher, begun)?);
                } else {
                    // A worker that failed says so below.
                    _ = sender.send(begun);
                }
                Ok(())
            });
            drop(sender);
            for worker in workers {
                ended.append(&mut worker.join().expect("a search panicked")?);
            }
            done
        })?;
        took.seconds = start.elapsed().as_secs_f64();
        for (number, hits, post_s, latency_s) in ended {
            answers[number] = hits;
            took.post_s += post_s;
            took.latency_s += latency_s;
        }
        took.latency_s /= plans.len().max(1) as f64;
        Ok((answers, took))
    }

    /// The middle one of three passes; their answers are not looked at.
    pub(super) fn middle_pass(
        &mut self,
        plans: &[Plan],
        how: PassSettings,
    ) -> anyhow::Result<PassTimes> {
        let pass = || Ok(self.device_pass(plans, how)?.1);
        let Middle { middle, spread } = middle(PASSES, |took: &PassTimes| took.seconds, pass)?;
        Ok(PassTimes { spread, ..middle })
    }

    /// Answers batches of the first queries that are left, and passes queries that have to be ended
    /// to `end`. Latencies are a sum, without those of these queries.
    fn batches(
        &mut self,
        plans: &[Plan],
        left: &Mutex<Range<usize>>,
        how: PassSettings,
        mut end: impl FnMut(BegunQuery) -> anyhow::Result<()>,
    ) -> anyhow::Result<(Vec<Vec<Hit>>, PassTimes)> {
        let mut answers = vec![Vec::new(); plans.len()];
        let mut took = PassTimes::default();
        let mut ready = VecDeque::new();
        loop {
            let since = Instant::now();
            let mut came = Vec::new();
            while ready.len() + came.len() < how.queries.min(BATCH) {
                let Some(number) = lock(left).next() else { break };
                came.push((number, AskedPart::of_plan(&plans[number])));
            }
            // As a query job does.
            self.device.lay_ahead(came.iter().flat_map(|(_, terms)| terms))?;
            ready.extend(came);
            let tuning = WangTuning { round: how.round, ..WangTuning::default() };
            let mut batch = self.device.batch(tuning, true);
            batch.room = how.room;
            let mut numbers = Vec::new();
            while let Some((number, terms)) = ready.front() {
                let k = plans[*number].wanted().k as u32;
                if !self.device.add(&mut batch, terms, k, 0..u32::MAX)? {
                    break;
                }
                numbers.push(*number);
                ready.pop_front();
            }
            if batch.is_empty() {
                anyhow::ensure!(ready.is_empty(), "a query has no room in a batch");
                return Ok((answers, took));
            }
            batch.finish();
            let times_ms = self.device.time_steps(&batch, &WangTuning::steps(&batch))?;
            let found = batch.answers(self.device.output());
            took.copy_s += f64::from(times_ms[0]) / 1e3;
            took.list_bytes += batch.used().list_bytes as u64;
            took.batches += 1;
            for (number, FoundHits { hits, rest }) in numbers.into_iter().zip(found) {
                took.by_device += 1;
                if let Some(from) = rest {
                    took.begun += 1;
                    end((number, hits, from, since))?;
                } else {
                    took.latency_s += since.elapsed().as_secs_f64();
                    answers[number] = hits;
                }
            }
        }
    }
}
