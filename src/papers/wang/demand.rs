//! Admission of lists to a cache that is too small for all: the policies of the paper (sections
//! 2.1.5 and 3.3), by the queries of a training log.
//!
//! The unit is 256 postings, as in the paper: two blocks of 128, four of 64, one of 512. Searches
//! stop early, so the units of a list are visited less often the further back they are, and what is
//! admitted of a list is its beginning.

use super::rounds::WANG;
use super::visits::Visitor;
use crate::crew::Crew;
use crate::index::cache_plan::{CachePlan, CachedList, CachedLists, PlanOf};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::lexicon::TermEntry;
use crate::query::plan::{Plan, Planner};
use crate::query::snapshot::Snapshot;
use crate::query::wanted::{Mode, Wanted};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use crate::index::cache_plan::CachePolicy;

pub(crate) const UNIT: usize = 256;

/// Queries that a thread counts at a time.
const AT_ONCE: usize = 64;

#[derive(Clone, Debug)]
pub struct ListDemand {
    pub run: u32,
    pub entry: TermEntry,
    pub blocks: u32,
    pub queries: u32,
    /// For each unit, queries that visited it; it never rises.
    pub visits: Vec<u32>,
}

impl ListDemand {
    /// Pairs of a number of units and the queries that visited just this many, where there are any.
    pub(crate) fn by_units(&self) -> impl Iterator<Item = (u32, u32)> {
        let before = std::iter::once(self.queries).chain(self.visits.iter().copied());
        let behind = self.visits.iter().copied().chain([0]);
        let queries = before.zip(behind).map(|(before, behind)| before - behind);
        (0..).zip(queries).filter(|(_, queries)| *queries > 0)
    }

    /// About the bytes of the first units.
    fn bytes_of(&self, units: usize) -> u64 {
        let all = self.visits.len().max(1) as u128;
        (u128::from(self.entry.bytes) * units as u128 / all) as u64
    }
}

/// Demand of a log's queries for the lists of an index. Takes 4 bytes for each unit of their lists.
#[derive(Clone, Debug)]
pub struct Demand {
    unit_blocks: usize,
    /// By run and offset of the list there.
    lists: HashMap<(u32, u64), ListDemand>,
    pub queries: u64,
    /// Queries that found nothing, which do not count (section 4.1).
    pub without_answer: u64,
}

impl Demand {
    pub fn new(block_len: usize) -> Self {
        let unit_blocks = (UNIT / block_len.max(1)).max(1);
        Self { unit_blocks, lists: HashMap::new(), queries: 0, without_answer: 0 }
    }

    /// Counts the queries of a log with their times, on several threads: AND for the best k
    /// documents, by rounds that stop early if documents are in global order for the snapshot's
    /// score. `progress` counts texts.
    pub fn of_log<S: AsRef<str> + Sync>(
        snapshot: &Arc<Snapshot>,
        log: &[(S, u32)],
        k: usize,
        threads: usize,
        progress: &Stop,
    ) -> Result<Self, IndexError> {
        progress.expect(log.len() as u64);
        let wanted = Wanted { k, mode: Mode::And, algorithm: WANG, ..Wanted::default() };
        let next = AtomicUsize::new(0);
        let block_len = snapshot.generation().manifest().settings.block_size as usize;
        let work = || -> Result<Self, IndexError> {
            let mut planner = Planner::default();
            let mut visitor = Visitor::default();
            let mut demand = Self::new(block_len);
            loop {
                let start = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                let end = log.len().min(start.saturating_add(AT_ONCE));
                let Some(texts @ [_, ..]) = log.get(start..end) else { return Ok(demand) };
                for (text, times) in texts {
                    match planner.plan(snapshot, wanted, text.as_ref()) {
                        Ok(plan) => demand.count(&mut visitor, &plan, *times)?,
                        Err(IndexError::Query { .. }) => demand.without_answer += u64::from(*times),
                        Err(error) => return Err(error),
                    }
                    progress.pass(1);
                }
            }
        };
        let mut all = Self::new(block_len);
        for demand in Crew::new("demand").all(vec![&work; threads.max(1)]) {
            all.join(demand?);
        }
        Ok(all)
    }

    /// Answers a query that was asked this many times and adds its visits, unless it finds nothing.
    pub fn count(
        &mut self,
        visitor: &mut Visitor,
        plan: &Plan,
        times: u32,
    ) -> Result<(), IndexError> {
        if visitor.visit(plan)?.is_empty() {
            self.without_answer += u64::from(times);
            return Ok(());
        }
        self.queries += u64::from(times);
        let terms = plan.terms().len();
        for (number, (entry, &(visited, all))) in
            plan.lists().iter().zip(&visitor.blocks).enumerate()
        {
            if let Some(entry) = entry {
                self.add((number / terms) as u32, *entry, visited, all, times);
            }
        }
        Ok(())
    }

    /// Adds a query that visited this many blocks of a list, which has `all`, this many times.
    fn add(&mut self, run: u32, entry: TermEntry, visited: usize, all: usize, times: u32) {
        let units = visited.div_ceil(self.unit_blocks);
        self.add_units(run, entry, all, units, times);
    }

    /// Adds queries that visited this many units of a list with this many blocks.
    pub(crate) fn add_units(
        &mut self,
        run: u32,
        entry: TermEntry,
        blocks: usize,
        units: usize,
        queries: u32,
    ) {
        let all = blocks.div_ceil(self.unit_blocks);
        let list = self.lists.entry((run, entry.offset)).or_insert_with(|| ListDemand {
            run,
            entry,
            blocks: blocks as u32,
            queries: 0,
            visits: vec![0; all],
        });
        list.queries += queries;
        list.visits.iter_mut().take(units).for_each(|visits| *visits += queries);
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = &ListDemand> {
        self.lists.values()
    }

    fn join(&mut self, other: Self) {
        self.queries += other.queries;
        self.without_answer += other.without_answer;
        for (key, more) in other.lists {
            match self.lists.entry(key) {
                Entry::Vacant(room) => _ = room.insert(more),
                Entry::Occupied(mut list) => {
                    let list = list.get_mut();
                    list.queries += more.queries;
                    list.visits.iter_mut().zip(more.visits).for_each(|(all, more)| *all += more);
                }
            }
        }
    }

    /// The list of the most queries; of equal ones the first of the index.
    pub fn most_wanted(&self) -> Option<&ListDemand> {
        let place = |list: &ListDemand| (list.run, list.entry.offset);
        self.lists.values().max_by_key(|list| (list.queries, std::cmp::Reverse(place(list))))
    }

    /// Plans a cache of `memory_bytes` for the best `k` hits. `lambda` is as in [`Self::admit`].
    pub fn plan(
        &self,
        of: PlanOf,
        policy: CachePolicy,
        lambda: f64,
        k: NonZeroU32,
        memory_bytes: u64,
    ) -> CachePlan {
        let Admitted { bytes: cached_bytes, cached } = self.admit(policy, memory_bytes, lambda);
        let queries = self.queries;
        let k = k.get();
        CachePlan { of, policy, lambda, k, queries, memory_bytes, cached_bytes, cached }
    }

    /// Fills `bytes` of memory. [`CachePolicy::Vfb`] takes at most the share `lambda` of a list.
    pub fn admit(&self, policy: CachePolicy, bytes: u64, lambda: f64) -> Admitted {
        let mut lists: Vec<&ListDemand> = self.lists.values().collect();
        lists.sort_unstable_by_key(|list| (list.run, list.entry.offset));
        if policy != CachePolicy::Vfb {
            let worth = |list: &ListDemand| match policy {
                CachePolicy::QtfDf => f64::from(list.queries) / f64::from(list.entry.df.max(1)),
                _ => f64::from(list.queries),
            };
            // Stable, so that of equal lists the first of the index comes first.
            lists.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        }
        let mut admission = Admission { lists, units: Vec::new(), order: Vec::new(), bytes: 0 };
        admission.units.resize(admission.lists.len(), 0);
        match policy {
            CachePolicy::Vfb => admission.by_units(bytes, lambda),
            CachePolicy::Qtf | CachePolicy::QtfDf => admission.whole(bytes),
        }
        admission.end(self.unit_blocks)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Admitted {
    pub cached: CachedLists,
    /// As on disk.
    pub bytes: u64,
}

struct Admission<'a> {
    lists: Vec<&'a ListDemand>,
    /// Admitted units of each list.
    units: Vec<usize>,
    /// Lists with admitted units, in order of admission.
    order: Vec<usize>,
    bytes: u64,
}

impl Admission<'_> {
    /// Admits the first units of a list if there is room for the missing ones.
    fn take(&mut self, number: usize, units: usize, room: u64) -> bool {
        let list = self.lists[number];
        let there = self.units[number];
        let more = list.bytes_of(units) - list.bytes_of(there);
        let fits = self.bytes + more <= room;
        if fits {
            self.bytes += more;
            self.units[number] = units;
            if there == 0 {
                self.order.push(number);
            }
        }
        fits
    }

    /// Admits whole lists in order, where there is room.
    fn whole(&mut self, room: u64) {
        for number in 0..self.lists.len() {
            self.take(number, self.lists[number].visits.len(), room);
        }
    }

    /// Admits units, most visited first, until one has no room.
    fn by_units(&mut self, room: u64, lambda: f64) {
        let mut units = Vec::new();
        for (number, list) in self.lists.iter().enumerate() {
            let most = (list.visits.len() as f64 * lambda).floor() as usize;
            let visited = list.visits.iter().take(most).take_while(|visits| **visits > 0);
            units
                .extend(visited.zip(1..).map(|(&visits, end)| (visits, list.queries, number, end)));
        }
        // Visits of a list never rise, so its units come from the first on.
        units
            .sort_unstable_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        for (_, _, number, end) in units {
            if !self.take(number, end, room) {
                break;
            }
        }
    }

    fn end(self, unit_blocks: usize) -> Admitted {
        let Self { lists, units, order, bytes } = self;
        let cached = order.into_iter().map(|number| {
            let ListDemand { run, entry, blocks: all, queries, .. } = *lists[number];
            let blocks = all.min((units[number] * unit_blocks) as u32);
            CachedList { run, entry, blocks, queries }
        });
        Admitted { cached: CachedLists::new(cached), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: u64, df: u32) -> TermEntry {
        TermEntry { df, bytes: u64::from(df), offset, ..TermEntry::default() }
    }

    /// Lists of 10, 4 and 4 blocks, of 1,280, 512 and 500 postings of a byte each.
    fn demand() -> Demand {
        let mut demand = Demand::new(128);
        for (visited, times) in [(10, 1), (3, 1), (2, 2)] {
            demand.add(0, entry(0, 1280), visited, 10, times);
        }
        for visited in [4, 4, 1] {
            demand.add(0, entry(2000, 512), visited, 4, 1);
        }
        demand.add(0, entry(3000, 500), 4, 4, 1);
        demand
    }

    fn found(admitted: &Admitted) -> Vec<Option<usize>> {
        let entries = [entry(0, 1280), entry(2000, 512), entry(3000, 500)];
        entries.iter().map(|entry| admitted.cached.blocks(0, entry)).collect()
    }

    #[test]
    fn visits_never_rise() {
        let demand = demand();
        let list = demand.most_wanted().unwrap();
        assert_eq!((list.queries, &list.visits[..]), (4, &[4, 2, 1, 1, 1][..]));
        assert_eq!(list.by_units().collect::<Vec<_>>(), [(1, 2), (2, 1), (5, 1)]);
        // The same from what is stored.
        let mut again = Demand::new(128);
        for list in demand.lists() {
            for (units, queries) in list.by_units() {
                again.add_units(0, list.entry, list.blocks as usize, units as usize, queries);
            }
        }
        let list = again.most_wanted().unwrap();
        assert_eq!((list.queries, &list.visits[..]), (4, &[4, 2, 1, 1, 1][..]));
    }

    #[test]
    fn units_are_admitted_by_visits_and_then_by_queries() {
        let demand = demand();
        let vfb = |bytes, lambda| found(&demand.admit(CachePolicy::Vfb, bytes, lambda));
        assert_eq!(vfb(255, 1.0), [None, None, None]);
        assert_eq!(vfb(256, 1.0), [Some(2), None, None]);
        assert_eq!(vfb(512, 1.0), [Some(2), Some(2), None]);
        // Two visits of the list that four queries have, then of that of three.
        assert_eq!(vfb(768, 1.0), [Some(4), Some(2), None]);
        assert_eq!(vfb(1024, 1.0), [Some(4), Some(4), None]);
        assert_eq!(vfb(1 << 20, 1.0), [Some(10), Some(4), Some(4)]);
        assert_eq!(vfb(1 << 20, 0.75), [Some(6), Some(2), Some(2)]);
        assert_eq!(vfb(1 << 20, 0.1), [None, None, None]);
    }

    #[test]
    fn whole_lists_are_admitted_by_queries_or_by_queries_for_a_document() {
        let demand = demand();
        let of = |policy, bytes| found(&demand.admit(policy, bytes, 1.0));
        assert_eq!(of(CachePolicy::Qtf, 1280), [Some(10), None, None]);
        // The second does not fit, the third does.
        assert_eq!(of(CachePolicy::Qtf, 1780), [Some(10), None, Some(4)]);
        assert_eq!(of(CachePolicy::QtfDf, 1012), [None, Some(4), Some(4)]);
        let all = demand.admit(CachePolicy::QtfDf, 1 << 20, 1.0);
        assert_eq!((all.bytes, all.cached.lists().len()), (2292, 3));
    }
}
