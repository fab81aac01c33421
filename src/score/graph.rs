//! A graph of links between numbered nodes, by source and by target.
//!
//! It is built on several threads: each has a range of nodes, goes through all links, and places
//! those of its nodes, so that no two write to one place and the graph is the same for any number
//! of threads.

use crate::crew::Crew;
use std::ops::Range;

/// Nodes that are summed together; slices end at multiples of it.
pub(crate) const BLOCK: u32 = 1024;

/// Memory: 8 bytes a link and 16 bytes a node; 4 more for each given link in construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    out_ends: Vec<u64>,
    targets: Vec<u32>,
    in_ends: Vec<u64>,
    sources: Vec<u32>,
}

impl Graph {
    /// The graph of the links (source, target) of all `parts`, without loops and repetitions.
    ///
    /// # Panics
    /// If a link names a node that is not there.
    pub(crate) fn new(nodes: u32, parts: Vec<Vec<(u32, u32)>>, threads: usize) -> Self {
        let (mut out_ends, mut targets) = by_source(nodes, &parts, threads);
        drop(parts);
        let ranges = ranges_of(&out_ends, threads);
        let kept = clean(&mut out_ends, &mut targets, &ranges);
        targets.truncate(kept);
        targets.shrink_to_fit();
        let (in_ends, sources) = by_target(&out_ends, &targets, threads);
        Self { out_ends, targets, in_ends, sources }
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.out_ends.len() as u32
    }

    pub(crate) fn links(&self) -> u64 {
        self.targets.len() as u64
    }

    pub(crate) fn targets(&self, node: u32) -> &[u32] {
        row(&self.out_ends, &self.targets, node)
    }

    pub(crate) fn sources(&self, node: u32) -> &[u32] {
        row(&self.in_ends, &self.sources, node)
    }

    /// The nodes of a slice: whole blocks, with about as many nodes and links to them in each.
    pub(crate) fn slice(&self, slice: usize, slices: usize) -> Range<u32> {
        let nodes = self.nodes();
        let blocks: Vec<u32> = (0..nodes).step_by(BLOCK as usize).collect();
        let before = |node: u32| u64::from(node) + start_of(&self.in_ends, node);
        let border = |slice: usize| {
            let goal = u128::from(before(nodes)) * slice as u128 / slices as u128;
            let at = blocks.partition_point(|&node| u128::from(before(node)) < goal);
            blocks.get(at).copied().unwrap_or(nodes)
        };
        border(slice)..border(slice + 1)
    }
}

fn row<'a>(ends: &[u64], values: &'a [u32], node: u32) -> &'a [u32] {
    &values[start_of(ends, node) as usize..ends[node as usize] as usize]
}

/// The start of a node's row; for the node past the last, the end of all.
fn start_of(ends: &[u64], node: u32) -> u64 {
    node.checked_sub(1).map_or(0, |before| ends[before as usize])
}

/// Ranges of nodes, one for each thread, with about as many links each.
fn ranges_of(ends: &[u64], threads: usize) -> Vec<Range<u32>> {
    let links = ends.last().copied().unwrap_or(0);
    let border = |part: usize| match part {
        0 => 0,
        part if part == threads => ends.len() as u32,
        part => {
            let first = links as u128 * part as u128 / threads as u128;
            ends.partition_point(|&end| u128::from(end) <= first) as u32
        }
    };
    (0..threads).map(|part| border(part)..border(part + 1)).collect()
}

/// The ends of rows whose lengths `count` adds up, for the nodes of a range.
fn ends_of(nodes: u32, threads: usize, count: impl Fn(Range<u32>, &mut [u64]) + Sync) -> Vec<u64> {
    let mut ends = vec![0u64; nodes as usize];
    let width = (nodes as usize).div_ceil(threads).max(1);
    let parts = ends.chunks_mut(width).enumerate().map(|(part, counts)| {
        let count = &count;
        let first = (part * width) as u32;
        move || count(first..first + counts.len() as u32, counts)
    });
    Crew::new("graph").all(parts.collect());
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    ends
}

fn fill(
    ends: &[u64],
    values: &mut [u32],
    ranges: &[Range<u32>],
    rows: impl Fn(Range<u32>, &mut [u32]) + Sync,
) {
    let mut rest = values;
    let parts = ranges.iter().map(|range| {
        let links = start_of(ends, range.end) - start_of(ends, range.start);
        let own = rest.split_off_mut(..links as usize).expect("each link has a place");
        let rows = &rows;
        move || rows(range.clone(), own)
    });
    Crew::new("graph").all(parts.collect());
}

/// The places of the next links of a range of nodes, relative to the range's first row.
fn next_places(ends: &[u64], range: &Range<u32>) -> Vec<u64> {
    let first = start_of(ends, range.start);
    range.clone().map(|node| start_of(ends, node) - first).collect()
}

/// All links by source, each row in no order.
fn by_source(nodes: u32, parts: &[Vec<(u32, u32)>], threads: usize) -> (Vec<u64>, Vec<u32>) {
    let links = || parts.iter().flatten().copied();
    let ends = ends_of(nodes, threads, |range, counts| {
        for (source, target) in links() {
            if range.contains(&source) {
                assert!(target < nodes, "a link to no node");
                counts[(source - range.start) as usize] += 1;
            }
        }
    });
    let all: usize = parts.iter().map(Vec::len).sum();
    assert_eq!(ends.last().copied().unwrap_or(0), all as u64, "a link of no node");
    let mut targets = vec![0; all];
    fill(&ends, &mut targets, &ranges_of(&ends, threads), |range, rows| {
        let mut next = next_places(&ends, &range);
        for (source, target) in links().filter(|(source, _)| range.contains(source)) {
            let place = &mut next[(source - range.start) as usize];
            rows[*place as usize] = target;
            *place += 1;
        }
    });
    (ends, targets)
}

/// Sorts each row and drops repeated links and those to the node itself; all rows move to the
/// front. Returns how many links are left.
fn clean(ends: &mut [u64], targets: &mut [u32], ranges: &[Range<u32>]) -> usize {
    let starts: Vec<usize> =
        ranges.iter().map(|range| start_of(ends, range.start) as usize).collect();
    let mut left = 0;
    let mut rest_of_ends = &mut *ends;
    let mut rest = &mut *targets;
    let mut before = 0;
    let parts = ranges.iter().map(|range| {
        let own_ends = rest_of_ends.split_off_mut(..range.len()).expect("each node has an end");
        let first = before;
        let end = own_ends.last().copied().unwrap_or(before);
        let own = rest.split_off_mut(..(end - first) as usize).expect("each link has a place");
        before = end;
        move || clean_rows(range.start, first, own_ends, own)
    });
    Crew::new("graph").all(parts.collect());
    // The ends are those of each range by itself now.
    for (range, start) in ranges.iter().zip(starts) {
        let ends = &mut ends[range.start as usize..range.end as usize];
        let kept = ends.last().copied().unwrap_or(0) as usize;
        targets.copy_within(start..start + kept, left);
        ends.iter_mut().for_each(|end| *end += left as u64);
        left += kept;
    }
    left
}

/// [`clean`] for the rows from node `start` on, which began at `first`; counts ends from 0.
fn clean_rows(start: u32, first: u64, ends: &mut [u64], rows: &mut [u32]) {
    let mut from = 0;
    let mut left = 0;
    for (node, end) in (start..).zip(ends) {
        let to = (*end - first) as usize;
        rows[from..to].sort_unstable();
        let mut last = None;
        for at in from..to {
            let target = rows[at];
            if target != node && last != Some(target) {
                rows[left] = target;
                left += 1;
            }
            last = Some(target);
        }
        from = to;
        *end = left as u64;
    }
}

/// The links by target: the ends of rows, and the rows of sources, ascending.
fn by_target(out_ends: &[u64], targets: &[u32], threads: usize) -> (Vec<u64>, Vec<u32>) {
    let ends = ends_of(out_ends.len() as u32, threads, |range, counts| {
        for target in targets.iter().filter(|target| range.contains(target)) {
            counts[(target - range.start) as usize] += 1;
        }
    });
    let mut sources = vec![0; targets.len()];
    fill(&ends, &mut sources, &ranges_of(&ends, threads), |range, rows| {
        let mut next = next_places(&ends, &range);
        for source in 0..out_ends.len() as u32 {
            for target in row(out_ends, targets, source) {
                if range.contains(target) {
                    let place = &mut next[(target - range.start) as usize];
                    rows[*place as usize] = source;
                    *place += 1;
                }
            }
        }
    });
    (ends, sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn links_go_both_ways() {
        let links = vec![vec![(2, 0), (0, 1), (2, 1)], vec![], vec![(2, 2), (0, 1), (3, 1)]];
        for threads in [1, 3] {
            let graph = Graph::new(4, links.clone(), threads);
            assert_eq!((graph.nodes(), graph.links()), (4, 4));
            let targets: Vec<_> = (0..4).map(|node| graph.targets(node).to_vec()).collect();
            assert_eq!(targets, [vec![1], vec![], vec![0, 1], vec![1]]);
            let sources: Vec<_> = (0..4).map(|node| graph.sources(node).to_vec()).collect();
            assert_eq!(sources, [vec![2], vec![0, 2, 3], vec![], vec![]]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn oracle_sets_of_links(
            nodes in 1u32..40,
            links in prop::collection::vec((0u32..40, 0u32..40), 0..200),
            cut in 0usize..200,
            threads in 1usize..5,
        ) {
            let links: Vec<_> = links.into_iter().filter(|link| link.0.max(link.1) < nodes).collect();
            let (front, behind) = links.split_at(cut.min(links.len()));
            let graph = Graph::new(nodes, vec![front.to_vec(), behind.to_vec()], threads);
            let expected: BTreeSet<_> = links.iter().copied().filter(|link| link.0 != link.1).collect();
            let found: Vec<_> =
                (0..nodes).flat_map(|node| graph.targets(node).iter().map(move |&to| (node, to))).collect();
            prop_assert!(found.iter().eq(&expected));
            let turned: BTreeSet<_> = expected.iter().map(|&(source, target)| (target, source)).collect();
            let found: Vec<_> =
                (0..nodes).flat_map(|node| graph.sources(node).iter().map(move |&from| (node, from))).collect();
            prop_assert!(found.iter().eq(&turned));
            prop_assert_eq!(graph.links(), expected.len() as u64);
        }
    }

    #[test]
    #[should_panic(expected = "a link of no node")]
    fn a_link_of_a_node_that_is_not_there() {
        Graph::new(2, vec![vec![(2, 0)]], 2);
    }

    #[test]
    fn slices_have_as_many_links() {
        let nodes = 16 * BLOCK;
        // Half of all links lead to the nodes of the first block.
        let links = (0..nodes).flat_map(|node| [(node, node % BLOCK), (node, nodes - 1 - node)]);
        let graph = Graph::new(nodes, vec![links.collect()], 2);
        let [first, second] = [0, 1].map(|slice| graph.slice(slice, 2));
        assert!(first.len() <= 6 * BLOCK as usize && second.len() >= 10 * BLOCK as usize);
    }

    #[test]
    fn slices_are_whole_blocks_and_cover_all() {
        for nodes in [0, 1, BLOCK, BLOCK + 1, 10 * BLOCK - 1] {
            let graph = Graph::new(nodes, Vec::new(), 2);
            for slices in 1..5 {
                let mut next = 0;
                for slice in 0..slices {
                    let range = graph.slice(slice, slices);
                    assert!(
                        range.start == next
                            && (range.end.is_multiple_of(BLOCK) || range.end == nodes)
                    );
                    next = range.end;
                }
                assert_eq!(next, nodes);
            }
        }
    }
}
