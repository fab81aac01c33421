//! Queries in CSV (RFC 4180): a line for each, or several where a quoted field has line ends. The
//! first line names the columns; those of a name and of a text mean what fields of
//! [objects](super::objects) mean, without case, and others are passed over. Where CSV was asked
//! for there may be no such line: a line is a name and a text then.
//!
//! Fields are parted by commas, semicolons or tabs, whichever comes first in the first line.

use super::asked::{MOST_LINE_BYTES, Query, named};
use super::objects::{NAMES, ReadObject, TEXTS};
use crate::input::borders::over_lines::{BorderMachine, Csv};
use std::io::{self, BufRead, Read};

#[derive(Clone, Copy, PartialEq)]
enum InField {
    Begin,
    Plain,
    Quoted,
    /// Behind a quote that closes it, unless another follows.
    Closed,
}

/// The fields of a record, whether the last does not end, and whether something stands where CSV
/// has nothing: behind a closing quote, or a line end outside of quotes.
fn fields(record: &str, delimiter: char) -> (Vec<String>, bool, bool) {
    let mut fields = vec![String::new()];
    let mut place = InField::Begin;
    let mut strays = false;
    for c in record.chars() {
        let field = fields.last_mut().expect("there is one");
        place = match (place, c) {
            (InField::Begin, '"') => InField::Quoted,
            (InField::Quoted, '"') => InField::Closed,
            (InField::Closed, '"') | (InField::Quoted, _) => {
                field.push(c);
                InField::Quoted
            }
            (_, c) if c == delimiter => {
                fields.push(String::new());
                InField::Begin
            }
            (place, c) => {
                strays |= place == InField::Closed || c == '\n';
                field.push(c);
                InField::Plain
            }
        };
    }
    (fields, place == InField::Quoted, strays)
}

/// What the columns of a file mean.
pub(super) struct CsvColumns {
    delimiter: char,
    count: usize,
    name: Option<usize>,
    text: usize,
}

impl CsvColumns {
    /// The columns of a stream with this first line, and what it says of them if it is no query:
    /// it names one column of names and some of texts, or CSV was `asked` for.
    pub(super) fn of(line: &str, asked: bool) -> Option<(Self, Option<String>)> {
        let delimiter = line.chars().find(|&c| ",;\t".contains(c)).unwrap_or(',');
        let (heads, ..) = fields(line, delimiter);
        let heads: Vec<&str> = heads.iter().map(|head| head.trim()).collect();
        let place = |known: &&str| heads.iter().position(|head| head.eq_ignore_ascii_case(known));
        let is_name = |head: &&&str| NAMES.iter().any(|known| head.eq_ignore_ascii_case(known));
        let names = heads.iter().filter(is_name).count();
        let count = heads.len();
        // Names of queries have digits, and those of columns have none.
        let are_heads = names == 1 || asked && !heads[0].contains(|c: char| c.is_ascii_digit());
        let Some(text) = TEXTS.iter().find_map(place).filter(|_| are_heads) else {
            let name = (count > 1).then_some(0);
            let columns = Self { delimiter, count: count.min(2), name, text: count.min(2) - 1 };
            return asked.then_some((columns, None));
        };
        let other = || (0..count).find(|&at| at != text && !heads[at].is_empty());
        let name = NAMES.iter().find_map(place).or_else(other);
        let names = heads[name.unwrap_or(text)];
        let said = format!("names are those of `{names}`, texts those of `{}`", heads[text]);
        Some((Self { delimiter, count, name, text }, Some(said)))
    }

    /// Adds to a line those of `rest` over which its record goes on, unless its quotes are wrong.
    /// Returns how many they are, and what was read and does not belong to it.
    pub(super) fn complete(
        &self,
        line: &mut Vec<u8>,
        mut rest: impl BufRead,
    ) -> io::Result<(u64, Vec<u8>)> {
        let first = line.len();
        let mut lines = 0;
        let mut machine = Csv::default();
        let mut taken = 0;
        while machine.next(line, taken).is_none() {
            taken = line.len();
            let most = MOST_LINE_BYTES.saturating_sub(taken) as u64;
            if (&mut rest).take(most).read_until(b'\n', line)? == 0 {
                break;
            }
            lines += 1;
        }
        let record = String::from_utf8_lossy(line);
        let (fields, is_open, strays) =
            fields(record.trim_end_matches(['\r', '\n']), self.delimiter);
        // Quotes of TSV that are none of CSV may go together.
        let is_tsv = fields.iter().any(|field| field.contains('\t') && field.contains('\n'));
        match is_open || strays || self.delimiter == '\t' && is_tsv {
            true => Ok((0, line.split_off(first))),
            false => Ok((lines, Vec::new())),
        }
    }

    pub(super) fn query(&self, line: &str, number: u64) -> Result<ReadObject, String> {
        let (mut fields, is_open, strays) = fields(line, self.delimiter);
        if self.delimiter == '\t' && (is_open || strays || fields.len() > self.count) {
            // TSV knows no quotes, and tabs in the last column are text.
            fields = line.splitn(self.count, '\t').map(str::to_string).collect();
        } else if is_open {
            return Err(
                "has a quoted field that does not end; in a pipe it has to end in its line".into(),
            );
        }
        let found = fields.len();
        if found > self.count {
            let why = "a quote or a separator is wrong";
            return Err(format!("has {found} fields, where {} columns are: {why}", self.count));
        }
        let mut field = |at: usize| fields.get_mut(at).map(std::mem::take);
        let qid = self.name.and_then(&mut field).unwrap_or_default();
        let text = field(self.text).ok_or("has too few fields: the text is missing")?;
        Ok((Query::new(named(&qid, number), text), Vec::new()))
    }
}
