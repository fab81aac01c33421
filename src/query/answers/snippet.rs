//! Snippets of hits: words around those of the query, from the text that was indexed, read again.

use super::texts::Reread;
use crate::query::reading::weighted::terms_of_query;
use crate::query::snapshot::Snapshot;
use crate::shown::visible;
use crate::text::analysis::Analysis;
use std::cell::RefCell;
use std::collections::HashSet;

/// Default length of a snippet.
pub(crate) const CHARACTERS: usize = 160;

pub(crate) struct Snippets<'a> {
    snapshot: &'a Snapshot,
    /// None if its texts cannot be had.
    texts: RefCell<Option<Reread>>,
    terms: HashSet<String>,
    characters: usize,
}

impl<'a> Snippets<'a> {
    /// A snippet has at most `characters`.
    pub(crate) fn new(snapshot: &'a Snapshot, text: &str, characters: usize) -> Self {
        let mut terms = HashSet::new();
        // What is answered was checked.
        _ = terms_of_query(snapshot, text, |term, _| _ = terms.insert(term.to_string()));
        let texts = RefCell::new(Reread::of(snapshot.generation()).ok());
        Self { snapshot, texts, terms, characters }
    }

    /// `None` if the document's text was not stored, has changed since, or cannot be read.
    pub(crate) fn of(&self, docid: u32) -> Option<String> {
        let mut texts = self.texts.borrow_mut();
        let text = texts.as_mut()?.text(self.snapshot.generation(), docid).ok()?;
        let text = String::from_utf8_lossy(&text);
        Some(best_part(&text, self.snapshot.analysis(), &self.terms, self.characters))
    }
}

/// The part of a text with the most terms of the query, first occurrences counting most; the first
/// of equal ones. It has whole words, and `...` where the text goes on.
fn best_part(
    text: &str,
    analysis: &Analysis,
    terms: &HashSet<String>,
    characters: usize,
) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let lengths: Vec<usize> = words.iter().map(|word| word.chars().count() + 1).collect();
    let mut found: Vec<Vec<String>> = Vec::with_capacity(words.len());
    for word in &words {
        let mut here = Vec::new();
        analysis.terms(word.as_bytes(), |term| {
            if terms.contains(term) {
                here.push(term.to_string());
            }
        });
        found.push(here);
    }
    let worth = |from: usize, end: usize| {
        let all = found[from..end].iter().flatten();
        let distinct: HashSet<&String> = all.clone().collect();
        8 * distinct.len() + all.count().min(7)
    };
    let end_of = |from: usize| {
        let mut left = characters.saturating_sub(8);
        let more = lengths[from..].iter().take_while(|&&length| {
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        });
        from + more.count().max(1)
    };
    // A part begins a few words before one of the query, or at the beginning.
    let starts =
        (0..words.len()).filter(|&at| !found[at].is_empty()).map(|at| at.saturating_sub(3));
    let mut best = (0, 0, 0);
    for from in std::iter::once(0).chain(starts).filter(|&from| from < words.len()) {
        let end = end_of(from);
        let worth = worth(from, end);
        if best.1 == 0 || worth > best.2 {
            best = (from, end, worth);
        }
    }
    let (from, end, _) = best;
    let before = if from > 0 { "... " } else { "" };
    let behind = if end < words.len() { " ..." } else { "" };
    let part: String = words[from..end].join(" ").chars().take(characters).collect();
    format!("{before}{}{behind}", visible(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, terms: &[&str], characters: usize) -> String {
        let terms = terms.iter().map(|term| term.to_string()).collect();
        best_part(text, &Analysis::default(), &terms, characters)
    }

    #[test]
    fn a_part_has_the_words_of_the_query() {
        let far = "word ".repeat(50);
        let text = format!("{far}by the river the mills of old {far}");
        let found = part(&text, &["mill", "river"], 60);
        assert!(found.starts_with("... ") && found.ends_with(" ..."), "{found}");
        assert!(found.contains("river the mills"), "{found}");
        assert!(found.chars().count() <= 60, "{found}");
        assert_eq!(part("short text", &["mill"], 60), "short text");
        assert_eq!(part("", &["mill"], 60), "");
        // One of each is better than many of one.
        let text = format!("mill mill mill mill {far} mill race {far}");
        assert!(part(&text, &["mill", "race"], 40).contains("mill race"));
        assert_eq!(part("a\u{1b}[31m mill", &["mill"], 60), "a\\u{1b}[31m mill");
    }

    #[test]
    fn long_words_are_cut() {
        let found = part(&"x".repeat(500), &["mill"], 60);
        assert_eq!(found.chars().count(), 60);
    }
}
