//! Compares the bytes of two indexes, file by file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The folder of the live generation.
pub(crate) fn generation(index: &Path) -> PathBuf {
    let name = std::fs::read_to_string(index.join("CURRENT")).unwrap();
    index.join(name.trim_end())
}

/// Where a file lies that the manifest of a generation names.
pub(crate) fn file_path(generation: &Path, name: &str) -> PathBuf {
    let home = if name.starts_with("runs/") { generation.parent().unwrap() } else { generation };
    home.join(name)
}

/// The names of the runs of the live generation, and of its files.
fn names(index: &Path) -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(generation(index).join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |list: &str| -> Vec<String> {
        let all = manifest[list].as_array().unwrap().iter();
        all.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    (of("runs"), of("files"))
}

/// The file of a kind of a run of the live generation, such as `names`, by the place of the run.
pub(crate) fn run_path(index: &Path, run: usize, kind: &str) -> PathBuf {
    let (runs, files) = names(index);
    let is_it = |name: &&String| name.contains(&runs[run]) && name.ends_with(&format!(".{kind}"));
    let name = files.iter().find(is_it);
    file_path(&generation(index), name.unwrap_or_else(|| panic!("run {run} has no {kind}")))
}

/// The files of the live generation but its manifest and inputs, by their names, in which runs are
/// numbered by their places.
pub(crate) fn files(index: &Path) -> BTreeMap<String, Vec<u8>> {
    let (runs, files) = names(index);
    let generation = generation(index);
    let file = |name: &String| {
        let bytes = std::fs::read(file_path(&generation, name)).unwrap();
        let Some(file) = name.strip_prefix("runs/") else { return (name.clone(), bytes) };
        let (run, kind) = file.split_once('.').unwrap();
        let place = runs.iter().position(|known| *known == run.split('-').next().unwrap());
        (format!("runs/{:06}.{kind}", place.unwrap()), bytes)
    };
    files.iter().filter(|name| *name != "inputs").map(file).collect()
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
