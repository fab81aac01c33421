//! Rows of the paper's tables, and the rates of this machine, from what builds report.

use super::{BuildWay, PipelineBench, RoleCounts, print};
use crate::numbers::uniform;
use anyhow::Context;
use millrace::inside::build::{IndexerReport, MeasuredRates, TokensTaken};
use millrace::inside::dataflow::OperatorTime;
use millrace::inside::schedule::Rates;
use millrace::inside::text::{Analysis, Stemmer, StopWords};
use millrace::{BuildOptions, BuildReport, OwnedDocument};
use serde_json::{Value, json};

/// An operator on each worker.
fn operator<'r>(report: &'r BuildReport, name: &str) -> impl Iterator<Item = &'r OperatorTime> {
    report.operators.iter().filter(move |row| row.operator == name)
}

/// Seconds that an operator has worked, on all workers.
pub(super) fn seconds(report: &BuildReport, name: &str) -> f64 {
    operator(report, name).map(|row| row.seconds).sum()
}

/// Seconds that an operator has worked on the worker on which it had most to do: wall time.
fn wall(report: &BuildReport, name: &str) -> f64 {
    operator(report, name).map(|row| row.seconds).fold(0.0, f64::max)
}

/// When an operator last worked, in seconds from the beginning of the job.
pub(super) fn until(report: &BuildReport, name: &str) -> f64 {
    operator(report, name).map(|row| row.until).fold(0.0, f64::max)
}

/// The greatest and the sum of a figure over the indexers of a side.
fn of_side(
    report: &BuildReport,
    gpus: usize,
    gpu: bool,
    figure: impl Fn(&IndexerReport, &TokensTaken) -> f64,
) -> (f64, f64) {
    let mine = report.indexers.iter().filter(|row| ((row.indexer as usize) < gpus) == gpu);
    let figures = mine.filter_map(|row| Some(figure(row, row.took.as_ref()?)));
    figures.fold((0.0, 0.0), |(most, sum), value| (f64::max(most, value), sum + value))
}

/// Seconds in which a worker took groups in and gathered blocks for its indexers, of the worker
/// with most of that: what comes before indexing.
fn preprocessing(report: &BuildReport) -> f64 {
    let own = operator(report, "IndexTokens").map(|row| {
        let indexers = report.indexers.iter().filter(|indexer| indexer.worker == row.worker);
        let worked: f64 = indexers.filter_map(|row| Some(row.took.as_ref()?.worked_s)).sum();
        row.seconds - worked
    });
    own.fold(0.0, f64::max)
}

/// Table IV, in wall time: of each step the worker or indexer that it took longest. In the paper
/// the steps of a run follow one another; here they overlap, and those of several workers too, so
/// that their sum may be more than the whole. As in the paper, text over the time of indexing is
/// one throughput, and text over the whole time of the indexers, from the beginning of the dataflow
/// to the last written run, the other.
pub(super) fn times(report: &BuildReport, (parsers, cpu, gpu): RoleCounts) -> Value {
    let busy = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.busy_s).0;
    let waited = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.waited_s).0;
    let preprocessing = preprocessing(report);
    let indexing = busy(false).max(busy(true));
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

/// Tokens of one trie collection that a device alone gets, and their different terms.
const TREE_TOKENS: usize = 1 << 20;
const TREE_TERMS: u32 = 50_000;

/// Tokens of a document.
const DOCUMENT_TOKENS: usize = 400;

impl PipelineBench {
    /// Measures the four rates and keeps them. The paper finds the share of the CPU by tests on a
    /// sample (section III.E); the last rate is found so here. Without a GPU two are measured and
    /// none is kept: nothing is placed by them, and they would replace those of a GPU.
    ///
    /// A parser and an indexer on the CPU take this many tokens in each second of their core, a GPU
    /// in each second in which it has something to do. A GPU on one tree is measured with text of
    /// which all terms are of one trie collection; in a build each launch ends with its largest
    /// tree, so that this is too much by a factor that depends on the machine: builds with this
    /// rate, the half and the quarter of it decide.
    pub(super) fn rates(&self) -> anyhow::Result<()> {
        let device = self.gpus.first().cloned();
        let mut rates = Rates::default();
        let roles = self.usual_roles();
        let way = |rates| BuildWay { rates: Some(rates), ..BuildWay::wei11(roles) };
        let mut alone = None;
        let mut trials = Vec::new();
        if device.is_some() {
            rates.gpu_tree = self.one_tree()?;
            alone = Some(rates.gpu_tree);
        }
        let report = self.build(way(rates))?;
        let gpu = roles.2;
        let tokens = |on_gpu| of_side(&report, gpu, on_gpu, |_, took| took.tokens as f64).1;
        rates.parser = report.tokens as f64 / seconds(&report, "Parse");
        rates.cpu = tokens(false) / of_side(&report, gpu, false, |_, took| took.worked_s).1;
        if gpu > 0 {
            let busy = of_side(&report, gpu, true, |_, took| took.busy_s).0;
            rates.gpu = tokens(true) / busy / self.gpus.len() as f64;
        }
        anyhow::ensure!(rates.are_sound(), "too little input to measure with: {rates:?}");
        if device.is_some() {
            for part in [1.0, 0.5, 0.25] {
                let gpu_tree = rates.gpu_tree * part;
                let seconds = self.build(way(Rates { gpu_tree, ..rates }))?.seconds;
                trials.push((seconds, gpu_tree));
            }
            let best = trials.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
            rates.gpu_tree = best.map_or(rates.gpu_tree, |(_, gpu_tree)| gpu_tree);
        }
        let mut row = json!({"parser": rates.parser, "cpu": rates.cpu});
        if device.is_some() {
            row["device"] = json!(device);
            row["gpu"] = rates.gpu.into();
            row["gpu_tree"] = rates.gpu_tree.into();
            row["gpu_tree_alone"] = alone.into();
            row["trials"] = json!(trials);
            let kept = MeasuredRates { device, rates }.keep().context("keeping the rates")?;
            row["kept"] = json!(kept);
        }
        print("rates", row)
    }

    /// Tokens a second that one GPU indexer takes of a single trie collection.
    fn one_tree(&self) -> anyhow::Result<f64> {
        let way = BuildWay { gpus: 1, ..BuildWay::wei11((self.workers, 0, 1)) };
        let report = self.build_once(way, |index| {
            let mut options = BuildOptions::of_documents(index, one_tree_documents());
            let stop_words = StopWords::none();
            options.analysis =
                Analysis { stemmer: Stemmer::NONE, stop_words, ..Analysis::default() };
            options
        })?;
        let tokens = of_side(&report, 1, true, |_, took| took.tokens as f64).0;
        Ok(tokens / of_side(&report, 1, true, |_, took| took.busy_s).0)
    }
}

/// Documents whose terms are all of one trie collection and come as Zipf's law has them.
fn one_tree_documents() -> impl Iterator<Item = OwnedDocument> + Send {
    let mut uniform = uniform(1);
    let mut word = move || {
        let mut rank = (f64::from(TREE_TERMS + 1).powf(uniform()) - 1.0) as u32;
        let mut word = String::from("mil");
        for _ in 0..4 {
            word.push(char::from(b'a' + (rank % 26) as u8));
            rank /= 26;
        }
        word
    };
    (0..TREE_TOKENS / DOCUMENT_TOKENS).map(move |number| {
        let words: Vec<String> = (0..DOCUMENT_TOKENS).map(|_| word()).collect();
        OwnedDocument::new(number.to_string(), words.join(" "))
    })
}
