//! `huang` on a device answers as the CPU does: its kernels, emulated, against their twins.

use crate::inside_tests::ding09::{choose, postings};
use crate::inside_tests::emulation::{Emulator, Random};
use crate::inside_tests::methods::{Collection, Query, ROOM, emulated, hits};
use millrace::index::list::{Form, ListCodec, ListEncoder, ListView};
use millrace::papers::huang::gpu::batch::Stages;
use millrace::papers::huang::gpu::list::{BLOCK, HuangLaid, HuangLayer, Worth};
use millrace::papers::huang::gpu::{HuangTuning, THREADS, Traversal};
use millrace::papers::methods::batch::{BatchRoom, MethodBatch};
use millrace::papers::methods::{DeviceMethod as _, source};
use millrace::query::top_k::Hit;
use millrace::score::bm25::Bm25;
use millrace::score::bounds::{BoundNorms, code_below};

/// Lays out a list whose postings lie in runs that begin at these docids.
fn lay(
    postings: &[(u32, u32)],
    (begins, lengths): (&[u32], &[u32]),
    worth: Worth<'_>,
) -> (HuangLaid, Vec<u8>) {
    let form = Form::new(ListCodec::NewPfd, BLOCK).unwrap();
    let mut layer = HuangLayer::default();
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

type HuangCollection = Collection<HuangLaid>;

impl HuangCollection {
    /// Documents are short in some parts of the collection and long in others, so that blocks
    /// differ.
    fn new(documents: u32, gaps: &[u32], random: &mut Random) -> Self {
        let lengths: Vec<u32> = (0..documents)
            .map(|docid| 1 + random.below(if docid / 300 % 3 == 0 { 40 } else { 900 }))
            .collect();
        let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>();
        let bm25 = Bm25::default();
        let mean = mean / f64::from(documents);
        let mut norms = Vec::new();
        bm25.norms(&lengths, mean, &mut norms);
        for norm in &mut norms {
            if random.below(9) == 0 {
                // A deleted document.
                *norm = f32::INFINITY;
            }
        }
        let bounds = BoundNorms::new(&bm25, mean);
        let mut collection = Self::of(norms);
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
            let weight = 0.05 + random.below(1000) as f32 / 100.0;
            collection.push(postings, (laid, bytes), n % 3 != 0, weight);
        }
        collection
    }
}

type Batch = MethodBatch<HuangTuning>;

/// An empty batch about this many documents, for blocks of this many threads.
fn batch(documents: usize, threads: u32) -> Batch {
    let how = HuangTuning { threads, ..HuangTuning::default() };
    MethodBatch::new(how, false, documents as u32, ROOM)
}

/// A query of this many lists, of all documents or of some.
fn query(collection: &HuangCollection, terms: usize, random: &mut Random) -> Query {
    let documents = collection.documents();
    let docids = match random.below(4) {
        0 => random.below(documents)..documents / 2 + random.below(documents),
        _ => 0..u32::MAX,
    };
    let k = [1, 10, 20, 700][random.below(4) as usize];
    Query { lists: choose(terms, collection.lists.len(), random), k, docids }
}

/// Answers queries as one batch in each way; whether documents must have all terms, and what is
/// found.
fn run(
    emulator: &Emulator,
    collection: &HuangCollection,
    queries: &[Query],
    (threads, seed): (u32, u64),
) -> Vec<(bool, Vec<Vec<Hit>>, Vec<Stages>)> {
    let mut batch = batch(collection.norms.len(), threads);
    for query in queries {
        assert!(query.add(collection, &mut batch));
    }
    batch.finish();
    (batch.how.timed, batch.how.shared_threshold) = (seed % 2 == 1, seed % 3 > 0);
    let any = Traversal::ALL.map(|traversal| (false, traversal));
    let ways = [(true, Traversal::default())].into_iter().chain(any);
    let run = |(all_terms, traversal)| {
        (batch.all_terms, batch.how.traversal) = (all_terms, traversal);
        let output = emulated(emulator, &batch, collection.arrays(), seed);
        (all_terms, hits(batch.answers(&output)), batch.stages(&output))
    };
    ways.map(run).collect()
}

#[test]
fn twin_huang_answers_are_exact() {
    let source = source::<HuangTuning>();
    let Some(emulator) = Emulator::compile(source.text, &HuangTuning::kernels(), &source.sizes)
    else {
        return;
    };
    let gaps = [1, 2, 2, 3, 5, 9, 9, 20, 60, 90, 700, 2, 4, 6, 8, 30, 40];
    for (n, threads) in (0..).zip([32, 64, 320]) {
        let mut random = Random(n + 1);
        let collection = HuangCollection::new(2100, &gaps, &mut random);
        let queries: Vec<Query> =
            [1, 2, 3, 4, 5, 8].map(|terms| query(&collection, terms, &mut random)).into();
        for (all_terms, found, stages) in run(&emulator, &collection, &queries, (threads, n)) {
            for (query, found) in queries.iter().zip(found) {
                let expected = query.expected(&collection, all_terms);
                assert_eq!(found, expected, "{all_terms} {threads} {query:?}");
            }
            assert!(stages.iter().all(|of| of.scoring > 0 && of.merging > 0), "{stages:?}");
        }
    }
    // As many terms as a query may have, in more launches than one.
    let mut random = Random(9);
    let collection = HuangCollection::new(700, &gaps, &mut random);
    let queries = [16, 2, 9].map(|terms| query(&collection, terms, &mut random));
    for (all_terms, found, _) in run(&emulator, &collection, &queries, (32, 7)) {
        let expected = queries.each_ref().map(|query| query.expected(&collection, all_terms));
        assert_eq!(found, expected, "{all_terms}");
    }
}

#[test]
fn a_batch_takes_what_it_has_room_for() {
    let mut random = Random(5);
    let collection = HuangCollection::new(900, &[1, 3, 5], &mut random);
    // List 0 travels.
    let query = Query { lists: vec![0, 1], k: 10, docids: 0..u32::MAX };
    let bytes = collection.lists[0].bytes.len();
    let mut batch = batch(900, 64);
    batch.room.list_bytes = bytes - 1;
    assert!(!query.add(&collection, &mut batch));
    batch.room = ROOM;
    assert_eq!((batch.len(), batch.used().list_bytes), (0, 0), "nothing of it stays");
    for n in 1..=3 {
        assert!(query.add(&collection, &mut batch));
        assert_eq!((batch.len(), batch.used().list_bytes), (n, bytes), "a list travels once");
    }
    let used = batch.used().words;
    let rooms = [
        BatchRoom { words: used + 2 * 10 * 64 - 1, ..ROOM },
        BatchRoom { hits: 39, ..ROOM },
        BatchRoom { terms: 7, ..ROOM },
        BatchRoom { shared_bytes: 32 * 64 * 2 + 4 * 64 + 15, ..ROOM },
    ];
    for room in rooms {
        batch.room = room;
        assert!(!query.add(&collection, &mut batch), "{room:?}");
    }
    batch.room = BatchRoom { words: used + 2 * 10 * 64, hits: 40, terms: 8, ..ROOM };
    assert!(query.add(&collection, &mut batch));
    assert!(THREADS.iter().all(|threads| threads % 32 == 0));
}
