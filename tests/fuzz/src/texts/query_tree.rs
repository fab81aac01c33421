//! Any query with operators is refused, or found by one search as by another: by words of all text,
//! with boosts of fields, and by BM25F. This is a part of the target for lines of queries.

use millrace::build::build;
use millrace::build::options::BuildOptions;
use millrace::index::error::IndexError;
use millrace::index::generations::generation::Generation;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::{Mode, Syntax, Wanted};
use millrace::score::fields::FieldScoring;
use millrace::score::parameters::Given;
use millrace::text::fields::IndexFields;
use std::cell::RefCell;
use std::sync::Arc;

const DOCUMENTS: u32 = 300;

thread_local! {
    static INDEX: RefCell<(Vec<Arc<Snapshot>>, Searcher)> = RefCell::new(open());
}

/// Word i is in about one of i + 1 texts.
fn text(docid: u32, seed: u32) -> String {
    let words = ["water", "mill", "race", "river", "stone", "x", "42", "naïve", "abc"];
    let mixed = |i: u32| (docid + 7 * seed + 1).wrapping_mul(0x9e37_79b1).rotate_left(i + seed);
    let here = (0..).zip(words).filter(|(i, _)| mixed(*i).is_multiple_of(i + 1));
    here.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

fn open() -> (Vec<Arc<Snapshot>>, Searcher) {
    let folder = crate::fuzzing::folder();
    let line = |docid| {
        let [title, text] = [1, 2].map(|seed| text(docid, seed));
        format!("{{\"id\":\"{docid}\",\"title\":\"{title}\",\"text\":\"{text}\"}}\n")
    };
    let file = folder.join("d.jsonl");
    let lines: String = (0..DOCUMENTS).map(line).collect();
    std::fs::write(&file, lines).expect("the folder is there");
    let index = folder.join("index");
    let mut options = BuildOptions::of_paths(&index, [file]);
    options.index_fields = IndexFields::new(["title", "text"]).expect("they are names");
    options.form = options.form.with_positions(true);
    options.workers = 1;
    build(options).expect("it is built");
    let generation = Arc::new(Generation::open(&index).expect("it was written"));
    let boost = FieldScoring::read("title=3,text=0.5").expect("they are weights");
    let fields = FieldScoring { boost, ..FieldScoring::default() };
    let given = Given { fields, ..Given::default() };
    let boosted = ["bm25", "bm25f"].map(|score| given.scoring(score).expect("they are its own"));
    let open = |scoring| Snapshot::new(generation.clone(), scoring).expect("it has the fields");
    ([Scoring::default()].into_iter().chain(boosted).map(open).collect(), Searcher::new())
}

/// What is asked of an input: `t` and a tree in JSON, or another byte and a text.
pub(super) fn query_tree(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let syntax = if first == b't' { Syntax::Tree } else { Syntax::Operators };
    INDEX.with_borrow_mut(|(snapshots, searcher)| {
        let modes = || Mode::ALL.into_iter();
        for (snapshot, mode) in snapshots.iter().flat_map(|of| modes().map(move |mode| (of, mode)))
        {
            let k = DOCUMENTS as usize;
            let wanted = Wanted { k, mode, syntax, count: true, ..Wanted::default() };
            let all = match searcher.search(snapshot, &wanted, &text) {
                Ok((hits, _)) => hits.to_vec(),
                Err(IndexError::Query { why }) => {
                    assert!(!why.is_empty());
                    continue;
                }
                Err(error) => panic!("the index is good: {error}"),
            };
            assert!(all.is_sorted_by(|a, b| a.score >= b.score), "{text:?}");
            let found = searcher.found().expect("it is asked for");
            assert_eq!(found, all.len() as u64, "{text:?}");
            // AND+OR asks for other documents where fewer are wanted.
            if mode != Mode::AndOr {
                let few = Wanted { k: 3, ..wanted };
                let (hits, _) = searcher.search(snapshot, &few, &text).expect("it was found");
                assert_eq!(hits, &all[..all.len().min(3)], "{text:?}");
                assert_eq!(searcher.found(), Some(found), "{text:?}");
            }
        }
    });
}
