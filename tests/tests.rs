//! Black-box, differential and fault tests. Those of what the library does not show are in
//! `inside`.

mod util;

mod bench;
mod cache;
mod circles;
mod cli;
mod cluster;
mod codecs;
mod collections;
mod ding09;
mod effectiveness;
mod engines;
mod equality;
mod evaluate;
mod forms;
mod generate;
mod gpu;
mod gpu_indexer;
mod gpu_queries;
mod house;
mod huang;
mod inspect;
mod invert;
mod layers;
mod library;
mod memory;
mod orders;
mod parallel;
mod pretended;
mod queries;
mod query_lines;
mod readme;
mod rebuild;
mod rebuild_changes;
mod rebuild_kills;
mod rebuild_links;
mod rebuild_logs;
mod records;
mod reports;
mod rm3;
mod scores;
mod streaming;
mod swap;
mod topics;
mod wang;
mod wei11;

// Only debug builds have what makes them fail.
#[cfg(debug_assertions)]
mod campaign;
#[cfg(debug_assertions)]
mod crash;
#[cfg(debug_assertions)]
mod damage;
#[cfg(debug_assertions)]
mod deletions;
#[cfg(debug_assertions)]
mod faults;
#[cfg(debug_assertions)]
mod golden;
#[cfg(debug_assertions)]
mod harm;
#[cfg(debug_assertions)]
mod rebuild_crash;
#[cfg(debug_assertions)]
mod sound;
