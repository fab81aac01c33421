//! The trie collections of terms. The dictionary is a trie of three letters whose leaves, the trie
//! collections, each hold the terms of one prefix: Table I of Wei and JaJa, *A fast algorithm for
//! constructing inverted files on heterogeneous platforms* (IPDPS 2011). The part of a term that
//! its collection implies need not be stored.
//!
//! | collection | terms | implied |
//! | --- | --- | --- |
//! | 0 | all others | nothing |
//! | 1 to 10 | ASCII digits only, by the first | the first digit |
//! | 11 to 36 | first character a to z, by it | the first letter |
//! | 37 to 17612 | more than three characters, the first three a to z | the three letters |
//!
//! What the paper leaves open is fixed here: a letter is a to z, everything else is special (digits
//! and `é` too), and lengths count characters. So `a1b` is in 11, `3d` in 0 and `añonuevo` in 11.

pub const TRIE_COLLECTIONS: usize = 17_613;

/// The first collections of numbers, of terms by one letter, and by three.
pub(crate) const FIRST_NUMBERS: u16 = 1;
pub(crate) const FIRST_ONE_LETTER: u16 = 11;
pub(crate) const FIRST_THREE_LETTERS: u16 = 37;

/// The trie collection of a stemmed term, from 0 to [`TRIE_COLLECTIONS`] - 1.
#[inline]
#[must_use]
pub fn trie_collection(term: &str) -> u16 {
    match term.as_bytes() {
        // A fourth byte means a fourth character, since the first three are one byte each.
        [i @ b'a'..=b'z', j @ b'a'..=b'z', k @ b'a'..=b'z', _, ..] => {
            let [i, j, k] = [i, j, k].map(|letter| u16::from(letter - b'a'));
            FIRST_THREE_LETTERS + 26 * 26 * i + 26 * j + k
        }
        [letter @ b'a'..=b'z', ..] => FIRST_ONE_LETTER + u16::from(letter - b'a'),
        [digit @ b'0'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            FIRST_NUMBERS + u16::from(digit - b'0')
        }
        _ => 0,
    }
}

/// Bytes of a term that its collection implies: 3, 1 or 0; 0 from [`TRIE_COLLECTIONS`] on.
#[inline]
#[must_use]
pub fn implied_prefix_len(collection: u16) -> usize {
    if collection == 0 || usize::from(collection) >= TRIE_COLLECTIONS {
        0
    } else if collection < FIRST_THREE_LETTERS {
        1
    } else {
        3
    }
}

/// The bytes that a collection implies, which are ASCII, and how many of the three count; the rest
/// are zero. None count for a number from [`TRIE_COLLECTIONS`] on.
#[inline]
#[must_use]
pub(crate) fn implied_prefix(collection: u16) -> ([u8; 3], usize) {
    // Every quotient and remainder below is under 26.
    let nth = |first: u8, n: u16| first + n.to_le_bytes()[0];
    let len = implied_prefix_len(collection);
    let prefix = match len {
        0 => [0; 3],
        1 if collection < FIRST_ONE_LETTER => [nth(b'0', collection - FIRST_NUMBERS), 0, 0],
        1 => [nth(b'a', collection - FIRST_ONE_LETTER), 0, 0],
        _ => {
            let n = collection - FIRST_THREE_LETTERS;
            [n / (26 * 26), n / 26 % 26, n % 26].map(|letter| nth(b'a', letter))
        }
    };
    (prefix, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Table I in characters, with none of the reasoning about bytes.
    fn naive(term: &str) -> u16 {
        let chars: Vec<char> = term.chars().collect();
        let letter = char::is_ascii_lowercase;
        let place = |c: char| c as u16 - 'a' as u16;
        if chars.is_empty() {
            0
        } else if chars.iter().all(char::is_ascii_digit) {
            1 + chars[0] as u16 - '0' as u16
        } else if !letter(&chars[0]) {
            0
        } else if chars.len() > 3 && chars[..3].iter().all(letter) {
            37 + 26 * 26 * place(chars[0]) + 26 * place(chars[1]) + place(chars[2])
        } else {
            11 + place(chars[0])
        }
    }

    #[test]
    fn table_one_of_the_paper() {
        let rows: [(u16, &[&str]); 9] = [
            (0, &["-80", "3d", "Česky", "česky", "", "٣", "12é", "é", "Zoo", "1\u{307}"]),
            (1, &["0", "01", "0195"]),
            (10, &["9", "954"]),
            (11, &["a", "at", "act", "añonuevo", "a1b", "a1bcd", "ab1cd", "abé"]),
            (36, &["z", "zoo", "zoé"]),
            (37, &["aaat", "aaaé", "aaa1"]),
            (38, &["aabomycin"]),
            (37 + 26, &["abac"]),
            (17_612, &["zzzy", "zzzz", "zzz0"]),
        ];
        for (collection, terms) in rows {
            for term in terms {
                assert_eq!(trie_collection(term), collection, "{term}");
            }
        }
    }

    #[test]
    fn each_collection_is_that_of_its_prefix() {
        for collection in 1..TRIE_COLLECTIONS as u16 {
            let (prefix, len) = implied_prefix(collection);
            let mut term = String::from_utf8(prefix[..len].to_vec()).unwrap();
            if len == 3 {
                term.push('1');
            }
            assert_eq!(trie_collection(&term), collection, "{term}");
        }
        assert_eq!(implied_prefix(0), ([0; 3], 0));
    }

    #[test]
    fn no_collection_implies_nothing() {
        for collection in TRIE_COLLECTIONS as u16..=u16::MAX {
            assert_eq!(implied_prefix(collection), ([0; 3], 0));
        }
    }

    fn terms() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            4 => prop::sample::select(vec!['a', 'b', 'y', 'z', '0', '9', 'é', '{', '`', '/', ':']),
            1 => any::<char>(),
        ];
        vec(character, 0..6).prop_map(String::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn oracle_collection_equals_the_naive_one(term in terms()) {
            let collection = trie_collection(&term);
            prop_assert_eq!(collection, naive(&term));
            prop_assert!(usize::from(collection) < TRIE_COLLECTIONS);
        }

        #[test]
        fn law_prefix_and_suffix_make_the_term(term in terms()) {
            let collection = trie_collection(&term);
            let (prefix, len) = implied_prefix(collection);
            prop_assert_eq!(len, implied_prefix_len(collection));
            let suffix = &term.as_bytes()[len..];
            prop_assert_eq!([&prefix[..len], suffix].concat(), term.as_bytes());
        }
    }
}
