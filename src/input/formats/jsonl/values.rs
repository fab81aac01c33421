//! Finds the shape of a line: the bytes that it shares with those that are like it, all but its
//! strings and numbers. A device that finds the same bytes around other values has found a line
//! that means the same ([`lines`](crate::dictionary::device::lines)).

use super::{
    Buffers, JsonCursor, JsonRecord, JsonlParser, KEPT_BUFFER_BYTES, KeyRole, NO_NAME, Span,
};
use crate::dictionary::device::lines::{self, LONGEST_NAME, LineShape, LineValue, number_bytes};
use std::ops::Range;

impl JsonlParser {
    /// The shape of the first of some lines, if it has one; it depends on the fields asked for.
    pub fn line_shape(&mut self, lines: &[u8]) -> Option<LineShape> {
        let mut cursor = JsonCursor { bytes: lines, at: 0, scan: self.scan };
        let mut record = JsonRecord::new();
        let is_right = self.buffers.record(&mut cursor, &mut record).is_ok();
        self.buffers.text.shrink(KEPT_BUFFER_BYTES);
        if is_right {
            self.buffers.seen.taken |= record.taken;
            self.buffers.look(&JsonCursor { at: 0, ..cursor }, &record);
        }
        let name = &record.name;
        if !is_right || name.escapes || name.range.len() > LONGEST_NAME {
            return None;
        }
        let line_feed = cursor.at;
        cursor.at = 1;
        let mut noted = Noted { cursor, from: 0, values: Vec::new() };
        loop {
            noted.cursor.space();
            if noted.cursor.take(b'}') {
                break;
            }
            noted.cursor.take(b',');
            noted.cursor.space();
            let role = self.buffers.key(&mut noted.cursor).ok()?;
            noted.value(&role, &record)?;
        }
        let is_named = noted.values.iter().any(|(_, value)| value.role == lines::ValueRole::Name);
        if is_named != (record.name_rank != NO_NAME) {
            return None;
        }
        let behind = lines.get(noted.from..=line_feed)?;
        LineShape::of(&noted.values, behind)
    }
}

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
            KeyRole::Other => false,
        };
        let key = &cursor.bytes[key.range];
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

/// The values of a line, which is right, each with the bytes before it.
struct Noted<'a> {
    cursor: JsonCursor<'a>,
    /// Where the last value ended.
    from: usize,
    values: Vec<(&'a [u8], LineValue)>,
}

impl Noted<'_> {
    fn note(&mut self, value: Range<usize>, role: lines::ValueRole, is_number: bool) {
        let before = &self.cursor.bytes[self.from..value.start];
        self.values.push((before, LineValue { role, is_number }));
        self.from = value.end;
    }

    /// Steps over the value of a key with this role, and notes its strings and numbers.
    ///
    /// The strings of a list, of which the host takes some, have no shape.
    fn value(&mut self, role: &KeyRole, record: &JsonRecord) -> Option<()> {
        let is_text = match role {
            KeyRole::Text(_) => true,
            KeyRole::Spare(_) => record.takes_spare,
            _ => false,
        };
        if is_text && self.cursor.peek() == Some(b'[') {
            return None;
        }
        let is_text = is_text && self.cursor.peek() == Some(b'"');
        let mut ahead = JsonCursor { ..self.cursor };
        ahead.skip_value().ok()?;
        while self.cursor.at < ahead.at {
            match self.cursor.peek()? {
                b'"' => {
                    self.cursor.at += 1;
                    let Span { range, .. } = self.cursor.string().ok()?;
                    if is_at_colon(&self.cursor) {
                        continue;
                    }
                    match role {
                        _ if is_text => self.note(range, lines::ValueRole::Text, false),
                        _ if range == record.name.range => {
                            self.note(range, lines::ValueRole::Name, false)
                        }
                        // Another line may have its name here.
                        KeyRole::Name(rank) if *rank <= record.name_rank && range.is_empty() => {}
                        _ => self.note(range, lines::ValueRole::Other, false),
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let range = self.cursor.number().ok()?;
                    let is_name = range == record.name.range;
                    let role =
                        if is_name { lines::ValueRole::Name } else { lines::ValueRole::Other };
                    if number_bytes(&self.cursor.bytes[range.clone()]) == Some(range.len()) {
                        self.note(range, role, true);
                    }
                }
                _ => self.cursor.at += 1,
            }
        }
        Some(())
    }
}
