//! What tools see of an index: its terms, its contents, its damage.

pub mod browse;
pub mod check;
pub mod contents;
pub mod dump;
pub mod find;
pub mod summary;
