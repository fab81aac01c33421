//! `millrace rollback`.

use millrace::inside::index::{RolledBack, generation_number, release, rollback};
use serde_json::json;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number or name of a kept generation [default: the latest before the live one].
    #[arg(long, value_name = "GENERATION", value_parser = generation)]
    to: Option<u32>,
    /// Roll nothing back, but let rebuilds publish again after an earlier rollback.
    #[arg(long, conflicts_with = "to")]
    release: bool,
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
    let (said, mut totals) = match args.release {
        true => match release(&args.index)? {
            true => ("rebuilds publish again".to_string(), json!({"released": true})),
            false => ("no rollback holds".to_string(), json!({"released": false})),
        },
        false => {
            let RolledBack { from, to, held } = rollback(&args.index, args.to)?;
            let hold = if held.is_some() { "; rebuilds leave it so, until --release" } else { "" };
            let said = format!(
                "generation {to} is live; generation {from} is kept{hold}; to go back to it: \
                 millrace rollback --index {} --to {from}",
                args.index.display()
            );
            (said, json!({"from": from, "to": to, "held": held}))
        }
    };
    tell!("{}: {said}", args.index.display());
    totals["job"] = "rollback".into();
    totals["index"] = args.index.display().to_string().into();
    crate::cli::report::print(args.json, &totals, String::new)?;
    crate::cli::report::write(totals, 1)
}
