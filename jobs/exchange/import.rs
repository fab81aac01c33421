//! `millrace import`.

use crate::Usage;
use crate::cli::args::{Common, size};
use crate::cli::index_args::IndexArgs;
use anyhow::Context;
use millrace::inside::index::{Import, Manifest, Settings, VECTORS, VectorFile, ciff, vectors};
use millrace::inside::input::{Unpacked, entry_of};
use millrace::inside::shown::number_of;
use millrace::inside::text::{Analysis, Stemmer, StopWords};
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index. The import becomes its next generation.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Format of the file. ciff: Common Index File Format. vectors: Anserini's
    /// JsonVectorCollection; its terms are not analysed.
    #[arg(long, default_value = "ciff", value_parser = ["ciff", VECTORS])]
    format: String,
    /// With vectors: factor by which weights are multiplied before they are rounded [default: 1 if
    /// all weights are whole numbers, otherwise 100].
    #[arg(long, value_name = "F")]
    factor: Option<f64>,
    #[command(flatten)]
    how: IndexArgs,
    /// Number of older generations to keep for `millrace rollback`.
    #[arg(long, default_value_t = 1, value_name = "N")]
    keep: usize,
    /// Memory for sorting names and counting terms. All terms and lengths are held in memory
    /// besides.
    #[arg(long, default_value = "64M", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    common: Common,
    /// File to import; with vectors one or several, which may be compressed.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Args {
    fn import(&self) -> anyhow::Result<Manifest> {
        let mut analysis = self.how.analysis()?;
        let form = self.how.form()?;
        let memory_bytes = self.memory;
        let format = self.format.clone();
        let keep = self.keep;
        let settings = |analysis: &Analysis| Settings {
            memory_bytes,
            format: format.clone(),
            ..Settings::of(analysis, form)
        };
        let entry = |file: &PathBuf| {
            entry_of(file, &self.format).with_context(|| format!("reading {}", file.display()))
        };
        let command = crate::cli::args::command();
        let import = |settings, input| Import { command, settings, input, keep, memory_bytes };
        if self.format == VECTORS {
            if self.factor.is_some_and(|factor| !(1e-9..=1e9).contains(&factor)) {
                return Err(Usage("--factor must be from 1e-9 to 1e9".into()).into());
            }
            analysis = Analysis {
                stemmer: Stemmer::NONE,
                stop_words: StopWords::none(),
                ..Analysis::default()
            };
            let mut files = Vec::new();
            for file in &self.files {
                let lines =
                    Unpacked::open(file).with_context(|| format!("reading {}", file.display()))?;
                files.push(VectorFile { lines: Box::new(lines), entry: entry(file)? });
            }
            let first = files.first().map(|file| file.entry.clone()).unwrap_or_default();
            let what = import(settings(&analysis), first);
            return Ok(vectors::import(files, &self.index, self.factor, what)?);
        }
        let [file] = &self.files[..] else {
            return Err(Usage("--format ciff takes one file".into()).into());
        };
        if self.factor.is_some() {
            return Err(Usage("--factor goes with --format vectors".into()).into());
        }
        let what = import(settings(&analysis), entry(file)?);
        Ok(ciff::import(file, &self.index, what)?)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let manifest = args.import()?;
    let seconds = start.elapsed().as_secs_f64();
    let found = &manifest.statistics;
    let factor = manifest.settings.impact_factor.as_ref();
    let factor = factor.map_or(String::new(), |factor| format!(", weights times {factor}"));
    if !args.common.quiet {
        say!(
            "{}: {}, {} and {} in {seconds:.2} s{factor}, generation {}",
            args.index.display(),
            number_of(found.terms, "term", "terms"),
            number_of(found.postings, "posting", "postings"),
            number_of(found.documents, "document", "documents"),
            manifest.generation
        );
    }
    let totals = serde_json::json!({
        "job": "import", "generation": manifest.generation, "documents": found.documents,
        "terms": found.terms, "postings": found.postings, "tokens": found.tokens,
        "impact_factor": manifest.settings.impact_factor,
    });
    crate::cli::report::write(args.common.report.as_deref(), totals, seconds, 1, &[])
}
