//! Measures how long one text of an index takes, and what else belongs to one document.
//!
//! Isolated: an open generation, whose files are in memory; each document once, in no order, so
//! that every text needs another block.
//! Axes: the text; all stored fields; a snippet of 160 characters with highlights; the vector.
//! Collection: an index that was built with `--store`; its folder and a query are the arguments.
//! Expected: a text takes the inflation of one block, a vector a look into every list.

use millrace::inside::index::{DocumentRow, DocumentVector};
use millrace::inside::query::{Reread, ReturnedValues, Snippets};
use millrace::{IndexError, Scoring, Snapshot, Wanted};
use std::path::Path;
use std::time::Instant;

const DOCUMENTS: u32 = 4000;
const VECTORS: usize = 10;

fn shown(what: &str, docids: &[u32], mut work: impl FnMut(u32) -> Result<(), IndexError>) {
    let mut times = Vec::new();
    // Once for the cache.
    for _ in 0..2 {
        times.clear();
        for &docid in docids {
            let start = Instant::now();
            work(docid).expect("the index has it");
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!("{what:<12} {:>10.1} {:>10.1} {:>10.1}", at(0.5), at(0.95), at(0.99));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [index, query] = &arguments[..] else {
        println!("texts: give an index and a query");
        return Ok(());
    };
    let snapshot = Snapshot::open(Path::new(index), Scoring::default())?;
    let generation = snapshot.generation();
    let all = generation.documents().len();
    // A step that shares no factor with their number.
    let step = (all / 2 + 1..).find(|step| (2..=7).all(|n| step % n != 0)).unwrap_or(1);
    let docid = |n: u32| (u64::from(n) * u64::from(step) % u64::from(all.max(1))) as u32;
    let docids: Vec<u32> = (0..DOCUMENTS.min(all)).map(docid).collect();
    println!("{:<12} {:>10} {:>10} {:>10}", "us", "median", "95 %", "99 %");
    let mut texts = Reread::of(generation)?;
    shown("text", &docids, |docid| texts.text(generation, docid).map(drop));
    let stored = DocumentRow::of(generation, 0)?.with_stored(generation)?.stored;
    let names: Vec<String> = stored.into_keys().collect();
    if !names.is_empty() {
        shown("fields", &docids, |docid| {
            ReturnedValues::of(generation, &names, std::iter::once(docid)).map(drop)
        });
    }
    let snippets = Snippets::new(&snapshot, Wanted::default(), query, 160);
    shown("snippet", &docids, |docid| {
        snippets.of(docid);
        Ok(())
    });
    let few = &docids[..docids.len().min(VECTORS)];
    shown("vector", few, |docid| DocumentVector::of(generation, docid).map(drop));
    Ok(())
}
