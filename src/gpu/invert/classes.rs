//! Classes of characters, by which a device finds forms. It knows no more of a character than its
//! [`Class`], which says where a run of letters and digits begins and ends.
//!
//! Of [`Tokenizer::Words`] a form is such a run as a whole. [`Tokenizer::CjkBigram`] makes pairs of
//! neighbouring letters of Chinese, Japanese and Korean, so that a run of *paired* letters is cut:
//! every two neighbours are a form, and one that stands alone is one. Whatever is not paired stays
//! together: voice marks change the letter before them, and the lower case of a Greek letter may
//! depend on what is around. If such a part begins or ends with a letter that makes pairs, a
//! *joined* one, the paired letter before or behind it belongs to both. So the words of a text are
//! those of its forms, in their order.

use crate::text::tokenizer::{Class, Tokenizer};
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes that say in which page of 256 characters a character is.
pub(crate) const PAGES: usize = (char::MAX as usize + 1) / 256;

/// Two bits for each character.
const PAGE_WORDS: usize = 16;

/// The classes of all characters, as kernels read them; equal pages are stored once.
#[derive(Clone, Debug)]
pub(crate) struct CharacterClasses {
    words: Vec<u32>,
}

/// No character of these is a part of a word: asking of each takes milliseconds.
const NO_LETTERS: [Range<u32>; 2] = [0x40000..0xe0000, 0xe1000..0x110000];

impl CharacterClasses {
    /// Made at the first call.
    ///
    /// # Panics
    /// If there were more than 256 kinds of pages.
    pub(crate) fn of(tokenizer: Tokenizer) -> &'static Self {
        static CLASSES: [OnceLock<CharacterClasses>; Tokenizer::OF_DEVICES] =
            [const { OnceLock::new() }; Tokenizer::OF_DEVICES];
        CLASSES[tokenizer as usize].get_or_init(|| Self::find(tokenizer))
    }

    fn find(tokenizer: Tokenizer) -> Self {
        let mut numbers = [0u8; PAGES];
        let mut pages = Vec::<[u32; PAGE_WORDS]>::new();
        let class = |code| match char::from_u32(code) {
            Some(letter) if !NO_LETTERS.iter().any(|none| none.contains(&code)) => {
                tokenizer.class(letter)
            }
            _ => Class::Separator,
        };
        for (number, first) in numbers.iter_mut().zip((0u32..).step_by(256)) {
            let mut page = [0; PAGE_WORDS];
            for (i, code) in (first..first + 256).enumerate() {
                page[i / PAGE_WORDS] |= (class(code) as u32) << (2 * (i % PAGE_WORDS));
            }
            let place = pages.iter().position(|other| *other == page).unwrap_or_else(|| {
                pages.push(page);
                pages.len() - 1
            });
            *number = u8::try_from(place).expect("most pages are equal to others");
        }
        let (numbers, _) = numbers.as_chunks::<4>();
        let numbers = numbers.iter().map(|&four| u32::from_le_bytes(four));
        Self { words: numbers.chain(pages.concat()).collect() }
    }

    /// A byte for each 256 characters, their page; then the pages.
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    fn class(&self, letter: char) -> Class {
        let page = letter as usize / 256;
        let i = letter as usize % 256;
        let page = usize::from(self.words[page / 4].to_le_bytes()[page % 4]);
        let word = self.words[PAGES / 4 + page * PAGE_WORDS + i / PAGE_WORDS];
        Class::ALL[(word >> (2 * (i % PAGE_WORDS)) & 3) as usize]
    }

    pub(super) fn form_at<'a>(&self, text: &'a [u8], start: usize) -> &'a [u8] {
        let text = &text[start..];
        // No form goes beyond this.
        let ends = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
        let text = &text[..text.iter().position(ends).unwrap_or(text.len())];
        let letters = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let mut before = None;
        for (at, letter) in letters.char_indices() {
            let here = self.class(letter);
            let end = at + letter.len_utf8();
            match (before, here) {
                (_, Class::Separator)
                | (Some(Class::Word), Class::Paired)
                | (Some(Class::Paired), Class::Word) => return &text[..at],
                (Some(_), Class::Paired) => return &text[..end],
                _ => before = Some(here),
            }
        }
        letters.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::invert::twin;
    use crate::text::analysis::Analysis;
    use proptest::prelude::*;

    fn tokens(analysis: &Analysis, text: &[u8]) -> Vec<String> {
        let mut tokens = Vec::new();
        analysis.for_each_token(text, |token| tokens.push(token.to_owned()));
        tokens
    }

    /// The words of the forms of a text, as a device finds these, are those of the text.
    fn check(text: &[u8]) {
        for n in 0..2 * Tokenizer::OF_DEVICES {
            let tokenizer = Tokenizer::ALL[n / 2];
            // The first version of the analysis folds nothing.
            let fold = n % 2 == 1 && tokenizer.version() > 1;
            let analysis = Analysis { tokenizer, fold, ..Analysis::default() };
            let prepared = &*analysis.prepared(text);
            let classes = CharacterClasses::of(tokenizer);
            let starts = twin::tokens(tokenizer, prepared);
            let forms = starts.iter().map(|&at| classes.form_at(prepared, at as usize));
            let words = forms.flat_map(|form| tokens(&analysis, &form.to_ascii_lowercase()));
            let expected = tokens(&analysis, text);
            assert_eq!(words.collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn classes_are_those_of_the_tokenizer() {
        for &tokenizer in &Tokenizer::ALL[..Tokenizer::OF_DEVICES] {
            let classes = CharacterClasses::of(tokenizer);
            assert!((char::MIN..=char::MAX).all(|c| classes.class(c) == tokenizer.class(c)));
            assert!(classes.words.len() < 4000, "{}", classes.words.len());
        }
    }

    #[test]
    fn forms_are_parts_of_stretches() {
        let forms = |tokenizer, text: &str| {
            let starts = twin::tokens(tokenizer, text.as_bytes());
            let form =
                |&at: &u32| CharacterClasses::of(tokenizer).form_at(text.as_bytes(), at as usize);
            Vec::from_iter(starts.iter().map(|at| str::from_utf8(form(at)).unwrap())).join(" ")
        };
        let text =
            "don\u{2019}t\u{2014}na\u{ef}ve\u{3000}\u{5317}\u{4eac}\u{5927}\u{3001}\u{5b66}2026";
        assert_eq!(
            forms(Tokenizer::Words, text),
            "don t na\u{ef}ve \u{5317}\u{4eac}\u{5927} \u{5b66}2026"
        );
        assert_eq!(
            forms(Tokenizer::CjkBigram, text),
            "don t na\u{ef}ve \u{5317}\u{4eac} \u{4eac}\u{5927} \u{5b66} 2026"
        );
        // A mark that lengthens a vowel, and a letter that may have a voice mark behind it.
        let text = "\u{30e9}\u{30fc}\u{30e1}\u{30f3}\u{5c4b} a\u{30fc}\u{5317} \u{5317}\u{30ab}\u{ff9e}\u{4eac}";
        assert_eq!(
            forms(Tokenizer::CjkBigram, text),
            "\u{30e9}\u{30fc}\u{30e1} \u{30e1}\u{30f3} \u{30f3}\u{5c4b} a\u{30fc}\u{5317} \u{5317}\u{30ab}\u{ff9e}\u{4eac}"
        );
    }

    /// Beside characters that change with what is around; of ideographs and syllables one in 31.
    #[test]
    fn law_every_letter_may_stand_anywhere() {
        let is_one = |&c: &char| {
            let is_of_many = matches!(c, '\u{3400}'..='\u{d7a3}' | '\u{10000}'..);
            Tokenizer::Words.class(c) != Class::Separator
                && (!is_of_many || (c as u32).is_multiple_of(31))
        };
        for c in (char::MIN..=char::MAX).filter(is_one) {
            let text = format!(
                "{c} {c}{c} {c}\u{3a3} \u{3b1}\u{3a3}{c}\u{3b1} \u{3a3}{c}a \u{3b1}{c}\u{3a3} \u{5317}{c}\u{4eac} \u{ff76}{c}\u{ff9e}\u{ff9f} \u{30ab}{c} {c}\u{30fc}{c}"
            );
            check(text.as_bytes());
        }
    }

    /// Two bytes that are no character, between which one is left out, become none.
    #[test]
    fn broken_characters_stay_apart() {
        let text = b"\xe5\x8c\x97\xcc\xe2\x80\x8d\x80\xe5\x8c\x97";
        check(text);
        let bigrams = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
        assert_eq!(tokens(&bigrams, text), ["\u{5317}", "\u{5317}"]);
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let letters = "aZ9\u{e9}\u{3a3}\u{3c3}\u{130}\u{307}\u{2bc}\u{5317}\u{4eac}\u{3005}\u{3007}\u{3072}\u{30ab}\u{30ca}\u{30fc}\u{ff76}\u{ff9e}\u{ff9f}\u{ff21}\u{d6c8}\u{1112}\u{20000}\u{30fb}\u{3002}\u{2019}\u{2014}\u{3000} -\u{10400}\u{5d0}\u{e01}\u{94d}\u{ad}\u{200b}\u{200d}\u{fe0f}\u{e0100}\u{301}\u{3099}\u{1161}\u{11a8}\u{304b}\u{ac00}\u{f900}\u{bd}\u{b2}\u{2460}\u{fb01}\u{df}\u{3133}\u{2122}\u{e4d}\u{e32}";
        let letter = prop::sample::select(letters.chars().collect::<Vec<_>>());
        let cut: Vec<&'static [u8]> = vec![
            b"\xc3",
            b"\xe2\x80",
            b"\xe5\x8c",
            b"\xf0\x9f\x98",
            b"\xed\xa0\x80",
            b"\xc0\xaf",
            b"\xe0\x80\xaf",
            b"\xf4\x90\x80\x80",
            b"\xf0\x8c\x97\x80",
        ];
        let piece = prop_oneof![
            12 => letter.prop_map(|c| c.to_string().into_bytes()),
            1 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
            1 => any::<u8>().prop_map(|byte| vec![byte]),
            1 => prop::sample::select(cut).prop_map(<[u8]>::to_vec),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn oracle_words_of_forms_are_those_of_the_text(text in bytes()) {
            check(&text);
        }
    }
}
