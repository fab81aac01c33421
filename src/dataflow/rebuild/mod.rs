//! Operators of the rebuild job: what changed, how often it is asked for, what links to it; and the
//! tables that they compare and fill.

pub(crate) mod changed;
pub(crate) mod changes;
pub(crate) mod frequencies;
pub(crate) mod links;
pub(crate) mod scan;
pub(crate) mod scanned;
pub(crate) mod table;
