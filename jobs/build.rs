//! `millrace build`.

use crate::args::{Workers, command, resident_memory, show_bytes, show_count, size};
use crate::gpus::{self, Chosen};
use crate::progress::Progress;
use crate::{Usage, heap, report, signals};
use anyhow::{Context, Error, bail};
use millrace::dataflow::build::{Build, Done, InputRead, Phases, assemble};
use millrace::dataflow::control::{self, Control};
use millrace::dataflow::flow::Flow;
use millrace::dataflow::read::Claims;
use millrace::dataflow::sample::Sample;
use millrace::dictionary::names::Duplicates;
use millrace::gpu::discover::Gpus;
use millrace::index::error::IndexError;
use millrace::index::format::VERSION;
use millrace::index::list::{Form, ListCodec};
use millrace::index::manifest::{self, Manifest};
use millrace::index::merge;
use millrace::index::publish::{IndexLock, current};
use millrace::index::run::sync_run;
use millrace::input::folder::Walk;
use millrace::input::splits::Plan;
use millrace::input::{Format, hash as input_hash};
use millrace::order::{Budget, MAX_DOCUMENT_BYTES};
use millrace::schedule::roles::Roles;
use millrace::text::analysis::Analysis;
use millrace::text::stemmer::Stemmer;
use millrace::text::stop_words::StopWords;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

mod names;
mod pipeline;
mod shard;

pub(crate) use pipeline::PipelineArgs;
use pipeline::Placing;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index; made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: PathBuf,
    /// How documents are found: auto, jsonl, tsv, text, html, warc or trec.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    pub(crate) format: AutoFormat,
    /// Who finds terms and postings.
    #[arg(long, default_value = "fast", value_parser = ["fast", "wei11"])]
    pub(crate) indexer: String,
    /// english, porter, none, or another language by name.
    #[arg(long, default_value = "english")]
    pub(crate) stemmer: Stemmer,
    /// english (33 words), none, or a file with a word a line.
    #[arg(long, default_value = "english", value_name = "NAME|FILE")]
    pub(crate) stopwords: PathBuf,
    /// How postings are coded: bp128 (fastest), newpfd (smallest), vbyte, rice or pfor.
    #[arg(long, default_value = "bp128", value_parser = crate::args::codec, value_name = "NAME")]
    pub(crate) codec: ListCodec,
    /// Postings coded together: 64, 128 or 512 (newpfd: 64 or 128).
    #[arg(long, default_value = "128", value_parser = crate::args::block_size, value_name = "N")]
    pub(crate) block_size: usize,
    /// The most memory that the job may take, such as 64M or 4G.
    #[arg(long, default_value = "1G", value_parser = size)]
    pub(crate) memory: u64,
    /// A longer document is skipped.
    #[arg(long, default_value_t = MAX_DOCUMENT_BYTES, hide_default_value = true, value_parser = size)]
    pub(crate) max_document: u64,
    /// Keep the runs apart; queries are answered alike.
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Refuse duplicate names and everything that would be skipped.
    #[arg(long)]
    pub(crate) strict: bool,
    /// GPUs: auto (those that `millrace devices` finds), none, or how many.
    #[arg(long, default_value = "auto", value_name = "auto|none|N")]
    pub(crate) gpus: Gpus,
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    #[command(flatten)]
    pub(crate) workers: Workers,
    /// Files, folders, or - for standard input.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// A format, or none to find out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AutoFormat(pub(crate) Option<Format>);

fn parse_format(text: &str) -> Result<AutoFormat, String> {
    match text {
        "auto" => Ok(AutoFormat(None)),
        other => other.parse().map(|f| AutoFormat(Some(f))).map_err(|e| format!("{e}")),
    }
}

/// Runs the job; returns the manifest of the new generation, or of this process's shard of it.
pub(crate) fn run(args: &Args) -> anyhow::Result<Manifest> {
    let start = Instant::now();
    let hosts = args.workers.hosts()?;
    if let Some(hosts) = hosts {
        return shard::run(args, &hosts, start);
    }
    let input = prepare(args, true)?;

    // From here on a signal leaves nothing behind.
    let control = Arc::new(Control::default());
    signals::watch(&control, None)?;
    let lock = IndexLock::acquire(&args.index)?;
    lock.remove_debris()?;
    let before = current(&args.index)?;
    let result = build_and_publish(args, input, &lock, &control);
    if result.is_err() {
        // What cannot be removed now is removed by the next job.
        _ = lock.abandon(before.as_deref());
    }
    // A signal also makes writes fail; it is the reason.
    let (build, manifest) =
        result.map_err(|error| control.take_failure().map_or(error, Error::from))?;
    totals(args, &build, &manifest, None, start)?;
    Ok(manifest)
}

/// What a build reads and how, checked before anything is written.
struct Prepared {
    began: Instant,
    workers: usize,
    gpus: Chosen,
    roles: Roles,
    budget: Budget,
    analysis: Analysis,
    plan: Plan,
    /// What the input holds, where the start of a GPU's driver left time to find out.
    sample: Option<Sample>,
    /// Whether this is all of the input, or the share of one of several processes.
    whole: bool,
}

/// Of `whole` the input is sampled while devices are found; a share is not known yet.
fn prepare(args: &Args, whole: bool) -> anyhow::Result<Prepared> {
    let began = Instant::now();
    args.form()?;
    let workers = args.workers.count()?;
    heap::give_back_large_buffers(args.memory);
    let mut budget = Budget::new(args.memory, workers).map_err(|e| Usage(e.to_string()))?;
    budget.run_limit = millrace::fault::run_limit(budget.run_limit);
    if args.max_document >= 4 << 30 {
        return Err(Usage("--max-document must be below 4G".into()).into());
    }
    let quiet = args.workers.common.quiet;
    if let Some(readers) = args.pipeline.readers {
        if readers == 0 {
            return Err(Usage("--readers 0: nobody would read".into()).into());
        }
        budget.open_files = budget.open_files.min(readers);
    }
    let stop_words = StopWords::from_option(&args.stopwords).context("reading the stop words")?;
    let analysis = Analysis { stemmer: args.stemmer, stop_words };
    let walk = Walk { index: Some(args.index.clone()) };
    let plan = Plan::walked(&args.inputs, args.format.0, &walk).context("cannot read the input")?;
    accept_passed(args, &plan)?;
    // Nothing fails between the beginning and the end of this.
    let finding = gpus::for_indexer(args.gpus, &args.indexer)?;
    let early = whole && finding.is_under_way();
    let sample = if early { pipeline::sample_of(args, &plan, &analysis) } else { None };
    let gpus = finding.choose(quiet)?;
    let roles = args.pipeline.roles(pipeline::indexing(args), workers, &budget, &gpus, quiet)?;
    Ok(Prepared { began, workers, gpus, roles, budget, analysis, plan, sample, whole })
}

/// Builds and publishes the next generation.
fn build_and_publish(
    args: &Args,
    input: Prepared,
    lock: &IndexLock,
    control: &Arc<Control>,
) -> anyhow::Result<(Arc<Build>, Manifest)> {
    let (number, directory) = lock.next_generation()?;
    let (build, manifest) = build_generation(args, input, number, directory, control)?;
    lock.publish(number)?;
    Ok((build, manifest))
}

/// Builds generation `number` in its empty folder and syncs it; publishes nothing.
fn build_generation(
    args: &Args,
    mut input: Prepared,
    number: u32,
    directory: PathBuf,
    control: &Arc<Control>,
) -> anyhow::Result<(Arc<Build>, Manifest)> {
    let Placing { owners, report: placement } = pipeline::place(args, &mut input);
    let Prepared { began, workers, gpus, roles, budget, analysis, plan, whole, .. } = input;
    let sizes = args.pipeline.gpu_sizes(&budget, &roles, &plan);
    let pinned = sizes.host_bytes * roles.gpu_indexers;
    let build = Arc::new(Build {
        plan,
        analysis,
        form: args.form()?,
        budget,
        max_document: args.max_document,
        strict: args.strict,
        workers,
        writing: roles.writing(),
        make_indexer: match args.pipeline.parse_only {
            true => pipeline::discard(),
            false => gpus.make_indexer(roles, sizes, args.workers.common.quiet),
        },
        indexing: pipeline::indexing(args),
        placement,
        parse_block: args.pipeline.parse_block,
        owners: owners.clone(),
        directory,
        control: control.clone(),
        claims: Claims::default(),
        flow: Flow::new(budget.under_way() as usize * workers - pinned, roles.parsing()),
        lengths: Default::default(),
        encoded: (0..owners.len()).map(|_| Default::default()).collect(),
        progress: Default::default(),
        done: Default::default(),
    });
    let progress = Progress::start(&build, args.workers.common.quiet);
    let shared = build.clone();
    let prepared = began.elapsed();
    control::run(workers, control, move |worker| assemble(&shared, worker))?;
    let flowed = began.elapsed();
    let manifest = finish(args, &build, number, whole)?;
    manifest.write(&build.directory)?;
    build.done.lock().expect("no worker panicked").phases = Phases {
        prepare: prepared.as_secs_f64(),
        dataflow: (flowed - prepared).as_secs_f64(),
        finish: (began.elapsed() - flowed).as_secs_f64(),
    };
    if let Some(failure) = control.take_failure() {
        return Err(failure.into());
    }
    drop(progress);
    Ok((build, manifest))
}

impl Args {
    /// How the lists are to be coded.
    pub(crate) fn form(&self) -> Result<Form, Usage> {
        let (codec, block_len) = (self.codec, self.block_size);
        Form::new(codec, block_len)
            .ok_or_else(|| Usage(IndexError::NoForm { codec, block_len }.to_string()))
    }
}

/// Merges the runs and describes the generation.
fn finish(args: &Args, build: &Build, number: u32, whole: bool) -> anyhow::Result<Manifest> {
    let mut done = build.done.lock().expect("no worker panicked");
    let indexers = std::mem::take(&mut done.indexers);
    let mut done = std::mem::replace(&mut *done, Done { indexers, ..Done::default() });
    let mut documents = done.documents.take().context("the dataflow left no documents' table")?;
    for (reason, n) in &build.plan.passed.counts {
        *documents.skipped.entry((*reason).to_string()).or_default() += n;
    }
    let read: u64 = done.inputs.iter().map(|read| read.bytes).sum();
    if whole && documents.documents == 0 && read > 0 {
        for message in &documents.first_skipped {
            say!("millrace: {message}");
        }
        let inputs = match build.plan.inputs.len() {
            1 => build.plan.path(0),
            n => format!("{} and {} more inputs", build.plan.path(0), n - 1),
        };
        let reasons = reasons(&documents.skipped);
        bail!("no document in {} of {inputs}: {reasons}", show_bytes(read));
    }
    let duplicates = documents.duplicates.wait(&build.directory).map_err(Error::from_boxed)?;
    if whole {
        accept_duplicates(args, &duplicates)?;
    }
    done.runs.sort_by_key(|(run, _)| run.first_docid);
    let (mut runs, files): (Vec<_>, Vec<_>) = done.runs.into_iter().unzip();
    let mut files: Vec<_> = files.into_iter().flatten().collect();
    // What the process has not given back counts too.
    let memory = build.budget.memory.saturating_sub(resident_memory());
    if runs.len() > 1 && !args.no_merge {
        let run;
        (run, files) =
            merge::merge_in_place(&build.directory, &runs, memory, build.workers, build.form)?;
        runs = vec![run];
    } else {
        for run in &runs {
            sync_run(&build.directory, run)?;
        }
    }
    let terms = match &runs[..] {
        [run] => run.terms,
        runs => {
            let runs: Vec<_> = runs.iter().map(|run| (&*build.directory, run)).collect();
            merge::count_distinct_terms(&runs, memory)?
        }
    };
    let inputs = describe_inputs(build, &mut done.inputs);
    let settings = manifest::Settings {
        stemmer: args.stemmer.name().to_string(),
        stop_words: manifest::StopWordsEntry {
            name: build.analysis.stop_words.name().to_string(),
            words: build.analysis.stop_words.words().map(str::to_string).collect(),
        },
        codec: build.form.name().to_string(),
        block_size: build.form.block_len() as u32,
        indexer: args.indexer.clone(),
        memory_bytes: args.memory,
        max_document_bytes: args.max_document,
        format: args.format.0.map_or_else(|| "auto".to_string(), |f| f.to_string()),
    };
    let statistics = manifest::Statistics {
        documents: u64::from(documents.documents),
        terms,
        postings: runs.iter().map(|run| run.postings).sum(),
        tokens: documents.tokens,
        empty_documents: documents.empty,
        duplicate_names: duplicates.count,
        skipped: documents.skipped,
    };
    if !args.workers.common.quiet {
        for message in &documents.first_skipped {
            say!("millrace: skipped: {message}");
        }
        let skipped: u64 = statistics.skipped.values().sum();
        if skipped as usize > documents.first_skipped.len() {
            say!("millrace: {skipped} records were skipped in all");
        }
    }
    files.extend(documents.files);
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Manifest {
        format: VERSION,
        generation: number,
        created: Manifest::now(),
        command: command(),
        workers: build.workers as u32,
        settings,
        statistics,
        runs,
        inputs,
        files,
    })
}

/// What folders hold and cannot be read is an error if `--strict` is given.
fn accept_passed(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let passed = &plan.passed;
    if args.strict && passed.unreadable() > 0 {
        bail!("{} cannot be read; the first: {}", passed.unreadable(), passed.first[0]);
    }
    if !args.workers.common.quiet {
        for index in &passed.indexes {
            say!("millrace: {}: this is an index and no input", index.display());
        }
        for message in &passed.first {
            say!("millrace: skipped: {message}");
        }
        if passed.unreadable() > passed.first.len() as u64 {
            say!("millrace: {} files and links cannot be read in all", passed.unreadable());
        }
    }
    Ok(())
}

/// Duplicate names are an error if `--strict` is given.
fn accept_duplicates(args: &Args, duplicates: &Duplicates) -> anyhow::Result<()> {
    match duplicates.first {
        Some((docid, earlier)) if args.strict => bail!(
            "{} documents have the name of an earlier one; the first is document {docid}, named as document {earlier}",
            duplicates.count
        ),
        _ => Ok(()),
    }
}

/// Why there are no documents.
fn reasons(skipped: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    if reasons.is_empty() { "it is blank".to_string() } else { reasons.join(", ") }
}

fn describe_inputs(build: &Build, hashes: &mut [InputRead]) -> Vec<manifest::InputEntry> {
    hashes.sort_unstable_by_key(|read| read.input);
    hashes
        .iter()
        .map(|&InputRead { input, bytes, hash, compression }| manifest::InputEntry {
            path: absolute(&build.plan.path(input)),
            bytes,
            hash: format!("{}:{hash:016x}", input_hash::NAME),
            format: build.plan.inputs[input as usize].format.to_string(),
            compression: compression.to_string(),
        })
        .collect()
}

/// The path from the root, so that `show` finds the input from any folder.
fn absolute(path: &str) -> String {
    if path == millrace::input::splits::STDIN {
        return path.to_string();
    }
    std::path::absolute(path).map_or_else(|_| path.to_string(), |p| p.display().to_string())
}

/// How fast the indexers of tokens were by split, the slowest of them; of a few splits.
fn splits(build: &Build) -> Vec<serde_json::Value> {
    const MOST: usize = 2000;
    let done = build.done.lock().expect("no worker panicked");
    let mut splits: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    for (&split, &(text_bytes, seconds)) in done.indexers.iter().flat_map(|work| &work.splits) {
        let slowest = splits.entry(split).or_default();
        *slowest = (slowest.0.max(text_bytes), slowest.1.max(seconds));
    }
    let row = |(split, (text_bytes, seconds))| json!({"split": split, "text_bytes": text_bytes, "seconds": seconds});
    if splits.len() > MOST { Vec::new() } else { splits.into_iter().map(row).collect() }
}

/// What each owner of trie collections has done; of those that take postings, what was encoded.
fn indexers(build: &Build) -> Vec<serde_json::Value> {
    let done = build.done.lock().expect("no worker panicked");
    let row = |owner: u32| {
        let encoded = &build.encoded[owner as usize];
        let mut row = json!({
            "indexer": owner,
            "worker": build.owners.worker(owner),
            "terms": encoded.terms.load(Relaxed),
            "postings": encoded.postings.load(Relaxed),
        });
        if let Some(work) = done.indexers.iter().find(|work| work.owner == owner) {
            row["blocks"] = json!(work.blocks);
            row["tokens"] = json!(work.tokens);
            row["characters"] = json!(work.characters);
            row["busy_s"] = json!(work.busy);
            row["worked_s"] = json!(work.worked);
            row["waited_s"] = json!(work.waited);
        }
        row
    };
    (0..build.owners.len() as u32).map(row).collect()
}

/// Prints and reports what this process has built: everything, or the `shard` of so many.
fn totals(
    args: &Args,
    build: &Build,
    manifest: &Manifest,
    shard: Option<(usize, usize)>,
    start: Instant,
) -> anyhow::Result<()> {
    let seconds = start.elapsed().as_secs_f64();
    let load = |n: &std::sync::atomic::AtomicU64| n.load(Relaxed);
    let (read, parsed) = (load(&build.progress.read_bytes), load(&build.progress.parsed_bytes));
    let s = &manifest.statistics;
    let index_bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    if !args.workers.common.quiet {
        let runs = match manifest.runs.len() {
            1 => "1 run".to_string(),
            n => format!("{n} runs"),
        };
        let of = match shard {
            None => String::new(),
            Some((process, processes)) => format!(" (shard {process} of {processes})"),
        };
        let mut line = format!(
            "{}{of}: {} documents, {} terms, {} postings from {} in {seconds:.2} s ({:.1} MB/s of text); {} in {runs}, generation {}",
            args.index.display(),
            show_count(s.documents),
            show_count(s.terms),
            show_count(s.postings),
            show_bytes(read),
            parsed as f64 / 1e6 / seconds,
            show_bytes(index_bytes),
            manifest.generation,
        );
        let also = [
            (s.skipped.values().sum(), "skipped"),
            (s.duplicate_names, "duplicate names"),
            (s.empty_documents, "empty"),
            (build.plan.ignored, "files of no known format ignored"),
        ];
        for (n, what) in also {
            if n > 0 {
                line += &format!("; {} {what}", show_count(n));
            }
        }
        say!("{line}");
    }
    let phases = build.done.lock().expect("no worker panicked").phases;
    let totals = json!({
        "job": "build",
        "index": args.index.display().to_string(),
        "process": shard.map_or(0, |(process, _)| process),
        "processes": shard.map_or(1, |(_, processes)| processes),
        "generation": manifest.generation,
        "documents": s.documents,
        "terms": s.terms,
        "postings": s.postings,
        "tokens": s.tokens,
        "empty_documents": s.empty_documents,
        "duplicate_names": s.duplicate_names,
        "skipped": s.skipped,
        "ignored_files": build.plan.ignored,
        "runs": manifest.runs.len(),
        "runs_before_merge": load(&build.progress.runs),
        "read_bytes": read,
        "uncompressed_bytes": parsed,
        "mb_per_s": parsed as f64 / 1e6 / seconds,
        "index_bytes": index_bytes,
        "files": manifest.files,
        "memory_bytes": args.memory,
        "placement": build.placement,
        "indexers": indexers(build),
        "splits": splits(build),
        "phases": {"prepare_s": phases.prepare, "dataflow_s": phases.dataflow, "finish_s": phases.finish},
    });
    let shares = build.control.shares();
    report::write(args.workers.common.report.as_deref(), totals, seconds, build.workers, &shares)?;
    Ok(())
}
