//! The static scores of a run: the PageRank of each document and, in an index that is ordered by
//! them, its global score (`score::wang`), each column with the maximum of every block of documents
//! (`docs/index-format.md`, Static scores).

use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::{Manifest, RunEntry, find_file};
use std::borrow::Borrow;
use std::path::Path;

/// Documents of a block, which has one maximum.
pub(crate) const SCORES_BLOCK: usize = 128;

const BODY: u64 = HEADER_BYTES as u64;

/// Writes the static scores of a run to the file `name` of a generation. `Refused` if a score is
/// negative or not a number, or the columns differ in length.
pub(crate) fn write_scores(
    generation: &Path,
    name: &str,
    ranks: &[f32],
    globals: Option<&[f32]>,
) -> Result<FileEntry, IndexError> {
    let mut file = StorageFile::create(generation, name)?;
    let columns = [Some(ranks), globals];
    for column in columns.into_iter().flatten() {
        if column.len() != ranks.len() || !column.iter().all(is_score) {
            let reason = "static scores are numbers from 0 on, one for each document";
            return Err(IndexError::refused(file.path(), reason));
        }
        file.write(bytemuck::cast_slice(column))?;
        file.pad()?;
        for block in column.chunks(SCORES_BLOCK) {
            file.write(&greatest(block).to_le_bytes())?;
        }
        file.pad()?;
    }
    let columns = columns.iter().flatten().count() as u64;
    let values = [ranks.len() as u64, SCORES_BLOCK as u64, columns, 0, 0];
    file.finish(FileHeader { kind: FileKind::Scores, values, last: 0 })
}

fn is_score(score: &f32) -> bool {
    score.is_finite() && score.is_sign_positive()
}

fn greatest(scores: &[f32]) -> f32 {
    scores.iter().copied().fold(0.0, f32::max)
}

#[derive(Debug)]
pub(crate) struct RunScores {
    map: Map,
    documents: u64,
    block: u64,
    columns: u64,
}

impl RunScores {
    /// Maps the static scores of a run, if the manifest's `files` has any, and verifies their
    /// checksum.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        files: &[FileEntry],
    ) -> Result<Option<Self>, IndexError> {
        let name = run.file(FileKind::Scores);
        let Ok(file) = find_file(files, generation, &name) else { return Ok(None) };
        let scores = Self::open_unverified(generation, run)?;
        scores.map.verify(file.bytes, file.crc32)?;
        Ok(Some(scores))
    }

    /// As [`open`](Self::open), but reads no more than the header.
    pub(crate) fn open_unverified(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Scores))?;
        let header = FileHeader::parse(map.path(), FileKind::Scores, map.bytes())?;
        header.check_unused(map.path(), 3)?;
        let [documents, block, columns, ..] = header.values;
        let wrong =
            |at, expected: String, found| Err(IndexError::damaged(map.path(), at, expected, found));
        if documents != u64::from(run.documents) {
            return wrong(16, run.documents.to_string(), documents);
        }
        if !block.is_power_of_two() {
            return wrong(24, "a power of two".into(), block);
        }
        if !(1..=2).contains(&columns) {
            return wrong(32, "1 or 2 columns".into(), columns);
        }
        let scores = Self { documents, block, columns, map };
        let expected = BODY + columns * scores.column_bytes();
        check_length(scores.map.path(), scores.map.bytes().len() as u64, Some(expected))?;
        Ok(scores)
    }

    /// PageRanks by docid, on any scale.
    pub(crate) fn ranks(&self) -> Result<&[f32], IndexError> {
        self.column(0)
    }

    /// Global scores by docid, if the index is ordered by them.
    pub(crate) fn globals(&self) -> Result<Option<&[f32]>, IndexError> {
        (self.columns > 1).then(|| self.column(1)).transpose()
    }

    /// Checks the maxima, that the padding is zero and that global scores fall.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        for column in 0..self.columns {
            let scores = self.column(column)?;
            let blocks = self.documents.div_ceil(self.block);
            let start = BODY + column * self.column_bytes();
            let of_blocks = start + 4 * self.documents + padding(4 * self.documents);
            let found = self.map.array::<f32>(of_blocks, blocks)?;
            let expected = scores.chunks(self.block as usize).map(greatest);
            for ((at, expected), &found) in (of_blocks..).step_by(4).zip(expected).zip(found) {
                if expected.to_bits() != found.to_bits() {
                    return Err(IndexError::damaged(self.map.path(), at, expected, found));
                }
            }
            for (end, bytes) in [(start, self.documents), (of_blocks, blocks)] {
                let end = end + 4 * bytes;
                let zeros = self.map.slice(end, padding(end))?;
                if let Some(at) = zeros.iter().position(|byte| *byte != 0) {
                    let at = end + at as u64;
                    return Err(IndexError::damaged(self.map.path(), at, "a zero byte", "another"));
                }
            }
        }
        let globals = self.globals()?.unwrap_or_default();
        match globals.windows(2).position(|pair| pair[0] < pair[1]) {
            None => Ok(()),
            Some(at) => {
                let place = BODY + self.column_bytes() + 4 * (at as u64 + 1);
                let expected = format!("a global score of at most {}", globals[at]);
                Err(IndexError::damaged(self.map.path(), place, expected, globals[at + 1]))
            }
        }
    }

    fn column(&self, column: u64) -> Result<&[f32], IndexError> {
        let start = BODY + column * self.column_bytes();
        let scores: &[f32] = self.map.array(start, self.documents)?;
        match scores.iter().position(|score| !is_score(score)) {
            None => Ok(scores),
            Some(at) => {
                let place = start + 4 * at as u64;
                Err(IndexError::damaged(self.map.path(), place, "a number from 0 on", scores[at]))
            }
        }
    }

    fn column_bytes(&self) -> u64 {
        [self.documents, self.documents.div_ceil(self.block)]
            .map(|scores| 4 * scores + padding(4 * scores))
            .iter()
            .sum()
    }
}

/// The PageRanks of all documents of a generation, deleted ones too; none if no run has any,
/// `Lacks` if only some runs have them.
pub fn ranks_of(generation: &Path, manifest: &Manifest) -> Result<Option<Vec<f32>>, IndexError> {
    let open = |number: usize| RunScores::open(generation, &manifest.runs[number], &manifest.files);
    join_ranks(generation, manifest, open)
}

/// The same by the `scores` of each run.
pub(crate) fn join_ranks<S: Borrow<RunScores>>(
    generation: &Path,
    manifest: &Manifest,
    scores: impl Fn(usize) -> Result<Option<S>, IndexError>,
) -> Result<Option<Vec<f32>>, IndexError> {
    let mut ranks = Vec::new();
    let mut with = None;
    let mut without = None;
    for (number, run) in manifest.runs.iter().enumerate() {
        match scores(number)? {
            Some(scores) => {
                ranks.extend_from_slice(scores.borrow().ranks()?);
                with = with.or(Some(&run.name));
            }
            None => without = without.or(Some(&run.name)),
        }
    }
    match (with, without) {
        (None, _) => Ok(None),
        (Some(_), None) => Ok(Some(ranks)),
        (Some(with), Some(without)) => {
            let reason = format!(
                "run {with} has PageRanks and run {without} has none: merge the runs with the ranks of all \
                 documents (millrace merge --pagerank FILE)"
            );
            Err(IndexError::lacks(generation, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::format::RUNS;
    use crate::index::format::before_sums;

    fn written(ranks: &[f32], globals: Option<&[f32]>) -> (tempfile::TempDir, RunEntry, FileEntry) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(RUNS)).unwrap();
        let documents = ranks.len() as u32;
        let run = RunEntry { name: "000003".into(), documents, ..RunEntry::default() };
        let file =
            write_scores(folder.path(), &run.file(FileKind::Scores), ranks, globals).unwrap();
        (folder, run, file)
    }

    #[test]
    fn what_is_written_is_read() {
        for documents in [0, 1, 127, 128, 129, 1000] {
            let ranks: Vec<f32> = (0..documents).map(|docid| (docid % 7) as f32).collect();
            let globals: Vec<f32> = (0..documents).rev().map(|docid| docid as f32).collect();
            for globals in [None, Some(&globals[..])] {
                let (folder, run, file) = written(&ranks, globals);
                assert!(RunScores::open(folder.path(), &run, &[]).unwrap().is_none());
                let scores = RunScores::open(folder.path(), &run, &[file]).unwrap().unwrap();
                assert_eq!(scores.ranks().unwrap(), ranks);
                assert_eq!(scores.globals().unwrap(), globals);
                scores.check().unwrap();
                let other = RunEntry { documents: documents + 1, ..run };
                RunScores::open_unverified(folder.path(), &other).unwrap_err();
            }
        }
    }

    #[test]
    fn what_is_no_score_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(RUNS)).unwrap();
        for (number, wrong) in [-1.0, f32::NAN, f32::INFINITY].into_iter().enumerate() {
            let name = number.to_string();
            write_scores(folder.path(), &name, &[0.5, wrong], None).unwrap_err();
        }
    }

    #[test]
    fn a_check_finds_every_changed_number() {
        let globals = [5.0, 4.0, 4.0, 1.0, 0.5];
        let (folder, run, _) = written(&[0.5, 2.0, 0.0, 0.0, 1.0], Some(&globals));
        let path = folder.path().join("runs/000003.scores");
        let good = std::fs::read(&path).unwrap();
        for at in (64..before_sums(good.len() as u64) as usize).step_by(4) {
            for change in [7.5f32, -1.0, f32::NAN] {
                let mut bytes = good.clone();
                bytes[at..at + 4].copy_from_slice(&change.to_le_bytes());
                std::fs::write(&path, bytes).unwrap();
                let scores = RunScores::open_unverified(folder.path(), &run).unwrap();
                scores.check().unwrap_err();
            }
        }
        std::fs::write(&path, &good[..good.len() - 8]).unwrap();
        RunScores::open_unverified(folder.path(), &run).unwrap_err();
    }
}
