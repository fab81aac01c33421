//! `millrace devices`: which GPUs can be used, and why not the others. Finding none is no failure.

use millrace::inside::gpu::Inventory;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let inventory = Inventory::of_machine();
    crate::cli::report::print(args.json, &inventory.as_json(), || inventory.as_text())
}
