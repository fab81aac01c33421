//! Looks at the sources and compares them with the live generation.

mod held;

use super::live::{Live, OLDER, live, verify};
use super::{FILES, Rebuild, RebuildError, guards};
use crate::build::guards::NewContent;
use crate::build::{self, BuildError, Input};
use crate::crew::Crew;
use crate::dataflow::build::context::InputRead;
use crate::dataflow::rebuild::changes::{Changes, Sides, changes};
use crate::dataflow::rebuild::seen::{SeenDocuments, SeenReader, SeenWriter};
use crate::dataflow::rebuild::touched::{GONE, TouchedDocuments};
use crate::index::documents::Location;
use crate::index::error::IndexError;
use crate::index::files::storage;
use crate::index::format::{RUNS, VERSION};
use crate::index::generations::held::Hold;
use crate::index::generations::manifest::LISTS_VERSION;
use crate::index::generations::manifest::{Manifest, Settings, Statistics};
use crate::index::inputs::InputEntry;
use crate::input::list::InputReading;
use crate::input::splits::InputPlan;
use crate::input::wanted::{KnownDocuments, WantedDocuments, WantedInput};
use crate::order::Budget;
use crate::rebuild::files::{self, Known, read_json};
use crate::rebuild::history::{DocumentCounts, FOLDER, HistoryRecord, InputCounts};
use crate::rebuild::job_file::JobFile;
use crate::settings::Gpus;
use crate::text::tokenizer::Tokenizer;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RebuildKind {
    Nothing,
    /// Index new documents, and leave out those that are gone.
    Part,
    Whole(&'static str),
}

#[derive(Clone, Debug, Serialize)]
pub struct PlannedRebuild {
    pub how: RebuildKind,
    /// A rollback holds, and nothing is done.
    pub held: Option<Hold>,
    pub inputs: InputCounts,
    /// If only a part is built; `live` are those behind that.
    pub documents: DocumentCounts,
    /// In the files that have changed, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Of the files that have changed, or are read because all is built.
    pub read_bytes: u64,
}

pub(super) struct Looked {
    pub(super) planned: PlannedRebuild,
    pub(super) plan: InputPlan,
    /// By file: it has changed or is new.
    touched: Vec<bool>,
    pub(super) known: Known,
    pub(super) live: Option<Live>,
    /// By docids, and by numbers of the documents that were read.
    pub(super) changes: Changes,
    /// The documents of the files that changed, if a part is built.
    seen: Option<SeenDocuments>,
    /// By the numbers of their plan.
    pub(super) read: Vec<InputEntry>,
    /// Runs of the documents whose names and contents are not in the live generation, or of all if
    /// everything is built again, and their folder.
    pub(super) part: Option<(Manifest, PathBuf)>,
}

/// The table of known documents, by which new ones are indexed while they are found, may take one
/// part of this many of the memory.
const KNOWN_SHARE: u64 = 4;

/// Documents that a thread adds to it at a time.
const KNOWN_CHUNK: u64 = 1 << 14;

/// The same for what is compared at a time.
const COMPARED_SHARE: u64 = 2;

/// What a table takes beyond a small part of the memory, which does not count, as that of a
/// build's lists of inputs.
fn beyond_small(bytes: u64, memory: u64) -> u64 {
    bytes.saturating_sub(memory / 32)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Plan,
    Build,
}

impl Rebuild<'_> {
    /// Lists and hashes the sources, reads those that changed, and compares with the live
    /// generation. `work` is a scratch folder.
    pub(super) fn look(
        &self,
        work: &Path,
        purpose: For,
        record: &mut HistoryRecord,
    ) -> Result<Looked, RebuildError> {
        let index = &self.job.index;
        let from_nothing = self.daemon.from_nothing;
        let live = record.time("open", || match live(index) {
            live @ Err(RebuildError::Index(IndexError::Newer { .. })) => live,
            Err(_) if from_nothing => Ok(None),
            live => live,
        })?;
        if let Some(Live { path, manifest, .. }) = &live {
            manifest.check_here(path)?;
        }
        let plan = record.time("list", || self.sources())?;
        build::accept_passed(&self.options()?, &plan)?;
        let mut before: Known = read_json(&index.join(FOLDER).join(FILES));
        let mark = self.mark()?.map(|hold| hold.generation);
        let of_live = live.as_ref().map(|live| live.manifest.generation);
        if ![of_live, mark].contains(&Some(before.generation)) {
            before = Known::default();
        }
        let paths = (0..plan.inputs.len()).filter_map(|input| plan.inputs.path(input));
        let paths = paths.collect::<Vec<PathBuf>>();
        let trust = self.job.trust;
        // Only a file of its old length may be unchanged: others are read and hashed anyway.
        let inputs = live.iter().flat_map(|live| &live.inputs);
        let was: HashSet<(&Path, u64)> =
            inputs.map(|input| (input.path.as_path(), input.bytes)).collect();
        let needs = |path: &Path, bytes| mark.is_some() || was.contains(&(path, bytes));
        let known =
            record.time("hash", || files::look(&paths, trust, &before, needs, self.workers()))?;
        let inputs = live.iter().flat_map(|live| &live.inputs);
        let found = FoundChanges::new(&plan, &known, inputs.map(InputReading::told_apart));
        let FoundChanges { counts: inputs, touched, gone } = found;
        let held = self.held(&plan, &known)?;
        let other =
            live.as_ref().map(|live| self.other_settings(&live.manifest.settings)).transpose()?;
        let how = match (&live, other.flatten()) {
            _ if held.is_some() => RebuildKind::Nothing,
            _ if from_nothing => RebuildKind::Whole("this is a rebuild from nothing"),
            (None, _) => RebuildKind::Whole("there is no index"),
            (Some(live), _) if live.manifest.format != VERSION => RebuildKind::Whole(OLDER),
            (_, Some(reason)) => RebuildKind::Whole(reason),
            _ if touched.contains(&true) || !gone.is_empty() => RebuildKind::Part,
            _ => RebuildKind::Nothing,
        };
        if let (Some(live), RebuildKind::Whole(reason), false) = (&live, how, from_nothing)
            && let documents @ 1.. = live.documents_by_call()?
        {
            return Err(RebuildError::ByCall { documents, reason });
        }
        let carries_over = purpose == For::Build && !matches!(how, RebuildKind::Whole(_));
        if let Some(live) = live.as_ref().filter(|_| carries_over) {
            let every = self.job.verify.every;
            let merging = self.merging(&live.manifest.settings);
            record.time("verify", || verify(index, live, every, &merging))?;
        }
        let documents = DocumentCounts {
            live: live.as_ref().map_or(0, |live| live.manifest.statistics.documents),
            ..DocumentCounts::default()
        };
        let (skipped, read_bytes) = Default::default();
        let planned = PlannedRebuild { how, held, inputs, documents, skipped, read_bytes };
        let (changes, seen, read, part) = Default::default();
        let mut looked = Looked { planned, plan, touched, known, live, changes, seen, read, part };
        if how == RebuildKind::Part {
            let old = record.time("compare", || looked.old(gone))?;
            let known = match purpose {
                For::Build => record.time("compare", || self.known(&looked, &old))?,
                For::Plan => None,
            };
            let new = record.time("read", || self.read(&mut looked, known, work))?;
            record.time("compare", || self.compare(&mut looked, Sides { old, new }, work))?;
        }
        Ok(looked)
    }

    pub(super) fn sources(&self) -> Result<InputPlan, RebuildError> {
        let sources = (0..self.job.inputs.len()).map(|input| self.job.sources(input));
        let sources = sources.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
        Ok(InputPlan::of_sources(sources, &self.job.index)?)
    }

    /// Why the live generation cannot be extended, if its settings are others.
    pub(super) fn other_settings(
        &self,
        was: &Settings,
    ) -> Result<Option<&'static str>, RebuildError> {
        let options = self.options()?;
        let words = options.analysis.stop_words.words();
        let version = options.analysis.tokenizer.version();
        let tokenizer = was.tokenizer.as_deref().unwrap_or(Tokenizer::Words.name());
        let factor = was.impact_factor.as_ref().and_then(|factor| factor.parse().ok());
        Ok(if factor.is_some() != self.job.has_vectors() {
            Some("the input is learned vectors where the index has texts, or the other way round")
        } else if self.job.build.factor.is_some() && options.factor != factor {
            Some("the factor of the weights is another one")
        } else if tokenizer != options.analysis.tokenizer.name() {
            Some("the tokenizer is another one")
        } else if was.analysis.unwrap_or(1) != version {
            Some("this program cuts text into words in another way than the one that built it")
        } else if was.lists.unwrap_or(1) != LISTS_VERSION {
            Some("this program reads the fields of documents by other names")
        } else if was.fold != options.analysis.fold {
            Some("words are to be folded, or no longer")
        } else if was.stemmer != options.analysis.stemmer.name() {
            Some("the stemmer is another one")
        } else if !words.eq(was.stop_words.words.iter().map(String::as_str)) {
            Some("the stop words are others")
        } else if was.form() != Some(options.form) {
            Some("the lists are coded in another way")
        } else if was.fields != options.index_fields.names() {
            Some("the fields that are indexed are others")
        } else if was.columns != options.columns {
            Some("the columns are others")
        } else if was.texts != options.store {
            Some("texts are to be kept, or no longer")
        } else if was.stored != options.store_fields {
            Some("the stored fields are others")
        } else if was.max_document_bytes != options.max_document {
            Some("the longest document is another one")
        } else {
            None
        })
    }

    /// Reads the files that changed, and indexes what is not `known` among it, if that is said.
    fn read(
        &self,
        looked: &mut Looked,
        known: Option<KnownDocuments>,
        work: &Path,
    ) -> Result<SeenDocuments, RebuildError> {
        let mut options = self.options()?;
        let plan = looked.touched_plan();
        looked.planned.read_bytes = plan.bytes();
        options.input = Input::Plan(Box::new(plan));
        let folder = part_folder(work)?;
        let takes = known.as_ref().map_or(0, KnownDocuments::memory_bytes);
        options.memory -= beyond_small(takes, options.memory);
        let is_indexed = known.is_some();
        if !is_indexed {
            options.gpus = Gpus::None;
            options.pipeline.sample = 0;
        }
        let wanted = Some(known.map_or(WantedInput::None, WantedInput::Unknown));
        let writer = SeenWriter::new(work)?;
        let (manifest, read, seen) =
            build::build_part(options, wanted, Some(writer), folder.clone())?;
        looked.read = read;
        looked.part = is_indexed.then_some((manifest, folder));
        let seen = seen.ok_or(BuildError::NoTable)?;
        looked.planned.skipped = seen.skipped.clone();
        Ok(seen)
    }

    /// A table of the documents that may stay, to look up while others are read, if there is room.
    fn known(
        &self,
        looked: &Looked,
        old: &TouchedDocuments,
    ) -> Result<Option<KnownDocuments>, RebuildError> {
        let memory = self.job.build.memory;
        let takes = KnownDocuments::bytes_of(old.len());
        // A build holds lists of its inputs too, and would be refused where one of all documents
        // is not.
        let touched = looked.touched_plan();
        let lists = touched.memory() + (touched.inputs.len() * size_of::<InputRead>()) as u64;
        let left = memory - beyond_small(takes, memory);
        let is_too_much = takes > memory / KNOWN_SHARE || old.len() > KnownDocuments::MOST;
        if is_too_much || Budget::beside(left, self.workers(), lists).is_err() {
            return Ok(None);
        }
        let known = KnownDocuments::with_capacity(old.len() as usize);
        let chunks = old.len().div_ceil(KNOWN_CHUNK);
        let insert = |(): &mut (), chunk: usize| {
            let start = chunk as u64 * KNOWN_CHUNK;
            let chunk = start..old.len().min(start + KNOWN_CHUNK);
            known.insert_all(|take| {
                old.read::<IndexError>(chunk, |number, name, content| {
                    take(number as usize, name, content);
                    Ok(())
                })
            })
        };
        Crew::new("known").in_order(self.workers(), chunks as usize, insert)?;
        Ok(Some(known))
    }

    /// Compares what was read with the live documents of the same files and of files that are gone.
    fn compare(&self, looked: &mut Looked, sides: Sides, work: &Path) -> Result<(), RebuildError> {
        let live = looked.live.iter().flat_map(|live| &live.manifest.runs);
        let documents = live.map(|run| run.documents).sum();
        let memory = self.job.build.memory / COMPARED_SHARE;
        let found = changes(&sides, documents, work, memory, self.workers(), &self.control)?;
        let documents = &mut looked.planned.documents;
        documents.live =
            documents.live - u64::from(found.deleted.len()) + u64::from(found.wanted.len());
        documents.added = found.added;
        documents.changed = found.changed;
        documents.removed = found.removed();
        looked.changes = found;
        looked.seen = Some(sides.new);
        Ok(())
    }

    /// Has all that is new indexed.
    ///
    /// That was done while the files were read, but where a document is there more often than
    /// before, or has no name of its own and lies in another line: then the files are read once
    /// more. Where everything is built again nothing was read before.
    pub(super) fn index_new(&self, looked: &mut Looked, work: &Path) -> Result<(), RebuildError> {
        let is_whole = matches!(looked.planned.how, RebuildKind::Whole(_));
        let wanted = u64::from(looked.changes.wanted.len());
        if !is_whole && wanted == 0 {
            looked.part = None;
            return Ok(());
        }
        let part = looked.part.as_ref();
        if part.is_some_and(|(part, _)| part.statistics.documents == wanted) {
            return Ok(());
        }
        let (plan, wanted) = match is_whole {
            true => (looked.plan.only(|_| true), None),
            false => (looked.touched_plan(), Some(WantedInput::At(looked.wanted()?))),
        };
        let mut options = self.options()?;
        options.input = Input::Plan(Box::new(plan));
        let folder = part_folder(work)?;
        let (part, read, _) = build::build_part(options, wanted, None, folder.clone())?;
        if is_whole {
            let planned = &mut looked.planned;
            planned.read_bytes = read.iter().map(|input| input.bytes).sum();
            looked.read = read;
            planned.skipped = part.statistics.skipped.clone();
            if looked.live.is_none() {
                planned.documents.added = part.statistics.documents;
            }
        }
        looked.part = Some((part, folder));
        Ok(())
    }
}

/// An empty folder for a part; there may be one of an earlier pass over the files.
fn part_folder(work: &Path) -> Result<PathBuf, RebuildError> {
    let folder = work.join("part");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(RebuildError::io(&folder))?;
    }
    storage::create_dir(&folder)?;
    storage::create_dir(&folder.join(RUNS))?;
    Ok(folder)
}

impl Looked {
    pub(super) fn tell(&self, record: &mut HistoryRecord) {
        let planned = &self.planned;
        record.inputs = planned.inputs;
        record.documents = planned.documents;
        record.skipped = planned.skipped.values().sum();
        record.read_bytes = planned.read_bytes;
    }

    /// Judges the new generation by all that a build refuses; `counted` are its statistics, once
    /// they are known.
    pub(super) fn check(
        &self,
        job: &JobFile,
        counted: Option<&Statistics>,
    ) -> Result<(), RebuildError> {
        let (documents, skipped) = match (self.planned.how, &self.part) {
            (RebuildKind::Part, _) => (self.planned.documents.live, &self.planned.skipped),
            (RebuildKind::Whole(_), Some((whole, _))) => {
                (whole.statistics.documents, &whole.statistics.skipped)
            }
            _ => return Ok(()),
        };
        let new = NewContent {
            plan: &self.plan,
            read_bytes: self.planned.read_bytes,
            documents,
            tokens: counted.map(|counted| counted.tokens),
            skipped,
            first_skipped: &[],
        };
        let before = self.live.as_ref().map(|live| live.manifest.statistics.clone());
        Ok(guards(job).check(&new, || Ok(before))?)
    }

    fn touched_plan(&self) -> InputPlan {
        self.plan.only(|input| self.touched.get(input) == Some(&true))
    }

    /// By their places in the files that changed.
    fn wanted(&self) -> Result<WantedDocuments, RebuildError> {
        let mut wanted = WantedDocuments::new(self.touched_plan().inputs.len());
        let mut seen = self.seen()?;
        for number in self.changes.wanted.docids() {
            let Location { input, offset, .. } = seen.get(number)?.place;
            wanted.push(input, offset);
        }
        Ok(wanted)
    }

    /// The documents of the files that changed.
    pub(super) fn seen(&self) -> Result<SeenReader, RebuildError> {
        Ok(self.seen.as_ref().ok_or(RebuildError::Replaced)?.reader()?)
    }

    /// The documents of the live generation from files that changed or are `gone`.
    fn old(&self, gone: HashSet<PathBuf>) -> Result<TouchedDocuments, RebuildError> {
        let Some(live) = &self.live else { return Err(RebuildError::Replaced) };
        let mut files: HashMap<PathBuf, u32> = gone.into_iter().map(|path| (path, GONE)).collect();
        let read = self.touched_plan();
        let numbered = |(number, path): (u32, Option<PathBuf>)| Some((path?, number));
        files.extend((0..).zip(read.inputs.iter().map(|input| input.path)).filter_map(numbered));
        let file_of = |input: &InputEntry| match input.is_by_call() {
            true => None,
            false => files.get(&input.path).copied(),
        };
        let files: Vec<_> = live.inputs.iter().map(file_of).collect();
        // What is carried over was verified not long ago.
        Ok(TouchedDocuments::new(&live.path, &live.manifest, &files)?)
    }
}

pub(super) struct FoundChanges {
    pub(super) counts: InputCounts,
    /// By file of the plan: it has changed or is new.
    touched: Vec<bool>,
    gone: HashSet<PathBuf>,
}

impl FoundChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.counts.changed + self.counts.added + self.counts.removed == 0
    }

    /// `live` are path, hash and way of reading of each input of the live generation; without a
    /// hash it was gone before.
    pub(super) fn new<'a>(
        plan: &InputPlan,
        known: &Known,
        live: impl IntoIterator<Item = (&'a Path, &'a str, String)>,
    ) -> Self {
        // A file may be an input of several runs, and changes if it does for one of them.
        let mut before: HashMap<&Path, Option<(&str, String)>> = HashMap::new();
        for (path, hash, way) in live.into_iter().filter(|(_, hash, _)| !hash.is_empty()) {
            let this = Some((hash, way));
            let known = before.entry(path).or_insert_with(|| this.clone());
            if *known != this {
                *known = None;
            }
        }
        let mut counts = InputCounts::default();
        let mut touched = Vec::with_capacity(plan.inputs.len());
        for (number, input) in plan.inputs.iter().enumerate() {
            let path = input.path.unwrap_or_default();
            let way = plan.inputs.reading(number).way(input.format.name());
            let file = known.file(&path);
            let was = before.remove(path.as_path());
            let now = file.map(|file| (file.hash.as_str(), way));
            let same = now.is_some() && was == Some(now);
            let count = match (same, was) {
                (true, _) => &mut counts.unchanged,
                (false, Some(_)) => &mut counts.changed,
                (false, None) => &mut counts.added,
            };
            *count += 1;
            touched.push(!same);
        }
        counts.removed = before.len() as u64;
        let gone = before.into_keys().map(Path::to_path_buf).collect();
        Self { counts, touched, gone }
    }
}
