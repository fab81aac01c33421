//! A batch of queries, and their results.
//!
//! Records are in the order of [`Groups`]. AND+OR has two; that of OR is done if AND finds too few.

use super::fixed::{FixedWeights, rank_in_sample};
use super::list::Layout;
use super::list::impacts::SPREAD;
use super::plan::{
    MOST_HITS, NONE, OVERFLOWN, PlacedTerm, QueryLimits, QueryRecord, QueryState, Scale,
    TermRecord, bits, record,
};
use super::steps::Groups;
use crate::query::top_k::Hit;
use crate::query::wanted::Mode;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryBatchRoom {
    pub layout: Layout,
    /// Those of AND+OR count twice.
    pub records: usize,
    pub terms: usize,
    pub keys: u64,
    pub hits: u64,
    /// Keys that are sorted in device memory.
    pub sorted: u64,
    /// Keys of a query that are sorted in shared memory.
    pub sorted_shared: u32,
    /// Room for candidates of a query, at least.
    pub candidates: u32,
    pub candidates_per_hit: u32,
}

/// Of queries for more hits most windows have some, and few queries keep no device busy with the
/// windows of blocks.
pub(super) const MOST_BY_BLOCKS: u32 = 100;
const LEAST_BY_BLOCKS: usize = 32;

/// Of so few queries for so many hits a sample counts smaller sums too: without a threshold all
/// windows, which are taken at once, would find nearly every document that has a term.
const FEW_QUERIES: usize = 4;
const MANY_HITS: u32 = 100;

impl QueryBatchRoom {
    /// Room for candidates of a query for `k` hits.
    pub(crate) fn capacity(&self, k: u32) -> u32 {
        // A sample's threshold lets some times k documents through until it has risen.
        (self.candidates_per_hit * k).clamp(self.candidates.max(k), (1 << 21).max(self.candidates))
    }

    /// Keys of a query that are sorted in device memory.
    fn sorted_for(&self, k: u32) -> u64 {
        if k > self.sorted_shared { u64::from(k).next_power_of_two() } else { 0 }
    }
}

#[derive(Clone, Debug)]
pub struct BatchQuery {
    /// In the query's order; at least one.
    pub terms: Vec<PlacedTerm>,
    /// The most hits, 1 to [`MOST_HITS`].
    pub k: u32,
    pub mode: Mode,
    pub docids: Range<u32>,
    pub floors: Floors,
}

/// Bins of AND and sums of OR below which no document is among the best; 0 if unknown. Of learned
/// weights: a rank in the sample, 0 for the usual one, and whether others had too many candidates.
pub(crate) type Floors = [u32; 2];

impl BatchQuery {
    /// Whether a device can answer it, by the weights, the number of terms and k.
    pub fn is_possible(&self) -> bool {
        let is_k = (1..=MOST_HITS as u32).contains(&self.k);
        is_k && Scale::new(self.terms.iter().map(PlacedTerm::most)).is_some()
    }

    fn records(&self) -> usize {
        if self.mode == Mode::AndOr { 2 } else { 1 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum BatchAnswer {
    /// Best first.
    Hits(Vec<Hit>),
    /// It had more candidates than room. With these floors it has fewer; if it was asked with just
    /// these, it has to be answered in another way.
    Overflown(Floors),
}

/// Before the records of a batch's input.
pub(super) const INPUT_HEAD_BYTES: usize = 16;

#[derive(Debug, Default)]
pub struct QueryBatch {
    pub terms: Vec<TermRecord>,
    pub records: Vec<QueryRecord>,
    pub groups: Groups,
    /// Of all records, at most.
    pub hits: u64,
    /// Of each query its records of AND and of OR.
    places: Vec<[Option<u32>; 2]>,
    queries: Vec<BatchQuery>,
    /// Of queries for learned weights.
    fixed: Vec<FixedWeights>,
    used: Used,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    records: usize,
    terms: usize,
    keys: u64,
    hits: u64,
    sorted: u64,
}

impl QueryBatch {
    pub(crate) fn clear(&mut self) {
        let Self { terms, records, groups, hits, places, queries, fixed, used } = self;
        fixed.clear();
        terms.clear();
        records.clear();
        places.clear();
        queries.clear();
        *groups = Groups::default();
        *hits = 0;
        *used = Used::default();
    }

    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Takes a query, or returns it for want of room, which one that is not
    /// [possible](BatchQuery::is_possible) never has, nor one of learned weights whose sums might
    /// not fit. Queries that are asked again are not answered by blocks, so they have no room
    /// beside others that may be.
    pub fn add(&mut self, query: BatchQuery, room: &QueryBatchRoom) -> Result<(), BatchQuery> {
        let fixed = match room.layout {
            Layout::Bounds if query.is_possible() => None,
            Layout::Bounds => return Err(query),
            Layout::Impacts | Layout::DocumentBlocks => match FixedWeights::new(&query.terms) {
                None => return Err(query),
                fixed => fixed,
            },
        };
        let records = query.records();
        let many = records as u64;
        let sorted = room.sorted_for(query.k);
        let used = Used {
            records: self.used.records + records,
            terms: self.used.terms + records * query.terms.len(),
            keys: self.used.keys + many * u64::from(room.capacity(query.k)),
            hits: self.used.hits + many * u64::from(query.k),
            sorted: self.used.sorted + many * sorted,
        };
        let is_new = |query: &BatchQuery| query.floors == [0; 2];
        let first = self.queries.first().filter(|_| room.layout == Layout::DocumentBlocks);
        let fits = first.is_none_or(|first| is_new(first) == is_new(&query))
            && used.records <= room.records
            && used.terms <= room.terms
            && used.keys <= room.keys
            && used.hits <= room.hits
            && used.sorted <= room.sorted;
        if !fits {
            return Err(query);
        }
        self.used = used;
        self.queries.push(query);
        self.fixed.extend(fixed);
        Ok(())
    }

    pub fn finish(&mut self, room: &QueryBatchRoom) {
        self.terms.clear();
        self.records.clear();
        self.places.clear();
        self.places.resize(self.queries.len(), [None; 2]);
        if room.layout != Layout::Bounds {
            return self.finish_impacts(room);
        }
        let is_few = self.queries.len() <= FEW_QUERIES;
        let mut keys = 0;
        let mut hits = 0;
        let mut sorted = 0;
        let mut counts = [0; 3];
        for (group, count) in counts.iter_mut().enumerate() {
            for (query, places) in self.queries.iter().zip(&mut self.places) {
                let is_or = group > 0;
                let wanted = match query.mode {
                    Mode::And => !is_or,
                    Mode::Or => is_or,
                    Mode::AndOr => true,
                };
                let is_narrow = bits(query.terms.len()) == 8;
                if !wanted || (is_or && is_narrow != (group == 1)) {
                    continue;
                }
                let asked = QueryLimits {
                    k: query.k,
                    docids: query.docids.clone(),
                    capacity: room.capacity(query.k),
                    after: places[0].filter(|_| is_or).unwrap_or(NONE),
                    floor: query.floors[usize::from(is_or)],
                };
                let made = record(&query.terms, &asked, &mut self.terms);
                let (made, _) = made.expect("only queries that are possible are taken");
                let bar = if is_few && query.k > MANY_HITS { made.bar / 8 } else { made.bar };
                places[usize::from(is_or)] = Some(self.records.len() as u32);
                self.records.push(QueryRecord { keys, hits, sorted, bar, ..made });
                keys += u64::from(made.capacity);
                hits += made.k;
                sorted += room.sorted_for(query.k);
                *count += 1;
            }
        }
        let [all, narrow, wide] = counts;
        self.groups = Groups { all, narrow, wide, by_blocks: false };
        self.hits = u64::from(hits);
    }

    fn finish_impacts(&mut self, room: &QueryBatchRoom) {
        let suits = |query: &BatchQuery| query.k <= MOST_BY_BLOCKS && query.floors == [0; 2];
        let by_blocks = room.layout == Layout::DocumentBlocks
            && self.queries.len() >= LEAST_BY_BLOCKS
            && self.queries.iter().all(suits);
        let mut next = QueryRecord { after: NONE, ..QueryRecord::default() };
        for (number, (query, fixed)) in self.queries.iter().zip(&self.fixed).enumerate() {
            let k = query.k;
            let capacity = room.capacity(k);
            let slack = u32::from(!fixed.is_exact);
            // Where all documents have room, none need be left out.
            let bar = match query.floors[0] {
                0 if query.docids.len() <= capacity as usize => 0,
                // Of one window. Scores are smaller than sums that are not exact.
                0 if by_blocks => k << slack,
                0 => rank_in_sample(k, SPREAD),
                rank => rank,
            };
            let terms = query.terms.len() as u32;
            self.places[number][1] = Some(number as u32);
            self.records.push(QueryRecord { terms, k, capacity, bar, slack, ..next });
            next.first_term += terms;
            next.keys += u64::from(capacity);
            next.hits += k;
            next.sorted += room.sorted_for(k);
            let multipliers = query.terms.iter().zip(&fixed.multipliers);
            self.terms.extend(multipliers.map(|(term, &multiplier)| TermRecord {
                place: term.place,
                postings: term.placed.postings,
                multiplier,
                weight: term.weight.factor(),
                ..TermRecord::default()
            }));
        }
        let wide = self.fixed.iter().filter(|fixed| !fixed.is_exact).count() as u32;
        self.groups = Groups { all: 0, narrow: self.queries.len() as u32 - wide, wide, by_blocks };
        self.hits = u64::from(next.hits);
    }

    /// Bytes that [`write`](Self::write) writes.
    pub(crate) fn input_bytes(&self) -> usize {
        INPUT_HEAD_BYTES + size_of_val(&self.records[..]) + size_of_val(&self.terms[..])
    }

    /// What `query_begin` reads.
    ///
    /// # Panics
    /// If there is no room for [`input_bytes`](Self::input_bytes).
    pub(crate) fn write(&self, to: &mut [u8]) {
        let records: &[u8] = bytemuck::cast_slice(&self.records);
        let terms: &[u8] = bytemuck::cast_slice(&self.terms);
        let head = [records.len() as u32 / 16, terms.len() as u32 / 16, 0, 0];
        let (first, to) = to.split_at_mut(INPUT_HEAD_BYTES);
        first.copy_from_slice(bytemuck::cast_slice(&head));
        to[..records.len()].copy_from_slice(records);
        to[records.len()..][..terms.len()].copy_from_slice(terms);
    }

    /// From the states of all records and their hits.
    pub(crate) fn answer(&self, query: usize, states: &[QueryState], hits: &[u64]) -> BatchAnswer {
        if let Some(fixed) = self.fixed.get(query) {
            return self.answer_of_impacts(query, fixed, &states[query], hits);
        }
        let of = |place: u32, is_or: bool| {
            let record = &self.records[place as usize];
            let state = states[place as usize];
            match state.hits {
                OVERFLOWN => {
                    let mut floors = self.queries[query].floors;
                    let slack = if is_or { record.slack } else { 0 };
                    let floor = &mut floors[usize::from(is_or)];
                    *floor = state.threshold.saturating_sub(slack).max(*floor);
                    BatchAnswer::Overflown(floors)
                }
                len => {
                    let keys = &hits[record.hits as usize..][..len.min(record.k) as usize];
                    BatchAnswer::Hits(keys.iter().map(|&key| Hit::of_key(key)).collect())
                }
            }
        };
        match self.places[query] {
            [Some(all), Some(any)] => match of(all, false) {
                BatchAnswer::Hits(hits) if hits.len() < self.queries[query].k as usize => {
                    of(any, true)
                }
                answered => answered,
            },
            [Some(place), None] => of(place, false),
            [None, Some(place)] => of(place, true),
            [None, None] => BatchAnswer::Hits(Vec::new()),
        }
    }

    fn answer_of_impacts(
        &self,
        query: usize,
        fixed: &FixedWeights,
        state: &QueryState,
        hits: &[u64],
    ) -> BatchAnswer {
        let record = &self.records[query];
        let BatchQuery { k, floors, .. } = self.queries[query];
        // A guess that was too high is lowered; all windows are asked if some were not.
        let usual = || [rank_in_sample(k, SPREAD), 0];
        let by_blocks = self.groups.by_blocks;
        let lower = || if by_blocks { usual() } else { [record.bar * 8, floors[1]] };
        match state.hits {
            OVERFLOWN if by_blocks => BatchAnswer::Overflown(usual()),
            // A second time there may still be too many, such as ties.
            OVERFLOWN if floors[1] == 0 => BatchAnswer::Overflown([(record.bar / 8).max(1), 1]),
            OVERFLOWN => BatchAnswer::Overflown(floors),
            len if len < k && state.threshold > 1 => BatchAnswer::Overflown(lower()),
            len => {
                let keys = &hits[record.hits as usize..][..len as usize];
                let found = fixed.answer(keys, k, state.threshold);
                found.map_or_else(|| BatchAnswer::Overflown(lower()), BatchAnswer::Hits)
            }
        }
    }
}
