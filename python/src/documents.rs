//! Brings the documents of a Python iterable to a build. The thread that called `build` asks for
//! them, some at a time and a little ahead: what is raised, by Ctrl-C too, is raised in the
//! iterable, and no other thread is left in the interpreter when it ends.

use crate::error::{warn, wrong};
use crate::frames::{Asked, Frame};
use crate::interrupt::{PAUSE, Turn};
use crate::options::{name, text};
use millrace::OwnedDocument;
use millrace::inside::input::{SeenFields, remarks};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyIterator, PyList, PyString, PyTuple};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// Documents, and bytes of text, that are fetched together at most.
const DOCUMENTS: usize = 256;
const BYTES: usize = 256 << 10;
/// How often as many are fetched before the build takes any.
const AHEAD: usize = 4;

/// The documents as the build takes them.
pub(crate) struct FetchedDocuments {
    batches: Receiver<VecDeque<OwnedDocument>>,
    wake: Sender<Turn>,
    batch: VecDeque<OwnedDocument>,
}

impl Iterator for FetchedDocuments {
    type Item = OwnedDocument;

    fn next(&mut self) -> Option<OwnedDocument> {
        if self.batch.is_empty() {
            self.batch = self.batches.recv().ok()?;
            // Nobody listens once all was fetched.
            _ = self.wake.send(Turn::Wanted);
        }
        self.batch.pop_front()
    }
}

/// An iterable of documents, as long as there are more.
pub(crate) struct PythonDocuments {
    rest: Option<(Py<PyIterator>, Sender<VecDeque<OwnedDocument>>)>,
    asked: Asked,
    number: u64,
    /// Rows of frames have only what is taken; what else there is was seen before.
    is_frame: bool,
    seen: SeenFields,
}

impl PythonDocuments {
    /// The iterable, and its documents, which wake the thread that is to [fetch](Self::fetch) more.
    pub(crate) fn new(
        iterable: &Bound<'_, PyAny>,
        asked: Asked,
        wake: Sender<Turn>,
    ) -> PyResult<(Self, FetchedDocuments)> {
        let frame = Frame::of(iterable)?;
        let mut seen = SeenFields::default();
        let iterator = match &frame {
            Some(frame) => {
                let rows = frame.documents(&asked)?.try_iter()?;
                for row in frame.first_rows()? {
                    // What is wrong with it is found when it is fetched.
                    _ = document(&row?, &asked, &mut seen, true);
                }
                rows
            }
            None => iterable.try_iter()?,
        };
        let (sender, batches) = channel();
        for _ in 0..AHEAD {
            _ = wake.send(Turn::Wanted);
        }
        let rest = Some((iterator.unbind(), sender));
        let is_frame = frame.is_some();
        Ok((
            Self { rest, asked, number: 0, is_frame, seen },
            FetchedDocuments { batches, wake, batch: VecDeque::new() },
        ))
    }

    pub(crate) fn fetch(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some((iterator, sender)) = &self.rest else { return Ok(()) };
        let mut iterator = iterator.bind(py).clone();
        let mut batch = VecDeque::new();
        let mut bytes = 0;
        let start = Instant::now();
        let mut is_over = false;
        while batch.len() < DOCUMENTS && bytes < BYTES && start.elapsed() < PAUSE {
            let Some(item) = iterator.next() else {
                is_over = true;
                break;
            };
            let item = item?;
            let looked_at = !self.is_frame && SeenFields::is_looked_at(self.number);
            self.number += 1;
            let read = document(&item, &self.asked, &mut self.seen, looked_at);
            let document = read.map_err(|error| {
                let said = error.value(py).to_string();
                PyErr::from_type(error.get_type(py), (format!("document {}: {said}", self.number),))
            })?;
            bytes += document.text.len();
            batch.push_back(document);
        }
        // The build has ended if nobody takes it.
        let is_taken = batch.is_empty() || sender.send(batch).is_ok();
        if is_over || !is_taken {
            self.rest = None;
        }
        Ok(())
    }

    /// Warns of what was not taken.
    pub(crate) fn remark(&self, py: Python<'_>) -> PyResult<()> {
        let mut said = Vec::new();
        let asked = self.asked.fields.texts.iter().enumerate();
        let lacking = asked.filter(|(number, _)| self.seen.taken >> number.min(&63) & 1 == 0);
        let lacking: Vec<&str> = lacking.map(|(_, name)| &**name).collect();
        if self.asked.fields.texts.is_empty() {
            said = remarks(&[("this collection".to_string(), &self.seen)]);
        } else if self.number > 0 && !lacking.is_empty() {
            let lacking = lacking.join(", ");
            said.push(format!(
                "no document has these fields, which were asked for as text: {lacking}"
            ));
        }
        said.iter().try_for_each(|remark| warn(py, remark))
    }
}

/// Reads a document: a pair of name and text, or fields as the lines of JSON have them, in a
/// dictionary or a named tuple. Notes what else there is if it is looked at.
fn document(
    item: &Bound<'_, PyAny>,
    asked: &Asked,
    seen: &mut SeenFields,
    looked_at: bool,
) -> PyResult<OwnedDocument> {
    if let Ok(record) = item.cast::<PyDict>() {
        return of_fields(record, asked, seen, looked_at);
    }
    let fields = &asked.fields;
    let Ok(tuple) = item.cast::<PyTuple>() else { return Err(wrong_type(item)) };
    if !tuple.is_exact_instance_of::<PyTuple>() && tuple.hasattr("_fields")? {
        let names: Vec<String> = tuple.getattr("_fields")?.extract()?;
        let is_name = |name: &String| fields.name_rank(name.as_bytes()).is_some();
        let is_text = |name: &String| fields.text_number(name.as_bytes()).is_some();
        let is_asked =
            !(fields.names.is_empty() && fields.texts.is_empty() && asked.columns.is_empty());
        // One of two fields that do not say otherwise is a pair.
        if is_asked || names.len() != 2 || is_text(&names[0]) || is_name(&names[1]) {
            let record: Vec<_> = names.iter().zip(tuple).collect();
            return of_fields(&record.into_py_dict(item.py())?, asked, seen, looked_at);
        }
    }
    let Ok((name, text)) = tuple.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
        return Err(wrong_type(item));
    };
    let name = self::name(&name, "its name")?;
    let text = self::text(&text, &format!("`{name}`: its text"))?;
    Ok(OwnedDocument::new(name, text))
}

fn of_fields(
    record: &Bound<'_, PyDict>,
    Asked { fields, index_fields, columns }: &Asked,
    seen: &mut SeenFields,
    looked_at: bool,
) -> PyResult<OwnedDocument> {
    let mut named: Option<(usize, String)> = None;
    let mut texts: Vec<(usize, String, String)> = Vec::new();
    let mut of_index: Vec<(String, String)> = Vec::new();
    let mut values = Map::new();
    for (key, value) in record {
        let key = text(&key, "the name of a field")?;
        let number = index_fields.number(&key);
        let is_of_index = number.is_some() || columns.contains(&key);
        if number.is_some() {
            of_index.extend(strings(&value).into_iter().map(|text| (key.clone(), text)));
        }
        if columns.contains(&key) {
            values.insert(key.clone(), value_of(&value)?);
        }
        let name_rank = fields.name_rank(key.as_bytes());
        if let Some(rank) = name_rank
            && named.as_ref().is_none_or(|(best, _)| rank < *best)
        {
            match name(&value, &format!("its name, the field {key},")) {
                Ok(name) => named = Some((rank, name)),
                Err(_) if fields.is_spare_name(rank) => {}
                Err(wrong) => return Err(wrong),
            }
        } else if let Some(number) = fields.text_number(key.as_bytes()) {
            if value.is_none() {
                continue;
            }
            let what = format!("the field {key}");
            let parts: PyResult<Vec<String>> = match value.cast::<PyList>() {
                Ok(list) => list.iter().map(|part| text(&part, &what)).collect(),
                Err(_) => text(&value, &what).map(|text| vec![text]),
            };
            match parts {
                // As in lines of JSON: of a spare field only strings are taken.
                Ok(parts) if parts.is_empty() && fields.is_spare(number) => {}
                Err(_) if fields.is_spare(number) => {}
                parts => texts.push((number, key, parts?.join("\n"))),
            }
        } else if looked_at && name_rank.is_none() && !is_of_index {
            seen.has_vectors |= key == "vector" && value.is_instance_of::<PyDict>();
            seen.other(key.as_bytes(), bytes_of_strings(&value, 0), None);
        }
    }
    let is_whole = fields.is_whole(texts.iter().map(|&(number, ..)| number));
    texts.retain(|(number, key, text)| {
        let is_taken = !(is_whole && fields.is_spare(*number));
        match is_taken {
            true => seen.taken |= 1 << number.min(&63),
            false if looked_at => seen.other(key.as_bytes(), text.len(), None),
            false => {}
        }
        is_taken
    });
    if texts.is_empty() {
        let wanted: Vec<&str> = fields.texts().collect();
        return Err(wrong(format!("it has none of the fields {}", wanted.join(", "))));
    }
    let (_, name) = named.ok_or_else(|| {
        let names: Vec<&str> = fields.names().collect();
        wrong(format!("it has none of the fields {} as its name", names.join(", ")))
    })?;
    let texts: Vec<String> = texts.into_iter().map(|(.., text)| text).collect();
    let text = texts.join("\n");
    if looked_at {
        seen.record(true);
        seen.text(text.len());
    }
    let mut document = OwnedDocument::new(name, text);
    document.values = values;
    Ok(of_index.iter().fold(document, |document, (field, text)| document.with_field(field, text)))
}

/// A text, or those of a list; none of anything else.
pub(crate) fn strings(value: &Bound<'_, PyAny>) -> Vec<String> {
    let text = |value: &Bound<'_, PyAny>| text(value, "").ok();
    match value.cast::<PyList>() {
        Ok(list) => list.iter().filter_map(|part| text(&part)).collect(),
        Err(_) => text(value).into_iter().collect(),
    }
}

/// A value of a column or a field as JSON has it: numbers, texts, dates as texts, lists and
/// dictionaries of these; nothing for None and NaN.
pub(crate) fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if value.is_instance_of::<PyString>() {
        return Ok(value.extract::<String>()?.into());
    }
    if let Ok(number) = value.extract::<bool>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<f64>() {
        // JSON has no NaN: that is a null.
        return Ok(number.into());
    }
    if value.hasattr("isoformat")? {
        let text = value.call_method0("isoformat")?.extract::<String>()?;
        // Of pandas, which has it for no time too.
        return Ok(if text == "NaT" { Value::Null } else { text.into() });
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let member = |(key, value): (Bound<'_, PyAny>, _)| {
            Ok((text(&key, "the name of a field")?, value_of(&value)?))
        };
        return members.iter().map(member).collect::<PyResult<Map<_, _>>>().map(Value::from);
    }
    match value.try_iter() {
        Ok(parts) => parts.map(|part| value_of(&part?)).collect(),
        Err(_) => Ok(value.str()?.extract::<String>()?.into()),
    }
}

/// Bytes of all strings in a value, as deep as records are.
fn bytes_of_strings(value: &Bound<'_, PyAny>, depth: usize) -> usize {
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_cow().map_or(0, |text| text.len());
    }
    let parts = match (value.cast::<PyDict>(), value.cast::<PyList>()) {
        (Ok(dict), _) if depth < 8 => dict.values(),
        (_, Ok(list)) if depth < 8 => list.clone(),
        _ => return 0,
    };
    parts.iter().map(|part| bytes_of_strings(&part, depth + 1)).sum()
}

fn wrong_type(item: &Bound<'_, PyAny>) -> PyErr {
    let found = item.get_type();
    PyTypeError::new_err(format!(
        "expected a pair (name, text) of texts, or a dictionary or named tuple of fields, found \
         {found}"
    ))
}
