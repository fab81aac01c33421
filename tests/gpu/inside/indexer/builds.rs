//! A build whose tokens go to emulated devices makes the index of `fast`, to the byte, whatever
//! process encodes what they have found.

use super::emulated::{emulated, room_for};
use crate::inside_tests::emulation::machine::Manner;
use crate::inside_tests::util::*;
use millrace::papers::wei11::Wei11;
use millrace::papers::wei11::gpu::btree::block::Most;
use millrace::papers::wei11::gpu::indexer::GpuIndexer;
use millrace::papers::wei11::indexer::TokenIndexer;
use millrace::{BuildOptions, Indexer, build};
use std::process::Command;

/// What the test says when it runs itself again, with runs that end early.
const LIMIT: &str = "MILLRACE_RUN_LIMIT";

/// Its device is full within a run, and its shares are small.
fn indexer() -> Box<dyn TokenIndexer> {
    let most = Most { bytes: 1 << 16, segments: 1 << 14 };
    let manner = Manner { delay: 2, ..Manner::default() };
    let mut indexer = GpuIndexer::new(emulated((room_for(12_000), most, 1 << 12), manner));
    indexer.share_bytes = 1500;
    Box::new(indexer)
}

static ON_DEVICES: Wei11 = Wei11 { make: Some(indexer) };

#[test]
fn builds_are_those_of_fast_whoever_encodes() {
    let scratch = Scratch::new();
    // Each file ends a piece.
    let input =
        |seed| scratch.write(format!("{seed}.jsonl"), Collection::new(seed, 250, 30).jsonl());
    let inputs: Vec<_> = (0..6).map(input).collect();
    let of = |name: &str, workers| {
        let mut options = BuildOptions::of_paths(scratch.path(name), &inputs);
        (options.workers, options.merge, options.indexer) = (workers, false, Indexer::Fast);
        options
    };
    let runs = build(of("fast", 1)).unwrap().runs;
    // One owner for all workers, and one for each.
    for (workers, owners) in [(1, 1), (2, 1), (3, 1), (5, 1), (3, 3)] {
        let name = format!("{workers}-{owners}");
        let mut options = of(&name, workers);
        options.indexer = Indexer::Handed(ON_DEVICES.handed());
        options.pipeline.cpu_indexers = Some(owners);
        options.pipeline.parse_block = 100_000;
        let report = build(options).unwrap();
        assert_same_index(&scratch.path("fast"), &scratch.path(&name), &[]);
        assert_eq!(report.indexers.len(), owners);
    }
    if std::env::var_os(LIMIT).is_some() {
        assert!(runs > 2, "{runs} runs");
        return;
    }
    assert_eq!(runs, 1);
    let name = "inside_tests::indexer::builds::builds_are_those_of_fast_whoever_encodes";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(LIMIT, "100000")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}
