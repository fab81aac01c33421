//! Answers for a person at a terminal: one query at a time, on one thread, as a list of rank, name,
//! score and snippet, in lines that fit the terminal.

use super::snippet::{CHARACTERS, Snippets};
use crate::index::error::IndexError;
use crate::query::reading::lines::{Query, Refused};
use crate::query::searcher::Searcher;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use crate::shown::{number_of, visible};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Columns of a terminal that does not tell.
pub const COLUMNS: usize = 80;

pub struct Talk {
    snapshot: Arc<Snapshot>,
    wanted: Wanted,
    columns: usize,
    bold: bool,
    searcher: Searcher,
}

impl Talk {
    /// `wanted` is for queries that do not say what they want; lines have at most `columns`.
    pub fn new(snapshot: Arc<Snapshot>, wanted: Wanted, columns: usize) -> Self {
        let (columns, searcher) = (columns.max(30), Searcher::new());
        Self { snapshot, wanted, columns, bold: false, searcher }
    }

    /// Shows the words of queries in bold, by escapes that terminals know.
    #[must_use]
    pub fn bold(self, bold: bool) -> Self {
        Self { bold, ..self }
    }

    pub fn answer(&mut self, query: &Query) -> Result<String, IndexError> {
        let begun = Instant::now();
        let wanted = query.wanted(&self.wanted);
        let (hits, known) = match self.searcher.ask(&self.snapshot, &wanted, query) {
            Err(IndexError::Query { why }) => return Ok(format!("query {} {why}\n", query.qid)),
            asked => asked?,
        };
        let hits = hits.to_vec();
        let matching = self.searcher.found();
        let took = begun.elapsed();
        let mut text = String::new();
        let documents = self.snapshot.generation().documents();
        let snippets =
            Snippets::new(&self.snapshot, wanted, &query.text, (2 * self.columns).min(CHARACTERS));
        for (hit, rank) in hits.iter().zip(query.offset + 1..) {
            let name = documents.name(hit.docid)?;
            let name = String::from_utf8_lossy(&name);
            let score = format!("{:.4}", hit.score);
            let room = self.columns.saturating_sub(7 + score.len());
            _ = writeln!(text, "{rank:>3}. {}  {score}", cut(&visible(&name), room));
            if let Some(snippet) = snippets.of(hit.docid).filter(|of| !of.text.is_empty()) {
                for line in wrapped(&snippet.text, self.columns - 5) {
                    let line = if self.bold { snippets.in_bold(&line) } else { line };
                    _ = writeln!(text, "     {line}");
                }
            }
        }
        let ms = took.as_secs_f64() * 1e3;
        let found = match hits.len() {
            0 => "no hits".to_string(),
            n => number_of(n as u64, "hit", "hits"),
        };
        let mut why = if known { "" } else { ": no term of the query is in the index" }.to_string();
        let unspaced = self.snapshot.unspaced(&query.text).filter(|_| !known);
        why.extend(unspaced.map(|letters| format!("; its letters are mostly {letters}")));
        let of = matching.map(|n| format!(" of {}", number_of(n, "document", "documents")));
        _ = writeln!(text, "{found}{} in {ms:.1} ms{why}", of.unwrap_or_default());
        Ok(text)
    }

    /// Answers a stream of queries, each after a `prompt` or, without one, after its name and text;
    /// reports refused lines.
    ///
    /// # Errors
    /// If the queries cannot be read, the index is damaged, or `out` cannot be written.
    pub fn answer_all(
        &mut self,
        queries: impl IntoIterator<Item = io::Result<Result<Query, Refused>>>,
        prompt: Option<&str>,
        mut out: impl io::Write,
    ) -> Result<(), IndexError> {
        let writing = IndexError::io("writing the answers");
        let mut queries = queries.into_iter();
        loop {
            write!(out, "{}", prompt.unwrap_or_default())
                .and_then(|()| out.flush())
                .map_err(&writing)?;
            let Some(read) = queries.next() else { break };
            let answer = match read.map_err(IndexError::io("reading the queries"))? {
                Ok(query) if prompt.is_some() => self.answer(&query)?,
                Ok(query) => format!("{}: {}\n{}\n", query.qid, query.text, self.answer(&query)?),
                Err(refused) => format!("{refused}\n"),
            };
            out.write_all(answer.as_bytes()).map_err(&writing)?;
        }
        if prompt.is_some() {
            // What follows begins on a line of its own.
            writeln!(out).map_err(&writing)?;
        }
        Ok(())
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

/// Lines of at most `columns` characters; a longer word is cut.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = cut(word, columns);
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};
    use crate::query::snapshot::Scoring;

    #[test]
    fn lines_fit_the_terminal() {
        let text = "one two three ".repeat(20) + &"x".repeat(90);
        for columns in [30, 70] {
            let lines = wrapped(&text, columns);
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
            assert!(lines.len() > 4 && lines.join(" ").starts_with(text.get(..100).unwrap()));
        }
        assert_eq!((cut("short", 5), cut("longer", 5)), ("short".into(), "lo...".into()));
    }

    #[test]
    fn answers_are_lists_and_no_hits_are_said() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(16, 40, 20);
        build(folder.path(), &collection, &[]);
        let generation = Generation::open(folder.path()).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let wanted = Wanted { k: 2, ..Wanted::default() };
        let mut talk = Talk::new(snapshot, wanted, 70);
        let mut says = |text: &str| talk.answer(&Query::new("1", text)).unwrap();
        let term = collection[0].keys().next().unwrap();
        let found = says(term);
        assert!(found.starts_with("  1. doc-"), "{found}");
        assert!(found.lines().last().unwrap().contains(" hit"), "{found}");
        for unknown in ["zzzunheard", "..."] {
            let said = says(unknown);
            assert!(said.starts_with("no hits in ") && said.contains(": no term of"), "{said}");
        }
        let mut all = |prompt| {
            let queries = [Ok(Ok(Query::new("1", "zzzunheard"))), Ok(Ok(Query::new("2", term)))];
            let mut out = Vec::new();
            talk.answer_all(queries, prompt, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let out = all(Some("> "));
        assert!(out.starts_with("> no hits") && out.contains("\n>   1. doc-"), "{out}");
        assert!(out.ends_with("\n> \n"), "{out}");
        let out = all(None);
        assert!(out.starts_with("1: zzzunheard\nno hits"), "{out}");
        assert!(out.contains(&format!("\n\n2: {term}\n  1. doc-")), "{out}");
    }
}
