//! The fuzz targets, one a file, each of which says in its first line what it asserts. They are
//! compiled with the library, whose inside they need.

mod bounds;
mod cache_plan;
mod ciff;
mod codec;
mod columns;
#[cfg(test)]
mod corpus;
mod cutter;
mod decode;
mod documents;
mod generation;
mod hello;
mod jsonl;
mod lexicon;
mod list;
mod manifest;
mod positions;
mod records;
mod support;
mod texts;
mod tokenizer;
mod tsv;

pub use cache_plan::cache_plan;
pub use ciff::ciff;
pub use codec::codec;
pub use cutter::cutter;
pub use decode::decode;
pub use documents::documents;
pub use generation::generation;
pub use hello::hello;
pub use jsonl::jsonl;
pub use lexicon::lexicon;
pub use list::list;
pub use manifest::manifest;
pub use records::records;
pub use texts::{job_file, judged, queries, query_line, stop_words};
pub use tokenizer::tokenizer;
pub use tsv::tsv;

use std::path::PathBuf;
use support::{damage, sample, take};

/// Makes a folder for the files of one process, below `TMPDIR`, which is best in memory. libFuzzer
/// ends the process without unwinding, so that nobody but the caller of the process removes it; a
/// test removes it as its thread ends.
fn folder() -> PathBuf {
    let made = tempfile::Builder::new().prefix("millrace-fuzz-").tempdir();
    let made = made.expect("a folder can be made below TMPDIR");
    #[cfg(test)]
    return corpus::keep(made);
    #[cfg(not(test))]
    made.keep()
}
