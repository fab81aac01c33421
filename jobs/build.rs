//! `millrace build`.

use crate::Usage;
use crate::cli::args::{Workers, command, size};
use crate::cli::index_args::{IndexArgs, with_option};
use crate::cli::order_args::OrderArgs;
use crate::cli::{progress, report, signals};
use millrace::inside::build::{OnProgress, PreparedBuild};
use millrace::inside::dataflow::ProgressLog;
use millrace::inside::index::{SameName, totals};
use millrace::inside::input::{Fields, Format, InputError, TextEncoding, Unknown};
use millrace::inside::order::MAX_DOCUMENT_BYTES;
use millrace::{
    BuildError, BuildOptions, Column, Guards, IndexFields, Limit, give_back_large_buffers,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

mod pipeline;

use pipeline::SharingArgs;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index. It is made if it does not exist.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Greatest memory of the job, such as 64M or 4G.
    #[arg(long, default_value = "1G", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    how: BuildHow,
    #[command(flatten)]
    guards: GuardArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    workers: Workers,
    #[command(flatten)]
    sharing: SharingArgs,
    /// Files, folders, or - for standard input.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

/// What is refused before it replaces the live generation.
#[derive(clap::Args, Clone, Debug)]
struct GuardArgs {
    /// Accept empty input, and publish an index without documents if there are none.
    #[arg(long)]
    allow_empty: bool,
    /// Accept compressed files that are damaged or end too early, and index what comes before.
    #[arg(long)]
    allow_cut: bool,
    /// Fail if more records than this are broken: a number, or a share of all records [default: no
    /// limit].
    #[arg(long, value_name = "N|N%")]
    max_skipped: Option<Limit>,
    /// Fail if there are fewer documents than this: a number, or a share of the documents of the
    /// live generation [default: no limit].
    #[arg(long, value_name = "N|N%")]
    min_documents: Option<Limit>,
    /// Number of older generations to keep for `millrace rollback`.
    #[arg(long, default_value = "1", value_name = "N")]
    keep: usize,
}

/// How files are read.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ReadingArgs {
    /// Format of the input: auto, jsonl, json, csv, tsv, plaintext, text, html, warc, trec,
    /// mediawiki or vectors. vectors: Anserini's JsonVectorCollection; its terms are not analysed.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    format: AutoFormat,
    /// JSON field or CSV column that holds the name of a document. May be given several times: the
    /// first that a record has is taken [default: id, _id, pid, docid, docno, doc_id, paper_id,
    /// cord_uid, uid].
    #[arg(long = "id-field", value_name = "NAME")]
    id_fields: Vec<String>,
    /// JSON field or CSV column that holds text. May be given several times: the texts are joined
    /// [default: title, url, headings, text, body, passage, contents; in a record with none of the
    /// last four also segment, abstract, content, full_text, description, document, article,
    /// paragraph].
    #[arg(long = "text-field", value_name = "NAME")]
    text_fields: Vec<String>,
    /// Encoding of text that has no byte order mark and does not say its own, such as latin1,
    /// windows-1252, gb18030 or utf-16le [default: utf-8].
    #[arg(long, value_name = "NAME")]
    encoding: Option<TextEncoding>,
}

impl ReadingArgs {
    pub(crate) fn fill(&self, options: &mut BuildOptions) {
        options.format = self.format.0;
        let names = self.id_fields.clone();
        let texts = self.text_fields.clone();
        options.fields = Fields { names, texts };
        options.encoding = self.encoding;
    }
}

/// How an index is built.
#[derive(clap::Args, Clone, Debug)]
struct BuildHow {
    #[command(flatten)]
    reading: ReadingArgs,
    /// With vectors: factor by which weights are multiplied before they are rounded [default: 1 if
    /// the weights at the begin of the input are whole numbers, otherwise 100].
    #[arg(long, value_name = "F")]
    factor: Option<f64>,
    #[command(flatten)]
    index: IndexArgs,
    /// Skip documents that are longer than this [default: 64M].
    #[arg(long, default_value_t = MAX_DOCUMENT_BYTES, hide_default_value = true, value_parser = size)]
    max_document: u64,
    /// Index the positions of terms, which queries with phrases need.
    #[arg(long)]
    positions: bool,
    /// Index the text of this field once more by itself: a key of JSON, a column of CSV, an element
    /// of TREC documents, title, headings or body of HTML, title or text of a wiki. May be given
    /// several times, at most 31.
    #[arg(long = "field", value_name = "NAME")]
    fields: Vec<String>,
    /// Keep values of each document in a column, from the field of its record of that name: int,
    /// float, date or word, with [] for several [default kind: word]. For several columns, repeat.
    #[arg(long, value_name = "NAME:KIND")]
    column: Vec<Column>,
    /// Keep the texts of documents in the index, as they are indexed.
    #[arg(long)]
    store: bool,
    /// Keep the values of these fields of records in the index, parted by commas: keys of JSON,
    /// columns of CSV, elements of TREC, wikis and HTML, fields of the head of a WARC record.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    store_fields: Vec<String>,
    /// Do not merge the runs of the index. Queries give the same answers.
    #[arg(long)]
    no_merge: bool,
    /// Which documents of a name are indexed if several have it: all, the first, the last, or
    /// refuse to build [default: all].
    #[arg(long, value_name = "WHICH", default_value_t, hide_default_value = true)]
    duplicates: SameName,
    /// Fail at the first duplicate name, and at the first record that would be skipped.
    #[arg(long)]
    strict: bool,
}

/// None to detect it.
#[derive(Clone, Copy, Debug)]
struct AutoFormat(Option<Format>);

fn parse_format(text: &str) -> Result<AutoFormat, String> {
    match text {
        "auto" => Ok(AutoFormat(None)),
        other => other.parse().map(|f| AutoFormat(Some(f))),
    }
}

impl BuildHow {
    fn fill(&self, options: &mut BuildOptions) -> anyhow::Result<()> {
        options.form = self.index.form()?.with_positions(self.positions);
        options.columns = self.column.clone();
        options.store = self.store;
        options.store_fields = self.store_fields.clone();
        options.analysis = self.index.analysis()?;
        let fields = IndexFields::new(&self.fields);
        options.index_fields = fields.map_err(|error| anyhow::anyhow!(error.on_command_line()))?;
        self.reading.fill(options);
        options.factor = self.factor;
        options.max_document = self.max_document;
        options.merge = !self.no_merge;
        options.duplicates = self.duplicates;
        options.strict = self.strict;
        options.command = command();
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let workers = &args.workers;
    let mut options = BuildOptions::of_paths(&args.index, &args.inputs);
    args.how.fill(&mut options)?;
    args.sharing.fill(&mut options);
    let GuardArgs { allow_empty, allow_cut, max_skipped, min_documents, keep } =
        args.guards.clone();
    options.guards =
        Guards { allow_empty, allow_cut, max_skipped, min_documents, keep, ..Guards::default() };
    options.memory = args.memory;
    options.order = args.order.order()?;
    options.ranks = args.order.pagerank.clone();
    options.workers = workers.count()?;
    options.peers = workers.together.peers()?;
    build("build", options)
}

/// Builds for a job of this name.
pub(crate) fn build(job: &str, mut options: BuildOptions) -> anyhow::Result<()> {
    let process = options.peers.as_ref().map(|peers| peers.hosts.process());
    let index = options.index.clone();
    options.notes = Some(Arc::new(|note| tell!("millrace: {}", with_option(note))));
    // Processes of one job may share a terminal.
    if options.peers.as_ref().is_none_or(|peers| peers.hosts.process() == 0) {
        options.progress = progress::of_build();
    }
    give_back_large_buffers(options.memory);
    let control = options.control.clone();
    let peers = options.peers.is_some();
    // Alone, a signal ends the process at once until there is something to be removed.
    if peers {
        signals::watch(&control, None)?;
    }
    let told = report::is_asked();
    let log = Arc::new(Mutex::new(ProgressLog::default()));
    if told {
        options.progress = Some(logged(log.clone(), options.progress.take()));
    }
    let before = told.then(|| totals(&index, process)).transpose()?.flatten();
    let prepared = PreparedBuild::new(options).map_err(explain)?;
    if !peers {
        signals::watch(&control, None)?;
    }
    let report = prepared.run().map_err(explain)?;
    report.lines().iter().for_each(|line| tell!("{line}"));
    let mut totals = json!({"job": job});
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&report) else {
        anyhow::bail!("the report is not an object: this is a bug");
    };
    totals.as_object_mut().expect("it was made as one").extend(fields);
    if told {
        totals["before"] = json!(before);
        totals["progress"] = json!(*log.lock().unwrap_or_else(PoisonError::into_inner));
    }
    report::write_of(totals, report.seconds, report.workers, &report.operators)
}

/// Keeps how much text was parsed by when, beside a line that is drawn.
fn logged(log: Arc<Mutex<ProgressLog>>, mut drawn: Option<OnProgress>) -> OnProgress {
    let began = Instant::now();
    Box::new(move |progress| {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(began.elapsed(), progress.parsed_bytes);
        drop(log);
        drawn.iter_mut().for_each(|draw| draw(progress));
    })
}

/// Adds the option with which a build would go on.
pub(crate) fn explain(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::Options(error) => Usage::from(error).into(),
        BuildError::Input(
            error @ (InputError::UnknownFormat { unknown: Unknown::Binary, .. }
            | InputError::NotAFile { .. }
            | InputError::NothingInFolder { .. }),
        ) => anyhow::Error::from(BuildError::Input(error)).context("give --format"),
        BuildError::Devices(error) => anyhow::anyhow!(error.on_command_line()),
        BuildError::Rates { .. } => anyhow::Error::from(error)
            .context("`experiments pipeline --only rates` measures them (docs/inside/wei11.md)"),
        // As it is: the exit status is that of a signal.
        BuildError::Job(error) => error.into(),
        BuildError::Input(ref refused) => {
            let option = match refused {
                InputError::Broken { .. } => "--allow-cut".to_string(),
                InputError::Large { least, .. } => format!("--memory {least}M, or --max-document"),
                InputError::Empty { .. } => "--allow-empty".to_string(),
                _ => return error.into(),
            };
            anyhow::anyhow!("{refused} ({option})")
        }
        BuildError::NoDocuments { ref first_skipped, ref skipped, .. } => {
            for message in first_skipped {
                say!("millrace: {message}");
            }
            let columns = skipped.contains_key("no text column");
            let error = anyhow::Error::from(error);
            if columns { error.context("give --text-field (and --id-field)") } else { error }
        }
        BuildError::NoText { .. } => {
            let options = "give --format, --text-field (and --id-field), or a greater --factor";
            anyhow::Error::from(error).context(options)
        }
        error => error.into(),
    }
}
