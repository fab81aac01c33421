//! Folding, which takes spellings of a word for one: characters have their compatible forms (NFKC:
//! `H₂O`, `ﬁ`, full width), letters of Latin and Greek no marks, those of Hebrew and Arabic no
//! points, and some Latin letters become two, as in `Straße`. Letters of other scripts stay whole.
//!
//! It changes only words as the tokenizer finds them: signs that are no part of a word, as `™` and
//! `㎞`, still part words. A number is never joined with another one: `2½` is 2, 1 and 2, `10²` is
//! 10 and 2.

use super::characters::{goes_on, is_in, is_mark, is_unseen};
use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategoryGroup, Script};
use std::borrow::Cow;

const NFKD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();

/// Kinds of digits; only those of one kind stand together.
#[derive(Clone, Copy, PartialEq)]
enum Digit {
    Plain,
    Superscript,
    Subscript,
    /// A whole number by itself: `½`, `①`, `⑴`.
    Sign,
}

/// A text that is cut into the folded words. Where words are parted in it may change, and what
/// parts them does.
pub(super) fn folded(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        fold(chunk.valid(), &mut out);
        if !chunk.invalid().is_empty() {
            out.push(' ');
        }
    }
    Cow::Owned(out.into_bytes())
}

/// Letters stay decomposed, for the tokenizer composes what it finds.
fn fold(text: &str, out: &mut String) {
    let scripts = CodePointMapData::<Script>::new();
    let mut is_bare = false;
    for letter in NFKD.normalize(&parted(text)).chars() {
        if is_mark(letter) {
            if !is_bare && !is_point(letter) {
                out.push(letter);
            }
            continue;
        }
        is_bare = matches!(scripts.get(letter), Script::Latin | Script::Greek);
        match letter {
            'ß' | 'ẞ' => out.push_str("ss"),
            'æ' | 'Æ' => out.push_str("ae"),
            'œ' | 'Œ' => out.push_str("oe"),
            'þ' | 'Þ' => out.push_str("th"),
            'ø' | 'Ø' => out.push('o'),
            'đ' | 'Đ' => out.push('d'),
            'ł' | 'Ł' => out.push('l'),
            // Vowels of Thai and Lao that the normal form takes apart.
            '\u{e32}' | '\u{eb2}' if out.ends_with(['\u{e4d}', '\u{ecd}']) => {
                out.pop();
                out.push(if letter == '\u{e32}' { '\u{e33}' } else { '\u{eb3}' });
            }
            _ => out.push(letter),
        }
    }
}

/// Words alone, with spaces between them and between numbers that would become one.
fn parted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for letter in text.chars().filter(|&letter| !is_unseen(letter)) {
        let here = digit(letter);
        let are_two = before != here && before.is_some() && here.is_some();
        if are_two || before == Some(Digit::Sign) || here == Some(Digit::Sign) {
            out.push(' ');
        }
        out.push(if goes_on(letter) { letter } else { ' ' });
        before = here;
    }
    out
}

fn digit(letter: char) -> Option<Digit> {
    match letter {
        '0'..='9' => Some(Digit::Plain),
        _ if !letter.is_numeric() => None,
        '¹' | '²' | '³' | '\u{2070}'..='\u{2079}' => Some(Digit::Superscript),
        '\u{2080}'..='\u{2089}' => Some(Digit::Subscript),
        _ if is_in(GeneralCategoryGroup::DecimalNumber, letter) => Some(Digit::Plain),
        _ if NFKD.is_normalized(letter.encode_utf8(&mut [0; 4])) => None,
        _ => is_in(GeneralCategoryGroup::OtherNumber, letter).then_some(Digit::Sign),
    }
}

/// Whether a mark is a point of Hebrew or Arabic: a sign of a vowel or for reading aloud. The hamza
/// is none, but a part of a letter.
fn is_point(mark: char) -> bool {
    matches!(mark, '\u{591}'..='\u{5c7}' | '\u{fb1e}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{652}'
        | '\u{656}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}' | '\u{8ca}'..='\u{8ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::Analysis;
    use crate::text::stemmer::Stemmer;
    use crate::text::stop_words::{StopList, StopWords};
    use crate::text::tokenizer::{Class, Tokenizer};
    use icu_normalizer::ComposingNormalizerBorrowed;
    use proptest::prelude::*;

    fn analysis(tokenizer: Tokenizer, fold: bool) -> Analysis {
        let stop_words = StopWords::none();
        Analysis { tokenizer, fold, stemmer: Stemmer::NONE, stop_words, ..Analysis::default() }
    }

    fn tokens(tokenizer: Tokenizer, text: &str) -> String {
        let tokens = analysis(tokenizer, true).tokens(text.as_bytes());
        tokens.into_iter().map(|(token, _)| token).collect::<Vec<_>>().join(" ")
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(tokens(Tokenizer::Words, text), expected, "{text}");
    }

    #[test]
    fn compatible_characters_are_one() {
        check("H\u{2082}O CO\u{2082} km\u{b2} m\u{b3}", "h2o co2 km2 m3");
        check(
            "\u{b5}m \u{3bc}m \u{2126} \u{3a9} \u{212b} \u{212a}",
            "\u{3bc}m \u{3bc}m \u{3c9} \u{3c9} a k",
        );
        check("\u{ff2d}\u{ff30}\u{ff13} \u{ff21}\u{ff0e}\u{ff22}", "mp3 a b");
        check("\u{fb01}nd e\u{fb03}cient \u{17f}ee \u{132}s", "find efficient see ijs");
        check("\u{2163} \u{1d400}\u{1d401} \u{24b6} 1\u{2e2}\u{1d57} n\u{ba}", "iv ab a 1st no");
        // A name in Catalan is cut as it is where the dot is a character of its own.
        check("co\u{140}legi col\u{b7}legi", "col legi col legi");
        check("\u{fdfa}", "صلى الله عليه وسلم");
    }

    #[test]
    fn numbers_are_not_joined() {
        check(
            "2\u{bd} \u{ff12}\u{bd} \u{bd}kg kg\u{bd} \u{bd}\u{bc}",
            "2 1 2 2 1 2 1 2 kg kg 1 2 1 2 1 4",
        );
        check(
            "10\u{b2} 10\u{b2}\u{b3} log\u{2082}8 1990\u{b9} SO\u{2084}\u{b2}",
            "10 2 10 23 log2 8 1990 1 so4 2",
        );
        check(
            "\u{2460}\u{2461} \u{2474}a 3\u{2488} \u{3289}5 C\u{2081}\u{2082}",
            "1 2 1 a 3 1 十 5 c12",
        );
        check("\u{ff11}\u{ff12}3 \u{1d7cf}2 \u{663}\u{664}", "123 12 \u{663}\u{664}");
        check("10\u{207b}\u{b3} 5\u{2032}", "10 3 5");
    }

    #[test]
    fn marks_of_latin_greek_hebrew_and_arabic_are_dropped() {
        check(
            "Café cafe\u{301} Müller ệ Å ñ \u{130}stanbul Hà Nội",
            "cafe cafe muller e a n istanbul ha noi",
        );
        check("Ὀδυσσεύς ΆΛΦΑ ᾳ ϋ", "οδυσσευς αλφα α υ");
        check(
            "Straße STRAẞE Æon œuvre Øre đ ŁÓDŹ Þór ǽ ǿ",
            "strasse strasse aeon oeuvre ore d lodz thor ae o",
        );
        check("מוֹרֶה \u{fb4b} العَرَبِيَّة", "מורה ו العربية");
        check("q\u{323}\u{307} \u{301}x", "q x");
    }

    #[test]
    fn letters_of_others_stay_whole() {
        let others = "हिन्दी क़लम বিশ্ববিদ্যালয় తెలుగు தமிழ்நாடு ภาษาไทย น้ำ ນ້ຳ ພາສາລາວ မြန်မာ ខ្មែរ が ガ ﾊﾟ й Михаи\u{301}л \
                      أحمد إسلام آب ئ ؤ 한국어 각 北京 ქართული Հայերեն བོད་ ܫܠܡܐ";
        let unfolded = analysis(Tokenizer::Words, false).tokens(others.as_bytes());
        for ((token, _), word) in unfolded.iter().zip(others.split_whitespace()) {
            check(word, if word == "ﾊﾟ" { "パ" } else { token });
        }
        assert_eq!(unfolded.len(), others.split_whitespace().count());
        check("น\u{e49}\u{e4d}\u{e32}", "น้ำ");
    }

    #[test]
    fn signs_that_are_no_part_of_a_word_part_words() {
        check("Café\u{2122}x \u{2116}5 3\u{339e} \u{3f}a\u{2044}b \u{2103}", "cafe x 5 3 a b");
        assert_eq!(folded(b"a\xffe\xcc\x81\xe2\x82").as_ref(), b"a e ");
        assert!(matches!(folded(b"Plain, as it is."), Cow::Borrowed(_)));
    }

    #[test]
    fn bigrams_are_made_of_what_is_folded() {
        let cut = |text| tokens(Tokenizer::CjkBigram, text);
        assert_eq!(
            cut("ﾊﾟﾘ ガス ｶﾞｽ カ\u{3099}ス ＭＰ３プレーヤー"),
            "パリ ガス ガス ガス mp3 プレ レー ーヤ ヤー"
        );
        assert_eq!(cut("第①章 北½京 café北京 가\u{3133}"), "第 1 章 北 1 2 京 cafe 北京 갃");
    }

    #[test]
    fn stop_words_and_stems_are_those_of_folded_words() {
        let words = ["fu\u{308}r".to_string(), "daß".to_string(), "km²".to_string()];
        let german = "german".parse().ok();
        let list = Some(StopList::Words(&words));
        let german = Analysis::of(Tokenizer::Words, true, german, list).unwrap();
        assert_eq!(Vec::from_iter(german.stop_words.words()), ["dass", "fur", "km2"]);
        let mut terms = Vec::new();
        german.terms("Für FUR dass daß KM2 Häuser hauser".as_bytes(), |term| {
            terms.push(term.to_string())
        });
        assert_eq!(terms, ["haus", "haus"]);
        let error = Analysis::of(Tokenizer::Whitespace, true, None, None).unwrap_err();
        assert_eq!(error.to_string(), "fold does not go with tokenizer whitespace");
    }

    /// Whatever stands beside it, a character gives whole words of letters, digits and marks, which
    /// are in the composed compatible form and are folded to themselves. Of characters that nothing
    /// changes, one in 31.
    #[test]
    fn law_words_have_only_parts_of_words() {
        let nfkc = ComposingNormalizerBorrowed::new_nfkc();
        let thai = ["\u{e33}", "\u{eb3}"];
        let changes = |&letter: &char| {
            let is_odd = letter.is_numeric() || is_mark(letter) || is_unseen(letter);
            is_odd || !nfkc.is_normalized(letter.encode_utf8(&mut [0; 4]))
        };
        let is_tried = |letter: &char| changes(letter) || (*letter as u32).is_multiple_of(31);
        for letter in (char::MIN..=char::MAX).filter(is_tried) {
            let words =
                format!("{letter} a{letter}1 1{letter}1 x{letter}{letter} क{letter} 北{letter}京");
            for tokenizer in [Tokenizer::Words, Tokenizer::CjkBigram] {
                let cut = tokens(tokenizer, &words);
                for token in cut.split(' ') {
                    let is_part = |part| tokenizer.class(part) != Class::Separator;
                    assert!(token.chars().all(is_part), "{letter:?} {token:?}");
                    let is_normal =
                        thai.iter().any(|one| token.contains(one)) || nfkc.is_normalized(token);
                    assert!(is_normal, "{letter:?} {token:?}");
                }
                if tokenizer == Tokenizer::Words {
                    assert_eq!(tokens(tokenizer, &cut), cut, "{letter:?}");
                }
            }
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let letters = "aZ9é½²₂①⑴ﬁßÆ\u{301}\u{307}İΣάИй\u{306}ｶﾞ１Ａがか\u{3099}北京각가\u{11a8}\u{3133}ְשﷺ\u{64b}أ\u{654}ำ\u{e4d}\u{e32}\u{ad}\u{200b}\u{200d}™㎞· .-";
        let letter = prop::sample::select(letters.chars().collect::<Vec<_>>());
        let any = prop_oneof![9 => letter, 1 => any::<char>()];
        prop::collection::vec(any, 0..40).prop_map(|letters| letters.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        /// As the scanner and a device hand it over: in parts, and with ASCII in lower case.
        #[test]
        fn law_parts_of_a_text_fold_alike(text in texts(), other in texts()) {
            for tokenizer in [Tokenizer::Words, Tokenizer::CjkBigram] {
                let whole = tokens(tokenizer, &format!("{text} {other}"));
                let parts = format!("{} {}", tokens(tokenizer, &text), tokens(tokenizer, &other));
                prop_assert_eq!(&whole, parts.trim());
                prop_assert_eq!(tokens(tokenizer, &text.to_ascii_lowercase()), tokens(tokenizer, &text));
            }
        }

        #[test]
        fn law_equal_texts_fold_alike(text in texts()) {
            let apart = DecomposingNormalizerBorrowed::new_nfd().normalize(&text);
            prop_assert_eq!(tokens(Tokenizer::Words, &apart), tokens(Tokenizer::Words, &text));
        }
    }
}
