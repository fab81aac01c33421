//! Errors in coded bytes.

use thiserror::Error;

/// Places count from the first byte of the block or of what the blocks of a list share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    #[error("expected {expected} bytes, found {found}")]
    CutShort { expected: u64, found: u64 },
    #[error("expected the end at byte {expected}, found {found} bytes")]
    Rest { expected: u64, found: u64 },
    #[error("expected {what} of at most {most}, found {found}")]
    Number { what: &'static str, most: u64, found: u64 },
    #[error("expected places of exceptions that rise below {values}, found {found}")]
    Place {
        /// Values of the block or the list.
        values: u64,
        found: u64,
    },
    #[error("byte {at}: expected an integer of at most 32 bits in its shortest form")]
    Integer { at: u64 },
    #[error("bit {from} of the unary codes: expected {values} values before the end")]
    Unary {
        /// The bit where the block's values begin.
        from: u64,
        values: u64,
    },
}

impl CodecError {
    #[inline]
    pub(super) fn need(expected: usize, found: usize) -> Result<(), Self> {
        if found < expected {
            return Err(Self::CutShort { expected: expected as u64, found: found as u64 });
        }
        Ok(())
    }

    #[inline]
    pub(super) fn at_most(what: &'static str, most: usize, found: usize) -> Result<(), Self> {
        if found > most {
            return Err(Self::Number { what, most: most as u64, found: found as u64 });
        }
        Ok(())
    }
}
