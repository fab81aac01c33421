//! How are the runs of a published index merged? Into one run of a new generation.

#![forbid(unsafe_code)]

use super::{Merging, merge_runs};
use crate::index::error::IndexError;
use crate::index::format::{Kind, check_length};
use crate::index::generation::read_manifest;
use crate::index::list::{Form, ListCodec};
use crate::index::manifest::Manifest;
use crate::index::map::check_crc;
use crate::index::publish::{IndexLock, current};
use crate::index::storage::Stop;
use crate::index::window::checksum;
use std::path::Path;

/// Bytes of the window that checksums are computed through.
const CHECKSUM_WINDOW_BYTES: usize = 1 << 20;

/// What [`merge_index`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// There is one run at most, coded as it should be and without deleted documents: nothing was to
    /// do.
    Nothing,
    /// The runs were merged.
    Runs {
        /// How many there were.
        runs: usize,
        /// The manifest of the new generation, which is live.
        manifest: Box<Manifest>,
    },
}

/// How merged lists are coded: as they were, but for what is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recode {
    /// The codec.
    pub codec: Option<ListCodec>,
    /// Postings of a block.
    pub block_len: Option<usize>,
}

impl Recode {
    fn form(self, old: Form) -> Result<Form, IndexError> {
        let codec = self.codec.unwrap_or(old.list_codec());
        let block_len = self.block_len.unwrap_or(old.block_len());
        Form::new(codec, block_len).ok_or(IndexError::NoForm { codec, block_len })
    }
}

/// Merges all runs of the index in the folder `index` to one, in a new generation, with `workers`
/// threads, and with its lists as `recode` says, until `stop` ends it. Every file of the old one is
/// verified first, so that damage does not get a new checksum.
///
/// Memory: that of [`Merging`].
///
/// # Errors
/// `NoIndex`; `Locked`; `NoForm` if the codec has no blocks of that size; else as [`merge_in_place`](super::merge_in_place).
pub fn merge_index(
    index: &Path,
    memory_bytes: u64,
    command: &str,
    workers: u32,
    recode: Recode,
    stop: &Stop,
) -> Result<Merged, IndexError> {
    // Not before there is an index: taking the lock creates the folder.
    let none = || IndexError::NoIndex { path: index.to_path_buf() };
    current(index)?.ok_or_else(none)?;
    let lock = IndexLock::acquire(index)?;
    let from = current(index)?.ok_or_else(none)?;
    lock.remove_debris()?;
    let old = read_manifest(&from)?;
    let form = recode.form(old.settings.form().unwrap_or_default())?;
    let is_coded_so = old.settings.form() == Some(form);
    let is_whole = old.runs.iter().all(|run| run.deleted.is_none());
    if old.runs.len() <= 1 && is_coded_so && is_whole || old.runs.is_empty() {
        return Ok(Merged::Nothing);
    }
    let (threads, stop) = (workers.max(1) as usize, stop.clone());
    let merging = Merging { memory_bytes, threads, form, stop };
    let merged = merge_generation(&lock, &from, old, (command, workers), &merging);
    if merged.is_err() {
        // A full disk is the likely reason; what is left behind would keep it full.
        let _ = lock.abandon(Some(&from));
    }
    merged
}

fn merge_generation(
    lock: &IndexLock,
    from: &Path,
    old: Manifest,
    (command, workers): (&str, u32),
    merging: &Merging,
) -> Result<Merged, IndexError> {
    for file in &old.files {
        let unknown = [Kind::Scores, Kind::Positions].map(Kind::extension);
        if let Some(kind) = unknown.iter().find(|kind| file.name.ends_with(**kind)) {
            let reason = format!("this program cannot merge the {kind} of runs");
            return Err(IndexError::refused(&from.join(&file.name), reason));
        }
        let path = from.join(&file.name);
        let (bytes, crc32) = checksum(&path, CHECKSUM_WINDOW_BYTES)?;
        check_length(&path, bytes, Some(file.bytes))?;
        check_crc(&path, file.crc32, crc32)?;
    }

    let (number, to) = lock.next_generation()?;
    let (run, mut files) = merge_runs(from, &old.runs, &to, 0, merging)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let mut manifest = Manifest {
        generation: number,
        created: Manifest::now(),
        command: command.to_string(),
        workers,
        files,
        ..old
    };
    let runs = manifest.runs.len();
    manifest.statistics.terms = run.terms;
    manifest.runs = vec![run];
    manifest.settings.codec = merging.form.name().to_string();
    manifest.settings.block_size = merging.form.block_len() as u32;
    manifest.write(&to)?;
    lock.publish(number)?;
    Ok(Merged::Runs { runs, manifest: Box::new(manifest) })
}
