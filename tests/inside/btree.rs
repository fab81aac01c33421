//! Does a device index as the CPU does? The kernels of `btree.cu`, emulated and on a device,
//! against their twin: the same terms in the same order with the same postings, to the byte.

mod device;

use crate::inside_tests::emulation::{Arg, Emulator, Launch, Random};
use millrace::dictionary::btree::run::{BTreeRun, WalkedRun};
use millrace::dictionary::closed::{Advance, ClosedTerms};
use millrace::dictionary::stream::{StreamWriter, TokenGroup};
use millrace::gpu::btree::TreeTuning;
use millrace::gpu::btree::block::TokenBlock;
use millrace::gpu::btree::room::{COUNTERS, Coming, TreeRoom, Usage};
use millrace::gpu::btree::terms::{Sums, TermColumns, ranges, starts};
use millrace::text::trie_collection::TRIE_COLLECTIONS;
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
    let (mut run, mut list, mut entries) = (WalkedRun::from(run), Vec::new(), Vec::new());
    while run.advance(&mut list).unwrap() == Advance::Term {
        let (collection, suffix) = run.term();
        entries.push((collection, suffix.to_vec(), list.clone()));
    }
    (entries, postings)
}

/// Terms of a range of collections as they came back.
fn entries(columns: TermColumns, first: usize, sums: &[Sums]) -> Vec<Entry> {
    let mut terms = columns;
    let mut entries = Vec::new();
    for (collection, sum) in (first as u16..).zip(sums) {
        for term in terms.by_ref().take(sum[0] as usize) {
            let (mut at, mut df, mut next) = (0, 0, 0);
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

fn words(numbers: &[[u32; 4]]) -> Vec<u8> {
    numbers.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// The device's memory, as bytes; what nobody wrote is no zero.
struct Memory {
    roots: Vec<u8>,
    nodes: Vec<u8>,
    strings: Vec<u8>,
    records: Vec<u8>,
    slices: Vec<u8>,
    counters: Vec<u8>,
    spares: Vec<u8>,
}

struct Emulated<'a> {
    emulator: &'a Emulator,
    tuning: TreeTuning,
    seed: u64,
    memory: Memory,
    room: TreeRoom,
}

impl<'a> Emulated<'a> {
    fn new(emulator: &'a Emulator, tuning: TreeTuning, room: TreeRoom, seed: u64) -> Self {
        let garbage = |units: u64, bytes: usize| vec![0xa5; units as usize * bytes];
        let memory = Memory {
            roots: vec![0xff; TRIE_COLLECTIONS * 4],
            nodes: garbage(room.nodes, 512),
            strings: garbage(room.string_words, 8),
            records: garbage(room.records, 32),
            slices: garbage(room.slice_units, 8),
            counters: vec![0; COUNTERS * 8],
            spares: vec![0; tuning.all_warps() as usize * 32],
        };
        Self { emulator, tuning, seed, memory, room }
    }

    fn launch(&self, kernel: &'a str) -> Launch<'a> {
        let shared_bytes = match kernel {
            "btree_insert" => self.tuning.insert_shared_bytes(),
            "btree_measure" | "btree_collect" => self.tuning.walk_shared_bytes(),
            _ => 0,
        };
        let (blocks, threads) = (self.tuning.blocks, 32 * self.tuning.warps);
        Launch { kernel, blocks, threads, shared_bytes, seed: self.seed }
    }

    fn usage(&self) -> Usage {
        let counters: [u64; COUNTERS] = numbers(&self.memory.counters).try_into().unwrap();
        Usage::from(counters)
    }

    fn insert(&mut self, pieces: &[(TokenGroup, u32)]) -> Result<(), String> {
        let pieces: Vec<(&TokenGroup, u32)> =
            pieces.iter().map(|(group, first)| (group, *first)).collect();
        let block = TokenBlock::of(&pieces);
        let mut input: Vec<u8> =
            pieces.iter().flat_map(|(group, _)| group.bytes.iter().copied()).collect();
        let mut streams = vec![0xa5; block.stream_bytes as usize];
        let (mut segments, mut work) = (words(&block.segments), words(&block.work));
        let regroup = Launch { threads: 64, ..self.launch("btree_regroup") };
        let memory = &mut self.memory;
        self.emulator.launch(
            regroup,
            &mut [&mut input, &mut segments, &mut streams, &mut memory.counters],
            &[
                Arg::Buffer(0),
                Arg::Buffer(1),
                Arg::U32(block.segments_len()),
                Arg::Buffer(2),
                Arg::Buffer(3),
            ],
        )?;
        let launch = self.launch("btree_insert");
        let memory = &mut self.memory;
        let mut args: Vec<Arg> = [0, 1].map(Arg::Buffer).into();
        args.push(Arg::U32(block.work.len() as u32));
        args.extend((2..10).map(Arg::Buffer));
        let units =
            [self.room.nodes, self.room.string_words, self.room.records, self.room.slice_units];
        args.extend(units.map(|units| Arg::U32(units as u32)));
        self.emulator.launch(
            launch,
            &mut [
                &mut streams,
                &mut work,
                &mut segments,
                &mut memory.roots,
                &mut memory.nodes,
                &mut memory.strings,
                &mut memory.records,
                &mut memory.slices,
                &mut memory.counters,
                &mut memory.spares,
            ],
            &args,
        )
    }

    fn sums(&mut self) -> Result<Vec<Sums>, String> {
        let mut sums = vec![0xa5; TRIE_COLLECTIONS * 24];
        let launch = self.launch("btree_measure");
        let memory = &mut self.memory;
        let mut args: Vec<Arg> = (0..4).map(Arg::Buffer).collect();
        args.extend([Arg::U32(0), Arg::U32(TRIE_COLLECTIONS as u32), Arg::Buffer(4)]);
        self.emulator.launch(
            launch,
            &mut [
                &mut memory.roots,
                &mut memory.nodes,
                &mut memory.strings,
                &mut memory.records,
                &mut sums,
            ],
            &args,
        )?;
        Ok(numbers(&sums).chunks(3).map(|sums| [sums[0], sums[1], sums[2]]).collect())
    }

    fn collect(&mut self, most: Sums) -> Result<Vec<Entry>, String> {
        let sums = self.sums()?;
        let mut found = Vec::new();
        for range in ranges(&sums, most) {
            let (starts, all) = starts(&sums[range.clone()]);
            let mut starts: Vec<u8> =
                starts.iter().flatten().flat_map(|n| n.to_le_bytes()).collect();
            let bytes = |units: u64, size: usize| vec![0xa5; units as usize * size];
            let (mut lengths, mut suffixes, mut lists) =
                (bytes(all[0], 1), bytes(all[1], 1), bytes(all[2], 1));
            let (mut dfs, mut lasts, mut list_bytes) =
                (bytes(all[0], 4), bytes(all[0], 4), bytes(all[0], 4));
            let launch = self.launch("btree_collect");
            let memory = &mut self.memory;
            let mut args: Vec<Arg> = (0..5).map(Arg::Buffer).collect();
            args.extend([range.start as u32, range.len() as u32].map(Arg::U32));
            args.extend((5..12).map(Arg::Buffer));
            self.emulator.launch(
                launch,
                &mut [
                    &mut memory.roots,
                    &mut memory.nodes,
                    &mut memory.strings,
                    &mut memory.records,
                    &mut memory.slices,
                    &mut starts,
                    &mut lengths,
                    &mut dfs,
                    &mut lasts,
                    &mut list_bytes,
                    &mut suffixes,
                    &mut lists,
                ],
                &args,
            )?;
            let (dfs, lasts, list_bytes) =
                (words_of(&dfs), words_of(&lasts), words_of(&list_bytes));
            let columns = TermColumns {
                lengths: &lengths,
                dfs: &dfs,
                lasts: &lasts,
                list_bytes: &list_bytes,
                suffixes: &suffixes,
                lists: &lists,
            };
            found.extend(entries(columns, range.start, &sums[range.clone()]));
        }
        Ok(found)
    }
}

fn compiled(tuning: &TreeTuning) -> Option<Emulator> {
    let source = tuning.source();
    let kernels = ["btree_regroup", "btree_insert", "btree_measure", "btree_collect"];
    Emulator::compile(source.text, &kernels, &source.sizes)
}

/// Indexes a shape, asks before each block whether there is room, and compares.
fn twin(emulator: &Emulator, tuning: TreeTuning, shape: &Shape, pieces_of_block: usize, seed: u64) {
    let pieces = pieces(shape);
    let blocks: Vec<_> = pieces.chunks(pieces_of_block).collect();
    let (expected, postings) = on_cpu(&blocks);
    let room = TreeRoom { nodes: 4000, string_words: 60_000, records: 20_000, slice_units: 40_000 };
    let mut device = Emulated::new(emulator, tuning, room, seed);
    for block in &blocks {
        let coming = Coming {
            tokens: block.iter().map(|(group, _)| u64::from(group.tokens)).sum(),
            bytes: block.iter().map(|(group, _)| group.bytes.len() as u64).sum(),
            documents: pieces.last().unwrap().1 + shape.gap * shape.tokens + 1,
        };
        let most = device.usage().with(&coming, tuning.all_warps());
        device.insert(block).unwrap();
        let usage = device.usage();
        assert_eq!(usage.full, 0, "{shape:?}");
        assert!(most.holds(usage.taken), "{shape:?}: {most:?} does not hold {:?}", usage.taken);
    }
    let usage = device.usage();
    assert_eq!((usage.terms, usage.postings), (expected.len() as u64, postings), "{shape:?}");
    let most = if shape.seed.is_multiple_of(2) { [100, 4000, 4000] } else { [u64::MAX >> 1; 3] };
    compare(shape, &device.collect(most).unwrap(), &expected);
}

#[test]
fn twin_emulated_kernels_index_as_the_cpu() {
    let tuning = TreeTuning { blocks: 2, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    for (shape, pieces_of_block) in &SHAPES {
        twin(&emulator, tuning, shape, *pieces_of_block, 0);
    }
}

#[test]
fn twin_emulated_warps_of_a_block_index_as_the_cpu() {
    let tuning = TreeTuning { warps: 3, slots: 3, blocks: 2, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    for (seed, (shape, pieces_of_block)) in (1..).zip(&SHAPES) {
        let shape = Shape { seed: shape.seed + 100, ..*shape };
        twin(&emulator, tuning, &shape, *pieces_of_block, seed);
    }
}

/// A list of very many slices: their level stays where slices stop growing, however high it is.
#[test]
fn the_level_of_slices_never_wraps() {
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    let room = TreeRoom { nodes: 4000, string_words: 60_000, records: 20_000, slice_units: 40_000 };
    let mut device = Emulated::new(&emulator, tuning, room, 0);
    let piece = |documents: u32| {
        let mut writer = StreamWriter::new(0, 0);
        (0..documents).for_each(|document| writer.token(7, document, b"term"));
        writer.finish(Arc::default(), Arc::default())
    };
    device.insert(&[(piece(2), 0)]).unwrap();
    // The last slice is full and of the greatest level that the record can hold, which no counting
    // from 0 reaches in a test: word 6 is the level above the place.
    let full = 4096 - 4;
    device.memory.records[24..28].copy_from_slice(&(0xffff << 16 | full as u32).to_le_bytes());
    device.insert(&[(piece(1), 2)]).unwrap();
    let after = words_of(&device.memory.records[24..28])[0];
    assert_eq!((after >> 16, after & 0xffff), (16, 1), "level and place of the new slice");
}

/// An arena that is full is told, and nothing is written outside: the sanitizer watches.
#[test]
fn a_full_arena_is_told() {
    let tuning = TreeTuning { blocks: 1, ..TreeTuning::default() };
    let Some(emulator) = compiled(&tuning) else { return };
    let pieces = pieces(&SHAPES[2].0);
    let enough =
        TreeRoom { nodes: 4000, string_words: 60_000, records: 20_000, slice_units: 40_000 };
    for (arena, room) in [
        TreeRoom { nodes: 20, ..enough },
        TreeRoom { string_words: 300, ..enough },
        TreeRoom { records: 100, ..enough },
        TreeRoom { slice_units: 1500, ..enough },
    ]
    .into_iter()
    .enumerate()
    {
        let mut device = Emulated::new(&emulator, tuning, room, 0);
        device.insert(&pieces).unwrap();
        assert_eq!(device.usage().full, 1 << (16 * arena), "arena {arena}");
    }
}
