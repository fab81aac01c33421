//! How are queries read? A line each: a text, `qid TAB text`, or a JSON object that may ask for more.
//!
//! ```text
//! some words
//! 17 TAB some words
//! {"qid": "17", "query": "some words", "k": 100, "mode": "and", "algorithm": "galloping"}
//! ```
//!
//! A line that begins with `{` is such an object or is refused, so that a mistake in an object is not
//! searched for. What is refused is said of its line, and the stream goes on behind it.

use super::wanted::{Algorithm, Mode, Wanted};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// A query as it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Its number or name.
    pub qid: String,
    /// Its text.
    pub text: String,
    /// The most hits, if the query says it.
    pub k: Option<usize>,
    /// Which documents, if the query says it.
    pub mode: Option<Mode>,
    /// How they are found, if the query says it.
    pub algorithm: Option<Algorithm>,
}

/// A query as an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    qid: Option<Qid>,
    query: String,
    k: Option<usize>,
    mode: Option<String>,
    algorithm: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Qid {
    Text(String),
    Number(i64),
}

impl Query {
    /// A query that asks for what all others do.
    pub fn new(qid: impl Into<String>, text: impl Into<String>) -> Self {
        Self { qid: qid.into(), text: text.into(), ..Self::default() }
    }

    /// Reads a line; a query without a name is named by its `number`. A line of white space is no
    /// query.
    ///
    /// # Errors
    /// If it begins as an object and is none.
    pub fn parse(line: &str, number: u64) -> Result<Option<Self>, WrongObject> {
        let line = line.trim_end_matches(['\r', '\n']);
        if line.trim().is_empty() {
            return Ok(None);
        }
        if line.starts_with('{') {
            return Self::parse_object(line, number).map(Some);
        }
        Ok(Some(match line.split_once('\t') {
            Some((qid, text)) if !qid.trim().is_empty() => Self::new(qid.trim(), text),
            Some((_, text)) => Self::new(number.to_string(), text),
            None => Self::new(number.to_string(), line),
        }))
    }

    fn parse_object(line: &str, number: u64) -> Result<Self, WrongObject> {
        let object: Object = serde_json::from_str(line)?;
        let qid = match object.qid {
            Some(Qid::Text(qid)) if !qid.trim().is_empty() => qid.trim().to_string(),
            Some(Qid::Number(qid)) => qid.to_string(),
            _ => number.to_string(),
        };
        let mode = object.mode.map(|name| Mode::named(&name).ok_or(WrongObject::Mode { name }));
        let algorithm = object
            .algorithm
            .map(|name| Algorithm::named(&name).ok_or(WrongObject::Algorithm { name }));
        let (mode, algorithm) = (mode.transpose()?, algorithm.transpose()?);
        Ok(Self { qid, text: object.query, k: object.k, mode, algorithm })
    }

    /// What it asks for, where `usual` is what queries ask for that do not say it.
    pub fn wanted(&self, usual: &Wanted) -> Wanted {
        Wanted {
            k: self.k.unwrap_or(usual.k),
            mode: self.mode.unwrap_or(usual.mode),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
        }
    }
}

/// Why an object is no query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrongObject {
    /// It is no JSON, or no object of these keys.
    #[error(
        "begins with {{ and is no object of \"query\" and, if wanted, \"qid\", \"k\", \"mode\" and \
         \"algorithm\": {0}"
    )]
    Json(#[from] serde_json::Error),
    /// There is no such mode.
    #[error("mode `{name}`: give {}", Mode::ALL.map(Mode::name).join(", "))]
    Mode {
        /// What it says.
        name: String,
    },
    /// There is no such algorithm.
    #[error("algorithm `{name}`: give {}", Algorithm::ALL.map(Algorithm::name).join(", "))]
    Algorithm {
        /// What it says.
        name: String,
    },
}

/// Bytes that a line has to be below, its end included.
pub const MOST_LINE_BYTES: usize = 1 << 20;

/// A line that is no query; those before and behind it are not touched.
#[derive(Clone, Debug, thiserror::Error)]
#[error("line {line} of the queries (byte {offset}): {why}")]
pub struct Refused {
    /// The line, from 1.
    pub line: u64,
    /// Where it begins, in bytes from the start of the stream.
    pub offset: u64,
    /// Its number among the queries, from 1: what it would be named by.
    pub number: u64,
    /// What is wrong with it.
    pub why: Arc<Why>,
}

/// Why a line is no query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// It has too many bytes.
    #[error("{bytes} bytes; a line has fewer than {MOST_LINE_BYTES}")]
    Long {
        /// Its bytes.
        bytes: u64,
    },
    /// It begins as an object.
    #[error(transparent)]
    Object(#[from] WrongObject),
}

/// The queries of a stream, and what is refused among them; a failure to read ends it.
pub struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    lines: u64,
    offset: u64,
    numbers: u64,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Reads queries. A byte order mark at the beginning is dropped; bytes that are no UTF-8 become
    /// U+FFFD.
    pub fn new(stream: R) -> Self {
        let stream = BufReader::with_capacity(1 << 16, stream);
        Self { stream, line: Vec::new(), lines: 0, offset: 0, numbers: 0, ended: false }
    }

    /// Reads a line, of a long one no more than the beginning; returns all its bytes.
    fn read_line(&mut self) -> io::Result<u64> {
        self.line.clear();
        let most = MOST_LINE_BYTES as u64;
        let mut bytes = (&mut self.stream).take(most).read_until(b'\n', &mut self.line)? as u64;
        if bytes == most && self.line.last() != Some(&b'\n') {
            bytes += skip_line(&mut self.stream)?;
        }
        Ok(bytes)
    }

    fn read(&mut self) -> io::Result<Option<Result<Query, Refused>>> {
        loop {
            let (offset, bytes) = (self.offset, self.read_line()?);
            if bytes == 0 {
                return Ok(None);
            }
            self.offset += bytes;
            self.lines += 1;
            let (line, number) = (self.lines, self.numbers + 1);
            let refused =
                |why: Why| Ok(Some(Err(Refused { line, offset, number, why: Arc::new(why) })));
            if bytes >= MOST_LINE_BYTES as u64 {
                self.numbers = number;
                return refused(Why::Long { bytes });
            }
            let mark = if line == 1 { b"\xef\xbb\xbf".as_slice() } else { b"" };
            let text = self.line.strip_prefix(mark).unwrap_or(&self.line);
            match Query::parse(&String::from_utf8_lossy(text), number) {
                Ok(None) => {}
                Ok(Some(query)) => {
                    self.numbers = number;
                    return Ok(Some(Ok(query)));
                }
                Err(wrong) => {
                    self.numbers = number;
                    return refused(wrong.into());
                }
            }
        }
    }
}

/// Passes over the rest of a line in little memory; returns its bytes.
fn skip_line(stream: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let room = match stream.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            room => room?,
        };
        let end = room.iter().position(|&byte| byte == b'\n');
        let bytes = end.map_or(room.len(), |end| end + 1);
        let ends = end.is_some() || room.is_empty();
        stream.consume(bytes);
        skipped += bytes as u64;
        if ends {
            return Ok(skipped);
        }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Result<Query, Refused>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read().transpose();
        self.ended = !matches!(read, Some(Ok(_)));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Query> {
        Query::parse(line, 7).unwrap()
    }

    #[test]
    fn lines_are_qid_and_text_or_text() {
        let parse = |line| parse(line).map(|q| (q.qid, q.text));
        let query = |qid: &str, text: &str| Some((qid.to_string(), text.to_string()));
        assert_eq!(parse("12\tsome words\r\n"), query("12", "some words"));
        assert_eq!(parse("some words\n"), query("7", "some words"));
        assert_eq!(parse("\twords"), query("7", "words"));
        assert_eq!(parse("q\ta\tb"), query("q", "a\tb"));
        assert_eq!(parse("q\t"), query("q", ""));
        assert_eq!(parse(" \r\n"), None);
        assert_eq!(parse(" {\"query\""), query("7", " {\"query\""));
    }

    #[test]
    fn objects_say_what_they_want() {
        let usual = Wanted { k: 3, mode: Mode::And, algorithm: Algorithm::Wand };
        let query = parse("{\"query\": \"a b\"}\r\n").unwrap();
        assert_eq!(query, Query::new("7", "a b"));
        assert_eq!(query.wanted(&usual), usual);
        let query = parse(
            "{\"qid\":\" x \",\"query\":\"\\u00e9\",\"k\":0,\"mode\":\"and-or\",\"algorithm\":\"bmw\"}",
        )
        .unwrap();
        assert_eq!((&*query.qid, &*query.text), ("x", "\u{e9}"));
        let wanted = Wanted { k: 0, mode: Mode::AndOr, algorithm: Algorithm::Bmw };
        assert_eq!(query.wanted(&usual), wanted);
        assert_eq!(parse("{\"qid\": -4, \"query\": \"\"}").unwrap(), Query::new("-4", ""));
        assert_eq!(parse("{\"qid\": \"\", \"query\": \"\"}").unwrap(), Query::new("7", ""));
        for wrong in [
            "{",
            "{}",
            "{ some words",
            "{\"query\": 3}",
            "{\"query\": \"a\", \"k\": -1}",
            "{\"query\": \"a\", \"k\": 1.5}",
            "{\"query\": \"a\", \"mode\": \"xor\"}",
            "{\"query\": \"a\", \"algorithm\": \"\"}",
            "{\"query\": \"a\", \"depth\": 4}",
            "{\"query\": \"a\"} b",
            "{\"query\": \"a\"}\t{\"query\": \"a\"}",
        ] {
            Query::parse(wrong, 7).expect_err(wrong);
        }
    }

    #[test]
    fn what_is_refused_ends_at_its_line() {
        let long = "x".repeat(MOST_LINE_BYTES - 1);
        let mut text = format!("\u{feff}first\n\n{long}\n{long}{long}\n{{no\n");
        text += &long[1..];
        text += "\n\u{feff}last";
        let read: Vec<_> = Lines::new(text.as_bytes()).map(Result::unwrap).collect();
        let queries = read.iter().flatten().map(|query| (&*query.qid, query.text.len()));
        assert_eq!(queries.collect::<Vec<_>>(), [("1", 5), ("5", long.len() - 1), ("6", 7)]);
        let refused: Vec<_> = read.iter().filter_map(|read| read.as_ref().err()).collect();
        let bytes = MOST_LINE_BYTES as u64;
        let place = |refused: &Refused| (refused.line, refused.number, refused.offset);
        assert_eq!(place(refused[0]), (3, 2, 10));
        assert_eq!(place(refused[1]), (4, 3, 10 + bytes));
        assert_eq!(place(refused[2]), (5, 4, 10 + 3 * bytes - 1));
        assert!(matches!(*refused[0].why, Why::Long { bytes: found } if found == bytes));
        assert!(matches!(*refused[1].why, Why::Long { bytes: found } if found == 2 * bytes - 1));
        assert!(matches!(*refused[2].why, Why::Object(_)));
        assert!(refused[0].to_string().starts_with("line 3 of the queries (byte 10): 1048576"));
    }

    #[test]
    fn a_stream_that_fails_ends_behind_what_was_read() {
        struct Fails(usize);
        impl Read for Fails {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 1 {
                    return Err(io::Error::other("gone"));
                }
                buffer[..6].copy_from_slice(b"a b\nc\n");
                Ok(6)
            }
        }
        let mut lines = Lines::new(Fails(0));
        assert_eq!(lines.next().unwrap().unwrap().unwrap().text, "a b");
        assert_eq!(lines.next().unwrap().unwrap().unwrap().text, "c");
        assert_eq!(lines.next().unwrap().unwrap_err().to_string(), "gone");
        assert!(lines.next().is_none());
    }
}
