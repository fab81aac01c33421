//! How is the answer to a query written?

use super::top_k::Hit;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// A query as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number or name.
    pub qid: String,
    /// Its text.
    pub text: String,
}

impl Query {
    /// Reads a line: `qid TAB text`, or text alone, which is query number `number`. A line of white
    /// space is no query.
    pub fn parse(line: &str, number: u64) -> Option<Self> {
        let line = line.trim_end_matches(['\r', '\n']);
        if line.trim().is_empty() {
            return None;
        }
        Some(match line.split_once('\t') {
            Some((qid, text)) if !qid.trim().is_empty() => {
                Self { qid: qid.trim().to_string(), text: text.to_string() }
            }
            Some((_, text)) => Self { qid: number.to_string(), text: text.to_string() },
            None => Self { qid: number.to_string(), text: line.to_string() },
        })
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `qid Q0 name rank score millrace`, a line a hit.
    Trec,
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
            Self::Trec => {
                for (hit, rank) in hits.iter().zip(1..) {
                    one_word(&query.qid, out);
                    out.push_str(" Q0 ");
                    one_word(&name(rank - 1), out);
                    writeln!(out, " {rank} {} millrace", hit.score).expect("a string takes all");
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_qid_and_text_or_text() {
        let parse = |line| Query::parse(line, 7).map(|q| (q.qid, q.text));
        let query = |qid: &str, text: &str| Some((qid.to_string(), text.to_string()));
        assert_eq!(parse("12\tsome words\r\n"), query("12", "some words"));
        assert_eq!(parse("some words\n"), query("7", "some words"));
        assert_eq!(parse("\twords"), query("7", "words"));
        assert_eq!(parse("q\ta\tb"), query("q", "a\tb"));
        assert_eq!(parse("q\t"), query("q", ""));
        assert_eq!(parse(" \r\n"), None);
    }
}
