//! `millrace check`.

use crate::cli::args::workers_of;
use crate::cli::progress::{DrawnProgress, in_bytes};
use millrace::inside::index::check;
use millrace::inside::shown::{chain, number_of};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number of threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Print one JSON object, also of an index that is damaged.
    #[arg(long)]
    json: bool,
}

/// Every problem is a line on standard error.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let workers = workers_of(args.workers)?;
    let (watched, watching) = DrawnProgress::begin(in_bytes("checking"));
    let (report, problems) = match check::check_watched(&args.index, workers, &watched) {
        Ok(report) => (Some(report), Vec::new()),
        Err(problems) => (None, problems),
    };
    drop(watching);
    let seconds = start.elapsed().as_secs_f64();
    let mut totals = serde_json::json!({
        "job": "check",
        "index": args.index.display().to_string(),
        "problems": problems.iter().map(|problem| chain(problem)).collect::<Vec<_>>(),
    });
    if let Some(report) = &report {
        totals["bytes"] = report.bytes.into();
        totals["documents"] = report.documents.into();
        totals["terms"] = report.terms.into();
        totals["postings"] = report.postings.into();
    }
    crate::cli::report::print(args.json, &totals, String::new)?;
    crate::cli::report::write(totals, workers)?;
    let Some(report) = report else {
        for problem in &problems {
            say!("{}", chain(problem));
        }
        let problems = number_of(problems.len() as u64, "problem", "problems");
        anyhow::bail!("{}: {problems}", args.index.display());
    };
    let index = args.index.display();
    for path in &report.debris {
        tell!(
            "{index}: {} is left from a job that died; the next build removes it",
            path.display()
        );
    }
    if report.being_written {
        tell!("{index}: a job is writing to this index; the live generation was checked");
    }
    tell!("{index}: sound: {report} checked in {seconds:.2} s");
    Ok(())
}
