//! Trees on an emulated device whose kernels are their twins: terms lie in a map.

use crate::inside_tests::emulation::machine::{EmulatedArrays, Manner, Memory, Run};
use millrace::codec::folded;
use millrace::gpu::floor::steps::{Argument, Step};
use millrace::papers::wei11::gpu::btree::block::Most;
use millrace::papers::wei11::gpu::btree::room::{ComingTokens, TreeRoom, TreeUsage};
use millrace::papers::wei11::gpu::btree::terms::TermSums;
use millrace::papers::wei11::gpu::btree::trees::Trees;
use millrace::papers::wei11::gpu::btree::{TreeArray, TreeTuning};
use millrace::papers::wei11::stream::StreamTokens;
use std::collections::BTreeMap;

/// No warp takes anything that it does not use.
pub(super) const TUNING: TreeTuning =
    TreeTuning { warps: 1, slots: 9, blocks_per_sm: 1, blocks: 0, trap_at: None };

/// Trees with so much room, of which this many bytes come back at a time.
pub(super) fn emulated(
    (room, most, stretch_bytes): (TreeRoom, Most, usize),
    manner: Manner,
) -> Trees {
    on(EmulatedArrays::new(manner, twins(room)), (room, most, stretch_bytes))
}

pub(super) fn on(
    machine: EmulatedArrays<TreeArray>,
    (room, most, stretch_bytes): (TreeRoom, Most, usize),
) -> Trees {
    let mut trees = Trees::new(Box::new(machine), TUNING, room, most).unwrap();
    trees.stretch_bytes = stretch_bytes;
    trees
}

type Terms = BTreeMap<(u16, Vec<u8>), Vec<(u32, u32)>>;

/// The kernels' twins, which find no room beyond `room`.
pub(super) fn twins(room: TreeRoom) -> Run<TreeArray> {
    let mut terms = Terms::new();
    Box::new(move |step, memory| match step.kernel {
        "btree_regroup" => {}
        "btree_insert" => insert(step, memory, &mut terms, room),
        "btree_measure" => {
            let mut sums: Vec<TermSums> = values(&memory[&TreeArray::Sums]);
            sums.fill(TermSums::default());
            for ((collection, suffix), postings) in &terms {
                let sum = &mut sums[usize::from(*collection)];
                sum[0] += 1;
                sum[1] += suffix.len() as u64;
                sum[2] += encoded(postings).len() as u64;
            }
            write(memory, TreeArray::Sums, 0, bytemuck::cast_slice(&sums));
        }
        "btree_collect" => collect(memory, &terms),
        kernel => panic!("there is no {kernel}"),
    })
}

fn values<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn write(memory: &mut Memory<TreeArray>, array: TreeArray, at: u64, bytes: &[u8]) {
    memory.get_mut(&array).unwrap()[at as usize..][..bytes.len()].copy_from_slice(bytes);
}

/// As the kernel goes: collection by collection, segment by segment.
fn insert(
    step: &Step<TreeArray>,
    memory: &mut Memory<TreeArray>,
    terms: &mut Terms,
    room: TreeRoom,
) {
    if memory[&TreeArray::Roots].iter().all(|&byte| byte == 0xff) {
        terms.clear();
    }
    let Argument::Number(collections) = step.arguments[2] else { panic!("no number") };
    let input = &memory[&TreeArray::Input];
    let segments = &memory[&TreeArray::Segments];
    let segments: Vec<[u32; 4]> = values(segments);
    let work: Vec<[u32; 4]> = values(&memory[&TreeArray::Work]);
    for &[collection, _, bytes, mut segment] in &work[..collections as usize] {
        let mut done = 0;
        while done < bytes {
            let [from, _, here, first] = segments[segment as usize];
            for (document, suffix) in StreamTokens::new(&input[from as usize..][..here as usize]) {
                let term = (collection as u16, suffix.to_vec());
                let docid = first + document;
                let list = terms.entry(term).or_default();
                match list.last_mut() {
                    Some((last, tf)) if *last == docid => *tf += 1,
                    _ => list.push((docid, 1)),
                }
            }
            done += here;
            segment += 1;
        }
    }
    for (collection, _) in terms.keys() {
        write(memory, TreeArray::Roots, 4 * u64::from(*collection), &[0; 4]);
    }
    let usage = counted(terms);
    assert!(room.holds(usage.taken), "an arena is full: {usage:?}");
    let TreeRoom { nodes, string_words, records, slice_units } = usage.taken;
    let terms = usage.terms;
    let postings = usage.postings;
    let counters =
        [nodes, string_words, records, slice_units, 0, 0, terms, postings, usage.list_bytes];
    write(memory, TreeArray::Counters, 0, bytemuck::cast_slice(&counters));
}

/// What a device counts, with words and slices as few as they can be.
fn counted(terms: &Terms) -> TreeUsage {
    let mut usage = TreeUsage { terms: terms.len() as u64, ..TreeUsage::default() };
    for ((_, suffix), postings) in terms {
        usage.postings += postings.len() as u64;
        usage.taken.string_words += suffix.len().saturating_sub(4).div_ceil(8) as u64;
        usage.list_bytes += (encoded(postings).len() - last_bytes(postings)) as u64;
    }
    usage.taken.records = usage.terms;
    usage.taken.nodes = usage.terms.div_ceil(31);
    usage.taken.slice_units = usage.list_bytes.div_ceil(8);
    usage
}

fn encoded(postings: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut expected = 0;
    for &(docid, tf) in postings {
        folded::put(docid - expected, tf, &mut bytes);
        expected = docid + 1;
    }
    bytes
}

fn last_bytes(postings: &[(u32, u32)]) -> usize {
    let (last, before) = postings.split_last().unwrap();
    let expected = before.last().map_or(0, |&(docid, _)| docid + 1);
    folded::bytes(last.0 - expected, last.1)
}

fn collect(memory: &mut Memory<TreeArray>, terms: &Terms) {
    let starts: Vec<TermSums> = values(&memory[&TreeArray::Starts]);
    let mut place = TermSums::default();
    let mut before = None;
    for ((collection, suffix), postings) in terms {
        if before != Some(*collection) {
            assert_eq!(starts[usize::from(*collection)], place, "collection {collection}");
            before = Some(*collection);
        }
        let list = encoded(postings);
        let last = postings.last().unwrap().0;
        let [df, list_bytes] = [postings.len(), list.len()].map(|n| n as u32);
        for (column, number) in
            [(TreeArray::Dfs, df), (TreeArray::Lasts, last), (TreeArray::ListBytes, list_bytes)]
        {
            write(memory, column, 4 * place[0], &number.to_le_bytes());
        }
        write(memory, TreeArray::Lengths, place[0], &[suffix.len() as u8]);
        write(memory, TreeArray::Suffixes, place[1], suffix);
        write(memory, TreeArray::Lists, place[2], &list);
        let here = [1, suffix.len() as u64, u64::from(list_bytes)];
        place.iter_mut().zip(here).for_each(|(place, here)| *place += here);
    }
}

/// The room for `tokens` tokens of up to 40 bytes each, whatever they are.
pub(super) fn room_for(tokens: u64) -> TreeRoom {
    let coming = ComingTokens { tokens, bytes: 42 * tokens, documents: 1 << 20 };
    TreeUsage::default().with(&coming, 0)
}
