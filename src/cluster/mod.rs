//! How do the processes of one job find, know and watch each other?
//!
//! Every process knows the addresses of all ([`hosts`]). Lines between them are TCP connections
//! that begin with a greeting on both sides ([`hello`]); [`connect`] makes them within a bounded
//! time. There are two kinds. A *control line* joins each process with process 0: on it go the few
//! messages of a job, a sign of life every second, and the reason when a process ends ([`links`]).
//! A *data line* joins each pair of processes and is handed to timely.
//!
//! Every message is sealed ([`seal`]), so that none is damaged, lost or repeated unnoticed. Nothing
//! is encrypted. Without a secret nobody proves who he is: whoever reaches the ports of a job can
//! take part in it. So each process listens on its own address of the host file and on no other,
//! and only as long as it takes the others to come. With a secret only who knows it takes part.

#![forbid(unsafe_code)]

pub(crate) mod connect;
mod error;
pub(crate) mod hello;
pub(crate) mod hosts;
pub(crate) mod line;
pub(crate) mod links;
pub(crate) mod seal;

pub(crate) use error::{ClusterError, PeerFailure};
