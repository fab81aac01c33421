//! The forms of queries by lines, and how the form of a file is guessed. Only a whole file is
//! guessed at: the first line of a pipe is answered before the second is there.

use super::asked::{MOST_LINE_BYTES, Query, named};
use super::csv::CsvColumns;
use super::objects;
use crate::input::streams::encoded::TextEncoding;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::wanted::Syntax;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::str::FromStr;

/// What lines of queries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryForm {
    /// Each line is a text.
    Words,
    /// `qid TAB text`.
    Tsv,
    /// A name and a text in columns, which the first line names.
    Csv,
    /// `qid:text`, or `qid:priority:text`, which tells whether a priority stands there.
    Colon(bool),
    /// Objects, lists of them, or an object with a text for each name.
    Json,
    /// `<top>`, `<topic>` or `<query>`.
    Topics,
    /// As without a form, and each text is terms of the index with weights.
    Weights,
    /// `qid text` with blanks between the two, which is only guessed.
    Spaced,
}

impl QueryForm {
    const NAMED: [(&str, Self); 7] = [
        ("words", Self::Words),
        ("tsv", Self::Tsv),
        ("csv", Self::Csv),
        ("colon", Self::Colon(false)),
        ("json", Self::Json),
        ("topics", Self::Topics),
        ("weights", Self::Weights),
    ];

    pub(super) fn parse(
        self,
        line: &str,
        number: u64,
        algorithms: HandedAlgorithms,
    ) -> Result<Query, String> {
        let text = line.trim();
        match self {
            Self::Words => Ok(Query::new(number.to_string(), line)),
            Self::Tsv => {
                let (qid, text) = line.split_once('\t').ok_or("a line is `qid TAB text` here")?;
                Ok(Query::new(named(qid, number), text))
            }
            Self::Spaced => match text.split_once(char::is_whitespace) {
                Some((qid, text)) => Ok(Query::new(qid, text.trim_start())),
                None => Err("a line is `qid text` here, as the lines before it".into()),
            },
            Self::Colon(priority) => {
                let (qid, rest) = text.split_once(':').ok_or("a line is `qid:text` here")?;
                let text = match rest.split_once(':') {
                    Some((number, text)) if priority && is_number(number) => text,
                    _ if priority => return Err("a line is `qid:priority:text` here".into()),
                    _ => rest,
                };
                Ok(Query::new(named(qid, number), text))
            }
            Self::Csv => Err("is no CSV".into()),
            Self::Json => Err("is no JSON".into()),
            Self::Topics => Err(super::topics::NONE.into()),
            Self::Weights => Ok(objects::line(line, number, algorithms)?.0),
        }
    }

    /// Whether a line begins with `qid:priority:`.
    pub(super) fn has_priority(line: &[u8]) -> bool {
        let mut parts = line.trim_ascii_start().split(|byte| *byte == b':');
        let number = |part: Option<&[u8]>| part.is_some_and(is_number);
        number(parts.next()) && number(parts.next()) && parts.next().is_some()
    }
}

impl FromStr for QueryForm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        let names = || Self::NAMED.map(|(name, _)| name).join(", ");
        found.map(|(_, form)| *form).ok_or_else(|| format!("give {}", names()))
    }
}

impl fmt::Display for QueryForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spaced => "`qid text`",
            Self::Colon(false) => "`number:text`",
            Self::Colon(true) => "`number:priority:text`",
            _ => "a query",
        })
    }
}

fn is_number(text: impl AsRef<[u8]>) -> bool {
    let text = text.as_ref();
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// How queries are to be read; the default is by what they look like.
#[derive(Clone, Debug, Default)]
pub struct QueryReading {
    pub form: Option<QueryForm>,
    /// The fields of topics that make up a query; the title if there are none.
    pub topic_fields: Vec<String>,
    pub encoding: Option<TextEncoding>,
    /// Whether a name that comes twice ends the reading: the answers are measured.
    pub unique: bool,
    /// Whether a form that was guessed is not told.
    pub quiet: bool,
    /// What names of settings have before them where they are given.
    pub dashes: &'static str,
    /// Algorithms that a query may name beside the usual ones.
    pub algorithms: HandedAlgorithms,
    /// How texts are read that do not say it.
    pub syntax: Syntax,
}

/// Names that are kept to tell those that come twice.
pub(super) const KEPT_NAMES: usize = 1 << 16;

/// The form of a file of two lines or more, if all of them are of a form that has to be guessed:
/// each begins with another name, which has a digit, and no line has a tab. `16 bit` and `12:30
/// train` are such lines too, so that years, thousands and times of day alone are no names. `q1,x`
/// may be CSV or words, and nobody knows which; behind the comma no blank or digit stands.
pub(crate) fn guess(stream: impl Read) -> io::Result<Option<QueryForm>> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut line = Vec::new();
    let mut spaced = Candidate::default();
    let mut colon = Candidate::default();
    let mut comma = Candidate::default();
    let mut priority = true;
    let mut lines = 0;
    while !(spaced.misfits && colon.misfits && comma.misfits) {
        line.clear();
        if (&mut stream).take(MOST_LINE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(match [&colon, &comma, &spaced].map(|found| found.is(lines)) {
                [true, ..] => Some(QueryForm::Colon(priority)),
                [_, true, _] => Some(QueryForm::Csv),
                [.., true] => Some(QueryForm::Spaced),
                _ => None,
            });
        }
        let text = line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&line).trim_ascii();
        if text.is_empty() {
            continue;
        }
        lines += 1;
        let is_header = || CsvColumns::of(&String::from_utf8_lossy(text), false).is_some();
        if lines == 1 && is_header() {
            return Ok(None);
        }
        if text.starts_with(b"{") || text.starts_with(b"<") || text.contains(&b'\t') {
            return Ok(None);
        }
        let name = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let named = name.len() < text.len() && name.iter().any(u8::is_ascii_digit);
        let year = name.len() == 4 && is_number(name) && matches!(&name[..2], b"19" | b"20");
        let thousands = name.contains(&b',') && name.split(|&byte| byte == b',').all(is_number);
        spaced.take(name, named, year || thousands || is_time(name));
        let number = text.split(|byte| *byte == b':').next().unwrap_or_default();
        colon.take(number, number.len() < text.len() && is_number(number), is_time(text));
        priority &= QueryForm::has_priority(text);
        let name = text.split(|byte| b",;".contains(byte)).next().unwrap_or_default();
        let is_other = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
        let parted = text.get(name.len() + 1).is_none_or(|byte| !is_other(byte));
        let is_name = name.len() < text.len()
            && name.iter().any(u8::is_ascii_digit)
            && !name.iter().any(u8::is_ascii_whitespace);
        comma.take(name, is_name && parted, false);
    }
    Ok(None)
}

/// Refuses a file that is CSV or words.
pub(super) fn unclear(dashes: &str) -> io::Error {
    let why = format!(
        "every line begins with another name and a comma or a semicolon: without a first line such \
         as `qid,query` this may be CSV or words ({dashes}query-format csv|words)"
    );
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// What all names of a file have in common, if they are names.
#[derive(Default)]
struct Candidate {
    /// One of them is no name.
    misfits: bool,
    /// Not all may as well be something else, which a query begins with.
    unusual: bool,
    names: HashSet<Vec<u8>>,
}

impl Candidate {
    fn take(&mut self, name: &[u8], is_name: bool, usual: bool) {
        // In a long file the first names are enough to tell.
        let repeated = is_name
            && !self.misfits
            && self.names.len() < KEPT_NAMES
            && !self.names.insert(name.to_vec());
        self.misfits |= !is_name || repeated;
        self.unusual |= !usual;
    }

    fn is(&self, lines: u64) -> bool {
        !self.misfits && self.unusual && lines > 1
    }
}

/// Whether a text begins with a time of day, as 7:05 or 23:59.
fn is_time(text: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', text) else { return false };
    let minutes = text[colon + 1..].split(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
    let below = |digits: &[u8], most: u32| {
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok());
        (1..=2).contains(&digits.len()) && number.is_some_and(|number| number < most)
    };
    minutes.len() == 2 && below(&text[..colon], 25) && below(minutes, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_alike_throughout_are_guessed() {
        let guessed = |text: &str| guess(text.as_bytes()).unwrap();
        let colon = Some(QueryForm::Colon(false));
        assert_eq!(guessed("1:dark matter\n2:family tree\n"), colon);
        assert_eq!(guessed("\u{feff}1:dark\r\n\r\n2:30 seconds"), colon);
        assert_eq!(guessed("1:1:dark\n2:4:family\n"), Some(QueryForm::Colon(true)));
        assert_eq!(guessed("1:1:dark\n2:family\n"), colon);
        assert_eq!(guessed("12:30 train\n7:15 bus\n731:30 rock\n"), colon);
        assert_eq!(guessed("301 first\nq2 second\n"), Some(QueryForm::Spaced));
        assert_eq!(guessed("2016 olympics\n301 second\n"), Some(QueryForm::Spaced));
        assert_eq!(guessed("301, first\n302, second\n"), Some(QueryForm::Spaced));
        assert_eq!(guessed("1:a,b\n2:c,d\n"), colon);
        for text in ["q1,dark\n\nq2,family tree\n", "1;\"x\"\r\n2;\n", "\"1\",a\n\"2\",b,c\n"] {
            assert_eq!(guessed(text), Some(QueryForm::Csv), "{text}");
        }
        for text in [
            "",
            "1:alone",
            "12:30 train\n7:15 bus\n",
            "12:30 train\n2016 olympics\n",
            "3:16 x\n3:17 y\n",
            "1:a\n1:b\n",
            "1:a\nb\n",
            "1:a\tb\n2:c\n",
            "1:a\n{\"query\": \"x\"}\n",
            "a:1\nb:2\n",
            "2016 olympics\n2012 olympics\n1999 prince\n",
            "49ers game\nwords\n",
            "http://x y\nhttps://z y\n",
            "q1,alone\n",
            "q1,a\nq1,b\n",
            "q1,a\nb,c\n",
            "10,000 steps\n20,000 leagues\n",
            "x1,qid,query\nx2,q1,a\nx3,q2,b\n",
            "paris 1,a\nparis 2,b\n",
            "2001,2010 odysseys\n1984,orwell\n",
        ] {
            assert_eq!(guessed(text), None, "{text}");
        }
    }

    #[test]
    fn times_have_two_digits_of_minutes() {
        for text in ["12:30 train", "0:00", "7:05x", "23:59:59 x", "24:00"] {
            assert!(is_time(text.as_bytes()), "{text}");
        }
        for text in ["25:00", "12:60", "12:3", "12:300", "1234:30", "12", ":30"] {
            assert!(!is_time(text.as_bytes()), "{text}");
        }
    }
}
