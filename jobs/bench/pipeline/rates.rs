//! How fast are the parsers and indexers of this machine? Measured in builds, for what placement wants to
//! know is how fast they are beside each other. The paper finds the share of the CPU by tests on a
//! sample (section III.E); the last rate is found so here.

use super::tables::{of_side, seconds};
use super::{Bench, Way};
use anyhow::Context;
use millrace::build::{BuildOptions, MeasuredRates, OwnedDocument};
use millrace::schedule::placement::Rates;
use millrace::text::analysis::Analysis;
use millrace::text::stemmer::Stemmer;
use millrace::text::stop_words::StopWords;
use serde_json::json;

/// Tokens of one trie collection that a device is given alone, and their different terms.
const TREE_TOKENS: usize = 1 << 20;
const TREE_TERMS: f64 = 50_000.0;

/// Tokens of a document.
const DOCUMENT_TOKENS: usize = 400;

impl Bench<'_> {
    /// Measures the four rates and keeps them.
    ///
    /// A parser and an indexer on the CPU take so many tokens in each second of their core, a GPU in
    /// each second in which it has something to do. A GPU on one tree is measured with text of which all
    /// terms are of one trie collection; in a build each launch ends with its largest tree, so that
    /// this is too much by a factor that depends on the machine: builds with this rate, the half and
    /// the quarter of it decide.
    pub(super) fn rates(&mut self) -> anyhow::Result<()> {
        let device = self.gpus.as_ref().ok().and_then(|names| names.first().cloned());
        let gpus = self.gpus.as_ref().map_or(0, Vec::len);
        let mut rates = Rates::default();
        let roles = self.usual_roles();
        let way = |rates| Way { rates: Some(rates), ..Way::wei11(roles) };
        let (mut alone, mut trials) = (None, Vec::new());
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
            rates.gpu = tokens(true) / busy / gpus as f64;
        }
        anyhow::ensure!(rates.are_sound(), "too little input to measure with: {rates:?}");
        if device.is_some() {
            let (mut best, mut least) = (rates.gpu_tree, f64::INFINITY);
            for part in [1.0, 0.5, 0.25] {
                let gpu_tree = rates.gpu_tree * part;
                let seconds = self.build(way(Rates { gpu_tree, ..rates }))?.seconds;
                trials.push(json!({"gpu_tree": gpu_tree, "seconds": seconds}));
                if seconds < least {
                    (best, least) = (gpu_tree, seconds);
                }
            }
            rates.gpu_tree = best;
        }
        let measured = MeasuredRates { device, rates };
        let path = measured.keep().context("keeping the rates")?;
        let row = json!({"device": measured.device, "parser": rates.parser, "cpu": rates.cpu,
            "gpu": rates.gpu, "gpu_tree": rates.gpu_tree, "gpu_tree_alone": alone,
            "trials": trials, "kept": path.display().to_string()});
        self.row("rates", row)
    }

    /// Tokens a second that one GPU indexer takes of a single trie collection.
    fn one_tree(&self) -> anyhow::Result<f64> {
        let way = Way { gpus: 1, ..Way::wei11((self.workers, 0, 1)) };
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
    let mut state = 1u64;
    let mut word = move || {
        // The constants of a well-known linear generator (Knuth, MMIX).
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        let mut rank = ((TREE_TERMS + 1.0).powf(unit) - 1.0) as u32;
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
