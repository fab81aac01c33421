//! Queries of a program: texts, pairs, dictionaries, data frames and files.

use crate::error::wrong;
use crate::frames::Frame;
use crate::options::{label, text};
use millrace::Lines;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Texts of queries, each behind its name.
pub(crate) type Named = Vec<(String, String)>;

/// Reads queries and their names.
pub(crate) fn read_queries(queries: &Bound<'_, PyAny>) -> PyResult<Named> {
    if queries.is_instance_of::<PyString>() {
        return Err(wrong("queries are several: give a list"));
    }
    if let Ok(path) = queries.extract::<PathBuf>() {
        return read_file(&path);
    }
    let items = match (queries.cast::<PyDict>(), Frame::of(queries)?) {
        (_, Some(frame)) => frame.rows(&["QIDS", "TEXTS"])?,
        (Ok(dict), _) => dict.items().into_any().try_iter()?,
        _ => queries.try_iter()?,
    };
    let mut read = Vec::with_capacity(queries.len().unwrap_or(0));
    for item in items {
        let item = item?;
        let number = read.len() + 1;
        if item.is_instance_of::<PyString>() {
            read.push((number.to_string(), text(&item, &format!("query {number}"))?));
            continue;
        }
        let pair = (item.cast::<PyTuple>()).ok();
        let (qid, words) = pair
            .and_then(|pair| pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().ok())
            .ok_or_else(|| {
                wrong(format!("query {number}: expected a text or a pair (qid, text)"))
            })?;
        let qid = label(&qid, &format!("query {number}: its name"))?;
        let words = text(&words, &format!("query {qid}: its text"))?;
        read.push((qid, words));
    }
    Ok(read)
}

/// Reads a file of queries, in any form that is recognised.
fn read_file(path: &Path) -> PyResult<Named> {
    let mut read = Vec::new();
    let lines = Lines::open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => wrong(format!("{}: {error}", path.display())),
        _ => error.into(),
    })?;
    for query in lines {
        let query = query?.map_err(wrong)?;
        if query.k.is_some() || query.mode.is_some() || query.algorithm.is_some() {
            let qid = query.qid;
            return Err(wrong(format!(
                "query {qid} has wishes of its own: give them to the search"
            )));
        }
        read.push((query.qid, query.text));
    }
    Ok(read)
}
