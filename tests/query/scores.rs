//! Each score is what its formula says, and all engines find the same by it. The formulas stand
//! here once more, plainly and in double precision, over what `dump` prints.

use crate::support::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Scores with options, all but `bm25` with other parameters too.
const SCORES: [&[&str]; 13] = [
    &["bm25"],
    &["bm25-lucene"],
    &["bm25-lucene", "--k1", "0.9", "--b", "0.4", "--idf", "robertson"],
    &["bm25plus"],
    &["bm25plus", "--score-delta", "0.3", "--k1", "2"],
    &["bm25l"],
    &["bm25l", "--score-delta", "2", "--b", "1"],
    &["tfidf"],
    &["tfidf", "--k1", "3"],
    &["ql"],
    &["ql", "--mu", "20"],
    &["dph"],
    &["impact"],
];

/// What the formulas need to know of a collection.
pub(crate) struct Facts {
    pub(crate) lengths: Vec<f64>,
    tokens: f64,
    pub(crate) postings: HashMap<String, BTreeMap<usize, f64>>,
}

impl Facts {
    pub(crate) fn of(index: &Path) -> Self {
        let dump = |what: &str| millrace(args!["dump", "--index", index, what]).ok().json_lines();
        let lengths: Vec<f64> =
            dump("documents").iter().map(|document| document["tokens"].as_f64().unwrap()).collect();
        let terms = dump("postings");
        let postings = terms.iter().map(|term| {
            let pair =
                |pair: &Value| (pair[0].as_u64().unwrap() as usize, pair[1].as_f64().unwrap());
            let list = term["postings"].as_array().unwrap().iter().map(pair).collect();
            (term["term"].as_str().unwrap().to_string(), list)
        });
        Self { tokens: lengths.iter().sum(), postings: postings.collect(), lengths }
    }

    /// The scores of all documents that have a term of the query.
    pub(crate) fn scores(&self, options: &[&str], query: &str) -> BTreeMap<usize, f64> {
        let mut scores = BTreeMap::new();
        for term in query.split_whitespace() {
            for (&docid, &tf) in self.postings.get(term).into_iter().flatten() {
                let part = self.posting(options, term, (tf, self.lengths[docid]));
                *scores.entry(docid).or_default() += part;
            }
        }
        scores
    }

    pub(crate) fn posting(&self, options: &[&str], term: &str, (tf, length): (f64, f64)) -> f64 {
        let given = |name: &str, usual: f64| {
            let at = options.iter().position(|option| *option == name);
            at.map_or(usual, |at| options[at + 1].parse().unwrap())
        };
        let k1 = given("--k1", 1.2);
        let b = given("--b", 0.75);
        let n = self.lengths.len() as f64;
        let list = &self.postings[term];
        let df = list.len() as f64;
        let cf = list.values().sum::<f64>();
        let mean = self.tokens / n;
        let size = 1.0 - b + b * length / mean;
        let odds = (n - df + 0.5) / (df + 0.5);
        let idf =
            if options.contains(&"robertson") { odds.ln().max(1e-6) } else { (1.0 + odds).ln() };
        match options[0] {
            "bm25" => idf * (k1 + 1.0) * tf / (tf + k1 * size),
            "bm25-lucene" => idf * tf / (tf + k1 * size),
            "bm25plus" => {
                let delta = given("--score-delta", 1.0);
                ((n + 1.0) / df).ln() * ((k1 + 1.0) * tf / (k1 * size + tf) + delta)
            }
            "bm25l" => {
                let delta = given("--score-delta", 0.5);
                let c = tf / size;
                ((n + 1.0) / (df + 0.5)).ln() * (k1 + 1.0) * (c + delta) / (k1 + c + delta)
            }
            "tfidf" => (k1 * tf / (tf + k1 * size)) * (n / df + 1.0).log2(),
            "ql" => {
                let mu = given("--mu", 1000.0);
                let p = cf / self.tokens;
                ((1.0 + tf / (mu * p)).ln() + (mu / (length + mu)).ln()).max(1e-30)
            }
            "dph" => {
                let f = tf / length;
                let norm = (1.0 - f).powi(2) / (tf + 1.0);
                let twice = (2.0 * std::f64::consts::PI * tf * (1.0 - f)).log2();
                let score = norm * (tf * (tf * mean / length * (n / cf)).log2() + 0.5 * twice);
                // The logarithm of 0 is none, in a document that is the term alone.
                if score > 1e-30 { score } else { 1e-30 }
            }
            "impact" => tf,
            other => panic!("{other}"),
        }
    }
}

/// The answers to queries by one engine, as printed.
fn ask(index: &Path, queries: &str, score: &[&str], mode: &str, more: &[&str]) -> String {
    let job =
        millrace(args!["query", "--quiet", "--format", "tsv", "--index", index, "--mode", mode]);
    job.arg("--score").args(score).args(more).stdin(queries).ok().text().to_string()
}

/// Compares all engines by one job, in which each query says how it is to be answered.
fn compare(index: &Path, queries: &[String], score: &[&str], ks: &[usize]) {
    const ORS: [&str; 5] = ["exhaustive", "maxscore", "blocks", "wand", "bmw"];
    const ANDS: [&str; 3] = ["exhaustive", "galloping", "small-adaptive"];
    let mut lines = String::new();
    for (mode, engines) in [("or", &ORS[..]), ("and", &ANDS)] {
        for (k, (number, query)) in
            ks.iter().flat_map(|k| queries.iter().enumerate().map(move |q| (k, q)))
        {
            for engine in engines {
                let qid = format!("{engine} {mode}-{k}-{number}");
                let line = serde_json::json!({"qid": qid, "query": query, "k": k, "mode": mode, "algorithm": engine});
                lines += &format!("{line}\n");
            }
        }
    }
    let printed = ask(index, &lines, score, "or", &[]);
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for line in printed.lines() {
        // The blank of the name has become a low line.
        let (engine, rest) = line.split_once('_').unwrap();
        *found.entry(engine).or_default() += &format!("{rest}\n");
    }
    let of_mode = |engine: &str, mode: &str| -> Vec<String> {
        let lines = found[engine].lines().filter(|line| line.starts_with(mode));
        lines.map(str::to_string).collect()
    };
    for (mode, engines) in [("or-", &ORS[..]), ("and-", &ANDS)] {
        let expected = of_mode("exhaustive", mode);
        // Few documents have all words of a question that somebody wrote.
        assert!(expected.len() > 10 || mode == "and-", "{score:?} {mode}");
        for engine in &engines[1..] {
            assert!(of_mode(engine, mode) == expected, "{score:?} {mode} {engine}");
        }
    }
}

#[test]
fn oracle_formulas_and_every_engine() {
    let scratch = Scratch::new();
    let collection = Collection::new(23, 1200, 40);
    let input = scratch.write("c.jsonl", collection.jsonl());
    let index = scratch.path("index");
    let job =
        millrace(args!["build", "--quiet", "--index", index, "--no-merge", "--stemmer", "none"]);
    // Several runs, and lists of a block and more.
    job.args(args!["--stopwords", "none", input]).env("MILLRACE_RUN_LIMIT", "60000").ok();
    let facts = Facts::of(&index);
    let mut random = Random::new(4);
    // Common words among rare ones, and a word twice.
    let mut queries: Vec<String> = (1..12)
        .map(|count| collection.words.phrase(&mut random, 1 + count % 5).to_lowercase())
        .collect();
    queries.push(format!("{} {}", queries[2], queries[2]));
    let lines = queries.join("\n");
    for score in SCORES {
        let all = ask(&index, &lines, score, "or", &["-k", "2000", "--algorithm", "exhaustive"]);
        let mut found: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); queries.len()];
        for line in all.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let qid: usize = fields[0].parse().unwrap();
            found[qid - 1].insert(fields[3].parse().unwrap(), fields[4].parse().unwrap());
        }
        for (query, found) in queries.iter().zip(&found) {
            let expected = facts.scores(score, query);
            assert!(found.keys().eq(expected.keys()), "{score:?} {query}");
            for ((docid, found), expected) in found.iter().zip(expected.values()) {
                let about = (found - expected).abs() <= 2e-6 * expected.abs() + 3e-6;
                assert!(about, "{score:?} {query} {docid}: {found} {expected}");
            }
        }
        compare(&index, &queries, score, &[1, 10, 200]);
        let expected = ask(&index, &lines, score, "and", &["--algorithm", "exhaustive"]);
        for model in ["docp-pi", "fgqp"] {
            let found = ask(&index, &lines, score, "and", &["--parallelism", model]);
            assert!(found == expected, "{score:?} {model}");
        }
    }
}

#[test]
fn on_collections_with_queries_of_people() {
    let Some(folder) = shared("collections/cranfield") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![folder.join("corpus.jsonl")]);
    let queries = std::fs::read_to_string(folder.join("queries.tsv")).unwrap();
    let queries =
        queries.lines().step_by(5).map(|line| line.split_once('\t').unwrap().1.to_string());
    let queries: Vec<String> = queries.collect();
    for score in SCORES {
        compare(&index, &queries, score, &[10]);
    }
}

/// Texts, queries and scores that bm25s 0.3.16 printed for them (`bm25s.BM25(method, k1=1.2,
/// b=0.75, delta)` in double precision; rank_bm25 0.2.2 has the same for BM25+). It returns for
/// documents that lack a term what the formula makes of a tf of 0.
#[test]
fn golden_scores_are_those_of_bm25s() {
    const TEXTS: [&str; 6] = [
        "the mill race runs past the mill",
        "water turns the wheel of the mill",
        "a race of boats on the water",
        "the river floods the race and the race floods the mill and the road",
        "wheel",
        "boats on the river boats at the mill boats in the race",
    ];
    const QUERIES: [&str; 4] = ["mill race", "boats water mill", "floods", "race race wheel"];
    const GOLDEN: [(&str, f64, [[f64; 6]; 4]); 3] = [
        (
            "bm25-lucene",
            0.0,
            [
                [0.497864, 0.211656, 0.211656, 0.381724, 0.0, 0.333459],
                [0.286207, 0.704887, 0.986462, 0.153681, 0.0, 0.831],
                [0.0, 0.0, 0.0, 0.795068, 0.0, 0.0],
                [0.423313, 0.493231, 0.423313, 0.456085, 0.728934, 0.333459],
            ],
        ),
        (
            "bm25plus",
            1.0,
            [
                [2.506515, 1.709006, 1.709006, 2.182894, 1.119232, 2.048405],
                [3.862651, 4.975194, 5.705696, 3.493369, 3.065142, 5.307844],
                [1.94591, 1.94591, 1.94591, 4.15546, 1.94591, 1.94591],
                [3.551544, 3.692272, 3.551544, 3.642864, 4.323201, 3.301168],
            ],
        ),
        (
            "bm25l",
            2.2 * 0.5 / 1.7,
            [
                [1.229433, 0.841851, 0.841851, 1.054164, 0.571784, 0.982954],
                [2.005922, 2.517756, 2.877037, 1.806003, 1.61834, 2.722626],
                [0.996759, 0.996759, 0.996759, 2.02429, 0.996759, 0.996759],
                [1.778143, 1.867356, 1.778143, 1.827444, 2.2472, 1.649178],
            ],
        ),
    ];
    let scratch = Scratch::new();
    let docs = TEXTS.map(|text| Doc { name: None, text: text.to_string() });
    let input = scratch.write("c.jsonl", jsonl(&docs));
    let index = scratch.path("index");
    build(&index, args!["--stemmer", "none", "--stopwords", "none", input]);
    for (score, of_absent, golden) in GOLDEN {
        let printed = ask(&index, &QUERIES.join("\n"), &[score], "or", &[]);
        for (qid, query) in (1..).zip(QUERIES) {
            for docid in 0..TEXTS.len() {
                let prefix = format!("{qid}\t");
                let hit =
                    printed.lines().filter(|line| line.starts_with(&prefix)).find_map(|line| {
                        let fields: Vec<&str> = line.split('\t').collect();
                        (fields[3] == docid.to_string()).then(|| fields[4].parse::<f64>().unwrap())
                    });
                let has = |text: &str, term: &str| text.split(' ').any(|word| word == term);
                let absent = query.split(' ').filter(|term| !has(TEXTS[docid], term)).map(|term| {
                    let df = TEXTS.iter().filter(|text| has(text, term)).count() as f64;
                    let df = if score == "bm25l" { df + 0.5 } else { df };
                    of_absent * (7.0 / df).ln()
                });
                let found = hit.unwrap_or(0.0) + absent.sum::<f64>();
                let expected = golden[qid - 1][docid];
                assert!((found - expected).abs() < 3e-6, "{score} {query} {docid}: {found}");
            }
        }
    }
}

#[test]
fn a_parameter_of_another_score_is_refused() {
    let scratch = Scratch::new();
    let index = scratch.path("none");
    let ask = |more: &[&str]| millrace(args!["query", "--index", index]).args(more).stdin("");
    for (more, says) in [
        (&["--score", "ql", "--k1", "0.9"][..], "--k1 does not go with --score ql"),
        (&["--mu", "300"], "--mu does not go with --score bm25"),
        (&["--score", "bm25plus", "--idf", "lucene"], "--idf does not go with --score bm25plus"),
        (&["--score", "ql", "--mu", "0"], "mu: expected a number from 0.001 to 1e9, found 0"),
        (&["--score", "dph", "--algorithm", "wang", "--mode", "and"], "goes with --mode and"),
    ] {
        ask(more).fails(2).says(says);
    }
}

#[test]
fn explain_has_the_scores_of_every_formula() {
    let scratch = Scratch::new();
    let text = "mill race mill\nriver mill\nrace boats wheel river\n";
    let input = scratch.write("c.txt", text);
    let index = scratch.path("index");
    build(&index, args!["--format", "plaintext", input]);
    for score in SCORES {
        let printed = ask(&index, "mill race", score, "or", &[]);
        for line in printed.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let job = millrace(args!["explain", "--json", "--index", index, "--docid", fields[3]]);
            let told = job.arg("--score").args(score).arg("mill race").ok().json_lines().remove(0);
            let same = told["score"].as_f64().unwrap() as f32 == fields[4].parse::<f32>().unwrap();
            assert!(
                same && told["rank"].as_u64() == fields[1].parse().ok(),
                "{score:?} {line} {told}"
            );
            assert_eq!(told["score_name"], score[0]);
        }
    }
    let job = millrace(args!["explain", "--index", index, "--docid", "0", "--score", "ql", "mill"]);
    let text = job.ok();
    let rows: Vec<Vec<&str>> =
        text.text().lines().map(|l| l.split_whitespace().collect()).collect();
    let columns = ["term", "times", "df", "cf", "weight", "more", "tf", "score"];
    assert_eq!(rows[rows.len() - 2], columns, "{text:?}");
    assert_eq!(rows[rows.len() - 1][..4], ["mill", "1", "2", "2"], "{text:?}");
}

#[test]
fn vectors_are_ranked_by_impacts_exactly() {
    let scratch = Scratch::new();
    let mut random = Random::new(77);
    let term = |number: usize| format!("{}t{number}", ["", "##", "É^"][number % 3]);
    let mut weights: Vec<BTreeMap<String, f64>> = Vec::new();
    for _ in 0..700 {
        let count = random.below(60);
        weights.push((0..count).map(|_| (term(random.below(200)), random.share() * 3.0)).collect());
    }
    let line = |(docid, vector): (usize, &BTreeMap<String, f64>)| {
        serde_json::json!({"id": docid, "contents": "for people", "vector": vector}).to_string()
    };
    let lines: Vec<String> = weights.iter().enumerate().map(line).collect();
    let first = scratch.write("a.jsonl", lines[..300].join("\n"));
    let second = scratch.write("b.jsonl.gz", gzip(lines[300..].join("\n").as_bytes(), 2));
    let index = scratch.path("index");
    let import = |more: &[&str], file: &Path| {
        millrace(args!["import", "--index", index, "--format", "vectors"]).args(more).arg(file)
    };
    import(&[], &first).arg(&second).ok().says("700 documents").says("weights times 100");
    millrace(args!["check", "--quiet", "--index", index]).ok();
    let shown = millrace(args!["show", "--index", index, "--docid", "5"]).ok();
    assert!(shown.text().contains(&lines[5]), "{shown:?}");

    let query: Vec<(String, f64)> = (0..8).map(|n| (term(3 * n + n % 3), 0.5 + n as f64)).collect();
    let text: Vec<String> = query.iter().map(|(term, weight)| format!("{term}^{weight}")).collect();
    let text = text.join(" ");
    let mut expected: Vec<(f64, usize)> = Vec::new();
    for (docid, vector) in weights.iter().enumerate() {
        let impact = |weight: f64| (f64::from(weight as f32) * 100.0).round();
        let found: Vec<f64> = query
            .iter()
            .filter_map(|(term, weight)| Some(weight * impact(*vector.get(term)?)))
            .filter(|score| *score > 0.0)
            .collect();
        if !found.is_empty() {
            expected.push((found.iter().sum(), docid));
        }
    }
    expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    assert!(expected.len() > 100);
    let all = ask(&index, &text, &["impact"], "or", &["-k", "1000", "--algorithm", "exhaustive"]);
    let found: Vec<(f64, usize)> = all
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            (fields[4].parse().unwrap(), fields[2].parse().unwrap())
        })
        .collect();
    // Halves of whole numbers are exact in single precision.
    assert_eq!(found, expected);
    for engine in ["maxscore", "blocks", "wand", "bmw", "auto"] {
        for k in ["1", "7", "1000"] {
            let found = ask(&index, &text, &["impact"], "or", &["-k", k, "--algorithm", engine]);
            let most = k.parse().unwrap();
            assert!(found.lines().eq(all.lines().take(most)), "{engine} {k}");
        }
    }
    let vector: BTreeMap<&str, f64> =
        query.iter().map(|(term, weight)| (&**term, *weight)).collect();
    let object = serde_json::json!({"id": "1", "contents": "for people", "vector": vector});
    let by_object = ask(&index, &object.to_string(), &["impact"], "or", &["-k", "1000"]);
    assert_eq!(by_object, all);

    let whole = scratch.write("whole.jsonl", "{\"id\":\"x\",\"vector\":{\"a\":3,\"b\":0}}\n");
    import(&[], &whole).ok().says("1 term,").says("weights times 1\n");
    let wrong = "{\"id\":1,\"vector\":{\"a\":-1}}";
    import(&["--strict"], &scratch.write("wrong.jsonl", wrong)).fails(1).says("0 or more");
    let asked = ask(&index, "a", &["impact"], "or", &[]);
    assert_eq!(asked, "1\t1\tx\t0\t3\n", "what was live stays");
    import(&["--factor", "0"], &whole).fails(2).says("--factor: 0: it must be from");
}
