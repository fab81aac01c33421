//! Does `huang` on a device answer as the CPU does? Its kernels, emulated, against their twins.

use crate::inside_tests::ding09::{Postings, choose, postings};
use crate::inside_tests::emulation::{Arg, Buffer, Emulator, Random};
use millrace::gpu::huang::batch::{
    AskedTerm, HuangArray, HuangBatch, HuangRoom, HuangWay, Key, Stages,
};
use millrace::gpu::huang::list::{BLOCK, HuangLaid, ListLayer, Worth};
use millrace::gpu::huang::twin::{Term, best};
use millrace::gpu::huang::{KERNELS, THREADS, source};
use millrace::gpu::travelling::Bytes;
use millrace::index::list::{Form, ListCodec, ListEncoder, ListError, ListView};
use millrace::query::top_k::Hit;
use millrace::score::bm25::Bm25;
use millrace::score::bounds::{BoundNorms, code_below};
use std::collections::HashMap;

/// A list of the collection.
struct List {
    postings: Postings,
    weight: f32,
    /// Where it is among the lists that stay; the others travel.
    cached: Option<(u64, HuangLaid)>,
    bytes: Vec<u8>,
    laid: HuangLaid,
}

/// Lists on a device that is emulated.
struct Collection {
    norms: Vec<f32>,
    arena: Vec<u8>,
    lists: Vec<List>,
}

/// Lays out a list whose postings lie in runs that begin at these docids.
fn lay(
    postings: &[(u32, u32)],
    (begins, lengths): (&[u32], &[u32]),
    worth: Worth<'_>,
) -> (HuangLaid, Vec<u8>) {
    let form = Form::new(ListCodec::NewPfd, BLOCK).unwrap();
    let mut layer = ListLayer::default();
    layer.begin();
    for (n, &begin) in begins.iter().enumerate() {
        let end = begins.get(n + 1).copied().unwrap_or(u32::MAX);
        let of_run = postings.iter().filter(|(docid, _)| (begin..end).contains(docid));
        let mut encoder = ListEncoder::of_form(form);
        for &(docid, tf) in of_run {
            encoder.push(docid - begin, tf, code_below(lengths[docid as usize]));
        }
        if encoder.df() == 0 {
            continue;
        }
        let (df, bytes) = encoder.finish();
        let mut data = encoder.payload().clone();
        data.extend([0; 64]);
        let list = ListView::of_form(form, df, bytes, &data).unwrap();
        layer.add(&list, begin, end - begin, worth).unwrap();
    }
    let mut bytes = Vec::new();
    let laid = layer.finish(&mut bytes);
    (laid, bytes)
}

impl Collection {
    /// Documents are short in some parts of the collection and long in others, so that blocks
    /// differ.
    fn new(documents: u32, gaps: &[u32], random: &mut Random) -> Self {
        let lengths: Vec<u32> = (0..documents)
            .map(|docid| 1 + random.below(if docid / 300 % 3 == 0 { 40 } else { 900 }))
            .collect();
        let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>();
        let (bm25, mean) = (Bm25::default(), mean / f64::from(documents));
        let mut norms = Vec::new();
        bm25.norms(&lengths, mean, &mut norms);
        for norm in &mut norms {
            if random.below(9) == 0 {
                // A deleted document.
                *norm = f32::INFINITY;
            }
        }
        let bounds = BoundNorms::new(&bm25, mean);
        let mut collection = Self { norms, arena: vec![0; 64], lists: Vec::new() };
        for (n, &gap) in gaps.iter().enumerate() {
            let postings = postings(documents, gap, random);
            if postings.is_empty() {
                continue;
            }
            let begins = [0, documents / 3, documents / 3 + 1];
            let begins = &begins[..if gap == 2 { 3 } else { 1 }];
            let worth = Worth { norms: &collection.norms, bounds: &bounds };
            let (laid, bytes) = lay(&postings, (begins, &lengths), worth);
            assert_eq!(laid.postings as usize, postings.len());
            let cached = (n % 3 != 0).then(|| {
                let place = collection.arena.len().next_multiple_of(256);
                collection.arena.resize(place, 0);
                collection.arena.extend(&bytes);
                (place as u64, laid)
            });
            let weight = 0.05 + random.below(1000) as f32 / 100.0;
            collection.lists.push(List { postings, weight, cached, bytes, laid });
        }
        collection
    }
}

const ROOM: HuangRoom = HuangRoom {
    words: 1 << 26,
    hits: 1 << 16,
    terms: 1024,
    list_bytes: 1 << 22,
    shared_bytes: 96 << 10,
};

/// A query of some lists, by their numbers.
#[derive(Debug)]
struct Query {
    lists: Vec<usize>,
    k: u32,
    docids: std::ops::Range<u32>,
}

impl Query {
    fn new(collection: &Collection, terms: usize, random: &mut Random) -> Self {
        let documents = collection.norms.len() as u32;
        let docids = match random.below(4) {
            0 => random.below(documents)..documents / 2 + random.below(documents),
            _ => 0..u32::MAX,
        };
        let k = [1, 10, 20, 700][random.below(4) as usize];
        Self { lists: choose(terms, collection.lists.len(), random), k, docids }
    }

    fn add(&self, collection: &Collection, batch: &mut HuangBatch, room: &HuangRoom) -> bool {
        let of = |&n: &usize| &collection.lists[n];
        let keys: Vec<Key> = self.lists.iter().map(|&n| [n as u64].into()).collect();
        let terms = self.lists.iter().map(of).zip(&keys).map(|(list, key)| AskedTerm {
            key,
            cached: list.cached,
            weight: list.weight,
        });
        let terms: Vec<AskedTerm<'_>> = terms.collect();
        let added = batch.add(&terms, (self.k, self.docids.clone()), room, |t| {
            let list = of(&self.lists[t]);
            Ok::<Bytes<HuangLaid>, ListError>((list.laid, list.bytes.as_slice().into()))
        });
        added.unwrap()
    }

    fn expected(&self, collection: &Collection, all_terms: bool) -> Vec<Hit> {
        let of = |&n: &usize| &collection.lists[n];
        let terms = self.lists.iter().map(of);
        let terms: Vec<Term<'_>> =
            terms.map(|list| Term { weight: list.weight, postings: &list.postings }).collect();
        best(&terms, &collection.norms, (self.k as usize, self.docids.clone()), all_terms)
    }
}

/// Answers queries as one batch by a kernel.
fn run(
    emulator: &Emulator,
    collection: &Collection,
    queries: &[Query],
    (kernel, threads, seed): (&'static str, u32, u64),
) -> (Vec<Vec<Hit>>, Vec<Stages>) {
    let mut batch = HuangBatch::new(collection.norms.len() as u32, threads);
    for query in queries {
        assert!(query.add(collection, &mut batch, &ROOM));
    }
    batch.finish();
    let mut input = vec![0; batch.input().bytes];
    for (at, part) in batch.parts() {
        input[at..at + part.len()].copy_from_slice(part);
    }
    let output = batch.output().bytes;
    assert!(input.len() <= ROOM.input_bytes() && output <= ROOM.output_bytes());
    let arrays: HashMap<HuangArray, Buffer> = [
        (HuangArray::Cached, emulator.upload(&collection.arena).unwrap()),
        (HuangArray::Input, emulator.upload(&input).unwrap()),
        (HuangArray::Norms, emulator.upload(bytemuck::cast_slice(&collection.norms)).unwrap()),
        (HuangArray::Words, emulator.alloc(4 * batch.words() as usize).unwrap()),
        (HuangArray::Output, emulator.alloc(output).unwrap()),
    ]
    .into();
    let how = HuangWay { timed: seed % 2 == 1, shared_threshold: seed % 3 > 0 };
    emulator.run(&batch.steps(kernel, how), seed, |array, at| Arg::Resident(&arrays[&array], at));
    let output = arrays[&HuangArray::Output].download().unwrap();
    (batch.answers(&output), batch.stages(&output))
}

#[test]
fn twin_huang_answers_are_exact() {
    let source = source();
    let Some(emulator) = Emulator::compile(source.text, &KERNELS, &source.sizes) else { return };
    let gaps = [1, 2, 2, 3, 5, 9, 9, 20, 60, 90, 700, 2, 4, 6, 8, 30, 40];
    for (n, threads) in (0..).zip([32, 64, 320]) {
        let mut random = Random(n + 1);
        let collection = Collection::new(2100, &gaps, &mut random);
        let queries: Vec<Query> =
            [1, 2, 3, 4, 5, 8].map(|terms| Query::new(&collection, terms, &mut random)).into();
        for kernel in KERNELS {
            let (found, stages) = run(&emulator, &collection, &queries, (kernel, threads, n));
            for (query, found) in queries.iter().zip(found) {
                let expected = query.expected(&collection, kernel == "huang_and");
                assert_eq!(found, expected, "{kernel} {threads} {query:?}");
            }
            assert!(stages.iter().all(|of| of.scoring > 0 && of.merging > 0), "{stages:?}");
        }
    }
    // As many terms as a query may have, in more launches than one.
    let mut random = Random(9);
    let collection = Collection::new(700, &gaps, &mut random);
    let queries = [16, 2, 9].map(|terms| Query::new(&collection, terms, &mut random));
    for kernel in KERNELS {
        let (found, _) = run(&emulator, &collection, &queries, (kernel, 32, 7));
        let expected = queries.each_ref().map(|q| q.expected(&collection, kernel == "huang_and"));
        assert_eq!(found, expected, "{kernel}");
    }
}

#[test]
fn a_batch_takes_what_it_has_room_for() {
    let mut random = Random(5);
    let collection = Collection::new(900, &[1, 3, 5], &mut random);
    // List 0 travels.
    let query = Query { lists: vec![0, 1], k: 10, docids: 0..u32::MAX };
    let bytes = collection.lists[0].bytes.len();
    let mut batch = HuangBatch::new(900, 64);
    let little = HuangRoom { list_bytes: bytes - 1, ..ROOM };
    assert!(!query.add(&collection, &mut batch, &little));
    assert_eq!((batch.len(), batch.list_bytes()), (0, 0), "nothing of it stays");
    for n in 1..=3 {
        assert!(query.add(&collection, &mut batch, &ROOM));
        assert_eq!((batch.len(), batch.list_bytes()), (n, bytes), "a list travels once");
    }
    let used = batch.words();
    let rooms = [
        HuangRoom { words: used + 2 * 10 * 64 - 1, ..ROOM },
        HuangRoom { hits: 39, ..ROOM },
        HuangRoom { terms: 7, ..ROOM },
        HuangRoom { shared_bytes: 32 * 64 * 2 + 4 * 64 + 15, ..ROOM },
    ];
    for room in rooms {
        assert!(!query.add(&collection, &mut batch, &room), "{room:?}");
    }
    let fits = HuangRoom { words: used + 2 * 10 * 64, hits: 40, terms: 8, ..ROOM };
    assert!(query.add(&collection, &mut batch, &fits));
    assert!(THREADS.iter().all(|threads| threads % 32 == 0));
}
