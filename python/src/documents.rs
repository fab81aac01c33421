//! Brings the documents of a Python iterable to a build. A thread of the build asks for them, some
//! at a time, since each change to the interpreter and back costs more than a short document.

use crate::error::wrong;
use crate::frames::Frame;
use crate::options::{name, text};
use millrace::Control;
use millrace::OwnedDocument;
use millrace::inside::input::Fields;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Documents, and bytes of text, that are fetched together at most.
const DOCUMENTS: usize = 256;
const BYTES: usize = 256 << 10;

/// What the iterable, or a document of it, was wrong with.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// The documents of an iterable. What it raises ends the build, so that nothing is lost.
pub(crate) struct PythonDocuments {
    iterator: Option<Py<PyIterator>>,
    fields: Fields,
    fetched: VecDeque<OwnedDocument>,
    number: u64,
    control: Arc<Control>,
    raised: Raised,
}

impl PythonDocuments {
    pub(crate) fn new(
        iterable: &Bound<'_, PyAny>,
        fields: Fields,
        control: Arc<Control>,
    ) -> PyResult<(Self, Raised)> {
        let raised = Raised::default();
        let iterator = match Frame::of(iterable)? {
            Some(frame) => frame.documents(&fields)?.try_iter()?,
            None => iterable.try_iter()?,
        };
        let iterator = Some(iterator.unbind());
        let fetched = VecDeque::new();
        let told = raised.clone();
        Ok((Self { iterator, fields, fetched, number: 0, control, raised: told }, raised))
    }

    fn fetch(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(iterator) = &self.iterator else { return Ok(()) };
        let mut iterator = iterator.bind(py).clone();
        let mut bytes = 0;
        while self.fetched.len() < DOCUMENTS && bytes < BYTES {
            let Some(item) = iterator.next() else {
                self.iterator = None;
                break;
            };
            self.number += 1;
            let document = document(&item?, &self.fields).map_err(|error| {
                let said = error.value(py).to_string();
                PyErr::from_type(error.get_type(py), (format!("document {}: {said}", self.number),))
            })?;
            bytes += document.text.len();
            self.fetched.push_back(document);
        }
        Ok(())
    }

    fn fail(&mut self, error: PyErr) {
        self.iterator = None;
        self.fetched.clear();
        // Told before the input seems to end, so that the build cannot publish what came before.
        self.control.cancel();
        self.raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }
}

impl Iterator for PythonDocuments {
    type Item = OwnedDocument;

    fn next(&mut self) -> Option<OwnedDocument> {
        if self.fetched.is_empty() && self.iterator.is_some() {
            let fetched = Python::try_attach(|py| self.fetch(py));
            let ending = || Err(PyRuntimeError::new_err("the interpreter is ending"));
            if let Err(error) = fetched.unwrap_or_else(ending) {
                self.fail(error);
            }
        }
        self.fetched.pop_front()
    }
}

/// Reads a document: a pair of name and text, or a mapping with fields as the lines of JSON have
/// them.
fn document(item: &Bound<'_, PyAny>, fields: &Fields) -> PyResult<OwnedDocument> {
    if let Ok(pair) = item.cast::<PyTuple>()
        && pair.len() == 2
    {
        let name = name(&pair.get_item(0)?, "its name")?;
        let text = text(&pair.get_item(1)?, &format!("`{name}`: its text"))?;
        return Ok(OwnedDocument::new(name, text));
    }
    let Ok(record) = item.cast::<PyDict>() else { return Err(wrong_type(item)) };
    let mut named: Option<(usize, String)> = None;
    let mut texts: Vec<(usize, String)> = Vec::new();
    for (key, value) in record {
        let key = text(&key, "the name of a field")?;
        if let Some(rank) = fields.name_rank(key.as_bytes())
            && named.as_ref().is_none_or(|(best, _)| rank < *best)
        {
            match name(&value, &format!("its name, the field {key},")) {
                Ok(name) => named = Some((rank, name)),
                Err(_) if fields.is_spare_name(rank) => {}
                Err(wrong) => return Err(wrong),
            }
        } else if let Some(number) = fields.text_number(key.as_bytes())
            && !value.is_none()
        {
            let what = format!("the field {key}");
            let parts: PyResult<Vec<String>> = match value.cast::<PyList>() {
                Ok(list) => list.iter().map(|part| text(&part, &what)).collect(),
                Err(_) => text(&value, &what).map(|text| vec![text]),
            };
            match parts {
                // As in lines of JSON: of a spare field only strings are taken.
                Ok(parts) if parts.is_empty() && fields.is_spare(number) => {}
                Err(_) if fields.is_spare(number) => {}
                parts => texts.push((number, parts?.join("\n"))),
            }
        }
    }
    if fields.is_whole(texts.iter().map(|&(number, _)| number)) {
        texts.retain(|&(number, _)| !fields.is_spare(number));
    }
    if texts.is_empty() {
        let wanted: Vec<&str> = fields.texts().collect();
        return Err(wrong(format!("it has none of the fields {}", wanted.join(", "))));
    }
    let (_, name) = named.ok_or_else(|| {
        let names: Vec<&str> = fields.names().collect();
        wrong(format!("it has none of the fields {} as its name", names.join(", ")))
    })?;
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    Ok(OwnedDocument::new(name, texts.join("\n")))
}

fn wrong_type(item: &Bound<'_, PyAny>) -> PyErr {
    let found = item.get_type();
    PyTypeError::new_err(format!(
        "expected a pair (name, text) of texts, or a dictionary of fields, found {found}"
    ))
}
