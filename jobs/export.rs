//! `millrace export`.

use crate::args::{Common, show_count};
use anyhow::Context;
use millrace::index::ciff;
use millrace::index::find::open_plain;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// The form: ciff, the Common Index File Format.
    #[arg(long, default_value = "ciff", value_parser = ["ciff"])]
    format: String,
    #[command(flatten)]
    common: Common,
    /// Where to; - is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let generation = open_plain(&args.index)?;
    let settings = &generation.manifest().settings;
    let description = format!(
        "millrace {}, tokenizer {}, stemmer {}, stop words {}",
        env!("CARGO_PKG_VERSION"),
        settings.tokenizer.as_deref().unwrap_or("words"),
        settings.stemmer,
        settings.stop_words.name
    );
    let exported = if args.file.as_os_str() == millrace::input::splits::STDIN {
        let mut out = BufWriter::with_capacity(1 << 18, std::io::stdout().lock());
        let exported = ciff::export(&generation, &description, &mut out)?;
        out.flush()?;
        exported
    } else {
        // What is not whole does not stand under the file's name.
        let named = || format!("writing {}", args.file.display());
        let folder = args.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let file = tempfile::Builder::new()
            .prefix(".millrace-export-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(folder)
            .with_context(named)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let exported = ciff::export(&generation, &description, &mut out).with_context(named)?;
        let file = out.into_inner().map_err(|e| e.into_error()).with_context(named)?;
        file.as_file().sync_all().with_context(named)?;
        file.persist(&args.file).with_context(named)?;
        exported
    };
    let seconds = start.elapsed().as_secs_f64();
    if !args.common.quiet {
        say!(
            "{}: {} terms and {} documents in {seconds:.2} s",
            args.file.display(),
            show_count(exported.terms),
            show_count(exported.documents.into())
        );
    }
    let totals = serde_json::json!({"job": "export", "terms": exported.terms, "documents": exported.documents});
    crate::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}
