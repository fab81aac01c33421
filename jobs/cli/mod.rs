//! What all jobs share of a command line: arguments, help, messages, progress, signals.

#[macro_use]
pub(crate) mod say;

pub(crate) mod args;
pub(crate) mod help;
pub(crate) mod index_args;
pub(crate) mod order_args;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod shell;
pub(crate) mod signals;
pub(crate) mod words;
