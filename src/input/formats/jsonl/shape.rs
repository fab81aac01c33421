//! What do the records of a collection have in common? Most have the same bytes around a name that
//! comes first and around one text, both in quotes. What stands between the same bytes means the
//! same, so that nobody has to look at keys, colons and commas again.

#![forbid(unsafe_code)]

use super::{Buffers, Cursor, Record, Span};

/// The bytes around name and text of a record.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    before: Around,
    between: Around,
    behind: Around,
    /// With 0 no more lines of a piece are compared. One that has the shape adds 1, up to
    /// [`MOST_CREDIT`], and one that has another takes [`CREDIT_OF_MISS`].
    credit: u32,
}

const MOST_CREDIT: u32 = 64;
const CREDIT_OF_MISS: u32 = 8;

impl Shape {
    /// Forgets how few lines of the piece before had the shape.
    pub(crate) fn begin_piece(&mut self) {
        self.credit = MOST_CREDIT;
    }

    /// Reads the record here, up to its line feed, if it has the shape; else leaves the cursor
    /// where it is.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        buffers: &mut Buffers,
        record: &mut Record,
    ) -> bool {
        if self.credit == 0 {
            return false;
        }
        let begin = cursor.at;
        let has = self.try_read(cursor, buffers, record).is_some();
        if has {
            self.credit = MOST_CREDIT.min(self.credit + 1);
        } else {
            cursor.at = begin;
            record.texts = 0;
            self.credit = self.credit.saturating_sub(CREDIT_OF_MISS);
        }
        has
    }

    #[inline(always)]
    fn try_read(
        &self,
        cursor: &mut Cursor<'_>,
        buffers: &mut Buffers,
        record: &mut Record,
    ) -> Option<()> {
        let bytes = cursor.bytes;
        let name = cursor.at + self.before.ends(bytes, cursor.at)?;
        let name_end = cursor.scan.find(bytes, name);
        // An empty name is none, and another key may give one.
        cursor.at = name_end + self.between.ends(bytes, name_end).filter(|_| name < name_end)?;
        buffers.text(cursor, record).ok()?;
        // Up to the line feed.
        cursor.at += self.behind.ends(bytes, cursor.at)? - 1;
        record.name.range = name..name_end;
        Some(())
    }

    /// Takes the shape of a record that began at `offset` and ends here, if it has one.
    pub(crate) fn learn(&mut self, offset: usize, cursor: &Cursor<'_>, record: &Record) {
        if self.credit == 0 {
            return;
        }
        let Record { name: Span { range: name, .. }, last_text: text, texts, .. } = record;
        let (bytes, line) = (cursor.bytes, offset..cursor.at);
        let has_both = *texts == 1 && !name.is_empty() && name.end < text.start;
        if has_both && line.end < bytes.len() {
            self.before = Around::of(&bytes[line.start..name.start]);
            self.between = Around::of(&bytes[name.end..text.start]);
            self.behind = Around::of(&bytes[text.end + 1..=line.end]);
        }
    }
}

/// Up to 32 bytes beside name or text. Without any it is found nowhere.
#[derive(Debug, Default)]
struct Around {
    bytes: usize,
    words: [u64; Self::WORDS],
    /// The bits of the words that count.
    masks: [u64; Self::WORDS],
}

impl Around {
    const MOST: usize = 32;
    const WORDS: usize = Self::MOST / size_of::<u64>();

    /// These bytes, if they are not too many.
    fn of(bytes: &[u8]) -> Self {
        let mut around = Self::default();
        let (mut padded, mut counts) = ([0; Self::MOST], [0; Self::MOST]);
        let Some(to) = padded.get_mut(..bytes.len()) else { return around };
        to.copy_from_slice(bytes);
        counts[..bytes.len()].fill(u8::MAX);
        (around.bytes, around.words, around.masks) = (bytes.len(), words(&padded), words(&counts));
        around
    }

    /// How many bytes they are, if they stand at `at`.
    #[inline(always)]
    fn ends(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let here = words(bytes.get(at..)?.first_chunk()?);
        let differ = (0..Self::WORDS)
            .fold(0, |differ, i| differ | (here[i] ^ self.words[i]) & self.masks[i]);
        (differ == 0 && self.bytes > 0).then_some(self.bytes)
    }
}

#[inline(always)]
fn words(bytes: &[u8; Around::MOST]) -> [u64; Around::WORDS] {
    std::array::from_fn(|i| u64::from_ne_bytes(*bytes[8 * i..].first_chunk().expect("a word")))
}
