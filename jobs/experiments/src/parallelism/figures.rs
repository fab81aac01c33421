//! The figures of `tatikonda11`, one a method.

use super::tasks::Tasks;
use super::{JobWay, ParallelismBench, Timed};
use crate::args::Figures;
use anyhow::Context;
use millrace::inside::query::{Cutting, Model};
use serde_json::json;

pub(super) const FIGURES: &Figures<ParallelismBench> = &[
    ("models", ParallelismBench::models),
    ("delta", ParallelismBench::delta),
    ("load", |bench| bench.load("load", &bench.all())),
    ("length", ParallelismBench::length),
    ("skips", ParallelismBench::skips),
];

/// The pool thresholds that the paper compares everywhere.
const LATENCY: usize = 5;
const THROUGHPUT: usize = 150;

/// Loads, as parts of what `inter` can do.
const LOADS: [f64; 9] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3];

impl ParallelismBench {
    /// By workers, in two experiments.
    ///
    /// `models-closed-loop` has the paper's figures 4a and 4b: all queries are there, a model takes
    /// the next one when it can, and a query's latency is its processing time, from when it is
    /// taken to its answer, which is why that of INTER does not depend on the workers.
    /// `models-light-load` is ours: queries arrive seldom, and waking counts too.
    fn models(&self) -> anyhow::Result<()> {
        for &workers in &self.workers {
            let mut models = vec![
                Model::Inter,
                Model::DocpUi { barrier: true },
                Model::DocpPi { barrier: true },
                Model::DocpUi { barrier: false },
                Model::DocpPi { barrier: false },
            ];
            models.extend(self.fgqp_both(THROUGHPUT, self.cutting()));
            models.extend(self.fgqp_both(LATENCY, self.cutting()));
            self.compare("models", models, workers)?;
        }
        Ok(())
    }

    /// By threshold, in the same two experiments: `delta-closed-loop` has the paper's figure 4c. In
    /// `delta-light-load` hardly two queries are under way, so that the threshold can make little
    /// difference.
    fn delta(&self) -> anyhow::Result<()> {
        let mut models = vec![Model::Inter];
        for delta in [5, 10, 20, 50, 75, 100, 150, 200] {
            models.extend(self.fgqp_both(delta, self.cutting()));
        }
        self.compare("delta", models, self.most_workers())
    }

    /// Measures models with all queries there, and at light load; compares each with `inter` on one
    /// worker and on as many.
    fn compare(&self, figure: &str, models: Vec<Model>, workers: usize) -> anyhow::Result<()> {
        let mut ways = self.ways(models, workers);
        let one = JobWay { model: Model::Inter, workers: 1 };
        if !ways.contains(&one) {
            ways.insert(0, one);
        }
        let points = self.both_loads(&ways, &self.all())?;
        for point in &points {
            let inter = |workers| {
                let way = JobWay { model: Model::Inter, workers };
                points.iter().find(|other| other.way == way && other.rate == point.rate)
            };
            let (one, all) = inter(1).zip(inter(point.way.workers)).context("inter is there")?;
            if point.rate.is_infinite() {
                let over = point.throughput() / all.throughput();
                let ratios = json!({
                    "throughput_over_inter_1": point.throughput() / one.throughput(),
                    "throughput_over_inter": over,
                    "throughput_degradation_percent": (1.0 - over) * 100.0,
                    "processing_gain_over_inter_1": one.processing_us() / point.processing_us(),
                });
                self.print(&format!("{figure}-closed-loop"), point, ratios)?;
            } else {
                let ratios = json!({
                    "latency_gain_over_inter_1": one.mean_us() / point.mean_us(),
                    "latency_gain_over_inter": all.mean_us() / point.mean_us(),
                });
                self.print(&format!("{figure}-light-load"), point, ratios)?;
            }
        }
        Ok(())
    }

    /// The models that the figures by load and by length compare.
    fn few(&self, workers: usize) -> Vec<JobWay> {
        let mut models = vec![Model::Inter, Model::DocpUi { barrier: true }];
        models.extend(self.fgqp_both(LATENCY, self.cutting()));
        self.ways(models, workers)
    }

    /// Latency from light load to past saturation.
    fn load(&self, figure: &str, queries: &[&Timed]) -> anyhow::Result<()> {
        for &workers in self.workers.iter().rev().take(2) {
            let inter = JobWay { model: Model::Inter, workers };
            let capacity = self.points(&[(inter, f64::INFINITY)], queries)?[0].throughput();
            let few = self.few(workers);
            let of = |load: f64| few.iter().map(move |&way| (way, load * capacity));
            let wanted: Vec<(JobWay, f64)> = LOADS.into_iter().flat_map(of).collect();
            for point in &self.points(&wanted, queries)? {
                self.print(figure, point, json!({ "load": point.rate / capacity }))?;
            }
        }
        Ok(())
    }

    /// By the number of terms: latency at light load and throughput, and of 4 and 6 terms latency
    /// by load.
    fn length(&self) -> anyhow::Result<()> {
        for length in 2..=10 {
            let of = |timed: &&Timed| timed.terms == length;
            let queries: Vec<&Timed> = self.queries.iter().filter(of).collect();
            if queries.is_empty() {
                continue;
            }
            for point in &self.both_loads(&self.few(self.most_workers()), &queries)? {
                let more = json!({ "length": length, "distinct_queries": queries.len() });
                self.print("length", point, more)?;
            }
            if length == 4 || length == 6 {
                self.load(&format!("load-of-{length}"), &queries)?;
            }
        }
        Ok(())
    }

    /// Tasks of AND queries by size of a skip, and what the size does to the model. Skips are whole
    /// blocks: one of 64 needs an index with such blocks.
    fn skips(&self) -> anyhow::Result<()> {
        let mut models = vec![Model::Inter];
        let mut rows = Vec::new();
        for postings in [512, 256, 128, 64].into_iter().filter(|n| n % self.block_len == 0) {
            let cutting = Cutting { skip: postings / self.block_len, ..self.cutting() };
            rows.push(Tasks::of(self, Cutting { least_ns: 0.0, ..cutting })?);
            models.extend(self.fgqp_both(LATENCY, cutting));
        }
        let longest = rows.first().context("skips have 512 postings at most")?;
        rows.iter().try_for_each(|row| row.print(longest))?;
        let ways = self.ways(models, self.most_workers());
        for point in &self.both_loads(&ways, &self.all())? {
            self.print("skips", point, json!({}))?;
        }
        Ok(())
    }
}
