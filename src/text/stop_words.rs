//! Stop words, which are never indexed: a list matched against lower-cased tokens before stemming,
//! `english`, `none`, or a file of the user's. The manifest stores the words themselves, so that an
//! index needs no file besides its own.
//!
//! A file holds one word a line in UTF-8. White space around a word is trimmed; blank lines, lines
//! that begin with `#` and a byte order mark at the front are skipped; words are lower-cased. A
//! line that could match no token is an error rather than a word without effect.

use super::tokenizer::{Class, Tokenizer};
use crate::settings::SettingError;
use std::io;
use std::path::Path;

/// Lucene's English list.
const ENGLISH: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopWords {
    /// Sorted by their bytes, each once.
    words: Vec<Box<str>>,
    /// `words[starts[b]..starts[b + 1]]` begin with byte b.
    starts: Box<[usize; 257]>,
    longest_bytes: usize,
}

impl StopWords {
    /// Lucene's list.
    #[must_use]
    pub fn english() -> Self {
        Self::of(ENGLISH.map(Box::from).to_vec())
    }

    #[must_use]
    pub fn none() -> Self {
        Self::of(Vec::new())
    }

    /// From an option's value: `english`, `none`, or a file's path, which `read` reads whole and
    /// whose words become tokens of the tokenizer by `token`.
    pub(crate) fn from_option(
        value: &Path,
        tokenizer: Tokenizer,
        token: impl Fn(&str) -> String,
        read: fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, SettingError> {
        match value.to_str() {
            Some("english") => Ok(Self::english()),
            Some("none") => Ok(Self::none()),
            _ => Self::from_file(value, tokenizer, token, read),
        }
    }

    /// # Errors
    /// If the file cannot be read, is not UTF-8, or has a line with several words or with a word
    /// that can be no token.
    fn from_file(
        path: &Path,
        tokenizer: Tokenizer,
        token: impl Fn(&str) -> String,
        read: fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, SettingError> {
        let file = path.display();
        let bytes = read(path).map_err(|error| refused(format!("{file}: {error}")))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let offset = error.valid_up_to();
            refused(format!("{file}: byte {offset}: not UTF-8; give one word a line, in UTF-8"))
        })?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut words = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let word = line.trim();
            if word.is_empty() || word.starts_with('#') {
                continue;
            }
            let at = |why: String| refused(format!("{file}: line {}: {why}", index + 1));
            if word.contains(char::is_whitespace) {
                return Err(at(format!("expected one stop word, found {:?}", shorten(word))));
            }
            let word = token(word);
            if word.is_empty() {
                return Err(at("a stop word of marks alone is never a token".into()));
            }
            if let Some(separator) = separator(&word, tokenizer) {
                let word = shorten(&word);
                return Err(at(format!(
                    "the stop word {word:?} is never a token, because {separator:?} ends a token"
                )));
            }
            words.push(word.into_boxed_str());
        }
        Ok(Self::of(words))
    }

    /// From the words of [`StopWords::words`], in any order.
    ///
    /// # Errors
    /// If a word is not lower-cased or can be no token.
    pub fn from_words<W: AsRef<str>>(
        words: impl IntoIterator<Item = W>,
        tokenizer: Tokenizer,
    ) -> Result<Self, SettingError> {
        let mut list = Vec::new();
        for word in words {
            let word = word.as_ref();
            let is_token = !word.is_empty() && word == tokenizer.token_of(word);
            if !is_token || separator(word, tokenizer).is_some() {
                let why = format!("the stop word {:?} of the list is never a token", shorten(word));
                return Err(refused(why));
            }
            list.push(word.into());
        }
        Ok(Self::of(list))
    }

    fn of(mut words: Vec<Box<str>>) -> Self {
        words.sort_unstable();
        words.dedup();
        let starts = std::array::from_fn(|byte| {
            words.partition_point(|word| usize::from(word.as_bytes()[0]) < byte)
        });
        let longest_bytes = words.iter().map(|word| word.len()).max().unwrap_or(0);
        Self { words, starts: Box::new(starts), longest_bytes }
    }

    /// Whether a lower-cased token is a stop word.
    #[inline]
    #[must_use]
    pub fn contains(&self, token: &str) -> bool {
        let Some(&first) = token.as_bytes().first() else { return false };
        // Most tokens are longer than any stop word.
        if token.len() > self.longest_bytes {
            return false;
        }
        let first = usize::from(first);
        self.words[self.starts[first]..self.starts[first + 1]]
            .binary_search_by(|word| (**word).cmp(token))
            .is_ok()
    }

    /// `none`, `english` or `custom`.
    #[must_use]
    pub(crate) fn name(&self) -> &'static str {
        if self.words.is_empty() {
            "none"
        } else if self.words.iter().map(|word| &**word).eq(ENGLISH) {
            "english"
        } else {
            "custom"
        }
    }

    /// Sorted by their bytes, each once.
    pub(crate) fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }
}

impl Default for StopWords {
    fn default() -> Self {
        Self::english()
    }
}

fn refused(why: String) -> SettingError {
    SettingError::value("stopwords", why)
}

/// The first character that no token can have there: one that separates tokens, but for the
/// combining dot of `i̇`, the lower case of `İ`.
fn separator(word: &str, tokenizer: Tokenizer) -> Option<char> {
    let mut previous = None;
    word.chars().find(|&character| {
        let of_dotted_i = character == '\u{307}' && previous == Some('i');
        previous = Some(character);
        tokenizer.class(character) == Class::Separator && !of_dotted_i
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokenizer::for_each_token;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::fs;

    const WORDS: Tokenizer = Tokenizer::Words;

    fn read(bytes: &[u8]) -> Result<StopWords, SettingError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.txt");
        fs::write(&path, bytes).unwrap();
        StopWords::from_file(&path, WORDS, |word| WORDS.token_of(word), |path| fs::read(path))
    }

    fn words(stop_words: &StopWords) -> Vec<&str> {
        stop_words.words().collect()
    }

    #[test]
    fn the_english_list_is_sorted_and_complete() {
        let english = StopWords::english();
        assert_eq!(words(&english), ENGLISH);
        assert!(ENGLISH.iter().all(|word| english.contains(word)));
        for token in ["", "ab", "th", "thee", "The", "zz", "é", "\u{10FFFF}", "withal"] {
            assert!(!english.contains(token), "{token}");
        }
        assert_eq!(english.name(), "english");
        assert_eq!(StopWords::default(), english);
    }

    #[test]
    fn none_contains_nothing() {
        let none = StopWords::none();
        assert!(!none.contains("") && !none.contains("the"));
        assert_eq!((none.name(), none.words().len()), ("none", 0));
        assert_eq!(read(b"\n# nothing\n").unwrap(), none);
    }

    #[test]
    fn files_are_read_line_by_line() {
        let text = "\u{FEFF}# a comment, with words\r\n\r\n  Und\r\nder\n\tU\u{308}B\u{ad}ER \n  # more\nder\nİn\n2";
        let found = read(text.as_bytes()).unwrap();
        assert_eq!(words(&found), ["2", "der", "i\u{307}n", "und", "über"]);
        assert!(words(&found).iter().all(|word| found.contains(word)));
        assert_eq!(found.name(), "custom");
        assert_eq!(StopWords::from_words(words(&found), WORDS).unwrap(), found);
    }

    #[test]
    fn options_name_a_list_or_a_file() {
        let option = |value: &Path| {
            StopWords::from_option(value, WORDS, str::to_string, |path| fs::read(path))
        };
        assert_eq!(option(Path::new("english")).unwrap().name(), "english");
        assert_eq!(option(Path::new("none")).unwrap().name(), "none");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");
        let error = option(&path).unwrap_err();
        let expected = format!("stopwords: {}: ", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }

    #[test]
    fn lines_without_effect_are_errors() {
        let error = read(b"the\n\nof a\n").unwrap_err();
        assert!(error.to_string().ends_with("line 3: expected one stop word, found \"of a\""));
        let error = read(b"# x\nDon't\n").unwrap_err();
        assert!(
            error.to_string().ends_with(
                "line 2: the stop word \"don't\" is never a token, because '\\'' ends a token"
            ),
            "{error}"
        );
        for line in ["-", "a,b", "\u{307}", "\u{ad}", "a\u{200b}b", "a\0", "a\rb", "a\u{A0}b"] {
            assert!(read(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_errors() {
        let error = read(b"the\ncaf\xE9\n").unwrap_err();
        assert!(error.to_string().contains("byte 7: not UTF-8"), "{error}");
        let error = read(b"\xFF\xFEt\0").unwrap_err();
        assert!(error.to_string().contains("byte 0: not UTF-8"), "{error}");
    }

    #[test]
    fn lists_are_checked() {
        for word in ["", "The", "a b", "don't", "x\u{307}"] {
            let error = StopWords::from_words(["ok", word], WORDS).unwrap_err();
            assert!(
                error.to_string().contains(&format!("stop word {word:?} of the list")),
                "{error}"
            );
        }
    }

    #[test]
    fn only_the_dotted_i_lower_cases_to_what_separates() {
        for character in (char::MIN..=char::MAX).filter(|c| c.is_alphanumeric()) {
            let lowered = character.to_string().to_lowercase();
            assert_eq!(separator(&lowered, Tokenizer::FirstWords), None, "{character:?}");
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            3 => prop::sample::select(vec!['a', 'B', 'é', 'İ', 'Σ', '1', ' ', '\n', '\'', '\u{307}', '#']),
            1 => any::<char>(),
        ];
        vec(character, 0..20).prop_map(String::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn law_any_token_can_be_a_stop_word(text in texts(), other in texts()) {
            let mut tokens = Vec::new();
            for_each_token(text.as_bytes(), |token| tokens.push(token.to_string()));
            let list = StopWords::from_words(&tokens, WORDS);
            prop_assert!(list.is_ok());
            let list = list.unwrap();
            prop_assert!(tokens.iter().all(|token| list.contains(token)));
            prop_assert_eq!(list.contains(&other), tokens.contains(&other));
            let again = read(tokens.join("\n").as_bytes());
            prop_assert_eq!(again.unwrap(), list);
        }
    }
}
