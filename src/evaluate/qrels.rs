//! Relevance judgements.
//!
//! Two forms are read, compressed or not: TREC's `qid iteration document relevance`, separated by
//! white space, and BEIR's TSV with the head `query-id corpus-id score`. A line that begins with
//! `#` and is no judgement is a comment.

#![warn(missing_docs)]

use super::error::{EvaluateError, each_line, head};
use crate::input::streams::unpacked::Unpacked;
use crate::shown::{one_word, one_word_of};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Read};
use std::path::Path;

/// The judgements of a file.
#[derive(Clone, Debug)]
pub struct Qrels {
    name: String,
    /// In the order in which queries first appear.
    queries: Vec<(String, Judged)>,
    places: HashMap<String, usize>,
}

/// The judgements of one query.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    by_document: HashMap<Box<[u8]>, i32>,
    levels: Vec<i32>,
}

impl Judged {
    /// The level of a document, if it was judged.
    pub(crate) fn level(&self, document: &[u8]) -> Option<i32> {
        self.by_document.get(document).copied()
    }

    /// The judged document whose name is the least.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.by_document.keys().map(|name| &**name).min()
    }

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
        let queries = Vec::new();
        let places = HashMap::new();
        let mut qrels = Self { name: name.to_string(), queries, places };
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
            qrels.add(qid, document, relevance, number)
        })?;
        qrels.done()
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
        let queries = Vec::new();
        let places = HashMap::new();
        let mut qrels = Self { name: name.to_string(), queries, places };
        for ((qid, document, relevance), number) in judgements.into_iter().zip(1..) {
            qrels.add(qid, document, relevance, number)?;
        }
        qrels.done()
    }

    fn done(mut self) -> Result<Self, EvaluateError> {
        if self.queries.is_empty() {
            return Err(EvaluateError::Empty { path: self.name });
        }
        for (_, judged) in &mut self.queries {
            judged.levels = judged.by_document.values().copied().collect();
            judged.levels.sort_unstable_by(|a, b| b.cmp(a));
        }
        Ok(self)
    }

    fn add(
        &mut self,
        qid: &str,
        document: &[u8],
        relevance: i32,
        line: u64,
    ) -> Result<(), EvaluateError> {
        let qid = &*one_word_of(qid);
        let place = match self.places.get(qid) {
            Some(&place) => place,
            None => {
                self.places.insert(qid.to_string(), self.queries.len());
                self.queries.push((qid.to_string(), Judged::default()));
                self.queries.len() - 1
            }
        };
        match self.queries[place].1.by_document.entry(one_word(document).into()) {
            Entry::Vacant(entry) => _ = entry.insert(relevance),
            Entry::Occupied(entry) if *entry.get() != relevance => {
                return Err(EvaluateError::Contradiction {
                    path: self.name.clone(),
                    line,
                    query: qid.to_string(),
                    document: String::from_utf8_lossy(document).into_owned(),
                    before: *entry.get(),
                    now: relevance,
                });
            }
            Entry::Occupied(_) => {}
        }
        Ok(())
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of judged queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// The queries by first appearance.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Judged)> {
        self.queries.iter().map(|(qid, judged)| (&**qid, judged))
    }

    pub(crate) fn get(&self, qid: &str) -> Option<&Judged> {
        self.places.get(&*one_word_of(qid)).map(|&place| &self.queries[place].1)
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
            let all: Vec<(&str, &[i32])> = qrels.iter().map(|(q, j)| (q, j.levels())).collect();
            assert_eq!(all, [("q1", &[2, 1, -1][..]), ("q2", &[3])]);
            assert_eq!(qrels.get("q1").unwrap().level(b"b"), Some(-1));
            assert_eq!(qrels.get("q1").unwrap().level(b"x"), None);
            assert!(qrels.get("q3").is_none());
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
