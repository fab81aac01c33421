//! Queries of a program: texts, terms with weights, pairs, dictionaries, data frames and files.

use crate::build::lock;
use crate::error::{of_file, warn, wrong};
use crate::frames::Frame;
use crate::options::{label, text};
use millrace::inside::index::Stop;
use millrace::inside::papers;
use millrace::inside::query::{Expanded, Expander, QueryReading, Rm3, objects};
use millrace::{Lines, Query, Snapshot, Syntax, Wanted};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Texts of queries, each behind its name.
pub(crate) type Named = Vec<(String, String)>;

pub(crate) struct Reading<'a> {
    /// What they are for.
    pub snapshot: &'a Snapshot,
    /// Each has to have a name of its own.
    pub unique: bool,
    /// The form of a file, if it is named.
    pub form: Option<&'a str>,
    pub syntax: Syntax,
}

impl<'a> Reading<'a> {
    /// As queries are read if nothing is said.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, unique: false, form: None, syntax: Syntax::Words }
    }

    fn options(&self) -> PyResult<QueryReading> {
        let form = self.form.map(str::parse).transpose().map_err(wrong)?;
        Ok(QueryReading {
            form,
            unique: self.unique,
            algorithms: papers::ALGORITHMS,
            syntax: self.syntax,
            ..QueryReading::default()
        })
    }

    /// Reads queries and their names, and warns of what means nothing in them.
    pub(crate) fn read(&self, queries: &Bound<'_, PyAny>) -> PyResult<Named> {
        if queries.is_instance_of::<PyString>() {
            return Err(wrong("queries are several: give a list"));
        }
        if let Ok(path) = queries.extract::<PathBuf>() {
            let opened = Lines::open_as(&path, self.options()?);
            let opened = opened.map_err(|error| match error.kind() {
                ErrorKind::InvalidData => wrong(format!("{}: {error}", path.display())),
                _ => error.into(),
            });
            return self.told(queries.py(), opened?);
        }
        if self.form.is_some() {
            return Err(wrong("query_format is for the path of a file"));
        }
        let frame = Frame::of(queries)?;
        let rows = frame.map(|frame| {
            let texts = if frame.has("query_toks")? { "TOKS" } else { "TEXTS" };
            Ok::<_, PyErr>(frame.rows(&["QIDS", texts])?.into_any())
        });
        let read = read(&rows.transpose()?.unwrap_or_else(|| queries.clone()))?;
        self.told(queries.py(), Lines::of_queries(read, self.options()?))
    }

    /// The text of one query.
    pub(crate) fn one(&self, asked: &Bound<'_, PyAny>) -> PyResult<String> {
        let read = match asked.is_instance_of::<PyDict>() {
            true => read(PyList::new(asked.py(), [asked])?.as_any())?,
            false => vec![Query::new("1", text(asked, "a query")?)],
        };
        let lines = Lines::of_queries(read, self.options()?);
        Ok(self.told(asked.py(), lines)?.pop().map(|(_, text)| text).unwrap_or_default())
    }

    fn told<R: std::io::Read>(&self, py: Python<'_>, lines: Lines<R>) -> PyResult<Named> {
        let remarks = Arc::new(Mutex::new(Vec::new()));
        let told = remarks.clone();
        let are_words = !self.snapshot.generation().manifest().settings.has_impacts();
        let lines = lines.telling(are_words, move |remark| lock(&told).push(remark));
        let mut read = Vec::new();
        for query in lines {
            let query = query.map_err(|error| match error.kind() {
                ErrorKind::InvalidData => wrong(error),
                _ => error.into(),
            })?;
            let query = query.map_err(wrong)?;
            let Query { k, mode, algorithm, syntax, count, .. } = query;
            let other = syntax.is_some_and(|syntax| syntax != self.syntax);
            let is_listed = query.filter.is_some()
                || query.sort.is_some()
                || query.facets.is_some()
                || query.returned.is_some()
                || query.offset > 0;
            let Query { qid, text, .. } = query;
            let has_wishes = k.is_some() || mode.is_some() || algorithm.is_some() || other;
            if has_wishes || count.is_some() || is_listed {
                return Err(wrong(format!(
                    "query {qid} has wishes of its own: give them to the search"
                )));
            }
            read.push((qid, text));
        }
        for remark in lock(&remarks).iter() {
            warn(py, remark)?;
        }
        Ok(read)
    }
}

/// Reads queries that a program has, and warns of fields that are not known.
fn read(queries: &Bound<'_, PyAny>) -> PyResult<Vec<Query>> {
    let module = queries.py().import("millrace._queries")?;
    let items = module.call_method1("read", (queries, objects::NAMES, objects::TEXTS))?;
    let mut read = Vec::new();
    let mut is_told = false;
    for (item, number) in items.try_iter()?.zip(1u64..) {
        let item = item?;
        if item.is_instance_of::<PyString>() {
            let text = text(&item, &format!("query {number}"))?;
            read.push(Query::new(number.to_string(), text));
            continue;
        }
        let (name, asked, is_object): (Bound<'_, PyAny>, Bound<'_, PyAny>, bool) =
            item.extract()?;
        let name = match name.is_none() && is_object {
            true => None,
            false => Some(label(&name, &format!("query {number}: its name"))?),
        };
        let shown = name.clone().unwrap_or_else(|| number.to_string());
        let text = text(&asked, &format!("query {shown}: its text"))?;
        if !is_object {
            read.push(Query::new(shown, text));
            continue;
        }
        let (query, unknown) = objects::object(&text, number, papers::ALGORITHMS)
            .map_err(|why| wrong(format!("query {shown}: {why}")))?;
        let qid = name.unwrap_or_else(|| query.qid.clone());
        if !unknown.is_empty() && !is_told {
            is_told = true;
            let fields = unknown.join(", ");
            let said = format!("query {qid}: unknown fields are ignored: {fields} (said once)");
            warn(queries.py(), &said)?;
        }
        read.push(Query { qid, ..query });
    }
    Ok(read)
}

/// Queries that are expanded by RM3, with their names.
pub(crate) fn expand(
    snapshot: &Arc<Snapshot>,
    queries: Named,
    (documents, terms, weight): (usize, usize, f64),
    wanted: &Wanted,
    threads: NonZeroUsize,
    stop: &Stop,
) -> PyResult<Named> {
    let rm3 = Rm3::new(documents, terms, weight).map_err(wrong)?;
    let expander = Expander::new(snapshot.clone(), rm3, *wanted);
    let of = |(qid, text)| Ok(Ok(Query { qid, text, ..Query::default() }));
    let queries = queries.into_iter().map(of);
    let queries = expander.and_then(|expander| Expanded::new(queries, expander, threads));
    let queries = queries.map_err(|error| of_file(&error))?.take_while(|_| !stop.is_set());
    let expanded = queries.map(|read| {
        stop.pass(1);
        let named = |query: Query| (query.qid, query.text);
        Ok(read.map_err(|error| of_file(&error))?.map(named).unwrap_or_default())
    });
    expanded.collect()
}
