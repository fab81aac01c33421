//! An index whose files were damaged, with or without right checksums, is opened, searched, merged
//! and checked without a panic, and what `check` accepts works.

use super::bounds::bounds;
use crate::fuzzing::damage::{edit, edit_header, manifest_tail};
use crate::fuzzing::sample;
use crate::fuzzing::take::Take;
use millrace::index::deletions::live_runs;
use millrace::index::error::IndexError;
use millrace::index::files::pages::seal;
use millrace::index::files::storage::Stop;
use millrace::index::format::{CURRENT, MANIFEST, RUNS, file_path};
use millrace::index::generations::generation::Generation;
use millrace::index::generations::manifest::Manifest;
use millrace::index::inspect::check::check;
use millrace::index::list::Form;
use millrace::index::merge::{Merging, merge_runs};
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const QUERIES: [&str; 5] = ["water mill", "stone", "rare7 water river", "42 naïve abc", "unknown"];
const MERGE_BYTES: u64 = 4 << 20;

struct Index {
    folder: PathBuf,
    manifest: Manifest,
    /// What is damaged: path and bytes of each file but the manifest, `CURRENT` last.
    files: Vec<(PathBuf, Vec<u8>)>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder().join("index");
    let manifest = sample::build(&folder, &sample::collection(300), &[170]).expect("it is written");
    let generation = folder.join("gen-000001");
    let names = manifest.files.iter().map(|file| file_path(&generation, &file.name));
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("it was written");
        (path, bytes)
    };
    let files = names.chain([folder.join(CURRENT)]).map(read).collect();
    Index { folder, manifest, files }
});

/// Puts the good files back where damaged ones are.
struct Restore(Vec<usize>);

impl Drop for Restore {
    fn drop(&mut self) {
        for file in &self.0 {
            let (path, bytes) = &INDEX.files[*file];
            fs::write(path, bytes).expect("the folder can be written");
        }
    }
}

/// What an input does to the index.
struct Damage {
    /// Checksums were put right.
    sealed: bool,
    /// Anything is other than it was.
    any: bool,
    /// The manifest is.
    manifest: bool,
    restore: Restore,
}

fn damage(take: &mut Take<'_>, sealed: bool) -> Damage {
    let files = &INDEX.files;
    let mut changed: Vec<Option<Vec<u8>>> = vec![None; files.len()];
    let mut manifest_edits = Vec::new();
    while !take.is_empty() {
        let which = take.u8();
        let file = usize::from(which & 15) % (files.len() + 1);
        let Some((_, good)) = files.get(file) else {
            manifest_edits.push(take.bytes(13));
            continue;
        };
        let bytes = changed[file].get_or_insert_with(|| good.clone());
        match which >> 4 & 7 {
            0 => edit_header(bytes, take),
            _ => edit(bytes, take),
        }
        if sealed && file + 1 < files.len() {
            seal(&files[file].0, bytes);
        }
    }

    let mut manifest = INDEX.manifest.clone();
    let mut restore = Restore(Vec::new());
    for (file, bytes) in changed.iter().enumerate() {
        let Some(bytes) = bytes.as_ref().filter(|bytes| **bytes != files[file].1) else {
            continue;
        };
        fs::write(&files[file].0, bytes).expect("the folder can be written");
        restore.0.push(file);
        if let Some(entry) = manifest.files.get_mut(file).filter(|_| sealed) {
            entry.bytes = bytes.len() as u64;
            entry.crc32 = crc32fast::hash(bytes);
        }
    }
    let good = INDEX.manifest.encode().into_bytes();
    let mut text = manifest.encode().into_bytes();
    text.truncate(text.len() - manifest_tail(b"").len());
    let tail = manifest_tail(&text);
    for edits in manifest_edits {
        edit(&mut text, &mut Take(edits));
    }
    let tail = if sealed { manifest_tail(&text) } else { tail };
    text.extend_from_slice(tail.as_bytes());
    let path = INDEX.folder.join("gen-000001").join(MANIFEST);
    let manifest = text != good;
    fs::write(path, text).expect("the folder can be written");
    Damage { sealed, any: manifest || !restore.0.is_empty(), manifest, restore }
}

fn search(generation: Generation, mode: Mode) -> Result<(), IndexError> {
    let documents = generation.documents().len();
    let wanted = Wanted { k: 20, mode, algorithm: Algorithm::MaxScore, ..Wanted::default() };
    let snapshot = Snapshot::new(generation, Scoring::default())?;
    let mut searcher = Searcher::new();
    for query in QUERIES {
        let (hits, _) = searcher.search(&snapshot, &wanted, query)?;
        assert!(hits.iter().all(|hit| hit.docid < documents && hit.score >= 0.0));
        let behind = |pair: &[millrace::query::top_k::Hit]| {
            let (a, b) = (pair[0], pair[1]);
            a.score > b.score || a.score == b.score && a.docid < b.docid
        };
        assert!(hits.windows(2).all(behind));
    }
    Ok(())
}

fn merge(index: &Path, to: &Path) -> Result<(), IndexError> {
    let generation = index.join("gen-000001");
    let runs = Manifest::read(&generation)?.runs;
    let (threads, form, stop) = (1, Form::default(), Stop::default());
    let merging = Merging {
        memory_bytes: MERGE_BYTES,
        threads,
        form,
        columns: Vec::new(),
        record_parts: 0,
        stop,
    };
    merge_runs(&generation, &live_runs(&generation, &runs)?, |_| true, to, 0, &merging).map(drop)
}

/// What is asked of an input.
pub fn generation(data: &[u8]) {
    let mut take = Take(data);
    let flags = take.u8();
    if flags >> 5 == 4 {
        return bounds(take);
    }
    let damage = damage(&mut take, flags & 1 == 0);
    let index = &INDEX.folder;

    let mode = [Mode::Or, Mode::And, Mode::AndOr][usize::from(flags >> 1) % 3];
    let opened = Generation::open(index);
    let verified = Generation::open(index).and_then(|generation| generation.verify());
    if let Err(error) = &opened {
        assert!(!error.to_string().is_empty());
        assert!(verified.is_err(), "more is verified when it is asked for");
    }
    let searched = opened.and_then(|generation| search(generation, mode));
    let merged = (flags & 0x10 != 0).then(|| {
        let to = index.with_file_name("merged");
        let _ = fs::remove_dir_all(&to);
        fs::create_dir_all(to.join(RUNS)).expect("the folder can be written");
        merge(index, &to)
    });
    let checked = check(index);
    match &checked {
        Ok(report) => {
            assert!(report.files > 0);
            assert!(verified.is_ok(), "{verified:?}");
            assert!(searched.is_ok(), "{searched:?}");
            assert!(merged.as_ref().is_none_or(Result::is_ok), "{merged:?}");
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(damage.any, "{problems:?}");
        }
    }
    if damage.any && !damage.sealed && !damage.manifest {
        assert!(checked.is_err(), "damage was not found in {:?}", damage.restore.0);
        assert!(verified.is_err());
    }
}
