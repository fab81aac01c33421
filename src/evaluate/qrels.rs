//! Relevance judgements.
//!
//! Two forms are read, compressed or not: TREC's `qid iteration document relevance`, separated by
//! white space, and BEIR's TSV with the head `query-id corpus-id score`. A line that begins with
//! `#` and is no judgement is a comment.

#![warn(missing_docs)]

use super::by_query::ByQuery;
use super::error::{EvaluateError, each_line, head};
use crate::input::streams::unpacked::Unpacked;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// The judgements of a file.
#[derive(Clone, Debug)]
pub struct Qrels {
    name: String,
    pub(super) all: Arc<ByQuery>,
}

/// The judgements of one query.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    by_document: HashMap<&'a [u8], i32>,
    levels: Vec<i32>,
}

impl Judged<'_> {
    /// The level of a document, if it was judged.
    pub(crate) fn level(&self, document: &[u8]) -> Option<i32> {
        self.by_document.get(document).copied()
    }

    /// The judged document whose name is the least.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.by_document.keys().copied().min()
    }

    /// From the greatest.
    pub(crate) fn levels(&self) -> &[i32] {
        &self.levels
    }
}

const TREC: &str = "`qid iteration document relevance` with a whole number as relevance";
const BEIR: &str = "`query-id TAB corpus-id TAB score` with a whole number as score";

impl Qrels {
    /// # Errors
    /// If the file cannot be read, has no lines, or has a wrong one.
    pub fn open(path: &Path) -> Result<Self, EvaluateError> {
        Self::read(&path.display().to_string(), Unpacked::text(path, None))
    }

    /// Errors call the stream `name`.
    pub(crate) fn read(name: &str, stream: io::Result<impl Read>) -> Result<Self, EvaluateError> {
        let mut all = ByQuery::default();
        let mut form = None;
        each_line(name, stream, |line, number| {
            if line.starts_with(b"#") && fields(line, form.unwrap_or(false)).is_none() {
                return Ok(());
            }
            let beir = *form.get_or_insert_with(|| is_beir_head(line));
            if beir && is_beir_head(line) {
                return Ok(());
            }
            let wrong = || EvaluateError::Line {
                path: name.to_string(),
                line: number,
                expected: if beir { BEIR } else { TREC },
                found: head(line),
            };
            let (qid, document, relevance) = fields(line, beir).ok_or_else(wrong)?;
            all.add(qid, document, relevance as u32, number);
            Ok(())
        })?;
        Self::done(name, all)
    }

    /// From query, document and relevance of each judgement. Errors call them `name` and give the
    /// number of a judgement as that of a line.
    ///
    /// # Errors
    /// If there are none, or two contradict each other.
    pub fn of<'a>(
        name: &str,
        judgements: impl IntoIterator<Item = (&'a str, &'a [u8], i32)>,
    ) -> Result<Self, EvaluateError> {
        let mut all = ByQuery::default();
        for ((qid, document, relevance), number) in judgements.into_iter().zip(1..) {
            all.add(qid, document, relevance as u32, number);
        }
        Self::done(name, all)
    }

    fn done(name: &str, all: ByQuery) -> Result<Self, EvaluateError> {
        let path = name.to_string();
        let qrels = Self { name: path.clone(), all: Arc::new(all) };
        if qrels.len() == 0 {
            return Err(EvaluateError::Empty { path });
        }
        for query in qrels.all.qids() {
            let mut levels = HashMap::new();
            for entry in qrels.all.of(query) {
                let before = *levels.entry(entry.name).or_insert(entry.value);
                if before != entry.value {
                    return Err(EvaluateError::Contradiction {
                        path,
                        line: entry.place,
                        query: query.to_string(),
                        document: String::from_utf8_lossy(entry.name).into_owned(),
                        before: before as i32,
                        now: entry.value as i32,
                    });
                }
            }
        }
        Ok(qrels)
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of judged queries.
    pub fn len(&self) -> usize {
        self.all.qids().len()
    }

    /// The names of the queries by first appearance.
    pub fn qids(&self) -> impl Iterator<Item = &str> {
        self.all.qids()
    }

    /// The queries by first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Judged<'_>)> {
        self.qids().map(|qid| (qid, self.judged(qid)))
    }

    /// The judgements of a query, which may have none.
    pub(crate) fn judged(&self, qid: &str) -> Judged<'_> {
        let by_document: HashMap<_, _> =
            self.all.of(qid).map(|entry| (entry.name, entry.value as i32)).collect();
        let mut levels: Vec<i32> = by_document.values().copied().collect();
        levels.sort_unstable_by(|a, b| b.cmp(a));
        Judged { by_document, levels }
    }
}

fn is_beir_head(line: &[u8]) -> bool {
    let mut fields = line.split(|&b| b == b'\t').map(<[u8]>::trim_ascii);
    fields.next() == Some(b"query-id") && fields.next() == Some(b"corpus-id")
}

fn fields(line: &[u8], beir: bool) -> Option<(&str, &[u8], i32)> {
    let mut fields = [&b""[..]; 4];
    let mut count = 0;
    for field in line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()) {
        *fields.get_mut(count)? = field;
        count += 1;
    }
    let (qid, document, relevance) = match (beir, count) {
        (false, 4) => (fields[0], fields[2], fields[3]),
        (true, 3) => (fields[0], fields[1], fields[2]),
        _ => return None,
    };
    let relevance = std::str::from_utf8(relevance).ok()?.parse().ok()?;
    Some((std::str::from_utf8(qid).ok()?, document, relevance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Qrels, String> {
        Qrels::read("file", Ok(text.as_bytes())).map_err(|e| e.to_string())
    }

    #[test]
    fn both_forms_say_the_same() {
        let trec = read("q1 0 a 1\nq1\t0\tb\t-1\n\nq2 0  a 3\r\nq1 0 c 2\n").unwrap();
        let beir =
            read("query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\t-1\nq2\ta\t3\nq1\tc\t2\n").unwrap();
        for qrels in [trec, beir] {
            let all: Vec<(&str, Vec<i32>)> = qrels.iter().map(|(q, j)| (q, j.levels)).collect();
            assert_eq!(all, [("q1", vec![2, 1, -1]), ("q2", vec![3])]);
            assert_eq!(qrels.judged("q1").level(b"b"), Some(-1));
            assert_eq!(qrels.judged("q1").level(b"x"), None);
            assert!(!qrels.all.has("q3"));
        }
    }

    #[test]
    fn wrong_lines_are_named() {
        let bad = |text: &str, what: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        bad("q 0 a 1\nq 0 b\n", "file: line 2: expected `qid iteration document relevance`");
        bad("q 0 a 1.5\n", "line 1");
        bad("# made by hand\n#\nq 0 a\n", "line 3");
        bad("q 0 a 1 x\n", "line 1");
        bad("query-id\tcorpus-id\tscore\nq\ta\n", "line 2: expected `query-id TAB");
        bad("q 0 a 1\nq 0 a 2\n", "line 2: query q has document a judged before as 1, now as 2");
        bad("\n \n", "no line");
    }
}
