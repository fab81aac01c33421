//! Indexes documents that the program holds in memory, and searches them. Without arguments it uses
//! a folder of its own.
//!
//! ```text
//! cargo run --release --example index_and_search -- [INDEX QUERY...]
//! ```

use millrace::{BuildOptions, Index, OwnedDocument, build};
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let index = words.next().map(PathBuf::from);
    let index = index.unwrap_or_else(|| std::env::temp_dir().join("millrace-example"));
    let query = words.collect::<Vec<_>>().join(" ");
    let query = if query.is_empty() { "river mill" } else { &query };
    run(&index, query, &mut std::io::stdout())
}

/// Builds the index in the folder `index`, and writes the best documents for `query` to `out`.
pub fn run(index: &Path, query: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let texts = [
        ("mill", "The mill stands by the river, and the river turns its wheel."),
        ("wind", "Wind turns a mill too, where there is no river."),
        ("bread", "Flour becomes bread."),
    ];
    // Any iterator does; documents are taken as fast as they are indexed.
    let documents = texts.map(|(name, text)| OwnedDocument::new(name, text));
    build(BuildOptions::of_documents(index, documents))?;

    for hit in Index::open(index)?.search(query, 2)? {
        writeln!(out, "{}\t{}", hit.name, hit.score)?;
    }
    Ok(())
}
