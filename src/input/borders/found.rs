//! What finders of borders say of the bytes that are there.

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundBorder {
    /// No piece ends in them, as far as one can tell.
    Nothing,
    /// The first border where the piece may end.
    End(usize),
    /// The record that begins here is too long, and no piece ends before it.
    Long(usize),
}

/// The part of a record to be dropped that is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Its bytes. A few of the last may stay until it is known that they hold no border.
    pub(in crate::input) bytes: usize,
    /// Those of them that end the record and do not count.
    pub(in crate::input) end_bytes: usize,
    pub(in crate::input) whole: bool,
}
