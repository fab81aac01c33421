//! Which parts of which lists are worth a place in a memory that has not room for all? The admission
//! policies of `wang` (sections 2.1.5 and 3.3), by the queries of a training log.
//!
//! The unit is two blocks of postings, 256 documents in lists with blocks of 128, as in the paper. Searches stop
//! early, so that the units of a list are visited the less often the further back they are: what is admitted
//! of a list is its beginning.

use crate::index::lexicon::TermEntry;
use std::collections::HashMap;

/// Blocks of a unit.
pub const UNIT_BLOCKS: usize = 2;

/// By what lists, or parts of lists, are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Units by how many queries visit them, of equal ones those of the terms that queries have most often;
    /// at most a share of a list.
    Vfb,
    /// Whole lists by how many queries have their terms.
    Qtf,
    /// Whole lists by how many queries have their terms, for each document of the list.
    QtfDf,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Vfb, Self::Qtf, Self::QtfDf];

    /// Its name, as the paper has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vfb => "vfb",
            Self::Qtf => "qtf",
            Self::QtfDf => "qtfdf",
        }
    }
}

/// What queries wanted of a list.
#[derive(Clone, Debug)]
pub struct ListDemand {
    /// The list.
    pub entry: TermEntry,
    /// Queries that have its term.
    pub queries: u64,
    /// For each unit, queries that visited it; it never rises.
    pub visits: Vec<u32>,
}

impl ListDemand {
    /// About the bytes of the first units.
    fn bytes_of(&self, units: usize) -> u64 {
        let all = self.visits.len().max(1) as u128;
        (u128::from(self.entry.bytes) * units as u128 / all) as u64
    }
}

/// What the queries of a log wanted of the lists of a run.
///
/// Memory: 4 bytes for each unit of the lists.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// By where the list begins.
    lists: HashMap<u64, ListDemand>,
}

impl Demand {
    /// Adds a query that has visited the first blocks of a list, of so many.
    pub fn add(&mut self, entry: TermEntry, visited: usize, blocks: usize) {
        let units = blocks.div_ceil(UNIT_BLOCKS);
        let list = self.lists.entry(entry.offset).or_insert_with(|| ListDemand {
            entry,
            queries: 0,
            visits: vec![0; units],
        });
        list.queries += 1;
        for visits in list.visits.iter_mut().take(visited.div_ceil(UNIT_BLOCKS)) {
            *visits += 1;
        }
    }

    /// The list whose term most queries have; of equal ones the first of the run.
    pub fn most_wanted(&self) -> Option<&ListDemand> {
        self.lists.values().max_by_key(|list| (list.queries, u64::MAX - list.entry.offset))
    }

    /// Fills a memory of so many bytes. `lambda` is the greatest share of a list that [`Policy::Vfb`] takes.
    pub fn admit(&self, policy: Policy, bytes: u64, lambda: f64) -> Admitted {
        let mut lists: Vec<&ListDemand> = self.lists.values().collect();
        lists.sort_unstable_by_key(|list| list.entry.offset);
        let mut admitted = Admitted::default();
        if policy == Policy::Vfb {
            admitted.units(&lists, bytes, lambda);
            return admitted;
        }
        let worth = |list: &ListDemand| match policy {
            Policy::QtfDf => list.queries as f64 / f64::from(list.entry.df.max(1)),
            _ => list.queries as f64,
        };
        // Stable, so that of equal lists the first of the run comes first.
        lists.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        for list in lists {
            if admitted.bytes + list.entry.bytes <= bytes {
                admitted.take(list, list.visits.len());
            }
        }
        admitted
    }
}

/// What was admitted.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    /// Units of each list that has any, by where the list begins.
    units: HashMap<u64, usize>,
    /// Bytes of them all.
    pub bytes: u64,
}

impl Admitted {
    /// Blocks of a list that are there, from its first on; none if the list has to be brought whole.
    pub fn blocks(&self, entry: &TermEntry) -> Option<usize> {
        self.units.get(&entry.offset).map(|&units| units * UNIT_BLOCKS)
    }

    /// Lists of which something is there.
    pub fn lists(&self) -> usize {
        self.units.len()
    }

    /// Admits the first units of a list, and those of them that are not there yet count.
    fn take(&mut self, list: &ListDemand, units: usize) {
        let there = self.units.insert(list.entry.offset, units).unwrap_or(0);
        self.bytes += list.bytes_of(units) - list.bytes_of(there);
    }

    fn units(&mut self, lists: &[&ListDemand], bytes: u64, lambda: f64) {
        let mut units = Vec::new();
        for (number, list) in lists.iter().enumerate() {
            let most = (list.visits.len() as f64 * lambda).floor() as usize;
            let visited = list.visits.iter().take(most).take_while(|visits| **visits > 0);
            units.extend(
                visited.zip(0..).map(|(&visits, unit)| (visits, list.queries, number, unit)),
            );
        }
        // Visits of a list never rise, so its units come from the first on.
        units
            .sort_unstable_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        for (_, _, number, unit) in units {
            let list = lists[number];
            let more = list.bytes_of(unit + 1) - list.bytes_of(unit);
            if self.bytes + more > bytes {
                break;
            }
            self.take(list, unit + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: u64, df: u32) -> TermEntry {
        TermEntry { df, bytes: u64::from(df), offset }
    }

    /// Lists of 10, 4 and 4 blocks, of 1,280, 512 and 500 postings of a byte each.
    fn demand() -> Demand {
        let mut demand = Demand::default();
        for visited in [10, 3, 2, 2] {
            demand.add(entry(0, 1280), visited, 10);
        }
        for visited in [4, 4, 1] {
            demand.add(entry(2000, 512), visited, 4);
        }
        demand.add(entry(3000, 500), 4, 4);
        demand
    }

    fn found(admitted: &Admitted) -> Vec<Option<usize>> {
        let entries = [entry(0, 1280), entry(2000, 512), entry(3000, 500)];
        entries.iter().map(|entry| admitted.blocks(entry)).collect()
    }

    #[test]
    fn visits_never_rise() {
        let demand = demand();
        let list = demand.most_wanted().unwrap();
        assert_eq!((list.queries, &list.visits[..]), (4, &[4, 2, 1, 1, 1][..]));
    }

    #[test]
    fn units_are_admitted_by_visits_and_then_by_queries() {
        let demand = demand();
        let vfb = |bytes, lambda| found(&demand.admit(Policy::Vfb, bytes, lambda));
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
        assert_eq!(of(Policy::Qtf, 1280), [Some(10), None, None]);
        // The second does not fit, the third does.
        assert_eq!(of(Policy::Qtf, 1780), [Some(10), None, Some(4)]);
        assert_eq!(of(Policy::QtfDf, 1012), [None, Some(4), Some(4)]);
        let all = demand.admit(Policy::QtfDf, 1 << 20, 1.0);
        assert_eq!((all.bytes, all.lists()), (2292, 3));
    }
}
