//! The terms of fields that belong to terms.

use super::{Memo, NO_TERM};
use crate::dictionary::strings::hash::hash;
use crate::dictionary::strings::suffix::Suffix;
use crate::text::fields::{collection_of, field_term};
use crate::text::trie_collection::implied_prefix;

impl<S: Copy + Default> Memo<S> {
    /// The index has this many fields.
    pub(in crate::dictionary) fn with_fields(&mut self, fields: usize) {
        self.of_fields.resize_with(fields, Vec::new);
    }

    /// How many fields the index has.
    pub(in crate::dictionary) fn fields(&self) -> usize {
        self.of_fields.len()
    }

    /// The term of a field, from 1, that belongs to a term.
    #[inline]
    pub(in crate::dictionary) fn term_of_field(&mut self, term: u32, field: u8) -> u32 {
        match self.of_fields[usize::from(field) - 1].get(term as usize) {
            Some(&known) if known != NO_TERM => known,
            _ if term == NO_TERM => NO_TERM,
            _ => self.learn_term_of_field(term, field),
        }
    }

    #[cold]
    fn learn_term_of_field(&mut self, term: u32, field: u8) -> u32 {
        let Suffix { collection, .. } = self.list[term as usize].suffix;
        let (prefix, len) = implied_prefix(collection);
        let bytes = [&prefix[..len], self.suffix(self.term(term))].concat();
        let of_field = field_term(str::from_utf8(&bytes).expect("terms are UTF-8"), field);
        let collection = collection_of(self.fields(), &of_field);
        let number = self.number_in(collection, &of_field, hash(of_field.as_bytes()));
        let known = &mut self.of_fields[usize::from(field) - 1];
        let least = known.len().max(term as usize + 1);
        known.resize(least, NO_TERM);
        known[term as usize] = number;
        number
    }
}
