//! The columns of an index: values that belong to documents, such as a year or tags, in a file of
//! each run (`docs/index-format.md`, Columns).
//!
//! A value is a *key*, a number of 64 bits in the order of the values: integers, floats and dates
//! by their bits, words by their place in the run's sorted dictionary. So one code serves all
//! kinds, and a condition is a range of keys. [`ColumnValues`] gathers those of a column,
//! [`ColumnsWriter`] writes them, [`RunColumns`] reads them in place, and [`carry`] brings them
//! into a merged or ordered run.

mod carry;
mod gathered;
mod read;
mod spec;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub(crate) use carry::{ColumnsSource, carry};
pub(crate) use gathered::{ColumnParts, MisfitValue, PieceColumns};
pub(crate) use read::{KeySet, RunColumns};
pub use spec::{Column, ColumnKind};
pub use value::ColumnValue;
pub(crate) use value::key_of;
pub(crate) use write::ColumnsWriter;

use bytemuck::{AnyBitPattern, NoUninit};

/// What a file of columns says of one of them, in its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
struct ColumnEntry {
    /// A [`ColumnKind`]; 128 more if documents may have several values.
    kind: u8,
    /// Bytes of each code, of each end of a document's values, and of each end of a word.
    widths: [u8; 3],
    zero: u32,
    values: u64,
    least: u64,
    words: u64,
    word_bytes: u64,
}

const SEVERAL: u8 = 128;

/// The fewest bytes, of those that are possible, of which each holds `most`.
fn width_of(most: u64) -> u8 {
    match most {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}
