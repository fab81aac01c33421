//! The plain tokenizer: a token is a maximal run of [`char::is_alphanumeric`], lower-cased as a
//! whole with [`str::to_lowercase`]. Queries go through it, and a faster one must give the same
//! tokens.
//!
//! Bytes that are not UTF-8 count as U+FFFD, as in [`String::from_utf8_lossy`], which separates
//! tokens. A lower-cased token may hold characters that are not alphanumeric: `İ` becomes `i` and
//! U+0307, a combining dot, which stays in the token. Whole tokens are lower-cased because the form
//! of a letter can depend on its neighbours: `Σ` becomes `ς` at the end of a word.

mod cjk;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenizer {
    /// Maximal runs of letters and digits: [`for_each_token`].
    #[default]
    Words,
    /// The same, but Chinese, Japanese and Korean letters become overlapping bigrams.
    CjkBigram,
}

/// How a character takes part in cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Word,
    Separator,
    /// A letter that forms bigrams with its neighbours of this class or the next, and neither
    /// depends on its surroundings nor changes them.
    Paired,
    /// A letter that forms bigrams too, but may depend on its surroundings or change them.
    Joined,
}

impl Class {
    /// By their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Word, Self::Separator, Self::Paired, Self::Joined];
}

impl Tokenizer {
    pub(crate) fn class(self, character: char) -> Class {
        match self {
            _ if !character.is_alphanumeric() => Class::Separator,
            Self::Words => Class::Word,
            Self::CjkBigram => cjk::class(character),
        }
    }

    pub(crate) const ALL: [Self; 2] = [Self::Words, Self::CjkBigram];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::CjkBigram => "cjk-bigram",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    /// The manifest's entry: none for the default.
    pub(crate) fn recorded(self) -> Option<String> {
        (self != Self::default()).then(|| self.name().to_string())
    }

    /// Calls `f` with each lower-cased token in order. All tokenizers agree on ASCII.
    pub(crate) fn for_each_token(self, text: &[u8], mut f: impl FnMut(&str)) {
        match self {
            Self::Words => for_each_token(text, f),
            Self::CjkBigram => for_each_token(text, |token| cjk::for_each_part(token, &mut f)),
        }
    }
}

/// Calls `f` with each token of `text`, lower-cased, in order. Takes linear time. A token of ASCII
/// characters costs no allocation, since all share one buffer, and none is copied that is lower
/// case already.
pub fn for_each_token(text: &[u8], mut f: impl FnMut(&str)) {
    let mut lowered = String::new();
    match std::str::from_utf8(text) {
        Ok(text) => for_each_token_of_str(text, &mut lowered, &mut f),
        // Two chunks are always parted by bytes that are not UTF-8, hence by a separator.
        Err(_) => {
            for chunk in text.utf8_chunks() {
                for_each_token_of_str(chunk.valid(), &mut lowered, &mut f);
            }
        }
    }
}

fn for_each_token_of_str(text: &str, lowered: &mut String, f: &mut impl FnMut(&str)) {
    let mut at = 0;
    loop {
        let token = token_at(text, at);
        if !token.text.is_empty() {
            at += token.text.len();
            if !token.is_ascii {
                f(&token.text.to_lowercase());
            } else if token.has_upper {
                lowered.clear();
                lowered.push_str(token.text);
                lowered.make_ascii_lowercase();
                f(lowered);
            } else {
                f(token.text);
            }
        }
        match text[at..].chars().next() {
            Some(separator) => at += separator.len_utf8(),
            None => return,
        }
    }
}

struct RawToken<'a> {
    text: &'a str,
    is_ascii: bool,
    /// Has a letter from A to Z.
    has_upper: bool,
}

/// The token that begins at byte `start`; empty before a separator or the end.
fn token_at(text: &str, start: usize) -> RawToken<'_> {
    let bytes = text.as_bytes();
    let mut is_ascii = true;
    let mut has_upper = false;
    let mut end = start;
    while let Some(&byte) = bytes.get(end) {
        if byte.is_ascii_alphanumeric() {
            has_upper |= byte.is_ascii_uppercase();
            end += 1;
        } else if byte.is_ascii() {
            break;
        } else {
            match text[end..].chars().next() {
                Some(character) if character.is_alphanumeric() => end += character.len_utf8(),
                _ => break,
            }
            is_ascii = false;
        }
    }
    RawToken { text: &text[start..end], is_ascii, has_upper }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn tokens(text: &[u8]) -> Vec<String> {
        let mut tokens = Vec::new();
        for_each_token(text, |token| tokens.push(token.to_string()));
        tokens
    }

    /// The contract, word by word.
    fn naive(text: &[u8]) -> Vec<String> {
        String::from_utf8_lossy(text)
            .split(|c: char| !c.is_alphanumeric())
            .filter(|token| !token.is_empty())
            .map(str::to_lowercase)
            .collect()
    }

    #[test]
    fn tokens_are_runs_of_letters_and_digits() {
        assert_eq!(tokens(b""), [""; 0]);
        assert_eq!(tokens(b" \n-_'"), [""; 0]);
        assert_eq!(tokens(b"one"), ["one"]);
        assert_eq!(tokens(b"_One__TWO-3d\0x "), ["one", "two", "3d", "x"]);
        assert_eq!(tokens("naïve—Ünï 北京 ¾x ٣".as_bytes()), ["naïve", "ünï", "北京", "¾x", "٣"]);
    }

    #[test]
    fn whole_tokens_are_lower_cased() {
        assert_eq!(tokens("ΟΔΥΣΣΕΥΣ ΣΣΑ1".as_bytes()), ["οδυσσευς", "σσα1"]);
        assert_eq!(tokens("İSTANBUL".as_bytes()), ["i\u{307}stanbul"]);
        // A combining dot that is in the text itself does separate.
        assert_eq!(tokens("i\u{307}x".as_bytes()), ["i", "x"]);
    }

    #[test]
    fn bytes_that_are_not_utf8_separate() {
        assert_eq!(tokens(b"a\xFFb\xC3(c\xE2\x82"), ["a", "b", "c"]);
        assert_eq!(tokens(b"caf\xC3\xA9\xC3"), ["café"]);
        // An encoded surrogate, an overlong slash, a code point past the last.
        assert_eq!(tokens(b"a\xED\xA0\x80b\xC0\xAFc\xF4\x90\x80\x80d"), ["a", "b", "c", "d"]);
    }

    fn tricky_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => any::<u8>().prop_map(|byte| vec![byte]),
            4 => prop::sample::select(&b"aZz09 -_"[..]).prop_map(|byte| vec![byte]),
            2 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
            2 => prop::sample::select(vec!["İ", "Σ", "ß", "ẞ", "é", "\u{307}", "ǅ", "٣", "¾", "北", "\u{FFFD}", "𐐀"])
                .prop_map(|s| s.as_bytes().to_vec()),
            1 => prop::sample::select(vec![&b"\xC3"[..], b"\xE2\x82", b"\xF0\x9F\x98", b"\xED\xA0\x80"])
                .prop_map(<[u8]>::to_vec),
        ];
        vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn oracle_tokens_equal_the_naive_ones(text in tricky_bytes()) {
            prop_assert_eq!(tokens(&text), naive(&text));
        }
    }
}
