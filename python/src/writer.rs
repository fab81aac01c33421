//! The class `Writer`: documents are added, replaced and deleted in an index that is there.

use crate::documents::{strings, value_of};
use crate::error::{of_build, warn, wrong};
use crate::evaluate::json;
use crate::index::Index;
use crate::options::{Size, threads, whole_or_none};
use millrace::{OwnedDocument, Writer as NativeWriter};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::path::PathBuf;

/// Notes documents to be added, replaced and deleted, and commits them together.
///
/// Nothing is seen before a commit. As a context manager it commits where its block ends, and drops
/// everything if that ends by an exception. It may stay open for any number of commits; other jobs
/// may change the index between them. Threads may share it: who commits while another commit is
/// under way waits, and then one commit takes what all who wait have noted.
///
/// What was noticed in the documents, as by `build`, are warnings.
///
/// Args:
///     index: folder of the index; or an open `Index`, which sees a commit once it has returned.
///     memory: the most memory that a commit allocates, as in `build`.
///     workers: threads of a commit; as many as cores if left out.
///     wait: wait while another job writes to the index.
///     allow_shrink: allow a commit that leaves less than half of the documents, or none.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Writer {
    native: NativeWriter,
    searched: Option<Py<Index>>,
}

/// What a writer is made of.
#[derive(FromPyObject)]
enum WriterIndex {
    Open(Py<Index>),
    Folder(PathBuf),
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (index, *, memory=None, workers=None, wait=true, allow_shrink=false))]
    fn new(
        index: WriterIndex,
        memory: Option<Size>,
        #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
        wait: bool,
        allow_shrink: bool,
    ) -> PyResult<Self> {
        let (folder, searched) = match index {
            WriterIndex::Open(index) => (index.get().folder().to_path_buf(), Some(index)),
            WriterIndex::Folder(folder) => (folder, None),
        };
        let mut native = NativeWriter::new(folder);
        if let Some(memory) = memory {
            native.memory = memory.bytes()?;
        }
        native.workers = threads(workers)?.get();
        (native.wait, native.allow_shrink) = (wait, allow_shrink);
        Ok(Self { native, searched })
    }

    /// Adds a document; it replaces all that have its name.
    ///
    /// Args:
    ///     name, text: those of the document.
    ///     fields: texts of fields of the index, by their names: of each one or a list.
    ///     values: its values, a dictionary by the names of columns and of fields that are kept.
    ///
    /// Raises:
    ///     ValueError: the name is empty.
    #[pyo3(signature = (name, text, fields=None, values=None))]
    fn update(
        &self,
        name: String,
        text: String,
        fields: Option<&Bound<'_, PyDict>>,
        values: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if name.is_empty() {
            return Err(wrong("a document that is added to an index has to have a name"));
        }
        let mut document = OwnedDocument::new(name, text);
        for (field, value) in fields.into_iter().flatten() {
            let field: String = field.extract()?;
            for text in strings(&value) {
                document = document.with_field(&field, text);
            }
        }
        for (column, value) in values.into_iter().flatten() {
            document.values.insert(column.extract()?, value_of(&value)?);
        }
        self.native.update_document(document);
        Ok(())
    }

    /// Deletes all documents of a name, or all that pass a filter.
    ///
    /// Args:
    ///     name: the name.
    ///     filter: as in `Index.search`. Documents that are there when the commit begins are looked
    ///         at, and none that is added with it. A commit with a wrong one raises ValueError.
    #[pyo3(signature = (name=None, *, filter=None))]
    fn delete(&self, name: Option<String>, filter: Option<String>) -> PyResult<()> {
        match (name, filter) {
            (Some(name), None) => self.native.delete(name),
            (None, Some(filter)) => self.native.delete_passing(filter),
            _ => return Err(wrong("give either a name or a filter")),
        }
        Ok(())
    }

    /// Drops what is not committed, of all threads.
    fn abort(&self) {
        self.native.abort();
    }

    /// How many names are to be changed by the next commit, and filters to be applied.
    #[getter]
    fn pending(&self) -> usize {
        self.native.pending()
    }

    /// Publishes all changes together, and tells of the commit that took them.
    ///
    /// Args:
    ///     keep_point: whether a rollback goes back to this generation.
    ///
    /// Returns:
    ///     How many documents were added, replaced, deleted, absent and more, and the generation.
    ///
    /// Raises:
    ///     FileNotFoundError: there is no index.
    ///     MillraceError: the commit failed; the index and what is noted are as they were.
    #[pyo3(signature = (keep_point=false))]
    fn commit<'py>(&self, py: Python<'py>, keep_point: bool) -> PyResult<Bound<'py, PyAny>> {
        let native = &self.native;
        let updated = py.detach(|| native.commit(keep_point)).map_err(|error| of_build(&error))?;
        if let (Some(index), Some(generation)) = (&self.searched, native.generation()) {
            index.get().move_to(py, generation)?;
        }
        updated.remarks.iter().try_for_each(|remark| warn(py, remark))?;
        json(py, &serde_json::to_value(&updated).map_err(wrong)?)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind=None, value=None, traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyType>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        _ = (value, traceback);
        match kind {
            Some(_) => self.native.abort(),
            None => _ = self.commit(py, false)?,
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        let pending = self.native.pending();
        format!("Writer({:?}, {pending} pending)", self.native.index().display().to_string())
    }
}
