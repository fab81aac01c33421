//! Text with few spaces between words, or none, in which a query finds words only if a tokenizer
//! knows how to cut it.

use super::tokenizer::Tokenizer;
use icu_properties::CodePointMapData;
use icu_properties::props::Script;
use std::fmt;

/// Which letters such a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unspaced {
    /// Han, Hiragana, Katakana, Hangul, of which bigrams are made.
    Paired,
    /// Thai, Lao, Khmer, Burmese, of which nothing is made yet.
    Uncut,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LetterCounts {
    all: u64,
    paired: u64,
    uncut: u64,
}

impl LetterCounts {
    pub(crate) fn add(&mut self, text: &[u8]) {
        if text.is_ascii() {
            self.all += text.iter().filter(|byte| byte.is_ascii_alphabetic()).count() as u64;
            return;
        }
        let scripts = CodePointMapData::<Script>::new();
        let letters = text.utf8_chunks().flat_map(|chunk| chunk.valid().chars());
        for letter in letters.filter(|letter| letter.is_alphabetic()) {
            self.all += 1;
            match scripts.get(letter) {
                Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul => {
                    self.paired += 1;
                }
                Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar => self.uncut += 1,
                _ => {}
            }
        }
    }

    /// What is more than one of this many letters, if the tokenizer does not cut it.
    pub(crate) fn over(self, part: u64, tokenizer: Tokenizer) -> impl Iterator<Item = Unspaced> {
        [Unspaced::Paired, Unspaced::Uncut].into_iter().filter(move |unspaced| {
            let (count, is_cut) = match unspaced {
                Unspaced::Paired => (self.paired, tokenizer.name() == "cjk-bigram"),
                Unspaced::Uncut => (self.uncut, false),
            };
            count * part > self.all && !is_cut && tokenizer != Tokenizer::Whitespace
        })
    }
}

impl fmt::Display for Unspaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paired => {
                "Chinese, Japanese or Korean, in which words are not parted by spaces, or not \
                 alone: the tokenizer cjk-bigram finds words in such text"
            }
            Self::Uncut => {
                "Thai, Lao, Khmer or Burmese, in which words are not parted by spaces: there is no \
                 tokenizer yet that finds words in such text"
            }
        })
    }
}
