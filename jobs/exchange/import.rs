//! `millrace import`.

use crate::Usage;
use crate::cli::args::{command, size};
use crate::cli::index_args::IndexArgs;
use crate::cli::progress::{DrawnProgress, in_things};
use anyhow::Context;
use millrace::inside::build::accept_folder;
use millrace::inside::index::{Import, Manifest, Settings, ciff};
use millrace::inside::input::{Format, plain_file};
use millrace::inside::shown::number_of;
use millrace::{BuildOptions, Guards};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index. The import becomes its next generation.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Format of the file. ciff: Common Index File Format. vectors: Anserini's
    /// JsonVectorCollection, as `build --format vectors` takes it; its terms are not analysed.
    #[arg(long, default_value = "ciff", value_parser = ["ciff", Format::Vectors.name()])]
    format: String,
    /// With vectors: factor by which weights are multiplied before they are rounded [default: 1 if
    /// the weights at the begin of the input are whole numbers, otherwise 100].
    #[arg(long, value_name = "F")]
    factor: Option<f64>,
    /// With vectors: fail at the first record that would be skipped, and at the first duplicate
    /// name.
    #[arg(long)]
    strict: bool,
    /// With vectors: number of worker threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    how: IndexArgs,
    /// Number of older generations to keep for `millrace rollback`.
    #[arg(long, default_value_t = 1, value_name = "N")]
    keep: usize,
    /// With ciff: memory for sorting names and counting terms, beside which all terms and lengths
    /// are held [default: 64M]. With vectors: greatest memory of the job [default: 1G].
    #[arg(long, value_parser = size)]
    memory: Option<u64>,
    /// File to import, compressed or not, or - for standard input; with vectors files and folders
    /// too. Of CIFF a pipe or a compressed file is copied first, beside the index.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Args {
    fn vectors(&self) -> anyhow::Result<()> {
        let mut options = BuildOptions::of_paths(&self.index, &self.files);
        options.format = Some(Format::Vectors);
        options.factor = self.factor;
        options.form = self.how.form()?;
        options.strict = self.strict;
        options.guards = Guards { keep: self.keep, ..Guards::default() };
        options.memory = self.memory.unwrap_or(options.memory);
        options.workers = self.workers.map_or(options.workers, NonZeroUsize::get);
        options.command = command();
        crate::build::build("import", options)
    }

    fn ciff(&self) -> anyhow::Result<Manifest> {
        let [file] = &self.files[..] else {
            return Err(Usage("--format ciff takes one file".into()).into());
        };
        if self.factor.is_some() || self.strict || self.workers.is_some() {
            let why = "--factor, --strict and --workers go with --format vectors";
            return Err(Usage(why.into()).into());
        }
        accept_folder(&self.index)?;
        let memory_bytes = self.memory.unwrap_or(64 << 20);
        let format = self.format.clone();
        let analysis = self.how.analysis()?;
        analysis.stop_words.remark().inspect(|remark| tell!("millrace: {remark}"));
        let settings = Settings::of(&analysis, self.how.form()?);
        let settings = Settings { memory_bytes, format, ..settings };
        let (plain, input) = plain_file(file, &self.format, &self.index)
            .with_context(|| format!("reading {}", file.display()))?;
        let what = Import { command: command(), settings, input, keep: self.keep, memory_bytes };
        let (progress, _drawn) = DrawnProgress::begin(in_things("writing lists", "term", "terms"));
        Ok(ciff::import(file, plain, &self.index, what, &progress)?)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.format == Format::Vectors.name() {
        return args.vectors();
    }
    let start = Instant::now();
    let manifest = args.ciff()?;
    let seconds = start.elapsed().as_secs_f64();
    let found = &manifest.statistics;
    tell!(
        "{}: {}, {} and {} in {seconds:.2} s, generation {}",
        args.index.display(),
        number_of(found.terms, "term", "terms"),
        number_of(found.postings, "posting", "postings"),
        number_of(found.documents, "document", "documents"),
        manifest.generation
    );
    let totals = serde_json::json!({
        "job": "import", "generation": manifest.generation, "documents": found.documents,
        "terms": found.terms, "postings": found.postings, "tokens": found.tokens,
    });
    crate::cli::report::write(totals, 1)
}
