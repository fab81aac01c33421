//! `millrace devices`: which GPUs can be used, and why not the others. Finding none is no failure.

use crate::cli::args::Common;
use crate::cli::report;
use millrace::inside::gpu::Inventory;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let inventory = Inventory::of_machine();
    let mut totals = inventory.as_json();
    report::print(args.json, &totals, || inventory.as_text())?;
    totals["job"] = "devices".into();
    report::write(args.common.report.as_deref(), totals, start.elapsed().as_secs_f64(), 1, &[])
}
