//! Queries with weighted terms, for an index of learned vectors or behind a [mark](MARK): terms of
//! the index with blanks between them, which are not analysed, each with `^` and its weight, 1 if
//! it is left out. Weights of a repeated term are added up; a term of weight 0 is left out, and a
//! query with `^` behind a term and no weight behind that is refused.

use crate::query::snapshot::Snapshot;
use indexmap::IndexMap;
use std::fmt::Write;

/// A text that begins with this word is terms with weights, for any index. It is that of PyTerrier,
/// and goes wherever a text goes.
const MARK: &str = "applypipeline:off";

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
    // What is answered was checked.
    _ = for_each_term(text, text, |term, weight| {
        *vector.entry(term.to_string()).or_default() += weight
    });
    vector
}

/// Calls `each` with every term of a query and its weight, or 1 for each time that a term occurs;
/// fails as [`check`].
pub(crate) fn terms_of_query(
    snapshot: &Snapshot,
    text: &str,
    mut each: impl FnMut(&str, f64),
) -> Result<(), String> {
    match terms_in(text, snapshot.has_given_terms()) {
        Some(terms) => return for_each_term(text, terms, each),
        None => snapshot.analysis().terms(text.as_bytes(), |term| each(term, 1.0)),
    }
    Ok(())
}

/// The terms of a text that has the mark, or is for an index of `given` terms.
fn terms_in(text: &str, given: bool) -> Option<&str> {
    unmarked(text).or(given.then_some(text))
}

/// Refuses a text of terms with weights if one of these is none.
pub(crate) fn check(text: &str, given: bool) -> Result<(), String> {
    match terms_in(text, given) {
        Some(terms) if !is_plain(terms) => for_each_term(text, terms, |_, _| {}),
        _ => Ok(()),
    }
}

/// Whether all weights are short decimals, which is soon known: one thread reads all queries. Up to
/// nine digits, wherever the point is, are 0 or within the bounds.
fn is_plain(terms: &str) -> bool {
    terms.split('^').skip(1).all(|part| {
        let weight = part.split(' ').next().unwrap_or_default();
        let dots = weight.matches('.').count();
        let digits = weight.bytes().filter(u8::is_ascii_digit).count();
        dots < 2 && (1..=9).contains(&digits) && dots + digits == weight.len()
    })
}

/// Calls `each` with every term and its weight, which is above 0. A word that begins with its only
/// `^` is a term. `text` has the terms, for the place of a wrong weight.
fn for_each_term(text: &str, terms: &str, mut each: impl FnMut(&str, f64)) -> Result<(), String> {
    for word in terms.split_whitespace() {
        let weighted = word.rsplit_once('^').filter(|(term, _)| !term.is_empty());
        let Some((term, weight)) = weighted else {
            each(word, 1.0);
            continue;
        };
        match weight.parse() {
            Ok(0.0) => {}
            Ok(number) if is_weight(number) => each(term, number),
            _ => {
                let at = weight.as_ptr() as usize - text.as_ptr() as usize;
                let character = text[..at].chars().count() + 1;
                return Err(format!(
                    "has no weight behind `{term}^` (character {character}): `{weight}` is neither \
                     0 nor a number from 1e-9 to 1e9"
                ));
            }
        }
    }
    Ok(())
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
        for_each_term(text, text, |term, weight| found.push((term.to_string(), weight))).unwrap();
        found
    }

    #[test]
    fn weights_stand_behind_terms() {
        let found = terms(" mill^2.5\t##race the^0.01 ^ ^3 ^x y^^2 ^^2 z^0 n^-0.0 e^1e3 f^.5 g^+2");
        let expected = [
            ("mill", 2.5),
            ("##race", 1.0),
            ("the", 0.01),
            ("^", 1.0),
            ("^3", 1.0),
            ("^x", 1.0),
            ("y^", 2.0),
            ("^", 2.0),
            ("e", 1000.0),
            ("f", 0.5),
            ("g", 2.0),
        ];
        assert_eq!(found, expected.map(|(term, weight)| (term.to_string(), weight)));
        assert_eq!(terms("  "), []);
    }

    #[test]
    fn what_is_no_weight_is_named_with_its_character() {
        for weight in ["-1", "", "abc", "1,5", "inf", "NaN", "1e10", "1e-10", "1.2.3", ".", "2x"] {
            let text = format!("\u{e9}^1 mill^{weight} race^3");
            let why = check(&text, true).unwrap_err();
            assert!(why.starts_with("has no weight behind `mill^` (character 10): "), "{why}");
            assert!(why.contains(&format!(": `{weight}` is neither")), "{why}");
            assert_eq!(check(&text, false), Ok(()));
            let why = check(&format!(" {MARK} a^{weight}"), false).unwrap_err();
            assert!(why.contains("(character 22)"), "{why}");
        }
        for right in ["", "a b", "a^0 b^2", "a^1.25 b^123456789", "a^1e-9", "^ ^^2 ^x", "a^0000.5"]
        {
            assert_eq!(check(right, true), Ok(()), "{right}");
        }
    }

    proptest::proptest! {
        #[test]
        fn law_plain_weights_are_weights(text in "([a^]{1,2}[0-9.^e-]{0,12}[ \t]?){1,4}") {
            let is_right = for_each_term(&text, &text, |_, _| {}).is_ok();
            proptest::prop_assert!(is_right || !is_plain(&text), "{}", text);
        }
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
