//! Behind the dataflow: the runs of a generation, or of a shard, become the one that queries read,
//! and its manifest is written.

use super::describe;
use crate::build::error::BuildError;
use crate::build::guards::NewContent;
use crate::build::memory;
use crate::build::note::Note;
use crate::build::options::{BuildOptions, Input};
use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildDone};
use crate::index::documents::duplicates::Duplicates;
use crate::index::generations::draft::{Description, Draft, NewGeneration};
use crate::index::generations::manifest::{self, RunEntry};
use crate::index::merge::Merging;
use crate::index::order::DocumentOrder;
use crate::index::ranks::{RanksFile, RanksFound};
use crate::index::run::join;
use crate::input::Format;
use crate::input::streams::unpacked::text_of_file;
use std::collections::BTreeMap;

pub(super) struct Finished {
    pub(super) new: NewGeneration,
    pub(super) read_bytes: u64,
    pub(super) cut: CutInputs,
    pub(super) first_skipped: Vec<String>,
}

/// Hashes of chunks by the numbers of inputs.
pub(crate) type CutInputs = BTreeMap<u32, Vec<u64>>;

/// What the code and the fixed tables of a process take, which is not a build's to give away.
const PROCESS_BYTES: u64 = 12 << 20;

/// Merges the runs and completes the generation. `resident` is what the process had when the build
/// began.
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
    let read_bytes = done.inputs.iter().map(|read| read.bytes).sum();
    let mut draft = Draft::at(number, build.plan.directory.clone(), build.plan.first_run)?;
    done.inputs.sort_unstable_by_key(|read| read.input);
    let cut = done.inputs.iter_mut().filter_map(|read| Some((read.input, read.cut.take()?)));
    let cut = cut.collect();
    draft.add_inputs(done.inputs.iter().map(|read| describe(&build.plan.input, read)))?;
    for run in join(&build.plan.directory, done.runs, std::mem::take(&mut documents.runs))? {
        draft.add(run)?;
    }
    // Those of a part are found with the others'.
    let duplicates = match &options.peers {
        Some(_) => Duplicates::default(),
        None => draft.duplicates(0..draft.runs().len(), options.duplicates)?,
    };
    let unwanted = duplicates.unwanted.len() as u64;
    if whole {
        options.guards.check_content(&NewContent {
            plan: &build.plan.input,
            read_bytes,
            documents: u64::from(documents.documents) - unwanted,
            tokens: Some(documents.tokens),
            skipped: &documents.skipped,
            first_skipped: &documents.first_skipped,
        })?;
        accept_duplicates(options.refuses_duplicates(), &duplicates)?;
    }
    let empty = match unwanted {
        0 => documents.empty,
        _ => draft.empty_documents()?,
    };
    // What the build has not given back to the system counts too.
    let kept = memory::resident().saturating_sub(resident) + PROCESS_BYTES;
    let memory_bytes = build.plan.budget.memory.saturating_sub(kept);
    let stop = options.control.stop().clone();
    let threads = build.plan.workers;
    let columns = options.columns.clone();
    let merging = Merging {
        memory_bytes,
        threads,
        form: build.plan.form,
        columns,
        record_parts: usize::from(options.store) + options.store_fields.len(),
        stop,
    };
    unite(options, &mut draft, &merging)?;
    let statistics = draft.statistics(empty, duplicates.count - unwanted);
    if unwanted > 0 {
        options.note(&Note::LeftOut { count: unwanted, kept: options.duplicates });
    }
    if documents.misfits > 0 {
        let (count, first) = (documents.misfits, std::mem::take(&mut documents.first_misfits));
        options.note(&Note::Misfits { count, first });
    }
    if let Some(remark) = build.plan.input.remark_on_values(&documents.filled).filter(|_| whole) {
        options.note(&Note::Fields(remark));
    }
    tell(options, build, &statistics, &documents.skipped, &documents.first_skipped, whole);
    let description = Description {
        command: options.command.clone(),
        workers: build.plan.workers as u32,
        settings: settings(options),
        skipped: documents.skipped,
        is_commit: false,
    };
    let new = draft.finish(description, statistics, memory_bytes)?;
    Ok(Finished { new, read_bytes, cut, first_skipped: documents.first_skipped })
}

/// What the dataflow has left, except for what the build's report asks for later.
fn take_done(build: &Build) -> BuildDone {
    let mut done = lock(&build.progress.done);
    let rest = BuildDone {
        indexers: std::mem::take(&mut done.indexers),
        #[cfg(feature = "gpu")]
        inverted: done.inverted,
        seen: done.seen.take(),
        ..BuildDone::default()
    };
    std::mem::replace(&mut *done, rest)
}

/// Merges the runs, unless they are to stay, and puts a single one in the order that is asked for.
fn unite(options: &BuildOptions, draft: &mut Draft, merging: &Merging) -> Result<(), BuildError> {
    let is_whole = matches!(draft.runs(), [] | [RunEntry { deleted: None, .. }]);
    if options.merge && !is_whole {
        draft.merge(0..draft.runs().len(), merging)?;
    }
    if (options.order.is_some() || options.ranks.is_some()) && draft.runs().len() == 1 {
        let file = options.ranks.clone().map(|path| RanksFile { path, text: text_of_file });
        let read = file.map(|file| draft.read_ranks(&file, merging.memory_bytes)).transpose()?;
        let (ranks, counts) = read.unzip();
        let order = options.order.as_ref().filter(|order| **order != DocumentOrder::Input);
        let mut found = RanksFound::None;
        match (order, ranks) {
            (Some(order), ranks) => found = draft.order(order, ranks, merging)?,
            (None, Some(ranks)) => draft.rank(0, &ranks)?,
            (None, None) => {}
        }
        if let Some(remark) = counts.map_or(found, RanksFound::Read).remark() {
            options.note(&Note::Ranks(remark));
        }
    }
    Ok(())
}

/// Says what was noticed in the input; of a part of it, names that repeat are reported elsewhere.
fn tell(
    options: &BuildOptions,
    build: &Build,
    statistics: &manifest::Statistics,
    skipped: &BTreeMap<String, u64>,
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
    let fields = options.index_fields.names().iter().zip(&statistics.field_tokens);
    for (field, _) in fields.filter(|(_, tokens)| whole && **tokens == 0) {
        options.note(&Note::Fields(format!("no document has text of the field `{field}`")));
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
    let skipped: u64 = skipped.values().sum();
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
        fields: options.index_fields.names().to_vec(),
        impact_factor: options.factor.map(|factor| factor.to_string()),
        columns: options.columns.clone(),
        texts: options.store,
        stored: options.store_fields.clone(),
        ..manifest::Settings::of(&options.analysis, options.form)
    }
}

pub(crate) fn accept_duplicates(refused: bool, duplicates: &Duplicates) -> Result<(), BuildError> {
    match duplicates.first {
        Some((docid, earlier)) if refused => {
            Err(BuildError::DuplicateNames { count: duplicates.count, docid, earlier })
        }
        _ => Ok(()),
    }
}
