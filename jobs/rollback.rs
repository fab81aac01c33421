//! `millrace rollback`.

use millrace::inside::index::{generation_number, rollback};
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number or name of a kept generation [default: the latest before the live one].
    #[arg(long, value_name = "GENERATION", value_parser = generation)]
    to: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Reads `7` or `gen-000007`.
fn generation(text: &str) -> Result<u32, String> {
    let number = generation_number(text).or_else(|| text.parse().ok());
    number.ok_or_else(|| format!("`{text}` is not a generation; write 7 or gen-000007"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let done = rollback(&args.index, args.to)?;
    let index = args.index.display();
    tell!("{index}: generation {} is live; generation {} is kept", done.to, done.from);
    let totals = serde_json::json!({
        "job": "rollback", "index": args.index.display().to_string(), "from": done.from, "to": done.to,
    });
    crate::cli::report::print(args.json, &totals, String::new)?;
    crate::cli::report::write(totals, 1)
}
