//! `wang` on a device answers as the CPU does: its kernel, emulated, against its twin and all
//! documents.

use crate::inside_tests::ding09::choose;
use crate::inside_tests::emulation::{Emulator, Random};
use crate::inside_tests::methods::{ROOM, emulated};
use millrace::index::list::{Form, ListEncoder, ListError, ListView};
use millrace::papers::methods::batch::{AskedPart, BatchRoom, FoundHits, MethodBatch};
use millrace::papers::methods::lists::DevicePart;
use millrace::papers::methods::travelling::Bytes;
use millrace::papers::methods::{DeviceMethod as _, source};
use millrace::papers::wang::gpu::batch::wang_shared_bytes;
use millrace::papers::wang::gpu::list::{WangLaid, WangLayer};
use millrace::papers::wang::gpu::twin::{TwinWorth, WangTwinTerm, by_rounds};
use millrace::papers::wang::gpu::{ROUNDS, WangTuning};
use millrace::query::top_k::Hit;
use millrace::score::bm25::score;
use millrace::score::wang::Wang;

/// A list of the collection.
struct List {
    postings: Vec<(u32, u32)>,
    part: f64,
    /// Where it is among the lists that stay; the others travel, and are whole.
    cached: Option<(u64, WangLaid)>,
    bytes: Vec<u8>,
    laid: WangLaid,
}

/// Documents in global order, and lists on a device that is emulated.
struct Collection {
    wang: Wang,
    norms: Vec<f32>,
    statics: Vec<f32>,
    globals: Vec<f32>,
    arena: Vec<u8>,
    lists: Vec<List>,
}

/// Lays out the first blocks of a list, or all.
fn lay(
    postings: &[(u32, u32)],
    form: Form,
    documents: u32,
    blocks: Option<usize>,
) -> (WangLaid, Vec<u8>) {
    let mut encoder = ListEncoder::of_form(form);
    postings.iter().for_each(|&(docid, tf)| encoder.push(docid, tf, 1));
    let (df, bytes) = encoder.finish();
    let mut data = encoder.payload().clone();
    data.extend([0; 64]);
    let list = ListView::of_form(form, df, bytes, &data).unwrap();
    let mut out = Vec::new();
    let laid = WangLayer::default().lay_list(&list, documents, blocks, &mut out).unwrap();
    (laid, out)
}

impl Collection {
    /// Lists of which the first have few documents and the last nearly all.
    fn new(documents: u32, lists: usize, alpha: f64, random: &mut Random) -> Self {
        let wang = Wang::new(alpha).unwrap();
        let drawn = (0..documents).map(|_| {
            let rank = 1000.0 / (1.0 + random.below(997) as f32);
            let norm = 0.3 + random.below(300) as f32 / 100.0;
            let tf = |list: usize, random: &mut Random| {
                let has = random.below(1000) < 30 + 960 * list as u32 / lists as u32;
                match random.below(90) {
                    _ if !has => 0,
                    0 => 1_000_000_000 + random.below(1000),
                    n => 1 + n / 9,
                }
            };
            let tfs: Vec<u32> = (0..lists).map(|list| tf(list, random)).collect();
            let most = tfs.iter().copied().max().unwrap_or(0);
            (wang.global(rank, 1000.0, most, norm), rank, norm, tfs)
        });
        let mut drawn: Vec<_> = drawn.collect();
        drawn.sort_by(|a, b| b.0.total_cmp(&a.0));
        let postings = |list: usize| {
            let of = (0..).zip(&drawn).map(|(docid, document)| (docid, document.3[list]));
            of.filter(|posting| posting.1 > 0).collect()
        };
        let statics = drawn.iter().map(|document| wang.static_part(document.1, 1000.0));
        let norms = drawn.iter().map(|document| document.2).collect();
        let globals = drawn.iter().map(|document| document.0).collect();
        let all = (0..lists).map(postings).collect();
        Self::of_lists((wang, norms, statics.collect(), globals), all, random)
    }

    fn of_lists(
        (wang, norms, statics, globals): (Wang, Vec<f32>, Vec<f32>, Vec<f32>),
        lists: Vec<Vec<(u32, u32)>>,
        random: &mut Random,
    ) -> Self {
        let arena = vec![0; 64];
        let mut collection = Self { wang, norms, statics, globals, arena, lists: Vec::new() };
        let codecs = [("bp128", 128), ("newpfd", 64), ("rice", 128), ("pfor", 512)];
        for (n, postings) in lists.into_iter().enumerate() {
            let (codec, block_len) = codecs[n % codecs.len()];
            let form = Form::named(codec, block_len).unwrap();
            let blocks = postings.len().div_ceil(block_len) as u32;
            let blocks = match random.below(3) {
                0 => None,
                _ => Some(1 + random.below(blocks + 1) as usize),
            };
            collection.push(postings, form, blocks, random.below(3) > 0);
        }
        collection
    }

    /// Adds a list that stays, and of which the first blocks are there, or one that travels.
    fn push(&mut self, postings: Vec<(u32, u32)>, form: Form, blocks: Option<usize>, stays: bool) {
        if postings.is_empty() {
            return;
        }
        let documents = self.norms.len() as u32;
        let (laid, bytes) = lay(&postings, form, documents, blocks.filter(|_| stays));
        assert_eq!(laid.df as usize, postings.len());
        assert_eq!(laid.end.is_some(), (laid.postings as usize) < postings.len());
        let cached = stays.then(|| {
            let place = self.arena.len().next_multiple_of(256);
            self.arena.resize(place, 0);
            self.arena.extend(&bytes);
            (place as u64, laid)
        });
        let part = 0.1 + self.lists.len() as f64 * 3.0 % 7.0;
        self.lists.push(List { postings, part, cached, bytes, laid });
    }

    fn worth(&self) -> TwinWorth<'_> {
        let Self { norms, statics, globals, .. } = self;
        TwinWorth { norms, statics, globals }
    }
}

type Batch = MethodBatch<WangTuning>;

/// An empty batch about this many documents, for rounds of this many.
fn batch(documents: usize, round: u32) -> Batch {
    let how = WangTuning { round, ..WangTuning::default() };
    MethodBatch::new(how, true, documents as u32, ROOM)
}

/// A query of some lists, by their numbers.
#[derive(Debug)]
struct Query {
    lists: Vec<usize>,
    k: u32,
}

impl Query {
    fn new(collection: &Collection, terms: usize, random: &mut Random) -> Self {
        let k = [1, 10, 33, 700][random.below(4) as usize];
        Self { lists: choose(terms, collection.lists.len(), random), k }
    }

    fn weights(&self, collection: &Collection) -> Vec<f32> {
        let part = |&n: &usize| collection.lists[n].part;
        let sum = self.lists.iter().map(part).sum();
        self.lists.iter().map(|n| collection.wang.weight(part(n), sum)).collect()
    }

    fn add(&self, collection: &Collection, batch: &mut Batch) -> bool {
        let of = |n: u64| &collection.lists[n as usize];
        let lists = self.lists.iter().zip(self.weights(collection));
        let asked = lists.map(|(&n, weight)| AskedPart {
            key: std::iter::once(n as u64).collect(),
            part: DevicePart::whole([]),
            weight,
        });
        let asked: Vec<AskedPart> = asked.collect();
        let added = batch.add(
            &asked,
            self.k,
            0..u32::MAX,
            |key| of(key[0]).cached,
            |t| {
                let list = of(asked[t].key[0]);
                Ok::<Bytes<WangLaid>, ListError>((list.laid, list.bytes.as_slice().into()))
            },
        );
        added.unwrap()
    }

    fn twin(&self, collection: &Collection, round: u32) -> (FoundHits, u32) {
        let terms = self.lists.iter().zip(self.weights(collection)).map(|(&n, weight)| {
            let List { postings, laid, .. } = &collection.lists[n];
            WangTwinTerm { weight, postings, there: laid.postings as usize }
        });
        let terms: Vec<WangTwinTerm<'_>> = terms.collect();
        by_rounds(&terms, collection.worth(), self.k as usize, round as usize)
    }

    /// The best of `hits` and all documents from a docid on, by their definition.
    fn and_all_from(&self, collection: &Collection, mut hits: Vec<Hit>, from: u32) -> Vec<Hit> {
        let weights = self.weights(collection);
        for docid in from..collection.norms.len() as u32 {
            let tf = |&n: &usize| {
                let postings = &collection.lists[n].postings;
                let at = postings.binary_search_by_key(&docid, |posting| posting.0).ok()?;
                Some(postings[at].1)
            };
            let Some(tfs) = self.lists.iter().map(tf).collect::<Option<Vec<u32>>>() else {
                continue;
            };
            let norm = collection.norms[docid as usize];
            let add = |sum, (&weight, tf)| sum + score(weight, tf, norm);
            let begin = collection.statics[docid as usize];
            hits.push(Hit { docid, score: weights.iter().zip(tfs).fold(begin, add) });
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(self.k as usize);
        hits
    }
}

/// Answers queries as one batch; what is found, and in how many rounds.
fn run(
    emulator: &Emulator,
    collection: &Collection,
    queries: &[Query],
    (round, seed): (u32, u64),
) -> Vec<(FoundHits, u32)> {
    let mut batch = batch(collection.norms.len(), round);
    for query in queries {
        assert!(query.add(collection, &mut batch));
    }
    batch.finish();
    let TwinWorth { norms, statics, globals } = collection.worth();
    let output = emulated(emulator, &batch, (&collection.arena, [norms, statics, globals]), seed);
    let rounds = batch.said_as_added(&output).into_iter().map(|said| said[2]);
    batch.answers(&output).into_iter().zip(rounds).collect()
}

fn emulator() -> Option<Emulator> {
    let source = source::<WangTuning>();
    Emulator::compile(source.text, &WangTuning::kernels(), &source.sizes)
}

#[test]
fn twin_wang_answers_are_exact_with_lists_of_any_length() {
    let Some(emulator) = emulator() else { return };
    // Queries that end before their shortest list does, and those that the CPU has to end.
    let mut early = 0;
    let mut begun = 0;
    let mut all = 0;
    for (seed, round) in (0..).zip([64, 128, 256, 64, 512]) {
        let mut random = Random(seed + 1);
        let alpha = [0.3, 0.7, 0.0, 1.0, 0.9][seed as usize];
        let collection = Collection::new(2900, 12, alpha, &mut random);
        let queries: Vec<Query> = [1, 2, 2, 3, 4, 2, 5, 11]
            .map(|terms| Query::new(&collection, terms, &mut random))
            .into();
        let found = run(&emulator, &collection, &queries, (round, seed));
        for (query, found) in queries.iter().zip(found) {
            assert_eq!(found, query.twin(&collection, round), "{seed} {query:?}");
            let (found, rounds) = found;
            let expected = query.and_all_from(&collection, Vec::new(), 0);
            let documents = collection.norms.len() as u32;
            let from = found.rest.unwrap_or(documents);
            let whole = query.and_all_from(&collection, found.hits, from);
            assert_eq!(whole, expected, "{seed} {query:?}");
            let there = query.lists.iter().map(|&n| collection.lists[n].laid);
            let shortest = there.min_by_key(|laid| laid.df).unwrap().postings;
            all += 1;
            begun += usize::from(found.rest.is_some());
            let ended = found.rest.is_none() && rounds < shortest.div_ceil(round);
            early += usize::from(ended);
        }
    }
    assert!(early > 5 && begun > 5 && early + begun < all, "{early} {begun} of {all}");
}

/// The first round takes the documents of the shortest list before 1024, and the beginning of the
/// other ends before 640: the best document, 800, is dropped, and the printed test compares with
/// document 1024, behind which all are poor.
#[test]
fn wang_loses_no_document_behind_the_beginning_of_a_list() {
    let Some(emulator) = emulator() else { return };
    let documents = 2400;
    let by_round = |first: f32, later: f32| -> Vec<f32> {
        (0..documents).map(|docid| if docid < 1024 { first } else { later }).collect()
    };
    let wang = Wang::new(0.0).unwrap();
    let parts = (wang, by_round(9.0, 99.0), vec![0.0; 2400], by_round(0.9, 0.02));
    let mut collection = Collection::of_lists(parts, Vec::new(), &mut Random(1));
    let form = Form::named("bp128", 128).unwrap();
    collection.push((0..documents).step_by(4).map(|docid| (docid, 1)).collect(), form, None, true);
    let tf = |docid| if docid == 800 { 1000 } else { 1 };
    collection.push((0..documents).map(|docid| (docid, tf(docid))).collect(), form, Some(5), true);
    let query = Query { lists: vec![0, 1], k: 1 };
    let found = run(&emulator, &collection, std::slice::from_ref(&query), (256, 0));
    let (found, rounds) = found[0].clone();
    assert_eq!((found.hits[0].docid, found.rest, rounds), (0, Some(640), 1));
    assert_eq!(query.and_all_from(&collection, found.hits, 640)[0].docid, 800);
    // The score of document 0 is not below what the printed test compares it with.
    let printed = collection.globals[1024];
    assert!(query.and_all_from(&collection, Vec::new(), 1024)[0].score < printed);
}

#[test]
fn a_batch_of_wang_takes_what_it_has_room_for() {
    let mut random = Random(5);
    let mut collection = Collection::new(900, 0, 0.3, &mut random);
    let form = Form::named("bp128", 128).unwrap();
    collection.push((0..900).map(|docid| (docid, 1)).collect(), form, None, false);
    collection.push((0..300).map(|docid| (docid, 2)).collect(), form, None, true);
    let query = Query { lists: vec![0, 1], k: 10 };
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
    let needs = wang_shared_bytes(64, 2, 16);
    let rooms = [
        BatchRoom { hits: 39, ..ROOM },
        BatchRoom { terms: 7, ..ROOM },
        BatchRoom { shared_bytes: needs - 1, ..ROOM },
    ];
    for room in rooms {
        batch.room = room;
        assert!(!query.add(&collection, &mut batch), "{room:?}");
    }
    batch.room = BatchRoom { hits: 40, terms: 8, shared_bytes: needs, ..ROOM };
    assert!(query.add(&collection, &mut batch));
    assert!(ROUNDS.iter().all(|round| round.is_power_of_two() && *round >= 32));
}
