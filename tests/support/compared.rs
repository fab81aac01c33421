//! Compares the bytes of two indexes, file by file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The folder of the live generation.
pub(crate) fn generation(index: &Path) -> PathBuf {
    let name = std::fs::read_to_string(index.join("CURRENT")).unwrap();
    index.join(name.trim_end())
}

/// The files of the live generation but its manifest and inputs, by their names.
pub(crate) fn files(index: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &format!("{name}/"), files);
            } else if !["manifest.json", "inputs"].contains(&&*name) {
                files.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(&generation(index), "", &mut all);
    all
}

/// Checks that two indexes have the same bytes in all files but the manifest, the inputs and those
/// in `but`.
#[track_caller]
pub(crate) fn assert_same_index(a: &Path, b: &Path, but: &[&str]) {
    let left = files(a);
    let right = files(b);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&left), names(&right), "files of {} and {}", a.display(), b.display());
    let mut differences = String::new();
    for (name, bytes) in left.iter().filter(|(name, _)| !but.contains(&name.as_str())) {
        let other = &right[name];
        if bytes != other {
            let at = bytes.iter().zip(other).take_while(|(x, y)| x == y).count();
            let lengths = (bytes.len(), other.len());
            writeln!(differences, "{name}: first at byte {at}, lengths {lengths:?}").unwrap();
        }
    }
    assert!(differences.is_empty(), "{} and {}:\n{differences}", a.display(), b.display());
}
