//! Data frames in the place of documents, queries, judgements and runs. How each kind is read is
//! written in Python, in `millrace/_frames.py`.

use crate::error::wrong;
use millrace::IndexFields;
use millrace::inside::input::Fields;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

/// What is taken of a record.
pub(crate) struct Asked {
    pub(crate) fields: Fields,
    pub(crate) index_fields: IndexFields,
    /// Names of columns.
    pub(crate) columns: Vec<String>,
}

/// A data frame of any kind.
pub(crate) struct Frame<'py>(Bound<'py, PyAny>);

impl<'py> Frame<'py> {
    /// `None` if a value is no data frame.
    pub(crate) fn of(value: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let mut marks = ["collect_schema", "columns", "column_names", "schema"].iter();
        if !marks.any(|mark| value.hasattr(*mark).unwrap_or(false)) {
            return Ok(None);
        }
        let table = module(value.py())?.call_method1("table", (value,))?;
        Ok((!table.is_none()).then_some(Self(table)))
    }

    /// Its rows as documents: dictionaries of those columns that are names, texts or fields of the
    /// index, or have `values`.
    pub(crate) fn documents(
        &self,
        Asked { fields, index_fields, columns: values }: &Asked,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns: Vec<Bound<'py, PyAny>> = self.0.getattr("columns")?.extract()?;
        let columns: Vec<String> =
            columns.iter().filter_map(|column| column.extract().ok()).collect();
        let is_name = |column: &&String| fields.name_rank(column.as_bytes()).is_some();
        let is_text = |column: &&String| fields.text_number(column.as_bytes()).is_some();
        let missing = |what: &str, names: Vec<&str>| {
            let found = columns.join(", ");
            wrong(format!(
                "the data frame has no column {what}: none of {}; its columns are {found}",
                names.join(", ")
            ))
        };
        if !columns.iter().any(|column| is_name(&column)) {
            return Err(missing("with the names of documents", fields.names().collect()));
        }
        if !columns.iter().any(|column| is_text(&column)) {
            return Err(missing("with their texts", fields.texts().collect()));
        }
        let is_wanted = |column: &&String| {
            let is_of_index = index_fields.number(column).is_some() || values.contains(*column);
            is_name(column) || is_text(column) || is_of_index
        };
        let wanted: Vec<&String> = columns.iter().filter(is_wanted).collect();
        self.0.call_method1("records", (wanted,))
    }

    /// The first rows as dictionaries of all columns.
    pub(crate) fn first_rows(&self) -> PyResult<Bound<'py, PyIterator>> {
        self.0.call_method0("first")?.try_iter()
    }

    /// Whether there is a column of this name.
    pub(crate) fn has(&self, column: &str) -> PyResult<bool> {
        self.0.getattr("columns")?.contains(column)
    }

    /// The rows of columns that go by one of the names of each of these lists.
    pub(crate) fn rows(&self, lists: &[&str]) -> PyResult<Bound<'py, PyIterator>> {
        self.0
            .call_method1("of", PyTuple::new(self.0.py(), named(self.0.py(), lists)?)?)?
            .try_iter()
    }
}

/// The rows of a data frame, by columns that go by one of the names of each list, or of what a
/// program has; `what` says that in errors.
pub(crate) fn rows<'py>(
    value: &Bound<'py, PyAny>,
    what: &str,
    lists: &[&str],
) -> PyResult<Bound<'py, PyIterator>> {
    if let Some(frame) = Frame::of(value)? {
        return frame.rows(lists);
    }
    let lists = named(value.py(), lists)?;
    module(value.py())?.call_method1("rows", (value, what, lists))?.try_iter()
}

/// The lists of names that `_frames.py` has.
fn named<'py>(py: Python<'py>, lists: &[&str]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let module = module(py)?;
    lists.iter().map(|list| module.getattr(*list)).collect()
}

fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("millrace._frames")
}

/// Answers to these queries, or hits, as a frame of a library.
pub(crate) fn framed<'py>(
    found: &Bound<'py, PyAny>,
    queries: Option<&[(String, String)]>,
    library: &str,
) -> PyResult<Bound<'py, PyAny>> {
    module(found.py())?.call_method1("make", (library, found, queries))
}
