//! Black-box, differential and fault tests.

mod generate;
mod layers;
