//! Counts of the queries that devices and the CPU have answered, and the totals of a job.

use super::service::QueryReport;
use crate::gpu::query::service::Counts;
use crate::query::engines::engine::hybrid::ProcessorShares;
use crate::score::named::Score;
use crate::shown::count;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    /// Stands behind the line of a report; empty if the CPU or devices answered all.
    pub fn remark(&self) -> String {
        let mut line = String::new();
        let back = self.devices.as_ref().map_or(0, |counts| counts.by_cpu());
        if back > 0 {
            line += &format!("; {} of the queries by the CPU", count(back));
        }
        if let Some(shares) = &self.shares {
            let [cpu, devices] =
                [&shares.cpu, &shares.devices].map(|share| count(share.load(Ordering::Relaxed)));
            line += &format!("; {devices} went to GPUs, {cpu} to the CPU");
        }
        line
    }

    fn name(&self) -> &'static str {
        match (self.devices.is_some(), self.score_is_of_cpu) {
            (true, _) => "devices and CPU",
            (false, true) => "CPU alone: devices do not have this score",
            (false, false) => "CPU",
        }
    }

    /// All totals of the job as an object: docs/reports.md.
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
