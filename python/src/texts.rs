//! Texts of documents, which are read again from the files that were indexed.

use crate::error::{failed, of_file};
use crate::interrupt::interruptible;
use millrace::inside::index::Stop;
use millrace::inside::query::Reread;
use millrace::{Generation, IndexError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::BTreeMap;

/// The texts of these documents. Each is read once, in the order in which they lie in their files.
///
/// # Errors
/// `FileNotFoundError` if a file is gone, and `MillraceError` if it has changed or the texts were
/// never in one.
pub(crate) fn texts<'py>(
    py: Python<'py>,
    generation: &Generation,
    docids: &[u32],
) -> PyResult<Bound<'py, PyList>> {
    let mut read: BTreeMap<u32, String> = BTreeMap::new();
    read.extend(docids.iter().map(|&docid| (docid, String::new())));
    let stop = Stop::default();
    let outcome = interruptible(
        py,
        || stop.set(),
        || {
            let mut texts = Reread::of(generation)?;
            for (&docid, text) in read.iter_mut().take_while(|_| !stop.is_set()) {
                *text = String::from_utf8_lossy(&texts.text(generation, docid)?).into_owned();
            }
            Ok(())
        },
    )?;
    outcome.map_err(|error: IndexError| match error {
        IndexError::Io { .. } => of_file(&error),
        _ => failed(&error),
    })?;
    let read: BTreeMap<u32, Py<PyString>> =
        read.iter().map(|(&docid, text)| (docid, PyString::new(py, text).unbind())).collect();
    PyList::new(py, docids.iter().map(|docid| &read[docid]))
}
