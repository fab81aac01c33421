//! Operators of the rebuild job: what changed, how often it is asked for, what links to it; and the
//! tables that they compare and fill.

#[cfg(feature = "rebuild")]
pub(crate) mod changed;
#[cfg(feature = "rebuild")]
pub(crate) mod changes;
#[cfg(feature = "rebuild")]
pub(crate) mod frequencies;
#[cfg(feature = "rebuild")]
pub(crate) mod links;
#[cfg(feature = "rebuild")]
pub(crate) mod scan;
pub(crate) mod scanned;
pub(crate) mod table;
