//! What searches return: columns of docids and scores, which numpy takes as they lie in memory, and
//! the names, which are looked up when they are asked for. Here are those of one query.

use crate::error::{of_index, wrong};
use crate::evaluate::{from_json, json};
use crate::frames::framed;
use crate::options::{self, whole};
use crate::texts::texts;
use millrace::inside::query::{ReturnedValues, Snippet, snippet};
use millrace::{Generation, IndexError, ManyHits, Scoring, Searcher, Snapshot, Syntax, Wanted};
use pyo3::exceptions::{PyFileNotFoundError, PyIndexError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyString, PyType, slice};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What all views of some answers share.
pub(crate) struct Found {
    pub snapshot: Arc<Snapshot>,
    pub hits: ManyHits,
    /// Of the queries.
    pub syntax: Syntax,
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
    pub(crate) fn again(
        generation: PathBuf,
        mut hits: ManyHits,
        syntax: &str,
        columns: [&[u8]; 2],
    ) -> PyResult<Arc<Self>> {
        let syntax = options::syntax(syntax)?;
        let snapshot = reopened(generation)?;
        hits.docids = unpacked(columns[0], u32::from_le_bytes);
        hits.scores = unpacked(columns[1], f32::from_le_bytes);
        let documents = snapshot.generation().documents();
        let ends = [hits.offsets.first(), hits.offsets.last()];
        let is_sound = hits.docids.len() == hits.scores.len()
            && ends == [Some(&0), Some(&(hits.docids.len() as u64))]
            && hits.offsets.is_sorted()
            && hits.docids.iter().all(|&docid| docid < documents.len());
        match is_sound {
            true => Ok(Arc::new(Self { snapshot, hits, syntax })),
            false => Err(wrong("these hits are not of this generation")),
        }
    }

    /// The folder of the generation, docids and scores of some hits.
    pub(crate) fn pickled(
        &self,
        py: Python<'_>,
        (start, end): (usize, usize),
    ) -> PyResult<(PathBuf, Py<PyBytes>, Py<PyBytes>)> {
        let folder = std::path::absolute(self.snapshot.generation().path())?;
        let docids = self.hits.docids[start..end].iter().map(|docid| docid.to_le_bytes());
        let scores = self.hits.scores[start..end].iter().map(|score| score.to_le_bytes());
        Ok((folder, packed(py, docids), packed(py, scores)))
    }

    fn name(&self, at: usize) -> PyResult<Cow<'_, str>> {
        let name = self.snapshot.generation().documents().name(self.hits.docids[at]);
        let name = name.map_err(|error| of_index(&error))?;
        Ok(String::from_utf8_lossy(&name).into_owned().into())
    }

    /// What is made of the names of some hits, which are looked up by their places among these.
    pub(crate) fn with_names<T>(
        &self,
        (start, end): (usize, usize),
        make: impl for<'a> FnOnce(&dyn Fn(usize) -> Cow<'a, str>) -> PyResult<T>,
    ) -> PyResult<T> {
        let docids = &self.hits.docids[start..end];
        let (names, failed) = <(OnceCell<_>, OnceCell<_>)>::default();
        let documents = self.snapshot.generation().documents();
        let made = make(&documents.names(|at| docids.get(at).copied(), (&names, &failed)));
        failed.into_inner().map_or(made, |error| Err(of_index(&error)))
    }

    /// The values of documents in a column, as [`json`] makes them.
    pub(crate) fn values<'py>(
        &self,
        py: Python<'py>,
        (start, end): (usize, usize),
        column: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let docids = self.hits.docids[start..end].iter().copied();
        let names = [column.to_string()];
        let found = ReturnedValues::of(self.snapshot.generation(), &names, docids);
        let found = found.map_err(|error| match error {
            IndexError::Lacks { .. } => wrong(error),
            error => of_index(&error),
        })?;
        let list = PyList::empty(py);
        for values in &found {
            list.append(json(py, values)?.get_item(column)?)?;
        }
        // Lists of one length would make an array of two dimensions.
        py.import("numpy")?.call_method1("fromiter", (list, "object"))
    }

    pub(crate) fn texts<'py>(
        &self,
        py: Python<'py>,
        (start, end): (usize, usize),
    ) -> PyResult<Bound<'py, PyList>> {
        texts(py, self.snapshot.generation(), &self.hits.docids[start..end])
    }

    pub(crate) fn names<'py>(
        &self,
        py: Python<'py>,
        (start, end): (usize, usize),
    ) -> PyResult<Bound<'py, PyList>> {
        self.with_names((start, end), |name| {
            PyList::new(py, (0..end - start).map(|at| PyString::new(py, &name(at))))
        })
    }
}

/// Which column of the answers.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
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

pub(crate) fn column<'py>(
    py: Python<'py>,
    found: &Arc<Found>,
    kind: Kind,
) -> PyResult<Bound<'py, PyAny>> {
    let column = Column { found: found.clone(), kind };
    py.import("numpy")?.call_method1("asarray", (column,))
}

/// Makes an array of texts.
pub(crate) fn array<'py>(py: Python<'py>, list: Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    py.import("numpy")?.call_method1("array", (list, "object"))
}

/// The answer to one query: its hits, best first.
///
/// Iterating yields named tuples (name, docid, score), without numpy; the columns are numpy arrays.
#[pyclass(frozen, sequence, module = "millrace")]
pub(crate) struct Hits {
    pub found: Arc<Found>,
    pub query: Arc<str>,
    /// Documents that match, if that was asked for.
    pub matching: Option<u64>,
    /// In JSON, if any were asked for.
    pub facets: Option<Arc<str>>,
    /// Its hits among all that were found.
    pub start: usize,
    pub end: usize,
}

impl Hits {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        syntax: Syntax,
        query: &str,
        searcher: &mut Searcher,
    ) -> Self {
        let facets = searcher.take_facets();
        let facets = (!facets.is_none()).then(|| serde_json::to_string(&facets));
        let facets = facets.and_then(Result::ok).map(Into::into);
        let found = searcher.hits();
        let end = found.len();
        let hits = ManyHits {
            offsets: vec![0, end as u64],
            docids: found.iter().map(|hit| hit.docid).collect(),
            scores: found.iter().map(|hit| hit.score).collect(),
            found: searcher.found().into_iter().collect(),
            ..ManyHits::default()
        };
        let found = Arc::new(Found { snapshot, hits, syntax });
        Self { found, query: query.into(), matching: searcher.found(), facets, start: 0, end }
    }

    fn slice<'py>(&self, py: Python<'py>, kind: Kind) -> PyResult<Bound<'py, PyAny>> {
        let part = PySlice::new(py, self.start as isize, self.end as isize, 1);
        column(py, &self.found, kind)?.get_item(part)
    }

    fn parts(&self, py: Python<'_>, length: usize) -> PyResult<Vec<Snippet>> {
        let part = |text: Bound<'_, PyAny>| {
            let text: String = text.extract()?;
            let wanted = Wanted { syntax: self.found.syntax, ..Wanted::default() };
            Ok(snippet(&self.found.snapshot, wanted, &self.query, &text, length))
        };
        self.found.texts(py, (self.start, self.end))?.iter().map(part).collect()
    }

    fn hit<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let ManyHits { docids, scores, .. } = &self.found.hits;
        let class = CLASS.import(py, "millrace._hit", "Hit")?;
        class.call1((&*self.found.name(at)?, docids[at], scores[at]))
    }
}

/// What hits are made of again.
type PickledHits<'a> =
    (PathBuf, Py<PyBytes>, Py<PyBytes>, &'a str, Option<u64>, &'a str, Option<&'a str>);

#[pymethods]
impl Hits {
    /// Hits are pickled as the place of their generation, docids and scores, and the query.
    #[new]
    #[pyo3(signature = (generation, docids, scores, query="", found=None, syntax="words", facets=None))]
    fn again(
        generation: PathBuf,
        docids: &[u8],
        scores: &[u8],
        query: &str,
        found: Option<u64>,
        syntax: &str,
        facets: Option<&str>,
    ) -> PyResult<Self> {
        let (matching, facets) = (found, facets.map(Into::into));
        let end = docids.len() / size_of::<u32>();
        let hits = ManyHits { offsets: vec![0, end as u64], ..ManyHits::default() };
        let found = Found::again(generation, hits, syntax, [docids, scores])?;
        Ok(Self { found, query: query.into(), matching, facets, start: 0, end })
    }

    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<PickledHits<'_>> {
        let (generation, docids, scores) = self.found.pickled(py, (self.start, self.end))?;
        let syntax = self.found.syntax.name();
        Ok((generation, docids, scores, &self.query, self.matching, syntax, self.facets.as_deref()))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        each(slf)
    }

    /// How many documents match, if `count` was asked for; else None.
    #[getter]
    fn found(&self) -> Option<u64> {
        self.matching
    }

    /// The facets of all that matches, if they were asked for; else None: a dictionary by the names
    /// of columns, with lists of {"value", "count"} for words, and {"count", "least", "greatest",
    /// "mean"} for numbers and dates, where count is how many documents have a value.
    #[getter]
    fn facets<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.facets.as_deref().map(|facets| from_json(py, facets)).transpose()
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

    /// The values of the documents in a column of the index, or in a field that it keeps:
    /// `object[hits]`. None where there is none, lists where there may be several, dates as texts;
    /// of fields what JSON says.
    ///
    /// Raises:
    ///     ValueError: the index has neither a column nor a field of this name.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.found.values(py, (self.start, self.end), name)
    }

    /// The part of each text that has the most words of the query, of this many characters at most:
    /// `str[hits]`. They are read as `texts` does; `Index.snippet` takes texts that a program has.
    #[pyo3(signature = (length=160))]
    fn snippets<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] length: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parts = self.parts(py, length)?;
        array(py, PyList::new(py, parts.into_iter().map(|part| part.text))?)
    }

    /// Where words of the query stand in each of the snippets of that length: lists of begin and
    /// end, such that `snippet[begin:end]` is a word, as it is written there.
    #[pyo3(signature = (length=160))]
    fn highlights(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole)] length: usize,
    ) -> PyResult<Vec<Vec<(usize, usize)>>> {
        let places = |Snippet { text, highlights }: Snippet| {
            // Of Python's characters, not of bytes.
            let place = |byte: usize| text[..byte].chars().count();
            highlights.iter().map(|&[begin, end]| (place(begin), place(end))).collect()
        };
        Ok(self.parts(py, length)?.into_iter().map(places).collect())
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
            Places::One(at) => self.hit(py, self.start + place(at, length)?),
            Places::Part(part) => {
                let slice::PySliceIndices { start, step, slicelength, .. } =
                    part.indices(length as isize)?;
                if step != 1 {
                    return Err(wrong("a slice of hits has step 1"));
                }
                let start = self.start + start as usize;
                let end = start + slicelength;
                let (found, query) = (self.found.clone(), self.query.clone());
                let (matching, facets) = (self.matching, self.facets.clone());
                let part = Self { found, query, matching, facets, start, end };
                Ok(Bound::new(py, part)?.into_any())
            }
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        let shown = self.start..self.end.min(self.start + 3);
        let scores = &self.found.hits.scores;
        let row = |at| Ok(format!("{} {}", self.found.name(at)?, scores[at]));
        let mut shown = shown.map(row).collect::<PyResult<Vec<String>>>()?;
        if self.__len__() > shown.len() {
            shown.push("...".to_string());
        }
        Ok(format!("<{} hits: {}>", self.__len__(), shown.join(", ")))
    }
}

/// Iterates over a sequence.
pub(crate) fn each<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of.py().import("millrace._hit")?.call_method1("each", (of,))
}

/// What is in the brackets behind some hits.
#[derive(FromPyObject)]
enum Places<'py> {
    One(isize),
    Part(Bound<'py, PySlice>),
}

/// A place in a sequence, counted from its end if it is negative.
pub(crate) fn place(at: isize, length: usize) -> PyResult<usize> {
    let from_start = if at < 0 { at.checked_add_unsigned(length) } else { Some(at) };
    let at = from_start.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < length);
    at.ok_or_else(|| PyIndexError::new_err("there are fewer"))
}
