//! The kernels of `btree.cu` on a device. Without one these tests print that they were skipped,
//! unless `MILLRACE_REQUIRE_GPU` is set. They are small enough for `compute-sanitizer`.

use super::{Indexer, ROOM, SHAPES, compare, on_cpu, pieces, twin};
use crate::inside_tests::gpu::device;
use millrace::gpu::floor::arrays::CudaArrays;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::machine::CudaQueue;
use millrace::gpu::floor::modules::Toolchain;
use millrace::papers::wei11::gpu::btree::block::Most;
use millrace::papers::wei11::gpu::btree::room::TreeRoom;
use millrace::papers::wei11::gpu::btree::trees::Trees;
use millrace::papers::wei11::gpu::btree::{TreeArray, TreeTuning};
use std::sync::Arc;

const MOST: Most = Most { bytes: 2 << 20, segments: 1 << 16 };

fn indexer(device: Device, toolchain: &Toolchain, tuning: TreeTuning, room: TreeRoom) -> Indexer {
    let kernels = tuning.load(toolchain, &device).unwrap();
    let on = CudaArrays::new(Arc::new(device), kernels, None).unwrap();
    let machine = CudaQueue::new(on, 1, MOST.pinned_bytes(), 1).unwrap();
    Indexer { trees: Trees::new(Box::new(machine), tuning, room, MOST).unwrap(), tuning }
}

/// Indexes all shapes one after the other in the same trees, which are cleared between them.
fn twins(tuning: TreeTuning) {
    let Some((device, toolchain)) = device() else { return };
    let mut indexer = indexer(device, &toolchain, tuning, TreeRoom::of_bytes(256 << 20));
    for (shape, pieces_of_block) in SHAPES {
        twin(&mut indexer, &shape, (&pieces(&shape), pieces_of_block));
        indexer.trees.clear().unwrap();
    }
}

#[test]
fn twin_device_indexes_as_the_cpu() {
    twins(TreeTuning { blocks: 200, ..TreeTuning::default() });
}

#[test]
fn twin_warps_of_a_block_index_as_the_cpu() {
    twins(TreeTuning { warps: 4, slots: 5, blocks_per_sm: 4, blocks: 20, ..TreeTuning::default() });
}

/// Arenas of more than 4 GiB each, used behind that: the counters say that all below is taken.
#[test]
fn twin_arenas_beyond_4_gib_on_a_device() {
    let Some((device, toolchain)) = device() else { return };
    let below = 4 << 30;
    let unit = [512, 8, 32, 8];
    let behind = |least: TreeRoom| TreeRoom {
        nodes: below / unit[0] + least.nodes,
        string_words: below / unit[1] + least.string_words,
        records: below / unit[2] + least.records,
        slice_units: below / unit[3] + least.slice_units,
    };
    let room = behind(ROOM);
    let left = device.memory().left();
    // Columns hold as much as all arenas but the nodes.
    if left < 2 * room.bytes() {
        eprintln!("skipped: {left} of {} bytes are free", 2 * room.bytes());
        return;
    }
    let tuning = TreeTuning { blocks: 4, ..TreeTuning::default() };
    let mut indexer = indexer(device, &toolchain, tuning, room);
    let taken = behind(TreeRoom::default());
    let counters = [taken.nodes, taken.string_words, taken.records, taken.slice_units];
    indexer.write(TreeArray::Counters, 0, bytemuck::cast_slice(&counters));
    let (shape, _) = &SHAPES[2];
    let pieces = pieces(shape);
    indexer.insert(&pieces);
    let usage = indexer.usage();
    assert_eq!(usage.full, 0);
    assert!(usage.taken.holds(taken) && usage.terms > 0);
    compare(shape, &indexer.collect([u64::MAX >> 1; 3]), &on_cpu(&[&pieces]).0);
}

/// An arena that is full is reported, and the next run is right.
#[test]
fn a_full_arena_is_told_on_a_device() {
    let Some((device, toolchain)) = device() else { return };
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let mut indexer = indexer(device, &toolchain, tuning, TreeRoom { nodes: 100, ..ROOM });
    indexer.insert(&pieces(&SHAPES[5].0));
    assert_eq!(indexer.usage().full, 1);
    indexer.trees.clear().unwrap();
    let (shape, _) = &SHAPES[1];
    let pieces = pieces(shape);
    indexer.insert(&pieces);
    compare(shape, &indexer.collect([u64::MAX >> 1; 3]), &on_cpu(&[&pieces]).0);
}
