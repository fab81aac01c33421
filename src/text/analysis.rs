//! Analysis of texts into terms, the same for documents and queries: tokens, less the stop words,
//! stemmed, cut to [`MAX_TERM_BYTES`].

use super::characters;
use super::fold::folded;
use super::stemmer::Stemmer;
use super::stop_words::{StopList, StopWords};
use super::tokenizer::Tokenizer;
use crate::settings::SettingError;
use std::borrow::Cow;

/// The longest term; a longer stem is cut at the last border of a character before.
pub(crate) const MAX_TERM_BYTES: usize = 255;

/// Places that lie between the parts of a document, such as the items of a list: more than any
/// slop.
pub(crate) const PART_GAP: u32 = 100;

/// The default is English.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    pub tokenizer: Tokenizer,
    /// Spellings of a word are taken for one.
    pub fold: bool,
    pub stemmer: Stemmer,
    pub stop_words: StopWords,
    /// Bytes from 1 to 31 part tokens that stand between white space: they are numbers of fields.
    pub parts_at_controls: bool,
}

impl Analysis {
    /// What is not given is English, and nothing for text that is
    /// [cut already](Tokenizer::Whitespace), which cannot be folded.
    pub fn of(
        tokenizer: Tokenizer,
        fold: bool,
        stemmer: Option<Stemmer>,
        stop_words: Option<StopList<'_>>,
    ) -> Result<Self, SettingError> {
        let is_cut = tokenizer == Tokenizer::Whitespace;
        if is_cut && fold {
            return Err(SettingError::together("fold", "tokenizer whitespace"));
        }
        let usual = if is_cut { Stemmer::NONE } else { Stemmer::default() };
        let stemmer = stemmer.unwrap_or(usual);
        let none = StopWords::none();
        let mut analysis = Self { tokenizer, fold, stemmer, stop_words: none, ..Self::default() };
        let usual = if is_cut { StopWords::none() } else { StopWords::english() };
        let read = |list: StopList<'_>| list.read(tokenizer, |word| analysis.cut(word));
        analysis.stop_words = stop_words.map_or(Ok(usual), read)?;
        Ok(analysis)
    }

    /// Of terms that somebody else has made of the texts, and that stay as they are.
    pub(crate) fn of_given_terms() -> Self {
        Self { stemmer: Stemmer::NONE, stop_words: StopWords::none(), ..Self::default() }
    }

    fn is_turkish(&self) -> bool {
        let lowers = matches!(self.tokenizer, Tokenizer::Words | Tokenizer::CjkBigram);
        lowers && self.stemmer == Stemmer::TURKISH
    }

    /// The text as it is cut into tokens, which lower-case all letters but those that are lower
    /// case already: the same text except for Turkish, and for the numbers of fields.
    #[inline]
    pub(crate) fn lowered<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_turkish() {
            true => characters::with_turkish_i(text),
            false if self.parts_at_controls => {
                let part = |&byte: &u8| if (1..32).contains(&byte) { b' ' } else { byte };
                Cow::Owned(text.iter().map(part).collect())
            }
            false => Cow::Borrowed(text),
        }
    }

    /// A part of a lowered text, such that its tokens are those of the tokenizer.
    #[inline]
    pub(crate) fn folded<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        if self.fold { folded(text) } else { Cow::Borrowed(text) }
    }

    /// Calls `f` with each token of a part of a lowered text, in order.
    pub(crate) fn for_each_token(&self, text: &[u8], f: impl FnMut(&str)) {
        self.tokenizer.for_each_token(&self.folded(text), f);
    }

    /// Whether a device gets texts that are not as they were read.
    pub(crate) fn prepares(&self) -> bool {
        self.is_turkish() || self.tokenizer == Tokenizer::CjkBigram
    }

    /// The text for a device, which cuts it into forms; folded before, if it cuts words too.
    pub(crate) fn prepared<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let text = self.lowered(text);
        if self.tokenizer != Tokenizer::CjkBigram || text.is_ascii() {
            return text;
        }
        Cow::Owned(self.tokenizer.without_marks(&self.folded(&text)).into_owned())
    }

    /// The term of a lower-cased token; `None` for a stop word or if nothing is left.
    #[inline]
    #[must_use]
    pub(crate) fn analyze_token<'a>(&self, lowercased: &'a str) -> Option<Cow<'a, str>> {
        if self.stop_words.contains(lowercased) {
            return None;
        }
        let term = match self.stemmer.stem(lowercased) {
            Cow::Borrowed(stem) => Cow::Borrowed(&stem[..term_len(stem)]),
            Cow::Owned(mut stem) => {
                stem.truncate(term_len(&stem));
                Cow::Owned(stem)
            }
        };
        (!term.is_empty()).then_some(term)
    }

    /// Calls `f` with each term of `text` in order; their number is the length of a document.
    pub fn terms(&self, text: &[u8], mut f: impl FnMut(&str)) {
        self.places(text, |term| term.into_iter().for_each(&mut f));
    }

    /// The same, and with nothing in the places of stop words.
    pub(crate) fn places(&self, text: &[u8], mut f: impl FnMut(Option<&str>)) {
        self.for_each_token(&self.lowered(text), |token| {
            f(self.analyze_token(token).as_deref());
        });
    }

    pub fn tokens(&self, text: &[u8]) -> Vec<(String, Option<String>)> {
        let term = |token: &str| self.analyze_token(token).map(Cow::into_owned);
        self.cut(text).into_iter().map(|token| (token.clone(), term(&token))).collect()
    }

    fn cut(&self, text: &[u8]) -> Vec<String> {
        let mut tokens = Vec::new();
        self.for_each_token(&self.lowered(text), |token| tokens.push(token.to_string()));
        tokens
    }
}

#[inline]
fn term_len(stem: &str) -> usize {
    cut_to(MAX_TERM_BYTES, stem)
}

/// Bytes of a stem that is cut to this many, which are more than three, at a border of a character.
#[inline]
pub(crate) fn cut_to(most: usize, stem: &str) -> usize {
    if stem.len() <= most {
        return stem.len();
    }
    // A character has at most four bytes.
    (most - 3..=most).rfind(|&end| stem.is_char_boundary(end)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn analysis(stemmer: &str, stop_words: StopWords) -> Analysis {
        Analysis { stemmer: stemmer.parse().unwrap(), stop_words, ..Analysis::default() }
    }

    fn terms(analysis: &Analysis, text: &[u8]) -> Vec<String> {
        let mut terms = Vec::new();
        analysis.terms(text, |term| terms.push(term.to_string()));
        terms
    }

    #[test]
    fn stop_words_are_matched_before_stemming() {
        let analysis = analysis(
            "english",
            StopWords::from_words(["running", "this"], Tokenizer::Words).unwrap(),
        );
        assert_eq!(terms(&analysis, b"THIS Running runs, run: thi"), ["run", "run", "thi"]);
    }

    #[test]
    fn settings_are_heeded() {
        let text = b"The Happy generalizations";
        assert_eq!(terms(&Analysis::default(), text), ["happi", "general"]);
        let porter = analysis("porter", StopWords::none());
        assert_eq!(terms(&porter, text), ["the", "happi", "gener"]);
        let none = analysis("none", StopWords::none());
        assert_eq!(terms(&none, text), ["the", "happy", "generalizations"]);
    }

    #[test]
    fn bigrams_are_terms_of_documents_and_queries() {
        let bigrams = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
        let text = "The Mills of 北京大学".as_bytes();
        assert_eq!(terms(&bigrams, text), ["mill", "北京", "京大", "大学"]);
        assert_eq!(terms(&Analysis::default(), text), ["mill", "北京大学"]);
    }

    #[test]
    fn long_terms_are_cut_at_a_character() {
        let none = analysis("none", StopWords::none());
        for (token, expected) in [
            ("a".repeat(255), 255),
            ("a".repeat(256), 255),
            ("é".repeat(127) + "a", 255),
            ("é".repeat(128), 254),
            ("北".repeat(86), 255),
            ("a".to_string() + &"北".repeat(86), 253),
            ("𐐨".repeat(64), 252),
        ] {
            let term = none.analyze_token(&token).unwrap();
            assert_eq!(term.len(), expected);
            assert!(token.starts_with(&*term));
        }
        // It is the stem that is cut: here the token alone is too long.
        let stem = "x".repeat(250) + "oat";
        let token = stem.clone() + "ing";
        assert_eq!(analysis("porter", StopWords::none()).analyze_token(&token).unwrap(), stem);
    }

    #[test]
    fn an_empty_stem_is_no_term() {
        let analysis = analysis("none", StopWords::none());
        assert_eq!(analysis.analyze_token(""), None);
    }

    #[test]
    fn english_terms_of_endless_tokens_are_as_if_stemmed() {
        let snowball = rust_stemmers::Stemmer::create(rust_stemmers::Algorithm::English);
        let analysis = Analysis::default();
        for middle in ["ay", "y", "x", "ational", "e", "ss", "ing"] {
            for ending in ["", "ational", "fulnesses", "ying", "iveness", "ll", "eed", "ies"] {
                let token = middle.repeat(6000 / middle.len()) + ending;
                let stem = snowball.stem(&token);
                assert_eq!(analysis.analyze_token(&token).unwrap(), stem[..MAX_TERM_BYTES]);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn law_terms_have_1_to_255_bytes(
            parts in vec(prop::sample::select(vec!["a", "é", "北", "ing", "ﻻ", "ς", "و", "்"]), 0..300)
        ) {
            let token = parts.concat();
            for stemmer in Stemmer::all() {
                let analysis = Analysis { stemmer, stop_words: StopWords::none(), ..Analysis::default() };
                if let Some(term) = analysis.analyze_token(&token) {
                    prop_assert!((1..=MAX_TERM_BYTES).contains(&term.len()));
                    prop_assert!(stemmer.stem(&token).starts_with(&*term));
                }
            }
        }
    }
}
