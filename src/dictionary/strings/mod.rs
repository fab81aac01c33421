//! Strings of terms, and how they are hashed, kept and compared.

pub mod codes;
pub(crate) mod doubled;
pub mod hash;
pub(crate) mod mixed;
pub(crate) mod place;
pub mod short;
pub mod suffix;
