//! Queries: answers and their scores, by every engine, and the jobs around them.

mod answers;
mod bench;
mod cache;
mod candidates;
// Only debug builds have what it checks an index with.
#[cfg(debug_assertions)]
pub(crate) mod deletions;
mod effectiveness;
mod engines;
mod evaluate;
pub(crate) mod forms;
mod inspect;
mod lines;
mod parallel;
mod reading;
mod rm3;
mod scores;
mod scripts;
mod snippets;
mod streaming;
mod topics;
