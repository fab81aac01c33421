//! Embeds a query service: a thread asks, the workers answer, and the index may be replaced
//! meanwhile. Without arguments it makes a small index and asks it two queries.
//!
//! ```text
//! cargo run --release --example query_service -- [INDEX <queries]
//! ```

use millrace::{
    BuildOptions, Lines, Mode, OwnedDocument, QueryOptions, QueryService, Scoring, Sink, Snapshot,
    Wanted, build,
};
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(index) = std::env::args_os().nth(1) {
        return run(index.as_ref(), std::io::stdin(), std::io::stdout());
    }
    let index = std::env::temp_dir().join("millrace-example-service");
    let texts = [("mill", "The mill stands by the river."), ("wind", "Wind turns a mill too.")];
    let documents = texts.map(|(name, text)| OwnedDocument::new(name, text));
    build(BuildOptions::of_documents(&index, documents))?;
    run(&index, &b"mill\nriver mill\n"[..], std::io::stdout())
}

/// Answers the queries of `queries`, a line each, with documents that have all their terms.
pub fn run(
    index: &Path,
    queries: impl Read + Send + 'static,
    mut out: impl Write + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let snapshot = Snapshot::open(index, Scoring::default())?;
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
        // The reader may have closed it.
        _ = writeln!(out, "{line}");
    }))?;
    eprintln!("{} queries, {} hits", report.queries, report.hits);
    Ok(())
}
