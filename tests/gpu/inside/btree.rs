//! A device indexes as the CPU does. The kernels of `btree.cu`, emulated and on a device, against
//! their twin: the same terms in the same order with the same postings, to the byte.

mod device;

use crate::inside_tests::emulation::machine::{EmulatedArrays, Manner, kernels};
use crate::inside_tests::emulation::{Emulator, Random};
use millrace::dictionary::closed::ClosedTerms;
use millrace::gpu::floor::machine::DeviceWork;
use millrace::gpu::floor::steps::Step;
use millrace::papers::wei11::btree::run::BTreeRun;
use millrace::papers::wei11::gpu::btree::block::{Most, TokenBlock};
use millrace::papers::wei11::gpu::btree::room::{COUNTERS, ComingTokens, TreeRoom, TreeUsage};
use millrace::papers::wei11::gpu::btree::terms::{TermColumns, TermSums, ranges, starts};
use millrace::papers::wei11::gpu::btree::trees::{TreeTicket, Trees};
use millrace::papers::wei11::gpu::btree::{KERNELS, TreeArray, TreeTuning};
use millrace::papers::wei11::stream::{StreamWriter, TokenGroup};
use millrace::text::trie_collection::TRIE_COLLECTIONS;
use std::ops::Range;
use std::sync::Arc;

/// A term of a run: collection, suffix, df, last docid, postings as bytes.
type Entry = (u16, Vec<u8>, Vec<u8>);

/// What a run is made of.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pieces: u32,
    /// Tokens of a piece.
    tokens: u32,
    /// Collections that have some.
    collections: u32,
    /// Different suffixes of each.
    suffixes: u32,
    /// The most documents between tokens.
    gap: u32,
    seed: u64,
}

/// A suffix: short ones, ones that agree in the first four bytes or in the first eleven, long ones,
/// and bytes of other scripts.
fn suffix(number: u32) -> Vec<u8> {
    let digits = |n: u32| format!("{n:x}").into_bytes();
    match number % 8 {
        0 if number == 0 => Vec::new(),
        1 | 5 => digits(number),
        2 => [&b"same"[..], &digits(number)].concat(),
        3 => [&b"seven more b"[..], &digits(number / 8)].concat(),
        4 => [&vec![b'z'; 240][..], &digits(number)].concat(),
        6 => "\u{e9}\u{10348}\u{fb}".repeat((number % 30 + 1) as usize).into_bytes(),
        _ => [&digits(number % 7)[..], b"x", &digits(number)].concat(),
    }
}

/// The pieces of a run, each with the docid of its first document.
fn pieces(shape: &Shape) -> Vec<(TokenGroup, u32)> {
    let mut random = Random(shape.seed);
    let mut first = 0;
    (0..shape.pieces)
        .map(|_| {
            let mut tokens: Vec<(u16, u32, u32)> = Vec::new();
            let mut document = 0;
            for _ in 0..random.below(shape.tokens + 1) {
                document += random.below(shape.gap + 1);
                // Some collections and some suffixes have most tokens.
                let collection =
                    random.below(shape.collections).min(random.below(shape.collections));
                let suffix = random.below(shape.suffixes).min(random.below(shape.suffixes));
                tokens.push(((collection * 37 % TRIE_COLLECTIONS as u32) as u16, document, suffix));
            }
            tokens.sort_by_key(|&(collection, document, _)| (collection, document));
            let mut writer = StreamWriter::new(0, 0);
            for &(collection, document, number) in &tokens {
                writer.token(collection, document, &suffix(number));
            }
            let piece = (writer.finish(Arc::default(), Arc::default()), first);
            first += document + 1;
            piece
        })
        .collect()
}

/// The twin.
fn on_cpu(blocks: &[&[(TokenGroup, u32)]]) -> (Vec<Entry>, u64) {
    let mut run = BTreeRun::default();
    for block in blocks {
        run.append(&block.iter().map(|(group, first)| (group, *first)).collect::<Vec<_>>());
    }
    let postings = run.postings_len();
    let mut list = Vec::new();
    let mut entries = Vec::new();
    for mut share in run.shares(u64::MAX) {
        while share.advance(&mut list).unwrap() {
            let (collection, suffix) = share.term();
            entries.push((collection, suffix.to_vec(), list.clone()));
        }
    }
    (entries, postings)
}

/// Terms of a range of collections as they came back.
fn entries(columns: TermColumns, first: usize, sums: &[TermSums]) -> Vec<Entry> {
    let mut terms = columns;
    let mut entries = Vec::new();
    for (collection, sum) in (first as u16..).zip(sums) {
        for term in terms.by_ref().take(sum[0] as usize) {
            let mut at = 0;
            let mut df = 0;
            let mut next = 0;
            while let Some((gap, _)) = millrace::codec::folded::get(term.list, &mut at) {
                next += gap + 1;
                df += 1;
            }
            assert_eq!((df, next), (term.df, term.last + 1), "df and last docid");
            entries.push((collection, term.suffix.to_vec(), term.list.to_vec()));
        }
    }
    assert!(terms.next().is_none());
    entries
}

fn compare(shape: &Shape, found: &[Entry], expected: &[Entry]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{shape:?}");
    }
    assert_eq!(found.len(), expected.len(), "{shape:?}");
}

/// The shapes that kernels and twin are compared on, and pieces of a block.
const SHAPES: [(Shape, usize); 7] = [
    // Nothing, and next to nothing.
    (Shape { pieces: 2, tokens: 0, collections: 1, suffixes: 1, gap: 0, seed: 1 }, 1),
    (Shape { pieces: 3, tokens: 2, collections: 2, suffixes: 2, gap: 1, seed: 2 }, 2),
    // One document, many terms, many blocks.
    (Shape { pieces: 6, tokens: 700, collections: 5, suffixes: 300, gap: 0, seed: 3 }, 2),
    // Many documents; gaps of several bytes in the stream.
    (Shape { pieces: 3, tokens: 600, collections: 3, suffixes: 40, gap: 900, seed: 4 }, 1),
    // All in one collection, long lists.
    (Shape { pieces: 2, tokens: 9000, collections: 1, suffixes: 9, gap: 2, seed: 5 }, 1),
    // All in one collection, a tree of four levels.
    (Shape { pieces: 2, tokens: 16_000, collections: 1, suffixes: 12_000, gap: 1, seed: 6 }, 2),
    // Many collections.
    (Shape { pieces: 4, tokens: 3000, collections: 900, suffixes: 60, gap: 3, seed: 7 }, 3),
];

fn values<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// What a device brings, once it is there.
fn done(given: TreeTicket) -> Vec<u8> {
    let given = given.expect("a buffer is free");
    while !given.is_done().unwrap() {
        std::thread::yield_now();
    }
    given.bytes().to_vec()
}

/// Trees on any device, and what their kernels were compiled with.
struct Indexer {
    trees: Trees,
    tuning: TreeTuning,
}

impl Indexer {
    fn insert(&mut self, pieces: &[(TokenGroup, u32)]) {
        let pieces: Vec<(&TokenGroup, u32)> = pieces.iter().map(|(g, first)| (g, *first)).collect();
        done(self.trees.insert(&pieces, &TokenBlock::of(&pieces)).unwrap());
    }

    fn read<T: bytemuck::AnyBitPattern>(&mut self, array: TreeArray, part: Range<u64>) -> Vec<T> {
        let down = vec![(array, part)];
        let work = DeviceWork { up: vec![], steps: vec![], down };
        values(&done(self.trees.machine().give(&work).unwrap()))
    }

    fn write(&mut self, array: TreeArray, at: u64, bytes: &[u8]) {
        let up = vec![(array, at, vec![bytes])];
        let work = DeviceWork { up, steps: vec![], down: vec![] };
        done(self.trees.machine().give(&work).unwrap());
    }

    fn run(&mut self, step: Step<TreeArray>) {
        let work = DeviceWork { up: vec![], steps: vec![step], down: vec![] };
        done(self.trees.machine().give(&work).unwrap());
    }

    fn usage(&mut self) -> TreeUsage {
        let counters = self.read::<u64>(TreeArray::Counters, 0..8 * COUNTERS as u64);
        TreeUsage::from(<[u64; COUNTERS]>::try_from(counters).unwrap())
    }

    /// The terms, by ranges of collections that have at most so much.
    fn collect(&mut self, most: TermSums) -> Vec<Entry> {
        let all = 0..TRIE_COLLECTIONS as u32;
        self.run(self.tuning.measure(all));
        let sums: Vec<TermSums> = self.read(TreeArray::Sums, 0..24 * TRIE_COLLECTIONS as u64);
        let mut found = Vec::new();
        for range in ranges(&sums, most) {
            let (starts, all) = starts(&sums[range.clone()]);
            self.write(TreeArray::Starts, 0, bytemuck::cast_slice(&starts));
            self.run(self.tuning.collect(range.start as u32..range.end as u32));
            let part = |array: TreeArray| (array, 0..array.of_sums(all));
            let [dfs, lasts, list_bytes] =
                [TreeArray::Dfs, TreeArray::Lasts, TreeArray::ListBytes].map(part);
            let [lengths, suffixes, lists] =
                [TreeArray::Lengths, TreeArray::Suffixes, TreeArray::Lists].map(part);
            let columns = TermColumns {
                lengths: &self.read(lengths.0, lengths.1),
                dfs: &self.read(dfs.0, dfs.1),
                lasts: &self.read(lasts.0, lasts.1),
                list_bytes: &self.read(list_bytes.0, list_bytes.1),
                suffixes: &self.read(suffixes.0, suffixes.1),
                lists: &self.read(lists.0, lists.1),
            };
            found.extend(entries(columns, range.start, &sums[range.clone()]));
        }
        found
    }
}

const ROOM: TreeRoom =
    TreeRoom { nodes: 4000, string_words: 60_000, records: 20_000, slice_units: 40_000 };

/// An emulated device, for blocks of this many pieces, with exactly the room for the largest.
fn emulated(
    emulator: &Arc<Emulator>,
    (tuning, room): (TreeTuning, TreeRoom),
    (pieces, pieces_of_block): (&[(TokenGroup, u32)], usize),
    seed: u64,
) -> Indexer {
    let blocks = pieces.chunks(pieces_of_block).map(|pieces| {
        let pieces: Vec<(&TokenGroup, u32)> = pieces.iter().map(|(g, first)| (g, *first)).collect();
        TokenBlock::of(&pieces)
    });
    let most = blocks.fold(Most { bytes: 0, segments: 0 }, |most, block| Most {
        bytes: most.bytes.max(block.input_bytes as usize),
        segments: most.segments.max(block.segments_len() as usize),
    });
    let run = kernels(emulator.clone(), tuning.blocks, seed);
    let machine = EmulatedArrays::new(Manner { delay: 1, ..Manner::default() }, run);
    let trees = Trees::new(Box::new(machine), tuning, room, most).unwrap();
    Indexer { trees, tuning }
}

fn compiled(tuning: &TreeTuning) -> Option<Arc<Emulator>> {
    let source = tuning.source();
    Emulator::compile(source.text, &KERNELS, &source.sizes).map(Arc::new)
}

/// Indexes pieces of a shape, asks before each block whether there is room, and compares.
fn twin(
    indexer: &mut Indexer,
    shape: &Shape,
    (pieces, pieces_of_block): (&[(TokenGroup, u32)], usize),
) {
    let blocks: Vec<_> = pieces.chunks(pieces_of_block).collect();
    let (expected, postings) = on_cpu(&blocks);
    for block in &blocks {
        let coming = ComingTokens {
            tokens: block.iter().map(|(group, _)| u64::from(group.tokens)).sum(),
            bytes: block.iter().map(|(group, _)| group.bytes.len() as u64).sum(),
            documents: pieces.last().unwrap().1 + shape.gap * shape.tokens + 1,
        };
        let most = indexer.usage().with(&coming, indexer.tuning.all_warps());
        indexer.insert(block);
        let usage = indexer.usage();
        assert_eq!(usage.full, 0, "{shape:?}");
        assert!(most.holds(usage.taken), "{shape:?}: {most:?} does not hold {:?}", usage.taken);
    }
    let usage = indexer.usage();
    assert_eq!((usage.terms, usage.postings), (expected.len() as u64, postings), "{shape:?}");
    let most = if shape.seed.is_multiple_of(2) { [100, 4000, 4000] } else { [u64::MAX >> 1; 3] };
    compare(shape, &indexer.collect(most), &expected);
}

#[test]
fn twin_emulated_kernels_index_as_the_cpu() {
    let tuning = TreeTuning { blocks: 2, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    for (shape, pieces_of_block) in &SHAPES {
        let pieces = pieces(shape);
        let blocks = (&pieces[..], *pieces_of_block);
        twin(&mut emulated(&emulator, (tuning, ROOM), blocks, 0), shape, blocks);
    }
}

#[test]
fn twin_emulated_warps_of_a_block_index_as_the_cpu() {
    let tuning = TreeTuning { warps: 3, slots: 3, blocks: 2, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    for (seed, (shape, pieces_of_block)) in (1..).zip(&SHAPES) {
        // The test above has the high trees and long lists, which take minutes here.
        let tokens = shape.tokens.min(700);
        let shape = Shape { seed: shape.seed + 100, tokens, ..*shape };
        let pieces = pieces(&shape);
        let blocks = (&pieces[..], *pieces_of_block);
        twin(&mut emulated(&emulator, (tuning, ROOM), blocks, seed), &shape, blocks);
    }
}

/// A list of very many slices: their level stays where slices stop growing, however high it is.
#[test]
fn the_level_of_slices_never_wraps() {
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    let piece = |documents: u32| {
        let mut writer = StreamWriter::new(0, 0);
        (0..documents).for_each(|document| writer.token(7, document, b"term"));
        writer.finish(Arc::default(), Arc::default())
    };
    let two = [(piece(2), 0)];
    let one = [(piece(1), 2)];
    let mut device = emulated(&emulator, (tuning, ROOM), (&two, 1), 0);
    device.insert(&two);
    // The last slice is full and of the greatest level that the record can hold, which no counting
    // from 0 reaches in a test: word 6 is the level above the place.
    let full = 4096 - 4;
    device.write(TreeArray::Records, 24, &(0xffff_u32 << 16 | full as u32).to_le_bytes());
    device.insert(&one);
    let after = device.read::<u32>(TreeArray::Records, 24..28)[0];
    assert_eq!((after >> 16, after & 0xffff), (16, 1), "level and place of the new slice");
}

/// An arena that is full is reported, and nothing is written outside: the sanitizer watches.
#[test]
fn a_full_arena_is_told() {
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    let pieces = pieces(&SHAPES[2].0);
    for (arena, room) in [
        TreeRoom { nodes: 20, ..ROOM },
        TreeRoom { string_words: 300, ..ROOM },
        TreeRoom { records: 100, ..ROOM },
        TreeRoom { slice_units: 1500, ..ROOM },
    ]
    .into_iter()
    .enumerate()
    {
        let mut device = emulated(&emulator, (tuning, room), (&pieces, pieces.len()), 0);
        device.insert(&pieces);
        assert_eq!(device.usage().full, 1 << (16 * arena), "arena {arena}");
    }
}
