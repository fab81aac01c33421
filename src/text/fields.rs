//! Fields of documents that are indexed beside all text: a token of a field is indexed as its term,
//! as anywhere, and as the *term of the field*, which is that term, cut at 254 bytes, and the
//! field's number behind it, a byte from 1 to 31. So the lists of one word are neighbours, and
//! share its trie collection and its owner.

use super::analysis::{MAX_TERM_BYTES, cut_to};
use super::trie_collection::trie_collection;
use crate::settings::SettingError;
use std::hash::Hasher;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The longest term in front of the number of a field.
const MOST_BYTES: usize = MAX_TERM_BYTES - 1;

/// The names of an index's fields, in the order of their numbers, which count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IndexFields(Vec<String>);

impl IndexFields {
    /// As many as there are bytes that no term ends with.
    const MOST: usize = 31;

    /// Fields by their names.
    ///
    /// # Errors
    /// If there are more than 31, one comes twice, or a name is empty or has other characters than
    /// letters, digits, `_`, `-` and `.`, behind a letter or a digit.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, SettingError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let wrong = |why: String| Err(SettingError::value("field", why));
        if names.len() > Self::MOST {
            return wrong(format!("{} fields, and an index has at most 31", names.len()));
        }
        for (at, name) in names.iter().enumerate() {
            let is_named = name.starts_with(char::is_alphanumeric)
                && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
            if !is_named {
                let expected = "expected a letter or digit, and then these, `_`, `-` or `.`";
                return wrong(format!("{expected}, found `{name}`"));
            }
            if names[..at].contains(name) {
                return wrong(format!("`{name}` is given twice"));
            }
        }
        Ok(Self(names))
    }

    /// What a member of a line of a document in memory is called that is text of a field: as no
    /// field of the index is.
    pub(crate) fn in_memory(name: &str) -> String {
        format!(" {name}")
    }

    /// The same fields by those names.
    pub(crate) fn of_memory(&self) -> Self {
        Self(self.0.iter().map(|name| Self::in_memory(name)).collect())
    }

    /// Their names, that of field 1 first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of the field of this name, from 1. Case counts.
    pub fn number(&self, name: &str) -> Option<u8> {
        self.0.iter().position(|known| known == name).map(|at| at as u8 + 1)
    }

    /// The number of a field by bytes of its name, with case or without.
    pub(crate) fn number_of(&self, name: &[u8], case: bool) -> Option<u8> {
        let is = |known: &String| match case {
            true => known.as_bytes() == name,
            false => known.as_bytes().eq_ignore_ascii_case(name),
        };
        self.0.iter().position(is).map(|at| at as u8 + 1)
    }

    /// The name of a field by its number, if there is one.
    pub(crate) fn name(&self, number: u8) -> Option<&str> {
        self.0.get(usize::from(number).checked_sub(1)?).map(String::as_str)
    }

    /// A term without the number of its field, and that number; as it is if it is of no field of
    /// this index.
    pub(crate) fn split<'a>(&self, term: &'a [u8]) -> (&'a [u8], Option<u8>) {
        split(self.len(), term)
    }

    /// A term as it is shown: `title:mill` where it is of a field.
    pub(crate) fn shown(&self, term: &str) -> String {
        let (bare, field) = self.split(term.as_bytes());
        // What is taken off is one ASCII character.
        match field.and_then(|field| self.name(field)) {
            Some(name) => format!("{name}:{}", &term[..bare.len()]),
            None => term.to_string(),
        }
    }

    /// The number of the field whose name stands in front of a colon, and what stands behind it.
    pub(crate) fn of_shown<'a>(&self, shown: &'a str) -> Option<(u8, &'a str)> {
        let (name, behind) = shown.split_once(':')?;
        self.number(name).map(|field| (field, behind))
    }
}

/// The term of a field.
pub(crate) fn field_term(term: &str, field: u8) -> String {
    let mut of_field = term[..cut_to(MOST_BYTES, term)].to_string();
    of_field.push(field.into());
    of_field
}

/// A term without the number of its field, and that number, in an index with this many fields.
#[inline]
pub(crate) fn split(fields: usize, term: &[u8]) -> (&[u8], Option<u8>) {
    match term.split_last() {
        Some((&last, bare)) if last != 0 && usize::from(last) <= fields => (bare, Some(last)),
        _ => (term, None),
    }
}

/// The trie collection of a term, of one of this many fields or of none: that of the term without
/// the number.
pub(crate) fn collection_of(fields: usize, term: &str) -> u16 {
    trie_collection(&term[..split(fields, term.as_bytes()).0.len()])
}

/// The texts of a document that belong to fields, in parts such as the items of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FieldTexts {
    /// End to end. What is appended is the next part, once that [ends](Self::end).
    pub(crate) text: Vec<u8>,
    parts: Vec<(u8, Range<usize>)>,
}

impl FieldTexts {
    /// Those of a document without fields.
    pub const NONE: &'static Self = &Self { text: Vec::new(), parts: Vec::new() };

    /// Begins the next document.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.parts.clear();
    }

    /// Ends a part: all since the last one is text of a field.
    pub(crate) fn end(&mut self, field: u8) {
        let start = self.parts.last().map_or(0, |(_, part)| part.end);
        self.parts.push((field, start..self.text.len()));
    }

    /// Adds a part.
    pub(crate) fn add(&mut self, field: u8, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.end(field);
    }

    /// The parts, those of field 1 first, and of one field as they came.
    pub(crate) fn by_field(&self) -> Vec<(u8, &[u8])> {
        let part = |(field, part): &(u8, Range<usize>)| (*field, &self.text[part.clone()]);
        let mut parts: Vec<_> = self.parts.iter().map(part).collect();
        parts.sort_by_key(|(field, _)| *field);
        parts
    }

    /// A hash of a document's content and of which texts belong to which fields.
    pub(crate) fn hashed_with(&self, content: u64) -> u64 {
        let mut hasher = XxHash3_64::with_seed(content);
        for (field, part) in self.by_field() {
            hasher.write(&[field]);
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn shrink(&mut self, keep: usize) {
        self.clear();
        self.text.shrink_to(keep);
        self.parts.shrink_to(keep / size_of::<(u8, Range<usize>)>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(count: usize) -> IndexFields {
        IndexFields::new((0..count).map(|n| format!("f{n}"))).unwrap()
    }

    #[test]
    fn names_are_refused_with_a_reason() {
        let refused = |names: &[&str]| IndexFields::new(names.to_vec()).unwrap_err().to_string();
        assert!(refused(&["title", "title"]).contains("`title` is given twice"));
        for wrong in ["", "a:b", "_a", "a b", "a\"", "a\u{1}"] {
            assert!(refused(&["body", wrong]).contains("found `"), "{wrong}");
        }
        let many: Vec<String> = (0..32).map(|n| n.to_string()).collect();
        assert!(IndexFields::new(many).unwrap_err().to_string().contains("at most 31"));
        let fields = IndexFields::new(["title", "dc.body-1", "größe"]).unwrap();
        assert_eq!((fields.number("größe"), fields.number("Title")), (Some(3), None));
        assert_eq!(fields.number_of(b"TITLE", false), Some(1));
        assert_eq!(fields.shown("mill\u{1}"), "title:mill");
        assert_eq!(fields.shown("mill\u{4}"), "mill\u{4}");
        assert_eq!(fields.of_shown("title:mill:x"), Some((1, "mill:x")));
        assert_eq!(fields.of_shown("titel:mill"), None);
    }

    proptest! {
        #[test]
        fn law_terms_of_fields_split_again(term in "[a-c0-9é]{1,300}", count in 1..32usize, of in 1..32u8) {
            let term = &term[..cut_to(255, &term)];
            let of_field = field_term(term, of);
            prop_assert!(of_field.len() <= 255);
            let (bare, field) = fields(count).split(of_field.as_bytes());
            prop_assert_eq!(fields(count).split(term.as_bytes()), (term.as_bytes(), None));
            if usize::from(of) <= count {
                prop_assert_eq!(field, Some(of));
                prop_assert_eq!(bare, &term.as_bytes()[..cut_to(254, term)]);
                let collection = trie_collection(std::str::from_utf8(bare).unwrap());
                prop_assert_eq!(collection_of(count, &of_field), collection);
            } else {
                prop_assert_eq!((bare, field), (of_field.as_bytes(), None));
            }
        }
    }

    #[test]
    fn parts_come_field_by_field() {
        let mut texts = FieldTexts::default();
        texts.add(2, b"a");
        texts.add(1, b"bc");
        texts.text.extend_from_slice(b"d");
        texts.end(2);
        assert_eq!(texts.by_field(), [(1, &b"bc"[..]), (2, b"a"), (2, b"d")]);
        let hash = texts.hashed_with(7);
        texts.clear();
        assert!(texts.is_empty());
        texts.add(2, b"ad");
        texts.add(1, b"bc");
        assert_ne!(texts.hashed_with(7), hash);
    }
}
