//! The call `fuse`.

use crate::error::{of_evaluate, wrong};
use crate::evaluate::ranked;
use crate::options::{hits, whole};
use millrace::Rankings;
use millrace::inside::evaluate::{Method, check_weights, fuse as fused};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Makes one run of several.
///
/// Args:
///     runs: two or more, each as in `evaluate`.
///     method: "rrf" adds up 1 / (rrf_k + rank); "combsum" adds up scores, which are scaled to the
///         range from 0 to 1 by run and query; "combmnz" is that times the number of runs that have
///         the document; "combmax" and "combmin" take the greatest or least of these scores.
///     k: the most documents for a query.
///     rrf_k: 60 if left out; the greater it is, the less the first ranks count for.
///     weights: a number for each run, 0 or more, that its part of a score is multiplied by.
///
/// Returns:
///     A run: a dictionary {qid: {name: score}}, best first; equal scores by name. `evaluate`,
///     `compare` and `candidates` take it, and so do ir_measures and ranx.
#[pyfunction]
#[pyo3(signature = (runs, *, method="rrf", k=1000, rrf_k=None, weights=None))]
pub(crate) fn fuse<'py>(
    py: Python<'py>,
    runs: Vec<Bound<'py, PyAny>>,
    method: &str,
    #[pyo3(from_py_with = whole)] k: usize,
    rrf_k: Option<f64>,
    weights: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    if runs.len() < 2 {
        return Err(wrong("give two runs or more"));
    }
    let method = Method::named(method, rrf_k).map_err(wrong)?;
    weights.as_deref().map_or(Ok(()), |all| check_weights(all, runs.len())).map_err(wrong)?;
    let weights = weights.unwrap_or_default();
    let k = hits(k)?;
    let named = runs.iter().zip(1..).map(|(run, number)| ranked(run, &format!("run {number}")));
    let runs = named.collect::<PyResult<Vec<Rankings>>>()?;
    let found = py.detach(|| fused(&runs, method, &weights, k).map(Iterator::collect::<Vec<_>>));
    let found = found.map_err(|error| of_evaluate(&error))?;
    let by_query = PyDict::new(py);
    for (qid, ranking) in found {
        let by_name = PyDict::new(py);
        for (name, score) in ranking {
            by_name.set_item(String::from_utf8_lossy(&name), score)?;
        }
        by_query.set_item(qid, by_name)?;
    }
    Ok(by_query)
}
