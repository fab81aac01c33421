//! Placement of trie collections on indexers (wei11, section III.E).
//!
//! Popular collections, those with the most tokens in a sample of the input, go to the CPU, whose
//! caches hold the few terms that most of their tokens are; the others go to GPUs, by index modulo
//! their number. The border balances two times:
//!
//! ```text
//! CPU:  the greatest of  popular tokens / (CPU indexers * tokens a second of one),
//!                        all tokens / (parsers * tokens a second of one),
//!                   and  seconds of a core for all of this / workers
//! GPU:  the greater of   all other tokens / tokens a second of all GPUs
//!                   and  tokens of the largest of the others / tokens a second of one tree
//! ```
//!
//! Cores that parse and index, as most do, are the scarce side: what a GPU takes leaves them time
//! to parse. One warp works on a collection, which is one tree, so the last line caps what may go
//! to a GPU however fast it is. The paper finds about a hundred popular collections by running
//! tests on the sample; here they follow from four rates that are measured once on a machine.
//!
//! The popular collections are cut into sets of nearly equal tokens: the largest goes first, always
//! to the set with the least (Graham 1969: no set gets more than 4/3 of the least possible). The
//! set of the worker that also writes the runs begins with the cost of that. A collection that is
//! larger than a set is cut into ranges of its terms, one for each (`dictionary::shared`).

use super::roles::Roles;
use crate::dictionary::owners::{CollectionWeights, Owners};
use crate::dictionary::shared::SharedCollection;
use crate::text::trie_collection::{FIRST_THREE_LETTERS, TRIE_COLLECTIONS};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// Tokens a second of indexers. Only their ratios matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// One parser, in tokens that it hands on.
    pub parser: f64,
    /// One CPU indexer, on popular collections.
    pub cpu: f64,
    /// One GPU with all its indexers, on unpopular collections.
    pub gpu: f64,
    /// A GPU on a single collection.
    pub gpu_tree: f64,
}

impl FromStr for Rates {
    type Err = String;

    /// In millions of tokens a second: `8,12,300,0.25`.
    fn from_str(text: &str) -> Result<Self, String> {
        let rates: Option<Vec<f64>> =
            text.split(',').map(|rate| rate.parse().ok().map(|rate: f64| rate * 1e6)).collect();
        let rates = match rates.as_deref() {
            Some(&[parser, cpu, gpu, gpu_tree]) => Some(Self { parser, cpu, gpu, gpu_tree }),
            _ => None,
        };
        let wrong = "give PARSER,CPU,GPU,TREE in millions of tokens a second, above 0";
        rates.filter(Self::are_sound).ok_or_else(|| wrong.into())
    }
}

impl Rates {
    pub fn are_sound(&self) -> bool {
        let all = [self.parser, self.cpu, self.gpu, self.gpu_tree];
        all.into_iter().all(|rate| rate > 0.0 && rate.is_finite())
    }
}

impl Default for Rates {
    /// Measured on sixteen cores and an H200 (`docs/inside/gpu-btree.md`). A tree alone reaches
    /// 0.55 million, but each launch ends with its largest tree, and blocks have few tokens each.
    fn default() -> Self {
        Self { parser: 8e6, cpu: 12e6, gpu: 300e6, gpu_tree: 0.25e6 }
    }
}

/// Writing the runs is one part in this many of all work for them.
const WRITING: u64 = 40;

#[derive(Debug)]
pub(crate) struct PlacedOwners {
    pub owners: Owners,
    /// Collections of the sample that CPU indexers own.
    pub popular: usize,
    pub seen: usize,
    /// Share of the sample's weight that CPU indexers own.
    pub cpu_share: f64,
    /// The heaviest CPU indexer, in units of their mean.
    pub cpu_heaviest: f64,
    /// Expected seconds for 10^9 units of weight, CPU and GPU.
    pub expected: (f64, f64),
}

/// Round robin, when nothing is known of the collections.
pub(crate) fn in_turn(roles: &Roles) -> Owners {
    let indexers = roles.indexers() as u32;
    Owners::new(|collection| u32::from(collection) % indexers, roles.indexing())
}

/// Places the collections by their weights, in tokens of a sample.
///
/// # Panics
/// If there is not a weight for each of the 17,613 collections, or no indexer.
pub(crate) fn by_weight(sample: &CollectionWeights, roles: &Roles, rates: &Rates) -> PlacedOwners {
    let weights = &sample.all;
    assert_eq!(weights.len(), TRIE_COLLECTIONS, "every collection has a weight");
    let mut order: Vec<u16> = (0..TRIE_COLLECTIONS as u16).collect();
    order.sort_by_key(|&c| Reverse(weights[usize::from(c)]));
    let sorted: Vec<u64> = order.iter().map(|&c| weights[usize::from(c)]).collect();
    let seen = sorted.partition_point(|&weight| weight > 0);
    let border = border(&sorted, roles, rates);
    let (popular, others) = order.split_at(border);

    let mut owner = vec![0; TRIE_COLLECTIONS];
    for &collection in others {
        owner[usize::from(collection)] = u32::from(collection) % roles.gpu_indexers.max(1) as u32;
    }
    let first_cpu = roles.gpu_indexers as u32;
    let total: u64 = sorted.iter().sum();
    let workers = roles.indexing();
    let before = |set: u32| {
        let writes = roles.workers > 1 && workers[set as usize] == roles.writing();
        if writes { total / WRITING } else { 0 }
    };
    let (shared, loads_of_shared) = shared(sample, total, roles);
    let mut sets: BinaryHeap<Reverse<(u64, u32)>> = (first_cpu..roles.indexers() as u32)
        .map(|set| Reverse((before(set) + loads_of_shared[set as usize], set)))
        .collect();
    let is_shared = |of: u16| shared.iter().any(|shared| shared.collection == of);
    for &collection in popular.iter().filter(|&&collection| !is_shared(collection)) {
        let Reverse((load, set)) = sets.pop().expect("popular collections have CPU indexers");
        owner[usize::from(collection)] = set;
        // Collections that the sample lacks are spread too.
        sets.push(Reverse((load + weights[usize::from(collection)].max(1), set)));
    }
    let loads = || sets.iter().map(|&Reverse((load, set))| load - before(set));
    let heaviest = loads().max().unwrap_or(0);
    let of_sets = loads().sum::<u64>();
    let on_cpu: u64 = sorted[..border].iter().sum();
    let times = times(on_cpu, total, sorted.get(border).copied().unwrap_or(0), roles, rates);
    let per_giga = 1e9 / (total.max(1)) as f64;
    PlacedOwners {
        owners: Owners::new(|c| owner[usize::from(c)], roles.indexing()).sharing(shared),
        popular: border.min(seen),
        seen,
        cpu_share: on_cpu as f64 / total.max(1) as f64,
        cpu_heaviest: heaviest as f64 * roles.cpu_indexers as f64 / of_sets.max(1) as f64,
        expected: (times.0 * per_giga, times.1 * per_giga),
    }
}

/// The collections with more than the part of an indexer, if all are on the CPU and the heads of
/// their terms are known; and what each indexer has of them.
fn shared(
    sample: &CollectionWeights,
    total: u64,
    roles: &Roles,
) -> (Vec<SharedCollection>, Vec<u64>) {
    let indexers = roles.indexers();
    let mut loads = vec![0; indexers];
    let mut shared = Vec::new();
    for collection in 0..FIRST_THREE_LETTERS {
        let weight: u64 = sample.heads_of(collection).map(|(_, weight)| weight).sum();
        if roles.gpu_indexers == 0 && weight * indexers as u64 > total {
            let heads = sample.heads_of(collection);
            let (cut, weights) = SharedCollection::cut(collection, indexers, heads);
            loads.iter_mut().zip(weights).for_each(|(load, weight)| *load += weight);
            shared.push(cut);
        }
    }
    (shared, loads)
}

/// Seconds for CPU and GPU with this many units on the CPU and this largest collection on a GPU.
fn times(on_cpu: u64, total: u64, largest: u64, roles: &Roles, rates: &Rates) -> (f64, f64) {
    let index = on_cpu as f64 / rates.cpu;
    let parse = total as f64 / rates.parser;
    let indexers = roles.cpu_indexers.max(1) as f64;
    let parsers = roles.parsers as f64;
    let cores = (index + parse) / roles.workers as f64;
    let cpu = (index / indexers).max(parse / parsers).max(cores);
    let gpu = (total - on_cpu) as f64 / (roles.gpus.max(1) as f64 * rates.gpu);
    (cpu, gpu.max(largest as f64 / rates.gpu_tree))
}

/// The number of popular collections: the fewest with which the slower side takes the least time.
fn border(sorted: &[u64], roles: &Roles, rates: &Rates) -> usize {
    if roles.gpu_indexers == 0 {
        return sorted.len();
    }
    if roles.cpu_indexers == 0 {
        return 0;
    }
    let total: u64 = sorted.iter().sum();
    let mut best = 0;
    let mut least = f64::INFINITY;
    let mut on_cpu = 0;
    for (border, &largest) in sorted.iter().enumerate() {
        let (cpu, gpu) = times(on_cpu, total, largest, roles, rates);
        if cpu.max(gpu) < least {
            best = border;
            least = cpu.max(gpu);
        }
        on_cpu += largest;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(all: Vec<u64>) -> CollectionWeights {
        CollectionWeights { all, ..CollectionWeights::default() }
    }

    /// Weights as Zipf's law has them, in no order.
    fn zipf(seen: usize) -> CollectionWeights {
        let mut weights = vec![0; TRIE_COLLECTIONS];
        for rank in 0..seen {
            weights[(rank * 7919 + 13) % TRIE_COLLECTIONS] = (1_000_000 / (rank + 1)) as u64;
        }
        of(weights)
    }

    #[test]
    fn rates_are_read() {
        let rates: Rates = "8,12,300,0.25".parse().unwrap();
        assert_eq!(rates, Rates::default());
        for wrong in ["", "1,2,3", "1,2,3,4,5", "1,0,3,4", "1,-2,3,4", "1,inf,3,4", "a,b,c,d"] {
            assert!(wrong.parse::<Rates>().unwrap_err().contains("millions"), "{wrong}");
        }
    }

    #[test]
    fn both_sides_finish_together() {
        let roles = Roles::new(8, None, Some(4), 2).unwrap().on_devices(2);
        let weights = zipf(5000);
        let rates = Rates { parser: 1e9, cpu: 2.0, gpu: 8.0, gpu_tree: 3.0 };
        let placed = by_weight(&weights, &roles, &rates);
        let (cpu, gpu) = placed.expected;
        assert!(cpu.max(gpu) < 1.05 * cpu.min(gpu), "{cpu} against {gpu}");
        assert!(placed.popular > 0 && placed.popular < placed.seen);
        assert!(placed.cpu_heaviest < 1.34, "{}", placed.cpu_heaviest);
        // A device that is slow on one tree gets no large one.
        let slow = by_weight(&weights, &roles, &Rates { gpu_tree: 0.01, ..rates });
        assert!(slow.popular > 5 * placed.popular, "{} and {}", slow.popular, placed.popular);
        assert!(slow.expected.0 > 0.9 * slow.expected.1);
        // Indexers that share a device are not faster than it.
        let shared = by_weight(&weights, &roles.on_devices(1), &rates);
        assert!(shared.popular > placed.popular, "{} and {}", shared.popular, placed.popular);
        // Cores that have to parse too leave more to the device.
        let parsing = by_weight(&weights, &roles, &Rates { parser: 4.0, ..rates });
        assert!(parsing.popular < placed.popular, "{} and {}", parsing.popular, placed.popular);
    }

    #[test]
    fn a_side_may_be_empty() {
        let weights = zipf(300);
        let rates = Rates::default();
        let cpu = by_weight(&weights, &Roles::alike(3), &rates);
        assert_eq!((cpu.popular, cpu.cpu_share), (300, 1.0));
        let gpu = by_weight(&weights, &Roles::new(2, None, Some(0), 3).unwrap(), &rates);
        assert_eq!((gpu.popular, gpu.cpu_share), (0, 0.0));
        assert!((0..TRIE_COLLECTIONS as u16).all(|c| gpu.owners.of(c) == u32::from(c) % 3));
        // Everything in one collection, which a GPU would take one token after the other.
        let mut one = vec![0; TRIE_COLLECTIONS];
        one[77] = 1000;
        let placed = by_weight(&of(one), &Roles::new(2, None, Some(1), 1).unwrap(), &rates);
        assert_eq!((placed.owners.of(77), placed.popular), (1, 1));
        // An empty sample.
        let none = by_weight(&CollectionWeights::default(), &Roles::alike(2), &rates);
        assert_eq!(none.owners.on_worker(0).count(), 1);
        assert_eq!((none.seen, none.cpu_share), (0, 0.0));
    }

    proptest! {
        #[test]
        fn law_places_every_collection(
            weights in prop::collection::vec(0u64..1000, 0..400),
            cpu in 0usize..6, gpu in 0usize..4, workers in 1usize..9,
            rates in (1u32..100, 1u32..100, 1u32..100),
        ) {
            prop_assume!(cpu + gpu > 0);
            let roles = Roles::new(workers, None, Some(cpu), gpu).unwrap().on_devices(gpu);
            let (cpu_rate, gpu_rate, tree) = rates;
            let rates = Rates {
                parser: 50.0,
                cpu: cpu_rate.into(),
                gpu: gpu_rate.into(),
                gpu_tree: tree.into(),
            };
            let mut all = vec![0; TRIE_COLLECTIONS];
            for (i, weight) in weights.iter().enumerate() {
                all[i * 41] = *weight;
            }
            let placed = by_weight(&of(all.clone()), &roles, &rates);
            prop_assert_eq!(placed.owners.len(), cpu + gpu);
            let mut loads = vec![0u64; cpu + gpu];
            let mut least_popular = u64::MAX;
            let mut most_unpopular = 0;
            for c in 0..TRIE_COLLECTIONS as u16 {
                let owner = placed.owners.of(c);
                let weight = all[usize::from(c)];
                if roles.on_gpu(owner) {
                    prop_assert_eq!(owner as usize, usize::from(c) % gpu);
                    most_unpopular = most_unpopular.max(weight);
                } else {
                    loads[owner as usize] += weight.max(1);
                    least_popular = least_popular.min(weight);
                }
            }
            prop_assert!(least_popular >= most_unpopular);
            // Largest first: no set is above the mean by more than the largest collection, and its
            // part of what the writer is spared.
            let on_cpu = &loads[gpu..];
            let heaviest = on_cpu.iter().max().copied().unwrap_or(0);
            let mean = on_cpu.iter().sum::<u64>() / cpu.max(1) as u64;
            let spared = all.iter().sum::<u64>() / WRITING;
            prop_assert!(heaviest <= mean + 1 + spared + weights.iter().max().copied().unwrap_or(0));
        }
    }
}
