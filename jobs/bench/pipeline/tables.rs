//! Rows of the paper's tables, from what a build reports.

use super::Roles;
use millrace::build::{BuildReport, IndexerReport, TokensTaken};
use serde_json::{Value, json};

/// Seconds that an operator has worked, on all workers.
pub(super) fn seconds(report: &BuildReport, operator: &str) -> f64 {
    let rows = report.operators.iter().filter(|row| row.operator == operator);
    rows.map(|row| row.seconds).sum()
}

/// Seconds that an operator has worked on the worker on which it had most to do: wall time.
fn wall(report: &BuildReport, operator: &str) -> f64 {
    let rows = report.operators.iter().filter(|row| row.operator == operator);
    rows.map(|row| row.seconds).fold(0.0, f64::max)
}

/// When an operator last worked, in seconds from the beginning of the job.
pub(super) fn until(report: &BuildReport, operator: &str) -> f64 {
    let rows = report.operators.iter().filter(|row| row.operator == operator);
    rows.map(|row| row.until).fold(0.0, f64::max)
}

/// The greatest and the sum of a figure over the indexers of a side.
pub(super) fn of_side(
    report: &BuildReport,
    gpus: usize,
    gpu: bool,
    figure: impl Fn(&IndexerReport, &TokensTaken) -> f64,
) -> (f64, f64) {
    let mine = report.indexers.iter().filter(|row| ((row.indexer as usize) < gpus) == gpu);
    let figures = mine.filter_map(|row| Some(figure(row, row.took.as_ref()?)));
    figures.fold((0.0, 0.0), |(most, sum), value| (f64::max(most, value), sum + value))
}

/// Seconds in which a worker took groups in and gathered blocks for its indexers, of the worker with
/// most of that: what comes before indexing.
fn preprocessing(report: &BuildReport) -> f64 {
    let rows = report.operators.iter().filter(|row| row.operator == "IndexTokens");
    let own = rows.map(|row| {
        let indexers = report.indexers.iter().filter(|indexer| indexer.worker == row.worker);
        let worked: f64 = indexers.filter_map(|row| Some(row.took.as_ref()?.worked_s)).sum();
        row.seconds - worked
    });
    own.fold(0.0, f64::max)
}

/// Table IV, in wall time: of each step the worker or indexer that it took longest. In the paper the
/// steps of a run follow one another; here they overlap, and those of several workers too, so that
/// their sum may be more than the whole. As in the paper, text over the time of indexing is one
/// throughput, and text over the whole time of the indexers, from the beginning of the dataflow to
/// the last written run, the other.
pub(super) fn times(report: &BuildReport, (parsers, cpu, gpu): Roles) -> Value {
    let busy = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.busy_s).0;
    let waited = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.waited_s).0;
    let (preprocessing, indexing) = (preprocessing(report), busy(false).max(busy(true)));
    let postprocessing = wall(report, "Encode") + wall(report, "Flush");
    let total = (until(report, "Flush") - report.phases.prepare_s).max(indexing);
    let mb_per_s = |seconds: f64| report.uncompressed_bytes as f64 / 1e6 / seconds.max(1e-9);
    json!({
        "parsers": parsers,
        "cpu_indexers": cpu,
        "gpu_indexers": gpu,
        "preprocessing_s": preprocessing,
        "indexing_s": indexing,
        "postprocessing_s": postprocessing,
        "sum_s": preprocessing + indexing + postprocessing,
        "total_indexer_s": total,
        "indexing_mb_per_s": mb_per_s(indexing),
        "total_indexer_mb_per_s": mb_per_s(total),
        "indexing_cpu_s": busy(false),
        "indexing_gpu_s": busy(true),
        "waiting_cpu_s": waited(false),
        "waiting_gpu_s": waited(true),
        "job_s": report.seconds,
    })
}

/// Table V: what a side has indexed. Characters are those of its terms, each counted once in a run.
pub(super) fn work(report: &BuildReport, gpus: usize, gpu: bool) -> Option<Value> {
    let tokens = of_side(report, gpus, gpu, |_, took| took.tokens as f64).1;
    let terms = of_side(report, gpus, gpu, |row, _| row.terms as f64).1;
    let characters = of_side(report, gpus, gpu, |row, _| row.characters as f64).1;
    let busy = of_side(report, gpus, gpu, |_, took| took.busy_s).0;
    (tokens > 0.0).then(|| {
        json!({"tokens": tokens as u64, "terms": terms as u64, "characters": characters as u64,
            "tokens_per_s": tokens / busy.max(1e-9)})
    })
}
