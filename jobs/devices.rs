//! `millrace devices`: which GPUs can be used, and why not the others. Finding none is no failure.

use crate::cli::report;
use millrace::inside::gpu::Inventory;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let inventory = Inventory::of_machine();
    let mut totals = inventory.as_json();
    report::print(args.json, &totals, || inventory.as_text())?;
    totals["job"] = "devices".into();
    report::write(totals, 1)
}
