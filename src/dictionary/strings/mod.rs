//! Strings of terms: hashed, kept and compared.

pub(crate) mod codes;
pub(crate) mod doubled;
pub(crate) mod hash;
pub(crate) mod mixed;
pub(crate) mod place;
pub(crate) mod short;
pub(crate) mod suffix;
