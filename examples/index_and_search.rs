//! Indexes documents that the program holds in memory, and searches them.
//!
//! ```text
//! cargo run --release --example index_and_search -- INDEX QUERY...
//! ```

use millrace::Searcher;
use millrace::Wanted;
use millrace::{BuildOptions, OwnedDocument, build};
use millrace::{Scoring, Snapshot};
use std::error::Error;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let index = words.next().ok_or("give a folder for the index, and a query")?;
    run(index.as_ref(), &words.collect::<Vec<_>>().join(" "), &mut std::io::stdout())
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

    let snapshot = Snapshot::open(index, false, Scoring::default())?;
    let wanted = Wanted { k: 2, ..Wanted::default() };
    let mut searcher = Searcher::new();
    let (hits, _) = searcher.search(&snapshot, &wanted, query)?;
    for hit in hits {
        let name = snapshot.generation().documents().name(hit.docid).unwrap_or_default();
        writeln!(out, "{}\t{}", String::from_utf8_lossy(name), hit.score)?;
    }
    Ok(())
}
