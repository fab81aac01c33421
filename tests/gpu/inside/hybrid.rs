//! A stream of queries over CPU and GPU outlives the loss of the GPU.

use crate::inside_tests::gpu::{arrays, device, found, give};
use crate::inside_tests::util::{Collection, Scratch};
use millrace::build::{BuildOptions, build};
use millrace::dataflow::query::service::{QueryOptions, QueryService, Shard, Sink};
use millrace::gpu::floor::error::Geometry;
use millrace::gpu::floor::steps::Step;
use millrace::gpu::query::choose::{DeviceChoice, Devices};
use millrace::gpu::query::service::OnLost;
use millrace::papers::ding09::features::Costs;
use millrace::papers::ding09::hybrid::{Hybrid, Scheduling};
use millrace::query::plan::Planner;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::Wanted;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A trap ends all work of its process on the device, so it has one of its own: this test, called
/// again. Another kernel of the process traps: the driver takes the device from all of them.
#[test]
fn a_launch_that_traps_amid_a_stream_loses_no_query() {
    const CHILD: &str = "MILLRACE_TEST_TRAP_AMID";
    if std::env::var_os(CHILD).is_some() {
        return trap_amid();
    }
    if found().is_none() {
        return;
    }
    let test = "inside_tests::hybrid::a_launch_that_traps_amid_a_stream_loses_no_query";
    crate::inside_tests::util::again_in_a_process_of_its_own(test, CHILD);
}

/// Asks queries, traps, and asks more; compares all answers, in their order, with those of the CPU.
fn trap_amid() {
    const BEFORE: usize = 200;
    let scratch = Scratch::new();
    let collection = Collection::new(91, 3000, 40);
    let input = scratch.write("c.jsonl", collection.jsonl());
    let index = scratch.path("index");
    build(BuildOptions::of_paths(&index, [input])).unwrap();
    let queries = collection.queries(92, 3 * BEFORE);
    let snapshot = Snapshot::open(&index, Scoring::default()).unwrap();
    let mut trap = arrays(device().unwrap(), &[("trap", 0)], (1, 16));
    let choice = DeviceChoice {
        k: 10,
        devices: NonZeroUsize::new(1),
        memory: Some(1 << 30),
        ..DeviceChoice::default()
    };
    let devices = Devices::of_machine(&choice).unwrap();
    let lost = Arc::<AtomicUsize>::default();
    let count = lost.clone();
    let on_lost: OnLost = Arc::new(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
    let workers = NonZeroUsize::new(3).unwrap();
    let options = QueryOptions { workers, delay: Duration::ZERO, ..QueryOptions::default() };
    let mut shares = None;
    let (service, asker) =
        QueryService::with_engines(snapshot.clone(), Shard::WHOLE, options, |wakers| {
            let engines = devices.open(&snapshot, wakers, &on_lost, &Arc::default()).unwrap();
            // All queries seem to suit the device.
            let scheduling = Scheduling {
                policy: "ding09".parse().unwrap(),
                deadline: Duration::from_millis(500),
                shed: false,
                predict: Arc::new(|_| Costs::new([1e-2, 1e-5], 1)),
                on_slow: None,
                shares: Arc::default(),
            };
            let engines = Box::new(engines);
            let hybrid = Hybrid::new(engines, devices.number(), scheduling, wakers).unwrap();
            shares = Some(hybrid.shares().clone());
            Box::new(hybrid)
        });
    let (sender, answers) = channel();
    let sink = Sink::values(move |answer| _ = sender.send(answer.unwrap()));
    let running = std::thread::spawn(move || service.run(sink));
    let ask = |text: &String| assert!(asker.ask(Ok(Ok(Query::new("q", text.as_str())))));
    let mut planner = Planner::default();
    let mut searcher = Searcher::new();
    let mut check = |text: &String| {
        let answer = answers.recv_timeout(Duration::from_secs(60)).unwrap();
        let plan = planner.plan(&snapshot, Wanted::default(), text).unwrap();
        let found: Vec<_> = answer
            .hits
            .iter()
            .map(|named| crate::Hit { docid: named.docid, score: named.score })
            .collect();
        assert_eq!((&answer.query.text, &found[..]), (text, searcher.answer(&plan).unwrap()));
    };
    let (before, behind) = queries.split_at(BEFORE);
    before.iter().for_each(ask);
    before.iter().for_each(&mut check);
    let on_devices = || shares.as_ref().unwrap().devices.load(Ordering::Relaxed);
    assert!(on_devices() > 0);
    let (amid, last) = behind.split_at(BEFORE);
    amid.iter().for_each(ask);
    let geometry = Geometry { blocks: 1, threads: 32, shared_bytes: 0 };
    let step = Step { kernel: "trap", geometry, arguments: vec![] };
    let _given = give(&mut trap, vec![], vec![step], vec![]).unwrap();
    last.iter().for_each(ask);
    amid.iter().chain(last).for_each(&mut check);
    drop(asker);
    let report = running.join().unwrap().unwrap();
    assert_eq!(report.queries, 3 * BEFORE as u64);
    assert_eq!(lost.load(Ordering::SeqCst), 1, "one warning");
    assert!(on_devices() < 3 * BEFORE as u64);
}
