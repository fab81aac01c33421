//! `millrace check`.

use crate::args::{Common, show_bytes, show_count};
use anyhow::Context;
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
    let index = args.index.display().to_string();
    let checked = check::check(&args.index);
    let seconds = start.elapsed().as_secs_f64();
    let totals = match &checked {
        Ok(report) => serde_json::json!({
            "job": "check", "index": index, "problems": 0, "files": report.files,
            "bytes": report.bytes, "documents": report.documents, "terms": report.terms,
            "postings": report.postings, "debris": report.debris.len(),
        }),
        Err(problems) => {
            serde_json::json!({"job": "check", "index": index, "problems": problems.len()})
        }
    };
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])?;
    let report = match checked {
        Ok(report) => report,
        Err(mut problems) => {
            // The last is the job's error, which is printed like these.
            let last = problems.pop().context("a check failed without a problem")?;
            for problem in problems {
                eprintln!("millrace: {:#}", anyhow::Error::from(problem));
            }
            return Err(last.into());
        }
    };
    if !args.common.quiet {
        let mut line = format!(
            "{index}: sound: {} documents, {} terms, {} postings, {} checked in {seconds:.2} s",
            show_count(report.documents),
            show_count(report.terms),
            show_count(report.postings),
            show_bytes(report.bytes),
        );
        if !report.debris.is_empty() {
            let n = report.debris.len();
            line += &format!("; {n} left-over files or folders, which the next build removes");
        }
        eprintln!("{line}");
    }
    Ok(())
}
