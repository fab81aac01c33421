//! Operators of the rebuild job: what changed, how often it is asked for, what links to it; and the
//! documents that they compare.

#[cfg(feature = "rebuild")]
mod by_file;
#[cfg(feature = "rebuild")]
pub(crate) mod changes;
#[cfg(feature = "rebuild")]
pub(crate) mod frequencies;
#[cfg(feature = "rebuild")]
pub(crate) mod links;
#[cfg(feature = "rebuild")]
mod pairs;
pub(crate) mod seen;
#[cfg(feature = "rebuild")]
pub(crate) mod touched;
