//! Faults: jobs that die, are killed or are refused their storage, and indexes that are damaged.

mod around;
mod campaign;
mod damaged;
mod ends;
mod storage;
mod system;
