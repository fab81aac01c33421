//! What is known of a query log: how often each query is in it, and which parts of which lists
//! those queries visit.
//!
//! A log is one file, of one day, which its name tells. What is known of it is a file in the folder
//! of the history, which can be removed at any time: it is found out again.

use crate::index::format::FileKind;
use crate::index::generations::manifest::{Manifest, find_file};
use crate::query::reading::lines::Lines;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// How many queries visited this many units of a list: the [key](run_key) of the run, where the
/// list begins, its df, its bytes, its blocks, the units.
pub(crate) type Visit = (u64, u64, u32, u64, u32, u32);

/// What the queries of a log want of lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Visits {
    pub k: u32,
    pub runs: Vec<u64>,
    pub queries: u64,
    /// Queries that find nothing, and do not count.
    pub without_answer: u64,
    pub visits: Vec<(Visit, u32)>,
}

impl Visits {
    /// Whether these are about an index with runs of these keys and documents, except for at most
    /// one document of [`NEW_SHARE`].
    pub(crate) fn fit(&self, k: u32, runs: &[(u64, u32)]) -> bool {
        let sum = |runs: &mut dyn Iterator<Item = &(u64, u32)>| -> u64 {
            runs.map(|(_, documents)| u64::from(*documents)).sum()
        };
        let new = sum(&mut runs.iter().filter(|(key, _)| !self.runs.contains(key)));
        self.k == k && new * NEW_SHARE <= sum(&mut runs.iter())
    }
}

/// A log's queries are searched for again where more than one document of this many lies in runs
/// that its day did not know.
pub(crate) const NEW_SHARE: u64 = 10;

/// Identifies a run whatever its place and number: the checksums of its lexicon and its postings,
/// each 0 if the manifest lacks it, which its reader does not allow.
pub(crate) fn run_key(manifest: &Manifest, folder: &Path, run: usize) -> u64 {
    let crc = |kind| {
        let name = manifest.runs[run].file(kind);
        find_file(&manifest.files, folder, &name).map_or(0, |file| file.crc32)
    };
    u64::from(crc(FileKind::Lexicon)) << 32 | u64::from(crc(FileKind::Postings))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountedLog {
    pub day: String,
    /// Of its bytes, as `rebuild::files` has it.
    pub hash: String,
    pub queries: Vec<(String, u32)>,
    /// Lines that are no queries.
    pub refused: u64,
    pub visits: Visits,
}

impl CountedLog {
    /// Counts a log, which may be compressed.
    pub(crate) fn count(path: &Path, day: Date, hash: String) -> io::Result<Self> {
        let mut times = HashMap::<String, u32>::new();
        let mut refused = 0;
        for query in Lines::open(path)? {
            match query? {
                Ok(query) if query.has_words() => *times.entry(query.text).or_default() += 1,
                _ => refused += 1,
            }
        }
        let mut queries: Vec<_> = times.into_iter().collect();
        queries.sort_unstable();
        Ok(Self { day: day.to_string(), hash, queries, refused, visits: Visits::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rebuild::files::{read_json, replace_json};
    use crate::rebuild::values::day_of;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_log_is_counted_whatever_its_compression() {
        let folder = tempfile::tempdir().unwrap();
        let text = "1\tmill race\nwater\n2\tmill race\n{\"nonsense\": 1}\n";
        let day = day_of("2026-11-02").unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let packed = [
            text.as_bytes().to_vec(),
            gzip.finish().unwrap(),
            zstd::encode_all(text.as_bytes(), 1).unwrap(),
        ];
        let path = folder.path().join("log");
        for bytes in &packed {
            fs::write(&path, bytes).unwrap();
            let log = CountedLog::count(&path, day, "h".into()).unwrap();
            let expected = [("mill race".to_string(), 2), ("water".to_string(), 1)];
            assert_eq!((&log.queries[..], log.refused), (&expected[..], 1));
            let kept = folder.path().join("kept.json");
            replace_json(&kept, &log).unwrap();
            assert_eq!(read_json::<Option<CountedLog>>(&kept), Some(log));
        }
        fs::write(&path, &packed[1][..packed[1].len() - 9]).unwrap();
        CountedLog::count(&path, day, "h".into()).unwrap_err();
        fs::write(&path, b"BZh91AY&SY").unwrap();
        let error = CountedLog::count(&path, day, "h".into()).unwrap_err();
        assert!(error.to_string().contains("cut short"), "{error}");
        assert_eq!(read_json::<Option<CountedLog>>(&path), None);
    }

    #[test]
    fn visits_fit_while_most_of_the_index_is_known() {
        let visits = Visits { k: 10, runs: vec![1, 2], ..Visits::default() };
        assert!(visits.fit(10, &[(1, 60), (2, 30), (3, 10)]));
        assert!(!visits.fit(10, &[(1, 60), (2, 29), (3, 10)]));
        assert!(!visits.fit(11, &[(1, 60)]));
        assert!(visits.fit(10, &[]));
    }
}
