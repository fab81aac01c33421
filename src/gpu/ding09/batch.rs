//! What does a batch of queries say to the kernels, and how much memory does it take? A batch is of
//! AND, or of OR. Its queries are sorted by falling numbers of terms, so that those that have an
//! n-th term come first.

use super::list::DingLaid;
use crate::gpu::lane::{HitsOf, answers};
use crate::query::top_k::Hit;
use bytemuck::{Pod, Zeroable};
use std::collections::HashMap;
use std::ops::Range;

/// Candidates of a block, a thread each.
pub(crate) const TILE: u32 = 256;

/// Warps of a block that decodes.
pub(crate) const WARPS: u32 = 8;

/// Scores that have one maximum.
pub(crate) const GROUP: u32 = 512;

/// A term of a query, as kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct DingTermRecord {
    place: u64,
    opened: u64,
    blocks: u32,
    segments: u32,
    postings: u32,
    row: u32,
    weight: f32,
    block_len: u32,
    spare: [u32; 2],
}

/// A query, as kernels read it. Places are in words of the batch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct DingRecord {
    docids: [u64; 2],
    origins: [u64; 2],
    slots: u64,
    counts: u64,
    chosen: u64,
    decoded: u64,
    values: u64,
    scores: u64,
    maxima: [u64; 2],
    first_term: u32,
    terms: u32,
    k: u32,
    hits: u32,
    from: u32,
    to: u32,
    spare: [u32; 2],
}

/// What became of a term of AND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Rank {
    /// Blocks of its list that were decoded: counted of all lists but the shortest.
    pub chosen: u32,
    /// Documents that have the term, and all terms with shorter lists.
    pub left: u32,
}

/// A term whose list is on the device.
#[derive(Clone, Copy, Debug)]
pub struct DingTerm {
    /// Where its list begins, in bytes.
    pub place: u64,
    pub laid: DingLaid,
    pub weight: f32,
}

/// A query whose lists are on the device.
#[derive(Clone, Debug)]
pub struct DingQuery {
    /// Its terms, in its order; there is one at least.
    pub terms: Vec<DingTerm>,
    /// The most hits.
    pub k: u32,
    pub docids: Range<u32>,
}

/// What a batch may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DingRoom {
    pub words: u64,
    pub hits: u64,
    pub terms: usize,
    /// Columns whose exceptions are decoded.
    pub items: usize,
}

/// The most terms of a query.
pub(crate) const MOST_TERMS: usize = 64;

impl DingRoom {
    /// Bytes that a batch writes for its kernels, at most.
    pub(crate) fn input_bytes(&self) -> usize {
        // No more queries than terms; of each an entry in four arrays of `firsts`, and one for each
        // term.
        let firsts = 5 * (self.terms + 1) + self.terms + MOST_TERMS;
        let records = size_of::<DingRecord>() + size_of::<DingTermRecord>();
        records * self.terms + 4 * firsts + 8 * self.items + 64
    }

    /// Bytes that its kernels write for the host, at most.
    pub(crate) fn output_bytes(&self) -> usize {
        (size_of::<Rank>() + 4) * self.terms + 8 * self.hits as usize + 32
    }
}

/// Which queries a launch is for, and how many blocks each has: a part of [`DingBatch::firsts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DingShares {
    pub at: usize,
    pub queries: u32,
    pub blocks: u32,
}

/// Queries that are answered together.
#[derive(Debug, Default)]
pub struct DingBatch {
    /// Whether documents must have all terms.
    pub all_terms: bool,
    pub documents: u32,
    pub terms: Vec<DingTermRecord>,
    pub records: Vec<DingRecord>,
    /// Columns of segments whose exceptions are decoded: the term, and twice the segment and the
    /// column.
    pub items: Vec<[u32; 2]>,
    /// For launches: the first block of each query, and of one more.
    pub firsts: Vec<u32>,
    /// Tiles of candidates. Less of them is for the queries that have more terms.
    pub tiles: DingShares,
    /// Of each rank, blocks that decode.
    pub decoders: Vec<DingShares>,
    /// Blocks that make accumulators zero.
    pub clearers: DingShares,
    /// Blocks that find maxima of scores, and of these.
    pub maximisers: [DingShares; 2],
    /// The number of each query among those that were added.
    order: Vec<usize>,
    queries: Vec<DingQuery>,
    /// Lists whose exceptions have a place, by where they are.
    opened: HashMap<u64, u64>,
    used: DingRoom,
}

/// Words behind one another, each part from a multiple of four on.
struct Words(u64);

impl Words {
    fn take(&mut self, words: u64) -> u64 {
        let at = self.0;
        self.0 += words.next_multiple_of(4);
        at
    }
}

/// The number of a query's terms, the shortest list first.
fn by_length(query: &DingQuery) -> Vec<usize> {
    let mut order: Vec<usize> = (0..query.terms.len()).collect();
    order.sort_by_key(|&t| query.terms[t].laid.postings);
    order
}

fn div_up(a: u64, b: u32) -> u32 {
    u32::try_from(a.div_ceil(b.into())).unwrap_or(u32::MAX)
}

impl DingBatch {
    /// An empty batch about so many documents.
    pub(crate) fn new(documents: u32, all_terms: bool) -> Self {
        Self { documents, all_terms, ..Self::default() }
    }

    /// What it takes of its room.
    pub(crate) fn used(&self) -> &DingRoom {
        &self.used
    }

    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Takes a query of at most [`MOST_TERMS`], or gives it back if there is no room.
    pub fn add(&mut self, query: DingQuery, room: &DingRoom) -> Result<(), DingQuery> {
        let mut words = Words(self.used.words);
        let mut record = DingRecord::zeroed();
        let order = self.order_of(&query);
        self.lay(&query, &order, &mut words, &mut record);
        let new: HashMap<u64, DingLaid> = query
            .terms
            .iter()
            .filter(|term| term.laid.opened_words > 0 && !self.opened.contains_key(&term.place))
            .map(|term| (term.place, term.laid))
            .collect();
        let mut items = self.used.items;
        let opened = new.into_iter().map(|(place, laid)| {
            items += 2 * laid.segments as usize;
            (place, words.take(laid.opened_words))
        });
        let opened: Vec<(u64, u64)> = opened.collect();
        let hits = self.used.hits + u64::from(query.k);
        let terms = self.used.terms + query.terms.len();
        let used = DingRoom { words: words.0, hits, terms, items };
        let fits = used.words <= room.words
            && used.hits <= room.hits
            && used.terms <= room.terms
            && used.items <= room.items;
        if !fits || query.terms.len() > MOST_TERMS {
            return Err(query);
        }
        self.opened.extend(opened);
        self.used = used;
        self.records.push(record);
        self.queries.push(query);
        Ok(())
    }

    /// The order in which the terms of a query are worked on.
    fn order_of(&self, query: &DingQuery) -> Vec<usize> {
        if self.all_terms { by_length(query) } else { (0..query.terms.len()).collect() }
    }

    /// Blocks of the list at a rank that are decoded at most.
    fn decoded(&self, query: &DingQuery, order: &[usize], rank: usize) -> u32 {
        let blocks = query.terms[order[rank]].laid.blocks;
        match self.all_terms && rank > 0 {
            true => blocks.min(query.terms[order[0]].laid.postings),
            false => blocks,
        }
    }

    fn lay(&self, query: &DingQuery, order: &[usize], words: &mut Words, record: &mut DingRecord) {
        let decoded = (0..order.len()).map(|rank| {
            let len = query.terms[order[rank]].laid.block_len;
            u64::from(self.decoded(query, order, rank)) * u64::from(len)
        });
        let decoded = decoded.max().unwrap_or(0);
        record.decoded = words.take(decoded);
        let scores = self.scores(query, order);
        if self.all_terms {
            let m = scores;
            for at in record.docids.iter_mut().chain(&mut record.origins) {
                *at = words.take(m);
            }
            record.slots = words.take(m);
            record.counts = words.take(m.div_ceil(TILE.into()));
            let chosen = (1..order.len()).map(|rank| self.decoded(query, order, rank)).max();
            record.chosen = words.take(chosen.unwrap_or(0).into());
            record.values = words.take(m * order.len() as u64);
        } else {
            record.values = words.take(decoded);
        }
        record.scores = words.take(scores);
        let groups = scores.div_ceil(GROUP.into());
        record.maxima = [words.take(2 * groups), words.take(2 * groups.div_ceil(GROUP.into()))];
    }

    /// Scores of a query at most.
    fn scores(&self, query: &DingQuery, order: &[usize]) -> u64 {
        match self.all_terms {
            true => query.terms[order[0]].laid.postings.into(),
            false => self.documents.into(),
        }
    }

    /// Makes the records of all queries. Nothing is added after that until the batch is cleared.
    pub fn finish(&mut self) {
        let places = std::mem::take(&mut self.records);
        let mut sorted: Vec<usize> = (0..self.queries.len()).collect();
        sorted.sort_by_key(|&q| std::cmp::Reverse(self.queries[q].terms.len()));
        let orders: Vec<Vec<usize>> =
            sorted.iter().map(|&q| self.order_of(&self.queries[q])).collect();
        let mut open: HashMap<u64, u32> = HashMap::new();
        let mut hits = 0;
        for (&q, order) in sorted.iter().zip(&orders) {
            let query = &self.queries[q];
            let first_term = self.terms.len() as u32;
            for &row in order {
                let DingTerm { place, laid, weight } = query.terms[row];
                let opened = self.opened.get(&place).copied();
                if opened.is_some() {
                    open.entry(place).or_insert(self.terms.len() as u32);
                }
                self.terms.push(DingTermRecord {
                    place,
                    opened: opened.unwrap_or(0),
                    blocks: laid.blocks,
                    segments: laid.segments,
                    postings: laid.postings,
                    row: row as u32,
                    weight,
                    block_len: laid.block_len,
                    spare: [0; 2],
                });
            }
            self.records.push(DingRecord {
                first_term,
                terms: order.len() as u32,
                k: query.k,
                hits,
                from: query.docids.start,
                to: query.docids.end,
                ..places[q]
            });
            hits += query.k;
        }
        let mut open: Vec<u32> = open.into_values().collect();
        open.sort_unstable();
        for term in open {
            let segments = self.terms[term as usize].segments;
            self.items.extend((0..2 * segments).map(|item| [term, item]));
        }
        self.share(&sorted, &orders);
        self.order = sorted;
    }

    /// Deals blocks of threads to queries.
    fn share(&mut self, sorted: &[usize], orders: &[Vec<usize>]) {
        let mut firsts = Vec::new();
        let mut share = |blocks: &mut dyn Iterator<Item = u32>| {
            let (at, mut sum) = (firsts.len(), 0u32);
            firsts.push(0);
            for blocks in blocks {
                sum = sum.saturating_add(blocks);
                firsts.push(sum);
            }
            DingShares { at, queries: (firsts.len() - at - 1) as u32, blocks: sum }
        };
        let queries = || sorted.iter().map(|&q| &self.queries[q]).zip(orders);
        let scores = |(query, order): (&DingQuery, &Vec<usize>)| self.scores(query, order);
        let groups = |all| scores(all).div_ceil(GROUP.into());
        let most = orders.first().map_or(0, Vec::len);
        let decoders = (0..most).map(|rank| {
            let has = queries().filter(|(_, order)| order.len() > rank);
            let blocks = has.map(|(query, order)| self.decoded(query, order, rank));
            share(&mut blocks.map(|blocks| blocks.div_ceil(WARPS)))
        });
        let decoders = decoders.collect();
        let tiles = share(&mut queries().map(|all| div_up(scores(all), TILE)));
        let clearers = share(&mut queries().map(|all| div_up(scores(all), 4 * TILE)));
        let maximisers = [
            share(&mut queries().map(|all| div_up(groups(all), WARPS))),
            share(&mut queries().map(|all| div_up(groups(all).div_ceil(GROUP.into()), WARPS))),
        ];
        (self.tiles, self.decoders, self.clearers) = (tiles, decoders, clearers);
        (self.maximisers, self.firsts) = (maximisers, firsts);
    }

    /// The tiles of those queries that have a term at `rank`.
    pub(crate) fn tiles_at(&self, rank: usize) -> DingShares {
        let queries = self.decoders[rank].queries;
        let blocks = self.firsts[self.tiles.at + queries as usize];
        DingShares { queries, blocks, ..self.tiles }
    }

    /// Where its parts lie in what it writes for the kernels.
    pub(crate) fn input(&self) -> Input {
        let mut at = 0;
        let mut part = |bytes: usize| {
            let here = at;
            at += bytes.next_multiple_of(16);
            here
        };
        let records = part(size_of_val(&self.records[..]));
        let terms = part(size_of_val(&self.terms[..]));
        let firsts = part(size_of_val(&self.firsts[..]));
        let items = part(size_of_val(&self.items[..]));
        Input { records, terms, firsts, items, bytes: at }
    }

    /// Writes what the kernels read, from the first byte of `to` on.
    ///
    /// # Panics
    /// If there is no room for it.
    pub(crate) fn write(&self, to: &mut [u8]) {
        let Input { records, terms, firsts, items, .. } = self.input();
        let mut put = |at: usize, bytes: &[u8]| to[at..at + bytes.len()].copy_from_slice(bytes);
        put(records, bytemuck::cast_slice(&self.records));
        put(terms, bytemuck::cast_slice(&self.terms));
        put(firsts, bytemuck::cast_slice(&self.firsts));
        put(items, bytemuck::cast_slice(&self.items));
    }

    /// Where its parts lie in what the kernels write.
    pub(crate) fn output(&self) -> Output {
        let answers = (size_of::<Rank>() * self.terms.len()).next_multiple_of(16);
        let hits = answers + (4 * self.records.len()).next_multiple_of(16);
        Output { answers, hits, bytes: hits + 8 * self.used.hits as usize }
    }

    /// The answers to all queries, in the order in which they were added, best first.
    pub(crate) fn answers(&self, output: &[u8]) -> Vec<Vec<Hit>> {
        let Output { answers: counts, hits, bytes } = self.output();
        answers(self.hits(), &output[counts..hits], &output[hits..bytes])
    }

    /// Where the hits of each query are.
    fn hits(&self) -> impl ExactSizeIterator<Item = HitsOf> {
        let queries = self.records.iter().zip(&self.order);
        queries.map(|(record, &query)| HitsOf { query, k: record.k, first: record.hits })
    }

    /// Of each query of AND, in the order in which they were added, what became of its terms, the
    /// one with the shortest list first.
    pub fn ranks(&self, output: &[u8]) -> Vec<Vec<Rank>> {
        let bytes = &output[..size_of::<Rank>() * self.terms.len()];
        let ranks: Vec<Rank> =
            bytes.chunks_exact(size_of::<Rank>()).map(bytemuck::pod_read_unaligned).collect();
        let mut all = vec![Vec::new(); self.len()];
        for (record, &q) in self.records.iter().zip(&self.order) {
            all[q] = ranks[record.first_term as usize..][..record.terms as usize].to_vec();
        }
        all
    }
}

/// Where the parts of a batch's input lie, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    /// [`DingRecord`]s.
    pub records: usize,
    /// [`DingTermRecord`]s.
    pub terms: usize,
    pub firsts: usize,
    pub items: usize,
    pub bytes: usize,
}

/// Where the parts of its output lie, in bytes: [`Rank`]s come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// A u32 for each query: its hits.
    pub answers: usize,
    /// u64: the hits of all queries.
    pub hits: usize,
    pub bytes: usize,
}
