//! Merges the runs of a published index into one run of a new generation.

use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current, generations};
use crate::index::generations::held::held;
use crate::index::generations::manifest::read::read_manifest;
use crate::index::generations::manifest::{Manifest, Statistics};
use crate::index::list::{Form, ListCodec};
use crate::index::merge::{Merging, verify};
use crate::index::order::DocumentOrder;
use crate::index::ranks::{RanksFile, RanksFound};
use crate::index::scores::ranks_of;
use std::path::Path;

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
    /// No older generation stays, so that no file of the index has anything of a deleted document.
    pub now: bool,
}

impl Recode {
    fn form(&self, old: Form) -> Result<Form, IndexError> {
        let codec = self.codec.unwrap_or(old.list_codec());
        let block_len = self.block_len.unwrap_or(old.block_len());
        let form = Form::new(codec, block_len).ok_or(IndexError::NoForm { codec, block_len })?;
        Ok(form.with_positions(old.has_positions()))
    }
}

/// Merges all runs of the index in the folder `index` to one, in a new generation, by this many
/// `workers` and as `recode` says, until `stop` ends it. Every file of the old one is verified
/// first, so that damage does not get a new checksum.
///
/// Memory: that of [`Merging`].
///
/// # Errors
/// `Refused` where no older generation is to stay, and one is open or a rollback holds; `NoIndex`;
/// `Locked`; `NoForm` if the codec has no blocks of that size; `Lacks` if only some runs
/// have PageRanks, or the memory does not suffice for an order; else as
/// [`Draft::merge`].
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
    let mut lock = IndexLock::acquire(index)?;
    if recode.now {
        if held(index)?.is_some() {
            let why = "a rollback holds: publish another generation, or go forward, first";
            return Err(IndexError::refused(index, why));
        }
        lock = lock.keeping(0);
    }
    let from = current(index)?.ok_or_else(none)?;
    lock.remove_debris()?;
    let old = read_manifest(&from)?;
    old.check_here(&from)?;
    let form = recode.form(old.settings.form().unwrap_or_default())?;
    let is_coded_so = old.settings.form() == Some(form);
    let keeps_documents = recode.order.is_none() && recode.ranks.is_none();
    let is_done = is_whole(&old) && is_coded_so && keeps_documents;
    if is_done || old.runs.is_empty() {
        if recode.now {
            lock.write_kept(&[])?;
            lock.remove_debris()?;
            check_alone(index)?;
        }
        return Ok(Merged::Nothing);
    }
    let threads = workers.max(1) as usize;
    let stop = stop.clone();
    let (columns, record_parts) = (old.settings.columns.clone(), old.settings.record_parts());
    let merging = Merging { memory_bytes, threads, form, columns, record_parts, stop };
    let merged = merge_generation(&lock, &from, old, command, workers, &recode, &merging);
    if merged.is_err() {
        // A full disk is the likely reason, and leftovers would keep it full.
        let _ = lock.abandon(Some(&from));
    } else if recode.now {
        check_alone(index)?;
    }
    merged
}

/// Whether all generations are gone but the live one.
fn check_alone(index: &Path) -> Result<(), IndexError> {
    let live = current(index)?;
    match generations(index)?.into_iter().find(|(_, path)| live.as_deref() != Some(path)) {
        None => Ok(()),
        Some((number, _)) => {
            let why = format!(
                "generation {number} is open in another program, and may have deleted documents: \
                 merge again when that has moved on"
            );
            Err(IndexError::refused(index, why))
        }
    }
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
    let mut draft = Draft::begin(lock)?;
    draft.link_all(from, &old)?;
    let (mut given, mut found) = (None, RanksFound::None);
    if let Some(file) = &recode.ranks {
        let (ranks, counts) = draft.read_ranks(file, merging.memory_bytes)?;
        (given, found) = (Some(ranks), RanksFound::Read(counts));
    } else if ranks_of(from, &old)?.is_some() {
        found = RanksFound::Kept;
    }
    if let Some(order) = &recode.order {
        let ordered = draft.order(order, given, merging)?;
        found = if recode.ranks.is_some() { found } else { ordered };
        if *order == DocumentOrder::Input {
            draft.keep_order(None);
        }
    } else {
        // The documents of a whole run stay as they stood.
        let stays = is_whole(&old);
        draft.keep_order(old.order.filter(|_| stays));
        draft.merge(0..old.runs.len(), merging)?;
        given.map_or(Ok(()), |ranks| draft.rank(0, &ranks))?;
    }
    let Statistics { empty_documents, duplicate_names, skipped, .. } = old.statistics;
    let mut settings = old.settings;
    settings.codec = merging.form.name().to_string();
    settings.block_size = merging.form.block_len() as u32;
    let command = command.to_string();
    let is_commit = old.is_commit;
    let description = Description { command, workers, settings, skipped, is_commit };
    let statistics = draft.statistics(empty_documents, duplicate_names);
    let new = draft.finish(description, statistics, merging.memory_bytes)?;
    let manifest = Box::new(new.publish(lock)?);
    Ok(Merged::Runs { runs: old.runs.len(), manifest, ranks: found })
}

/// Whether there is at most one run, without deleted documents.
fn is_whole(manifest: &Manifest) -> bool {
    manifest.runs.len() <= 1 && manifest.runs.iter().all(|run| run.deleted.is_none())
}
