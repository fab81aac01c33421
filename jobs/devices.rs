//! `millrace devices`: which GPUs can be used, and why not the others. Finding none is no failure.

use anyhow::Context as _;
use millrace::inside::gpu::Inventory;
use std::io::Write as _;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let inventory = Inventory::of_machine();
    let text = match args.json {
        true => format!("{}\n", inventory.as_json()),
        false => inventory.as_text(),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}
