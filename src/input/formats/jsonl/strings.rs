//! Takes the strings of lists, and the texts of members that are fields of the index, whether they
//! are text of the document or not: a string, or the strings of a list.

use super::super::json::{Bad, JsonCursor, Span, unfolded};
use super::{Buffers, Failure, JsonRecord, bit};

impl Buffers {
    /// Looks whether the key from `start` to the quote before the cursor is a field of the index.
    #[inline(always)]
    pub(super) fn find_field(&mut self, cursor: &JsonCursor<'_>, start: usize) {
        if !self.index_fields.is_empty() {
            let range = start..cursor.at - 1;
            let escapes = cursor.bytes[range.clone()].contains(&b'\\');
            let key = unfolded(cursor, &Span { range, escapes }, &mut self.short);
            self.field = self.index_fields.number_of(key, true);
        }
    }

    /// Adds what the value here says, a string or those of a list, to the texts of a field.
    #[cold]
    pub(super) fn take_field(&mut self, cursor: &JsonCursor<'_>, field: u8) -> Result<(), Bad> {
        let mut cursor = JsonCursor { ..*cursor };
        let mut ahead = JsonCursor { ..cursor };
        ahead.skip_value()?;
        let is_list = cursor.take(b'[');
        while cursor.at < ahead.at {
            match cursor.peek() {
                Some(b'"') => {
                    cursor.at += 1;
                    let string = cursor.string()?;
                    self.field_texts.add(field, unfolded(&cursor, &string, &mut self.short));
                }
                Some(b',' | b']' | b' ' | b'\t' | b'\r') if is_list => cursor.at += 1,
                _ => cursor.skip_value()?,
            }
        }
        Ok(())
    }

    /// Adds the strings of the list here to the text.
    #[cold]
    pub(super) fn texts(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        record: &mut JsonRecord,
        number: usize,
    ) -> Result<(), Failure> {
        let mut ahead = JsonCursor { ..*cursor };
        ahead.skip_value()?;
        let before = record.texts;
        let mut has_others = false;
        cursor.at += 1;
        while cursor.at < ahead.at {
            match cursor.peek() {
                Some(b'"') => {
                    cursor.at += 1;
                    self.text(cursor, record)?;
                }
                Some(b'n') => cursor.word("null")?,
                Some(b',' | b']' | b' ' | b'\t' | b'\r') => cursor.at += 1,
                _ => {
                    has_others = true;
                    cursor.skip_value()?;
                }
            }
        }
        if record.texts > before {
            record.taken |= bit(number);
        } else if has_others && !record.takes_spare {
            record.odd.get_or_insert(self.shown(number));
        }
        Ok(())
    }
}
