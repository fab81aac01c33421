//! Tries the parameters of an index's score.

use crate::error::{failed, warn, wrong};
use crate::evaluate::{json, qrels};
use crate::progress::Told;
use crate::queries::Reading;
use millrace::inside::tune::judged;
use millrace::{Goal, Grid, Measure, Snapshot, Tried, tune};
use pyo3::prelude::*;
use std::collections::HashMap;

/// What came of it, for these queries and judgements.
pub(crate) fn tuned<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    [queries, qrels]: [&Bound<'py, PyAny>; 2],
    tried: &Tried,
    goal: &Goal,
    told: &Told,
) -> PyResult<Bound<'py, PyAny>> {
    let qrels = self::qrels(qrels)?;
    let queries = Reading { unique: true, ..Reading::of(snapshot) }.read(queries)?;
    let places: HashMap<String, usize> =
        queries.iter().zip(0..).map(|((qid, _), place)| (qid.clone(), place)).collect();
    let (mut topics, _) = judged(&mut queries.into_iter().collect(), &qrels);
    topics.sort_by_key(|topic| places.get(topic.qid).copied().unwrap_or(usize::MAX));
    if !(2..=topics.len()).contains(&goal.folds) {
        let judged = topics.len();
        return Err(wrong(format!("folds is from 2 to the number of judged queries, {judged}")));
    }
    let scoring = snapshot.scoring();
    let score = scoring.score;
    let idf = score.has_idf_kinds().then_some(scoring.idf);
    let grid = Grid::new(score.name(), idf, tried).map_err(wrong)?;
    if let Some(remark) = Measure::remark_on_depth(&[goal.measure], goal.k) {
        warn(py, &remark.replace("-k ", "k="))?;
    }
    let path = snapshot.generation().path();
    let found = told.counted(py, "queries", || {
        tune(path, &grid, &topics, goal).map_err(|error| failed(&error))
    })?;
    json(py, &found)
}
