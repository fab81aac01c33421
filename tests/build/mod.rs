//! Builds: what an index holds, and that it is the same however it is built.

mod block_bounds;
mod codecs;
mod collections;
mod encodings;
mod equality;
mod fields;
mod generate;
// Only debug builds have what it checks an index with.
#[cfg(debug_assertions)]
mod golden;
mod library;
mod memory;
mod misread;
mod orders;
mod passed_over;
mod records;
mod vectors;
mod wei11;
