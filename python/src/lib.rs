//! The native part of the Python module `millrace`: the calls of the library with Python's values.
//! What is Python's own (data frames, PyTerrier, `ir_datasets`) is written in Python, in
//! `millrace/`.
//!
//! No call holds the interpreter's lock while the library works, and a signal ends what takes long.

mod answers;
mod build;
mod documents;
mod error;
mod evaluate;
mod frames;
mod fuse;
mod hits;
mod index;
mod interrupt;
mod options;
mod progress;
mod queries;
mod search;
mod terms;
mod texts;
mod tune;
mod upkeep;
mod writer;

use pyo3::prelude::*;

/// The engine of millrace; `import millrace` has all of it.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answers::Answers;
    #[pymodule_export]
    use super::build::build;
    #[pymodule_export]
    use super::error::MillraceError;
    #[pymodule_export]
    use super::evaluate::{compare, evaluate};
    #[pymodule_export]
    use super::fuse::fuse;
    #[pymodule_export]
    use super::hits::{Column, Hits};
    #[pymodule_export]
    use super::index::Index;
    #[pymodule_export]
    use super::upkeep::{check_index, merge};
    #[pymodule_export]
    use super::writer::Writer;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
