//! The class `Index`: one open generation, and the way to the next.

use crate::answers::Answers;
use crate::build::lock;
use crate::error::{of_index, warn, wrong};
use crate::evaluate::{json, measures};
use crate::hits::Hits;
use crate::options::{
    self, Listed, Names, NumberByField, hits, idf, idf_name, mode, rm3, static_scale, threads,
    wanted, whole, whole_or_none,
};
use crate::progress::Told;
use crate::queries::Reading;
use crate::search::{Many, Searchers, search_one};
use crate::terms::{df, postings};
use crate::texts::texts;
use crate::tune::tuned;
use millrace::inside::index::{DocumentKey, DocumentRow, Watch, find_in, generation_name};
use millrace::inside::query::snippet;
use millrace::inside::score::{ByField, Given, Score};
use millrace::{
    FieldScoring, Generation, Goal, IndexError, Snapshot, StaticScale, Tried, Wanted, explain,
};
use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The live generation of an index, open for searches.
///
/// It stays what it was when the index gets a new generation, until it is told to `refresh`. Any
/// threads may use it at once.
///
/// Args:
///     path: the folder of the index.
///     score: "bm25", "bm25-lucene", "bm25f", "bm25plus", "bm25l", "tfidf", "ql", "dph",
///         "impact" or "wang"; docs/queries.md has their formulas.
///     k1, b, idf, mu, score_delta, alpha, static_scale: parameters of the score; those that it
///         does not have are refused. idf is "lucene", or "robertson" as in the papers;
///         static_scale is "greatest", "log" or "rank". b may be a dictionary by field, where "*"
///         is all text.
///     boost: weights of the fields that words are looked for in, such as {"title": 3, "body": 1};
///         "*" is all text (docs/queries.md).
///     verify: verify the checksums of all postings first.
///     generation: the number of a generation that was kept; the live one if left out.
///
/// An index is pickled as its path, its generation and its score, and opened again from these.
///
/// Raises:
///     FileNotFoundError: there is no index, or the generation is gone.
///     MillraceError: it is damaged, or written by a newer version.
#[pyclass(frozen, module = "millrace")]
pub(crate) struct Index {
    path: PathBuf,
    given: Given,
    /// Locked only by who has and keeps the interpreter's lock, so that no fork leaves it locked.
    snapshot: Mutex<Arc<Snapshot>>,
    searchers: Searchers,
}

impl Index {
    fn snapshot(&self) -> Arc<Snapshot> {
        lock(&self.snapshot).clone()
    }

    /// The same under a filter, if there is one.
    fn under(&self, filter: Option<&str>) -> PyResult<Arc<Snapshot>> {
        let snapshot = self.snapshot();
        let Some(filter) = filter else { return Ok(snapshot) };
        snapshot.filtered(filter).map_err(|error| match error {
            IndexError::Query { .. } => wrong(error),
            error => of_index(&error),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.path
    }

    /// Moves to a generation that is open already, if it is newer.
    pub(crate) fn move_to(&self, py: Python<'_>, generation: Arc<Generation>) -> PyResult<()> {
        let number = |snapshot: &Snapshot| snapshot.generation().manifest().generation;
        let open = self.snapshot();
        if generation.manifest().generation > number(&open) {
            let next = py.detach(|| open.after(generation)).map_err(|error| of_index(&error))?;
            let mut snapshot = lock(&self.snapshot);
            if number(&next) > number(&snapshot) {
                *snapshot = next;
            }
        }
        Ok(())
    }

    /// The docid that is asked for by one of both.
    fn docid(
        &self,
        generation: &Generation,
        docid: Option<u32>,
        name: Option<&str>,
    ) -> PyResult<u32> {
        let key = match (docid, name) {
            (Some(docid), None) => DocumentKey::Docid(docid),
            (None, Some(name)) => DocumentKey::Name(name),
            _ => return Err(wrong("give either docid or name")),
        };
        find_in(generation, &self.path, key).map_err(|error| of_index(&error))
    }
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (path, *, score="bm25", k1=None, b=None, boost=None, idf=None, mu=None, score_delta=None, alpha=None,
        static_scale=None, verify=false, generation=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        score: &str,
        k1: Option<f64>,
        b: Option<NumberByField>,
        boost: Option<BTreeMap<String, f64>>,
        idf: Option<&str>,
        mu: Option<f64>,
        score_delta: Option<f64>,
        alpha: Option<f64>,
        static_scale: Option<&str>,
        verify: bool,
        #[pyo3(from_py_with = whole_or_none)] generation: Option<u32>,
    ) -> PyResult<Self> {
        let idf = idf.map(self::idf).transpose()?;
        let static_scale = static_scale.map(self::static_scale).transpose()?;
        let (b, of_fields) = b.map(NumberByField::parts).unwrap_or_default();
        let boost = boost.unwrap_or_default().into_iter().collect();
        let fields = FieldScoring { boost, b: of_fields };
        let given = Given { k1, b, idf, alpha, static_scale, mu, score_delta, fields };
        let scoring = given.scoring(score).map_err(wrong)?;
        let is_wang = matches!(scoring.score, Score::Wang(_));
        let folder = generation.map(|number| path.join(generation_name(number)));
        if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
            let gone = format!("{}: this generation is not there any more", folder.display());
            return Err(PyFileNotFoundError::new_err(gone));
        }
        let opened = py.detach(|| {
            let generation = match folder {
                Some(folder) => Generation::open_folder(&folder)?,
                None => Generation::open(&path)?,
            };
            if verify {
                generation.verify()?;
            }
            Snapshot::new(generation, scoring)
        });
        let snapshot = opened.map_err(|error| of_index(&error))?;
        if is_wang && !snapshot.has_ranks() {
            let place = path.display();
            warn(py, &format!("{place}: no PageRanks: all documents have the same (merge)"))?;
        }
        Ok(Self { path, given, snapshot: Mutex::new(snapshot), searchers: Searchers::default() })
    }

    /// Moves to the generation that is live now. Answers that were found before stay as they are.
    ///
    /// Returns:
    ///     Whether it is another one.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let open = self.snapshot();
        let moved = py.detach(|| {
            let is_other = Watch::new(&self.path).is_other(open.generation().manifest(), true)?;
            is_other.then(|| open.follow(&self.path)).transpose()
        });
        let moved = moved.map_err(|error| of_index(&error))?;
        Ok(moved.map(|moved| *lock(&self.snapshot) = moved).is_some())
    }

    /// Opens the same generation with the same score again, in this process or another one.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((PathBuf,), Bound<'py, PyDict>)> {
        let Given { k1, b, idf, alpha, static_scale, mu, score_delta, ref fields } = self.given;
        let named = PyDict::new(py);
        named.set_item("score", self.score())?;
        named.set_item("idf", idf.map(idf_name))?;
        named.set_item("static_scale", static_scale.map(StaticScale::name))?;
        for (name, value) in
            [("k1", k1), ("alpha", alpha), ("mu", mu), ("score_delta", score_delta)]
        {
            named.set_item(name, value)?;
        }
        let by_field = |all: &ByField| all.iter().cloned().collect::<BTreeMap<_, _>>();
        named.set_item("boost", by_field(&fields.boost))?;
        let mut of_fields = by_field(&fields.b);
        of_fields.extend(b.map(|b| ("*".to_string(), b)));
        named.set_item("b", of_fields)?;
        named.set_item("generation", self.generation_number())?;
        Ok(((std::path::absolute(&self.path)?,), named))
    }

    /// The folder of the index.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The name of the score.
    #[getter]
    fn score(&self) -> &'static str {
        self.snapshot().scoring().score.name()
    }

    /// The number of the generation.
    #[getter]
    fn generation_number(&self) -> u32 {
        self.snapshot().generation().manifest().generation
    }

    /// Documents that are not deleted, also the length of the index.
    fn __len__(&self) -> usize {
        self.snapshot().generation().live_documents() as usize
    }

    /// What the index says of itself: how it was built and what it holds.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot();
        let generation = snapshot.generation();
        let manifest = generation.manifest();
        let info = PyDict::new(py);
        info.set_item("generation", manifest.generation)?;
        info.set_item("created", manifest.created)?;
        info.set_item("documents", generation.live_documents())?;
        info.set_item("runs", manifest.runs.len())?;
        info.set_item("settings", json(py, &manifest.settings)?)?;
        let statistics = json(py, &manifest.statistics)?;
        for name in ["terms", "postings", "tokens", "empty_documents", "duplicate_names", "skipped"]
        {
            info.set_item(name, statistics.get_item(name)?)?;
        }
        Ok(info.into_any())
    }

    /// Finds the best documents for a query.
    ///
    /// Args:
    ///     query: its text; or a dictionary with weights of terms of the index, as of a vector.
    ///     k: the most hits.
    ///     mode: "or": any term; "and": all terms; "and-or": all, or any if that finds fewer than
    ///         k.
    ///     algorithm: how the best are found; all find the same.
    ///     syntax: how a text is read: "words"; "operators": +needed, -excluded, AND, OR, NOT,
    ///         groups in brackets and word^weight; "tree": as an object in JSON (docs/queries.md).
    ///     count: count all documents that match, as `found` of the hits; k may be 0 then.
    ///     rm3: (documents, terms, weight), such as (10, 10, 0.5), expands the query by terms of
    ///         its best documents, whose texts are read again from their files. docs/queries.md has
    ///         the formula.
    ///     filter: finds only documents whose values in the columns of the index pass, such as
    ///         'year >= 2010 and tags = "x"' (docs/queries.md). Scores stay.
    ///     sort: sorts hits by a column, such as "year", which rises, or "year:desc", which falls;
    ///         then by score. Hits without a value are last.
    ///     facets: columns of which all that matches is counted, as `facets` of the hits, such as
    ///         "tags:5,year" or ["tags:5", "year"]: the most frequent words (10 if no number is
    ///         given), the least, the greatest and the mean of numbers and dates.
    ///
    /// The query "*" finds all documents, with score 0.
    #[pyo3(signature = (query, k=10, *, mode="or", algorithm="auto", syntax="words", count=false, rm3=None, filter=None,
        sort=None, facets=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole)] k: usize,
        mode: &str,
        algorithm: &str,
        syntax: &str,
        count: bool,
        #[pyo3(from_py_with = rm3)] rm3: Option<(usize, usize, f64)>,
        filter: Option<&str>,
        sort: Option<&str>,
        facets: Option<Names>,
    ) -> PyResult<Hits> {
        let wanted = wanted(k, mode, algorithm, syntax, count)?;
        let listed = Listed::new(sort, facets)?;
        listed.check(self.snapshot().generation())?;
        search_one(py, &self.under(filter)?, &self.searchers, query, wanted, rm3, &listed)
    }

    /// Finds the best documents for each of many queries, with several threads.
    ///
    /// Args:
    ///     queries: texts, which are numbered from "1"; pairs (qid, text); dictionaries or named
    ///         tuples with fields such as qid and query; a dictionary of texts by qid; a data frame
    ///         with the columns qid and query or query_toks; or the path of a file, as
    ///         `millrace query` reads it. A dictionary of weights by term may stand for a text.
    ///     mode, algorithm, syntax, count, rm3: as in `search`, for all queries.
    ///     workers: threads; as many as cores if left out.
    ///     k: 10 if left out; with candidates all of them.
    ///     remove_query: leave out the document that has the name of a query.
    ///     candidates: a run, as in `evaluate`. Its documents for each query are ranked and no
    ///         others, those without a term of the query with score 0 behind all others.
    ///     query_format: of a file, if it is not to be guessed: "words", "tsv", "json" and so on.
    ///     progress: as in `build`, with queries, total_queries and finished; with rm3 each query
    ///         counts twice, when it is expanded and when it is answered.
    ///     filter, sort, facets: as in `search`; not with candidates, except for the filter.
    #[pyo3(signature = (queries, k=None, *, mode="or", algorithm="auto", syntax="words", count=false, workers=None, rm3=None,
        remove_query=false, candidates=None, query_format=None, progress=None, filter=None,
        sort=None, facets=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn search_many(
        &self,
        py: Python<'_>,
        queries: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = whole_or_none)] k: Option<usize>,
        mode: &str,
        algorithm: &str,
        syntax: &str,
        count: bool,
        #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
        #[pyo3(from_py_with = rm3)] rm3: Option<(usize, usize, f64)>,
        remove_query: bool,
        candidates: Option<&Bound<'_, PyAny>>,
        query_format: Option<&str>,
        progress: Option<&Bound<'_, PyAny>>,
        filter: Option<&str>,
        sort: Option<&str>,
        facets: Option<Names>,
    ) -> PyResult<Answers> {
        let listed = Listed::new(sort, facets)?;
        listed.check(self.snapshot().generation())?;
        if listed.is_asked() && candidates.is_some() {
            return Err(wrong(
                "candidates are neither sorted nor counted: leave out sort and facets",
            ));
        }
        let usual = if candidates.is_some() { usize::MAX } else { Wanted::default().k };
        let wanted = wanted(k.unwrap_or(usual), mode, algorithm, syntax, count)?;
        let threads = threads(workers)?;
        let many =
            Many { wanted, threads, rm3, remove_query, candidates, form: query_format, listed };
        many.search(py, self.under(filter)?, queries, &Told::of(progress, None)?)
    }

    /// The terms of a text, as they are looked up for a query.
    fn analyze(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.snapshot().analysis().terms(text.as_bytes(), |term| terms.push(term.to_string()));
        terms
    }

    /// The number of documents that have a term. What is no term is analysed to one; 0 if that is a
    /// stop word.
    fn df(&self, term: &str) -> PyResult<u32> {
        df(&self.snapshot(), term)
    }

    /// The documents that have a term, as for `df`, by docid, and how often each has it.
    ///
    /// Returns:
    ///     docids and tfs, both `uint32[df]`.
    fn postings<'py>(&self, py: Python<'py>, term: &str) -> PyResult<Bound<'py, PyTuple>> {
        postings(py, &self.snapshot(), term)
    }

    /// The part of a text that has the most words of a query.
    ///
    /// Args:
    ///     query: as in `search`.
    ///     text: a text, whether the index has it or not.
    ///     length: the most characters.
    #[pyo3(signature = (query, text, length=160))]
    fn snippet(
        &self,
        query: &Bound<'_, PyAny>,
        text: &str,
        #[pyo3(from_py_with = whole)] length: usize,
    ) -> PyResult<String> {
        let snapshot = self.snapshot();
        let query = Reading::of(&snapshot).one(query)?;
        Ok(snippet(&snapshot, Wanted::default(), &query, text, length).text)
    }

    /// What the index knows of a document: docid, name, tokens, and where it was read from.
    ///
    /// Raises:
    ///     KeyError: there is none.
    #[pyo3(signature = (name=None, *, docid=None))]
    fn document<'py>(
        &self,
        py: Python<'py>,
        name: Option<&str>,
        #[pyo3(from_py_with = whole_or_none)] docid: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot();
        let docid = self.docid(snapshot.generation(), docid, name)?;
        let row = DocumentRow::of(snapshot.generation(), docid)
            .and_then(|row| row.with_stored(snapshot.generation()));
        json(py, &row.map_err(|error| of_index(&error))?)
    }

    /// The text of a document, as it was indexed: read again from its file.
    ///
    /// Raises:
    ///     KeyError: there is no such document.
    ///     FileNotFoundError: its file is gone.
    ///     MillraceError: its file has changed, or it came from the memory of a program.
    #[pyo3(signature = (name=None, *, docid=None))]
    fn text<'py>(
        &self,
        py: Python<'py>,
        name: Option<&str>,
        #[pyo3(from_py_with = whole_or_none)] docid: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot();
        let docid = self.docid(snapshot.generation(), docid, name)?;
        texts(py, snapshot.generation(), &[docid])?.get_item(0)
    }

    /// Why a document has its score for a query, and its place among all documents.
    ///
    /// Returns:
    ///     The document's length, norm, score and rank, the number of documents with any and with
    ///     all terms, the score of the last of the k best, and for each term df, idf, weight, tf
    ///     and score.
    #[pyo3(signature = (query, name=None, *, docid=None, k=10, syntax="words"))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        name: Option<&str>,
        #[pyo3(from_py_with = whole_or_none)] docid: Option<u32>,
        #[pyo3(from_py_with = whole)] k: usize,
        syntax: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let syntax = options::syntax(syntax)?;
        let snapshot = self.snapshot();
        let docid = self.docid(snapshot.generation(), docid, name)?;
        let query = Reading { syntax, ..Reading::of(&snapshot) }.one(query)?;
        let wanted = Wanted { k, syntax, ..Wanted::default() };
        let explained = py.detach(|| explain(&snapshot, &wanted, &query, docid));
        json(py, &explained.map_err(|error| of_index(&error))?)
    }

    /// Finds the parameters of the index's score that rank best by judgements, cross-validated.
    ///
    /// Args:
    ///     queries: as in `search_many`.
    ///     qrels: as in `evaluate`; queries without judgements do not count.
    ///     k1, b, mu, score_delta, alpha: the values to try, of each parameter that the score has;
    ///         usual ones of those that are left out.
    ///     boost, field_b: dictionaries of values to try, by field: of weights, and of b.
    ///     measure: what is to be as high as it gets; nDCG@10 if left out.
    ///     folds: parts that queries are dealt out to; each is measured by what the others choose.
    ///     k, mode, workers, remove_query: as in `search_many`. A k below what the measure needs is
    ///         warned of.
    ///     progress: as in `search_many`; each query counts once a setting.
    ///
    /// Returns:
    ///     "best", "default", "cross_validated", and "grid" with the mean of each setting.
    #[pyo3(signature = (queries, qrels, *, k1=None, b=None, boost=None, field_b=None, mu=None, score_delta=None, alpha=None, measure=None, folds=5,
        k=1000, mode="or", workers=None, remove_query=false, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn tune<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyAny>,
        qrels: &Bound<'py, PyAny>,
        k1: Option<Vec<f64>>,
        b: Option<Vec<f64>>,
        boost: Option<BTreeMap<String, Vec<f64>>>,
        field_b: Option<BTreeMap<String, Vec<f64>>>,
        mu: Option<Vec<f64>>,
        score_delta: Option<Vec<f64>>,
        alpha: Option<Vec<f64>>,
        measure: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = whole)] folds: usize,
        #[pyo3(from_py_with = whole)] k: usize,
        mode: &str,
        #[pyo3(from_py_with = whole_or_none)] workers: Option<usize>,
        remove_query: bool,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let told = Told::of(progress, None)?;
        let snapshot = self.snapshot();
        let static_scale = self.given.static_scale;
        let [boost, field_b] = [boost, field_b].map(|of| of.into_iter().flatten().collect());
        let tried = Tried { k1, b, alpha, mu, score_delta, boost, field_b, static_scale };
        let tried = tried
            .with_fields(self.score(), snapshot.generation().manifest().settings.fields.as_slice());
        let asked = measure.map_or(Ok(Vec::new()), |measure| measures(Some(measure)))?;
        let measure = match &asked[..] {
            [] if measure.is_none() => "nDCG@10".parse().map_err(wrong)?,
            &[measure] => measure,
            _ => return Err(wrong("give one measure")),
        };
        let (mode, k) = (self::mode(mode)?, hits(k)?);
        let threads = threads(workers)?.get();
        let progress = told.stop.clone();
        let goal = Goal { measure, k, mode, folds, threads, remove_query, progress };
        tuned(py, &snapshot, [queries, qrels], &tried, &goal, &told)
    }

    fn __repr__(&self) -> String {
        let documents = self.snapshot().generation().live_documents();
        format!("<index {}: {documents} documents>", self.path.display())
    }
}
