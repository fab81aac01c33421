//! Makes exceptions of the library's errors, with the library's message, causes included.

use millrace::BuildError;
use millrace::EvaluateError;
use millrace::inside::shown::chain;
use millrace::{IndexError, JobError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyKeyError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::error::Error;
use std::ffi::CString;

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

/// Warns; if warnings are errors, this is one.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text.replace('\0', "\\0")).expect("it has no zero");
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
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
        IndexError::Query { .. } => wrong(error),
        _ => failed(error),
    }
}

/// An error of a build: `FileNotFoundError` where a file of its input is missing.
pub(crate) fn of_build(error: &BuildError) -> PyErr {
    match error {
        BuildError::Options(_) => wrong(chain(error)),
        BuildError::Input(_) => of_file(error),
        BuildError::Index(error) => of_index(error),
        // Who of the build's threads found it says nothing here.
        BuildError::Job(JobError::Operator { source, .. }) => failed(&**source),
        _ => failed(error),
    }
}

/// An error of judgements or a run: `FileNotFoundError` where their file is missing.
pub(crate) fn of_evaluate(error: &EvaluateError) -> PyErr {
    match error {
        EvaluateError::Io { .. } => of_file(error),
        _ => failed(error),
    }
}

/// An error of reading a file that the caller has named.
pub(crate) fn of_file(error: &(dyn Error + 'static)) -> PyErr {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    let is_missing = causes.any(|error| {
        let error = error.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    if is_missing { PyFileNotFoundError::new_err(chain(error)) } else { failed(error) }
}
