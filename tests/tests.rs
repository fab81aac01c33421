//! Black-box, differential and fault tests.

mod util;

mod cli;
mod effectiveness;
mod equality;
mod layers;
mod queries;
