//! Measures how a searcher goes from one generation of an index to the next.
//!
//! Isolated: opening a snapshot; no build, no parsing, and all files are in memory.
//! Axes: a fresh snapshot of the live generation, or one from a kept generation that is open; the
//! scores bm25 and ql, since the norm of ql takes a logarithm. And the first and the second pass of
//! queries after that, which count postings of deleted documents.
//! Collection: an index that was built and rebuilt with `--keep 1`; its folder, the number of the
//! kept generation and a file of queries are the arguments. Expected: a fresh snapshot reads all
//! that the index has but its lists; the other one reads what is new, and computes norms.

use millrace::inside::score::Given;
use millrace::{Generation, IndexError, Searcher, Snapshot, Wanted};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const PASSES: usize = 15;

fn milliseconds<T>(times: &mut Vec<f64>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = work();
    times.push(start.elapsed().as_secs_f64() * 1e3);
    made
}

fn ask(snapshot: &Arc<Snapshot>, queries: &[String]) -> Result<(), IndexError> {
    let mut searcher = Searcher::new();
    let wanted = Wanted::default();
    queries.iter().try_for_each(|query| searcher.search(snapshot, &wanted, query).map(drop))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [index, kept, queries] = &arguments[..] else {
        println!("follow: give an index, the number of a kept generation and a file of queries");
        return Ok(());
    };
    let index = Path::new(index);
    let kept = index.join(format!("gen-{:0>6}", kept));
    let queries: Vec<String> =
        std::fs::read_to_string(queries)?.lines().map(str::to_string).collect();
    println!("{:<5} {:<28} {:>9} {:>9} {:>9}", "score", "ms", "least", "median", "most");
    for score in ["bm25", "ql"] {
        let scoring = Given::default().scoring(score)?;
        let mut times = [const { Vec::new() }; 7];
        for _ in 0..PASSES {
            let [fresh, fresh_first, fresh_second, next, next_first, next_second, same] =
                &mut times;
            let before = Snapshot::new(Generation::open_folder(&kept)?, scoring.clone())?;
            ask(&before, &queries)?;
            let snapshot = milliseconds(next, || before.follow(index))?;
            milliseconds(next_first, || ask(&snapshot, &queries))?;
            milliseconds(next_second, || ask(&snapshot, &queries))?;
            milliseconds(same, || snapshot.follow(index))?;
            drop((before, snapshot));
            let snapshot = milliseconds(fresh, || Snapshot::open(index, scoring.clone()))?;
            milliseconds(fresh_first, || ask(&snapshot, &queries))?;
            milliseconds(fresh_second, || ask(&snapshot, &queries))?;
        }
        let names = ["fresh", "queries first", "queries again", "after the one before"];
        let names = names.iter().chain(&["queries first", "queries again", "the very same"]);
        for (name, times) in names.zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let [least, median, most] = [0, PASSES / 2, PASSES - 1].map(|at| times[at]);
            println!("{score:<5} {name:<28} {least:>9.3} {median:>9.3} {most:>9.3}");
        }
    }
    Ok(())
}
