//! The call `fuse`.

use crate::error::{of_evaluate, wrong};
use crate::evaluate::ranked;
use crate::options::{hits, whole};
use millrace::Rankings;
use millrace::inside::evaluate::{Method, fuse as fused};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Makes one run of several.
///
/// Args:
///     runs: two or more, each as in `evaluate`.
///     method: "rrf" adds up 1 / (rrf_k + rank); "combsum" adds up scores, which are scaled to the
///         range from 0 to 1 by run and query.
///     k: the most documents for a query.
///     rrf_k: 60 if left out; the greater it is, the less the first ranks count for.
///
/// Returns:
///     A run: a dictionary {qid: {name: score}}, best first; equal scores by name. `evaluate`,
///     `compare` and `candidates` take it, and so do ir_measures and ranx.
#[pyfunction]
#[pyo3(signature = (runs, *, method="rrf", k=1000, rrf_k=None))]
pub(crate) fn fuse<'py>(
    py: Python<'py>,
    runs: Vec<Bound<'py, PyAny>>,
    method: &str,
    #[pyo3(from_py_with = whole)] k: usize,
    rrf_k: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    if runs.len() < 2 {
        return Err(wrong("give two runs or more"));
    }
    let method = self::method(method, rrf_k)?;
    let k = hits(k)?;
    let named = runs.iter().zip(1..).map(|(run, number)| ranked(run, &format!("run {number}")));
    let mut runs = named.collect::<PyResult<Vec<Rankings>>>()?;
    let found = py.detach(|| fused(&mut runs, method, k)).map_err(|error| of_evaluate(&error))?;
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

fn method(name: &str, rrf_k: Option<f64>) -> PyResult<Method> {
    match (name, rrf_k) {
        ("rrf", Some(k)) if !(k >= 0.0 && k.is_finite()) => Err(wrong("rrf_k is 0 or more")),
        ("rrf", k) => Ok(Method::Rrf { k: k.unwrap_or(60.0) }),
        ("combsum", None) => Ok(Method::CombSum),
        ("combsum", Some(_)) => Err(wrong("rrf_k goes with the method rrf")),
        _ => Err(wrong(format!("method is rrf or combsum, not {name}"))),
    }
}
