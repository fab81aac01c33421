//! Any file of judgements or of a run is read alike in parts of any size, or an error that can be
//! printed; a run keeps all its documents in their order.

use crate::fuzzing::take::{Dribble, Take};
use millrace::evaluate::qrels::Qrels;
use millrace::evaluate::run::Rankings;

/// What is asked of an input.
pub fn judged(data: &[u8]) {
    let mut take = Take(data);
    let part = usize::from(take.u8()) + 1;
    let file = take.rest();
    let whole = Qrels::read("file", Ok(file));
    let parts = Qrels::read("file", Ok(Dribble::new(file, part)));
    match (&whole, &parts) {
        (Ok(whole), Ok(parts)) => {
            assert!(
                whole.len() > 0
                    && whole.iter().map(|(qid, _)| qid).eq(parts.iter().map(|(qid, _)| qid))
            );
            for ((_, one), (_, other)) in whole.iter().zip(parts.iter()) {
                assert!(one.levels().is_sorted_by(|a, b| a >= b) && !one.levels().is_empty());
                assert_eq!(one.levels(), other.levels());
            }
        }
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        _ => panic!("parts change what is read"),
    }
    let whole = Rankings::read("file", Ok(file));
    let parts = Rankings::read("file", Ok(Dribble::new(file, part)));
    match (whole, parts) {
        (Ok(whole), Ok(parts)) => {
            let queries: Vec<String> = whole.queries().map(str::to_owned).collect();
            assert!(!queries.is_empty() && parts.queries().eq(queries.iter()));
            for qid in &queries {
                match (whole.best_first(qid), parts.best_first(qid)) {
                    (Ok(one), Ok(other)) => {
                        assert_eq!(one, other);
                        assert!(one.is_sorted_by(|a, b| a.1 >= b.1 && !a.1.is_nan()));
                    }
                    (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
                    _ => panic!("parts change a ranking"),
                }
            }
        }
        (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
        _ => panic!("parts change what is read"),
    }
}
