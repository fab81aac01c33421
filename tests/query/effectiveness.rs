//! The right documents are found: nDCG@10 and average precision on public collections with human
//! judgements, against what two other engines reach with the same analysis and formula.

use crate::support::*;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Judgements: by query, by document, how relevant.
type Judged = HashMap<String, HashMap<String, f64>>;

fn judgements(path: &Path) -> Judged {
    let mut judged = Judged::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [query, _, document, relevance] = fields[..] else { panic!("{line}") };
        let of_query = judged.entry(query.into()).or_default();
        of_query.insert(document.into(), relevance.parse().unwrap());
    }
    judged
}

/// Discounted cumulative gain of the first ten.
fn dcg10(gains: impl Iterator<Item = f64>) -> f64 {
    gains.take(10).zip(2..).map(|(gain, place)| gain / f64::from(place).log2()).sum()
}

fn ndcg10(hits: &[String], judged: &HashMap<String, f64>) -> f64 {
    let gain = |name| judged.get(name).copied().unwrap_or(0.0).max(0.0);
    let mut ideal: Vec<f64> = judged.values().copied().filter(|&r| r > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    if ideal.is_empty() {
        return 0.0;
    }
    dcg10(hits.iter().map(gain)) / dcg10(ideal.into_iter())
}

fn average_precision(hits: &[String], judged: &HashMap<String, f64>) -> f64 {
    let relevant: HashSet<&String> =
        judged.iter().filter(|&(_, &relevance)| relevance > 0.0).map(|(name, _)| name).collect();
    let mut found = 0.0;
    let mut sum = 0.0;
    for (hit, rank) in hits.iter().zip(1..) {
        if relevant.contains(hit) {
            found += 1.0;
            sum += found / f64::from(rank);
        }
    }
    if relevant.is_empty() { 0.0 } else { sum / relevant.len() as f64 }
}

/// Mean nDCG@10 and average precision over the judged queries of a collection.
fn measure(folder: &Path, stemmer: &str) -> (f64, f64) {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args!["--stemmer", stemmer, folder.join("corpus.jsonl")]);
    let queries = folder.join("queries.tsv");
    let job = millrace(args!["query", "--quiet", "--index", index, "-k", "1000", queries]);
    let mut hits: HashMap<String, Vec<String>> = HashMap::new();
    for line in job.ok().text().lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [query, "Q0", name, rank, _, "millrace"] = fields[..] else { panic!("{line}") };
        let of_query = hits.entry(query.into()).or_default();
        of_query.push(name.into());
        assert_eq!(rank.parse(), Ok(of_query.len()), "{line}");
    }
    let judged = judgements(&folder.join("qrels.txt"));
    let mut ndcg = 0.0;
    let mut precision = 0.0;
    for (query, judged) in &judged {
        let hits = hits.get(query).map_or(&[][..], Vec::as_slice);
        ndcg += ndcg10(hits, judged);
        precision += average_precision(hits, judged);
    }
    (ndcg / judged.len() as f64, precision / judged.len() as f64)
}

/// Checks that both means of each collection are near those of another engine.
fn compare(stemmer: &str, slack: f64, expected: [(&str, f64, f64); 4]) {
    let mut far = Vec::new();
    for (name, ndcg, precision) in expected {
        let Some(folder) = shared(&format!("collections/{name}")) else { continue };
        let (n, p) = measure(&folder, stemmer);
        println!("{name}: nDCG@10 {n:.4} against {ndcg}, AP {p:.4} against {precision}");
        if (n - ndcg).abs() > slack || (p - precision).abs() > slack {
            far.push(format!("{name}: nDCG@10 {n:.4}, not {ndcg}; AP {p:.4}, not {precision}"));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}

#[test]
fn english_is_as_good_as_tantivy() {
    let expected = [
        ("cacm", 0.490, 0.352),
        ("cisi", 0.386, 0.217),
        ("cranfield", 0.368, 0.305),
        ("vaswani", 0.435, 0.287),
    ];
    compare("english", 0.005, expected);
}

#[test]
fn porter_is_as_good_as_lucene() {
    let expected = [
        ("cacm", 0.495, 0.359),
        ("cisi", 0.388, 0.219),
        ("cranfield", 0.367, 0.302),
        ("vaswani", 0.433, 0.286),
    ];
    compare("porter", 0.01, expected);
}

#[test]
fn measures_are_those_of_the_definitions() {
    let judged = |list: &[(&str, f64)]| list.iter().map(|&(n, r)| (n.to_string(), r)).collect();
    let hits: Vec<String> = ["a", "x", "b"].map(String::from).into();
    let graded: HashMap<String, f64> = judged(&[("a", 1.0), ("b", 3.0), ("c", 0.0)]);
    let expected = (1.0 + 3.0 / 2.0) / (3.0 + 1.0 / 3f64.log2());
    assert!((ndcg10(&hits, &graded) - expected).abs() < 1e-12);
    assert!((average_precision(&hits, &graded) - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
    assert_eq!((ndcg10(&[], &graded), average_precision(&[], &graded)), (0.0, 0.0));
}
