//! The answers of an index that leaves documents out are those of an index without them: to the
//! bit, by every algorithm and every parallel model.

use crate::support::sound::{Answers, OldAndNew, assert_sound};
use crate::support::{args, info, millrace};
use millrace::inside::index::{Description, Draft, IndexLock, current};
use millrace::inside::papers::ALGORITHMS;
use millrace::inside::score::Given;
use millrace::{Algorithm, Generation, IdfKind, Mode, Searcher, Snapshot, Wanted};
use serde_json::Value;
use std::path::Path;

/// Every second document of the first run, all of the second, and few of the others.
fn is_deleted(run: usize, docid: u32) -> bool {
    match run {
        0 => docid.is_multiple_of(2),
        1 => true,
        _ => docid % 9 == 4,
    }
}

/// Publishes the live generation once more without these documents. Returns their docids.
pub(crate) fn delete(index: &Path) -> Vec<u32> {
    delete_those(index, is_deleted)
}

/// The same without others, by the place of the run and the docid in it.
pub(crate) fn delete_those(index: &Path, is_deleted: impl Fn(usize, u32) -> bool) -> Vec<u32> {
    let lock = IndexLock::acquire(index).unwrap();
    let from = current(index).unwrap().unwrap();
    let old = Generation::open(index).unwrap();
    let manifest = old.manifest();
    let mut draft = Draft::begin(&lock).unwrap();
    let mut deleted = Vec::new();
    draft.link_all(&from, manifest).unwrap();
    for (number, run) in manifest.runs.iter().enumerate() {
        let docids: Vec<u32> = (0..run.documents).filter(|d| is_deleted(number, *d)).collect();
        draft.delete(number, &docids).unwrap();
        deleted.extend(docids.iter().map(|docid| run.first_docid + docid));
    }
    let settings = manifest.settings.clone();
    let description = Description { settings, ..Description::default() };
    draft.publish(&lock, description, 1 << 20).unwrap();
    deleted
}

/// The answers to all queries, in every mode by every algorithm, for few hits and for many.
fn ask_all(index: &Path, queries: &[String]) -> Answers {
    use Algorithm::{Auto, Blocks, Exhaustive, Galloping, MaxScore};
    let mut answers = Answers::new();
    let ors = [Auto, Exhaustive, MaxScore, Blocks].map(|algorithm| (Mode::Or, algorithm));
    let of_papers = ALGORITHMS.iter().map(|&algorithm| {
        let mode = if algorithm.finds_all() { Mode::And } else { Mode::Or };
        (mode, Algorithm::Handed(algorithm))
    });
    let asked = ors.into_iter().chain(of_papers);
    let asked = asked.chain([(Mode::And, Galloping), (Mode::AndOr, Auto)]);
    for (mode, algorithm) in asked {
        let robertson = Given { idf: Some(IdfKind::Robertson), ..Given::default() };
        let usual = Given::default();
        for (k, score, given) in [
            (3, "bm25", usual.clone()),
            (1000, "bm25", robertson),
            (5, "bm25plus", usual.clone()),
            (1000, "ql", Given { mu: Some(3.0), ..usual.clone() }),
            (5, "dph", usual.clone()),
            (5, "impact", usual.clone()),
        ] {
            let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
            let scoring = given.scoring(score).unwrap();
            let snapshot = Snapshot::open(index, scoring).unwrap();
            let mut searcher = Searcher::new();
            for query in queries {
                let (hits, _) = searcher.search(&snapshot, &wanted, query).unwrap();
                let name = |docid| snapshot.generation().documents().name(docid).unwrap().to_vec();
                answers.push(hits.iter().map(|h| (name(h.docid), h.score.to_bits())).collect());
            }
        }
    }
    answers
}

/// What jobs say of an index, without docids and without what lists have of deleted documents.
fn told(set: &OldAndNew, index: &Path, names: &[String]) -> Vec<Value> {
    let mut told = Vec::new();
    let run = |words: &[&str]| millrace(args![words[0], "--index", index]).args(&words[1..]).ok();
    let mut object = |text: &str| {
        let mut object: Value = serde_json::from_str(text).unwrap();
        let inner = object["terms"].as_array_mut();
        for term in inner.into_iter().flatten().filter(|term| term.is_object()) {
            ["bytes", "runs", "bound"].iter().for_each(|of_lists| _ = term[of_lists].take());
            let first = term["first"].as_array_mut();
            first.into_iter().flatten().for_each(|row| _ = row["docid"].take());
        }
        for other in ["docid", "index", "bytes", "input", "offset"] {
            _ = object[other].take();
        }
        told.push(object);
    };
    let word = set.queries[0].split(' ').next().unwrap();
    object(run(&["show", "--json", "--term", word]).text());
    for (query, name) in set.queries.iter().zip(names) {
        for score in ["bm25", "ql"] {
            let explain = ["explain", "--json", "-k", "5", "--score", score, "--", name, query];
            object(run(&explain).text());
        }
    }
    let judged = (1..).zip(names).map(|(qid, name)| format!("{qid} 0 {name} 1\n"));
    let qrels = set.scratch.write("qrels", judged.collect::<String>());
    let queries = set.scratch.write("asked.txt", set.queries.join("\n"));
    let tune = args!["tune", "--json", "--index", index, "--qrels", qrels, "--folds", "2"];
    object(millrace(tune).args(["--k1", "0.5,2", "--b", "0.4"]).arg(queries).ok().text());
    for what in ["terms", "documents"] {
        run(&["dump", what]).text().lines().for_each(&mut object);
    }
    let documents = run(&["dump", "--format", "tsv", "documents"]).text().to_string();
    let names: Vec<(&str, &str)> = documents
        .lines()
        .map(|line| line.split('\t'))
        .map(|mut cells| (cells.next().unwrap(), cells.next().unwrap()))
        .collect();
    for line in run(&["dump", "--format", "tsv", "postings"]).text().lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let document = names.iter().find(|(docid, _)| *docid == cells[1]).expect("it lives");
        told.push(serde_json::json!([cells[0], document.1, cells[2]]));
    }
    let postings = run(&["dump", "postings"]);
    told.extend(postings.json_lines().iter().map(|line| line["df"].clone()));
    let lengths = postings.json_lines();
    assert!(
        lengths.iter().all(|line| line["postings"].as_array().unwrap().len() as u64 == line["df"])
    );
    let file = set.scratch.path("exported.ciff");
    millrace(args!["export", "--index", index, file]).ok();
    told.push(std::fs::read(file).unwrap().into());
    told
}

#[test]
fn answers_are_those_of_an_index_without_the_documents() {
    let set = OldAndNew::new(600, 16, 4);
    let index = set.index();
    let job = set.build(&set.old).env("MILLRACE_RUN_LIMIT", "1").arg("--no-merge");
    job.args(["--block-size", "64"]).ok();
    let mut deleted = delete(&index);
    // So few that their postings are counted by the queries.
    deleted.extend(delete_those(&index, |run, docid| run != 1 && docid == 33));
    assert!(info(&index)["uncounted_documents"].as_u64().unwrap() > 0);
    assert!(info(&index)["runs"].as_u64().unwrap() >= 3);
    assert_eq!(info(&index)["deleted_documents"].as_u64().unwrap() as usize, deleted.len());
    assert_sound(&index, "with deletions");

    let mut rest = Vec::new();
    let mut docid = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(&set.old).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            if !deleted.contains(&docid) {
                rest.extend_from_slice(line.as_bytes());
                rest.push(b'\n');
            }
            docid += 1;
        }
    }
    let input = set.scratch.write("rest.jsonl", rest);
    let without = set.scratch.path("without");
    set.build_into(&without, &input).args(["--block-size", "64"]).ok();
    let mut queries = set.queries.clone();
    let one = set.queries.clone();
    // Queries of one term take other ways.
    queries.extend(one.iter().map(|query| query.split(' ').next().unwrap().to_string()));
    let expected = ask_all(&without, &queries);
    assert!(expected.iter().any(|hits| hits.len() > 100));
    assert!(ask_all(&index, &queries) == expected);
    // Documents of all ranks.
    let names = expected.iter().zip(0..).filter_map(|(hits, at)| hits.get(at % hits.len().max(1)));
    let names = names.map(|(name, _)| String::from_utf8(name.clone()).unwrap());
    let names = names.take(set.queries.len()).collect::<Vec<_>>();
    assert_eq!(names.len(), set.queries.len());
    let expected_told = told(&set, &without, &names);
    assert!(expected_told.len() > 1000);
    let found_told = told(&set, &index, &names);
    let all = found_told.iter().zip(&expected_told);
    all.for_each(|(found, expected)| assert_eq!(found, expected));
    assert_eq!(found_told.len(), expected_told.len());
    let gone = deleted[0].to_string();
    millrace(args!["show", "--index", index, "--docid", gone]).fails(1).says("is deleted");

    let lines = set.scratch.write("queries.txt", queries.join("\n"));
    let ask = |index: &Path, mode: &str, more: &[&str]| {
        let job = millrace(args!["query", "--quiet", "--index", index, "--mode", mode, "-k", "7"]);
        job.args(["-w", "2"]).args(more).arg(&lines).ok().stdout
    };
    for mode in ["or", "and", "and-or"] {
        let expected = ask(&without, mode, &[]);
        assert!(!expected.is_empty());
        for model in ["inter", "docp-ui", "docp-pi", "fgqp"] {
            let found = ask(&index, mode, &["--parallelism", model]);
            assert!(found == expected, "{mode} {model}");
        }
    }

    millrace(args!["merge", "--quiet", "--index", index]).ok();
    assert_eq!(info(&index)["deleted_documents"], 0);
    assert_eq!(info(&index)["uncounted_documents"], 0);
    assert_sound(&index, "merged");
    assert!(ask_all(&index, &queries) == expected);
    assert!(told(&set, &index, &names) == expected_told);
}
