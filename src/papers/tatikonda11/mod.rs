//! `tatikonda11`: Shirish Tatikonda, B. Barla Cambazoglu, Flavio P. Junqueira: Posting List
//! Intersection on Multicore Architectures. SIGIR 2011, pages 963 to 972.
//!
//! The paper compares ways to answer AND queries on all cores of a machine: a query a core (INTER),
//! a part of the documents a core (DOCP, in one index or in copies), and a pool of tasks into which
//! queries are cut (FGQP).
//!
//! | section | what | file |
//! | --- | --- | --- |
//! | 3.1, 3.2.4 | intersection by Small Adaptive | [`small_adaptive`] |
//! | 3.1, algorithm 1 | INTER | `query/engines/engine/whole.rs`, the default |
//! | 3.2.1, figures 1b and 1c | DOCP-UI and DOCP-PI | [`shares`], [`copied`] |
//! | 3.2.2, algorithms 2 and 3, figure 2 | FGQP | `query/engines/{pool,engine/tasks}.rs` |
//! | 3.2.3, algorithm 4, figure 3 | tasks by skips | `query/searcher/tasks.rs` |
//! | figures 4 to 7 | | `jobs/experiments/src/parallelism.rs` |
//!
//! INTER and FGQP are no folder here, since a user wants them: one query on all cores is FGQP.
//!
//! What differs: without a barrier after each query DOCP is faster, so it is an option; Small
//! Adaptive gallops by blocks and decodes only the one that may have a document; the head of each
//! file says the rest.

mod copied;
pub(super) mod shares;
pub(super) mod small_adaptive;
#[cfg(test)]
mod tests;
