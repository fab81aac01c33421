//! Queries by lines: a text, `qid TAB text`, or a JSON object that may ask for more; or all in
//! another [form](super::forms), as [CSV](super::csv), as [a file of topics](super::topics), or as
//! a [file of JSON](super::objects).
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
//! for; so is one that begins with a tag outside of topics. Only the line is refused; the stream
//! goes on.

#![warn(missing_docs)]

#[cfg(test)]
mod tests;

pub use super::asked::Query;
use super::asked::{MOST_LINE_BYTES, named};
use super::csv::CsvColumns;
use super::forms::{KEPT_NAMES, QueryForm, QueryReading, guess, unclear};
use super::objects;
use super::operators::operator;
pub(crate) use super::refusals::Refused;
use super::remarks::{RecentNames, Remark, Remarks, not_utf8};
use super::topics::{self, is_markup, topics};
use super::weighted::{check, marked, unmarked};
use crate::input::document::BYTE_ORDER_MARK;
use crate::input::goes_on_over_lines;
use crate::input::splits::STDIN;
use crate::input::streams::unpacked::Unpacked;
use crate::query::wanted::Syntax;
use serde::de::IgnoredAny;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// The queries of a stream and refused lines; a failure to read ends it.
pub struct Lines<R> {
    /// What was read to look at it, before the rest of the stream.
    ahead: Cursor<Vec<u8>>,
    stream: BufReader<R>,
    /// What errors of the stream begin with.
    what: String,
    line: Vec<u8>,
    /// The last byte of a line.
    end: u8,
    lines: u64,
    offset: u64,
    numbers: u64,
    ended: bool,
    /// Whether the stream is a file, of which more may be looked at without a wait.
    is_file: bool,
    /// The form that was guessed, until it was said.
    guessed: Option<QueryForm>,
    reading: QueryReading,
    /// What was read and not returned.
    ready: VecDeque<Result<Query, Refused>>,
    /// Whether an object with all queries was read, behind which nothing stands.
    whole: bool,
    /// Those of CSV, once the first line was read.
    columns: Option<CsvColumns>,
    names: RecentNames,
    remarks: Remarks,
    /// Whether texts are words.
    are_words: bool,
}

impl Lines<Box<dyn Read + Send>> {
    /// Opens a file of queries, compressed or not, or standard input if the path [names](STDIN) it.
    /// Whether lines are `qid text` or `number:text` is decided by all lines of a file; a stream
    /// that can be read only once is not looked at before.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_as(path, QueryReading::default())
    }

    /// The same, read as is asked for.
    #[doc(hidden)]
    pub fn open_as(path: &Path, mut reading: QueryReading) -> io::Result<Self> {
        let mut is_file = false;
        let mut guessed = None;
        if path != Path::new(STDIN) {
            let kind = path.metadata()?;
            if kind.is_dir() {
                return Err(io::Error::new(
                    io::ErrorKind::IsADirectory,
                    "it is a folder, not a file of queries",
                ));
            }
            is_file = kind.is_file();
            if is_file && reading.form.is_none() {
                guessed = guess(Unpacked::text(path, reading.encoding)?)?;
                reading.form = guessed;
            }
            if guessed == Some(QueryForm::Csv) {
                return Err(unclear(reading.dashes));
            }
        }
        let stream: Box<dyn Read + Send> = Box::new(Unpacked::text(path, reading.encoding)?);
        let what = format!("reading the queries {}: ", path.display());
        Ok(Self { what, is_file, guessed, reading, ..Self::new(stream) })
    }

    /// One query, named 1: words, or terms with weights if that is their form.
    #[doc(hidden)]
    pub fn of_text(text: &str, reading: QueryReading) -> Self {
        let ready = VecDeque::from([Ok(Query { at: (1, 0), ..Query::new("1", text) })]);
        let stream: Box<dyn Read + Send> = Box::new(io::empty());
        Self { ready, numbers: 1, reading, ..Self::new(stream) }
    }

    /// Queries that a program has, which are remarked on as those of a file.
    #[doc(hidden)]
    pub fn of_queries(queries: impl IntoIterator<Item = Query>, reading: QueryReading) -> Self {
        let ready: VecDeque<_> = queries.into_iter().map(Ok).collect();
        let numbers = ready.len() as u64;
        Self { ready, numbers, reading, ..Self::new(Box::new(io::empty()) as Box<dyn Read + Send>) }
    }
}

impl<R: Read> Lines<R> {
    /// Reads queries. A byte order mark at the beginning is dropped; bytes that are not UTF-8
    /// become U+FFFD.
    pub fn new(stream: R) -> Self {
        Self {
            ahead: Cursor::default(),
            stream: BufReader::with_capacity(1 << 16, stream),
            line: Vec::new(),
            end: b'\n',
            lines: 0,
            offset: 0,
            numbers: 0,
            ended: false,
            what: String::new(),
            is_file: false,
            guessed: None,
            reading: QueryReading::default(),
            ready: VecDeque::new(),
            whole: false,
            columns: None,
            names: RecentNames::default(),
            remarks: Remarks::default(),
            are_words: true,
        }
    }

    /// Tells remarks on what is read, each kind once; on operators only if texts are words.
    #[doc(hidden)]
    #[must_use]
    pub fn telling(self, are_words: bool, tell: impl FnMut(String) + Send + 'static) -> Self {
        Self { remarks: Remarks::to(tell), are_words, ..self }
    }

    /// What is left of the stream.
    fn rest(&mut self) -> impl BufRead {
        (&mut self.ahead).chain(&mut self.stream)
    }

    /// Lets these bytes be read again.
    fn put_back(&mut self, mut bytes: Vec<u8>) {
        let at = self.ahead.position() as usize;
        bytes.extend_from_slice(&self.ahead.get_ref()[at..]);
        self.ahead = Cursor::new(bytes);
    }

    /// Reads a line, only the beginning of a long one; returns its bytes.
    fn read_line(&mut self) -> io::Result<u64> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let end = self.end;
        let bytes = self.rest().take(MOST_LINE_BYTES as u64).read_until(end, &mut line)? as u64;
        // A file without line feeds has carriage returns in their place.
        let whole = line.last() == Some(&end);
        if self.lines == 0 && end == b'\n' && !whole && memchr::memchr(b'\r', &line).is_some() {
            self.end = b'\r';
            self.put_back(line);
            return self.read_line();
        }
        self.line = line;
        Ok(bytes)
    }

    fn read(&mut self) -> io::Result<Option<Result<Query, Refused>>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            let offset = self.offset;
            let mut bytes = self.read_line()?;
            if bytes == 0 {
                return Ok(None);
            }
            self.lines += 1;
            let line = self.lines;
            let number = self.numbers + 1;
            let mark = line == 1 && self.line.starts_with(BYTE_ORDER_MARK);
            let mark = if mark { BYTE_ORDER_MARK.len() } else { 0 };
            self.line.drain(..mark);
            if self.numbers == 0
                && let Some(form) = self.whole_form()?
            {
                self.offset += bytes;
                self.read_whole(form, offset + mark as u64, line)?;
                continue;
            }
            if self.numbers == 0 && self.names_columns() {
                self.offset += bytes;
                continue;
            }
            bytes += self.whole_record()?;
            let is_long = bytes >= MOST_LINE_BYTES as u64;
            if is_long && self.line.last() != Some(&self.end) {
                let end = self.end;
                bytes += self.rest().skip_until(end)? as u64;
            }
            self.offset += bytes;
            let text = String::from_utf8_lossy(&self.line);
            let text = text.trim_end_matches(['\r', '\n']);
            // A line of white space has no number.
            if text.trim().is_empty() {
                continue;
            }
            let is_markup = is_markup(text.trim_start().as_bytes());
            let algorithms = self.reading.algorithms;
            let form = self.reading.form.as_mut();
            let read = match (form, &self.columns) {
                _ if is_long => {
                    Err(format!("{bytes} bytes; a line has fewer than {MOST_LINE_BYTES}"))
                }
                _ if self.whole => Err("comes after an object that has all queries".into()),
                (_, Some(columns)) => columns.query(text, number),
                (Some(QueryForm::Json), _) if text.starts_with('{') => {
                    objects::line(text, number, algorithms)
                }
                (Some(form), _) => {
                    // The first line of what was not looked at before tells of priorities.
                    if number == 1 && self.guessed.is_none() && matches!(form, QueryForm::Colon(_))
                    {
                        *form = QueryForm::Colon(QueryForm::has_priority(text.as_bytes()));
                    }
                    form.parse(text, number, algorithms).map(|query| (query, Vec::new()))
                }
                (None, _) if is_markup => Err(topics::NONE.to_string()),
                (None, _) => objects::line(text, number, algorithms),
            };
            self.numbers = number;
            if self.remarks.wants(Remark::NotUtf8) && std::str::from_utf8(&self.line).is_err() {
                self.remarks.once(Remark::NotUtf8, not_utf8(line));
            }
            let refused = |why: String| Refused { line, offset, number, why: why.into() };
            let read = self.known(read).map(|query| Query { at: (line, offset), ..query });
            return Ok(Some(read.map_err(refused)));
        }
    }

    /// The query of an object; says which fields are not known.
    fn known(&mut self, read: Result<objects::ReadObject, String>) -> Result<Query, String> {
        let (query, unknown) = read?;
        if !unknown.is_empty() {
            let text =
                format!("query {}: unknown fields are ignored: {}", query.qid, unknown.join(", "));
            self.remarks.once(Remark::UnknownFields, text);
        }
        Ok(query)
    }

    /// The form of the stream, if it is not read by lines, told by the first line that is not
    /// empty.
    fn whole_form(&mut self) -> io::Result<Option<QueryForm>> {
        if self.line.trim_ascii().is_empty() {
            return Ok(None);
        }
        match self.reading.form {
            Some(QueryForm::Topics) => return Ok(Some(QueryForm::Topics)),
            Some(QueryForm::Json) | None => {}
            Some(_) => return Ok(None),
        }
        if self.reading.form.is_none() && is_markup(self.line.trim_ascii_start()) {
            return Ok(Some(QueryForm::Topics));
        }
        let is_json = match self.line[0] {
            b'[' => self.begins_list()?,
            b'{' => {
                let line = String::from_utf8_lossy(&self.line);
                let is_open = |json: &str| {
                    serde_json::from_str::<IgnoredAny>(json).is_err_and(|error| error.is_eof())
                };
                let is_long = self.line.len() >= MOST_LINE_BYTES - BYTE_ORDER_MARK.len();
                let goes_on = goes_on_over_lines(&self.line) || is_long;
                if objects::has_names(&line) {
                    self.whole = !self.is_file || self.rest_is_blank()?;
                    self.whole
                } else {
                    goes_on && is_open(&line)
                }
            }
            _ => false,
        };
        Ok(is_json.then_some(QueryForm::Json))
    }

    /// Learns the columns of CSV from the first line; returns whether it is no query.
    fn names_columns(&mut self) -> bool {
        let asked = self.reading.form == Some(QueryForm::Csv);
        let may_be = asked || self.reading.form.is_none();
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end_matches(['\r', '\n']);
        if !may_be || self.columns.is_some() || line.trim().is_empty() {
            return false;
        }
        let Some((columns, said)) = CsvColumns::of(line, asked) else { return false };
        self.reading.form = Some(QueryForm::Csv);
        self.columns = Some(columns);
        if let Some(said) = said.as_ref().filter(|_| !asked && !self.reading.quiet) {
            let text = format!("the queries: the first line, `{line}`, names columns: {said}");
            self.remarks.always(text);
        }
        said.is_some()
    }

    /// Adds the lines of a file over which a record of CSV goes on; returns their bytes.
    fn whole_record(&mut self) -> io::Result<u64> {
        let may_go_on = self.is_file && self.end == b'\n';
        let Some(columns) = self.columns.as_ref().filter(|_| may_go_on) else { return Ok(0) };
        let first = self.line.len();
        let rest = (&mut self.ahead).chain(&mut self.stream);
        let (lines, behind) = columns.complete(&mut self.line, rest)?;
        self.lines += lines;
        if !behind.is_empty() {
            self.put_back(behind);
        }
        Ok((self.line.len() - first) as u64)
    }

    /// Whether `[` is that of a list of JSON. Behind a bracket that stands alone it looks on.
    fn begins_list(&mut self) -> io::Result<bool> {
        let first = self.line.len();
        loop {
            if let Some(next) = self.line[1..].trim_ascii_start().first() {
                let is_list = matches!(next, b'{' | b'"' | b']');
                if !is_list {
                    let behind = self.line.split_off(first);
                    self.put_back(behind);
                }
                return Ok(is_list);
            }
            let mut line = std::mem::take(&mut self.line);
            let end = self.end;
            let bytes = self.rest().take(MOST_LINE_BYTES as u64).read_until(end, &mut line);
            self.line = line;
            if bytes? == 0 {
                return Ok(false);
            }
        }
    }

    /// Looks to the end of a file as long as it is blank.
    fn rest_is_blank(&mut self) -> io::Result<bool> {
        let mut behind = Vec::new();
        let most = MOST_LINE_BYTES as u64;
        while self.rest().take(most).read_until(b'\n', &mut behind)? > 0 {
            if !behind.trim_ascii().is_empty() {
                self.put_back(behind);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the rest of the stream, from the last line at `offset` on, as topics or JSON. An
    /// object that has all queries may be followed in a pipe that is still open.
    fn read_whole(&mut self, form: QueryForm, offset: u64, line: u64) -> io::Result<()> {
        let mut file = std::mem::take(&mut self.line);
        let most = topics::MOST_BYTES as u64;
        if !self.whole {
            self.rest().take(most).read_to_end(&mut file)?;
        }
        let read: Vec<(usize, Result<objects::ReadObject, String>)> = match form {
            _ if file.len() as u64 > most => {
                vec![(0, Err(format!("a file of topics or JSON has at most {most} bytes")))]
            }
            QueryForm::Topics => topics(&file, &self.reading.topic_fields)
                .into_iter()
                .map(|topic| match topic {
                    Ok(topic) => {
                        let query = Query::new(topic.name.unwrap_or_default(), topic.text);
                        (topic.offset, Ok((query, Vec::new())))
                    }
                    Err((at, why)) => (at, Err(why)),
                })
                .collect(),
            _ => {
                let how = (self.reading.form != Some(QueryForm::Json))
                    .then(|| format!("{}query-format json", self.reading.dashes));
                let algorithms = self.reading.algorithms;
                objects::document(&String::from_utf8_lossy(&file), self.numbers, how, algorithms)
            }
        };
        self.whole &= read.iter().any(|(_, read)| read.is_ok());
        let mut lines = line;
        if let Err(error) = std::str::from_utf8(&file) {
            let before = memchr::memchr_iter(b'\n', &file[..error.valid_up_to()]).count() as u64;
            self.remarks.once(Remark::NotUtf8, not_utf8(line + before));
        }
        let mut counted = 0;
        for (at, read) in read {
            self.numbers += 1;
            let number = self.numbers;
            // Where bytes are no UTF-8, offsets are those of the text that was made of them.
            let at = at.clamp(counted, file.len().max(counted));
            lines += memchr::memchr_iter(b'\n', &file[counted..at]).count() as u64;
            counted = at;
            let read = self.known(read);
            let offset = offset + at as u64;
            let placed = |query: Query| {
                let qid = named(&query.qid, number);
                Query { qid, at: (lines, offset), ..query }
            };
            let read = read.map(placed);
            let refused = |why: String| Refused { line: lines, offset, number, why: why.into() };
            self.ready.push_back(read.map_err(refused));
        }
        Ok(())
    }

    /// Looks at a query before it is given out.
    fn remark(&mut self, query: &Query) -> io::Result<()> {
        if let Some(form) = self.guessed.take().filter(|_| !self.reading.quiet) {
            let Query { qid, text, .. } = query;
            let text = format!(
                "the file of queries: every line is {form}, and is read so; the first is the query \
                 {qid} with the words `{text}`"
            );
            self.remarks.always(text);
        }
        let syntax = query.syntax.unwrap_or(self.reading.syntax);
        let of_words = self.are_words && syntax == Syntax::Words && unmarked(&query.text).is_none();
        if of_words
            && self.remarks.wants(Remark::Operator)
            && let Some((found, instead)) = operator(&query.text)
        {
            let instead = instead.replace('@', self.reading.dashes);
            let qid = &query.qid;
            let text = format!("query {qid}: `{found}` is searched for as words alone: {instead}");
            self.remarks.once(Remark::Operator, text);
        }
        let unique = self.reading.unique;
        if (unique || self.remarks.wants(Remark::Twice))
            && !self.names.is_new(&query.qid, KEPT_NAMES)
        {
            let twice = query.repeated(self.numbers - self.ready.len() as u64);
            if unique {
                return Err(io::Error::new(io::ErrorKind::InvalidData, twice));
            }
            self.remarks.once(Remark::Twice, twice.why.to_string());
        }
        Ok(())
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = io::Result<Result<Query, Refused>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let read = self.read();
        let read = read.map_err(|error| match &*self.what {
            "" => error,
            what => io::Error::new(error.kind(), format!("{what}{error}")),
        });
        let read = read.and_then(|read| {
            let Some(Ok(mut query)) = read else { return Ok(read) };
            // What a program gives is refused where it is answered, and has no place.
            if query.at.0 > 0 {
                let are_weights = self.reading.form == Some(QueryForm::Weights);
                if let Err(why) = check(&query.text, are_weights || !self.are_words) {
                    let number = self.numbers - self.ready.len() as u64;
                    return Ok(Some(Err(query.refused(number, &why))));
                }
                if are_weights {
                    query.text = marked(&query.text);
                }
            }
            self.remark(&query)?;
            Ok(Some(Ok(query)))
        });
        let read = read.transpose();
        self.ended = !matches!(read, Some(Ok(_)));
        read
    }
}
