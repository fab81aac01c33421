//! The files of runs, which all generations of an index share: a run keeps its name for life, and
//! goes when no generation names it.

use crate::index::error::IndexError;
use crate::index::files::packed::on_disk;
use crate::index::format::{RUNS, is_run_file, runs_home};
use crate::index::generations::folder::{entries, generations};
use crate::index::generations::manifest::summary::Summary;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The number of the next run in the folder that a generation has its runs in.
pub(crate) fn next_run(generation: &Path) -> Result<u32, IndexError> {
    let home = runs_home(generation);
    let number = |(name, _): &(String, PathBuf)| name.get(..name.find(['.', '-'])?)?.parse().ok();
    let last: Option<u32> = run_files(home)?.iter().filter_map(number).max();
    last.map_or(Ok(0), |last| {
        let next = last.checked_add(1);
        next.ok_or_else(|| IndexError::refused(home, "there are no more numbers of runs"))
    })
}

/// The files of runs in a folder that none of the generations there names, when those in the
/// folders `gone` do not count. None where a manifest cannot be read, since it may name any.
pub(crate) fn unnamed(home: &Path, gone: &[PathBuf]) -> Result<Vec<PathBuf>, IndexError> {
    let mut named = HashSet::new();
    for (_, generation) in generations(home)? {
        if !gone.contains(&generation) {
            let Ok(summary) = Summary::read(&generation) else { return Ok(Vec::new()) };
            let files = summary.files.into_iter().map(|file| file.name);
            named.extend(files.map(|name| on_disk(Path::new(&name)).to_path_buf()));
        }
    }
    let files = run_files(home)?.into_iter();
    let unnamed = files.filter(|(name, _)| !named.contains(&Path::new(RUNS).join(name)));
    Ok(unnamed.map(|(_, path)| path).collect())
}

/// Files that no job writes are left alone.
fn run_files(home: &Path) -> Result<Vec<(String, PathBuf)>, IndexError> {
    let mut found = match entries(&home.join(RUNS)) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        found => found?,
    };
    found.retain(|(name, _)| is_run_file(name));
    Ok(found)
}
