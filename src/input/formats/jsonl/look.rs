//! Looks at what some records have beside name and text.

use super::vector::FIELD;
use super::{Buffers, JsonCursor, JsonRecord, KeyRole, NO_NAME};

impl Buffers {
    /// Notes what a record, which is right and begins at the cursor, has beside name and text.
    #[cold]
    pub(super) fn look(&mut self, cursor: &JsonCursor<'_>, record: &JsonRecord) {
        self.seen.record(record.name_rank != NO_NAME);
        let mut cursor = JsonCursor { ..*cursor };
        cursor.space();
        cursor.take(b'{');
        while self.look_at_member(&mut cursor, record).is_some() {}
    }

    fn look_at_member(&mut self, cursor: &mut JsonCursor<'_>, record: &JsonRecord) -> Option<()> {
        cursor.space();
        cursor.take(b',');
        cursor.space();
        let mut key = JsonCursor { at: cursor.at + 1, ..*cursor };
        let key = key.string().ok()?;
        let role = self.key(cursor).ok()?;
        let begin = cursor.at;
        let first = cursor.peek()?;
        let (strings, inside) = string_bytes(cursor)?;
        let is_text = match role {
            KeyRole::Name(_) => return Some(()),
            KeyRole::Text(_) => true,
            KeyRole::Spare(_) => record.takes_spare,
            KeyRole::Vector | KeyRole::Revision | KeyRole::Other => false,
        };
        // Text of a field of the index is indexed.
        let is_text = is_text || self.field.is_some();
        let key = &cursor.bytes[key.range];
        self.seen.has_vectors |= key == FIELD.as_bytes() && first == b'{' && inside == 0;
        if is_text && matches!(first, b'"' | b'[') {
            self.seen.text(strings);
            if inside > 0 {
                self.seen.other(key, inside, None);
            }
            return Some(());
        }
        let value = match first {
            b'"' => Some(&cursor.bytes[begin + 1..cursor.at - 1]),
            b'-' | b'0'..=b'9' => Some(&cursor.bytes[begin..cursor.at]),
            _ => None,
        };
        self.seen.other(key, strings + inside, value);
        Some(())
    }
}

/// Steps over the value here. The bytes of its strings, and of those inside of objects.
fn string_bytes(cursor: &mut JsonCursor<'_>) -> Option<(usize, usize)> {
    let mut ahead = JsonCursor { ..*cursor };
    ahead.skip_value().ok()?;
    let mut strings = 0;
    let mut inside = 0;
    let mut open = 0;
    while cursor.at < ahead.at {
        let byte = cursor.peek()?;
        cursor.at += 1;
        match byte {
            b'"' => {
                let bytes = cursor.string().ok()?.range.len();
                match open {
                    _ if is_at_colon(cursor) => {}
                    0 => strings += bytes,
                    _ => inside += bytes,
                }
            }
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
    }
    Some((strings, inside))
}

fn is_at_colon(cursor: &JsonCursor<'_>) -> bool {
    let mut behind = JsonCursor { ..*cursor };
    behind.space();
    behind.peek() == Some(b':')
}
