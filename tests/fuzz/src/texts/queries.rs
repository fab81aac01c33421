//! Any file of queries is read alike in parts of any size, and each refusal can be printed.

use crate::fuzzing::take::{Dribble, Take};
use millrace::query::reading::forms::guess;
use millrace::query::reading::lines::Lines;
use std::io::Read;

/// Name, text and own settings of each query, or what is said of it.
fn read(stream: impl Read) -> Vec<String> {
    let lines = Lines::new(stream).map(|read| match read.expect("it is in memory") {
        Ok(query) => format!("{query:?}"),
        Err(refused) => {
            let said = refused.to_string();
            assert!(!said.is_empty());
            said
        }
    });
    lines.collect()
}

/// What is asked of an input.
pub fn queries(data: &[u8]) {
    let mut take = Take(data);
    let part = usize::from(take.u8()) + 1;
    let file = take.rest();
    assert_eq!(read(file), read(Dribble::new(file, part)));
    let guessed = |stream: &mut dyn Read| guess(stream).expect("it is in memory");
    assert_eq!(guessed(&mut &*file), guessed(&mut Dribble::new(file, part)));
}
