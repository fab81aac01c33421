//! What all jobs share of a command line: arguments, help, messages, progress, signals.

pub(crate) mod args;
pub(crate) mod help;
pub(crate) mod index_args;
pub(crate) mod order_args;
pub(crate) mod progress;
pub(crate) mod report;
#[macro_use]
pub(crate) mod say;
pub(crate) mod shell;
pub(crate) mod signals;
