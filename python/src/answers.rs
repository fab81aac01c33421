//! The answers to many queries, which go by their names as a dictionary does.

use crate::error::wrong;
use crate::evaluate::from_json;
use crate::frames::framed;
use crate::hits::{Found, Hits, Kind, array, column, each, place};
use millrace::inside::query::{AnswerForm, RunTag};
use millrace::{Hit, ManyHits, Query};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What is in the brackets behind some answers.
#[derive(FromPyObject)]
enum QueryPlace {
    Number(isize),
    Name(String),
}

/// The answers to many queries.
///
/// Hits lie in columns, query after query, each best first: those of query `i` are
/// `offsets[i]` to `offsets[i + 1]`. `answers[i]` or `answers[qid]` has the hits of one, and
/// iterating yields those of each. `qid in answers`, `items()` and `dict(answers)` go by qid.
#[pyclass(frozen, sequence, module = "millrace")]
pub(crate) struct Answers {
    found: Arc<Found>,
    queries: Vec<(String, String)>,
    /// The most hits that each could have.
    pub k: usize,
    names: PyOnceLock<Py<PyAny>>,
    /// Of each query by its name, once they are asked for; the first of several.
    places: OnceLock<HashMap<String, usize>>,
}

impl Answers {
    pub(crate) fn new(found: Found, queries: Vec<(String, String)>, k: usize) -> Self {
        Self::of(Arc::new(found), queries, k)
    }

    fn of(found: Arc<Found>, queries: Vec<(String, String)>, k: usize) -> Self {
        Self { found, queries, k, names: PyOnceLock::new(), places: OnceLock::new() }
    }

    fn places(&self) -> &HashMap<String, usize> {
        self.places.get_or_init(|| {
            let last_first = self.queries.iter().enumerate().rev();
            last_first.map(|(place, (qid, _))| (qid.clone(), place)).collect()
        })
    }

    /// A name that two queries have.
    pub(crate) fn repeated(&self) -> Option<&str> {
        let places = self.places();
        let mut queries = self.queries.iter().enumerate();
        let found = queries.find(|(place, (qid, _))| places[qid] != *place);
        found.map(|(_, (qid, _))| &**qid)
    }

    /// Calls `each` with qid, name and score of every hit.
    pub(crate) fn each(&self, mut each: impl FnMut(&str, &str, f32)) -> PyResult<()> {
        self.found.with_names((0, self.found.hits.docids.len()), |name| {
            for (at, (qid, _)) in self.queries.iter().enumerate() {
                let (start, end) = self.range(at);
                for hit in start..end {
                    each(qid, &name(hit), self.found.hits.scores[hit]);
                }
            }
            Ok(())
        })
    }

    fn range(&self, at: usize) -> (usize, usize) {
        let offsets = &self.found.hits.offsets;
        (offsets[at] as usize, offsets[at + 1] as usize)
    }

    fn write_to(&self, path: &Path, form: AnswerForm) -> PyResult<()> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let mut text = Vec::new();
        let mut hits = Vec::new();
        for (at, (qid, query)) in self.queries.iter().enumerate() {
            let (start, end) = self.range(at);
            let ManyHits { docids, scores, .. } = &self.found.hits;
            hits.clear();
            hits.extend((start..end).map(|at| Hit { docid: docids[at], score: scores[at] }));
            let query = Query::new(qid.as_str(), query.as_str());
            self.found.with_names((start, end), |name| {
                form.write(&query, &hits, None, Duration::ZERO, name, &mut text);
                Ok(())
            })?;
            out.write_all(&text)?;
            text.clear();
        }
        Ok(out.flush()?)
    }
}

#[pymethods]
impl Answers {
    /// As hits, and with queries, where the hits of each begin, how many are unknown, and k.
    #[new]
    #[pyo3(signature = (generation, docids, scores, queries, offsets, unknown, k=usize::MAX, found=Vec::new(),
        syntax="words", facets=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "they are what is pickled")]
    fn again(
        generation: PathBuf,
        docids: &[u8],
        scores: &[u8],
        queries: Vec<(String, String)>,
        offsets: Vec<u64>,
        unknown: usize,
        k: usize,
        found: Vec<u64>,
        syntax: &str,
        facets: Vec<String>,
    ) -> PyResult<Self> {
        let of_queries = [0, queries.len()];
        if offsets.len() != queries.len() + 1
            || !of_queries.contains(&found.len())
            || !of_queries.contains(&facets.len())
        {
            return Err(wrong("the number of answers is not that of the queries"));
        }
        let hits = ManyHits { offsets, unknown, found, facets, ..ManyHits::default() };
        let found = Found::again(generation, hits, syntax, [docids, scores])?;
        Ok(Self::of(found, queries, k))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ManyHits { docids, offsets, unknown, found, facets, .. } = &self.found.hits;
        let (folder, docids, scores) = self.found.pickled(py, (0, docids.len()))?;
        let offsets = offsets.clone();
        let queries = self.queries.clone();
        let (found, facets) = (found.clone(), facets.clone());
        let syntax = self.found.syntax.name();
        (folder, docids, scores, queries, offsets, *unknown, self.k, found, syntax, facets)
            .into_pyobject(py)
    }

    /// The names of the queries, in their order.
    #[getter]
    fn qids(&self) -> Vec<&str> {
        self.queries.iter().map(|(qid, _)| &**qid).collect()
    }

    /// Where the hits of each query begin, and at last where all end: `uint64[queries + 1]`.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.found, Kind::Offsets)
    }

    /// The docids: `uint32[hits]`. A view of memory that may not be written.
    #[getter]
    fn docids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.found, Kind::Docids)
    }

    /// The scores: `float32[hits]`. A view of memory that may not be written.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        column(py, &self.found, Kind::Scores)
    }

    /// The names of the documents: `str[hits]`. They are looked up when this is first asked for.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let names = self.names.get_or_try_init(py, || {
            let all = (0, self.found.hits.docids.len());
            array(py, self.found.names(py, all)?).map(Bound::unbind)
        })?;
        Ok(names.bind(py).clone())
    }

    /// How many documents match each query, if `count` was asked for; else None.
    #[getter]
    fn found(&self) -> Option<&[u64]> {
        Some(&self.found.hits.found[..]).filter(|found| found.len() == self.queries.len())
    }

    /// The facets of each query, as those of hits, if they were asked for; else None.
    #[getter]
    fn facets<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let all = &self.found.hits.facets;
        let facets = || all.iter().map(|facets| from_json(py, facets)).collect();
        (!all.is_empty()).then(facets).transpose()
    }

    /// Queries of which no term is in the index.
    #[getter]
    fn unknown(&self) -> usize {
        self.found.hits.unknown
    }

    fn __len__(&self) -> usize {
        self.queries.len()
    }

    /// The hits of a query, by its place or its name.
    fn __getitem__(&self, at: QueryPlace) -> PyResult<Hits> {
        let at = match at {
            QueryPlace::Number(at) => place(at, self.queries.len())?,
            QueryPlace::Name(name) => {
                let found = self.places().get(&name).copied();
                found.ok_or_else(|| PyKeyError::new_err(format!("there is no query {name}")))?
            }
        };
        let (start, end) = self.range(at);
        let query = self.queries[at].1.as_str().into();
        let matching = self.found.hits.found.get(at).copied();
        let facets = self.found.hits.facets.get(at).map(|facets| facets.as_str().into());
        Ok(Hits { found: self.found.clone(), query, matching, facets, start, end })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        each(slf)
    }

    /// Whether a query has this name.
    fn __contains__(&self, qid: &Bound<'_, PyAny>) -> bool {
        qid.extract::<String>().is_ok_and(|qid| self.places().contains_key(&qid))
    }

    /// The names of the queries, as of a dictionary.
    fn keys(&self) -> Vec<&str> {
        self.qids()
    }

    /// The hits of each query, as of a dictionary.
    fn values(&self) -> PyResult<Vec<Hits>> {
        let places = 0..self.queries.len() as isize;
        places.map(|at| self.__getitem__(QueryPlace::Number(at))).collect()
    }

    /// Pairs of the name of a query and its hits, as of a dictionary.
    fn items(&self) -> PyResult<Vec<(&str, Hits)>> {
        Ok(self.qids().into_iter().zip(self.values()?).collect())
    }

    fn __repr__(&self) -> String {
        format!(
            "<answers to {} queries: {} hits>",
            self.queries.len(),
            self.found.hits.docids.len()
        )
    }

    /// The values of the documents in a column, as those of hits: `object[hits]`.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.found.values(py, (0, self.found.hits.docids.len()), name)
    }

    /// The texts of the documents, as those of hits: `str[hits]`. A document is read once.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array(py, self.found.texts(py, (0, self.found.hits.docids.len()))?)
    }

    /// A data frame with a row for each hit, and PyTerrier's columns: qid, query, docno, docid,
    /// score and rank, which counts from 0.
    ///
    /// Args:
    ///     library: whose frame: "pandas", "polars" or "pyarrow", which has to be installed.
    #[pyo3(signature = (library="pandas"))]
    fn to_frame<'py>(slf: &Bound<'py, Self>, library: &str) -> PyResult<Bound<'py, PyAny>> {
        framed(slf, Some(&slf.get().queries), library)
    }

    /// Writes the answers as a run file for trec_eval and others: `qid Q0 name rank score tag` a
    /// line.
    ///
    /// Args:
    ///     path: the file; one that is there is replaced.
    ///     tag: the name of the run, one word.
    #[pyo3(signature = (path, tag="millrace"))]
    fn write_run(&self, py: Python<'_>, path: PathBuf, tag: &str) -> PyResult<()> {
        let tag = RunTag::new(tag).ok_or_else(|| {
            wrong(format!("tag is one word of at most {} bytes", RunTag::MOST_BYTES))
        })?;
        py.detach(|| self.write_to(&path, AnswerForm::Trec(tag)))
    }
}
