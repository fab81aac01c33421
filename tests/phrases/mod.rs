//! Positions of terms and phrases, against a look at each text.

use crate::support::{Random, Scratch, args, assert_same_index, millrace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

const WORDS: [&str; 9] =
    ["alpha", "beta", "gamma", "the", "of", "rare", "naïve", "über", "withmorethansixteenletters"];
const STOP_WORDS: [&str; 3] = ["the", "of", "über"];
/// Places between the items of a list, and between fields.
const GAP: u32 = 100;

/// Of each term where it stands.
type Places = BTreeMap<String, BTreeSet<u32>>;

struct Collection {
    names: Vec<String>,
    jsonl: String,
    places: Vec<Places>,
}

fn places(parts: &[String]) -> Places {
    let mut places = Places::new();
    let mut at = 0;
    for part in parts {
        for word in part.split(' ').filter(|word| !word.is_empty()) {
            if !STOP_WORDS.contains(&word) {
                places.entry(word.to_string()).or_default().insert(at);
            }
            at += 1;
        }
        at += GAP;
    }
    places
}

impl Collection {
    fn new(seed: u64, documents: usize) -> Self {
        let mut random = Random::new(seed);
        let mut collection = Self { names: Vec::new(), jsonl: String::new(), places: Vec::new() };
        for number in 0..documents {
            let mut text = |most: usize| -> String {
                let words: Vec<String> = (0..random.below(most))
                    .map(|_| match random.below(8) {
                        0 => format!("r{}", random.below(300)),
                        // A few words are nearly everywhere.
                        1..5 => random.pick(&WORDS[..4]).to_string(),
                        _ => random.pick(&WORDS).to_string(),
                    })
                    .collect();
                words.join(" ")
            };
            let most = [4, 30, 400][number % 3];
            let (title, list) = (text(6), [text(most), text(most / 2)]);
            let name = format!("d{number}");
            let line = json!({"id": name, "title": title, "text": list});
            writeln!(collection.jsonl, "{line}").unwrap();
            let [first, second] = list;
            // The members of the line, by name.
            collection.places.push(places(&[first, second, title]));
            collection.names.push(name);
        }
        collection
    }

    /// The positions of all terms, by term and name.
    fn positions(&self) -> BTreeMap<String, BTreeMap<String, Vec<u32>>> {
        let mut all: BTreeMap<String, BTreeMap<String, Vec<u32>>> = BTreeMap::new();
        for (name, places) in self.names.iter().zip(&self.places) {
            for (term, places) in places {
                let of_term = all.entry(term.clone()).or_default();
                of_term.insert(name.clone(), places.iter().copied().collect());
            }
        }
        all
    }
}

/// The same as an index has them.
pub(crate) fn dumped(index: &Path) -> BTreeMap<String, BTreeMap<String, Vec<u32>>> {
    let dump = |what: &str| millrace(args!["dump", "--index", index, what]).ok().json_lines();
    let names: BTreeMap<u64, String> = dump("documents")
        .iter()
        .map(|row| (row["docid"].as_u64().unwrap(), row["name"].as_str().unwrap().to_string()))
        .collect();
    let of_term = |row: &Value| {
        let posting = |posting: &Value| {
            let [docid, tf, places] = [0, 1, 2].map(|at| posting[at].clone());
            let places: Vec<u32> = serde_json::from_value(places).unwrap();
            assert_eq!(places.len() as u64, tf.as_u64().unwrap());
            (names[&docid.as_u64().unwrap()].clone(), places)
        };
        let postings = row["postings"].as_array().unwrap().iter().map(posting).collect();
        (row["term"].as_str().unwrap().to_string(), postings)
    };
    dump("postings").iter().map(of_term).collect()
}

struct Set {
    scratch: Scratch,
    collection: Collection,
}

impl Set {
    fn new(seed: u64, documents: usize) -> Self {
        let scratch = Scratch::new();
        let collection = Collection::new(seed, documents);
        scratch.write("d.jsonl", &collection.jsonl);
        scratch.write("stop", STOP_WORDS.join("\n"));
        Self { scratch, collection }
    }

    fn build(&self, index: &Path, more: &[&str], run_limit: Option<u64>) {
        let mut job = millrace(args!["build", "--index", index, "--positions"])
            .args(["--stemmer", "none"])
            .args(args!["--stopwords", self.scratch.path("stop")])
            .args(more)
            .arg(self.scratch.path("d.jsonl"));
        if let Some(limit) = run_limit {
            job = job.env("MILLRACE_RUN_LIMIT", limit.to_string());
        }
        job.ok();
        millrace(args!["check", "--index", index]).ok();
    }
}

/// The same positions, and the same bytes where these are promised, for any number of workers, any
/// runs, codec and order; and when documents have come and gone.
#[test]
fn oracle_positions_are_those_of_the_texts() {
    let set = Set::new(3, 1200);
    let expected = set.collection.positions();
    let whole = set.scratch.path("whole");
    set.build(&whole, &["-w", "1"], None);
    assert!(dumped(&whole) == expected);
    for (name, more, limit) in [
        ("workers", &["-w", "3"][..], None),
        ("merged", &["-w", "2"], Some(60_000)),
        ("runs", &["-w", "2", "--no-merge"], Some(60_000)),
        ("name", &["--order", "name"], None),
        ("rice", &["--codec", "rice", "--block-size", "512"], None),
        ("newpfd", &["--codec", "newpfd", "--block-size", "64"], None),
    ] {
        let index = set.scratch.path(name);
        set.build(&index, more, limit);
        assert!(dumped(&index) == expected, "{name}");
        if matches!(name, "workers" | "merged") {
            assert_same_index(&whole, &index, &[]);
        }
    }

    let index = set.scratch.path("runs");
    let gone: Vec<String> = (0..1200).step_by(5).map(|number| format!("d{number}")).collect();
    let names = set.scratch.write("gone", gone.join("\n"));
    millrace(args!["delete", "--index", index, "--file", names]).ok();
    let new = Collection::new(4, 40);
    let new_file = set.scratch.write("new.jsonl", &new.jsonl);
    millrace(args!["update", "--index", index, new_file]).ok();
    let mut all: BTreeMap<&String, &Places> =
        set.collection.names.iter().zip(&set.collection.places).collect();
    all.retain(|name, _| !gone.contains(name));
    all.extend(new.names.iter().zip(&new.places));
    let lives = Collection {
        names: all.keys().map(|name| (*name).clone()).collect(),
        jsonl: String::new(),
        places: all.into_values().cloned().collect(),
    };
    let expected = lives.positions();
    assert!(dumped(&index) == expected, "updated");
    for more in [&[][..], &["--order", "name"], &["--codec", "vbyte"]] {
        millrace(args!["merge", "--index", index]).args(more).ok();
        assert!(dumped(&index) == expected, "merged {more:?}");
        millrace(args!["check", "--index", index]).ok();
    }
}

/// How often a document has the words in their order with this many further ones, in windows that
/// do not overlap; found by a look at all windows.
fn count(words: &[(u32, &str)], slop: u32, ordered: bool, places: &Places) -> usize {
    fn windows<'p>(
        words: &[(u32, &str)],
        chosen: &mut Vec<u32>,
        of: &dyn Fn(&str) -> Option<&'p BTreeSet<u32>>,
        fits: &dyn Fn(&[u32]) -> bool,
        found: &mut Vec<(u32, u32)>,
    ) {
        let Some((_, word)) = words.get(chosen.len()) else {
            found.push((*chosen.iter().max().unwrap(), *chosen.iter().min().unwrap()));
            return;
        };
        for &place in of(word).into_iter().flatten() {
            if chosen.contains(&place) {
                continue;
            }
            chosen.push(place);
            if fits(chosen) {
                windows(words, chosen, of, fits, found);
            }
            chosen.pop();
        }
    }
    let span = words.last().unwrap().0 - words[0].0 + slop;
    let fits = |chosen: &[u32]| {
        let (least, most) = (*chosen.iter().min().unwrap(), *chosen.iter().max().unwrap());
        let rises = chosen.windows(2).zip(words.windows(2)).all(|(places, words)| {
            places[0] < places[1] && places[1] - places[0] >= words[1].0 - words[0].0
        });
        most - least <= span && (!ordered || rises)
    };
    let mut found = Vec::new();
    windows(words, &mut Vec::new(), &|word| places.get(word), &fits, &mut found);
    found.sort_unstable();
    let mut after = 0;
    let chosen = found.iter().filter(|(end, start)| {
        let is_free = *start >= after;
        after = if is_free { end + 1 } else { after };
        is_free
    });
    chosen.count()
}

#[test]
fn oracle_phrases_are_found_where_texts_have_them() {
    let set = Set::new(7, 700);
    let places = &set.collection.places;
    let mut random = Random::new(11);
    let mut queries = String::new();
    let mut expected = Vec::new();
    for number in 0..120 {
        let text: Vec<&str> = (0..2 + random.below(3)).map(|_| random.pick(&WORDS[..8])).collect();
        let words: Vec<(u32, &str)> =
            (0..).zip(text.clone()).filter(|word| !STOP_WORDS.contains(&word.1)).collect();
        if words.is_empty() {
            continue;
        }
        let ordered = random.below(3) > 0;
        let slop = random.pick(&[0, 0, 1, 3]);
        let phrase = json!({"phrase": text.join(" "), "slop": slop, "ordered": ordered});
        let has = |places: &Places| match &words[..] {
            [(_, word)] => places.contains_key(*word),
            words => count(words, slop, ordered, places) > 0,
        };
        let other = random.pick(&["gamma", "r7", "rare"]);
        let (tree, matches): (Value, &dyn Fn(&Places) -> bool) = match random.below(5) {
            0 => (json!({"all": [phrase, other]}), &|at| has(at) && at.contains_key(other)),
            1 => (json!({"any": [other, phrase]}), &|at| has(at) || at.contains_key(other)),
            2 => (json!({"all": [other], "none": [phrase]}), &|at| {
                !has(at) && at.contains_key(other)
            }),
            // A phrase that need not match counts where it does.
            3 => (json!({"all": [other], "any": [phrase]}), &|at| at.contains_key(other)),
            _ => (phrase, &has),
        };
        writeln!(queries, "{}", json!({"id": number.to_string(), "query": tree})).unwrap();
        let names = set.collection.names.iter().zip(places);
        let found: BTreeSet<&str> =
            names.filter(|(_, places)| matches(places)).map(|(name, _)| &**name).collect();
        expected.push((tree, found));
    }
    let queries = set.scratch.write("q.jsonl", queries);
    let mut first: Option<Vec<Value>> = None;
    for (name, build, limit, workers) in [
        ("whole", &["-w", "2"][..], None, "1"),
        ("runs", &["--no-merge"], Some(40_000), "3"),
        ("rice", &["--codec", "rice"], None, "1"),
    ] {
        let index = set.scratch.path(name);
        set.build(&index, build, limit);
        let ask = |more: &[&str]| {
            let job = millrace(args!["query", "--index", index, queries, "--format", "jsonl"]);
            job.args(["--count", "-w", workers]).args(more).ok().json_lines()
        };
        let answers = ask(&["-k", "1000"]);
        for (answer, (tree, found)) in answers.iter().zip(&expected) {
            let hits = answer["hits"].as_array().unwrap();
            let names: BTreeSet<&str> =
                hits.iter().map(|hit| hit["name"].as_str().unwrap()).collect();
            assert_eq!(&names, found, "{tree}");
            assert_eq!(answer["found"], json!(found.len()), "{tree}");
        }
        let best = ask(&["-k", "7"]);
        for (answer, best) in answers.iter().zip(&best) {
            let all = answer["hits"].as_array().unwrap();
            assert_eq!(best["hits"].as_array().unwrap()[..], all[..all.len().min(7)]);
            assert_eq!(best["found"], answer["found"]);
        }
        // Scores are those of the formula whatever the runs and the codec.
        let scores = |answers: &[Value]| -> Vec<Value> {
            let of = |hit: &Value| json!([hit["name"], hit["score"]]);
            let hits = answers.iter().flat_map(|answer| answer["hits"].as_array().unwrap());
            hits.map(of).collect()
        };
        match &first {
            None => first = Some(answers),
            Some(first) => assert!(scores(first) == scores(&answers), "{name}"),
        }
    }
}

/// tf is the number of places where a phrase begins, and idf the sum of those of its words.
#[test]
fn a_phrase_weighs_as_its_words_together() {
    let scratch = Scratch::new();
    let texts = ["wind mill wind mill x", "mill wind x x", "wind mill x x x", "x x x x x"];
    let lines = texts.iter().zip(1..).map(|(text, n)| json!({"id": n, "text": text}).to_string());
    let file = scratch.write("d.jsonl", lines.collect::<Vec<_>>().join("\n"));
    let index = scratch.path("i");
    millrace(args!["build", "--index", index, "--positions", file]).ok();
    let ask = |query: &str| {
        let job = millrace(args!["query", "--index", index, "--query", query, "--format", "jsonl"]);
        job.args(["--syntax", "operators"]).ok().json_lines()[0]["hits"].clone()
    };
    let idf = |df: f64| (1.0 + (4.0 - df + 0.5) / (df + 0.5)).ln();
    let mean = (5.0 + 4.0 + 5.0 + 5.0) / 4.0;
    let score = |tf: f64, length: f64, boost: f64| {
        let norm = 1.2 * (1.0 - 0.75 + 0.75 * length / mean);
        boost * 2.0 * idf(3.0) * 2.2 * tf / (tf + norm)
    };
    let job = millrace(args!["explain", "--index", index, "--syntax", "operators"]);
    let told = job.args(["1", "\"wind mill\""]).ok();
    let row = told.text().lines().find(|line| line.starts_with("\"wind mill\"")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // times, df, idf, weight, tf, score
    assert_eq!((cells[2], cells[3], cells[6]), ("1", "2", "2"), "{row}");
    for (query, boost) in [("\"wind mill\"", 1.0), ("\"wind mill\"^2.5", 2.5)] {
        let hits = ask(query);
        let found: Vec<&str> =
            hits.as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect();
        assert_eq!(found, ["1", "3"]);
        for (hit, tf) in hits.as_array().unwrap().iter().zip([2.0, 1.0]) {
            let expected = score(tf, 5.0, boost);
            let found = hit["score"].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-5 * expected, "{query}: {found} {expected}");
        }
    }
}

/// Where the parts of a document that is too long begin says nothing of the next one, which another
/// file has.
#[test]
fn parts_of_a_document_that_is_left_out_are_forgotten() {
    let scratch = Scratch::new();
    let long = json!({"id": "1", "title": "x ".repeat(200), "text": "y ".repeat(200)});
    let long = scratch.write("a.jsonl", format!("{long}\n"));
    let short = scratch.write("b.tsv", "d2\twind mill\nd3\tmill\n");
    let index = scratch.path("i");
    let job = millrace(args!["build", "--index", index, "--positions", long, short]);
    job.args(["-w", "1", "--max-document", "100"]).ok();
    let job = millrace(args!["query", "--index", index, "--query", "\"wind mill\""]);
    assert_eq!(
        job.args(["--syntax", "operators", "--format", "tsv"]).ok().text().lines().count(),
        1
    );
}

#[test]
fn what_has_no_positions_says_so() {
    let scratch = Scratch::new();
    let file = scratch.write("d.jsonl", "{\"id\":\"1\",\"text\":\"wind mill of the river\"}\n");
    let index = scratch.path("i");
    millrace(args!["build", "--index", index, file]).ok();
    let ask = |query: &str, more: &[&str]| {
        let job = millrace(args!["query", "--index", index, "--query", query]);
        job.args(["--syntax", "operators"]).args(more)
    };
    let none = "has a phrase, and the index was built without positions of words";
    ask("\"wind mill\"", &[]).fails(1).says(none);
    // A word in quotes is this word.
    ask("\"mill\"", &[]).ok();
    millrace(args!["build", "--index", index, "--positions", file]).ok();
    ask("\"wind mill\"", &[]).ok();
    ask("\"of the\"", &[]).fails(1).says("has a phrase of stop words alone");
    ask("\"wind mill\"", &["--score", "ql"])
        .fails(1)
        .says("has a phrase, which the score ql does not weigh");
    for indexer in ["gpu", "wei11"] {
        let job = millrace(args!["build", "--index", index, "--positions", file]);
        job.args(["--indexer", indexer])
            .fails(2)
            .says(format!("the indexer {indexer} keeps no positions"));
    }
    let vectors =
        scratch.write("v.jsonl", "{\"id\":\"1\",\"contents\":\"\",\"vector\":{\"a\":1}}\n");
    millrace(args!["build", "--index", index, "--positions", "--format", "vectors", vectors])
        .fails(2)
        .says("the terms of vectors have no positions");
    assert!(millrace(args!["info", "--index", index]).ok().text().contains("positions"));
}
