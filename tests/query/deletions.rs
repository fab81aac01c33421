//! The answers of an index that leaves documents out are those of an index without them: to the
//! bit, by every algorithm and every parallel model.

use crate::support::sound::{Answers, OldAndNew, assert_sound};
use crate::support::{args, info, millrace};
use millrace::inside::index::{Description, Draft, IndexLock, current};
use millrace::inside::papers::ALGORITHMS;
use millrace::inside::score::Given;
use millrace::{Algorithm, Generation, IdfKind, Mode, Searcher, Snapshot, Wanted};
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
            (3, "bm25", usual),
            (1000, "bm25", robertson),
            (5, "bm25plus", usual),
            (1000, "ql", Given { mu: Some(3.0), ..usual }),
            (5, "dph", usual),
            (5, "impact", usual),
        ] {
            let wanted = Wanted { k, mode, algorithm };
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
}
