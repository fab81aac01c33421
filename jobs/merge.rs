//! `millrace merge`.

use crate::Usage;
use crate::cli::args::{Workers, size};
use crate::cli::order_args::OrderArgs;
use crate::cli::progress::{DrawnProgress, in_things};
use crate::cli::{report, signals};
use millrace::inside::codec::ListCodec;
use millrace::inside::index::{Merged, RanksFile, Recode, Totals, merge_index, totals};
use millrace::inside::input::text_of_file;
use millrace::inside::shown::number_of;
use millrace::{Control, IndexError, give_back_large_buffers};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Compression of the postings: bp128, newpfd, vbyte, rice or pfor [default: as it is].
    #[arg(long, value_name = "NAME")]
    codec: Option<ListCodec>,
    /// Number of postings that are compressed together: 64, 128 or 512 [default: as it is].
    #[arg(long, value_parser = crate::cli::index_args::block_size, value_name = "N")]
    block_size: Option<usize>,
    /// Greatest memory of the job, such as 64M or 4G.
    #[arg(long, default_value = "1G", value_parser = size)]
    memory: u64,
    /// Remove deleted documents from the disk at once: no older generation is kept, so that
    /// `rollback` has none to go back to.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    workers: Workers,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let workers = args.workers.count()?;
    give_back_large_buffers(args.memory);
    if args.workers.together.hosts()?.is_some() {
        return Err(Usage("merge runs in one process".into()).into());
    }
    let control = Arc::new(Control::default());
    signals::watch(&control, None)?;
    let told = report::is_asked();
    let before = told.then(|| totals(&args.index, None)).transpose()?.flatten();
    let order = args.order.order()?;
    let ranks = args.order.pagerank.clone().map(|path| RanksFile { path, text: text_of_file });
    let now = args.now;
    let recode = Recode { codec: args.codec, block_len: args.block_size, order, ranks, now };
    let command = crate::cli::args::command();
    let stop = control.stop();
    let line = in_things("merging", "posting", "postings");
    let watching = DrawnProgress::start(stop, line);
    let merged = merge_index(&args.index, args.memory, &command, workers as u32, recode, stop);
    drop(watching);
    // A signal makes the merge fail; it is the reason.
    let merged = merged.map_err(|error| match (control.take_failure(), error) {
        (Some(failure), _) => failure.into(),
        (None, error @ IndexError::NoForm { .. }) => Usage(error.to_string()).into(),
        (None, error) => anyhow::Error::from(error),
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let (runs, generation) = match &merged {
        Merged::Nothing => (1, None),
        Merged::Runs { runs, manifest, .. } => (*runs, Some(manifest.generation)),
    };
    if let Merged::Runs { ranks, .. } = &merged
        && let Some(remark) = ranks.remark()
    {
        tell!("millrace: {remark}");
    }
    let index = args.index.display();
    match generation {
        None if now => tell!("{index}: one run: nothing to merge; no older generation is left"),
        None => tell!("{index}: one run: nothing to merge"),
        Some(generation) => tell!(
            "{index}: {} merged into one in {seconds:.2} s, generation {generation}",
            number_of(runs as u64, "run", "runs")
        ),
    }
    let mut totals = serde_json::json!({"job": "merge", "index": args.index.display().to_string(), "runs": runs, "generation": generation, "memory_bytes": args.memory});
    if let (true, Merged::Runs { manifest, .. }) = (told, &merged) {
        let now = serde_json::to_value(Totals::of(manifest))?;
        let now = now.as_object().cloned().unwrap_or_default();
        totals.as_object_mut().expect("it was made as one").extend(now);
        totals["files"] = serde_json::json!(manifest.files);
        totals["before"] = serde_json::json!(before);
    }
    report::write(totals, workers)
}
