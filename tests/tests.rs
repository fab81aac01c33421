//! Tests of the program, and of the library as others use it, by what is tested. What the library
//! does not show is tested beside its code, and in `gpu/inside`.

mod support;

mod boosts;
mod build;
mod cluster;
mod columns;
// Only debug builds have what makes jobs fail.
#[cfg(debug_assertions)]
mod faults;
mod gpu;
mod house;
mod phrases;
mod query;
mod rebuild;
mod serve;
mod update;
