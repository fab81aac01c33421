//! Indexes from and for other programs.

pub(crate) mod export;
pub(crate) mod import;
