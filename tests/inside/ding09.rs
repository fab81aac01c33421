//! Does `ding09` on a device answer as the CPU does? Its kernels, emulated, against their twins.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator, Launch, Random};
use millrace::gpu::ding09::batch::{DingBatch, DingQuery, DingRoom, DingTerm, Rank, TILE};
use millrace::gpu::ding09::list::{DingLaid, DingLayer};
use millrace::gpu::ding09::steps::{self, Decoded, DingArray, Step};
use millrace::gpu::ding09::twin::{Term, best, blocks_of_forward_seeks, merge_find};
use millrace::gpu::ding09::{KERNELS, Merging, source};
use millrace::index::list::{Form, ListCodec, ListEncoder, ListView};
use millrace::query::top_k::Hit;
use std::collections::HashMap;

fn emulator() -> Option<Emulator> {
    let source = source();
    Emulator::compile(source.text, &KERNELS, &source.sizes)
}

fn form(codec: ListCodec, block_len: usize) -> Form {
    Form::new(codec, block_len).unwrap()
}

pub(crate) type Postings = Vec<(u32, u32)>;

/// Postings with gaps of about `gap`, some of them long, and term frequencies of all sorts.
pub(crate) fn postings(documents: u32, gap: u32, random: &mut Random) -> Postings {
    let (mut postings, mut docid) = (Vec::new(), random.below(gap));
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
fn lay(form: Form, postings: &[(u32, u32)], begins: &[u32], out: &mut Vec<u8>) -> DingLaid {
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
    layer.finish(out)
}

/// Lists on a device that is emulated.
struct Collection {
    documents: u32,
    norms: Vec<f32>,
    arena: Vec<u8>,
    lists: Vec<(DingTerm, Postings)>,
}

impl Collection {
    fn new(documents: u32, form: Form, gaps: &[u32], random: &mut Random) -> Self {
        let norms = (0..documents)
            .map(|_| match random.below(9) {
                // A deleted document.
                0 => f32::INFINITY,
                _ => random.below(4000) as f32 / 1000.0,
            })
            .collect();
        let mut collection = Self { documents, norms, arena: vec![0; 64], lists: Vec::new() };
        for &gap in gaps {
            let postings = postings(documents, gap, random);
            if postings.is_empty() {
                continue;
            }
            collection.arena.resize(collection.arena.len().next_multiple_of(256), 0);
            let place = collection.arena.len() as u64;
            let begins = [0, documents / 3, documents / 3 + 1];
            let begins = &begins[..if gap == 2 { 3 } else { 1 }];
            let laid = lay(form, &postings, begins, &mut collection.arena);
            assert_eq!(laid.postings as usize, postings.len());
            let weight = 0.05 + random.below(1000) as f32 / 100.0;
            collection.lists.push((DingTerm { place, laid, weight }, postings));
        }
        collection
    }

    /// A query of some lists, by their numbers.
    fn query(&self, lists: &[usize], k: u32, random: &mut Random) -> DingQuery {
        let all = self.documents;
        let docids = match random.below(4) {
            0 => random.below(all)..all / 2 + random.below(all),
            _ => 0..u32::MAX,
        };
        DingQuery { terms: lists.iter().map(|&n| self.lists[n].0).collect(), k, docids }
    }

    fn expected(&self, query: &DingQuery, lists: &[usize], all_terms: bool) -> Vec<Hit> {
        let terms: Vec<Term<'_>> = lists
            .iter()
            .map(|&n| Term { weight: self.lists[n].0.weight, postings: &self.lists[n].1 })
            .collect();
        best(&terms, &self.norms, (query.k as usize, query.docids.clone()), all_terms)
    }
}

const ROOM: DingRoom = DingRoom { words: 1 << 26, hits: 1 << 16, terms: 1024, items: 4096 };

/// The memory of an emulated device.
struct Device<'a> {
    emulator: &'a Emulator,
    arrays: HashMap<DingArray, Buffer>,
}

impl<'a> Device<'a> {
    fn new(emulator: &'a Emulator, collection: &Collection, batch: &DingBatch) -> Self {
        let mut input = vec![0; batch.input().bytes];
        batch.write(&mut input);
        let norms = bytemuck::cast_slice(&collection.norms);
        let arrays = [
            (DingArray::Arena, emulator.upload(&collection.arena).unwrap()),
            (DingArray::Input, emulator.upload(&input).unwrap()),
            (DingArray::Words, emulator.alloc(4 * batch.used().words as usize).unwrap()),
            (DingArray::Norms, emulator.upload(norms).unwrap()),
            (DingArray::Output, emulator.alloc(batch.output().bytes).unwrap()),
        ];
        assert!(batch.input().bytes <= batch.used().input_bytes());
        assert!(batch.output().bytes <= batch.used().output_bytes());
        Self { emulator, arrays: arrays.into() }
    }

    fn run(&self, steps: &[Step], seed: u64) {
        self.emulator.run(steps, seed, |array, at| Arg::Resident(&self.arrays[&array], at));
    }

    fn words(&self) -> Vec<u32> {
        let bytes = self.arrays[&DingArray::Words].download().unwrap();
        bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect()
    }

    fn output(&self) -> Vec<u8> {
        self.arrays[&DingArray::Output].download().unwrap()
    }
}

/// Answers queries as one batch, and returns hits, and what became of the terms of AND.
fn run(
    emulator: &Emulator,
    collection: &Collection,
    queries: &[DingQuery],
    (all_terms, merging, seed): (bool, Merging, u64),
) -> (Vec<Vec<Hit>>, Vec<Vec<Rank>>) {
    let mut batch = DingBatch::new(collection.documents, all_terms);
    for query in queries {
        batch.add(query.clone(), &ROOM).unwrap();
    }
    batch.finish();
    let device = Device::new(emulator, collection, &batch);
    device.run(&steps::batch(&batch, merging), seed);
    let output = device.output();
    (batch.answers(&output), batch.ranks(&output))
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
        let collection = Collection::new(2600, form(codec, block_len), &gaps, &mut random);
        let chosen: Vec<Vec<usize>> = [1, 2, 3, 4, 5, 3]
            .map(|terms| choose(terms, collection.lists.len(), &mut random))
            .into();
        let queries: Vec<DingQuery> = chosen
            .iter()
            .map(|lists| {
                let k = [1, 10, 33, 700][random.below(4) as usize];
                collection.query(lists, k, &mut random)
            })
            .collect();
        for all_terms in [true, false] {
            // 0 to 3 levels, with fewer and more splitters than there are candidates.
            let splitters = [None, Some(2), Some(8), Some(1 << 12)][n];
            let how = (all_terms, Merging { levels: n as u32, splitters }, n as u64);
            let (found, ranks) = run(&emulator, &collection, &queries, how);
            for (((query, lists), found), ranks) in
                queries.iter().zip(&chosen).zip(found).zip(ranks)
            {
                let expected = collection.expected(query, lists, all_terms);
                assert_eq!(found, expected, "{codec:?} {block_len} {all_terms} {query:?}");
                // Blocks of several runs are not alike.
                let is_one_run = lists.iter().all(|&n| collection.lists[n].0.laid.segments <= 2);
                if !all_terms || !is_one_run {
                    continue;
                }
                let mut docids: Vec<Vec<u32>> = lists
                    .iter()
                    .map(|&n| collection.lists[n].1.iter().map(|&(docid, _)| docid).collect())
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
        let collection = Collection::new(documents, form(codec, block_len), &[1], &mut random);
        let query = collection.query(&[0], 1, &mut random);
        let mut batch = DingBatch::new(documents, false);
        batch.add(query, &ROOM).unwrap();
        batch.finish();
        let (term, postings) = &collection.lists[0];
        assert!(term.laid.segments > 2, "{}", term.laid.segments);
        let mut before = u32::MAX;
        let gaps = postings.iter().map(|&(docid, _)| {
            let gap = docid.wrapping_sub(before);
            before = docid;
            gap
        });
        let gaps: Vec<u32> = gaps.collect();
        let docids: Vec<u32> = postings.iter().map(|&(docid, _)| docid).collect();
        for (what, expected) in [(Decoded::Docids, docids), (Decoded::Gaps, gaps)] {
            let device = Device::new(&emulator, &collection, &batch);
            device.run(&steps::decoding(&batch, what), n as u64);
            assert!(device.words()[..expected.len()] == expected, "{codec:?} {what:?}");
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
        let (a, b) = (rising(m), rising(n));
        let expected = merge_find(&a, &b);
        for (levels, bits) in
            (0..=4).map(|levels| (levels, 0)).chain([(1, 3), (3, 1), (4, 2), (2, 16)])
        {
            let upload = |values: &[u32]| emulator.upload(bytemuck::cast_slice(values)).unwrap();
            let (on_a, on_b) = (upload(&a), upload(&b));
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
