//! The part of `tests/support` that needs no binary.

// Black-box tests use the rest.
#![allow(dead_code)]

#[path = "../../support/compared.rs"]
mod compared;
#[path = "../../support/generated.rs"]
mod generated;
#[path = "../../support/scratch.rs"]
mod scratch;

pub(crate) use compared::assert_same_index;
pub(crate) use generated::{Collection, Random};
pub(crate) use scratch::{Scratch, again_in_a_process_of_its_own, shared};
