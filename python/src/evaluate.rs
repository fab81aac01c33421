//! The calls `evaluate` and `compare`, and how judgements and runs are read.

use crate::answers::Answers;
use crate::error::{failed, of_evaluate, warn, wrong};
use crate::frames::Frame;
use crate::options::label;
use millrace::Comparison;
use millrace::Measure;
use millrace::Qrels;
use millrace::Rankings;
use millrace::{EvaluateError, Evaluation};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::path::PathBuf;

/// A value as Python has what JSON knows.
pub(crate) fn json<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    from_json(py, &serde_json::to_string(value).map_err(|error| failed(&error))?)
}

pub(crate) fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// Reads measures by their names; the usual ones if there are none.
pub(crate) fn measures(names: Option<Vec<String>>) -> PyResult<Vec<Measure>> {
    let Some(names) = names else { return Ok(Measure::usual()) };
    names.iter().map(|name| name.parse().map_err(|error: EvaluateError| wrong(error))).collect()
}

/// Calls `each` with the outer key, the inner key and the value of a dictionary of dictionaries.
fn nested<'py, V: FromPyObjectOwned<'py>>(
    value: &Bound<'py, PyDict>,
    what: &str,
    mut each: impl FnMut(&str, &str, V) -> PyResult<()>,
) -> PyResult<()> {
    for (qid, documents) in value {
        let qid = label(&qid, &format!("{what}: the name of a query"))?;
        let documents = documents
            .cast::<PyDict>()
            .map_err(|_| wrong(format!("{what}: query {qid}: expected a dictionary by document")))?
            .clone();
        for (name, value) in documents {
            let name = label(&name, &format!("{what}: query {qid}: the name of a document"))?;
            let value = value.extract::<V>().map_err(|_| {
                wrong(format!("{what}: query {qid}: document {name}: expected a number"))
            })?;
            each(&qid, &name, value)?;
        }
    }
    Ok(())
}

/// A relevance. A column of pandas in which some are missing has all of them as floats.
fn whole_label(value: &Bound<'_, PyAny>) -> Option<i32> {
    let whole = |label: f64| (f64::from(label as i32) == label).then_some(label as i32);
    value.extract().ok().or_else(|| whole(value.extract().ok()?))
}

/// Reads judgements: a file, a dictionary, or rows of qid, document and relevance.
pub(crate) fn qrels(value: &Bound<'_, PyAny>) -> PyResult<Qrels> {
    let mut judgements: Vec<(String, String, i32)> = Vec::new();
    if let Ok(dict) = value.cast::<PyDict>() {
        nested(dict, "qrels", |qid, name, relevance| {
            judgements.push((qid.to_string(), name.to_string(), relevance));
            Ok(())
        })?;
    } else if let Ok(path) = value.extract::<PathBuf>() {
        return Qrels::open(&path).map_err(|error| of_evaluate(&error));
    } else {
        let rows = match Frame::of(value)? {
            Some(frame) => frame.rows(&["QIDS", "NAMES", "LABELS"])?,
            None => value.try_iter()?,
        };
        for (row, number) in rows.zip(1..) {
            // Rows of ir_datasets have an iteration behind these.
            let row = row?;
            let field = |at: usize| row.get_item(at);
            let qid = label(&field(0)?, &format!("qrels: row {number}: the name of the query"))?;
            let document = format!("qrels: row {number}: query {qid}: the name of the document");
            let document = label(&field(1)?, &document)?;
            let relevance = whole_label(&field(2)?).ok_or_else(|| {
                wrong(format!(
                    "qrels: row {number}: query {qid}: document {document}: expected a row of \
                     query, document and relevance, a whole number"
                ))
            })?;
            judgements.push((qid, document, relevance));
        }
    }
    let judgements =
        judgements.iter().map(|(qid, name, relevance)| (&**qid, name.as_bytes(), *relevance));
    Qrels::of("qrels", judgements).map_err(|error| of_evaluate(&error))
}

/// Reads a run: answers, a file, or a dictionary of scores by document by query.
pub(crate) fn run(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Rankings> {
    let mut rankings = Rankings::new(name);
    if let Ok(answers) = value.cast::<Answers>() {
        answers.get().each(|qid, name, score| rankings.add(qid, name.as_bytes(), score));
    } else if let Ok(dict) = value.cast::<PyDict>() {
        nested(dict, name, |qid, name, score: f32| {
            if score.is_nan() {
                return Err(wrong(format!("query {qid}: document {name}: its score is NaN")));
            }
            rankings.add(qid, name.as_bytes(), score);
            Ok(())
        })?;
    } else if let Some(frame) = Frame::of(value)? {
        for (row, number) in frame.rows(&["QIDS", "NAMES", "SCORES"])?.zip(1..) {
            let row = row?;
            let what = format!("{name}: row {number}: the name of the query");
            let qid = label(&row.get_item(0)?, &what)?;
            let what = format!("{name}: row {number}: query {qid}: the name of the document");
            let document = label(&row.get_item(1)?, &what)?;
            let score = row.get_item(2)?.extract::<f32>().ok().filter(|score| !score.is_nan());
            let score = score.ok_or_else(|| {
                wrong(format!("{name}: query {qid}: document {document}: expected a number"))
            })?;
            rankings.add(&qid, document.as_bytes(), score);
        }
    } else {
        let path: PathBuf = value.extract().map_err(|_| {
            wrong(
                "a run is the answers of search_many, a path, a dictionary {qid: {name: score}}, \
                 or a data frame",
            )
        })?;
        return Rankings::open(&path).map_err(|error| of_evaluate(&error));
    }
    Ok(rankings)
}

/// Measures a run by judgements, with the definitions, ties and defaults of trec_eval.
///
/// Args:
///     run: the answers of `search_many`; the path of a run file; a dictionary
///         {qid: {name: score}}; or a data frame with the columns qid, docno and score.
///     qrels: the path of a file of judgements; a dictionary {qid: {name: relevance}}; rows of qid,
///         name and relevance, such as those of ir_datasets; or a data frame with the columns qid,
///         docno and label. Columns may have the names of ir_datasets.
///     measures: names such as "nDCG@10", "AP", "RR", "P@10", "R@1000", "P(rel=2)@10"; nine usual
///         ones if left out.
///
/// Returns:
///     A dictionary: "measures" has the means, "per_query" the values of each query; "queries"
///     counts the judged ones, "queries_without_hits" those of them that count 0 because the run
///     has nothing, and "queries_not_judged" those of the run that do not count.
#[pyfunction]
#[pyo3(signature = (run, qrels, measures=None))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    run: &Bound<'py, PyAny>,
    qrels: &Bound<'py, PyAny>,
    measures: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut run = self::run(run, "run")?;
    let qrels = self::qrels(qrels)?;
    let measures = self::measures(measures)?;
    let found = py.detach(|| Evaluation::new(&mut run, &qrels, &measures));
    let found = found.map_err(|error| of_evaluate(&error))?;
    if let Some(warning) = &found.strangers {
        warn(py, warning)?;
    }
    json(py, &found)
}

/// Compares two runs, query by query, and says whether the difference is more than chance.
///
/// Args:
///     run, other: as in `evaluate`.
///     qrels, measures: as in `evaluate`.
///
/// Returns:
///     For each measure a dictionary: "difference" of the means, the numbers of queries that are
///     "better" and "worse", "interval" of the difference with a confidence of 95 % (paired t),
///     and "t_test_p" and "randomisation_p" of two paired tests, two-sided.
#[pyfunction]
#[pyo3(signature = (run, other, qrels, measures=None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    run: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    qrels: &Bound<'py, PyAny>,
    measures: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut run = self::run(run, "run")?;
    let mut other = self::run(other, "other")?;
    let qrels = self::qrels(qrels)?;
    let measures = self::measures(measures)?;
    let compared = py.detach(|| {
        let run = Evaluation::new(&mut run, &qrels, &measures)?;
        let other = Evaluation::new(&mut other, &qrels, &measures)?;
        let columns = (0..measures.len()).map(|at| (run.column(at), other.column(at)));
        Ok(columns.map(|(run, other)| Comparison::new(&run, &other)).collect::<Vec<_>>())
    });
    let compared = compared.map_err(|error: EvaluateError| of_evaluate(&error))?;
    let by_name = PyDict::new(py);
    for (measure, comparison) in measures.iter().zip(&compared) {
        by_name.set_item(measure.to_string(), json(py, comparison)?)?;
    }
    Ok(by_name)
}
