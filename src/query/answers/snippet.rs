//! Snippets of hits: words around those of the query, from the text that was indexed, read again,
//! and where these words stand in them.

use super::texts::Reread;
use crate::input::Format;
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use crate::shown::visible;
use crate::text::analysis::Analysis;
use crate::text::tokenizer::{Class, Tokenizer};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// Default length of a snippet.
pub(crate) const CHARACTERS: usize = 160;

/// A part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    /// Begin and end, in bytes of `text`, of the words whose terms the query has, by their order;
    /// words without anything between them are one.
    pub highlights: Vec<[usize; 2]>,
}

/// Snippets of documents of an open snapshot, for one query.
pub struct Snippets<'a> {
    snapshot: &'a Arc<Snapshot>,
    /// None if its texts cannot be had.
    texts: RefCell<Option<Reread>>,
    terms: HashSet<String>,
    characters: usize,
}

impl<'a> Snippets<'a> {
    /// Snippets of this many characters at most.
    pub fn new(snapshot: &'a Arc<Snapshot>, wanted: Wanted, text: &str, characters: usize) -> Self {
        let terms = terms_of(snapshot, wanted, text);
        let texts = RefCell::new(Reread::of(snapshot.generation()).ok());
        Self { snapshot, texts, terms, characters }
    }

    /// `None` if the document's text was not stored, has changed since, or cannot be read.
    pub fn of(&self, docid: u32) -> Option<Snippet> {
        let mut texts = self.texts.borrow_mut();
        let text = texts.as_mut()?.text(self.snapshot.generation(), docid).ok()?;
        let mut text = String::from_utf8_lossy(&text);
        let input = self.snapshot.generation().input_of(docid).ok()?;
        if input.format == Format::Mediawiki.name() {
            text = text.lines().map(without_signs).collect::<Vec<_>>().join("\n").into();
        }
        Some(snippet_of(&text, self.snapshot.analysis(), &self.terms, self.characters))
    }

    /// A line of a snippet, with the words of the query in bold.
    pub(crate) fn in_bold(&self, line: &str) -> String {
        let mut bold = String::with_capacity(2 * line.len());
        let mut after = 0;
        for [begin, end] in highlights(line, self.snapshot.analysis(), &self.terms) {
            for part in [&line[after..begin], "\x1b[1m", &line[begin..end], "\x1b[22m"] {
                bold.push_str(part);
            }
            after = end;
        }
        bold + &line[after..]
    }
}

/// The terms that a document is to have.
fn terms_of(snapshot: &Arc<Snapshot>, wanted: Wanted, text: &str) -> HashSet<String> {
    let plan = Plan::of_text(snapshot, wanted, text);
    // What is answered was checked.
    // A word of a field stands in the text without its number.
    let bare = |(term, _): (&str, f64)| {
        let (bare, _) = snapshot.fields().split(term.as_bytes());
        term[..bare.len()].to_string()
    };
    plan.map_or_else(|_| HashSet::new(), |plan| plan.asked().map(bare).collect())
}

/// A line of an article without the signs of a heading or of the items of a list.
fn without_signs(line: &str) -> &str {
    line.trim().trim_matches('=').trim_start_matches(['*', '#', ':', ';'])
}

/// The words of a text, cut at letters of which pairs are terms, as Chinese ones are.
fn parts(text: &str, tokenizer: Tokenizer) -> Vec<&str> {
    let is_paired = |letter| matches!(tokenizer.class(letter), Class::Paired | Class::Joined);
    let mut parts = Vec::new();
    for word in text.split_whitespace() {
        let mut begin = 0;
        let mut was_paired = false;
        for (at, letter) in word.char_indices() {
            let is_letter = letter.is_alphanumeric();
            if at > begin && (is_paired(letter) || was_paired && is_letter) {
                parts.push(&word[begin..at]);
                begin = at;
            }
            was_paired = is_paired(letter) || was_paired && !is_letter;
        }
        parts.push(&word[begin..]);
    }
    parts
}

/// The snippet of a text that is not of the index.
pub fn snippet(
    snapshot: &Arc<Snapshot>,
    wanted: Wanted,
    query: &str,
    text: &str,
    characters: usize,
) -> Snippet {
    let terms = terms_of(snapshot, wanted, query);
    snippet_of(text, snapshot.analysis(), &terms, characters)
}

fn snippet_of(
    text: &str,
    analysis: &Analysis,
    terms: &HashSet<String>,
    characters: usize,
) -> Snippet {
    let text = best_part(text, analysis, terms, characters);
    let highlights = highlights(&text, analysis, terms);
    Snippet { text, highlights }
}

fn highlights(text: &str, analysis: &Analysis, terms: &HashSet<String>) -> Vec<[usize; 2]> {
    let mut found: Vec<[usize; 2]> = Vec::new();
    analysis.spans(text, |place, term| match found.last_mut() {
        _ if !terms.contains(term) => {}
        Some(last) if place.start <= last[1] => last[1] = last[1].max(place.end),
        _ => found.push([place.start, place.end]),
    });
    found
}

/// The part of a text with the most terms of the query, first occurrences counting most; the first
/// of equal ones. It has whole words, and `...` where the text goes on.
fn best_part(
    text: &str,
    analysis: &Analysis,
    terms: &HashSet<String>,
    characters: usize,
) -> String {
    let words = parts(text, analysis.tokenizer);
    let begin = |at: usize| words[at].as_ptr() as usize - text.as_ptr() as usize;
    let end = |at: usize| begin(at) + words[at].len();
    let goes_on = |at: usize| at + 1 < words.len() && begin(at + 1) == end(at);
    let length = |at: usize| words[at].chars().count() + usize::from(!goes_on(at));
    let lengths: Vec<usize> = (0..words.len()).map(length).collect();
    let mut found: Vec<Vec<String>> = Vec::with_capacity(words.len());
    for at in 0..words.len() {
        let mut here = Vec::new();
        // A term may be the letter here and the next one.
        let with_next = &text[begin(at)..end(at + usize::from(goes_on(at)))];
        analysis.terms(with_next.as_bytes(), |term| {
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
    let (from, until, _) = best;
    let before = if from > 0 { "... " } else { "" };
    let behind = if until < words.len() { " ..." } else { "" };
    let part = if words.is_empty() { "" } else { &text[begin(from)..end(until - 1)] };
    let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let part: String = part.chars().take(characters).collect();
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
    fn letters_that_are_terms_in_pairs_are_found_in_long_runs() {
        let analysis = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
        let far = "这是一段很长的文字没有空格".repeat(30);
        let kana = "カタカナ".repeat(90);
        for (query, text) in [
            ("北京大学", format!("{far}在北京大学。{far}")),
            ("北京大学", format!("{}「北京大学」{far}", "one two ".repeat(60))),
            ("東京タワー", format!("{kana}東京タワー{kana}")),
            ("서울대학교", format!("{} 서울대학교 {kana}", "한국어 ".repeat(90))),
            ("mp3", format!("{far}mp3北{far}")),
        ] {
            let mut terms = HashSet::new();
            analysis.terms(query.as_bytes(), |term| _ = terms.insert(term.to_string()));
            let found = best_part(&text, &analysis, &terms, 60);
            assert!(found.contains(query), "{query}: {found}");
            assert!(found.chars().count() <= 70 && found.ends_with(" ..."), "{found}");
        }
        let terms = HashSet::from(["北京".to_string()]);
        assert_eq!(best_part("a 北京。 b", &analysis, &terms, 60), "a 北京。 b");
    }

    #[test]
    fn signs_of_wikis_are_left_out() {
        for (line, bare) in [
            ("==History==", "History"),
            (" ===  Early life === ", "  Early life "),
            ("* one", " one"),
            ("#: two", " two"),
            ("a == b", "a == b"),
        ] {
            assert_eq!(without_signs(line), bare);
        }
    }

    #[test]
    fn any_text_has_a_snippet() {
        let folder = tempfile::tempdir().unwrap();
        crate::index::testing::build(
            folder.path(),
            &crate::index::testing::collection(1, 9, 9),
            &[],
        );
        let snapshot = Snapshot::open(folder.path(), Default::default()).unwrap();
        let text = format!("{}the q3 of it {}", "word ".repeat(50), "word ".repeat(50));
        for query in ["q3", "applypipeline:off q3^2 nowhere^1"] {
            assert!(
                snippet(&snapshot, Wanted::default(), query, &text, 40)
                    .text
                    .contains("the q3 of it"),
                "{query}"
            );
        }
        let found = snippet(&snapshot, Wanted::default(), "nowhere", &text, 40);
        assert!(!found.text.contains("q3") && found.highlights.is_empty());
    }

    #[test]
    fn words_of_the_query_stand_where_it_is_said() {
        let found = |text: &str, terms: &[&str], analysis: &Analysis| {
            let terms = terms.iter().map(|term| term.to_string()).collect();
            let Snippet { text, highlights } = snippet_of(text, analysis, &terms, 60);
            let words = highlights.iter().map(|&[begin, end]| text[begin..end].to_string());
            words.collect::<Vec<_>>()
        };
        let far = "word ".repeat(50);
        let text =
            format!("{far}the \u{1b} Mills,milling\n\tand (MILL-wheels) Mühlen windmill {far}");
        let english = Analysis::default();
        assert_eq!(found(&text, &["mill"], &english), ["Mills", "milling", "MILL"]);
        assert_eq!(found(&text, &["mühlen"], &english), ["Mühlen"]);
        let folded = Analysis { fold: true, ..Analysis::default() };
        assert_eq!(found(&text, &["muhlen"], &folded), ["Mühlen"]);
        assert_eq!(found(&text, &["race"], &english), [""; 0]);
        let pairs = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
        let terms = ["北京", "京大", "大学"];
        assert_eq!(found("我在北京大学。 a 大人", &terms, &pairs), ["北京大学"]);
    }

    #[test]
    fn words_of_the_query_are_bold() {
        let folder = tempfile::tempdir().unwrap();
        let collection = crate::index::testing::collection(1, 9, 9);
        crate::index::testing::build(folder.path(), &collection, &[]);
        let snapshot = Snapshot::open(folder.path(), Default::default()).unwrap();
        let snippets = Snippets::new(&snapshot, Wanted::default(), "mill \u{fc}ber", 60);
        let bold = "a \x1b[1mMill\x1b[22m, no wheel \x1b[1m\u{dc}ber\x1b[22m";
        assert_eq!(snippets.in_bold("a Mill, no wheel \u{dc}ber"), bold);
        assert_eq!(snippets.in_bold("\u{fc}"), "\u{fc}");
    }

    #[test]
    fn long_words_are_cut() {
        let found = part(&"x".repeat(500), &["mill"], 60);
        assert_eq!(found.chars().count(), 60);
    }
}
