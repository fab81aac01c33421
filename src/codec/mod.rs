//! How are integers written in few bits? One codec a file, its encoder beside its decoder.

pub mod bp128;
pub mod folded;
pub(crate) mod level;
pub mod vbyte;
