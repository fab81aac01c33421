//! Black-box, differential and fault tests.

mod util;

mod cli;
mod effectiveness;
mod equality;
mod forms;
mod layers;
mod queries;
mod records;
mod streaming;
