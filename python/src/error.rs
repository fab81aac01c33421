//! Makes exceptions of the library's errors, with the library's message, causes included.

use millrace::BuildError;
use millrace::IndexError;
use millrace::inside::shown::chain;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;

create_exception!(
    millrace,
    MillraceError,
    PyException,
    "What a build, a search or an evaluation failed with, in the words of millrace."
);

/// An error as a [`MillraceError`].
pub(crate) fn failed(error: &dyn Error) -> PyErr {
    MillraceError::new_err(chain(error))
}

/// Arguments that cannot be.
pub(crate) fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An error of an index: `FileNotFoundError` where there is none, `KeyError` for a document that it
/// does not have.
pub(crate) fn of_index(error: &IndexError) -> PyErr {
    match error {
        IndexError::NoIndex { .. } => PyFileNotFoundError::new_err(chain(error)),
        IndexError::NoDocid { .. } | IndexError::NoName { .. } | IndexError::Deleted { .. } => {
            PyKeyError::new_err(chain(error))
        }
        _ => failed(error),
    }
}

/// An error of a build.
pub(crate) fn of_build(error: &BuildError) -> PyErr {
    match error {
        BuildError::Options(_) => wrong(chain(error)),
        _ => failed(error),
    }
}
