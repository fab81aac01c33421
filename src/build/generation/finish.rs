//! Behind the dataflow: the runs of a generation, or of a shard, become the one that queries read,
//! and the generation is described.

use crate::build::error::BuildError;
use crate::build::guards::NewContent;
use crate::build::memory;
use crate::build::note::Note;
use crate::build::options::{BuildOptions, Input};
use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildDone, InputRead};
use crate::dictionary::names::Duplicates;
use crate::index::block_bounds::write_missing_bounds;
use crate::index::files::storage::FileEntry;
use crate::index::format::VERSION;
use crate::index::generations::manifest::{self, Manifest};
use crate::index::merge::{self, Merging};
use crate::index::order::OrderEntry;
use crate::index::ranks::RanksFile;
use crate::index::run::{join, sync_run};
use crate::input::Format;
use crate::input::streams::unpacked::text_of_file;

pub(super) struct Finished {
    /// Without its inputs.
    pub(super) manifest: Manifest,
    pub(super) inputs: Vec<InputRead>,
    pub(super) first_skipped: Vec<String>,
}

/// What the code and the fixed tables of a process take, which is not a build's to give away.
const PROCESS_BYTES: u64 = 12 << 20;

/// Merges the runs and describes the generation but for its inputs. `resident` is what the process
/// had when the build began.
pub(super) fn finish(
    options: &BuildOptions,
    build: &Build,
    number: u32,
    whole: bool,
    resident: u64,
) -> Result<Finished, BuildError> {
    let mut done = take_done(build);
    let mut documents = done.documents.take().ok_or(BuildError::NoTable)?;
    for (reason, n) in &build.plan.input.passed.counts {
        *documents.skipped.entry((*reason).to_string()).or_default() += n;
    }
    if whole {
        options.guards.check_content(&NewContent {
            plan: &build.plan.input,
            read_bytes: done.inputs.iter().map(|read| read.bytes).sum(),
            documents: documents.documents.into(),
            tokens: Some(documents.tokens),
            skipped: &documents.skipped,
            first_skipped: &documents.first_skipped,
        })?;
    }
    let duplicates = documents.duplicates.wait(&build.plan.directory).map_err(BuildError::Names)?;
    if whole {
        accept_duplicates(options.strict, &duplicates)?;
    }
    let (runs, files) = join(&build.plan.directory, done.runs, documents.runs)?;
    // What the build has not given back to the system counts too.
    let kept = memory::resident().saturating_sub(resident) + PROCESS_BYTES;
    let memory_bytes = build.plan.budget.memory.saturating_sub(kept);
    let stop = options.control.stop().clone();
    let merging =
        Merging { memory_bytes, threads: build.plan.workers, form: build.plan.form, stop };
    let Lists { runs, mut files, order, terms } = unite(options, build, runs, files, &merging)?;
    let statistics = manifest::Statistics {
        documents: u64::from(documents.documents),
        terms,
        postings: runs.iter().map(|run| run.postings).sum(),
        tokens: documents.tokens,
        empty_documents: documents.empty,
        duplicate_names: duplicates.count,
        skipped: documents.skipped,
    };
    tell(options, build, &statistics, &documents.first_skipped, whole);
    let settings = settings(options);
    write_missing_bounds(&build.plan.directory, &runs, &mut files, &settings, build.plan.workers)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = Manifest {
        format: VERSION,
        generation: number,
        created: Manifest::now(),
        command: options.command.clone(),
        workers: build.plan.workers as u32,
        settings,
        statistics,
        runs,
        order,
        inputs: Vec::new(),
        files,
    };
    Ok(Finished { manifest, inputs: done.inputs, first_skipped: documents.first_skipped })
}

/// What the dataflow has left, but for what the build's report asks for later.
fn take_done(build: &Build) -> BuildDone {
    let mut done = lock(&build.progress.done);
    let rest = BuildDone {
        indexers: std::mem::take(&mut done.indexers),
        #[cfg(feature = "gpu")]
        inverted: done.inverted,
        scanned: done.scanned.take(),
        ..BuildDone::default()
    };
    std::mem::replace(&mut *done, rest)
}

/// The runs of a generation and their files.
struct Lists {
    runs: Vec<manifest::RunEntry>,
    files: Vec<FileEntry>,
    order: Option<OrderEntry>,
    /// In all of them.
    terms: u64,
}

/// Merges the runs, unless they are to stay, and puts a single one in the order that is asked for.
fn unite(
    options: &BuildOptions,
    build: &Build,
    mut runs: Vec<manifest::RunEntry>,
    mut files: Vec<FileEntry>,
    merging: &Merging,
) -> Result<Lists, BuildError> {
    let folder = &build.plan.directory;
    if runs.len() > 1 && options.merge {
        let run;
        (run, files) = merge::merge_in_place(folder, &runs, merging)?;
        runs = vec![run];
    } else {
        runs.iter().try_for_each(|run| sync_run(folder, run))?;
    }
    let mut order = None;
    if (options.order.is_some() || options.ranks.is_some()) && runs.len() == 1 {
        let wish = options.order.as_ref();
        let ranks = options.ranks.clone().map(|path| RanksFile { path, text: text_of_file });
        let run = runs.remove(0);
        let ordered = merge::order_in_place(folder, run, files, wish, ranks.as_ref(), merging)?;
        (files, order, runs) = (ordered.files, ordered.order, vec![ordered.run]);
        if let Some(remark) = ordered.ranks.remark() {
            options.note(&Note::Ranks(remark));
        }
    }
    let terms = match &runs[..] {
        [run] => run.terms,
        runs => {
            let runs: Vec<_> = runs.iter().map(|run| (&**folder, run)).collect();
            merge::count_distinct_terms(&runs, merging.memory_bytes)?
        }
    };
    Ok(Lists { runs, files, order, terms })
}

/// Says what was noticed in the input; of a part of it, names that repeat are told elsewhere.
fn tell(
    options: &BuildOptions,
    build: &Build,
    statistics: &manifest::Statistics,
    first_skipped: &[String],
    whole: bool,
) {
    if let Some(remark) = options.analysis.stop_words.remark() {
        options.note(&Note::StopWords(remark));
    }
    for unspaced in lock(&build.plan.input.letters).over(10, options.analysis.tokenizer) {
        options.note(&Note::Unspaced(unspaced));
    }
    for remark in build.plan.input.remarks_on_fields() {
        options.note(&Note::Fields(remark));
    }
    let (count, first) = build.plan.input.documents_not_utf8();
    if count > 0 {
        options.note(&Note::NotUtf8 { count, first });
    }
    let count = statistics.duplicate_names;
    if whole && count * 100 > statistics.documents {
        options.note(&Note::NamesRepeat { count, fields: build.plan.input.could_be_names() });
    }
    for message in first_skipped {
        options.note(&Note::Skipped(message.clone()));
    }
    let skipped: u64 = statistics.skipped.values().sum();
    if skipped > first_skipped.len() as u64 {
        options.note(&Note::SkippedInAll(skipped));
    }
}

fn settings(options: &BuildOptions) -> manifest::Settings {
    let format = match options.input {
        _ if options.factor.is_some() => Format::Vectors.to_string(),
        Input::Paths(_) => options.format.map_or_else(|| "auto".to_string(), |f| f.to_string()),
        Input::Documents(_) | Input::Plan(_) => "auto".to_string(),
    };
    manifest::Settings {
        indexer: options.indexer.name().to_string(),
        memory_bytes: options.memory,
        max_document_bytes: options.max_document,
        format,
        impact_factor: options.factor.map(|factor| factor.to_string()),
        ..manifest::Settings::of(&options.analysis, options.form)
    }
}

pub(crate) fn accept_duplicates(strict: bool, duplicates: &Duplicates) -> Result<(), BuildError> {
    match duplicates.first {
        Some((docid, earlier)) if strict => {
            Err(BuildError::DuplicateNames { count: duplicates.count, docid, earlier })
        }
        _ => Ok(()),
    }
}
