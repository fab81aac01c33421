//! A query whose last word is being typed: it looks for that word, and for the most frequent terms
//! that begin with it.

use crate::index::error::IndexError;
use crate::query::snapshot::Snapshot;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use serde_json::json;
use std::collections::BTreeMap;

/// Terms that a word is completed to, at most.
const MOST_TERMS: usize = 64;
/// Terms of a run that are looked at.
const MOST_SEEN: usize = 1 << 15;
/// Characters of a word that is completed.
const LEAST: usize = 3;
/// What a term counts that the word is completed to, beside the word itself.
const BOOST: f64 = 0.5;

/// The tree of a text as it is typed, of whose words documents have `all` or any. There is none if
/// it ends behind a word, or no term begins with the last one, so that it is a query of words.
pub(crate) fn tree_of(
    snapshot: &Snapshot,
    text: &str,
    all: bool,
) -> Result<Option<String>, IndexError> {
    let word_at = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, word) = text.split_at(word_at);
    let tokens = snapshot.analysis().tokens(word.as_bytes());
    let Some((token, term)) = tokens.last() else { return Ok(None) };
    let mut begin = token.as_str();
    let mut terms = beginning(snapshot, begin)?;
    // Stemmed terms are shorter than words: `runnin` is to find `run`.
    while terms.is_empty() && begin.chars().count() > LEAST {
        begin = &begin[..begin.char_indices().next_back().map_or(0, |(at, _)| at)];
        terms = beginning(snapshot, begin)?;
    }
    terms.retain(|more| term.as_ref() != Some(more));
    if terms.is_empty() {
        return Ok(None);
    }
    let completed = terms.iter().map(|term| json!({"term": term, "boost": BOOST}));
    let any: Vec<_> = [json!({"text": word})].into_iter().chain(completed).collect();
    let last = json!({"any": any});
    let tree = match before.trim().is_empty() {
        true => last,
        false if all => json!({"all": [{"text": before}, last]}),
        false => json!({"any": [{"text": before}, last]}),
    };
    Ok(Some(tree.to_string()))
}

/// The most frequent terms of the index that begin with `begin`, at most [`MOST_TERMS`].
fn beginning(snapshot: &Snapshot, begin: &str) -> Result<Vec<String>, IndexError> {
    if begin.chars().count() < LEAST {
        return Ok(Vec::new());
    }
    // Numbers have a collection of their own; of letters longer terms are in that of the first
    // three.
    let is_number = begin.bytes().all(|byte| byte.is_ascii_digit());
    let longer = format!("{begin}{}", if is_number { "" } else { "x" });
    let collection = trie_collection(&longer);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let implied = implied_prefix_len(collection);
    for run in snapshot.generation().runs() {
        run.lexicon().beginning(
            collection,
            &begin.as_bytes()[implied..],
            MOST_SEEN,
            |suffix, df| {
                let term = [&begin.as_bytes()[..implied], suffix].concat();
                let term = String::from_utf8_lossy(&term);
                let (bare, field) = snapshot.fields().split(term.as_bytes());
                if field.is_none() && bare.len() == term.len() {
                    *found.entry(term.into_owned()).or_default() += u64::from(df);
                }
            },
        )?;
    }
    let mut best: Vec<(String, u64)> = found.into_iter().collect();
    best.sort_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    best.truncate(MOST_TERMS);
    Ok(best.into_iter().map(|(term, _)| term).collect())
}
