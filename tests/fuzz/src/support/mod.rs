//! How targets take decisions from their input and damage files, and a small index.

pub(super) mod damage;
pub(super) mod kept;
pub(super) mod sample;
pub(super) mod take;
