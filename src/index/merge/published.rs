//! Merges the runs of a published index into one run of a new generation.

use super::ordered::{UnorderedRun, reorder};
use super::{Merging, deletions_of, merge_runs};
use crate::crew::Crew;
use crate::index::block_bounds::write_missing_bounds;
use crate::index::documents::Documents;
use crate::index::error::IndexError;
use crate::index::files::map::check_crc;
use crate::index::files::storage::{Durability, FileEntry, Stop};
use crate::index::files::window::{FileWindow, checksum};
use crate::index::format::{FileKind, check_length};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::read::read_manifest;
use crate::index::list::{Form, ListCodec};
use crate::index::order::DocumentOrder;
use crate::index::ranks::{RankCounts, RanksFile, read_ranks};
use crate::index::scores::{RunScores, ranks_of, write_scores};
use std::path::Path;

const CHECKSUM_WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a file that a thread claims.
const PART_BYTES: u64 = 32 << 20;

#[derive(Clone, Debug, PartialEq)]
pub enum Merged {
    /// There is one run at most, coded as it should be and without deleted documents.
    Nothing,
    Runs {
        runs: usize,
        /// The manifest of the new generation, which is live.
        manifest: Box<Manifest>,
        ranks: RanksFound,
    },
}

/// What a merge changes beside the runs.
#[derive(Clone, Debug, Default)]
pub struct Recode {
    pub codec: Option<ListCodec>,
    pub block_len: Option<usize>,
    /// None: documents stay in their order.
    pub order: Option<DocumentOrder>,
    /// A file of the PageRanks of documents; none: they keep theirs.
    pub ranks: Option<RanksFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanksFound {
    None,
    /// Equal for all documents, since none were given and the order asks for some.
    Equal,
    Kept,
    /// Those of some runs are lost, since others had none.
    Lost,
    Read(RankCounts),
}

impl RanksFound {
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::None | Self::Kept => None,
            Self::Equal => Some("no PageRanks were given: all documents have the same".into()),
            Self::Lost => Some(
                "some runs have no PageRanks, so that the merged index has none: merge again and give those of all documents".into(),
            ),
            Self::Read(RankCounts { missing: 0, strangers: 0, .. }) => None,
            Self::Read(RankCounts { found, missing, strangers }) => Some(format!(
                "{found} documents have PageRanks; {missing} are not in the file and have 0; {strangers} of its lines name no document"
            )),
        }
    }
}

impl Recode {
    fn form(&self, old: Form) -> Result<Form, IndexError> {
        let codec = self.codec.unwrap_or(old.list_codec());
        let block_len = self.block_len.unwrap_or(old.block_len());
        Form::new(codec, block_len).ok_or(IndexError::NoForm { codec, block_len })
    }
}

/// Merges all runs of the index in the folder `index` to one, in a new generation, by so many
/// `workers` and as `recode` says, until `stop` ends it. Every file of the old one is verified
/// first, so that damage does not get a new checksum.
///
/// Memory: that of [`Merging`].
///
/// # Errors
/// `NoIndex`; `Locked`; `NoForm` if the codec has no blocks of that size; `Lacks` if only some runs
/// have PageRanks, or the memory does not suffice for an order; else as [`merge_runs`].
pub fn merge_index(
    index: &Path,
    memory_bytes: u64,
    command: &str,
    workers: u32,
    recode: Recode,
    stop: &Stop,
) -> Result<Merged, IndexError> {
    // Taking the lock creates the folder, so it waits until there is an index.
    let none = || IndexError::NoIndex { path: index.to_path_buf() };
    current(index)?.ok_or_else(none)?;
    let lock = IndexLock::acquire(index)?;
    let from = current(index)?.ok_or_else(none)?;
    lock.remove_debris()?;
    let old = read_manifest(&from)?;
    let form = recode.form(old.settings.form().unwrap_or_default())?;
    let is_coded_so = old.settings.form() == Some(form);
    let keeps_documents = recode.order.is_none() && recode.ranks.is_none();
    let is_done = is_whole(&old) && is_coded_so && keeps_documents;
    if is_done || old.runs.is_empty() {
        return Ok(Merged::Nothing);
    }
    let threads = workers.max(1) as usize;
    let stop = stop.clone();
    let merging = Merging { memory_bytes, threads, form, stop };
    let merged = merge_generation(&lock, &from, old, command, workers, &recode, &merging);
    if merged.is_err() {
        // A full disk is the likely reason, and leftovers would keep it full.
        let _ = lock.abandon(Some(&from));
    }
    merged
}

fn merge_generation(
    lock: &IndexLock,
    from: &Path,
    old: Manifest,
    command: &str,
    workers: u32,
    recode: &Recode,
    merging: &Merging,
) -> Result<Merged, IndexError> {
    verify(from, &old.files, merging)?;
    let (ranks, mut found) = ranks(from, &old, recode, merging.memory_bytes)?;
    let (number, to) = lock.next_generation()?;
    let is_single = is_whole(&old);
    let (run, mut files, order) = match &recode.order {
        Some(order) => {
            if ranks.is_none() && matches!(order, DocumentOrder::Global { .. }) {
                found = RanksFound::Equal;
            }
            let merged;
            let source = if is_single {
                UnorderedRun { generation: from, run: &old.runs[0], remove: false }
            } else {
                merged = merge_runs(from, &old.runs, &to, 1, merging)?.0;
                UnorderedRun { generation: &to, run: &merged, remove: true }
            };
            let reordered = reorder(&source, &to, 0, order, ranks.as_deref(), merging)?;
            let is_own = *order == DocumentOrder::Input;
            (reordered.run, reordered.files, (!is_own).then_some(reordered.order))
        }
        None => {
            let (run, mut files) = merge_runs(from, &old.runs, &to, 0, merging)?;
            // The documents of a whole run stay as they stood.
            let mut order = old.order.clone().filter(|_| is_single);
            if let Some(ranks) = ranks {
                let scores = RunScores::open(from, &old.runs[0], &old.files)?;
                let mut globals = None;
                if let (RanksFound::Kept, Some(_), Some(scores)) = (found, &order, scores) {
                    globals = scores.globals()?.map(<[f32]>::to_vec);
                } else {
                    // Other ranks make another order.
                    order = order.filter(|order| order.global.is_none());
                }
                let lasting = Durability::Lasting;
                let globals = globals.as_deref();
                files.push(write_scores(&to, &run.name, &ranks, globals, lasting)?);
            }
            (run, files, order)
        }
    };
    let mut settings = old.settings.clone();
    settings.codec = merging.form.name().to_string();
    settings.block_size = merging.form.block_len() as u32;
    write_missing_bounds(&to, [&run], &mut files, &settings, merging.threads)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let mut manifest = Manifest {
        generation: number,
        created: Manifest::now(),
        command: command.to_string(),
        workers,
        settings,
        files,
        order,
        ..old
    };
    let runs = manifest.runs.len();
    manifest.statistics.terms = run.terms;
    manifest.runs = vec![run];
    manifest.write(&to)?;
    lock.publish(number)?;
    Ok(Merged::Runs { runs, manifest: Box::new(manifest), ranks: found })
}

/// Verifies the files of runs that are to be merged or carried over, and that nothing of them would
/// be lost.
pub(crate) fn verify<'a>(
    generation: &Path,
    files: impl IntoIterator<Item = &'a FileEntry>,
    merging: &Merging,
) -> Result<(), IndexError> {
    let mut parts = Vec::new();
    for file in files {
        let path = generation.join(&file.name);
        let unknown = FileKind::Positions.extension();
        if file.name.ends_with(unknown) {
            let reason = format!("this program cannot merge the {unknown} of runs");
            return Err(IndexError::refused(&path, reason));
        }
        check_length(&path, FileWindow::open(&path, 0)?.length(), Some(file.bytes))?;
        // An empty file has one, too.
        for start in (0..file.bytes.max(1)).step_by(PART_BYTES as usize) {
            parts.push((file, start..file.bytes.min(start + PART_BYTES)));
        }
    }
    let threads = merging.threads_of(CHECKSUM_WINDOW_BYTES as u64);
    let sums = Crew::new("verifier").in_order(threads, parts.len(), |(): &mut (), number| {
        let (file, part) = &parts[number];
        checksum(&generation.join(&file.name), part.clone(), CHECKSUM_WINDOW_BYTES)
    })?;
    let mut crc = crc32fast::Hasher::new();
    for ((file, part), sum) in parts.iter().zip(sums) {
        crc.combine(&sum);
        if part.end == file.bytes {
            let crc = std::mem::take(&mut crc).finalize();
            check_crc(&generation.join(&file.name), file.crc32, crc)?;
        }
    }
    Ok(())
}

/// Whether there is at most one run, without deleted documents.
fn is_whole(manifest: &Manifest) -> bool {
    manifest.runs.len() <= 1 && manifest.runs.iter().all(|run| run.deleted.is_none())
}

/// The PageRanks of the documents that are left, in docid order, and their source.
fn ranks(
    from: &Path,
    old: &Manifest,
    recode: &Recode,
    memory_bytes: u64,
) -> Result<(Option<Vec<f32>>, RanksFound), IndexError> {
    let mut live = Vec::new();
    for run in &old.runs {
        let deletions = deletions_of(from, run)?;
        let is_left = |&docid: &u32| !deletions.as_ref().is_some_and(|gone| gone.contains(docid));
        live.extend((0..run.documents).filter(is_left).map(|docid| run.first_docid + docid));
    }
    if let Some(file) = &recode.ranks {
        let documents = Documents::open_unverified(from)?;
        let name = |&docid: &u32| documents.name(docid).unwrap_or_default();
        let (ranks, counts) = read_ranks(file, live.iter().map(name), memory_bytes)?;
        return Ok((Some(ranks), RanksFound::Read(counts)));
    }
    let Some(all) = ranks_of(from, old)? else { return Ok((None, RanksFound::None)) };
    let ranks = live.iter().map(|&docid| all[docid as usize]).collect();
    Ok((Some(ranks), RanksFound::Kept))
}
