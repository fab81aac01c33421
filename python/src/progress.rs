//! Tells Python how far a build is. The thread that called `build` does, which waits anyway: where
//! a notebook shows something depends on the thread, and what is raised ends the build.

use crate::build::lock;
use millrace::inside::build::{BuildProgress, OnProgress};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use std::sync::{Arc, Mutex};

/// A function that is told, and what it is told next.
pub(crate) struct Told {
    function: Py<PyAny>,
    /// The last figures, and whether they are new.
    figures: Arc<Mutex<(BuildProgress, bool)>>,
    /// It is ours, and has to be closed.
    is_shown: bool,
}

impl Told {
    /// `asked` is what the caller gave: true for something that shows it, or a function. None if
    /// nobody wants to know.
    pub(crate) fn of(
        asked: Option<&Bound<'_, PyAny>>,
        documents: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Self>> {
        let Some(asked) = asked else { return Ok(None) };
        let py = asked.py();
        let is_shown = match asked.cast::<PyBool>() {
            Ok(asked) if !asked.is_true() => return Ok(None),
            Ok(_) => true,
            Err(_) if asked.is_callable() => false,
            Err(_) => {
                let what = asked.get_type();
                return Err(PyTypeError::new_err(format!(
                    "progress is True, False or a function, not {what}"
                )));
            }
        };
        let function = match is_shown {
            true => {
                // Some iterables know how many they have.
                let number = py.import("operator")?.call_method1("length_hint", (documents, 0))?;
                py.import("millrace._progress")?.call_method1("shown", (number,))?
            }
            false => asked.clone(),
        };
        Ok(Some(Self { function: function.unbind(), figures: Arc::default(), is_shown }))
    }

    /// For the build, which calls it from a thread of its own.
    pub(crate) fn listener(&self) -> OnProgress {
        let figures = self.figures.clone();
        Box::new(move |progress| {
            *lock(&figures) = (*progress, true);
        })
    }

    /// Calls the function if there is something new, and when the build has `finished`.
    pub(crate) fn tell(&self, py: Python<'_>, finished: bool) -> PyResult<()> {
        let (progress, is_new) = {
            let mut figures = lock(&self.figures);
            let (progress, is_new) = &mut *figures;
            (*progress, std::mem::take(is_new))
        };
        if !is_new && !finished {
            return Ok(());
        }
        let done = PyDict::new(py);
        done.set_item("documents", progress.documents)?;
        done.set_item("read_bytes", progress.read_bytes)?;
        done.set_item("total_bytes", progress.total_bytes)?;
        done.set_item("merged", progress.merged)?;
        done.set_item("finished", finished)?;
        self.function.call1(py, (done,)).map(|_| ())
    }

    /// Nothing comes any more.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.is_shown {
            true => self.function.call_method0(py, "close").map(|_| ()),
            false => Ok(()),
        }
    }
}
