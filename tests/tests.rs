//! Black-box, differential and fault tests.

mod layers;
