//! What the tokenizer knows of characters beyond ASCII: which go on with a word, which are no part
//! of its term, and one spelling for equal texts.
//!
//! A mark belongs to the letter before it, and so does what is not seen: soft hyphens, joiners,
//! marks of direction, variation selectors (Unicode Standard Annex 29, rule WB4). What is not seen
//! is no part of a term. U+200B, the space without width, is a border between words.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};
use std::borrow::Cow;

/// Earlier characters are no marks.
const FIRST_MARK: char = '\u{300}';

pub(super) fn is_in(group: GeneralCategoryGroup, character: char) -> bool {
    group.contains(CodePointMapData::<GeneralCategory>::new().get(character))
}

pub(super) fn is_mark(character: char) -> bool {
    character >= FIRST_MARK && is_in(GeneralCategoryGroup::Mark, character)
}

/// Whether a word goes on at a character that is no part of its term.
pub(super) fn is_unseen(character: char) -> bool {
    match character {
        '\u{200b}' => false,
        // Most letters, without a look into tables.
        ..='\u{ac}' | '\u{ae}'..='\u{34e}' | '\u{350}'..='\u{5ff}' => false,
        '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => false,
        _ => {
            is_in(GeneralCategoryGroup::Format, character)
                || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(character)
        }
    }
}

/// Letters of the alphabets and characters that most words are written in, without a search in
/// tables, which a word that is new to a parser does for each of its letters.
fn is_common(character: char) -> bool {
    matches!(
        character,
        '\u{3a3}'..='\u{3f5}'
            | '\u{400}'..='\u{481}'
            | '\u{48a}'..='\u{52f}'
            | '\u{5d0}'..='\u{5ea}'
            | '\u{620}'..='\u{64a}'
            | '\u{905}'..='\u{939}'
            | '\u{3041}'..='\u{3096}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
    )
}

/// Whether a character is a part of a word, which does not begin with a mark.
pub(super) fn goes_on(character: char) -> bool {
    is_common(character)
        || character.is_alphanumeric()
        || is_mark(character)
        || is_unseen(character)
}

/// In the composed form, which is the same for equal texts.
fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

fn seen(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_unseen) {
        true => Cow::Owned(text.chars().filter(|&character| !is_unseen(character)).collect()),
        false => Cow::Borrowed(text),
    }
}

/// The token of a run of characters that go on; empty if there is nothing but marks.
pub(super) fn token_of(run: &str) -> String {
    let word = run.trim_start_matches(|character| is_mark(character) || is_unseen(character));
    let lowered = seen(word).to_lowercase();
    match composed(&lowered) {
        Cow::Owned(composed) => composed,
        Cow::Borrowed(_) => lowered,
    }
}

/// A text whose characters can be looked at one by one: composed, and all of them seen, each as
/// `change` has it, which is given the one before. A space stands for bytes that are not UTF-8.
pub(super) fn changed(
    text: &[u8],
    mut change: impl FnMut(Option<char>, char) -> Option<char>,
) -> Cow<'_, [u8]> {
    let mut out = String::new();
    let mut bytes = Vec::with_capacity(text.len() + text.len() / 8);
    for chunk in text.utf8_chunks() {
        let mut before = None;
        for character in composed(&seen(chunk.valid())).chars() {
            if let Some(character) = change(before, character) {
                out.push(character);
                before = Some(character);
            }
        }
        // What is left out may have stood between letters that are one.
        bytes.extend_from_slice(composed(&out).as_bytes());
        // As they are, such bytes could become a character where one between them is left out.
        if !chunk.invalid().is_empty() {
            bytes.push(b' ');
        }
        out.clear();
    }
    if bytes == text { Cow::Borrowed(text) } else { Cow::Owned(bytes) }
}

/// The text with its capital letters I as they are lower-cased in Turkish.
pub(super) fn with_turkish_i(text: &[u8]) -> Cow<'_, [u8]> {
    // The dotted capital letter may also be composed.
    let may_change = |byte: &u8| *byte == b'I' || *byte == 0xc4;
    if !text.iter().any(may_change) {
        return Cow::Borrowed(text);
    }
    changed(text, |_, character| {
        Some(match character {
            'I' => 'ı',
            'İ' => 'i',
            other => other,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokenizer::for_each_token;
    use icu_normalizer::DecomposingNormalizerBorrowed;

    fn tokens(text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        for_each_token(text.as_bytes(), |token| tokens.push(token.to_string()));
        tokens
    }

    #[test]
    fn common_letters_are_letters() {
        let wrong = |&character: &char| is_common(character) && !character.is_alphanumeric();
        assert_eq!(('\0'..=char::MAX).find(wrong), None);
        assert!("ςюєשضहあ中한".chars().all(is_common));
    }

    #[test]
    fn characters_are_what_unicode_says() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        for character in char::MIN..=char::MAX {
            let is_format = is_in(GeneralCategoryGroup::Format, character);
            let is_ignored = ignorable.contains(character);
            let expected = character != '\u{200b}' && (is_format || is_ignored);
            assert_eq!(is_unseen(character), expected, "{character:?}");
            assert_eq!(is_mark(character), is_in(GeneralCategoryGroup::Mark, character));
        }
    }

    #[test]
    fn equal_texts_have_equal_tokens() {
        let apart = DecomposingNormalizerBorrowed::new_nfd();
        for character in (char::MIN..=char::MAX).filter(|&character| goes_on(character)) {
            for text in
                [format!("{character}"), format!("Xa{character}BΣ"), format!("Σ{character}")]
            {
                let found = tokens(&text);
                assert_eq!(tokens(&apart.normalize(&text)), found, "{text:?}");
                assert_eq!(tokens(&composed(&text)), found, "{text:?}");
                let unseen = tokens(&format!("\u{feff}{text}\u{200d}"));
                assert_eq!(unseen, found, "{text:?}");
            }
        }
    }

    #[test]
    fn capital_letters_of_turkish() {
        for (text, expected) in
            [("ISI İs I\u{307}S", "ıSı is iS"), ("I\u{302}", "Î"), ("I\u{ad}I", "ıı"), ("iı", "iı")]
        {
            let found = with_turkish_i(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected);
            assert!(matches!(with_turkish_i(&found), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(&*with_turkish_i(b"I\xff\xc4"), b"\xc4\xb1  ");
    }
}
