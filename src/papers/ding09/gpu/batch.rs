//! A batch of queries as the kernels read it, and the memory that it takes. A batch is of AND or of
//! OR, sorted by falling numbers of terms, so that queries with an n-th term come first.

use super::DingTuning;
use super::list::DingLaid;
use crate::papers::methods::batch::{MadeQuery, MethodBatch, PlacedQuery};
use crate::papers::methods::travelling::TravellingTerm;
use bytemuck::{Pod, Zeroable};
use std::collections::{HashMap, HashSet};

/// Candidates of a block, a thread each.
pub const TILE: u32 = 256;

pub(crate) const WARPS: u32 = 8;

const GROUP: u32 = 512;

/// Columns of segments whose exceptions a batch decodes: enough for four billion postings.
pub(super) const MOST_ITEMS: usize = 1 << 17;

/// As in `kernels/ding09/list.cuh`.
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
    travels: u32,
    spare: u32,
}

/// As in `kernels/ding09/find.cuh`; places are in words of the batch's memory.
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

/// The outcome of a term of AND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Rank {
    /// Blocks of its list that were decoded; 0 for the shortest.
    pub chosen: u32,
    pub left: u32,
}

/// The queries and blocks of a launch: the first block of each query, and of one more, are
/// [`MethodBatch::more`] from `at` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DingShares {
    pub at: usize,
    pub queries: u32,
    pub blocks: u32,
}

#[derive(Debug, Default)]
pub struct DingPlan {
    /// The term whose record has the place of a list's exceptions, by (whether it travels, place).
    opened: HashMap<(u32, u64), usize>,
    /// Columns of segments whose exceptions are decoded, with which [`MethodBatch::more`] begins:
    /// the term; twice the segment, plus the column.
    pub items: u32,
    /// Tiles of candidates; fewer of them for a later rank.
    pub tiles: DingShares,
    /// By rank.
    pub decoders: Vec<DingShares>,
    pub clearers: DingShares,
    /// Of maxima of scores, and of these.
    pub maximisers: [DingShares; 2],
}

fn div_up(a: u64, b: u32) -> u32 {
    u32::try_from(a.div_ceil(b.into())).unwrap_or(u32::MAX)
}

pub(super) fn make(
    batch: &mut MethodBatch<DingTuning>,
    query: &PlacedQuery<DingLaid>,
) -> MadeQuery<DingRecord> {
    let first = batch.terms.len();
    let hits = batch.used().hits as u32;
    let order = match batch.all_terms {
        true => query.by_length(|laid| laid.postings),
        false => (0..query.terms.len()).collect(),
    };
    batch.terms.extend(order.iter().map(|&row| {
        let TravellingTerm { place, laid, travels, weight } = query.terms[row];
        let DingLaid { blocks, segments, postings, block_len, .. } = laid;
        let travels = travels.into();
        let row = row as u32;
        let new = DingTermRecord::zeroed();
        DingTermRecord { place, blocks, segments, postings, row, weight, block_len, travels, ..new }
    }));
    let mut end = batch.used().words;
    // Each part begins at a multiple of four words.
    let mut take = |words: u64| {
        let at = end;
        end += words.next_multiple_of(4);
        at
    };
    let mut record = DingRecord {
        first_term: first as u32,
        terms: order.len() as u32,
        k: query.k,
        hits,
        from: query.docids.start,
        to: query.docids.end,
        ..DingRecord::zeroed()
    };
    batch.take_words(&mut record, &mut take);
    let mut items = 0;
    for (t, row) in (first..).zip(order) {
        let laid = &query.terms[row].laid;
        if laid.opened_words == 0 {
            continue;
        }
        let DingTermRecord { travels, place, .. } = batch.terms[t];
        let list = (travels, place);
        // An entry may be of a query that found no room, whose terms are gone.
        let known = batch.plan.opened.get(&list).filter(|&&t| t < first);
        let known = known.map(|&t| &batch.terms[t]);
        let known = known.filter(|term| (term.travels, term.place) == list);
        batch.terms[t].opened = match known.map(|term| term.opened) {
            Some(opened) => opened,
            None => {
                batch.plan.opened.insert(list, t);
                items += 2 * laid.segments as usize;
                take(laid.opened_words)
            }
        };
    }
    MadeQuery {
        record,
        words: end - batch.used().words,
        hits: query.k,
        more: 8 * items + 4 * (query.terms.len() + 4),
        shared_bytes: 0,
        class: record.terms,
        work: 0,
    }
}

pub(super) fn plan(batch: &mut MethodBatch<DingTuning>) {
    let mut opened = HashSet::new();
    for (t, term) in (0..).zip(&batch.terms) {
        if term.opened > 0 && opened.insert(term.opened) {
            batch.more.extend((0..2 * term.segments).flat_map(|item| [t, item]));
        }
    }
    batch.plan.items = batch.more.len() as u32 / 2;
    let mut more = std::mem::take(&mut batch.more);
    let mut share = |blocks: &mut dyn Iterator<Item = u32>| {
        let at = more.len();
        let mut sum = 0u32;
        more.push(0);
        for blocks in blocks {
            sum = sum.saturating_add(blocks);
            more.push(sum);
        }
        DingShares { at, queries: (more.len() - at - 1) as u32, blocks: sum }
    };
    let scores = || batch.records.iter().map(|record| batch.scores(record));
    let groups = || scores().map(|scores| scores.div_ceil(GROUP.into()));
    let tiles = share(&mut scores().map(|scores| div_up(scores, TILE)));
    let clearers = share(&mut scores().map(|scores| div_up(scores, 4 * TILE)));
    let maximisers = [
        share(&mut groups().map(|groups| div_up(groups, WARPS))),
        share(&mut groups().map(|groups| div_up(groups.div_ceil(GROUP.into()), WARPS))),
    ];
    let most = batch.records.first().map_or(0, |record| record.terms);
    let decoders = (0..most).map(|rank| {
        let has = batch.records.iter().take_while(|record| record.terms > rank);
        share(&mut has.map(|record| batch.decoded(record, rank).div_ceil(WARPS)))
    });
    let decoders = decoders.collect();
    batch.more = more;
    batch.plan =
        DingPlan { tiles, decoders, clearers, maximisers, ..std::mem::take(&mut batch.plan) };
}

impl MethodBatch<DingTuning> {
    fn terms_of(&self, record: &DingRecord) -> &[DingTermRecord] {
        &self.terms[record.first_term as usize..][..record.terms as usize]
    }

    fn scores(&self, record: &DingRecord) -> u64 {
        match self.all_terms {
            true => self.terms_of(record)[0].postings.into(),
            false => self.documents.into(),
        }
    }

    fn decoded(&self, record: &DingRecord, rank: u32) -> u32 {
        let terms = self.terms_of(record);
        let blocks = terms[rank as usize].blocks;
        match self.all_terms && rank > 0 {
            true => blocks.min(terms[0].postings),
            false => blocks,
        }
    }

    fn take_words(&self, record: &mut DingRecord, take: &mut dyn FnMut(u64) -> u64) {
        let block_len = |rank: u32| self.terms_of(record)[rank as usize].block_len;
        let each = |rank| u64::from(self.decoded(record, rank)) * u64::from(block_len(rank));
        let decoded = (0..record.terms).map(each).max().unwrap_or(0);
        let chosen = (1..record.terms).map(|rank| self.decoded(record, rank)).max();
        let scores = self.scores(record);
        record.decoded = take(decoded);
        if self.all_terms {
            for at in record.docids.iter_mut().chain(&mut record.origins) {
                *at = take(scores);
            }
            record.slots = take(scores);
            record.counts = take(scores.div_ceil(TILE.into()));
            record.chosen = take(chosen.unwrap_or(0).into());
            record.values = take(scores * u64::from(record.terms));
        } else {
            record.values = take(decoded);
        }
        record.scores = take(scores);
        let groups = scores.div_ceil(GROUP.into());
        record.maxima = [take(2 * groups), take(2 * groups.div_ceil(GROUP.into()))];
    }

    /// The tiles of the queries that have a term at `rank`.
    pub(super) fn tiles_at(&self, rank: usize) -> DingShares {
        let tiles = self.plan.tiles;
        let queries = self.plan.decoders[rank].queries;
        DingShares { queries, blocks: self.more[tiles.at + queries as usize], ..tiles }
    }

    /// For each query of AND, as added, the outcome of its terms, shortest list first.
    pub fn ranks(&self, output: &[u8]) -> Vec<Vec<Rank>> {
        let ranks = output[self.output().beside..].chunks_exact(size_of::<Rank>());
        let ranks = ranks.take(self.terms.len()).map(bytemuck::pod_read_unaligned);
        let ranks: Vec<Rank> = ranks.collect();
        let of = |record: &DingRecord| {
            ranks[record.first_term as usize..][..record.terms as usize].to_vec()
        };
        self.as_added(self.records.iter().map(of))
    }
}
