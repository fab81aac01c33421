//! Black-box, differential and fault tests.

mod formats;
mod layers;
