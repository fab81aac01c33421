//! Reads PageRanks from a file of lines `name TAB rank`, as `millrace rebuild` leaves in
//! `INDEX/rebuild/ranks.tsv` and `millrace bench generate --pagerank` writes.

use crate::index::error::IndexError;
use crate::index::files::plain;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use twox_hash::XxHash3_128;

/// A file of PageRanks, and how the bytes of such a file become text: it may be compressed.
#[derive(Clone, Debug)]
pub struct RanksFile {
    pub path: PathBuf,
    pub text: fn(File) -> io::Result<Box<dyn Read + Send>>,
}

/// Memory for each document while a file is read.
const BYTES_A_DOCUMENT: u64 = 48;

/// How the documents of a file of ranks and of an index match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankCounts {
    pub found: u32,
    /// Documents that the file does not name; their PageRank is 0.
    pub missing: u32,
    /// Lines that name no document.
    pub strangers: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanksFound {
    None,
    /// Equal for all documents, since none were given and the order asks for some.
    Equal,
    Kept,
    /// Those of some runs are lost, since others had none.
    Lost,
    Read(RankCounts),
}

impl RanksFound {
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::None | Self::Kept => None,
            Self::Equal => Some("no PageRanks were given: all documents have the same".into()),
            Self::Lost => Some(
                "some runs have no PageRanks, so that the merged index has none: merge again and give those of all documents".into(),
            ),
            Self::Read(RankCounts { missing: 0, strangers: 0, .. }) => None,
            Self::Read(RankCounts { found, missing, strangers }) => Some(format!(
                "{found} documents have PageRanks; {missing} are not in the file and have 0; {strangers} of its lines name no document"
            )),
        }
    }
}

/// Reads the ranks of this many `documents` with these names from a file. The first line of a name
/// counts, for all documents of it; white space in names counts as a blank. Blank lines, what
/// follows a second tab, and a first line that begins with `#` and has no tab are passed over.
///
/// Memory: 48 bytes a document, of `memory_bytes`.
///
/// # Errors
/// `Damaged` where a line is none; `Lacks` if no document is named, or the memory is too small.
pub(crate) fn read_ranks<N: AsRef<[u8]>>(
    from: &RanksFile,
    documents: usize,
    names: impl Iterator<Item = Result<N, IndexError>>,
    memory_bytes: u64,
) -> Result<(Vec<f32>, RankCounts), IndexError> {
    let path = &*from.path;
    let least = BYTES_A_DOCUMENT * documents as u64;
    if least > memory_bytes {
        let least = least.div_ceil(1 << 20);
        let given = memory_bytes >> 20;
        let reason = format!(
            "the ranks of {documents} documents take {least} MiB of memory, and {given} MiB are given"
        );
        return Err(IndexError::lacks(path, reason));
    }
    let mut first: HashMap<u128, u32> = HashMap::with_capacity(documents);
    // Of each document the first one of its name.
    let mut same = Vec::with_capacity(documents);
    let mut ranks = vec![f32::NAN; documents];
    let mut plain_name = Vec::new();
    for (docid, name) in (0..).zip(names) {
        plain_name.clear();
        let blank = |&byte: &u8| if matches!(byte, b'\t' | b'\n' | b'\r') { b' ' } else { byte };
        plain_name.extend(name?.as_ref().iter().map(blank));
        same.push(*first.entry(XxHash3_128::oneshot(&plain_name)).or_insert(docid));
    }
    let mut counts = RankCounts::default();
    let text = (from.text)(plain::open(path)?).map_err(IndexError::storage("read", path))?;
    let mut file = BufReader::with_capacity(1 << 18, text);
    let mut line = Vec::new();
    let mut offset = 0;
    loop {
        line.clear();
        let bytes = file.read_until(b'\n', &mut line).map_err(IndexError::storage("read", path))?;
        if bytes == 0 {
            break;
        }
        match parse(&line, offset == 0) {
            Ok(None) => {}
            Ok(Some((name, rank))) => match first.get(&XxHash3_128::oneshot(name)) {
                None => counts.strangers += 1,
                Some(&docid) if ranks[docid as usize].is_nan() => ranks[docid as usize] = rank,
                Some(_) => {}
            },
            Err(found) => {
                let expected = "a name, a tab and a number from 0 on";
                return Err(IndexError::damaged(path, offset, expected, found));
            }
        }
        offset += bytes as u64;
    }
    for (docid, &first) in same.iter().enumerate() {
        // The first stands before the others, so its rank is known by now.
        ranks[docid] = ranks[first as usize];
    }
    for rank in &mut ranks {
        let count = if rank.is_nan() { &mut counts.missing } else { &mut counts.found };
        *count += 1;
        *rank = rank.max(0.0);
    }
    if counts.found == 0 && documents > 0 {
        let reason =
            format!("none of its {} lines names a document of the index", counts.strangers);
        return Err(IndexError::lacks(path, reason));
    }
    Ok((ranks, counts))
}

/// Name and rank of a line, if it has any, or what stands in their place.
fn parse(line: &[u8], is_first: bool) -> Result<Option<(&[u8], f32)>, String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut fields = line.split(|&byte| byte == b'\t');
    let name = fields.next().unwrap_or_default();
    let value = fields.next();
    let Some(value) = value else {
        let passed = line.is_empty() || is_first && line.starts_with(b"#");
        return if passed { Ok(None) } else { Err(shown(line)) };
    };
    let rank = std::str::from_utf8(value).ok().and_then(|value| value.trim().parse::<f32>().ok());
    match rank.filter(|rank| rank.is_finite() && *rank >= 0.0) {
        // Minus zero is zero.
        Some(rank) => Ok(Some((name, rank + 0.0))),
        None => Err(shown(line)),
    }
}

fn shown(line: &[u8]) -> String {
    line[..line.len().min(60)].escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, names: &[&str]) -> Result<(Vec<f32>, RankCounts), IndexError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ranks");
        std::fs::write(&path, text).unwrap();
        let file = RanksFile { path, text: |file| Ok(Box::new(file)) };
        read_ranks(&file, names.len(), names.iter().map(|name| Ok(name.as_bytes())), 1 << 20)
    }

    #[test]
    fn names_are_given_their_ranks() {
        let text = "# generation 3\na\t0.5\r\n\nb c\t2e-9\t17\nnobody\t1\na\t9\nlast\t-0";
        let names = ["b\tc", "a", "missing", "a", "last"];
        let (ranks, counts) = read(text, &names).unwrap();
        assert_eq!(ranks, [2e-9, 0.5, 0.0, 0.5, 0.0]);
        assert!(ranks.iter().all(|rank| rank.is_sign_positive()));
        assert_eq!(counts, RankCounts { found: 4, missing: 1, strangers: 1 });
        assert!(read("", &[]).unwrap().0.is_empty());
    }

    #[test]
    fn bad_lines_are_named_with_their_place() {
        for (text, at) in [
            ("a\t1\nb\n", 4),
            ("a\t1\n# no head\n", 4),
            ("a\tx\n", 0),
            ("a\t-1\n", 0),
            ("a\tNaN\n", 0),
            ("# head\na\tinf\n", 7),
            ("a\t\n", 0),
        ] {
            let error = read(text, &["a"]).unwrap_err();
            let IndexError::Damaged { offset, .. } = error else { panic!("{error}") };
            assert_eq!(offset, at, "{text:?}");
        }
        let error = read("x\t1\ny\t2\n", &["a"]).unwrap_err().to_string();
        assert!(error.contains("none of its 2 lines names a document"), "{error}");
    }
}
