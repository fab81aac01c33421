//! Queries with weighted terms, for an index of learned vectors or behind a [mark](MARK): terms of
//! the index with blanks between them, which are not analysed, each with `^` and its weight, 1 if
//! it is left out. Weights of a repeated term are added up.

use crate::query::snapshot::Snapshot;
use indexmap::IndexMap;
use std::fmt::Write;

/// A text that begins with this word is terms with weights, for any index. It is that of PyTerrier,
/// and goes wherever a text goes.
const MARK: &str = "applypipeline:off";

/// A text as terms with weights.
pub(crate) fn marked(terms: &str) -> String {
    match unmarked(terms) {
        Some(_) => terms.to_string(),
        None => format!("{MARK} {terms}"),
    }
}

/// The terms of a text that has the mark.
pub(crate) fn unmarked(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix(MARK)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
}

/// Terms with their weights by first appearance.
pub(crate) type QueryVector = IndexMap<String, f64>;

pub(crate) fn vector_of(text: &str) -> QueryVector {
    let mut vector = QueryVector::default();
    for_each_term(text, |term, weight| *vector.entry(term.to_string()).or_default() += weight);
    vector
}

/// Calls `each` with every term of a query and its weight, or 1 for each time that a term occurs.
pub(crate) fn terms_of_query(snapshot: &Snapshot, text: &str, mut each: impl FnMut(&str, f64)) {
    match (unmarked(text), snapshot.has_given_terms()) {
        (Some(terms), true) => {
            // Scores of such an index were always added up in this order.
            let mut words: Vec<&str> = terms.split_whitespace().collect();
            words.sort_by_key(|word| word.rsplit_once('^').map_or(*word, |(term, _)| term));
            words.into_iter().for_each(|word| for_each_term(word, &mut each));
        }
        (Some(terms), false) => for_each_term(terms, each),
        (None, true) => for_each_term(text, each),
        (None, false) => snapshot.analysis().terms(text.as_bytes(), |term| each(term, 1.0)),
    }
}

/// Calls `each` with every term of a query and its weight, which is above 0. If no valid weight
/// follows the last `^`, all belongs to the term.
fn for_each_term(text: &str, mut each: impl FnMut(&str, f64)) {
    for word in text.split_whitespace() {
        let weighted = word.rsplit_once('^').and_then(|(term, weight)| {
            let weight: f64 = weight.parse().ok()?;
            (!term.is_empty() && is_weight(weight)).then_some((term, weight))
        });
        let (term, weight) = weighted.unwrap_or((word, 1.0));
        each(term, weight);
    }
}

pub(crate) const LEAST_WEIGHT: f64 = 1e-9;

pub(crate) fn is_weight(weight: f64) -> bool {
    (LEAST_WEIGHT..=1e9).contains(&weight)
}

/// The text of a query with these terms and weights; `None` if a term is empty or has white space,
/// or a number is neither 0 nor a valid weight. Terms of weight 0 are left out.
pub(crate) fn text_of<'a>(terms: impl IntoIterator<Item = (&'a str, f64)>) -> Option<String> {
    let mut text = String::new();
    for (term, weight) in terms {
        if term.is_empty() || term.contains(char::is_whitespace) {
            return None;
        }
        if weight == 0.0 {
            continue;
        }
        if !is_weight(weight) {
            return None;
        }
        let blank = if text.is_empty() { "" } else { " " };
        write!(text, "{blank}{term}^{weight}").expect("a string takes all");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        for_each_term(text, |term, weight| found.push((term.to_string(), weight)));
        found
    }

    #[test]
    fn weights_stand_behind_terms() {
        let found = terms(" mill^2.5\t##race the^0.01 a^b x^-1 ^3 y^^2 z^0 e^1e3");
        let expected = [
            ("mill", 2.5),
            ("##race", 1.0),
            ("the", 0.01),
            ("a^b", 1.0),
            ("x^-1", 1.0),
            ("^3", 1.0),
            ("y^", 2.0),
            ("z^0", 1.0),
            ("e", 1000.0),
        ];
        assert_eq!(found, expected.map(|(term, weight)| (term.to_string(), weight)));
        assert_eq!(terms("  "), []);
    }

    #[test]
    fn texts_of_vectors_are_read_back() {
        let vector = [("mill", 1.25), ("none", 0.0), ("x^2", 3.0)];
        let text = text_of(vector).unwrap();
        assert_eq!(text, "mill^1.25 x^2^3");
        assert_eq!(terms(&text), [("mill".to_string(), 1.25), ("x^2".to_string(), 3.0)]);
        for wrong in [("", 1.0), ("a b", 1.0), ("a", -1.0), ("a", f64::NAN), ("a", 1e10)] {
            assert_eq!(text_of([wrong]), None, "{wrong:?}");
        }
    }
}
