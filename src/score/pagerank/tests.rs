use super::*;
use proptest::prelude::*;

const ASKED: RankSettings = RankSettings { damping: 0.85, tolerance: 1e-9 };

/// The definition: dangling nodes give their share to all nodes, and so does a surfer who is bored.
fn exact(graph: &Graph, damping: f64) -> Vec<f64> {
    let n = f64::from(graph.nodes());
    let mut ranks = vec![1.0 / n; graph.nodes() as usize];
    for _ in 0..400 {
        let dangling = (0..graph.nodes()).filter(|&node| graph.targets(node).is_empty());
        let dangling: f64 = dangling.map(|node| ranks[node as usize]).sum();
        let rank = |node: u32| {
            let from = |&source: &u32| ranks[source as usize] / graph.targets(source).len() as f64;
            let sum: f64 = graph.sources(node).iter().map(from).sum();
            (1.0 - damping) / n + damping * (sum + dangling / n)
        };
        ranks = (0..graph.nodes()).map(rank).collect();
    }
    ranks
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

fn ranks(graph: &Graph, asked: RankSettings, first: Vec<f64>, threads: usize) -> Ranks {
    pagerank(graph, asked, first, threads, || Ok::<_, String>(())).unwrap()
}

/// Links that favour some targets, among `nodes` nodes.
fn links(seed: u64, nodes: u32, count: usize) -> Vec<(u32, u32)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut link = || {
        let source = (next() * f64::from(nodes)) as u32;
        (source, (next() * next() * next() * f64::from(nodes)) as u32)
    };
    (0..count).map(|_| link()).collect()
}

/// Figure 1 of the article *PageRank* of the English Wikipedia (damping 0.85): eleven pages, one of
/// them, A, without links. Its percentages have one digit behind the point. The fractions solve the
/// equations exactly, by elimination, and sum up to 1.
#[test]
fn golden_the_published_example() {
    let names = "ABCDEF12345";
    let at = |name: char| names.find(name).unwrap() as u32;
    let links = ["BC", "CB", "DA", "DB", "EB", "ED", "EF", "FB", "FE"];
    let more = ["1B", "1E", "2B", "2E", "3B", "3E", "4E", "5E"];
    let links = links.iter().chain(&more).map(|link| {
        let mut ends = link.chars().map(at);
        (ends.next().unwrap(), ends.next().unwrap())
    });
    let graph = Graph::new(11, vec![links.collect()], 2);
    let published = [3.3, 38.4, 34.3, 3.9, 8.1, 3.9, 1.6, 1.6, 1.6, 1.6, 1.6];
    let found = ranks(&graph, ASKED, vec![1.0; 11], 2);
    for (name, (rank, percent)) in names.chars().zip(found.ranks.iter().zip(published)) {
        assert!((rank * 100.0 - percent).abs() <= 0.05, "{name}: {rank}, published {percent} %");
    }
    let exact = [
        513_573.0 / 15_666_553.0,
        222_822_800.0 / 579_662_461.0,
        198_772_220.0 / 579_662_461.0,
        87_480.0 / 2_238_079.0,
        1_267_200.0 / 15_666_553.0,
        87_480.0 / 2_238_079.0,
    ];
    let others = [253_320.0 / 15_666_553.0; 5];
    let exact: Vec<f64> = exact.into_iter().chain(others).collect();
    assert!(distance(&found.ranks, &exact) <= ASKED.tolerance);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn oracle_the_definition(seed in 1u64..u64::MAX, nodes in 1u32..3000, density in 0usize..6, workers in 1usize..=4) {
        let graph = Graph::new(nodes, vec![links(seed, nodes, nodes as usize * density)], workers);
        for tolerance in [1e-3, 1e-9] {
            let asked = RankSettings { damping: 0.85, tolerance };
            let found = ranks(&graph, asked, vec![1.0; nodes as usize], workers);
            let distance = distance(&found.ranks, &exact(&graph, 0.85));
            prop_assert!(distance <= tolerance, "{distance} is beyond {tolerance}");
        }
    }
}

#[test]
fn the_bits_are_the_same_for_any_number_of_threads() {
    let graph = Graph::new(20_000, vec![links(7, 20_000, 90_000)], 3);
    let first = vec![1.0; 20_000];
    let one = ranks(&graph, ASKED, first.clone(), 1);
    assert!(one.rounds > 3);
    for threads in [2, 3, 4] {
        assert!(ranks(&graph, ASKED, first.clone(), threads) == one, "{threads} threads");
    }
}

/// A few links change: the last ranks are a good beginning.
#[test]
fn few_changes_take_few_rounds() {
    let before = links(3, 10_000, 40_000);
    let mut after = before.clone();
    after.truncate(39_995);
    after.extend(links(4, 10_000, 5));
    let [before, after] = [before, after].map(|links| Graph::new(10_000, vec![links], 2));
    let asked = RankSettings { damping: 0.85, tolerance: 1e-7 };
    let tight = RankSettings { damping: 0.85, tolerance: 1e-11 };
    let last = ranks(&before, tight, vec![1.0; 10_000], 2);
    let cold = ranks(&after, asked, vec![1.0; 10_000], 2);
    let warm = ranks(&after, asked, last.raw, 2);
    let goal = ranks(&after, tight, vec![1.0; 10_000], 2).ranks;
    assert!(distance(&warm.ranks, &goal) <= 1e-7 && distance(&cold.ranks, &goal) <= 1e-7);
    assert!(warm.rounds * 4 < cold.rounds * 3, "{} rounds of {}", warm.rounds, cold.rounds);
}

#[test]
fn one_that_is_told_to_end_ends() {
    let graph = Graph::new(2, vec![vec![(0, 1)]], 1);
    let ended = pagerank(&graph, ASKED, vec![1.0; 2], 1, || Err("told"));
    assert_eq!(ended, Err("told"));
}

#[test]
fn no_nodes_and_no_links() {
    let none = ranks(&Graph::default(), ASKED, Vec::new(), 2);
    assert!(none.ranks.is_empty());
    let alone = ranks(&Graph::new(4, Vec::new(), 1), ASKED, vec![1.0; 4], 2);
    assert_eq!(alone.ranks, [0.25; 4]);
}
