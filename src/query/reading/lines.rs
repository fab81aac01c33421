//! Queries by lines: a text, `qid TAB text`, or a JSON object that may ask for more; or all as [a
//! file of topics](super::topics).
//!
//! ```text
//! some words
//! 17 TAB some words
//! {"qid": "17", "query": "some words", "k": 100, "mode": "and", "algorithm": "galloping"}
//! {"_id": "17", "text": "some words", "metadata": {}}
//! {"id": "17", "contents": "for people", "vector": {"term": 1.5}}
//! ```
//!
//! A line that begins with `{` is an object or refused, so that a broken object is not searched
//! for; so is one that begins with `<` outside of topics. Only the line is refused; the stream goes
//! on.

#![warn(missing_docs)]

#[cfg(test)]
mod tests;

use super::topics::{self, topics};
use super::weighted::text_of;
use crate::input::splits::STDIN;
use crate::query::wanted::{Algorithm, Mode, Wanted};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// A query as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Its number or name.
    pub qid: String,
    /// Its text.
    pub text: String,
    /// The most hits, if the query says it.
    pub k: Option<usize>,
    /// Its mode, if the query says it.
    pub mode: Option<Mode>,
    /// Its algorithm, if the query says it.
    pub algorithm: Option<Algorithm>,
}

/// BEIR and MS MARCO have other names for the same, and more fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    #[serde(alias = "_id", alias = "id", alias = "query_id")]
    qid: Option<Qid>,
    #[serde(alias = "text", alias = "title")]
    query: Option<String>,
    /// Of learned vectors: terms and weights, in place of a text.
    vector: Option<BTreeMap<String, f64>>,
    #[serde(rename = "contents")]
    _contents: Option<IgnoredAny>,
    #[serde(rename = "metadata")]
    _metadata: Option<IgnoredAny>,
    #[serde(rename = "tags")]
    _tags: Option<IgnoredAny>,
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
    /// A query with the default wishes.
    pub fn new(qid: impl Into<String>, text: impl Into<String>) -> Self {
        Self { qid: qid.into(), text: text.into(), ..Self::default() }
    }

    /// A query without a name is named by its `number`. A line of white space is no query.
    pub(crate) fn parse(line: &str, number: u64) -> Result<Option<Self>, String> {
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

    fn parse_object(line: &str, number: u64) -> Result<Self, String> {
        let object: Object = serde_json::from_str(line).map_err(|error| {
            format!(
                "begins with {{ and is no object of \"query\" and, if wanted, \"qid\", \"k\", \
                 \"mode\" and \"algorithm\": {error}"
            )
        })?;
        let qid = match object.qid {
            Some(Qid::Text(qid)) if !qid.trim().is_empty() => qid.trim().to_string(),
            Some(Qid::Number(qid)) => qid.to_string(),
            _ => number.to_string(),
        };
        let unknown = |what: &str, name: &str, names: &[&str]| {
            format!("{what} `{name}`: give {}", names.join(", "))
        };
        let mode = object.mode.map(|name| {
            let known = Mode::ALL.map(Mode::name);
            Mode::named(&name).ok_or_else(|| unknown("mode", &name, &known))
        });
        let algorithm = object.algorithm.map(|name| {
            let known = Algorithm::ALL.map(Algorithm::name);
            Algorithm::named(&name).ok_or_else(|| unknown("algorithm", &name, &known))
        });
        let text = match (object.query, object.vector) {
            (Some(text), None) => text,
            (_, Some(vector)) => text_of(vector.iter().map(|(term, &weight)| (&**term, weight)))
                .ok_or(
                    "\"vector\" has terms without white space and weights from 1e-9 to 1e9, or 0",
                )?,
            (None, None) => return Err("has neither \"query\" nor \"vector\"".into()),
        };
        Ok(Self {
            qid,
            text,
            k: object.k,
            mode: mode.transpose()?,
            algorithm: algorithm.transpose()?,
        })
    }

    /// What it asks for; `usual` has the defaults.
    pub fn wanted(&self, usual: &Wanted) -> Wanted {
        Wanted {
            k: self.k.unwrap_or(usual.k),
            mode: self.mode.unwrap_or(usual.mode),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
        }
    }
}

/// A line with its end has fewer bytes.
pub(crate) const MOST_LINE_BYTES: usize = 1 << 20;

/// A line that is no query.
#[derive(Clone, Debug, thiserror::Error)]
#[error("line {line} of the queries (byte {offset}): {why}")]
pub struct Refused {
    /// From 1.
    pub line: u64,
    /// Its offset in the stream.
    pub offset: u64,
    /// Its number among the queries, from 1, by which it would be named.
    pub number: u64,
    /// What is wrong with it.
    pub why: Arc<str>,
}

/// The queries of a stream and refused lines; a failure to read ends it.
pub struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    lines: u64,
    offset: u64,
    numbers: u64,
    ended: bool,
    /// Whether blanks follow the name of each query.
    blank: bool,
    /// The fields of topics for queries.
    fields: Vec<String>,
    /// Topics that were read and not returned.
    topics: VecDeque<Result<Query, Refused>>,
}

impl Lines<Box<dyn Read + Send>> {
    /// Opens a file of queries, or standard input if the path [names](STDIN) it. Also returns
    /// whether every line of the file is `qid text`, and is read so; a stream that can be read only
    /// once is not checked.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn open(path: &Path) -> io::Result<(Self, bool)> {
        if path == Path::new(STDIN) {
            return Ok((Self::new(Box::new(io::stdin())), false));
        }
        let file = File::open(path)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder, not a file of queries",
            ));
        }
        let blank = kind.is_file() && blank_after_qid(File::open(path)?)?;
        let lines = Self::new(Box::new(file));
        Ok((if blank { lines.with_blank_after_qid() } else { lines }, blank))
    }
}

impl<R: Read> Lines<R> {
    /// Reads queries. A byte order mark at the beginning is dropped; bytes that are not UTF-8
    /// become U+FFFD.
    pub fn new(stream: R) -> Self {
        let stream = BufReader::with_capacity(1 << 16, stream);
        Self {
            stream,
            line: Vec::new(),
            lines: 0,
            offset: 0,
            numbers: 0,
            ended: false,
            blank: false,
            fields: Vec::new(),
            topics: VecDeque::new(),
        }
    }

    /// Takes these fields of topics instead of their titles.
    pub fn with_fields(self, fields: Vec<String>) -> Self {
        Self { fields, ..self }
    }

    /// Reads lines as `qid text`, with blanks between the two.
    pub(crate) fn with_blank_after_qid(self) -> Self {
        Self { blank: true, ..self }
    }

    /// Reads a line, only the beginning of a long one; returns all its bytes.
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
            if let Some(topic) = self.topics.pop_front() {
                return Ok(Some(topic));
            }
            let offset = self.offset;
            let bytes = self.read_line()?;
            if bytes == 0 {
                return Ok(None);
            }
            self.offset += bytes;
            self.lines += 1;
            let line = self.lines;
            let number = self.numbers + 1;
            let mark = if line == 1 { b"\xef\xbb\xbf".as_slice() } else { b"" };
            let text = self.line.strip_prefix(mark).unwrap_or(&self.line);
            let is_markup = text.trim_ascii_start().starts_with(b"<");
            let read = if bytes >= MOST_LINE_BYTES as u64 {
                Err(format!("{bytes} bytes; a line has fewer than {MOST_LINE_BYTES}"))
            } else if is_markup && self.numbers == 0 {
                self.read_topics(offset, line)?;
                continue;
            } else if is_markup {
                Err(topics::NONE.to_string())
            } else if self.blank {
                parse_blank(&String::from_utf8_lossy(text))
            } else {
                Query::parse(&String::from_utf8_lossy(text), number)
            };
            // A line of white space has no number.
            let Some(read) = read.transpose() else { continue };
            self.numbers = number;
            let refused = |why: String| Refused { line, offset, number, why: why.into() };
            return Ok(Some(read.map_err(refused)));
        }
    }

    /// Reads the rest of the stream, from the last line at `offset` on, as topics.
    fn read_topics(&mut self, offset: u64, line: u64) -> io::Result<()> {
        let mut file = std::mem::take(&mut self.line);
        let most = topics::MOST_BYTES as u64;
        (&mut self.stream).take(most).read_to_end(&mut file)?;
        let read = match file.len() as u64 > most {
            true => vec![Err((0, format!("a file of topics has at most {most} bytes")))],
            false => topics(&file, &self.fields),
        };
        let mut lines = line;
        let mut counted = 0;
        for topic in read {
            self.numbers += 1;
            let number = self.numbers;
            self.topics.push_back(match topic {
                Ok(topic) => Ok(Query::new(topic.name.unwrap_or(number.to_string()), topic.text)),
                Err((at, why)) => {
                    lines += memchr::memchr_iter(b'\n', &file[counted..at]).count() as u64;
                    counted = at;
                    let offset = offset + at as u64;
                    let why = why.into();
                    Err(Refused { line: lines, offset, number, why })
                }
            });
        }
        Ok(())
    }
}

fn parse_blank(line: &str) -> Result<Option<Query>, String> {
    match line.trim().split_once(char::is_whitespace) {
        Some((qid, text)) => Ok(Some(Query::new(qid, text.trim_start()))),
        None if line.trim().is_empty() => Ok(None),
        None => Err("a line is `qid text` here, as the lines before it".into()),
    }
}

/// An operator of other engines in a query, which has no meaning here: a phrase in quotes, `+word`,
/// `-word`, or `field:word`.
pub fn operator(text: &str) -> Option<&str> {
    if let Some((_, quoted)) = text.split_once('"')
        && let Some(end) = quoted.find('"')
        && end > 0
    {
        let start = text.len() - quoted.len() - 1;
        return text.get(start..start + end + 2);
    }
    text.split_whitespace().find(|word| {
        let signed = word.strip_prefix(['+', '-']);
        let field = word.split_once(':').filter(|(name, value)| {
            let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            // An address is no field.
            plain && value.starts_with(char::is_alphanumeric)
        });
        signed.is_some_and(|word| word.starts_with(char::is_alphabetic)) || field.is_some()
    })
}

/// Whether all lines of a file, at least two, are `qid text` with blanks between the two: each
/// begins with a unique word that has a digit, and no line has a tab.
pub(crate) fn blank_after_qid(stream: impl Read) -> io::Result<bool> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut line = Vec::new();
    let mut names = HashSet::new();
    let mut lines = 0;
    loop {
        line.clear();
        if (&mut stream).take(MOST_LINE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(lines > 1);
        }
        let text = line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&line).trim_ascii();
        if text.is_empty() {
            continue;
        }
        let name = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let named = name.len() < text.len() && name.iter().any(u8::is_ascii_digit);
        let object = text.starts_with(b"{") || text.starts_with(b"<");
        // In a long file the first names are enough to tell.
        let repeated = names.len() < 1 << 16 && !names.insert(name.to_vec());
        if !named || object || text.contains(&b'\t') || repeated {
            return Ok(false);
        }
        lines += 1;
    }
}

/// Skips the rest of a line in little memory; returns its bytes.
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
