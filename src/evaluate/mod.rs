//! Evaluation of rankings by human judgements.
//!
//! Definitions, ties and defaults are those of trec_eval, names those of ir_measures: a ranking is
//! ordered by score, equal scores by name, the greater first, whatever ranks the file states; every
//! query that has judgements counts, with 0 where the run has nothing for it.

#![warn(missing_docs)]

pub(crate) mod compare;
pub(crate) mod error;
pub(crate) mod fuse;
pub(crate) mod measure;
pub(crate) mod qrels;
pub(crate) mod run;
pub(crate) mod table;
pub(crate) mod tune;
pub(crate) mod written;

pub(crate) use error::EvaluateError;

use crate::shown::{number_of, visible};
use compare::Comparison;
use measure::Measure;
use qrels::Qrels;
use run::Rankings;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The values of one run. As JSON: `run`, `queries`, `measures` (a mean for each name) and
/// `per_query` (the same for each query).
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The run's name.
    pub run: String,
    /// The measures, in the order of the values.
    pub measures: Vec<Measure>,
    /// Each judged query, in the order of the judgements, with a value for each measure.
    pub per_query: Vec<(String, Vec<f64>)>,
    /// The mean of each measure over all judged queries.
    pub means: Vec<f64>,
    /// Judged queries for which the run has no document.
    pub without_hits: usize,
    /// Queries of the run that have no judgements, which count for nothing.
    pub not_judged: usize,
    /// A warning if not one of the run's documents is judged for its query, so that all values
    /// are 0.
    pub strangers: Option<String>,
}

impl Evaluation {
    /// # Errors
    /// If the run names a document twice for a query, or none of its queries has judgements.
    pub fn new(
        run: &mut Rankings,
        qrels: &Qrels,
        measures: &[Measure],
    ) -> Result<Self, EvaluateError> {
        let mut per_query = Vec::with_capacity(qrels.len());
        let mut without_hits = 0;
        let mut any_judged = false;
        for (qid, judged) in qrels.iter() {
            let ranked = run.ranking(qid, judged)?;
            without_hits += usize::from(ranked.levels.is_empty());
            any_judged |= ranked.levels.iter().any(Option::is_some);
            let values = measures.iter().map(|measure| measure.of(&ranked, judged)).collect();
            per_query.push((qid.to_string(), values));
        }
        let not_judged = run.queries().filter(|qid| qrels.get(qid).is_none()).count();
        if without_hits == per_query.len() {
            let run = run.name().to_string();
            let qrels = qrels.name().to_string();
            return Err(EvaluateError::NothingInCommon { run, qrels });
        }
        let mean = |at: usize| {
            let sum: f64 = per_query.iter().map(|(_, values): &(_, Vec<f64>)| values[at]).sum();
            sum / per_query.len() as f64
        };
        let means = (0..measures.len()).map(mean).collect();
        let strangers = if any_judged { None } else { strangers(run, qrels)? };
        let run = run.name().to_string();
        let measures = measures.to_vec();
        Ok(Self { run, measures, per_query, means, without_hits, not_judged, strangers })
    }

    /// The values of a measure, query by query.
    pub fn column(&self, measure: usize) -> Vec<f64> {
        self.per_query.iter().map(|(_, values)| values[measure]).collect()
    }

    /// Remarks on judged queries without a document, queries without judgements and documents
    /// without any.
    pub fn remarks(&self) -> Vec<String> {
        let Self { run, without_hits, not_judged, .. } = self;
        let judged = self.per_query.len();
        let mut remarks = Vec::new();
        if *without_hits > 0 {
            remarks.push(format!(
                "{run}: {without_hits} of {judged} judged queries have no document in this run and count as 0"
            ));
        }
        if *not_judged > 0 {
            let verbs = if *not_judged == 1 {
                "has no judgements and does"
            } else {
                "have no judgements and do"
            };
            let queries = number_of(*not_judged as u64, "query", "queries");
            remarks.push(format!("{run}: {queries} {verbs} not count"));
        }
        remarks.extend(self.strangers.clone());
        remarks
    }

    /// The means by the names of their measures.
    pub fn named_means(&self) -> serde_json::Value {
        let rows = self.measures.iter().zip(&self.means);
        let rows = rows.map(|(measure, &mean)| (measure.to_string(), mean.into()));
        serde_json::Value::Object(rows.collect())
    }

    /// The run as a JSON object, with its comparison with the run `first`.
    ///
    /// # Errors
    /// If a number cannot be written as JSON.
    pub fn as_json(
        &self,
        first: &str,
        against: Option<&[Comparison]>,
    ) -> Result<String, serde_json::Error> {
        let mut text = serde_json::to_string(self)?;
        if let Some(against) = against {
            let first = serde_json::to_string(first)?;
            let measures = serde_json::to_string(&ByMeasure(&self.measures, against))?;
            text.pop();
            text += &format!(",\"against\":{{\"run\":{first},\"measures\":{measures}}}}}");
        }
        Ok(text)
    }

    /// Compares with another run of the same judgements and measures, measure by measure.
    pub fn against(&self, other: &Self) -> Vec<Comparison> {
        let measures = 0..self.measures.len();
        measures.map(|at| Comparison::new(&self.column(at), &other.column(at))).collect()
    }
}

/// A warning with a document of the run and a judged one, for the first query that has both.
fn strangers(run: &mut Rankings, qrels: &Qrels) -> Result<Option<String>, EvaluateError> {
    let file = run.name().to_string();
    for (qid, judged) in qrels.iter() {
        if let (Some((found, _)), Some(other)) = (run.best_first(qid)?.first(), judged.first()) {
            return Ok(Some(format!(
                "{file}: none of the documents of this run is judged for its query. For query \
                 {qid} the run has `{}` and {} has `{}`; are the names the same?",
                visible(&String::from_utf8_lossy(found)),
                qrels.name(),
                visible(&String::from_utf8_lossy(other)),
            )));
        }
    }
    Ok(None)
}

/// What there is for each measure, by its name.
struct ByMeasure<'a, T>(&'a [Measure], &'a [T]);

impl<T: Serialize> Serialize for ByMeasure<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(ToString::to_string).zip(self.1))
    }
}

struct ByQuery<'a>(&'a Evaluation);

impl Serialize for ByQuery<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Evaluation { per_query, measures, .. } = self.0;
        serializer
            .collect_map(per_query.iter().map(|(qid, values)| (qid, ByMeasure(measures, values))))
    }
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("run", &self.run)?;
        map.serialize_entry("queries", &self.per_query.len())?;
        map.serialize_entry("queries_without_hits", &self.without_hits)?;
        map.serialize_entry("queries_not_judged", &self.not_judged)?;
        map.serialize_entry("measures", &ByMeasure(&self.measures, &self.means))?;
        map.serialize_entry("per_query", &ByQuery(self))?;
        map.end()
    }
}
