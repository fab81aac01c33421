//! `ding09` on a device answers as the CPU does: its kernels, emulated, against their twins.

use crate::inside_tests::emulation::{Arg, Emulator, Launch, Random};
use crate::inside_tests::methods::{
    Collection, List, Postings, Query, ROOM, emulated, emulated_steps, hits,
};
use millrace::index::list::{Form, ListCodec, ListEncoder, ListView};
use millrace::papers::ding09::gpu::DingTuning;
use millrace::papers::ding09::gpu::batch::{Rank, TILE};
use millrace::papers::ding09::gpu::list::{DingLaid, DingLayer};
use millrace::papers::ding09::gpu::steps::{self, Decoded};
use millrace::papers::ding09::gpu::twin::merge_find;
use millrace::papers::methods::batch::MethodBatch;
use millrace::papers::methods::{DeviceMethod as _, MethodArray, source};
use millrace::query::top_k::Hit;
use std::ops::Range;

fn emulator() -> Option<Emulator> {
    let source = source::<DingTuning>();
    Emulator::compile(source.text, &DingTuning::kernels(), &source.sizes)
}

fn form(codec: ListCodec, block_len: usize) -> Form {
    Form::new(codec, block_len).unwrap()
}

/// Postings with gaps of about `gap`, some of them long, and term frequencies of all sorts.
pub(crate) fn postings(documents: u32, gap: u32, random: &mut Random) -> Postings {
    let mut postings = Vec::new();
    let mut docid = random.below(gap);
    while docid < documents {
        let tf = match random.below(60) {
            0 => 254 + random.below(1000),
            1 => 1_000_000_000 + random.below(1000),
            n => 1 + n / 12,
        };
        postings.push((docid, tf));
        let long = if random.below(40) == 0 { 30 } else { 1 };
        docid += 1 + random.below(long * (2 * gap - 1));
    }
    postings
}

/// Lays out a list whose postings lie in runs that begin at these docids.
fn lay(form: Form, postings: &[(u32, u32)], begins: &[u32]) -> (DingLaid, Vec<u8>) {
    let mut layer = DingLayer::default();
    layer.begin();
    for (n, &begin) in begins.iter().enumerate() {
        let end = begins.get(n + 1).copied().unwrap_or(u32::MAX);
        let of_run = postings.iter().filter(|(docid, _)| (begin..end).contains(docid));
        let mut encoder = ListEncoder::of_form(form);
        for &(docid, tf) in of_run {
            encoder.push(docid - begin, tf, 1);
        }
        if encoder.df() == 0 {
            continue;
        }
        let (df, bytes) = encoder.finish();
        let mut data = encoder.payload().clone();
        data.extend([0; 64]);
        let list = ListView::of_form(form, df, bytes, &data).unwrap();
        layer.add(&list, begin, end - begin).unwrap();
    }
    let mut bytes = Vec::new();
    (layer.finish(&mut bytes), bytes)
}

type DingCollection = Collection<DingLaid>;

impl DingCollection {
    fn new(documents: u32, form: Form, gaps: &[u32], random: &mut Random) -> Self {
        let norm = |_| match random.below(9) {
            // A deleted document.
            0 => f32::INFINITY,
            _ => random.below(4000) as f32 / 1000.0,
        };
        let mut collection = Self::of((0..documents).map(norm).collect());
        for (n, &gap) in gaps.iter().enumerate() {
            let postings = postings(documents, gap, random);
            if postings.is_empty() {
                continue;
            }
            let begins = [0, documents / 3, documents / 3 + 1];
            let begins = &begins[..if gap == 2 { 3 } else { 1 }];
            let (laid, bytes) = lay(form, &postings, begins);
            assert_eq!(laid.postings as usize, postings.len());
            let weight = 0.05 + random.below(1000) as f32 / 100.0;
            collection.push(postings, (laid, bytes), n % 3 != 2, weight);
        }
        collection
    }
}

/// A query of some lists, of all documents or of some.
fn query(collection: &DingCollection, lists: Vec<usize>, k: u32, random: &mut Random) -> Query {
    let all = collection.documents();
    let docids = match random.below(4) {
        0 => random.below(all)..all / 2 + random.below(all),
        _ => 0..u32::MAX,
    };
    Query { lists, k, docids }
}

/// Answers queries as one batch, and returns hits, and what became of the terms of AND.
fn run(
    emulator: &Emulator,
    collection: &DingCollection,
    queries: &[Query],
    (all_terms, merging, seed): (bool, DingTuning, u64),
) -> (Vec<Vec<Hit>>, Vec<Vec<Rank>>) {
    let mut batch = MethodBatch::new(merging, all_terms, collection.documents(), ROOM);
    // What finds no room leaves nothing behind.
    let all = queries.iter().rev().map(|query| (query, 0));
    let all = all.chain(queries.iter().map(|query| (query, ROOM.words)));
    for (query, words) in all {
        batch.room.words = words;
        assert_eq!(query.add(collection, &mut batch), words > 0);
    }
    batch.finish();
    let output = emulated(emulator, &batch, collection.arrays(), seed);
    (hits(batch.answers(&output)), batch.ranks(&output))
}

/// Blocks that a document-at-a-time intersection decodes, of each list but the shortest in the
/// order of their lengths: every document of the shortest list that is asked for is sought in one
/// list after the other until one has it not, and a seek decodes the block that it ends in unless
/// that is decoded already (section 8.1). `lists` are docids, by length; blocks have `block_len`
/// postings.
fn blocks_of_forward_seeks(lists: &[&[u32]], docids: &Range<u32>, block_len: usize) -> Vec<u32> {
    let mut decoded = vec![0; lists.len().saturating_sub(1)];
    let mut open = vec![None; lists.len()];
    let Some((shortest, others)) = lists.split_first() else { return decoded };
    for docid in shortest.iter().filter(|docid| docids.contains(docid)) {
        for (n, list) in others.iter().enumerate() {
            let mut at = open[n].map_or(0, |block| block * block_len);
            while at < list.len() && list[(at + block_len).min(list.len()) - 1] < *docid {
                at += block_len;
            }
            if at >= list.len() {
                break;
            }
            let block = at / block_len;
            if open[n] != Some(block) {
                open[n] = Some(block);
                decoded[n] += 1;
            }
            if !list[at..(at + block_len).min(list.len())].contains(docid) {
                break;
            }
        }
    }
    decoded
}

pub(crate) fn choose(terms: usize, lists: usize, random: &mut Random) -> Vec<usize> {
    let mut left: Vec<usize> = (0..lists).collect();
    let terms = terms.min(lists);
    (0..terms).map(|_| left.swap_remove(random.below(left.len() as u32) as usize)).collect()
}

const FORMS: [(ListCodec, usize); 4] =
    [(ListCodec::Rice, 128), (ListCodec::Pfor, 128), (ListCodec::Pfor, 512), (ListCodec::Rice, 64)];

#[test]
fn twin_ding09_answers_are_exact_and_blocks_are_those_of_forward_seeks() {
    let Some(emulator) = emulator() else { return };
    let gaps = [1, 2, 2, 3, 5, 9, 20, 90, 700];
    for (n, (codec, block_len)) in FORMS.into_iter().enumerate() {
        let mut random = Random(n as u64 + 1);
        let collection = DingCollection::new(2600, form(codec, block_len), &gaps, &mut random);
        let chosen: Vec<Vec<usize>> = [1, 2, 3, 4, 5, 3]
            .map(|terms| choose(terms, collection.lists.len(), &mut random))
            .into();
        let queries: Vec<Query> = chosen
            .into_iter()
            .map(|lists| {
                let k = [1, 10, 33, 700][random.below(4) as usize];
                query(&collection, lists, k, &mut random)
            })
            .collect();
        for all_terms in [true, false] {
            // 0 to 3 levels, with fewer and more splitters than there are candidates.
            let splitters = [None, Some(2), Some(8), Some(1 << 12)][n];
            let how = (all_terms, DingTuning { levels: n as u32, splitters }, n as u64);
            let (found, ranks) = run(&emulator, &collection, &queries, how);
            for ((query, found), ranks) in queries.iter().zip(found).zip(ranks) {
                let lists = &query.lists;
                let expected = query.expected(&collection, all_terms);
                assert_eq!(found, expected, "{codec:?} {block_len} {all_terms} {query:?}");
                // Blocks of several runs are not alike.
                let is_one_run = lists.iter().all(|&n| collection.lists[n].laid.segments <= 2);
                if !all_terms || !is_one_run {
                    continue;
                }
                let mut docids: Vec<Vec<u32>> = lists
                    .iter()
                    .map(|&n| {
                        collection.lists[n].postings.iter().map(|&(docid, _)| docid).collect()
                    })
                    .collect();
                docids.sort_by_key(Vec::len);
                let docids: Vec<&[u32]> = docids.iter().map(Vec::as_slice).collect();
                let sought = blocks_of_forward_seeks(&docids, &query.docids, block_len);
                let decoded: Vec<u32> = ranks[1..].iter().map(|rank| rank.chosen).collect();
                assert_eq!(decoded, sought, "{codec:?} {block_len} {query:?}");
            }
        }
    }
}

#[test]
fn twin_ding09_decodes_lists_of_several_segments() {
    let Some(emulator) = emulator() else { return };
    for (n, codec) in [ListCodec::Rice, ListCodec::Pfor].into_iter().enumerate() {
        let mut random = Random(n as u64 + 20);
        let block_len = 512;
        let documents = 150_000;
        let collection = DingCollection::new(documents, form(codec, block_len), &[1], &mut random);
        let query = query(&collection, vec![0], 1, &mut random);
        let mut batch = MethodBatch::new(DingTuning::default(), false, documents, ROOM);
        assert!(query.add(&collection, &mut batch));
        batch.finish();
        let List { laid, postings, .. } = &collection.lists[0];
        assert!(laid.segments > 2, "{}", laid.segments);
        let mut before = u32::MAX;
        let gaps = postings.iter().map(|&(docid, _)| {
            let gap = docid.wrapping_sub(before);
            before = docid;
            gap
        });
        let gaps: Vec<u32> = gaps.collect();
        let docids: Vec<u32> = postings.iter().map(|&(docid, _)| docid).collect();
        for (what, expected) in [(Decoded::Docids, docids), (Decoded::Gaps, gaps)] {
            let steps = steps::decoding(&batch, what);
            let arrays = emulated_steps(&emulator, &batch, collection.arrays(), &steps, n as u64);
            let words = arrays[&MethodArray::Words].download().unwrap();
            let words = words.chunks_exact(4).map(bytemuck::pod_read_unaligned::<u32>);
            assert!(words.take(expected.len()).eq(expected), "{codec:?} {what:?}");
        }
    }
}

#[test]
fn twin_parallel_merge_find() {
    let Some(emulator) = emulator() else { return };
    let mut random = Random(30);
    for (m, n, gap) in [(1, 1, 3), (1, 900, 2), (700, 3, 9), (900, 800, 4), (300, 2000, 5)] {
        let mut rising = |len: u32| {
            let mut last = 0;
            let next = |_| {
                last += 1 + random.below(gap);
                last
            };
            (0..len).map(next).collect::<Vec<u32>>()
        };
        let a = rising(m);
        let b = rising(n);
        let expected = merge_find(&a, &b);
        for (levels, bits) in
            (0..=4).map(|levels| (levels, 0)).chain([(1, 3), (3, 1), (4, 2), (2, 16)])
        {
            let upload = |values: &[u32]| emulator.upload(bytemuck::cast_slice(values)).unwrap();
            let on_a = upload(&a);
            let on_b = upload(&b);
            let places = emulator.alloc(4 * a.len()).unwrap();
            for level in 1..=levels + 1 {
                let launch = Launch {
                    kernel: "ding_merge_find",
                    blocks: m.div_ceil(TILE),
                    threads: TILE,
                    shared_bytes: 0,
                    seed: u64::from(level),
                };
                let arguments = [
                    Arg::Resident(&on_a, 0),
                    Arg::U32(m),
                    Arg::Resident(&on_b, 0),
                    Arg::U32(n),
                    Arg::U32(level),
                    Arg::U32(levels),
                    Arg::U32(bits),
                    Arg::Resident(&places, 0),
                ];
                emulator.launch(launch, &mut [], &arguments).unwrap();
            }
            let found = places.download().unwrap();
            let found: Vec<u32> = found.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
            assert_eq!(found, expected, "{m} {n} {levels} {bits}");
        }
    }
}
