//! Output of the answers to queries.
//!
//! Answers of a thousand hits come at millions of lines a second, so lines are formatted by hand.
//! [`AnswerForm::Binary`] leaves names and decimals out: a record for each answer, of little-endian
//! 32-bit words.
//!
//! ```text
//! +--------+-------------+------+------------------------------+-------------------+
//! | "MRA1" | bytes of qid| hits | qid, zeros up to a whole word| hits: docid, score|
//! +--------+-------------+------+------------------------------+-------------------+
//! ```

use crate::query::answers::returned::ReturnedValues;
use crate::query::answers::snippet::Snippet;
use crate::query::listing::facets::FoundFacets;
use crate::query::reading::lines::{Query, Refused};
use crate::query::reading::weighted::{QueryVector, unmarked, vector_of};
use crate::query::top_k::Hit;
use crate::shown::one_word_of;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write as _;
use std::time::Duration;

/// The name of a run, one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTag {
    bytes: [u8; Self::MOST_BYTES],
    length: u8,
}

impl RunTag {
    pub const MOST_BYTES: usize = 64;

    /// `None` if it is empty, has white space or control characters, or is too long.
    pub fn new(name: &str) -> Option<Self> {
        let fits = !name.is_empty() && name.len() <= Self::MOST_BYTES;
        if !fits || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let mut bytes = [0; Self::MOST_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { bytes, length: name.len() as u8 })
    }

    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length.into()]).expect("it was made of a string")
    }
}

impl Default for RunTag {
    fn default() -> Self {
        Self::new("millrace").expect("it is a word")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// `qid Q0 name rank score tag`, a line a hit.
    Trec(RunTag),
    Jsonl,
    /// The same, with a snippet of each hit.
    Snippets,
    /// qid, rank, name, docid, score, a line a hit.
    Tsv,
    /// A record a query; see the [module](self).
    Binary,
}

pub(crate) const BINARY_MARK: [u8; 4] = *b"MRA1";

/// Bytes of the line of a hit beside qid and tag, mostly.
const USUAL_LINE: usize = 40;

/// The name at rank 0 for a query that was left unanswered.
pub(crate) const LATE: &str = "!late";

/// The name at rank 0 of how many documents match.
pub(crate) const COUNTED: &str = "!found";

#[derive(Serialize)]
struct JsonAnswer<'a, 'v> {
    qid: &'a str,
    query: &'a str,
    /// Of a query that is terms with weights, as one is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<QueryVector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<u64>,
    #[serde(skip_serializing_if = "FoundFacets::is_none")]
    facets: &'a FoundFacets,
    hits: Vec<JsonHit<'a, 'v>>,
    us: f64,
}

#[derive(Serialize)]
struct JsonLate<'a> {
    qid: &'a str,
    query: &'a str,
    hits: [(); 0],
    late: bool,
}

#[derive(Serialize)]
struct JsonRefused {
    qid: String,
    error: String,
}

#[derive(Serialize)]
struct JsonHit<'a, 'v> {
    rank: usize,
    name: Cow<'a, str>,
    docid: u32,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highlights: Option<Vec<[usize; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'v ReturnedValues>,
}

fn one_word(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(one_word_of(text).as_bytes());
}

fn decimal(mut number: u32, out: &mut Vec<u8>) {
    let mut digits = [0; 10];
    let mut at = 10;
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// The shortest decimal that reads back as the same number, as the standard library has it: zmij
/// takes a third of its time. Where two decimals are equally near it takes the even one and not the
/// greater, but a number of this size lies between two only if its last seven bits are zero (all
/// were tried).
fn shortest(score: f32, out: &mut Vec<u8>) {
    if (1e-4..1024.0).contains(&score.abs()) && score.to_bits() & 0x7f != 0 {
        return out.extend_from_slice(zmij::Buffer::new().format_finite(score).as_bytes());
    }
    write!(out, "{score}").expect("a vector takes all");
}

fn binary_head(qid: &str, hits: u32, out: &mut Vec<u8>) {
    let qid = qid.as_bytes();
    out.extend_from_slice(&BINARY_MARK);
    // A query's line has less than a mebibyte.
    out.extend_from_slice(&(qid.len() as u32).to_le_bytes());
    out.extend_from_slice(&hits.to_le_bytes());
    out.extend_from_slice(qid);
    out.resize(out.len() + (4 - qid.len() % 4) % 4, 0);
}

/// Appends the answer to `query`, which `found` documents match, as an object; `name`, `snippet`
/// and `values` take the place of a hit.
#[expect(clippy::too_many_arguments, reason = "the parts of an answer")]
pub(crate) fn write_json<'a, 'v>(
    query: &Query,
    hits: &[Hit],
    found: Option<u64>,
    facets: &FoundFacets,
    took: Duration,
    name: impl Fn(usize) -> Cow<'a, str>,
    snippet: impl Fn(usize) -> Option<Snippet>,
    values: impl Fn(usize) -> Option<&'v ReturnedValues>,
    out: &mut Vec<u8>,
) {
    let hits = hits.iter().enumerate().map(|(at, hit)| {
        let (snippet, highlights) = snippet(at).map(|of| (of.text, of.highlights)).unzip();
        let &Hit { docid, score } = hit;
        JsonHit {
            rank: query.offset + at + 1,
            name: name(at),
            docid,
            score,
            snippet,
            highlights,
            values: values(at),
        }
    });
    let answer = JsonAnswer {
        qid: &query.qid,
        query: unmarked(&query.text).unwrap_or(&query.text),
        vector: unmarked(&query.text).map(vector_of),
        found,
        facets,
        hits: hits.collect(),
        us: took.as_nanos() as f64 / 1e3,
    };
    serde_json::to_writer(&mut *out, &answer).expect("strings and numbers are JSON");
    out.push(b'\n');
}

impl AnswerForm {
    /// Whether a snippet of each hit stands in the answer to a query.
    pub(crate) fn has_snippets(self, query: &Query) -> bool {
        match self {
            Self::Snippets => query.snippets != Some(false),
            Self::Jsonl => query.snippets == Some(true),
            Self::Trec(_) | Self::Tsv | Self::Binary => false,
        }
    }

    /// Appends the answer to `query`. Scores are the shortest decimals that read back as the same
    /// `f32`. `name` gives the name of the hit at a place in `hits`. How many documents were
    /// `found`, if that is known, is a field of an object, and a line of its own with the name
    /// [`COUNTED`] at rank 0 and the number in place of a docid.
    pub fn write<'a>(
        self,
        query: &Query,
        hits: &[Hit],
        found: Option<u64>,
        took: Duration,
        name: impl Fn(usize) -> Cow<'a, str>,
        out: &mut Vec<u8>,
    ) {
        let none = FoundFacets::default();
        self.write_with(query, hits, found, &none, took, name, |_| None, out);
    }

    /// The same with facets and the `values` of hits, in the forms that have room for them.
    #[expect(clippy::too_many_arguments, reason = "the parts of an answer")]
    pub(crate) fn write_with<'a, 'v>(
        self,
        query: &Query,
        hits: &[Hit],
        found: Option<u64>,
        facets: &FoundFacets,
        took: Duration,
        name: impl Fn(usize) -> Cow<'a, str>,
        values: impl Fn(usize) -> Option<&'v ReturnedValues>,
        out: &mut Vec<u8>,
    ) {
        // There are fewer hits than docids.
        let first = (query.offset as u32).wrapping_add(1);
        match self {
            Self::Jsonl | Self::Snippets => {
                write_json(query, hits, found, facets, took, name, |_| None, values, out);
            }
            Self::Trec(tag) => {
                let tag = tag.name();
                let qid = one_word_of(&query.qid);
                out.reserve(hits.len() * (qid.len() + tag.len() + USUAL_LINE));
                for (at, hit) in hits.iter().enumerate() {
                    out.extend_from_slice(qid.as_bytes());
                    out.extend_from_slice(b" Q0 ");
                    one_word(&name(at), out);
                    out.push(b' ');
                    decimal(first.wrapping_add(at as u32), out);
                    out.push(b' ');
                    shortest(hit.score, out);
                    out.push(b' ');
                    out.extend_from_slice(tag.as_bytes());
                    out.push(b'\n');
                }
            }
            Self::Tsv => {
                let qid = one_word_of(&query.qid);
                out.reserve(hits.len() * (qid.len() + USUAL_LINE));
                if let Some(found) = found {
                    writeln!(out, "{qid}\t0\t{COUNTED}\t{found}\t0").expect("a vector takes all");
                }
                for (at, hit) in hits.iter().enumerate() {
                    out.extend_from_slice(qid.as_bytes());
                    out.push(b'\t');
                    decimal(first.wrapping_add(at as u32), out);
                    out.push(b'\t');
                    one_word(&name(at), out);
                    out.push(b'\t');
                    decimal(hit.docid, out);
                    out.push(b'\t');
                    shortest(hit.score, out);
                    if let Some(values) = values(at) {
                        values.write_tsv(out);
                    }
                    out.push(b'\n');
                }
            }
            Self::Binary => {
                out.reserve(16 + query.qid.len() + 8 * hits.len());
                binary_head(&query.qid, hits.len() as u32, out);
                for hit in hits {
                    out.extend_from_slice(&hit.docid.to_le_bytes());
                    out.extend_from_slice(&hit.score.to_le_bytes());
                }
            }
        }
    }

    /// Appends that a query was left unanswered since it had waited too long: an object with
    /// `late`; a line with the name [`LATE`] at rank 0; a record with `u32::MAX` as its number of
    /// hits.
    pub(crate) fn write_late(self, query: &Query, out: &mut Vec<u8>) {
        let Query { qid, text, .. } = query;
        match self {
            Self::Jsonl | Self::Snippets => {
                let query = unmarked(text).unwrap_or(text);
                let answer = JsonLate { qid, query, hits: [], late: true };
                serde_json::to_writer(&mut *out, &answer).expect("strings are JSON");
            }
            Self::Trec(tag) => {
                one_word(qid, out);
                write!(out, " Q0 {LATE} 0 0 {}", tag.name()).expect("a vector takes all");
            }
            Self::Tsv => {
                one_word(qid, out);
                write!(out, "\t0\t{LATE}\t{}\t0", u32::MAX).expect("a vector takes all");
            }
            Self::Binary => return binary_head(qid, u32::MAX, out),
        }
        out.push(b'\n');
    }

    /// Appends the answer to a refused line: an object with an `error`; nothing in the other forms.
    pub(crate) fn write_refused(self, refused: &Refused, out: &mut Vec<u8>) {
        if matches!(self, Self::Jsonl | Self::Snippets) {
            let qid = refused.number.to_string();
            let error = refused.to_string();
            let answer = JsonRefused { qid, error };
            serde_json::to_writer(&mut *out, &answer).expect("strings are JSON");
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(form: AnswerForm, qid: &str, hits: &[Hit], name: &str) -> Vec<u8> {
        let query = Query::new(qid.to_string(), "x");
        let mut out = Vec::new();
        form.write(&query, hits, None, Duration::ZERO, |_| Cow::Borrowed(name), &mut out);
        out
    }

    #[test]
    fn a_record_has_docids_and_scores_behind_the_qid() {
        let hits = [Hit { docid: 7, score: 1.5 }, Hit { docid: 4_000_000_000, score: 0.1 }];
        for (qid, padding) in [("", 0), ("a", 3), ("abcd", 0), ("Straße 1", 3)] {
            let record = written(AnswerForm::Binary, qid, &hits, "never");
            let word = |at: usize| u32::from_le_bytes(record[at..][..4].try_into().unwrap());
            assert_eq!(record[..4], BINARY_MARK);
            assert_eq!((word(4) as usize, word(8)), (qid.len(), 2));
            assert_eq!(&record[12..][..qid.len()], qid.as_bytes());
            let at = 12 + qid.len() + padding;
            assert_eq!(record[12 + qid.len()..at], [0, 0, 0][..padding]);
            assert_eq!([word(at), word(at + 8)], hits.map(|hit| hit.docid));
            assert_eq!([word(at + 4), word(at + 12)], hits.map(|hit| hit.score.to_bits()));
            assert_eq!(record.len(), at + 16);
        }
    }

    #[test]
    fn halfway_numbers_are_as_the_standard_library_has_them() {
        for score in [0.134_765_63, 0.006_347_656_3, 97.882_35, -18.000_002, 1e6, -0.0, 1e-5, 5.0] {
            let mut out = Vec::new();
            shortest(score, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), score.to_string());
        }
    }

    proptest! {
        #[test]
        fn oracle_lines_are_those_of_plain_formatting(
            (qid, name) in ("\\PC{1,9}|[a-z]{1,9}", "\\PC{0,12}|[a-z0-9 \t]{0,12}"),
            hits in prop::collection::vec((any::<u32>(), 0..1u32 << 31), 0..4),
        ) {
            let hits: Vec<Hit> = hits
                .into_iter()
                .map(|(docid, score)| Hit { docid, score: f32::from_bits(score) })
                .filter(|hit| hit.score.is_finite())
                .collect();
            let plain = |text: &str| -> String {
                let plain = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
                text.chars().map(plain).collect()
            };
            let mut trec = String::new();
            let mut tsv = String::new();
            for (Hit { docid, score }, rank) in hits.iter().zip(1..) {
                let qid = plain(&qid);
                let name = plain(&name);
                trec += &format!("{qid} Q0 {name} {rank} {score} millrace\n");
                tsv += &format!("{qid}\t{rank}\t{name}\t{docid}\t{score}\n");
            }
            prop_assert_eq!(String::from_utf8(written(AnswerForm::Trec(RunTag::default()), &qid, &hits, &name)).unwrap(), trec);
            prop_assert_eq!(String::from_utf8(written(AnswerForm::Tsv, &qid, &hits, &name)).unwrap(), tsv);
        }
    }
}
