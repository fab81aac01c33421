//! The bounds of blocks of learned vectors, damaged and sealed again, are searched by without a
//! panic, and `check` accepts those alone that the lists have.

use crate::fuzzing::damage::{edit, edit_header};
use crate::fuzzing::take::Take;
use millrace::index::error::IndexError;
use millrace::index::files::pages::seal;
use millrace::index::format::{FileKind, MANIFEST, file_path};
use millrace::index::generations::generation::Generation;
use millrace::index::generations::manifest::Manifest;
use millrace::index::inspect::check::check;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::{Scoring, Snapshot};
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use millrace::score::named::Score;
use millrace::{BuildOptions, Input};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const QUERIES: [&str; 3] = ["topic0 often", "topic1 topic2 often", "topic3 unknown"];

struct Index {
    folder: PathBuf,
    manifest: Manifest,
    /// The place of the bounds among the manifest's files, and their bytes.
    number: usize,
    path: PathBuf,
    good: Vec<u8>,
    answers: Vec<Vec<Hit>>,
}

fn search(folder: &Path) -> Result<Vec<Vec<Hit>>, IndexError> {
    let scoring = Scoring { score: Score::Impact, ..Scoring::default() };
    let snapshot = Snapshot::new(Generation::open(folder)?, scoring)?;
    let wanted =
        Wanted { k: 10, mode: Mode::Or, algorithm: Algorithm::Blocks, ..Wanted::default() };
    let mut searcher = Searcher::new();
    let answer = |query: &&str| {
        let (hits, _) = searcher.search(&snapshot, &wanted, query)?;
        Ok(hits.to_vec())
    };
    QUERIES.iter().map(answer).collect()
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let scratch = crate::fuzzing::folder();
    let mut lines = String::new();
    for docid in 0..2400u32 {
        write!(lines, "{{\"id\": \"d{docid}\", \"vector\": {{\"often\": {}", 1 + docid % 7)
            .expect("a string takes it");
        for topic in 0..4 {
            let weight = if docid / 600 == topic { 200 + docid % 100 } else { 1 };
            write!(lines, ", \"topic{topic}\": {weight}").expect("a string takes it");
        }
        lines.push_str("}}\n");
    }
    let input = scratch.join("vectors.jsonl");
    fs::write(&input, lines).expect("the folder can be written");
    let folder = scratch.join("index");
    let mut options = BuildOptions::new(&folder, Input::Paths(vec![input]));
    options.format = Some(millrace::input::Format::Vectors);
    options.factor = Some(1.0);
    millrace::build(options).expect("it is built");
    let generation = folder.join("gen-000001");
    let manifest = Manifest::read(&generation).expect("it was written");
    let name = manifest.runs[0].file(FileKind::Bounds);
    let number = manifest.files.iter().position(|file| file.name == name);
    let number = number.expect("bounds pay where documents of a topic stand together");
    let path = file_path(&generation, &name);
    let good = fs::read(&path).expect("it was written");
    let answers = search(&folder).expect("it is sound");
    Index { folder, manifest, number, path, good, answers }
});

/// What [`generation`](super::generation) asks of an input that is for these bounds.
pub(super) fn bounds(mut take: Take<'_>) {
    let index = &*INDEX;
    let mut bytes = index.good.clone();
    while !take.is_empty() {
        match take.u8() % 4 {
            0 => edit_header(&mut bytes, &mut take),
            _ => edit(&mut bytes, &mut take),
        }
    }
    seal(&index.path, &mut bytes);
    fs::write(&index.path, &bytes).expect("the folder can be written");
    let mut manifest = index.manifest.clone();
    manifest.files[index.number].bytes = bytes.len() as u64;
    manifest.files[index.number].crc32 = crc32fast::hash(&bytes);
    let path = index.folder.join("gen-000001").join(MANIFEST);
    fs::write(path, manifest.encode()).expect("the folder can be written");
    let answers = search(&index.folder);
    let checked = check(&index.folder);
    assert_eq!(checked.is_ok(), bytes == index.good, "{checked:?}");
    if checked.is_ok() {
        assert_eq!(answers.expect("it is sound"), index.answers);
    }
}
