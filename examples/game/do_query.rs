//! Answers the queries of the public "Search Benchmark, the Game": a line for each on standard
//! input, a command, a tab and the query; a line with a number for each on standard output.
//!
//! ```text
//! cargo run --release --example game -- INDEX <queries
//! ```

use millrace::{Scoring, Searcher, Snapshot, Syntax, Wanted};
use std::error::Error;
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let index = std::env::args().nth(1).ok_or("give the folder of the index")?;
    run(&index, std::io::stdin().lock(), std::io::stdout().lock())
}

pub(crate) fn run(
    index: &str,
    queries: impl BufRead,
    mut out: impl Write,
) -> Result<(), Box<dyn Error>> {
    let snapshot = Snapshot::open(index.as_ref(), Scoring::default())?;
    let mut searcher = Searcher::new();
    for line in queries.lines() {
        let line = line?;
        let (command, query) = line.split_once('\t').ok_or("a command, a tab and a query")?;
        let (k, count) = match command {
            "COUNT" => (0, true),
            "TOP_10" => (10, false),
            "TOP_100" => (100, false),
            "TOP_1000" => (1000, false),
            "TOP_10_COUNT" => (10, true),
            "TOP_100_COUNT" => (100, true),
            _ => {
                writeln!(out, "UNSUPPORTED")?;
                continue;
            }
        };
        let wanted = Wanted { k, count, syntax: Syntax::Operators, ..Wanted::default() };
        match searcher.search(&snapshot, &wanted, query) {
            Ok(_) => writeln!(out, "{}", searcher.found().unwrap_or(1))?,
            Err(_) => writeln!(out, "UNSUPPORTED")?,
        }
        out.flush()?;
    }
    Ok(())
}
