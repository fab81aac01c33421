//! `millrace check`.

use crate::args::{Common, show_count};
use millrace::index::check;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Runs the job: every problem is a line on standard error.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let report = check::check(&args.index)?;
    for problem in &report.problems {
        eprintln!("{problem}");
    }
    let seconds = start.elapsed().as_secs_f64();
    let totals = serde_json::json!({
        "job": "check", "index": args.index, "problems": report.problems.len(),
        "documents": report.documents, "terms": report.terms, "postings": report.postings,
    });
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])?;
    if !report.problems.is_empty() {
        anyhow::bail!("{}: {} problems", args.index.display(), report.problems.len());
    }
    if !args.common.quiet {
        eprintln!(
            "{}: sound: {} documents, {} terms, {} postings, every byte checked in {seconds:.2} s",
            args.index.display(),
            show_count(report.documents),
            show_count(report.terms),
            show_count(report.postings)
        );
    }
    Ok(())
}
