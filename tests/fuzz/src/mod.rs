//! The fuzz targets, one a file, each of which says in its first line what it asserts. They are
//! compiled with the library, whose inside they need.

mod cache_plan;
mod ciff;
mod codec;
mod cutter;
mod decode;
mod documents;
mod generation;
mod hello;
mod jsonl;
mod lexicon;
mod list;
mod manifest;
mod query_line;
mod records;
mod stop_words;
mod support;
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
pub use query_line::query_line;
pub use records::records;
pub use stop_words::stop_words;
pub use tokenizer::tokenizer;
pub use tsv::tsv;

use std::path::PathBuf;
use support::{damage, sample, take};
use tempfile::TempDir;

/// Makes a folder for the files of one process, below `TMPDIR`, which is best in memory. libFuzzer
/// ends the process without unwinding, so that nobody but the caller of the process removes it.
fn folder() -> PathBuf {
    let made = tempfile::Builder::new().prefix("millrace-fuzz-").tempdir();
    made.map(TempDir::keep).expect("a folder can be made below TMPDIR")
}
