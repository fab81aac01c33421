//! Lines between the processes of one job.
//!
//! Every process knows the addresses of all ([`hosts`]). Lines are TCP connections that begin with
//! a greeting on both sides ([`hello`]); [`connect`] makes them within a bounded time. A *control
//! line* joins each process with process 0: it carries the few messages of a job, a heartbeat every
//! half second, and the reason when a process ends ([`control_lines`]). A *data line* joins each
//! pair of processes and is handed to timely.
//!
//! Every message is sealed ([`wire`]), so that none is damaged, lost or repeated unnoticed. Without
//! a secret nobody proves who he is, and nothing is encrypted: whoever reaches the ports of a job
//! can take part in it. So each process listens only on its own address of the host file, and only
//! while it waits for the others. With a secret only who knows it takes part and can read.

pub(crate) mod connect;
pub(crate) mod control_lines;
mod error;
pub(crate) mod hello;
pub(crate) mod hosts;
pub(crate) mod wire;

pub(crate) use error::{ClusterError, PeerFailure};
