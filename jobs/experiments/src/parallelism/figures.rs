//! The figures of `tatikonda11`, one a method.

use super::tasks::Tasks;
use super::{JobWay, ParallelismBench, docp};
use crate::args::Figures;
use anyhow::Context;
use millrace::inside::query::{Cutting, Model};
use millrace::{Query, Searcher};
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
const LOADS: [f64; 7] = [0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2];

impl ParallelismBench {
    /// By workers, figures 4a and 4b: all queries are there, a model takes the next one when it
    /// can, and a query's latency is its processing time, from when it is taken to its answer,
    /// which is why that of INTER does not depend on the workers.
    fn models(&self) -> anyhow::Result<()> {
        for &workers in &self.workers {
            let mut models = vec![Model::Inter];
            models.extend(docp());
            models.extend(self.fgqp_both(THROUGHPUT));
            models.extend(self.fgqp_both(LATENCY));
            self.compare("models", models, workers)?;
        }
        Ok(())
    }

    /// By threshold, figure 4c.
    fn delta(&self) -> anyhow::Result<()> {
        let mut models = vec![Model::Inter];
        for delta in [5, 10, 20, 50, 75, 100, 150, 200] {
            models.extend(self.fgqp_both(delta));
        }
        self.compare("delta", models, self.most_workers())
    }

    /// Measures models with all queries there; compares each with `inter` on as many workers and on
    /// one that is alone on the machine.
    fn compare(&self, figure: &str, models: Vec<Model>, workers: usize) -> anyhow::Result<()> {
        let inter = |workers| JobWay { model: Model::Inter, workers };
        let mut ways = self.ways(models, workers);
        if !ways.contains(&inter(1)) {
            ways.insert(0, inter(1));
        }
        let closed: Vec<_> = ways.into_iter().map(|way| (way, f64::INFINITY)).collect();
        let points = self.points(&closed, &self.all())?;
        let of = |way| points.iter().find(|point| point.way == way).context("inter is there");
        let (one, all) = (of(inter(1))?, of(inter(workers))?);
        for point in &points {
            let over = point.throughput() / all.throughput();
            let ratios = json!({
                "throughput_over_inter_1": point.throughput() / one.throughput(),
                "throughput_over_inter": over,
                "throughput_degradation_percent": (1.0 - over) * 100.0,
                "processing_gain_over_inter_1": one.processing_us() / point.processing_us(),
            });
            self.print(figure, point, ratios)?;
        }
        Ok(())
    }

    /// The models that the figures by load and by length compare.
    fn few(&self, workers: usize) -> Vec<JobWay> {
        let mut models = vec![Model::Inter];
        models.extend(docp().filter(|model| model.name() == "docp-ui"));
        models.extend(self.fgqp_both(LATENCY));
        self.ways(models, workers)
    }

    /// Latency from light load to past saturation.
    fn load(&self, figure: &str, queries: &[&Query]) -> anyhow::Result<()> {
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

    /// By the number of terms: processing time and throughput; of 4 and 6 terms latency by load.
    fn length(&self) -> anyhow::Result<()> {
        let mut searcher = Searcher::new();
        let mut of_length: Vec<Vec<&Query>> = vec![Vec::new(); 11];
        for query in &self.queries {
            let wanted = query.wanted(&self.args.ranking.wanted());
            let terms = searcher.look_up(&self.snapshot, &wanted, &query.text)?;
            of_length.get_mut(terms).into_iter().for_each(|queries| queries.push(query));
        }
        for (length, queries) in of_length.iter().enumerate().skip(2) {
            if queries.is_empty() {
                continue;
            }
            let few = self.few(self.most_workers());
            let closed: Vec<_> = few.into_iter().map(|way| (way, f64::INFINITY)).collect();
            for point in &self.points(&closed, queries)? {
                self.print("length", point, json!({ "length": length }))?;
            }
            if length == 4 || length == 6 {
                self.load(&format!("load-of-{length}"), queries)?;
            }
        }
        Ok(())
    }

    /// Tasks of AND queries by size of a skip. Skips are whole blocks: one of 64 needs an index
    /// with such blocks.
    fn skips(&self) -> anyhow::Result<()> {
        let sizes = [512, 256, 128, 64].into_iter().filter(|n| n % self.block_len == 0);
        let rows: Vec<Tasks> = sizes
            .map(|n| Tasks::of(self, Cutting { skip: n / self.block_len, least_ns: 0.0 }))
            .collect::<anyhow::Result<_>>()?;
        let longest = rows.first().context("skips have 512 postings at most")?;
        rows.iter().try_for_each(|row| row.print(longest))
    }
}
