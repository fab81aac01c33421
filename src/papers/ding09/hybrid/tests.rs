//! Tests of a scheduler whose devices refuse, hang or are lost in the middle of a stream: it loses
//! no query, and everybody does his part.

use super::*;
use crate::index::testing::term;
use crate::papers::ding09::features::{Cost, CostModel, Features};
use crate::papers::ding09::models::Models;
use crate::query::engines::engine::tests::{LateEngines, Make, snapshot};
use crate::query::plan::Planner;
use crate::query::searcher::Searcher;
use crate::query::wanted::Wanted;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::AtomicU8;

/// Costs of a machine whose devices are good at long queries.
fn costs() -> Models {
    let query = |n: u32| {
        let features = Features::of([1 + n * 37 % 3000, 1 + n * 911 % 9000]);
        let seconds = [1e-6 * features.sum as f64, 1e-3];
        Cost { features, seconds, alone: seconds }
    };
    let model = CostModel::learn(&(0..200).map(query).collect::<Vec<_>>()).unwrap();
    Models { machine: String::new(), modes: [("or".to_owned(), model)].into() }
}

fn scheduling(policy: &str, deadline: Duration) -> Scheduling {
    let policy = policy.parse().unwrap();
    let predict = costs().predict();
    Scheduling { policy, deadline, shed: false, predict, on_slow: None, shares: Arc::default() }
}

fn hybrid(
    devices: Box<dyn Engines>,
    policy: &str,
    deadline: Duration,
    wakers: &Arc<Wakers>,
) -> Hybrid {
    Hybrid::new(devices, 1, scheduling(policy, deadline), wakers).unwrap()
}

/// A scheduler for each policy, by name.
pub(crate) fn crews() -> Vec<(String, Make)> {
    let of = |policy: &'static str| {
        let make = move |wakers: &Arc<Wakers>| -> Box<dyn Engines> {
            Box::new(hybrid(Box::new(LateEngines), policy, Duration::from_millis(20), wakers))
        };
        (format!("hybrid, {policy}"), Box::new(make) as Make)
    };
    ["cpu", "gpu", "sd", "lbd:40", "best", "best-serial", "ding09"].map(of).into()
}

const WORKS: u8 = 0;
const REFUSES: u8 = 1;
const HANGS: u8 = 2;
const LOST: u8 = 3;

/// Engines of one device, whose state a test sets.
#[derive(Clone, Default)]
struct Moody(Arc<AtomicU8>);

struct MoodyEngine {
    mood: Arc<AtomicU8>,
    searcher: Searcher,
    open: VecDeque<(u64, Plan, Instant)>,
    back: Vec<(u64, Plan)>,
    recalled: HashSet<u64>,
    answers: Vec<Answer>,
}

impl Engines for Moody {
    fn engine(
        &self,
        _worker: usize,
        _snapshot: &Arc<Snapshot>,
    ) -> Result<Box<dyn QueryEngine>, IndexError> {
        let (searcher, open, back, recalled, answers) = Default::default();
        let mood = self.0.clone();
        Ok(Box::new(MoodyEngine { mood, searcher, open, back, recalled, answers }))
    }
}

impl QueryEngine for MoodyEngine {
    fn submit(&mut self, number: u64, plan: Plan) {
        assert!(self.room());
        self.open.push_back((number, plan, Instant::now()));
    }

    fn advance(&mut self) -> Result<Pace, IndexError> {
        match self.mood.load(Ordering::SeqCst) {
            HANGS => return Ok(Pace::Idle),
            WORKS => {
                // What was given up comes at last, and is dropped.
                self.recalled.clear();
                if let Some((number, plan, _)) = self.open.pop_front() {
                    let hits = self.searcher.answer(&plan)?.to_vec();
                    self.answers.push(Answer::new(number, &plan, hits, None));
                }
            }
            _ => self.back.extend(self.open.drain(..).map(|(number, plan, _)| (number, plan))),
        }
        Ok(if self.open.is_empty() { Pace::Idle } else { Pace::Soon })
    }

    fn take(&mut self, answers: &mut Vec<Answer>) {
        answers.append(&mut self.answers);
    }

    fn room(&mut self) -> bool {
        self.open.len() < 5
    }

    fn give_back(&mut self, overdue: Option<Instant>, queries: &mut Vec<(u64, Plan)>) {
        queries.append(&mut self.back);
        let is_late = |since: &Instant| overdue.is_some_and(|before| *since < before);
        let open = std::mem::take(&mut self.open);
        for (number, plan, since) in open {
            if is_late(&since) {
                self.recalled.insert(number);
                queries.push((number, plan));
            } else {
                self.open.push_back((number, plan, since));
            }
        }
    }

    fn works(&self) -> bool {
        self.mood.load(Ordering::SeqCst) != LOST && self.recalled.is_empty()
    }
}

fn plan(snapshot: &Arc<Snapshot>, n: u64) -> Plan {
    let text = term(n as u32 * 7 % 60);
    Planner::default().plan(snapshot, Wanted::default(), &text).unwrap()
}

/// Submits queries to the first of some engines and advances all in turn until all are answered;
/// `meanwhile` gets their number. Returns the answers by number.
fn all(
    crew: &mut [Box<dyn QueryEngine>],
    snapshot: &Arc<Snapshot>,
    numbers: std::ops::Range<u64>,
    mut meanwhile: impl FnMut(usize),
) -> BTreeMap<u64, Answer> {
    let until = Instant::now() + Duration::from_secs(20);
    let many = (numbers.end - numbers.start) as usize;
    let mut next = numbers;
    let mut found = BTreeMap::new();
    let mut answers = Vec::new();
    while found.len() < many {
        assert!(Instant::now() < until, "{} of {many} queries are answered", found.len());
        if let Some(number) = next.next() {
            crew[0].submit(number, plan(snapshot, number));
        }
        for engine in crew.iter_mut() {
            engine.advance().unwrap();
            engine.take(&mut answers);
        }
        for answer in answers.drain(..) {
            assert!(found.insert(answer.number, answer).is_none(), "one answer each");
        }
        meanwhile(found.len());
    }
    found
}

fn check(snapshot: &Arc<Snapshot>, found: &BTreeMap<u64, Answer>) {
    for (number, answer) in found {
        let expected = Searcher::new().answer(&plan(snapshot, *number)).unwrap().to_vec();
        assert_eq!(answer.hits, expected);
    }
}

#[test]
fn a_device_that_fails_amid_a_stream_loses_no_query() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 900, &[]);
    for policy in ["gpu", "ding09", "sd", "best-serial"] {
        for mood in [REFUSES, HANGS, LOST] {
            let wakers = Wakers::new(3);
            let moody = Moody::default();
            let warned = Arc::<AtomicUsize>::default();
            let mut scheduling = scheduling(policy, Duration::from_millis(20));
            let count = warned.clone();
            scheduling.on_slow = Some(Box::new(move |_| _ = count.fetch_add(1, Ordering::SeqCst)));
            let devices = Box::new(moody.clone());
            let hybrid = Hybrid::new(devices, 1, scheduling, &wakers).unwrap();
            let mut crew: Vec<_> =
                (0..3).map(|worker| hybrid.engine(worker, &snapshot).unwrap()).collect();
            let found = all(&mut crew, &snapshot, 0..120, |answered| {
                if answered >= 40 {
                    moody.0.store(mood, Ordering::SeqCst);
                }
            });
            check(&snapshot, &found);
            let by_devices = || hybrid.shares().devices.load(Ordering::Relaxed);
            let before = by_devices();
            assert_eq!(
                before + hybrid.shares().cpu.load(Ordering::Relaxed),
                120,
                "{policy} {mood}"
            );
            if policy != "gpu" {
                continue;
            }
            assert!((1..120).contains(&before), "{before}");
            assert_eq!(warned.load(Ordering::SeqCst), usize::from(mood == HANGS), "{mood}");
            // A device that is back gets queries again; one that refuses is there.
            moody.0.store(WORKS, Ordering::SeqCst);
            check(&snapshot, &all(&mut crew, &snapshot, 120..160, |_| ()));
            assert!(by_devices() > before, "{mood}");
        }
    }
}

#[test]
fn what_waits_for_too_long_is_left_where_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 900, &[]);
    let wakers = Wakers::new(1);
    let moody = Moody::default();
    moody.0.store(HANGS, Ordering::SeqCst);
    let shed = Scheduling { shed: true, ..scheduling("gpu", Duration::from_millis(20)) };
    let hybrid = Hybrid::new(Box::new(moody.clone()), 1, shed, &wakers).unwrap();
    let mut crew = [hybrid.engine(0, &snapshot).unwrap()];
    let found = all(&mut crew, &snapshot, 0..30, |_| ());
    let (late, answered): (BTreeMap<_, _>, BTreeMap<_, _>) =
        found.into_iter().partition(|(_, answer)| answer.late);
    assert!(late.len() > 10 && !answered.is_empty(), "{} late", late.len());
    assert!(late.values().all(|answer| answer.hits.is_empty()));
    check(&snapshot, &answered);
}

#[test]
fn who_feeds_devices_leaves_queries_of_the_cpu_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = snapshot(folder.path(), 5, 9000, &[]);
    let wakers = Wakers::new(2);
    let crew = hybrid(Box::new(LateEngines), "best", Duration::MAX, &wakers);
    let mut workers = [0, 1].map(|worker| crew.engine(worker, &snapshot).unwrap());
    let long = Planner::default().plan(&snapshot, Wanted::default(), &term(7)).unwrap();
    let short = Planner::default().plan(&snapshot, Wanted::default(), &term(62)).unwrap();
    (0..5).for_each(|number| workers[0].submit(number, long.clone()));
    workers[0].submit(5, short);
    let mut answers = Vec::new();
    workers[0].advance().unwrap();
    workers[0].take(&mut answers);
    assert!(answers.is_empty(), "the device is slow");
    workers[1].advance().unwrap();
    workers[1].take(&mut answers);
    assert_eq!(answers.iter().map(|answer| answer.number).collect::<Vec<_>>(), [5]);
    while answers.len() < 6 {
        workers[0].advance().unwrap();
        workers[0].take(&mut answers);
    }
    let shares = crew.shares();
    assert_eq!([&shares.cpu, &shares.devices].map(|share| share.load(Ordering::Relaxed)), [1, 5]);
}
