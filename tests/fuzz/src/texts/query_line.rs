//! Any line that is a query gets the hits of a plain search, in a form that can be read.

use super::filter::filter;
use super::query_tree::query_tree;
#[cfg(feature = "serve")]
use super::requests::requests;
use crate::fuzzing::sample::{self, Collection};
use millrace::index::generations::generation::Generation;
use millrace::query::answers::output::{AnswerForm, RunTag};
use millrace::query::reading::asked::Query;
use millrace::query::reading::lines::Lines;
use millrace::query::reading::weighted::unmarked;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use millrace::score::bm25::{idf, score};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const DOCUMENTS: u32 = 400;
const MODES: [Mode; 3] = [Mode::Or, Mode::And, Mode::AndOr];

struct Index {
    lists: Lists,
    snapshot: Arc<Snapshot>,
    searcher: Searcher,
}

thread_local! {
    static INDEX: RefCell<Index> = RefCell::new(open());
}

fn wanted(mode: Mode) -> Wanted {
    Wanted { k: 10, mode, algorithm: Algorithm::MaxScore, ..Wanted::default() }
}

fn open() -> Index {
    let folder = crate::fuzzing::folder();
    let collection = sample::collection(DOCUMENTS);
    sample::build(&folder, &collection, &[150]).expect("it is written");
    let generation = Generation::open(&folder).expect("it was written");
    let snapshot = Snapshot::new(generation, Scoring::default()).expect("the analysis is known");
    Index { lists: Lists::new(&collection), snapshot, searcher: Searcher::new() }
}

/// Docids and term frequencies of each term, and the length of each document.
struct Lists {
    terms: BTreeMap<String, Vec<(u32, u32)>>,
    lengths: Vec<u32>,
}

impl Lists {
    fn new(collection: &Collection) -> Self {
        let mut terms: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
        for (docid, document) in (0..).zip(collection) {
            for (term, tf) in document {
                terms.entry(term.clone()).or_default().push((docid, *tf));
            }
        }
        Lists { terms, lengths: collection.iter().map(|terms| terms.values().sum()).collect() }
    }
}

/// The answer by the rules alone.
fn expected(Lists { terms: lists, lengths }: &Lists, text: &str, wanted: &Wanted) -> Vec<Hit> {
    let mut terms: Vec<(String, u32)> = Vec::new();
    sample::analysis().terms(text.as_bytes(), |term| {
        match terms.iter_mut().find(|(known, _)| known == term) {
            Some((_, times)) => *times += 1,
            None => terms.push((term.to_owned(), 1)),
        }
    });
    let (Scoring { bm25, idf: kind, .. }, k) = (Scoring::default(), wanted.k);
    let mean = lengths.iter().map(|&tokens| f64::from(tokens)).sum::<f64>() / f64::from(DOCUMENTS);
    let mut found: BTreeMap<u32, (usize, f32)> = BTreeMap::new();
    for (term, times) in &terms {
        let list = lists.get(term).map_or(&[][..], Vec::as_slice);
        let weight = bm25.weight(idf(DOCUMENTS, list.len() as u32, kind), *times);
        for &(docid, tf) in list {
            let (matched, sum) = found.entry(docid).or_insert((0, 0.0));
            *matched += 1;
            *sum += score(weight, tf, bm25.norm(lengths[docid as usize], mean));
        }
    }
    let best = |least: usize| {
        let mut hits: Vec<Hit> = found
            .iter()
            .filter(|(_, (matched, _))| *matched >= least)
            .map(|(docid, (_, score))| Hit { docid: *docid, score: *score })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        hits.truncate(k);
        hits
    };
    match wanted.mode {
        Mode::Or => best(1),
        Mode::And => best(terms.len()),
        Mode::AndOr => {
            let all = best(terms.len());
            if all.len() < k { best(1) } else { all }
        }
    }
}

fn check_forms(query: &Query, hits: &[Hit], snapshot: &Snapshot) {
    let documents = snapshot.generation().documents();
    let written = |form: AnswerForm| {
        let mut out = Vec::new();
        let name = |at: usize| {
            let name = documents.name(hits[at].docid).unwrap_or_default();
            String::from_utf8_lossy(&name).into_owned().into()
        };
        form.write(query, hits, None, Duration::from_micros(5), name, &mut out);
        out
    };
    let json: serde_json::Value =
        serde_json::from_slice(&written(AnswerForm::Jsonl)).expect("an answer is JSON");
    assert_eq!(json["qid"], query.qid);
    assert_eq!(json["query"], query.text);
    assert_eq!(json["hits"].as_array().map(Vec::len), Some(hits.len()));
    for (form, separator, fields) in
        [(AnswerForm::Trec(RunTag::default()), ' ', 6), (AnswerForm::Tsv, '\t', 5)]
    {
        let out = String::from_utf8(written(form)).expect("lines are text");
        assert_eq!(out.lines().count(), hits.len());
        for (line, hit) in out.lines().zip(hits) {
            let found: Vec<&str> = line.split(separator).collect();
            assert_eq!(found.len(), fields, "{line:?}");
            assert!(!found[0].is_empty());
            assert_eq!(found[4].parse(), Ok(hit.score));
        }
    }
}

/// Words are never refused, except for those behind the head of CSV.
fn may_be_refused(line: &str) -> bool {
    let has_weights = line.contains("applypipeline:off");
    line.trim_start().starts_with(['[', '{', '<']) || has_weights || is_head(line)
}

/// Whether a line may name columns of CSV.
fn is_head(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let has = |names: &[&str]| names.iter().any(|name| line.contains(name));
    has(&["id"]) && has(&["query", "text", "question", "title"])
}

/// What is asked of an input.
pub fn query_line(data: &[u8]) {
    query_tree(data);
    filter(data);
    #[cfg(feature = "serve")]
    requests(data);
    let lines = String::from_utf8_lossy(data);
    INDEX.with_borrow_mut(|index| {
        for line in lines.split_inclusive('\n').take(8) {
            let read = Lines::new(line.as_bytes()).map(|read| read.expect("it is in memory"));
            let read: Vec<_> = read.collect();
            let begins = line.trim_start_matches('\u{feff}').trim_start();
            if read.is_empty() {
                // Or a list, or an object, of no queries, or a head alone.
                let is_none = begins.is_empty() || begins.starts_with(['[', '{']);
                assert!(is_none || is_head(begins), "{line:?}");
            }
            for query in read {
                match query {
                    Ok(query) => check(index, &query, line),
                    Err(_) => assert!(begins.split('\r').any(may_be_refused), "{line:?}"),
                }
            }
        }
    });
}

fn check(Index { lists, snapshot, searcher }: &mut Index, query: &Query, line: &str) {
    // The plain search knows neither weights nor operators.
    if unmarked(&query.text).is_some() || query.syntax.is_some() {
        return;
    }
    for mode in MODES {
        // The plain search keeps all documents.
        let mut wanted = query.wanted(&wanted(mode));
        wanted.k = wanted.k.min(DOCUMENTS as usize + 1);
        let searched = searcher.search(snapshot, &wanted, &query.text);
        let hits = searched.expect("the index is good").0.to_vec();
        check_forms(query, &hits, snapshot);
        // The plain search is slow.
        if line.len() < 500 {
            let bits = |hits: &[Hit]| -> Vec<(u32, u32)> {
                hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect()
            };
            let expected = expected(lists, &query.text, &wanted);
            assert_eq!(bits(&hits), bits(&expected), "{wanted:?} {line:?}");
        }
    }
}
