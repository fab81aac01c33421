//! Finds the files of a folder that are read: all that a format claims and that can be read. An
//! index of millrace is none of them, wherever it lies, and what cannot be read is counted.

use crate::index::format::LOCK;
use crate::index::generations::folder::current;
use crate::input::foreign::way_to_text;
use crate::input::guess::ending;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is passed over on the way through folders.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// Links and files that cannot be read, by the reason.
    pub counts: BTreeMap<&'static str, u64>,
    /// The first few of them: path and what is wrong.
    pub first: Vec<String>,
    pub indexes: Vec<PathBuf>,
    /// The first few queries and judgements beside a collection, which are read as documents.
    pub beside: Vec<String>,
    /// What is to be said of folders most files of which are passed over.
    pub most: Vec<String>,
    endings: BTreeMap<String, u64>,
}

const FIRST: usize = 5;

impl Passed {
    pub(super) fn append(&mut self, other: Self) {
        for (reason, count) in other.counts {
            *self.counts.entry(reason).or_default() += count;
        }
        self.first.extend(other.first);
        self.first.truncate(FIRST);
        self.beside.extend(other.beside);
        self.beside.truncate(FIRST);
        self.most.extend(other.most);
    }

    /// Counts a file by its ending, of which some are counted apart.
    pub(super) fn count(&mut self, path: &Path) {
        let ending = ending(path);
        if self.endings.len() < 1000 || self.endings.contains_key(&ending) {
            *self.endings.entry(ending).or_default() += 1;
        }
    }

    /// The three commonest endings, and what makes text of such files.
    pub(super) fn commonest(&self) -> String {
        let mut endings: Vec<_> = self.endings.iter().collect();
        endings.sort_by(|one, other| other.1.cmp(one.1));
        let show = |&(ending, count): &(&String, &u64)| match (&**ending, way_to_text(ending)) {
            ("", _) => format!("{count} without an ending"),
            (_, None) => format!("{count} .{ending}"),
            (_, Some(command)) => format!("{count} .{ending} (`{command}` makes text of it)"),
        };
        endings.iter().take(3).map(show).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn add(&mut self, path: &Path, reason: &'static str, error: &dyn Display) {
        self.count(path);
        *self.counts.entry(reason).or_default() += 1;
        if self.first.len() < FIRST {
            self.first.push(format!("{}: {reason}: {error}", path.display()));
        }
    }

    pub(crate) fn unreadable(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// Whether a file has queries or judgements for the `corpus.jsonl` beside it, as in BEIR.
pub(super) fn is_beside_documents(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let name = path.file_name().map_or(&b""[..], |name| name.as_encoded_bytes());
    let is_named = name.starts_with(b"queries.") || name.starts_with(b"qrels.");
    is_named && folder.join("corpus.jsonl").exists()
        || folder.ends_with("qrels") && folder.with_file_name("corpus.jsonl").exists()
}

#[derive(Clone, Debug, Default)]
pub(crate) struct FolderWalk {
    /// The folder of the index that the job writes, which is no input even before it is an index.
    pub index: Option<PathBuf>,
    pub excluded: Arc<HashSet<PathBuf>>,
}

impl FolderWalk {
    /// The index that the job writes, or another one.
    pub(super) fn is_index(&self, folder: &Path) -> bool {
        self.is_own(folder) || folder.join(LOCK).exists() && matches!(current(folder), Ok(Some(_)))
    }

    fn is_own(&self, path: &Path) -> bool {
        let own = self.index.as_ref().and_then(|index| index.canonicalize().ok());
        own.is_some() && path.canonicalize().ok() == own
    }

    /// Whether what was named belongs to an index.
    pub(super) fn is_of_index(&self, path: &Path, is_folder: bool) -> bool {
        self.is_inside_own(path) || is_folder && self.is_index(path)
    }

    /// Whether a file that was named by itself belongs to the index that the job writes.
    fn is_inside_own(&self, path: &Path) -> bool {
        let canonical = |path: &Path| path.canonicalize().ok();
        match (self.index.as_deref().and_then(canonical), canonical(path)) {
            (Some(index), Some(path)) => path.starts_with(index),
            _ => false,
        }
    }

    /// Calls `take` with each plain file below `folder` that is not hidden, in sorted order, links
    /// followed.
    pub(super) fn files<E: From<(PathBuf, io::Error)>>(
        &self,
        folder: &Path,
        passed: &mut Passed,
        mut take: impl FnMut(PathBuf) -> Result<(), E>,
    ) -> Result<(), E> {
        let walk = walkdir::WalkDir::new(folder).follow_links(true).sort_by_file_name();
        let mut indexes = Vec::new();
        let shown = |entry: &walkdir::DirEntry| {
            if entry.depth() == 0 {
                return true;
            }
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_hidden || self.excluded.contains(entry.path()) {
                return false;
            }
            let index = entry.file_type().is_dir() && self.is_index(entry.path());
            if index {
                indexes.push(entry.path().to_path_buf());
            }
            !index
        };
        for entry in walk.into_iter().filter_entry(shown) {
            match entry {
                Ok(entry) if entry.file_type().is_file() => match readable(entry.path()) {
                    Ok(()) => take(entry.into_path())?,
                    Err(error) => passed.add(entry.path(), "unreadable file", &error),
                },
                Ok(_) => {}
                Err(error) => {
                    let path = error.path().unwrap_or(folder).to_path_buf();
                    let depth = error.depth();
                    let reason = reason(&path, error.loop_ancestor().is_some());
                    let error = error
                        .into_io_error()
                        .unwrap_or_else(|| io::Error::other("it leads to a folder above it"));
                    if depth == 0 {
                        return Err((path, error).into());
                    }
                    let hidden = path
                        .file_name()
                        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                    if !hidden {
                        passed.add(&path, reason, &error);
                    }
                }
            }
        }
        passed.indexes.append(&mut indexes);
        Ok(())
    }
}

fn reason(path: &Path, circle: bool) -> &'static str {
    let link = path.symlink_metadata().is_ok_and(|kind| kind.is_symlink());
    match link {
        _ if circle => "circle of links",
        true if path.metadata().is_err() => "dangling link",
        _ => "unreadable folder",
    }
}

/// Asked now, so that a job does not fail of it after hours.
fn readable(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::error::InputError;
    use crate::input::splits::InputPlan;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(plan: &InputPlan) -> Vec<String> {
        plan.inputs.iter().map(|input| input.name).collect()
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("a.txt"), "a").unwrap();
        fs::write(at("sub/b.txt"), "b").unwrap();
        symlink("nowhere.txt", at("dangling.txt")).unwrap();
        symlink("..", at("sub/circle")).unwrap();
        symlink("nowhere.txt", at(".hidden")).unwrap();
        let plan = InputPlan::new(&[dir.path().into()], None).unwrap();
        assert_eq!(names(&plan), ["a.txt", "sub/b.txt"]);
        let counts: Vec<_> = plan.passed.counts.iter().map(|(k, n)| (*k, *n)).collect();
        assert_eq!(counts, [("circle of links", 1), ("dangling link", 1)]);
        assert!(plan.passed.first[0].contains("dangling.txt: dangling link: "));
        // One that is named is missed.
        assert!(InputPlan::new(&[at("dangling.txt")], None).is_err());
    }

    #[test]
    fn an_index_is_no_input() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for index in ["idx", "other"] {
            fs::create_dir_all(at(index).join("gen-000001")).unwrap();
            fs::write(at(index).join("gen-000001/manifest.json"), "{}").unwrap();
        }
        fs::write(at("other/LOCK"), "").unwrap();
        fs::write(at("other/CURRENT"), "gen-000001\n").unwrap();
        fs::write(at("a.json"), "{}").unwrap();
        let walk = FolderWalk { index: Some(at("./idx")), ..FolderWalk::default() };
        let plan = InputPlan::walked(&[dir.path().into()], Default::default(), &walk).unwrap();
        assert_eq!(names(&plan), ["a.json"]);
        assert_eq!(plan.passed.indexes, [at("idx"), at("other")]);
        for named in ["idx", "other", "idx/gen-000001", "idx/gen-000001/manifest.json"] {
            let error = InputPlan::walked(&[at(named)], Default::default(), &walk).err().unwrap();
            assert!(matches!(error, InputError::IsIndex { .. }), "{named}: {error}");
        }
        // Who writes somewhere else may read a folder of any kind.
        let plan = InputPlan::new(&[dir.path().into()], None).unwrap();
        assert_eq!(names(&plan), ["a.json", "idx/gen-000001/manifest.json"]);
    }
}
