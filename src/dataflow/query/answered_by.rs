//! Counts of the queries that devices and the CPU have answered, and the totals of a job.

use super::service::QueryReport;
use crate::gpu::query::service::Counts;
use crate::score::named::Score;
use crate::shown::{count, number_of};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Queries that each kind of processor has answered.
#[derive(Debug, Default, Serialize)]
pub struct ProcessorShares {
    pub cpu: AtomicU64,
    /// Including queries that devices gave back and the CPU answered.
    pub devices: AtomicU64,
}

/// Beside the CPU.
#[derive(Clone, Debug, Default)]
pub struct AnsweredBy {
    pub devices: Option<Arc<Counts>>,
    /// What the scheduler gave to each processor.
    pub shares: Option<Arc<ProcessorShares>>,
    /// Devices were asked for, and do not have the score.
    pub score_is_of_cpu: bool,
}

impl AnsweredBy {
    /// Counts the queries that the CPU answered because devices did not; none if there are none.
    pub fn warning(&self) -> Option<String> {
        let mut reasons = self.devices.as_ref()?.by_cpu().to_vec();
        reasons.retain(|&(queries, _)| queries > 0);
        let all = reasons.iter().map(|(queries, _)| queries).sum();
        let said = reasons.iter().map(|(queries, why)| format!("{} {why}", count(*queries)));
        let said = said.reduce(|said, more| said + "; " + &more)?;
        let all = number_of(all, "query", "queries");
        Some(format!("the CPU answered {all} instead of a GPU: {said}"))
    }

    /// Stands behind the line of a report; empty if no scheduler divided the queries.
    pub fn remark(&self) -> String {
        let Some(shares) = &self.shares else { return String::new() };
        let [cpu, devices] =
            [&shares.cpu, &shares.devices].map(|share| count(share.load(Ordering::Relaxed)));
        format!("; {devices} went to GPUs, {cpu} to the CPU")
    }

    fn name(&self) -> &'static str {
        match (self.devices.is_some(), self.score_is_of_cpu) {
            (true, _) => "devices and CPU",
            (false, true) => "CPU alone: devices do not have this score",
            (false, false) => "CPU",
        }
    }

    /// All totals of the job as an object: docs/operate.md.
    pub fn totals(&self, report: &QueryReport, score: Score) -> Value {
        json!({
            "job": "query",
            "process": report.shard.process,
            "processes": report.shard.processes,
            "queries": report.queries,
            "lines_refused": report.refused,
            "queries_left_late": report.late,
            "queries_without_indexed_term": report.unknown,
            "hits": report.hits,
            "queries_asked_again": report.asked_again,
            "batches": report.batches,
            "queries_per_s": report.queries as f64 / report.took.as_secs_f64(),
            "answering_s": report.answering.as_secs_f64(),
            "score": score.name(),
            "computed_by": self.name(),
            "latency_us": report.latency,
            "progress": report.progress,
            "gpu": self.devices.as_deref(),
            "shares": self.shares.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warning_has_each_reason_that_there_is() {
        let counts = Arc::<Counts>::default();
        let by = AnsweredBy { devices: Some(counts.clone()), ..AnsweredBy::default() };
        assert_eq!((AnsweredBy::default().warning(), by.warning()), (None, None));
        counts.answered.store(5, Ordering::Relaxed);
        counts.lost.store(1, Ordering::Relaxed);
        let expected = "the CPU answered 1 query instead of a GPU: 1 because it failed";
        assert_eq!(by.warning().unwrap(), expected);
        counts.without_lists.store(1200, Ordering::Relaxed);
        let expected = "the CPU answered 1,201 queries instead of a GPU: 1,200 because their lists \
                        had no room on it or could not be read; 1 because it failed";
        assert_eq!(by.warning().unwrap(), expected);
        assert_eq!(by.remark(), "");
    }
}
