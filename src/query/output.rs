//! How is the answer to a query written?

use super::lines::{Query, Refused};
use super::top_k::Hit;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// The name of a run, one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    bytes: [u8; Self::MOST_BYTES],
    length: u8,
}

impl Tag {
    /// Bytes of the longest.
    pub const MOST_BYTES: usize = 64;

    /// A name, unless it is empty, has white space or control characters, or is too long.
    pub fn new(name: &str) -> Option<Self> {
        let fits = !name.is_empty() && name.len() <= Self::MOST_BYTES;
        if !fits || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let mut bytes = [0; Self::MOST_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { bytes, length: name.len() as u8 })
    }

    /// The name.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length.into()]).expect("it was made of a string")
    }
}

impl Default for Tag {
    /// The name of the program.
    fn default() -> Self {
        Self::new("millrace").expect("it is a word")
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `qid Q0 name rank score tag`, a line a hit.
    Trec(Tag),
    /// An object a query.
    Jsonl,
    /// qid, rank, name, docid, score, a line a hit.
    Tsv,
}

#[derive(Serialize)]
struct JsonAnswer<'a> {
    qid: &'a str,
    query: &'a str,
    hits: Vec<JsonHit<'a>>,
    us: f64,
}

#[derive(Serialize)]
struct JsonRefused {
    qid: String,
    error: String,
}

#[derive(Serialize)]
struct JsonHit<'a> {
    rank: usize,
    name: Cow<'a, str>,
    docid: u32,
    score: f32,
}

/// White space, which separates the fields of a line, becomes `_`.
fn one_word(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }));
}

impl Form {
    /// Appends the answer to `query`. Scores are the shortest decimals that read back as the same
    /// `f32`. `name` gives the name of the hit at a place among the `hits`.
    pub fn write<'a>(
        self,
        query: &Query,
        hits: &[Hit],
        took: Duration,
        name: impl Fn(usize) -> Cow<'a, str>,
        out: &mut String,
    ) {
        match self {
            Self::Jsonl => {
                let hits = hits.iter().zip(1..).map(|(hit, rank)| JsonHit {
                    rank,
                    name: name(rank - 1),
                    docid: hit.docid,
                    score: hit.score,
                });
                let answer = JsonAnswer {
                    qid: &query.qid,
                    query: &query.text,
                    hits: hits.collect(),
                    us: took.as_nanos() as f64 / 1e3,
                };
                out.push_str(
                    &serde_json::to_string(&answer).expect("strings and numbers are JSON"),
                );
                out.push('\n');
            }
            Self::Trec(tag) => {
                let tag = tag.name();
                for (hit, rank) in hits.iter().zip(1..) {
                    one_word(&query.qid, out);
                    out.push_str(" Q0 ");
                    one_word(&name(rank - 1), out);
                    writeln!(out, " {rank} {} {tag}", hit.score).expect("a string takes all");
                }
            }
            Self::Tsv => {
                for (hit, rank) in hits.iter().zip(1..) {
                    one_word(&query.qid, out);
                    write!(out, "\t{rank}\t").expect("a string takes all");
                    one_word(&name(rank - 1), out);
                    writeln!(out, "\t{}\t{}", hit.docid, hit.score).expect("a string takes all");
                }
            }
        }
    }
    /// Appends what there is to say in the place of the answer to a line that was refused: an object
    /// with an `error`; nothing in the forms that have a line for each hit.
    pub fn write_refused(self, refused: &Refused, out: &mut String) {
        if self == Self::Jsonl {
            let (qid, error) = (refused.number.to_string(), refused.to_string());
            let answer = JsonRefused { qid, error };
            out.push_str(&serde_json::to_string(&answer).expect("strings are JSON"));
            out.push('\n');
        }
    }
}
