//! Searches an index, and changes it, over HTTP (`docs/serve.md`).
//!
//! A request becomes queries of the [query service](crate::QueryService), which is a dataflow on
//! its own threads; two threads of this room read requests and write answers, and none of them ever
//! waits for an index. What is slow and no search (explanations, texts) runs beside, bounded.
//!
//! ```text
//! connection -> guard -> parameters -> Asker ==dataflow==> Waiter -> connection
//!                     -> writes -> one thread that commits -> follower -> answer
//! ```
//!
//! A [front](front) has no index: it sends requests on to one of several such servers.

#![warn(missing_docs)]

mod committer;
mod documents;
mod failure;
mod front;
mod guard;
mod listen;
mod measured;
mod metrics;
mod options;
mod page;
mod parameters;
mod patience;
mod search;
mod state;
#[cfg(test)]
mod tests;
mod writes;

pub use listen::{RunningServer, Server};
pub use options::{GroupAddress, ServeOptions, Token};
#[doc(hidden)]
pub use parameters::query_of;
#[doc(hidden)]
pub use state::{LiveSnapshot, live};
