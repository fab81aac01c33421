//! `millrace export`.

use crate::cli::progress::{DrawnProgress, in_things};
use anyhow::Context;
use millrace::Generation;
use millrace::inside::index::ciff;
use millrace::inside::shown::number_of;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Format to write: ciff, the Common Index File Format.
    #[arg(long = "format", default_value = "ciff", value_parser = ["ciff"])]
    _format: String,
    /// File to write, compressed if it ends in .gz or .zst; - is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let generation = Generation::open(&args.index)?;
    let description = ciff::description(&generation);
    let (progress, drawn) = DrawnProgress::begin(in_things("writing lists", "term", "terms"));
    let exported = if args.file.as_os_str() == millrace::inside::input::STDIN {
        let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
        let exported = ciff::export(&generation, &description, &mut out, &progress)?;
        out.flush()?;
        exported
    } else {
        ciff::export_file(&generation, &description, &args.file, &progress)
            .with_context(|| format!("writing {}", args.file.display()))?
    };
    drop(drawn);
    let fields = &generation.manifest().settings.fields;
    if !fields.is_empty() {
        say!("CIFF knows no fields: it has all text, and {} left out", fields.join(", "));
    }
    let seconds = start.elapsed().as_secs_f64();
    tell!(
        "{}: {} and {} in {seconds:.2} s",
        args.file.display(),
        number_of(exported.terms, "term", "terms"),
        number_of(exported.documents.into(), "document", "documents")
    );
    let totals = serde_json::json!({"job": "export", "terms": exported.terms, "documents": exported.documents});
    crate::cli::report::write(totals, 1)
}
