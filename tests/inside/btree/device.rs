//! The kernels on a device. Without one these tests print that they were skipped, unless
//! `MILLRACE_REQUIRE_GPU` is set. They are small enough for `compute-sanitizer`.

use super::{Entry, SHAPES, Shape, compare, entries, on_cpu, pieces};
use crate::inside_tests::gpu::{device, wait};
use millrace::dictionary::stream::TokenGroup;
use millrace::gpu::btree::block::TokenBlock;
use millrace::gpu::btree::room::{COUNTERS, Coming, TreeRoom, Usage};
use millrace::gpu::btree::staged::{Most, Staged};
use millrace::gpu::btree::terms::{Sums, TermColumns, ranges, starts};
use millrace::gpu::btree::{Kernels, Output, TreeTuning, Trees};
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::error::GpuWork;
use millrace::gpu::floor::pinned::{Pinned, PinnedPool, Way};
use millrace::text::trie_collection::TRIE_COLLECTIONS;

/// A device with everything that a run takes.
struct Indexer<'a> {
    device: &'a Device,
    kernels: Kernels,
    trees: Trees,
    staged: Staged,
    up: Pinned,
    down: Pinned,
}

const PINNED_BYTES: usize = 8 << 20;

/// The first values of a buffer on the device.
macro_rules! fetch {
    ($indexer:expr, $from:expr, $len:expr, $value:ty) => {{
        let part = $from.slice().slice(0..$len.max(1));
        wait(
            &$indexer
                .device
                .copy_down($indexer.device.compute(), &part, &mut $indexer.down, 0)
                .unwrap(),
        )
        .unwrap();
        let bytes = &$indexer.down.bytes().unwrap()[..$len * size_of::<$value>()];
        bytemuck::cast_slice::<u8, $value>(bytes).to_vec()
    }};
}

impl Indexer<'_> {
    fn insert(&mut self, pieces: &[(TokenGroup, u32)]) {
        let pieces: Vec<(&TokenGroup, u32)> = pieces.iter().map(|(g, first)| (g, *first)).collect();
        let block = TokenBlock::of(&pieces);
        Staged::fill(&block, &pieces, &mut self.up).unwrap();
        let uploaded = self.staged.upload(self.device, &block, &self.up).unwrap();
        self.kernels.insert(self.device, &mut self.trees, &mut self.staged).unwrap();
        wait(&uploaded).unwrap();
    }

    fn usage(&mut self) -> Usage {
        let words: [u64; COUNTERS] =
            fetch!(self, self.trees.counters(), COUNTERS, u64).try_into().unwrap();
        Usage::from(words)
    }

    fn collect(&mut self, most: Sums) -> Vec<Entry> {
        let device = self.device;
        let mut buffer = device.alloc::<u64>("sums", TRIE_COLLECTIONS * 3).unwrap();
        let all = 0..TRIE_COLLECTIONS as u32;
        self.kernels.measure(device, &self.trees, all, &mut buffer).unwrap();
        let sums = fetch!(self, buffer, TRIE_COLLECTIONS * 3, u64);
        let sums: Vec<Sums> = sums.chunks(3).map(|sums| [sums[0], sums[1], sums[2]]).collect();
        let mut found = Vec::new();
        for range in ranges(&sums, most) {
            let (starts, all) = starts(&sums[range.clone()]);
            let bytes: &[u8] = bytemuck::cast_slice(&starts);
            self.up.bytes_mut().unwrap()[..bytes.len()].copy_from_slice(bytes);
            let copied = device.copy_up::<u64>(
                device.compute(),
                &self.up,
                0..bytes.len(),
                buffer.slice_mut(),
            );
            let mut output = Output::new(device, all).unwrap();
            let here = range.start as u32..range.end as u32;
            let collected =
                self.kernels.collect(device, &self.trees, here, (&buffer, all), &mut output);
            wait(&device.ticket(device.compute(), GpuWork::Kernel(collected.unwrap())).unwrap())
                .unwrap();
            wait(&copied.unwrap()).unwrap();
            let [terms, suffix_bytes, list_bytes] = all.map(|n| n as usize);
            let columns = TermColumns {
                lengths: &fetch!(self, output.lengths, terms, u8),
                dfs: &fetch!(self, output.dfs, terms, u32),
                lasts: &fetch!(self, output.lasts, terms, u32),
                list_bytes: &fetch!(self, output.list_bytes, terms, u32),
                suffixes: &fetch!(self, output.suffixes, suffix_bytes, u8),
                lists: &fetch!(self, output.lists, list_bytes, u8),
            };
            found.extend(entries(columns, range.start, &sums[range.clone()]));
        }
        found
    }
}

/// Indexes all shapes one after the other in the same trees, which are cleared between them.
fn twin(tuning: TreeTuning) {
    let Some((device, toolchain)) = device() else { return };
    let most = Most { bytes: 2 << 20, segments: 1 << 16 };
    assert!(most.pinned_bytes() <= PINNED_BYTES);
    let mut up = PinnedPool::new(&device, Way::Upload, 1, PINNED_BYTES).unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 1, PINNED_BYTES).unwrap();
    let room = TreeRoom::of_bytes(256 << 20);
    let mut indexer = Indexer {
        device: &device,
        kernels: Kernels::load(&toolchain, &device, tuning).unwrap(),
        trees: Trees::new(&device, room, &tuning).unwrap(),
        staged: Staged::new(&device, &most).unwrap(),
        up: up.take().unwrap(),
        down: down.take().unwrap(),
    };
    for (shape, pieces_of_block) in SHAPES {
        let pieces = pieces(&shape);
        let blocks: Vec<_> = pieces.chunks(pieces_of_block).collect();
        let (expected, postings) = on_cpu(&blocks);
        for block in &blocks {
            let coming = Coming {
                tokens: block.iter().map(|(group, _)| u64::from(group.tokens)).sum(),
                bytes: block.iter().map(|(group, _)| group.bytes.len() as u64).sum(),
                documents: pieces.last().map_or(0, |p| p.1) + shape.gap * shape.tokens + 1,
            };
            let most = indexer.usage().with(&coming, tuning.all_warps());
            indexer.insert(block);
            let taken = indexer.usage().taken;
            assert!(most.holds(taken), "{shape:?}: {most:?} does not hold {taken:?}");
        }
        let usage = indexer.usage();
        let counted = (usage.full, usage.terms, usage.postings);
        assert_eq!(counted, (0, expected.len() as u64, postings), "{shape:?}");
        for most in [[100, 4000, 4000], [u64::MAX >> 1; 3]] {
            compare(&shape, &indexer.collect(most), &expected);
        }
        indexer.trees.clear(&device).unwrap();
    }
}

#[test]
fn twin_device_indexes_as_the_cpu() {
    twin(TreeTuning { blocks: 200, ..TreeTuning::default() });
}

#[test]
fn twin_warps_of_a_block_index_as_the_cpu() {
    twin(TreeTuning { warps: 4, slots: 5, blocks_per_sm: 4, blocks: 20, ..TreeTuning::default() });
}

/// Arenas of more than 4 GiB each, used behind that: the counters say that all below is taken.
#[test]
fn twin_arenas_beyond_4_gib_on_a_device() {
    let Some((device, toolchain)) = device() else { return };
    let below = 4 << 30;
    let small =
        TreeRoom { nodes: 4000, string_words: 60_000, records: 20_000, slice_units: 40_000 };
    let unit = [512, 8, 32, 8];
    let behind = |least: TreeRoom| TreeRoom {
        nodes: below / unit[0] + least.nodes,
        string_words: below / unit[1] + least.string_words,
        records: below / unit[2] + least.records,
        slice_units: below / unit[3] + least.slice_units,
    };
    let room = behind(small);
    if device.memory().left() < room.bytes() + (1 << 30) {
        eprintln!("skipped: {} of {} bytes are free", device.memory().left(), room.bytes());
        return;
    }
    let tuning = TreeTuning { blocks: 4, ..TreeTuning::default() };
    let most = Most { bytes: 2 << 20, segments: 1 << 16 };
    let mut up = PinnedPool::new(&device, Way::Upload, 1, PINNED_BYTES).unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 1, PINNED_BYTES).unwrap();
    let mut indexer = Indexer {
        device: &device,
        kernels: Kernels::load(&toolchain, &device, tuning).unwrap(),
        trees: Trees::new(&device, room, &tuning).unwrap(),
        staged: Staged::new(&device, &most).unwrap(),
        up: up.take().unwrap(),
        down: down.take().unwrap(),
    };
    let taken = behind(TreeRoom::default());
    let counters = [taken.nodes, taken.string_words, taken.records, taken.slice_units];
    let bytes: &[u8] = bytemuck::cast_slice(&counters);
    indexer.up.bytes_mut().unwrap()[..bytes.len()].copy_from_slice(bytes);
    let to = indexer.trees.counters_mut().slice_mut();
    let copied = device.copy_up::<u64>(device.compute(), &indexer.up, 0..bytes.len(), to);
    wait(&copied.unwrap()).unwrap();
    let (shape, _) = &SHAPES[2];
    let pieces = pieces(shape);
    indexer.insert(&pieces);
    let usage = indexer.usage();
    assert_eq!(usage.full, 0);
    assert!(usage.taken.holds(taken) && usage.terms > 0);
    compare(shape, &indexer.collect([u64::MAX >> 1; 3]), &on_cpu(&[&pieces]).0);
}

/// An arena that is full is told, and the next run is right.
#[test]
fn a_full_arena_is_told_on_a_device() {
    let Some((device, toolchain)) = device() else { return };
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let most = Most { bytes: 2 << 20, segments: 1 << 16 };
    let mut up = PinnedPool::new(&device, Way::Upload, 1, PINNED_BYTES).unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 1, PINNED_BYTES).unwrap();
    let room = TreeRoom { nodes: 100, string_words: 60_000, records: 20_000, slice_units: 40_000 };
    let mut indexer = Indexer {
        device: &device,
        kernels: Kernels::load(&toolchain, &device, tuning).unwrap(),
        trees: Trees::new(&device, room, &tuning).unwrap(),
        staged: Staged::new(&device, &most).unwrap(),
        up: up.take().unwrap(),
        down: down.take().unwrap(),
    };
    let deep = pieces(&SHAPES[5].0);
    indexer.insert(&deep);
    assert_eq!(indexer.usage().full, 1);
    indexer.trees.clear(&device).unwrap();
    let shape: &Shape = &SHAPES[1].0;
    let pieces = pieces(shape);
    indexer.insert(&pieces);
    compare(shape, &indexer.collect([u64::MAX >> 1; 3]), &on_cpu(&[&pieces]).0);
}
