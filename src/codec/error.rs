//! What can be wrong with coded bytes?

use thiserror::Error;

/// Why bytes are not what a codec writes. Places count from the first byte of the block or of what
/// the blocks of a list share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    #[error("expected {expected} bytes, found {found}")]
    CutShort { expected: u64, found: u64 },
    #[error("expected the end at byte {expected}, found {found} bytes")]
    Rest { expected: u64, found: u64 },
    /// A number that the layout does not allow there.
    #[error("expected {what} of at most {most}, found {found}")]
    Number { what: &'static str, most: u64, found: u64 },
    /// Exceptions whose places do not rise or lie behind the values.
    #[error("expected places of exceptions that rise below {values}, found {found}")]
    Place {
        /// Values of the block or the list.
        values: u64,
        found: u64,
    },
    /// An integer of several bytes that is cut short, too great or not in its shortest form.
    #[error("byte {at}: expected an integer of at most 32 bits in its shortest form")]
    Integer { at: u64 },
    /// A bit vector that ends before the values do.
    #[error("bit {from} of the unary codes: expected {values} values before the end")]
    Unary {
        /// The bit where the block's values begin.
        from: u64,
        values: u64,
    },
}

impl CodecError {
    /// Makes sure that there are `expected` bytes.
    #[inline]
    pub(super) fn need(expected: usize, found: usize) -> Result<(), Self> {
        if found < expected {
            return Err(Self::CutShort { expected: expected as u64, found: found as u64 });
        }
        Ok(())
    }

    /// Makes sure that `found` is at most `most`.
    #[inline]
    pub(super) fn at_most(what: &'static str, most: usize, found: usize) -> Result<(), Self> {
        if found > most {
            return Err(Self::Number { what, most: most as u64, found: found as u64 });
        }
        Ok(())
    }
}
