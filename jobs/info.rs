//! `millrace info`.

use millrace::inside::index::Contents;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print what the rebuilds of the index have done, oldest first.
    #[arg(long)]
    history: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.history {
        return history(args);
    }
    let contents = Contents::of(&args.index)?;
    let json = serde_json::to_value(&contents)?;
    crate::cli::report::print(args.json, &json, || contents.to_string())?;
    crate::cli::report::write(serde_json::json!({"job": "info", "index": json}), 1)
}

/// An array of JSON, or a line each.
fn history(args: &Args) -> anyhow::Result<()> {
    let records = millrace::inside::rebuild::read(&args.index)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&records)? + "\n",
        false => records.iter().map(|record| format!("{record}\n")).collect(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    crate::cli::report::write(serde_json::json!({"job": "info", "history": records}), 1)
}
