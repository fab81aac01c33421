//! Replacement of engines that are made for one generation, such as those of devices. While the
//! memory of the old ones is freed and the new ones are made, the CPU answers: no query waits, and
//! none is lost.
//!
//! ```text
//! retire -> the CPU answers; each worker drops its engine when none of them has open queries
//!        -> the old engines are gone -> new ones are made -> renew
//!        -> each worker makes its engine again
//! ```
//!
//! A query is answered by an engine that was made for its snapshot, else by the CPU; open queries
//! are answered from the old generation.

use super::whole::WholeEngines;
use super::{Answer, Engines, Pace, QueryEngine, Wakers};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between checks whether all workers have dropped their engines.
const LOOK: Duration = Duration::from_millis(5);

type MadeEngines = (Arc<dyn Engines>, Arc<Snapshot>);

struct EngineSlot {
    made: Mutex<Option<MadeEngines>>,
    /// Counts the changes of `made`.
    turn: AtomicU64,
    /// Open queries of engines made for a snapshot.
    open: AtomicUsize,
    holders: AtomicUsize,
    wakers: Arc<Wakers>,
}

impl EngineSlot {
    fn change(&self, made: Option<MadeEngines>) {
        let old = {
            let mut slot = lock(&self.made);
            let old = std::mem::replace(&mut *slot, made);
            self.turn.fetch_add(1, Ordering::SeqCst);
            old
        };
        drop(old);
        self.wakers.wake(&(0..self.wakers.workers()).collect::<Vec<_>>());
    }
}

pub struct RenewedEngines {
    slot: Arc<EngineSlot>,
    wants_cores: bool,
}

#[derive(Clone)]
pub struct Renewer(Arc<EngineSlot>);

impl RenewedEngines {
    pub fn new(engines: Arc<dyn Engines>, snapshot: Arc<Snapshot>, wakers: &Arc<Wakers>) -> Self {
        let wants_cores = engines.wants_cores();
        let (turn, open, holders) = Default::default();
        let made = Mutex::new(Some((engines, snapshot)));
        let slot = EngineSlot { made, turn, open, holders, wakers: wakers.clone() };
        Self { slot: Arc::new(slot), wants_cores }
    }

    pub fn renewer(&self) -> Renewer {
        Renewer(self.slot.clone())
    }
}

impl Renewer {
    /// Lets the CPU answer from now on and waits until all workers have dropped their engines, but
    /// no longer than `patience`. Returns whether they have, so that the engines' memory is free.
    pub fn retire(&self, patience: Duration) -> bool {
        self.let_go();
        let start = Instant::now();
        while self.is_held() {
            if start.elapsed() > patience {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    fn let_go(&self) {
        self.0.change(None);
    }

    fn is_held(&self) -> bool {
        self.0.holders.load(Ordering::SeqCst) > 0
    }

    /// Lets engines that were made for a snapshot answer its queries.
    pub fn renew(&self, engines: Arc<dyn Engines>, snapshot: Arc<Snapshot>) {
        self.0.change(Some((engines, snapshot)));
    }

    pub fn wakers(&self) -> &Arc<Wakers> {
        &self.0.wakers
    }
}

impl Engines for RenewedEngines {
    fn engine(
        &self,
        worker: usize,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        let cpu = WholeEngines.engine(worker, snapshot)?;
        let (inner, for_cpu) = Default::default();
        let turn = self.slot.turn.load(Ordering::SeqCst);
        let slot = self.slot.clone();
        let mut engine = Renewed { worker, slot, turn, inner, cpu, for_cpu, cpu_has: false };
        engine.make()?;
        Ok(Box::new(engine))
    }

    fn wants_cores(&self) -> bool {
        self.wants_cores
    }
}

struct Renewed {
    worker: usize,
    slot: Arc<EngineSlot>,
    turn: u64,
    inner: Option<(Box<dyn QueryEngine>, Arc<Snapshot>)>,
    cpu: Box<dyn QueryEngine>,
    /// Queries that wait for it, since it takes one at a time.
    for_cpu: VecDeque<(u64, Plan)>,
    cpu_has: bool,
}

impl Renewed {
    fn is_current(&self) -> bool {
        self.inner.is_some() && self.turn == self.slot.turn.load(Ordering::SeqCst)
    }

    fn make(&mut self) -> Result<(), IndexError> {
        let made = lock(&self.slot.made);
        self.turn = self.slot.turn.load(Ordering::SeqCst);
        if let Some((engines, snapshot)) = &*made {
            self.inner = Some((engines.engine(self.worker, snapshot)?, snapshot.clone()));
            self.slot.holders.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn drop_inner(&mut self) {
        if let Some(inner) = self.inner.take() {
            drop(inner);
            self.slot.holders.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Changes to other engines as soon as the old ones have no open queries.
    fn follow(&mut self) -> Result<(), IndexError> {
        if self.turn == self.slot.turn.load(Ordering::SeqCst) {
            return Ok(());
        }
        if self.inner.is_some() && self.slot.open.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        self.drop_inner();
        self.make()
    }
}

impl Drop for Renewed {
    fn drop(&mut self) {
        self.drop_inner();
    }
}

impl QueryEngine for Renewed {
    fn submit(&mut self, number: u64, plan: Plan) {
        self.submit_of(number, plan, Instant::now());
    }

    fn submit_of(&mut self, number: u64, plan: Plan, came: Instant) {
        // Counted first: a worker that drops an engine has seen the new turn before it reads this.
        self.slot.open.fetch_add(1, Ordering::SeqCst);
        let current = self.is_current();
        match &mut self.inner {
            Some((inner, snapshot)) if current && plan.snapshot().is_of(snapshot) => {
                inner.submit_of(number, plan, came);
            }
            _ => {
                self.slot.open.fetch_sub(1, Ordering::SeqCst);
                self.for_cpu.push_back((number, plan));
            }
        }
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        self.follow()?;
        let pace = match &mut self.inner {
            Some((inner, _)) => inner.advance()?,
            None => Pace::Idle,
        };
        if !self.cpu_has
            && let Some((number, plan)) = self.for_cpu.pop_front()
        {
            self.cpu.submit(number, plan);
            self.cpu_has = true;
        }
        if self.cpu_has {
            self.cpu.advance()?;
            return Ok(Pace::Busy);
        }
        let retires = self.inner.is_some() && !self.is_current();
        Ok(match pace {
            // Others may have open queries that this worker is not woken for.
            Pace::Idle | Pace::Full if retires => Pace::Soon,
            pace => pace,
        })
    }

    fn failed(&mut self) -> Option<u64> {
        if let Some(number) = self.cpu.failed() {
            self.cpu_has = false;
            return Some(number);
        }
        let number = self.inner.as_mut()?.0.failed()?;
        self.slot.open.fetch_sub(1, Ordering::SeqCst);
        Some(number)
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        let from = answers.len();
        if let Some((inner, _)) = &mut self.inner {
            inner.take(answers);
        }
        // May be of queries that another worker has taken in.
        self.slot.open.fetch_sub(answers.len() - from, Ordering::SeqCst);
        let from = answers.len();
        self.cpu.take(answers);
        self.cpu_has &= answers.len() == from;
    }

    fn room(&mut self) -> bool {
        let is_current = self.is_current();
        match &mut self.inner {
            _ if self.cpu_has || !self.for_cpu.is_empty() => false,
            Some((inner, _)) if is_current => inner.room(),
            _ => self.cpu.room(),
        }
    }

    fn waiting(&mut self, queries: usize) {
        if let Some((inner, _)) = &mut self.inner {
            inner.waiting(queries);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::LateEngines;
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection, term};
    use crate::query::plan::Planner;
    use crate::query::snapshot::Scoring;
    use crate::query::wanted::{Algorithm, Mode, Wanted};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn snapshots(folder: &std::path::Path) -> [Arc<Snapshot>; 2] {
        [5, 6].map(|seed| {
            build(folder, &collection(seed, 120, 40), &[50]);
            Snapshot::new(Generation::open(folder).unwrap(), Scoring::default()).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Every query is answered once, from the snapshot that it began with, no matter which
        /// worker goes on next and whenever engines are replaced.
        #[test]
        fn oracle_a_search_of_the_snapshot_of_each_query(
            steps in prop::collection::vec((0..3usize, 0..6u8), 20..120),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let snapshots = snapshots(folder.path());
            let wakers = Wakers::new(3);
            let first = Arc::new(LateEngines);
            let engines = RenewedEngines::new(first.clone(), snapshots[0].clone(), &wakers);
            let renewer = engines.renewer();
            let mut workers: Vec<_> =
                (0..3).map(|worker| engines.engine(worker, &snapshots[0]).unwrap()).collect();
            prop_assert!(renewer.is_held());
            let wanted = Wanted { k: 5, mode: Mode::Or, algorithm: Algorithm::Auto, ..Wanted::default() };
            let mut live = 0;
            let mut number = 0;
            let mut expected = BTreeMap::new();
            let mut planner = Planner::default();
            let mut answers = Vec::new();
            let mut retired = false;
            for (worker, action) in steps {
                let engine = &mut workers[worker];
                match action {
                    0 if live == 0 => {
                        live = 1;
                        renewer.let_go();
                        retired = true;
                    }
                    1 if retired && !renewer.is_held() => {
                        prop_assert_eq!(Arc::strong_count(&first), 1, "the old engines are free");
                        renewer.renew(Arc::new(LateEngines), snapshots[1].clone());
                        retired = false;
                    }
                    2 | 3 if engine.room() => {
                        // One that was planned before the generation changed may come late.
                        let snapshot = &snapshots[if action == 2 { live } else { 0 }];
                        let text = term(number as u32 % 9);
                        let plan = planner.plan(snapshot, wanted, &text).unwrap();
                        let hits = crate::query::searcher::Searcher::new().answer(&plan).unwrap().to_vec();
                        expected.insert(number, hits);
                        engine.submit(number, plan);
                        number += 1;
                    }
                    _ => _ = engine.advance().unwrap(),
                }
                engine.take(&mut answers);
            }
            for _ in 0..10 * (number + 9) {
                for engine in &mut workers {
                    engine.advance().unwrap();
                    engine.take(&mut answers);
                }
            }
            prop_assert!(!retired || !renewer.is_held());
            prop_assert_eq!(answers.len(), expected.len());
            for answer in answers {
                prop_assert_eq!(Some(answer.hits), expected.remove(&answer.number));
            }
            drop(workers);
            prop_assert!(!renewer.is_held());
        }
    }
}
