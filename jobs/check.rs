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
    let (problems, report) = match check::check(&args.index) {
        Ok(report) => (Vec::new(), Some(report)),
        Err(problems) => (problems, None),
    };
    let seconds = start.elapsed().as_secs_f64();
    let totals = serde_json::json!({
        "job": "check", "index": args.index, "problems": problems.len(),
        "documents": report.as_ref().map(|report| report.documents),
        "terms": report.as_ref().map(|report| report.terms),
        "postings": report.as_ref().map(|report| report.postings),
    });
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])?;
    let Some(report) = report else {
        let count = problems.len();
        for problem in problems {
            eprintln!("{:#}", anyhow::Error::from(problem));
        }
        anyhow::bail!("{}: {count} problems", args.index.display());
    };
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
