//! Any query with operators is refused, or found by one search as by another. This is a part of the
//! target for lines of queries.

use crate::fuzzing::sample;
use millrace::index::error::IndexError;
use millrace::index::generations::generation::Generation;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::{Mode, Syntax, Wanted};
use std::cell::RefCell;
use std::sync::Arc;

const DOCUMENTS: u32 = 300;

thread_local! {
    static INDEX: RefCell<(Arc<Snapshot>, Searcher)> = RefCell::new(open());
}

fn open() -> (Arc<Snapshot>, Searcher) {
    let folder = crate::fuzzing::folder();
    let collection = sample::collection(DOCUMENTS);
    sample::build(&folder, &collection, &[110]).expect("it is written");
    let generation = Generation::open(&folder).expect("it was written");
    let snapshot = Snapshot::new(generation, Scoring::default()).expect("the analysis is known");
    (snapshot, Searcher::new())
}

/// What is asked of an input: `t` and a tree in JSON, or another byte and a text.
pub(super) fn query_tree(data: &[u8]) {
    let Some((&first, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let syntax = if first == b't' { Syntax::Tree } else { Syntax::Operators };
    INDEX.with_borrow_mut(|(snapshot, searcher)| {
        for mode in Mode::ALL {
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
