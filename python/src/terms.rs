//! What an index has for a term.

use crate::error::{of_index, wrong};
use millrace::inside::index::TermLists;
use millrace::{IndexError, Snapshot};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// The lists of a term, or of what a text is analysed to.
fn lists(snapshot: &Snapshot, term: &str) -> PyResult<TermLists> {
    let find =
        |term: &str| TermLists::find(snapshot.generation(), term).map_err(|error| of_index(&error));
    let own = find(term)?;
    let mut terms: Vec<String> = Vec::new();
    if own.lists.is_empty() && !snapshot.generation().manifest().settings.has_impacts() {
        snapshot.analysis().terms(term.as_bytes(), |term| terms.push(term.to_string()));
    }
    match &terms[..] {
        [] => Ok(own),
        [term] => find(term),
        _ => Err(wrong(format!("`{term}` is several terms: {}", terms.join(", ")))),
    }
}

/// Documents that are not deleted.
pub(crate) fn df(snapshot: &Snapshot, term: &str) -> PyResult<u32> {
    let df = lists(snapshot, term)?.df(snapshot.generation());
    df.map(|df| df as u32).map_err(|error| of_index(&error))
}

/// Docids and tfs, as arrays of numpy.
pub(crate) fn postings<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    term: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let lists = lists(snapshot, term)?;
    let columns = py.detach(|| {
        let mut columns = [Vec::new(), Vec::new()];
        lists.postings(snapshot.generation(), |docids, tfs| {
            docids.iter().for_each(|docid| columns[0].extend(docid.to_le_bytes()));
            tfs.iter().for_each(|tf| columns[1].extend(tf.to_le_bytes()));
        })?;
        Ok::<_, IndexError>(columns)
    });
    let columns = columns.map_err(|error| of_index(&error))?;
    let numpy = py.import("numpy")?;
    let array =
        |bytes: &Vec<u8>| numpy.call_method1("frombuffer", (PyBytes::new(py, bytes), "<u4"));
    PyTuple::new(py, [array(&columns[0])?, array(&columns[1])?])
}
