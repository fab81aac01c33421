//! Faults: jobs that die, are killed or are refused their storage, and indexes that are damaged.

mod campaign;
mod crash;
mod damage;
mod edges;
mod ends;
mod harm;
