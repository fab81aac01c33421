//! Embeds a query service: a thread asks, the workers answer, and the index may be replaced
//! meanwhile.
//!
//! ```text
//! cargo run --release --example query_service -- INDEX <queries
//! ```

use millrace::Lines;
use millrace::{Mode, Wanted};
use millrace::{QueryOptions, QueryService, Sink};
use millrace::{Scoring, Snapshot};
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let index = std::env::args_os().nth(1).ok_or("give the folder of an index")?;
    run(index.as_ref(), std::io::stdin(), std::io::stdout())
}

/// Answers the queries of `queries`, a line each, with documents that have all their terms.
pub fn run(
    index: &Path,
    queries: impl Read + Send + 'static,
    mut out: impl Write + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let snapshot = Snapshot::open(index, false, Scoring::default())?;
    let options = QueryOptions {
        wanted: Wanted { k: 3, mode: Mode::And, ..Wanted::default() },
        ..QueryOptions::default()
    };
    let (service, asker) = QueryService::new(snapshot, options);
    // When the index has a new generation, `service.mover().move_to(..)` takes the service over to
    // it.
    asker.ask_in_background(Lines::new(queries))?;
    // Answers come in the order of the queries.
    let report = service.run(Sink::values(move |answer| {
        let line = match answer {
            Ok(answer) => {
                let names: Vec<&str> = answer.hits.iter().map(|hit| &*hit.name).collect();
                format!("{}: {}", answer.query.text, names.join(", "))
            }
            Err(refused) => refused.to_string(),
        };
        // Who reads this may have gone.
        _ = writeln!(out, "{line}");
    }))?;
    eprintln!("{} queries, {} hits", report.queries, report.hits);
    Ok(())
}
