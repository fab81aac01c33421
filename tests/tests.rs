//! Black-box, differential and fault tests.

mod util;

// Only debug builds have what makes them fail.
mod cli;
#[cfg(debug_assertions)]
mod crash;
#[cfg(debug_assertions)]
mod damage;
mod effectiveness;
mod equality;
#[cfg(debug_assertions)]
mod faults;
mod layers;
mod queries;
#[cfg(debug_assertions)]
mod sound;
