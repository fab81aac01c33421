//! What a key of a record means, by its bytes.

use super::JsonRecord;

pub(super) enum KeyRole {
    /// A name, with the rank of its key; the best is 0.
    Name(usize),
    /// A text, with the number of its field.
    Text(usize),
    Spare(usize),
    /// Where records have vectors.
    Vector,
    /// The field that only records of WikiExtractor have.
    Revision,
    Other,
}

impl JsonRecord {
    /// Whether its fields are `id`, `revid`, `url`, `title` and `text`, as WikiExtractor has them.
    pub(super) fn is_of_wiki(&self) -> bool {
        const TITLE_URL_TEXT: u64 = 0b1011;
        let is_named = self.has_revision && self.name_rank == 0;
        is_named && self.members == 5 && self.taken == TITLE_URL_TEXT
    }
}

impl KeyRole {
    /// The role of the key that `rest` begins with, and the bytes that it and its closing quote
    /// take; none if it has no role, or has escapes. The processor guesses the outcome from earlier
    /// records, so that it does not wait for the end of a key to be found.
    #[inline(always)]
    pub(super) fn at(rest: &[u8]) -> Option<(KeyRole, usize)> {
        Some(match rest {
            [b'i', b'd', b'"', ..] => (KeyRole::Name(0), 3),
            [b'_', b'i', b'd', b'"', ..] => (KeyRole::Name(1), 4),
            [b'p', b'i', b'd', b'"', ..] => (KeyRole::Name(2), 4),
            [b'd', b'o', b'c', b'i', b'd', b'"', ..] => (KeyRole::Name(3), 6),
            [b'd', b'o', b'c', b'n', b'o', b'"', ..] => (KeyRole::Name(4), 6),
            [b'd', b'o', b'c', b'_', b'i', b'd', b'"', ..] => (KeyRole::Name(5), 7),
            [b'p', b'a', b'p', b'e', b'r', b'_', b'i', b'd', b'"', ..] => (KeyRole::Name(6), 9),
            [b'c', b'o', b'r', b'd', b'_', b'u', b'i', b'd', b'"', ..] => (KeyRole::Name(7), 9),
            [b'u', b'i', b'd', b'"', ..] => (KeyRole::Name(8), 4),
            [b't', b'i', b't', b'l', b'e', b'"', ..] => (KeyRole::Text(0), 6),
            [b'u', b'r', b'l', b'"', ..] => (KeyRole::Text(1), 4),
            [b't', b'e', b'x', b't', b'"', ..] => (KeyRole::Text(3), 5),
            [b'b', b'o', b'd', b'y', b'"', ..] => (KeyRole::Text(4), 5),
            [b'c', b'o', b'n', b't', b'e', b'n', b't', b's', b'"', ..] => (KeyRole::Text(6), 9),
            [b'p', b'a', b's', b's', b'a', b'g', b'e', b'"', ..] => (KeyRole::Text(5), 8),
            [b'h', b'e', b'a', b'd', b'i', b'n', b'g', b's', b'"', ..] => (KeyRole::Text(2), 9),
            [b'r', b'e', b'v', b'i', b'd', b'"', ..] => (KeyRole::Revision, 6),
            [b's', b'e', b'g', b'm', b'e', b'n', b't', b'"', ..] => (KeyRole::Spare(7), 8),
            [b'a', b'b', b's', b't', b'r', b'a', b'c', b't', b'"', ..] => (KeyRole::Spare(8), 9),
            [b'c', b'o', b'n', b't', b'e', b'n', b't', b'"', ..] => (KeyRole::Spare(9), 8),
            [b'f', b'u', b'l', b'l', b'_', b't', b'e', b'x', b't', b'"', ..] => {
                (KeyRole::Spare(10), 10)
            }
            [b'd', b'e', b's', b'c', b'r', b'i', b'p', b't', b'i', b'o', b'n', b'"', ..] => {
                (KeyRole::Spare(11), 12)
            }
            [b'd', b'o', b'c', b'u', b'm', b'e', b'n', b't', b'"', ..] => (KeyRole::Spare(12), 9),
            [b'a', b'r', b't', b'i', b'c', b'l', b'e', b'"', ..] => (KeyRole::Spare(13), 8),
            [b'p', b'a', b'r', b'a', b'g', b'r', b'a', b'p', b'h', b'"', ..] => {
                (KeyRole::Spare(14), 10)
            }
            _ => return None,
        })
    }
}
