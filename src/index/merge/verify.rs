//! Verifies files that are about to be merged.

use super::Merging;
use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::map::check_crc;
use crate::index::files::storage::FileEntry;
use crate::index::files::window::{FileWindow, checksum};
use crate::index::format::{check_length, file_path};
use std::path::Path;

const CHECKSUM_WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a file that a thread claims.
const PART_BYTES: u64 = 32 << 20;

/// Verifies the files of runs that are to be merged or carried over.
pub(crate) fn verify<'a>(
    generation: &Path,
    files: impl IntoIterator<Item = &'a FileEntry>,
    merging: &Merging,
) -> Result<(), IndexError> {
    let mut parts = Vec::new();
    for file in files {
        let path = file_path(generation, &file.name);
        check_length(&path, FileWindow::open_whole(&path, 0)?.length(), Some(file.bytes))?;
        // An empty file has one, too.
        for start in (0..file.bytes.max(1)).step_by(PART_BYTES as usize) {
            parts.push((file, start..file.bytes.min(start + PART_BYTES)));
        }
    }
    // Small files are read before a thread has begun.
    let bytes: u64 = parts.iter().map(|(_, part)| part.end - part.start).sum();
    let most = 1 + bytes / CHECKSUM_WINDOW_BYTES as u64;
    let threads = merging.threads_of(CHECKSUM_WINDOW_BYTES as u64).min(most as usize);
    let sums = Crew::new("verifier").in_order(threads, parts.len(), |(): &mut (), number| {
        merging.stop.check()?;
        let (file, part) = &parts[number];
        checksum(&file_path(generation, &file.name), part.clone(), CHECKSUM_WINDOW_BYTES)
    })?;
    let mut crc = crc32fast::Hasher::new();
    for ((file, part), sum) in parts.iter().zip(sums) {
        crc.combine(&sum);
        if part.end == file.bytes {
            let crc = std::mem::take(&mut crc).finalize();
            check_crc(&file_path(generation, &file.name), file.crc32, crc)?;
        }
    }
    Ok(())
}
