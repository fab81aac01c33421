//! Merges the answers of several devices, each of which has a part of the documents and finds the
//! best of these. AND+OR asks for documents with all terms first, and for those with any only if
//! all devices together find fewer than k: a device alone cannot know that.

use super::service::Why;
use crate::query::plan::Plan;
use crate::query::top_k::{Combined, Hit};
use crate::query::wanted::{Mode, Wanted};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct DeviceGathering {
    /// As the devices have it now.
    pub(super) plan: Arc<Plan>,
    wanted: Wanted,
    /// Devices that have not answered.
    left: usize,
    hits: Vec<Hit>,
    back: Option<Why>,
    pub(super) since: Instant,
}

/// What to do when a device has answered.
#[derive(Debug)]
pub(super) enum Next {
    Wait,
    /// All devices are asked again, for this.
    Again(Arc<Plan>),
    /// Best first.
    Hits(Vec<Hit>),
    /// The CPU answers it, since a device cannot.
    Back(Plan, Why),
}

impl DeviceGathering {
    pub(super) fn new(mut plan: Plan, devices: usize) -> Self {
        let wanted = *plan.wanted();
        if devices > 1 && wanted.mode == Mode::AndOr {
            let all = plan.terms().iter().all(|term| term.df > 0);
            plan.want(Wanted { mode: if all { Mode::And } else { Mode::Or }, ..wanted });
        }
        let plan = Arc::new(plan);
        let since = Instant::now();
        Self { plan, wanted, left: devices, hits: Vec::new(), back: None, since }
    }

    pub(super) fn as_asked(&self) -> Plan {
        let mut plan = Plan::clone(&self.plan);
        plan.want(self.wanted);
        plan
    }

    /// `found` is best first.
    pub(super) fn take(&mut self, found: Result<Vec<Hit>, Why>, devices: usize) -> Next {
        match found {
            Ok(hits) if self.hits.is_empty() => self.hits = hits,
            Ok(hits) => self.hits.extend(hits),
            Err(why) => self.back = Some(why),
        }
        self.left -= 1;
        if self.left > 0 {
            return Next::Wait;
        }
        if let Some(why) = self.back {
            return Next::Back(self.as_asked(), why);
        }
        let mut hits = std::mem::take(&mut self.hits);
        if devices > 1 {
            let mut best = Combined::new(self.wanted.k);
            best.add(&hits);
            hits = best.take();
        }
        let was_all = self.plan.wanted().mode == Mode::And && self.wanted.mode == Mode::AndOr;
        if was_all && hits.len() < self.wanted.k {
            let mut plan = Plan::clone(&self.plan);
            plan.want(Wanted { mode: Mode::Or, ..self.wanted });
            self.plan = Arc::new(plan);
            self.left = devices;
            return Next::Again(self.plan.clone());
        }
        Next::Hits(hits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection, term};
    use crate::query::plan::Planner;
    use crate::query::snapshot::{Scoring, Snapshot};
    use crate::query::wanted::Algorithm;

    fn plan(mode: Mode, text: &str) -> Plan {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(1, 40, 30), &[]);
        let generation = Generation::open(folder.path()).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let wanted = Wanted { k: 3, mode, algorithm: Algorithm::Auto, ..Wanted::default() };
        Planner::default().plan(&snapshot, wanted, text).unwrap()
    }

    fn hits(all: &[(u32, f32)]) -> Vec<Hit> {
        all.iter().map(|&(docid, score)| Hit { docid, score }).collect()
    }

    #[test]
    fn the_best_of_all_devices_are_the_best() {
        let mut gathering = DeviceGathering::new(plan(Mode::Or, &term(1)), 3);
        let parts = [[(4, 2.0), (1, 1.0)], [(12, 2.0), (11, 0.5)], [(20, 3.0), (21, 2.0)]];
        for part in &parts[..2] {
            assert!(matches!(gathering.take(Ok(hits(part)), 3), Next::Wait));
        }
        let Next::Hits(found) = gathering.take(Ok(hits(&parts[2])), 3) else { panic!("all came") };
        assert_eq!(found, hits(&[(20, 3.0), (4, 2.0), (12, 2.0)]));
    }

    #[test]
    fn all_devices_together_decide_whether_any_term_is_enough() {
        let text = format!("{} {}", term(1), term(2));
        let of_two = |second: &[(u32, f32)]| {
            let mut gathering = DeviceGathering::new(plan(Mode::AndOr, &text), 2);
            assert_eq!(gathering.plan.wanted().mode, Mode::And);
            assert!(matches!(gathering.take(Ok(hits(&[(1, 1.0), (2, 0.5)])), 2), Next::Wait));
            let next = gathering.take(Ok(hits(second)), 2);
            (gathering, next)
        };
        assert!(matches!(of_two(&[(9, 0.1)]).1, Next::Hits(found) if found.len() == 3));
        let (mut gathering, next) = of_two(&[]);
        assert!(matches!(next, Next::Again(plan) if plan.wanted().mode == Mode::Or));
        assert!(matches!(gathering.take(Err(Why::Lists), 2), Next::Wait));
        match gathering.take(Ok(Vec::new()), 2) {
            Next::Back(plan, why) => {
                assert_eq!((plan.wanted().mode, why), (Mode::AndOr, Why::Lists))
            }
            other => panic!("{other:?}"),
        }
        // A device with everything decides by itself; a term that no document has decides at once.
        assert_eq!(
            DeviceGathering::new(plan(Mode::AndOr, &text), 1).plan.wanted().mode,
            Mode::AndOr
        );
        let lacking = plan(Mode::AndOr, &format!("{text} nowhere"));
        assert_eq!(DeviceGathering::new(lacking, 2).plan.wanted().mode, Mode::Or);
    }
}
