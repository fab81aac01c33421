//! Evaluation of rankings by human judgements.
//!
//! Definitions, ties and defaults are those of trec_eval, names those of ir_measures: a ranking is
//! ordered by score, equal scores by name, the greater first, whatever ranks the file states; every
//! query that has judgements counts, with 0 where the run has nothing for it.

#![warn(missing_docs)]

pub(crate) mod by_query;
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

use crate::shown::{decimals, number_of, visible};
use compare::Comparison;
use measure::Measure;
use qrels::Qrels;
use run::{FIRST, Rankings};
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
    /// The mean of each measure over all judged queries; of `NumRet` the sum.
    pub means: Vec<f64>,
    /// Judged queries for which the run has no document.
    pub without_hits: usize,
    /// Queries of the run that have no judgements, which count for nothing.
    pub not_judged: usize,
    /// A warning if the run has next to nothing of what is judged.
    pub warning: Option<String>,
    /// The name of a run, and the comparison with it.
    pub against: Option<(String, Vec<Comparison>)>,
    /// Means, as they are printed, with what other orders of equal scores would make of them.
    by_ties: String,
    qrels: Qrels,
    /// A value for each query and measure.
    values: Vec<f64>,
}

impl Evaluation {
    /// # Errors
    /// If the run names a document twice for a query, or none of its queries has judgements.
    pub fn new(
        run: &mut Rankings,
        qrels: &Qrels,
        measures: &[Measure],
    ) -> Result<Self, EvaluateError> {
        let mut values = Vec::with_capacity(qrels.len() * measures.len());
        let mut without_hits = 0;
        let mut any_judged = false;
        let mut lost = 0;
        let mut tied = vec![[0.0; 2]; measures.len()];
        for (qid, judged) in qrels.iter() {
            let ranked = run.ranking(qid, &judged)?;
            without_hits += usize::from(ranked.levels.is_empty());
            any_judged |= ranked.levels.iter().any(Option::is_some);
            lost += usize::from(!ranked.finds_judged());
            for (measure, [least, most]) in measures.iter().zip(&mut tied) {
                let value = measure.of(&ranked, &judged);
                let [worst, best] = measure.of_ties(&ranked, &judged).unwrap_or([value; 2]);
                *least += worst;
                *most += best;
                values.push(value);
            }
        }
        if without_hits == qrels.len() {
            let run = run.name().to_string();
            let qrels = qrels.name().to_string();
            return Err(EvaluateError::NothingInCommon { run, qrels });
        }
        let queries = qrels.len();
        let means = measures.iter().enumerate().map(|(at, measure)| {
            let sum: f64 = values.iter().skip(at).step_by(measures.len()).sum();
            if measure.is_count() { sum } else { sum / queries as f64 }
        });
        let means = means.collect();
        let by_ties = measures.iter().zip(&tied).filter_map(|(measure, sums)| {
            let [least, most] = sums.map(|sum| decimals(sum / queries as f64));
            (least != most).then(|| format!("{measure} is {least} to {most}"))
        });
        let by_ties = by_ties.collect::<Vec<_>>().join(", ");
        let warning = if any_judged {
            little_found(run.name(), lost, queries)
        } else {
            strangers(run, qrels)?
        };
        let not_judged = run.queries().filter(|qid| !qrels.all.has(qid)).count();
        Ok(Self {
            run: run.name().to_string(),
            measures: measures.to_vec(),
            means,
            without_hits,
            not_judged,
            warning,
            against: None,
            by_ties,
            qrels: qrels.clone(),
            values,
        })
    }

    /// Each judged query, in the order of the judgements, with a value for each measure.
    pub fn per_query(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let values = |at| &self.values[at * self.measures.len()..][..self.measures.len()];
        self.qrels.qids().enumerate().map(move |(at, qid)| (qid, values(at)))
    }

    /// Remarks on judged queries without a document, queries without judgements and documents
    /// without any.
    pub fn remarks(&self) -> Vec<String> {
        let Self { run, without_hits, not_judged, .. } = self;
        let judged = self.qrels.len();
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
        if !self.by_ties.is_empty() {
            let means = &self.by_ties;
            remarks.push(format!(
                "{run}: equal scores are on both sides of a cutoff, and their order decides: {means}"
            ));
        }
        remarks.extend(self.warning.clone());
        remarks
    }

    /// The means by the names of their measures.
    pub fn named_means(&self) -> serde_json::Value {
        let rows = self.measures.iter().zip(&self.means);
        let rows = rows.map(|(measure, &mean)| (measure.to_string(), mean.into()));
        serde_json::Value::Object(rows.collect())
    }

    /// Compares with another run of the same judgements and measures, measure by measure.
    pub fn against(&self, other: &Self) -> Vec<Comparison> {
        let compared = self.measures.iter().enumerate().map(|(at, measure)| {
            // Of counts, sums are compared.
            let times = if measure.is_count() { self.qrels.len() as f64 } else { 1.0 };
            let column = |run: &Self| run.column(at).map(|value| value * times).collect::<Vec<_>>();
            Comparison::new(&column(self), &column(other))
        });
        compared.collect()
    }

    fn column(&self, measure: usize) -> impl Iterator<Item = f64> {
        self.values.iter().skip(measure).step_by(self.measures.len()).copied()
    }
}

/// A warning if at least ten queries are judged, and nine in ten are lost: without a judged
/// document among the first ones.
pub(crate) fn little_found(run: &str, lost: usize, queries: usize) -> Option<String> {
    (queries >= 10 && lost * 10 >= queries * 9).then(|| {
        format!(
            "{run}: {lost} of {queries} judged queries have no judged document among their first \
             {FIRST}; are queries, documents and judgements of one collection, and read as they \
             are meant?"
        )
    })
}

/// A warning with a document of the run and a judged one, for the first query that has both.
fn strangers(run: &Rankings, qrels: &Qrels) -> Result<Option<String>, EvaluateError> {
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

struct PerQuery<'a>(&'a Evaluation);

impl Serialize for PerQuery<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.per_query();
        serializer.collect_map(rows.map(|(qid, values)| (qid, ByMeasure(&self.0.measures, values))))
    }
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("run", &self.run)?;
        map.serialize_entry("queries", &self.qrels.len())?;
        map.serialize_entry("queries_without_hits", &self.without_hits)?;
        map.serialize_entry("queries_not_judged", &self.not_judged)?;
        map.serialize_entry("measures", &ByMeasure(&self.measures, &self.means))?;
        map.serialize_entry("per_query", &PerQuery(self))?;
        if let Some((run, against)) = &self.against {
            let measures = ByMeasure(&self.measures, against);
            map.serialize_entry("against", &Against { run, measures })?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Against<'a> {
    run: &'a str,
    measures: ByMeasure<'a, Comparison>,
}
