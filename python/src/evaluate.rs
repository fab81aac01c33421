//! The calls `evaluate` and `compare`, and how judgements and runs are read.

use crate::answers::Answers;
use crate::error::{failed, of_evaluate, warn, wrong};
use crate::frames::rows;
use crate::options::{label, text};
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

/// Reads measures, by their names or as the objects of `ir_measures`; the usual ones if there are
/// none.
pub(crate) fn measures(asked: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Measure>> {
    let Some(asked) = asked else { return Ok(Measure::usual()) };
    let names = asked.py().import("millrace._frames")?.call_method1("measures", (asked,))?;
    let measure = |name: PyResult<Bound<'_, PyAny>>| {
        text(&name?, "a measure")?.parse().map_err(|error: EvaluateError| wrong(error))
    };
    names.try_iter()?.map(measure).collect()
}

/// Warns if measures look at more hits than answers have.
fn remark_on_depth(run: &Bound<'_, PyAny>, measures: &[Measure]) -> PyResult<()> {
    let Ok(answers) = run.cast::<Answers>() else { return Ok(()) };
    let remark = Measure::remark_on_depth(measures, answers.get().k);
    remark.map_or(Ok(()), |remark| warn(run.py(), &remark.replace("-k ", "k=")))
}

/// A run that is to be measured, or fused: what it found for a query has to be one ranking.
pub(crate) fn ranked(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Rankings> {
    if let Ok(answers) = value.cast::<Answers>()
        && let Some(qid) = answers.get().repeated()
    {
        return Err(wrong(format!(
            "{name}: two queries have the name {qid}, so that their answers cannot be told apart"
        )));
    }
    run(value, name)
}

/// Reads a number, if it is one.
type NumberOf<V> = fn(&Bound<'_, PyAny>) -> Option<V>;

/// Calls `each` with a query, a document and its number, for all of a dictionary of dictionaries, a
/// data frame, or rows, which lack that if they are not as `rows_are`.
fn each_row<V>(
    value: &Bound<'_, PyAny>,
    what: &str,
    (numbers, number_of): (&str, NumberOf<V>),
    rows_are: &str,
    mut each: impl FnMut(String, String, V),
) -> PyResult<()> {
    let is_dict = value.is_instance_of::<PyDict>();
    for (row, place) in rows(value, what, &["QIDS", "NAMES", numbers])?.zip(1..) {
        // Rows of ir_datasets have an iteration behind these.
        let row = row?;
        let (row_of, one) = match is_dict {
            true => (format!("{what}:"), "a"),
            false => (format!("{what}: row {place}:"), "the"),
        };
        let qid = label(&row.get_item(0)?, &format!("{row_of} the name of {one} query"))?;
        let named = format!("{row_of} query {qid}: the name of {one} document");
        let document = label(&row.get_item(1)?, &named)?;
        let number = number_of(&row.get_item(2)?).ok_or_else(|| {
            let of = format!("query {qid}: document {document}: expected");
            wrong(match is_dict || rows_are.is_empty() {
                true => format!("{what}: {of} a number"),
                false => format!("{row_of} {of} a row of {rows_are}"),
            })
        })?;
        each(qid, document, number);
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
    if let Ok(path) = value.extract::<PathBuf>() {
        return Qrels::open(&path).map_err(|error| of_evaluate(&error));
    }
    let mut judgements: Vec<(String, String, i32)> = Vec::new();
    let rows_are = "query, document and relevance, a whole number";
    each_row(value, "qrels", ("LABELS", whole_label), rows_are, |qid, name, relevance| {
        judgements.push((qid, name, relevance));
    })?;
    let judgements =
        judgements.iter().map(|(qid, name, relevance)| (&**qid, name.as_bytes(), *relevance));
    Qrels::of("qrels", judgements).map_err(|error| of_evaluate(&error))
}

/// Reads a run: answers, a file, a dictionary of scores by document by query, or rows.
pub(crate) fn run(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Rankings> {
    let mut rankings = Rankings::new(name);
    if let Ok(answers) = value.cast::<Answers>() {
        answers.get().each(|qid, name, score| rankings.add(qid, name.as_bytes(), score))?;
        return Ok(rankings);
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Rankings::open(&path).map_err(|error| of_evaluate(&error));
    }
    let score =
        |score: &Bound<'_, PyAny>| score.extract().ok().filter(|score: &f32| !score.is_nan());
    each_row(value, name, ("SCORES", score), "", |qid, document, score| {
        rankings.add(&qid, document.as_bytes(), score);
    })?;
    Ok(rankings)
}

/// Measures a run by judgements, with the definitions, ties and defaults of trec_eval.
///
/// Args:
///     run: the answers of `search_many`; the path of a run file; a dictionary
///         {qid: {name: score}}; a data frame with the columns qid, docno and score; or rows of
///         these, such as those of ir_measures.
///     qrels: the path of a file of judgements; a dictionary {qid: {name: relevance}}; rows of qid,
///         name and relevance, such as those of ir_datasets; or a data frame with the columns qid,
///         docno and label. Columns and named tuples may have the names of ir_datasets.
///     measures: one or several names such as "nDCG@10", "AP", "RR", "P@10", "R@1000",
///         "P(rel=2)@10", or measures of ir_measures; nine usual ones if left out. Those that look
///         at more hits than the answers may have are warned of.
///     ties: "trec_eval" orders equal scores by name, as trec_eval and ir_measures do; "run" by the
///         ranks of the run, for all measures.
///
/// Returns:
///     A dictionary: "measures" has the means, "per_query" the values of each query; "queries"
///     counts the judged ones, "queries_without_hits" those of them that count 0 because the run
///     has nothing, and "queries_not_judged" those of the run that do not count.
///
/// Raises:
///     ValueError: two queries of the answers have one name, or an argument cannot be.
#[pyfunction]
#[pyo3(signature = (run, qrels, measures=None, ties="trec_eval"))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    run: &Bound<'py, PyAny>,
    qrels: &Bound<'py, PyAny>,
    measures: Option<&Bound<'py, PyAny>>,
    ties: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let measures = self::measures(measures)?;
    remark_on_depth(run, &measures)?;
    let mut run = ranked(run, "run")?;
    match ties {
        "trec_eval" => {}
        "run" => run.order_ties_by_rank(),
        _ => return Err(wrong("ties: give \"trec_eval\" or \"run\"")),
    }
    let qrels = self::qrels(qrels)?;
    let found = py.detach(|| Evaluation::new(&mut run, &qrels, &measures));
    let found = found.map_err(|error| of_evaluate(&error))?;
    if let Some(warning) = &found.warning {
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
    measures: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let measures = self::measures(measures)?;
    for run in [run, other] {
        remark_on_depth(run, &measures)?;
    }
    let mut run = ranked(run, "run")?;
    let mut other = ranked(other, "other")?;
    let qrels = self::qrels(qrels)?;
    let compared = py.detach(|| {
        let run = Evaluation::new(&mut run, &qrels, &measures)?;
        let other = Evaluation::new(&mut other, &qrels, &measures)?;
        Ok(run.against(&other))
    });
    let compared = compared.map_err(|error: EvaluateError| of_evaluate(&error))?;
    let by_name = PyDict::new(py);
    for (measure, comparison) in measures.iter().zip(&compared) {
        by_name.set_item(measure.to_string(), json(py, comparison)?)?;
    }
    Ok(by_name)
}
