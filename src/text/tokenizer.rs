//! The plain tokenizer: a token is a maximal run of [`char::is_alphanumeric`] and of what goes on
//! with the letter before it, lower-cased as a whole and composed ([`characters`]). Queries go
//! through it, and a faster one must give the same tokens.
//!
//! Bytes that are not UTF-8 count as U+FFFD, as in [`String::from_utf8_lossy`], which separates
//! tokens. Whole tokens are lower-cased because the form of a letter can depend on its neighbours:
//! `Σ` becomes `ς` at the end of a word.
//!
//! Indexes of the first version of the analysis are asked as they were made: there marks and what
//! is not seen separated tokens, and nothing was composed.

mod cjk;

use super::characters;
use std::borrow::Cow;

/// The version of the analysis that indexes record, none being the first: raised when a text can
/// have other terms, so that rebuilds make an index again and no index mixes two analyses.
pub(crate) const ANALYSIS_VERSION: u32 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenizer {
    /// Words of letters and digits: [`for_each_token`].
    #[default]
    Words,
    /// The same, but Chinese, Japanese and Korean letters become overlapping bigrams.
    CjkBigram,
    /// The two of the first version of the analysis.
    FirstWords,
    FirstCjkBigram,
    /// What stands between white space, as it is. No device knows it.
    Whitespace,
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
        let is_part = match self {
            Self::Words | Self::CjkBigram => characters::goes_on(character),
            Self::FirstWords | Self::FirstCjkBigram => character.is_alphanumeric(),
            Self::Whitespace => !character.is_whitespace(),
        };
        match self {
            _ if !is_part => Class::Separator,
            Self::CjkBigram | Self::FirstCjkBigram => cjk::class(character),
            _ => Class::Word,
        }
    }

    pub(crate) const ALL: [Self; 5] =
        [Self::Words, Self::CjkBigram, Self::FirstWords, Self::FirstCjkBigram, Self::Whitespace];

    /// Those that a device knows.
    pub(crate) const OF_DEVICES: usize = Self::ALL.len() - 1;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words | Self::FirstWords => "words",
            Self::CjkBigram | Self::FirstCjkBigram => "cjk-bigram",
            Self::Whitespace => "whitespace",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    /// The manifest's entries, its name and version: none for the default and for the first.
    pub(crate) fn recorded(self) -> (Option<String>, Option<u32>) {
        let version = (self.version() > 1).then_some(self.version());
        ((self.name() != Self::default().name()).then(|| self.name().to_string()), version)
    }

    /// From the manifest's entries; none if one of them is not known.
    pub(crate) fn of_record(name: Option<&str>, version: Option<u32>) -> Option<Self> {
        let name = name.unwrap_or(Self::default().name());
        let version = version.unwrap_or(1);
        Self::ALL.into_iter().find(|known| known.name() == name && known.version() == version)
    }

    /// Of the analysis.
    pub(crate) fn version(self) -> u32 {
        match self {
            Self::FirstWords | Self::FirstCjkBigram => 1,
            Self::Words | Self::CjkBigram | Self::Whitespace => ANALYSIS_VERSION,
        }
    }

    /// The token that a run of parts of a word is; empty if it is none.
    pub(super) fn token_of(self, run: &str) -> String {
        match self {
            Self::Words | Self::CjkBigram => characters::token_of(run),
            Self::FirstWords | Self::FirstCjkBigram => run.to_lowercase(),
            Self::Whitespace => run.to_string(),
        }
    }

    /// The text as it is cut into bigrams: without marks of their letters.
    pub(crate) fn without_marks(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::CjkBigram if !text.is_ascii() => characters::changed(text, |before, letter| {
                let is_cut = |before| cjk::class(before) != Class::Word;
                (!characters::is_mark(letter) || !before.is_some_and(is_cut)).then_some(letter)
            }),
            _ => Cow::Borrowed(text),
        }
    }

    /// Calls `f` with each token in order, lower-cased except for [`Whitespace`](Self::Whitespace).
    /// The others agree on ASCII.
    pub(crate) fn for_each_token(self, text: &[u8], mut f: impl FnMut(&str)) {
        match self {
            Self::Words | Self::FirstWords => self.for_each_run(text, &mut f),
            Self::CjkBigram | Self::FirstCjkBigram => {
                let text = self.without_marks(text);
                self.for_each_run(&text, &mut |token: &str| cjk::for_each_part(token, &mut f));
            }
            Self::Whitespace => {
                for chunk in text.utf8_chunks() {
                    chunk.valid().split_whitespace().for_each(&mut f);
                }
            }
        }
    }

    /// Takes linear time. A token of ASCII characters costs no allocation, since all share one
    /// buffer, and none is copied that is lower case already.
    fn for_each_run(self, text: &[u8], f: &mut impl FnMut(&str)) {
        let mut lowered = String::new();
        match std::str::from_utf8(text) {
            Ok(text) => self.for_each_run_of_str(text, &mut lowered, f),
            // Two chunks are always parted by bytes that are not UTF-8, hence by a separator.
            Err(_) => {
                for chunk in text.utf8_chunks() {
                    self.for_each_run_of_str(chunk.valid(), &mut lowered, f);
                }
            }
        }
    }

    fn for_each_run_of_str(self, text: &str, lowered: &mut String, f: &mut impl FnMut(&str)) {
        let mut at = 0;
        loop {
            let run = self.run_at(text, at);
            if !run.text.is_empty() {
                at += run.text.len();
                if !run.is_ascii {
                    let token = self.token_of(run.text);
                    if !token.is_empty() {
                        f(&token);
                    }
                } else if run.has_upper {
                    lowered.clear();
                    lowered.push_str(run.text);
                    lowered.make_ascii_lowercase();
                    f(lowered);
                } else {
                    f(run.text);
                }
            }
            match text[at..].chars().next() {
                Some(separator) => at += separator.len_utf8(),
                None => return,
            }
        }
    }

    /// The run that begins at byte `start`; empty before a separator or the end.
    fn run_at(self, text: &str, start: usize) -> Run<'_> {
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
                    Some(character) if self.class(character) != Class::Separator => {
                        end += character.len_utf8();
                    }
                    _ => break,
                }
                is_ascii = false;
            }
        }
        Run { text: &text[start..end], is_ascii, has_upper }
    }
}

/// Calls `f` with each token of `text`, lower-cased, in order.
pub fn for_each_token(text: &[u8], f: impl FnMut(&str)) {
    Tokenizer::Words.for_each_token(text, f);
}

struct Run<'a> {
    text: &'a str,
    is_ascii: bool,
    /// Has a letter from A to Z.
    has_upper: bool,
}

#[cfg(test)]
mod tests {
    use super::characters::{is_mark, is_unseen, token_of};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn tokens(text: &[u8]) -> Vec<String> {
        let mut tokens = Vec::new();
        for_each_token(text, |token| tokens.push(token.to_string()));
        tokens
    }

    /// The contract, word by word.
    fn naive(tokenizer: Tokenizer, text: &[u8]) -> Vec<String> {
        let is_first = tokenizer == Tokenizer::FirstWords;
        let goes_on = |c: char| c.is_alphanumeric() || (!is_first && (is_mark(c) || is_unseen(c)));
        String::from_utf8_lossy(text)
            .split(|c: char| !goes_on(c))
            .map(|run| match is_first {
                true => run.to_lowercase(),
                false => token_of(run),
            })
            .filter(|token| !token.is_empty())
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
        assert_eq!(tokens("I\u{307}STANBUL".as_bytes()), ["i\u{307}stanbul"]);
    }

    /// The words of the first version: an index that was made with it is asked with them.
    #[test]
    fn the_first_version_cuts_at_marks() {
        let first = |text: &str| {
            let mut tokens = Vec::new();
            Tokenizer::FirstWords.for_each_token(text.as_bytes(), |t| tokens.push(t.to_string()));
            tokens
        };
        assert_eq!(first("i\u{307}x"), ["i", "x"]);
        assert_eq!(
            first("हिन्दी cafe\u{301} Wort\u{ad}trennung"),
            ["हिन", "दी", "cafe", "wort", "trennung"]
        );
        assert_eq!(first("\u{212b}ngström İS"), ["ångström", "i\u{307}s"]);
    }

    #[test]
    fn marks_go_on_with_a_word() {
        for word in [
            "हिन्दी",
            "বিশ্ববিদ্যালয়",
            "తెలుగు",
            "தமிழ்நாடு",
            "เครื่องบิน",
            "မြန်မာ",
            "ខ្មែរ",
            "מוֹרֶה",
            "ਪੰਜਾਬੀ",
            "ગુજરાતી",
            "ಕನ್ನಡ",
            "മലയാളം",
            "සිංහල",
            "བོད་",
            "العَرَبِيَّة",
            "q\u{323}\u{307}",
        ] {
            assert_eq!(tokens(word.as_bytes()).len(), 1, "{word}");
        }
        let composed = "café михаи́л ångström ệ 각";
        let parted = "cafe\u{301} Михаи\u{301}л A\u{30a}ngstro\u{308}m E\u{302}\u{323} 가\u{11a8}";
        assert_eq!(tokens(parted.as_bytes()), tokens(composed.as_bytes()));
        assert_eq!(tokens("\u{212b}ngström".as_bytes()), tokens("a\u{30a}ngström".as_bytes()));
    }

    #[test]
    fn what_is_not_seen_is_no_part_of_a_token() {
        for unseen in "\u{ad}\u{200c}\u{200d}\u{2060}\u{200e}\u{200f}\u{202a}\u{2066}\u{feff}\u{34f}\u{61c}\u{180e}\u{fe00}\u{fe0f}\u{e0020}\u{e0100}".chars() {
            let text = format!("{unseen}Wort{unseen}TRENNUNG{unseen} {unseen} {unseen}\u{301}x{unseen}");
            assert_eq!(tokens(text.as_bytes()), ["worttrennung", "x"], "{unseen:?}");
        }
        assert_eq!(tokens("a\u{200b}b".as_bytes()), ["a", "b"]);
        assert_eq!(
            tokens("\u{301} \u{200d} 👨\u{200d}👩 ❤\u{fe0f} 1\u{fe0f}\u{20e3}".as_bytes()),
            ["1\u{20e3}"]
        );
    }

    #[test]
    fn text_that_is_cut_stays_as_it_is() {
        let mut found = Vec::new();
        let text = b"play ##ing  C++\tof\xff\xc3\xa9\n\xe3\x80\x80The_NN \"x\"";
        Tokenizer::Whitespace.for_each_token(text, |token| found.push(token.to_string()));
        assert_eq!(found, ["play", "##ing", "C++", "of", "é", "The_NN", "\"x\""]);
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
            2 => prop::sample::select(vec!["İ", "Σ", "ß", "ẞ", "é", "\u{307}", "ǅ", "٣", "¾", "北", "\u{FFFD}", "𐐀", "\u{ad}", "\u{200b}", "\u{301}", "e\u{301}", "हि"])
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
            for tokenizer in [Tokenizer::Words, Tokenizer::FirstWords] {
                let mut found = Vec::new();
                tokenizer.for_each_token(&text, |token| found.push(token.to_string()));
                prop_assert_eq!(found, naive(tokenizer, &text));
            }
        }
    }
}
