//! Stop words, which are never indexed: a list matched against lower-cased tokens before stemming,
//! `english`, `none`, or a list of the user's. The manifest stores the words themselves, so that an
//! index needs no file besides its own.
//!
//! A file holds one word a line in UTF-8. White space around a word is trimmed; blank lines, lines
//! that begin with `#`, what stands behind `|` (comments of Snowball, in whose lists a line may
//! have several words) and a byte order mark at the front are skipped. The analysis makes tokens of
//! a word. One that it cuts, as `don't`, gives only tokens of one or two letters and those that the
//! list has by themselves: `don` may be a name.

use super::tokenizer::{Class, Tokenizer};
use crate::settings::SettingError;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

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
    /// What a list has and no stop word stands for.
    left_out: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub enum StopList<'a> {
    /// The value of an option: `english`, `none`, or the path of a file, which is read whole.
    Named(&'a Path, fn(&Path) -> io::Result<Vec<u8>>),
    Words(&'a [String]),
}

impl StopList<'_> {
    /// `cut` makes tokens of a word. Fails if a file cannot be read or is not UTF-8, or a line has
    /// several words.
    pub(crate) fn read(
        self,
        tokenizer: Tokenizer,
        cut: impl Fn(&[u8]) -> Vec<String>,
    ) -> Result<StopWords, SettingError> {
        let (path, bytes) = match self {
            Self::Words(words) => return Ok(StopWords::of_list(words, tokenizer, cut)),
            Self::Named(name, _) if name == "english" => return Ok(StopWords::english()),
            Self::Named(name, _) if name == "none" => return Ok(StopWords::none()),
            Self::Named(path, read) => (path.display(), read(path)),
        };
        let bytes = bytes.map_err(|error| refused(format!("{path}: {error}")))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let offset = error.valid_up_to();
            refused(format!("{path}: byte {offset}: not UTF-8; give one word a line, in UTF-8"))
        })?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let comment = |line: &str| {
            let begins = |&at: &usize| at == 0 || line[..at].ends_with(char::is_whitespace);
            line.match_indices('|').map(|(at, _)| at).find(begins)
        };
        let is_snowball = text.lines().any(|line| comment(line).is_some());
        let mut words = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let word = line[..comment(line).unwrap_or(line.len())].trim();
            if word.is_empty() || word.starts_with('#') {
                continue;
            }
            if word.contains(char::is_whitespace) && !is_snowball {
                let word = shorten(word);
                let why = format!("{path}: line {number}: expected one stop word, found {word:?}");
                return Err(refused(why));
            }
            words.extend(word.split_whitespace());
        }
        Ok(StopWords::of_list(&words, tokenizer, cut))
    }
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

    fn of_list(
        words: &[impl AsRef<str>],
        tokenizer: Tokenizer,
        cut: impl Fn(&[u8]) -> Vec<String>,
    ) -> Self {
        let cut = |word: &str| (shorten(word), cut(word.as_bytes()));
        let words: Vec<_> = words.iter().map(|word| cut(word.as_ref())).collect();
        let alone = words.iter().filter(|(_, tokens)| tokens.len() == 1).flat_map(|(_, one)| one);
        let mut list: BTreeSet<&String> = alone.collect();
        // Bigrams of longer words are no words.
        let is_part = |letter: char| !letter.is_numeric() && tokenizer.class(letter) == Class::Word;
        let is_short = |token: &&String| token.chars().count() <= 2 && token.chars().all(is_part);
        list.extend(words.iter().flat_map(|(_, tokens)| tokens).filter(is_short));
        let mut left_out = Vec::new();
        for (word, tokens) in &words {
            let rest = tokens.iter().filter(|&token| !list.contains(token));
            left_out.extend(rest.map(|token| format!("{token} of {word}")));
            left_out.extend(tokens.is_empty().then(|| word.clone()));
        }
        let list = list.into_iter().map(|word| word.as_str().into()).collect();
        Self { left_out, ..Self::of(list) }
    }

    /// What of a list is left out, to be told.
    pub fn remark(&self) -> Option<String> {
        const TOLD: usize = 50;
        let (told, more) = self.left_out.split_at(self.left_out.len().min(TOLD));
        let more = if more.is_empty() { "" } else { ", ..." };
        let why = "these of the list are no stop words, because it has them only as parts of \
                   others, or they have no letter";
        (!told.is_empty()).then(|| format!("{why}: {}{more}", told.join(", ")))
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
        Self { words, starts: Box::new(starts), longest_bytes, left_out: Vec::new() }
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

/// The first character that no token can have there: one that separates tokens, except for the
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

    fn cut(tokenizer: Tokenizer, word: &[u8]) -> Vec<String> {
        let mut tokens = Vec::new();
        tokenizer.for_each_token(word, |token| tokens.push(token.to_string()));
        tokens
    }

    fn option(value: &Path) -> Result<StopWords, SettingError> {
        StopList::Named(value, |path| fs::read(path)).read(WORDS, |word| cut(WORDS, word))
    }

    fn read(bytes: &[u8]) -> Result<StopWords, SettingError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.txt");
        fs::write(&path, bytes).unwrap();
        option(&path)
    }

    fn of(tokenizer: Tokenizer, list: &[&str]) -> StopWords {
        let list = list.iter().map(ToString::to_string).collect::<Vec<_>>();
        StopList::Words(&list).read(tokenizer, |word| cut(tokenizer, word)).unwrap()
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
        for line in ["a\u{A0}b", "a|b\nof a"] {
            assert!(read(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn words_that_are_cut_give_short_tokens_and_those_of_the_list() {
        let lists: [(&[u8], &[&str], &str); 8] = [
            (b"Don't\nwon't\ndon\n", &["don", "t"], "won of won't"),
            (
                b"don\ndon't\nisn't\nisn\nwe'll\nyou\nyou've\n",
                &["don", "isn", "ll", "t", "ve", "we", "you"],
                "",
            ),
            (
                b"o'clock\na,b\nU.S.\n'tis\nC++\n",
                &["a", "b", "c", "o", "s", "tis", "u"],
                "clock of o'clock",
            ),
            (b"-\n\xcc\x87\n\xc2\xad\nthe\n", &["the"], "-, \u{307}, \u{ad}"),
            (b"a\xe2\x80\x8bb\na\0the\n", &["a", "b"], "the of a\0the"),
            ("don\u{2019}t\nn\u{2018}t\n".as_bytes(), &["n", "t"], "don of don\u{2019}t"),
            (b"e-mail\nmail-e\n", &["e"], "mail of e-mail, mail of mail-e"),
            (b"2.5\n100%\nx|y\n", &["100", "x", "y"], "2 of 2.5, 5 of 2.5"),
        ];
        for (file, expected, left_out) in lists {
            let found = read(file).unwrap();
            assert_eq!(words(&found), expected);
            let remark = found.remark().unwrap_or_default();
            assert_eq!(remark.rsplit("no letter: ").next().unwrap(), left_out);
            // As the manifest has them.
            let again = StopWords::from_words(words(&found), WORDS).unwrap();
            assert_eq!((again.remark(), words(&again)), (None, expected.to_vec()));
        }
        let many = (0..60).map(|n| format!("word{n}-x{n}xx")).collect::<Vec<_>>();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let told = of(WORDS, &many).remark().unwrap();
        assert!(told.contains("word24 of word24-x24xx") && told.ends_with("x24xx, ..."), "{told}");
        // Bigrams of a longer word are words of their own.
        let found = of(Tokenizer::CjkBigram, &["这个问题", "因为", "我", "Don't"]);
        assert_eq!(words(&found), ["t", "因为", "我"]);
        let told = found.remark().unwrap();
        assert!(told.contains("这个 of 这个问题") && told.contains("don of Don't"), "{told}");
    }

    #[test]
    fn comments_of_snowball_are_passed_over() {
        let file = "| An English list\r\n\r\ni              | subject, always in upper case\r\nme\t| object\r\n   | whole line\r\nit's | it is\r\na|b\r\n|\r\n# c\r\nmin\u{e4}   minun\tminut  | I, in Finnish";
        assert_eq!(
            words(&read(file.as_bytes()).unwrap()),
            ["a", "b", "i", "it", "me", "minun", "minut", "min\u{e4}", "s"]
        );
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
