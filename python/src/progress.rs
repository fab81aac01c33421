//! Tells Python how far a job is. The thread that called does, which waits anyway: where a notebook
//! shows something depends on the thread, and what is raised ends the job.

use crate::evaluate::json;
use crate::interrupt::{Turn, serving};
use millrace::inside::index::Stop;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use serde_json::Value;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Who is told, or nobody.
#[derive(Default)]
pub(crate) struct Told {
    function: Option<Py<PyAny>>,
    /// It is ours, and has to be closed.
    is_shown: bool,
    /// Counts queries, and ends the job.
    pub(crate) stop: Stop,
}

impl Told {
    /// `asked` is what the caller gave: true for something that shows it, or a function. Some
    /// iterables know how many `documents` they have.
    pub(crate) fn of(
        asked: Option<&Bound<'_, PyAny>>,
        documents: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let Some(asked) = asked else { return Ok(Self::default()) };
        let py = asked.py();
        let is_shown = match asked.cast::<PyBool>() {
            Ok(asked) => asked.is_true(),
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
                let number = py.import("operator")?.call_method1("length_hint", (documents, 0))?;
                Some(py.import("millrace._progress")?.call_method1("shown", (number,))?)
            }
            false => asked.is_callable().then(|| asked.clone()),
        };
        Ok(Self { function: function.map(Bound::unbind), is_shown, stop: Stop::default() })
    }

    /// Does `work` as [`serving`] does. The `figures`, an object, are told until it has ended, and
    /// `feed` is called whenever the channel says that the work wants more.
    pub(crate) fn during<T: Send>(
        &self,
        py: Python<'_>,
        turns: (Sender<Turn>, Receiver<Turn>),
        figures: impl Fn() -> Value + Sync,
        mut feed: impl FnMut(Python<'_>) -> PyResult<()> + Send,
        stop: impl Fn() + Send + Sync,
        work: impl FnOnce() -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let tell = |py: Python<'_>, finished: bool| {
            let Some(function) = &self.function else { return Ok(()) };
            let mut figures = figures();
            figures["finished"] = finished.into();
            function.call1(py, (json(py, &figures)?,)).map(|_| ())
        };
        let serve = |py: Python<'_>, turn: Turn| match turn {
            Turn::Wanted => feed(py),
            _ => tell(py, false),
        };
        let done = serving(py, turns, serve, stop, work).and_then(|done| done);
        let ended = done.as_ref().map_or(Ok(()), |_| tell(py, true));
        if let Some(function) = self.function.as_ref().filter(|_| self.is_shown) {
            function.call_method0(py, "close")?;
        }
        let done = done?;
        ended.map(|()| done)
    }

    /// As [`Self::during`], for work that counts these.
    pub(crate) fn counted<T: Send>(
        &self,
        py: Python<'_>,
        what: &str,
        work: impl FnOnce() -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let figures = || {
            let (done, all) = self.stop.how_far().unwrap_or_default();
            serde_json::json!({ (what): done, (format!("total_{what}")): all })
        };
        self.during(py, channel(), figures, |_| Ok(()), || self.stop.set(), work)
    }
}
