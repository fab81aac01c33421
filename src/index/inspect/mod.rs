//! What tools see of an index: its terms, its contents, its damage.

pub(crate) mod browse;
pub mod check;
pub(crate) mod contents;
pub(crate) mod dump;
pub(crate) mod find;
pub(crate) mod totals;
pub(crate) mod vector;
