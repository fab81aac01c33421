//! What searches return: columns of docids and scores, which numpy takes as they lie in memory, and
//! the names, which are looked up when they are asked for.

use crate::error::{of_index, wrong};
use crate::frames::framed;
use crate::texts::texts;
use millrace::Hit;
use millrace::ManyHits;
use millrace::Query;
use millrace::Snapshot;
use millrace::inside::query::{AnswerForm, RunTag};
use millrace::{Generation, Scoring};
use pyo3::exceptions::{PyFileNotFoundError, PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyString, PyTuple, slice};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// What all views of some answers share.
struct Found {
    snapshot: Arc<Snapshot>,
    hits: ManyHits,
}

/// Generations whose answers were unpickled, as long as some of these are left: each is opened
/// once. Locked only by who has the interpreter's lock, so that no fork leaves it locked.
static REOPENED: Mutex<BTreeMap<PathBuf, Weak<Snapshot>>> = Mutex::new(BTreeMap::new());

fn reopened(generation: PathBuf) -> PyResult<Arc<Snapshot>> {
    let mut open = REOPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(snapshot) = open.get(&generation).and_then(Weak::upgrade) {
        return Ok(snapshot);
    }
    if !generation.is_dir() {
        let place = generation.display();
        let gone = format!("{place}: the generation of these hits is not there any more");
        return Err(PyFileNotFoundError::new_err(gone));
    }
    let opened = Generation::open_folder(&generation);
    // Only the names of documents are asked for.
    let snapshot = opened.and_then(|opened| Snapshot::new(opened, Scoring::default()));
    let snapshot = snapshot.map_err(|error| of_index(&error))?;
    open.retain(|_, snapshot| snapshot.strong_count() > 0);
    open.insert(generation, Arc::downgrade(&snapshot));
    Ok(snapshot)
}

/// Numbers as a pickle has them.
fn packed<const N: usize>(py: Python<'_>, numbers: impl Iterator<Item = [u8; N]>) -> Py<PyBytes> {
    PyBytes::new(py, &numbers.flatten().collect::<Vec<u8>>()).unbind()
}

fn unpacked<T, const N: usize>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&bytes| number(bytes)).collect()
}

impl Found {
    /// From what was pickled: docids and scores as bytes.
    fn again(generation: PathBuf, mut hits: ManyHits, columns: [&[u8]; 2]) -> PyResult<Arc<Self>> {
        let snapshot = reopened(generation)?;
        hits.docids = unpacked(columns[0], u32::from_le_bytes);
        hits.scores = unpacked(columns[1], f32::from_le_bytes);
        let documents = snapshot.generation().documents();
        let ends = [hits.offsets.first(), hits.offsets.last()];
        let is_sound = hits.docids.len() == hits.scores.len()
            && ends == [Some(&0), Some(&(hits.docids.len() as u64))]
            && hits.offsets.is_sorted()
            && hits.docids.iter().all(|&docid| documents.name(docid).is_some());
        match is_sound {
            true => Ok(Arc::new(Self { snapshot, hits })),
            false => Err(wrong("these hits are not of this generation")),
        }
    }

    /// The folder of the generation, docids and scores of some hits.
    fn pickled(
        &self,
        py: Python<'_>,
        (start, end): (usize, usize),
    ) -> PyResult<(PathBuf, Py<PyBytes>, Py<PyBytes>)> {
        let folder = std::path::absolute(self.snapshot.generation().path())?;
        let docids = self.hits.docids[start..end].iter().map(|docid| docid.to_le_bytes());
        let scores = self.hits.scores[start..end].iter().map(|score| score.to_le_bytes());
        Ok((folder, packed(py, docids), packed(py, scores)))
    }

    fn name(&self, at: usize) -> Cow<'_, str> {
        let name = self.snapshot.generation().documents().name(self.hits.docids[at]);
        String::from_utf8_lossy(name.unwrap_or_default())
    }

    fn texts<'py>(
        &self,
        py: Python<'py>,
        (start, end): (usize, usize),
    ) -> PyResult<Bound<'py, PyList>> {
        texts(py, self.snapshot.generation(), &self.hits.docids[start..end])
    }

    fn names<'py>(
        &self,
        py: Python<'py>,
        (start, end): (usize, usize),
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, (start..end).map(|at| PyString::new(py, &self.name(at))))
    }
}

/// Which column of the answers.
#[derive(Clone, Copy)]
enum Kind {
    Docids,
    Scores,
    Offsets,
}

/// A column of answers, which `numpy.asarray` takes without a copy.
#[pyclass(frozen, module = "millrace._native")]
pub(crate) struct Column {
    found: Arc<Found>,
    kind: Kind,
}

#[pymethods]
impl Column {
    /// Where the numbers lie, by numpy's protocol; they may be read and not be written.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let hits = &self.found.hits;
        let (length, place, form) = match self.kind {
            Kind::Docids => (hits.docids.len(), hits.docids.as_ptr().addr(), "=u4"),
            Kind::Scores => (hits.scores.len(), hits.scores.as_ptr().addr(), "=f4"),
            Kind::Offsets => (hits.offsets.len(), hits.offsets.as_ptr().addr(), "=u8"),
        };
        let order = if cfg!(target_endian = "little") { "<" } else { ">" };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (length,))?;
        interface.set_item("typestr", form.replace('=', order))?;
        interface.set_item("data", (place, true))?;
        Ok(interface)
    }
}

fn column<'py>(py: Python<'py>, found: &Arc<Found>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
    let column = Column { found: found.clone(), kind };
    py.import("numpy")?.call_method1("asarray", (column,))
}

/// Makes an array of texts.
fn array<'py>(py: Python<'py>, list: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.call_method1("array", (list, "object"))
}

/// The answer to one query: its hits, best first.
///
/// Iterating yields tuples (name, docid, score), without numpy; the columns are numpy arrays.
#[pyclass(frozen, sequence, module = "millrace")]
pub(crate) struct Hits {
    found: Arc<Found>,
    /// Its hits among all that were found.
    start: usize,
    end: usize,
}

impl Hits {
    pub(crate) fn new(snapshot: Arc<Snapshot>, found: &[Hit]) -> Self {
        let end = found.len();
        let hits = ManyHits {
            offsets: vec![0, end as u64],
            docids: found.iter().map(|hit| hit.docid).collect(),
            scores: found.iter().map(|hit| hit.score).collect(),
            ..ManyHits::default()
        };
        Self { found: Arc::new(Found { snapshot, hits }), start: 0, end }
    }

    fn slice<'py>(&self, py: Python<'py>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
        let part = PySlice::new(py, self.start as isize, self.end as isize, 1);
        column(py, &self.found, kind)?.get_item(part)
    }

    fn hit<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyTuple>> {
        let ManyHits { docids, scores, .. } = &self.found.hits;
        (&*self.found.name(at), docids[at], scores[at]).into_pyobject(py)
    }
}

#[pymethods]
impl Hits {
    /// Hits are pickled as the place of their generation, docids and scores.
    #[new]
    fn again(generation: PathBuf, docids: &[u8], scores: &[u8]) -> PyResult<Self> {
        let end = docids.len() / size_of::<u32>();
        let hits = ManyHits { offsets: vec![0, end as u64], ..ManyHits::default() };
        let found = Found::again(generation, hits, [docids, scores])?;
        Ok(Self { found, start: 0, end })
    }

    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<(PathBuf, Py<PyBytes>, Py<PyBytes>)> {
        self.found.pickled(py, (self.start, self.end))
    }

    /// The docids: `uint32[hits]`. A view of memory that may not be written.
    #[getter]
    fn docids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.slice(py, Kind::Docids)
    }

    /// The scores: `float32[hits]`. A view of memory that may not be written.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.slice(py, Kind::Scores)
    }

    /// The names of the documents: `str[hits]`.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array(py, self.found.names(py, (self.start, self.end))?)
    }

    /// The texts of the documents, as they were indexed: `str[hits]`. They are read again from the
    /// files that were indexed, each time that this is called.
    ///
    /// Raises:
    ///     FileNotFoundError: a file is gone.
    ///     MillraceError: a file has changed, or the documents came from the memory of a program.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array(py, self.found.texts(py, (self.start, self.end))?)
    }

    /// A data frame with the columns docno, docid, score and rank, which counts from 0.
    ///
    /// Args:
    ///     library: whose frame: "pandas", "polars" or "pyarrow", which has to be installed.
    #[pyo3(signature = (library="pandas"))]
    fn to_frame<'py>(slf: &Bound<'py, Self>, library: &str) -> PyResult<Bound<'py, PyAny>> {
        framed(slf, None, library)
    }

    fn __len__(&self) -> usize {
        self.end - self.start
    }

    /// A hit; of a slice, the hits, which are neighbours.
    fn __getitem__<'py>(&self, py: Python<'py>, at: Places<'py>) -> PyResult<Bound<'py, PyAny>> {
        let length = self.__len__();
        match at {
            Places::One(at) => Ok(self.hit(py, self.start + place(at, length)?)?.into_any()),
            Places::Part(part) => {
                let slice::PySliceIndices { start, step, slicelength, .. } =
                    part.indices(length as isize)?;
                if step != 1 {
                    return Err(wrong("a slice of hits has step 1"));
                }
                let start = self.start + start as usize;
                let end = start + slicelength;
                Ok(Bound::new(py, Self { found: self.found.clone(), start, end })?.into_any())
            }
        }
    }

    fn __repr__(&self) -> String {
        let shown = self.start..self.end.min(self.start + 3);
        let scores = &self.found.hits.scores;
        let mut shown: Vec<String> =
            shown.map(|at| format!("{} {}", self.found.name(at), scores[at])).collect();
        if self.__len__() > shown.len() {
            shown.push("...".to_string());
        }
        format!("<{} hits: {}>", self.__len__(), shown.join(", "))
    }
}

/// What is in the brackets behind some hits.
#[derive(FromPyObject)]
enum Places<'py> {
    One(isize),
    Part(Bound<'py, PySlice>),
}

/// What is in the brackets behind some answers.
#[derive(FromPyObject)]
enum QueryPlace {
    Number(isize),
    Name(String),
}

/// A place in a sequence, counted from its end if it is negative.
fn place(at: isize, length: usize) -> PyResult<usize> {
    let from_start = if at < 0 { at.checked_add_unsigned(length) } else { Some(at) };
    let at = from_start.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length);
    at.ok_or_else(|| PyIndexError::new_err("there are fewer"))
}

/// The answers to many queries.
///
/// Hits lie in columns, query after query, each best first: those of query `i` are
/// `offsets[i]` to `offsets[i + 1]`. `answers[i]` or `answers[qid]` has the [`Hits`] of one.
#[pyclass(frozen, sequence, module = "millrace")]
pub(crate) struct Answers {
    found: Arc<Found>,
    queries: Vec<(String, String)>,
    names: PyOnceLock<Py<PyAny>>,
}

impl Answers {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        queries: Vec<(String, String)>,
        hits: ManyHits,
    ) -> Self {
        Self { found: Arc::new(Found { snapshot, hits }), queries, names: PyOnceLock::new() }
    }

    /// Calls `each` with qid, name and score of every hit.
    pub(crate) fn each(&self, mut each: impl FnMut(&str, &str, f32)) {
        for (at, (qid, _)) in self.queries.iter().enumerate() {
            let (start, end) = self.range(at);
            for hit in start..end {
                each(qid, &self.found.name(hit), self.found.hits.scores[hit]);
            }
        }
    }

    fn range(&self, at: usize) -> (usize, usize) {
        let offsets = &self.found.hits.offsets;
        (offsets[at] as usize, offsets[at + 1] as usize)
    }

    fn write_to(&self, path: &Path, form: AnswerForm) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let mut text = Vec::new();
        let mut hits = Vec::new();
        for (at, (qid, query)) in self.queries.iter().enumerate() {
            let (start, end) = self.range(at);
            let ManyHits { docids, scores, .. } = &self.found.hits;
            hits.clear();
            hits.extend((start..end).map(|at| Hit { docid: docids[at], score: scores[at] }));
            let query = Query::new(qid.as_str(), query.as_str());
            form.write(&query, &hits, Duration::ZERO, |at| self.found.name(start + at), &mut text);
            out.write_all(&text)?;
            text.clear();
        }
        out.flush()
    }
}

#[pymethods]
impl Answers {
    /// As hits, and with queries, where the hits of each begin, and how many are unknown.
    #[new]
    fn again(
        generation: PathBuf,
        docids: &[u8],
        scores: &[u8],
        queries: Vec<(String, String)>,
        offsets: Vec<u64>,
        unknown: usize,
    ) -> PyResult<Self> {
        if offsets.len() != queries.len() + 1 {
            return Err(wrong("the number of answers is not that of the queries"));
        }
        let hits = ManyHits { offsets, unknown, ..ManyHits::default() };
        let found = Found::again(generation, hits, [docids, scores])?;
        Ok(Self { found, queries, names: PyOnceLock::new() })
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ManyHits { docids, offsets, unknown, .. } = &self.found.hits;
        let (folder, docids, scores) = self.found.pickled(py, (0, docids.len()))?;
        (folder, docids, scores, self.queries.clone(), offsets.clone(), *unknown).into_pyobject(py)
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
                let found = self.queries.iter().position(|(qid, _)| *qid == name);
                found.ok_or_else(|| PyKeyError::new_err(format!("there is no query {name}")))?
            }
        };
        let (start, end) = self.range(at);
        Ok(Hits { found: self.found.clone(), start, end })
    }

    fn __repr__(&self) -> String {
        format!(
            "<answers to {} queries: {} hits>",
            self.queries.len(),
            self.found.hits.docids.len()
        )
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
        Ok(py.detach(|| self.write_to(&path, AnswerForm::Trec(tag)))?)
    }
}
