//! Where the words of a text stand whose terms the analysis makes.

use super::analysis::Analysis;
use super::characters::{is_mark, is_unseen};
use super::tokenizer::Class;
use std::ops::Range;

/// What stands together: words are cut from it, or pairs of letters.
#[derive(Clone, Copy, PartialEq)]
enum Span {
    Border,
    Word,
    Letters,
}

/// Voice marks of half width belong to the letter before.
const VOICE_MARKS: [char; 2] = ['\u{ff9e}', '\u{ff9f}'];

impl Analysis {
    /// Calls `f` with each term of a text and the bytes where its word stands, in order. Words that
    /// folding parts stand in one place, and pairs of letters overlap.
    pub(crate) fn spans(&self, text: &str, mut f: impl FnMut(Range<usize>, &str)) {
        let mut kind = Span::Border;
        let mut start = 0;
        // Where the letters of a run of them begin.
        let mut letters: Vec<usize> = Vec::new();
        let mut end_run = |range: Range<usize>, kind, letters: &mut Vec<usize>| {
            let mut of = |place: Range<usize>| {
                self.terms(&text.as_bytes()[place.clone()], |term| f(place.clone(), term));
            };
            match kind {
                Span::Border => {}
                Span::Letters if letters.len() > 1 => {
                    letters.push(range.end);
                    letters.windows(3).for_each(|pair| of(pair[0]..pair[2]));
                }
                Span::Word | Span::Letters => of(range),
            }
            letters.clear();
        };
        for (at, letter) in text.char_indices() {
            let is_part = is_mark(letter) || is_unseen(letter) || VOICE_MARKS.contains(&letter);
            let here = match self.tokenizer.class(letter) {
                Class::Separator => Span::Border,
                _ if is_part && kind != Span::Border => continue,
                Class::Word => Span::Word,
                Class::Paired | Class::Joined => Span::Letters,
            };
            if here != kind {
                end_run(start..at, kind, &mut letters);
                (kind, start) = (here, at);
            }
            if here == Span::Letters {
                letters.push(at);
            }
        }
        end_run(start..text.len(), kind, &mut letters);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stemmer::Stemmer;
    use super::super::stop_words::StopWords;
    use super::super::tokenizer::Tokenizer;
    use super::*;
    use proptest::prelude::*;

    fn found(analysis: &Analysis, text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        analysis.spans(text, |place, term| found.push((text[place].to_string(), term.to_string())));
        found
    }

    #[test]
    fn words_stand_where_they_stand() {
        let shown = |analysis: &Analysis, text: &str| {
            let all = found(analysis, text);
            all.iter().map(|(word, term)| format!("{word}={term}")).collect::<Vec<_>>().join(" ")
        };
        let english = Analysis::default();
        assert_eq!(
            shown(&english, "The Mills-of Cafe\u{301}s, (running)"),
            "Mills=mill Cafe\u{301}s=café running=run"
        );
        assert_eq!(shown(&english, "Wort\u{ad}trennung"), "Wort\u{ad}trennung=worttrennung");
        let folded = Analysis { fold: true, ..Analysis::default() };
        assert_eq!(
            shown(&folded, "STRAẞE \u{2122} 2\u{bd} H\u{2082}O"),
            "STRAẞE=strass 2\u{bd}=2 2\u{bd}=1 2\u{bd}=2 H\u{2082}O=h2o"
        );
        let pairs = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
        assert_eq!(
            shown(&pairs, "mp3北京大学。年 ﾊﾟﾘ Mills"),
            "mp3=mp3 北京=北京 京大=京大 大学=大学 年=年 ﾊﾟﾘ=パリ Mills=mill"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// The terms in the places are those of the text, in order.
        #[test]
        fn oracle_spans_have_all_terms(parts in prop::collection::vec(prop_oneof![
            3 => any::<char>().prop_map(String::from),
            6 => prop::sample::select(vec!["mills", "The ", " ", "-", "É", "e\u{301}", "ß", "½", "2", "ﬁ", "\u{ad}", "हि", "Σ", "İ", "ı", "\u{307}"])
                .prop_map(String::from),
        ], 0..40), fold: bool, turkish: bool) {
            let text = parts.concat();
            for tokenizer in [Tokenizer::Words, Tokenizer::FirstWords, Tokenizer::Whitespace] {
                let stemmer = if turkish { Stemmer::TURKISH } else { Stemmer::default() };
                let fold = fold && tokenizer == Tokenizer::Words;
                let stop_words = StopWords::english();
                let analysis = Analysis { tokenizer, fold, stemmer, stop_words, ..Analysis::default() };
                let mut expected = Vec::new();
                analysis.terms(text.as_bytes(), |term| expected.push(term.to_string()));
                let terms: Vec<String> = found(&analysis, &text).into_iter().map(|of| of.1).collect();
                prop_assert_eq!(terms, expected);
            }
        }

        #[test]
        fn oracle_spans_of_pairs(text in "[ab 1。北京大学한국のガ]{0,24}") {
            let analysis = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
            let mut expected = Vec::new();
            analysis.terms(text.as_bytes(), |term| expected.push(term.to_string()));
            let terms: Vec<String> = found(&analysis, &text).into_iter().map(|of| of.1).collect();
            prop_assert_eq!(terms, expected);
        }
    }
}
