//! The figures of `tatikonda11`, one a method.

use super::{Bench, ModelName, Point, Way};
use millrace::query::engine::Model;
use millrace::query::lines::Query;
use millrace::query::plan::Planner;
use millrace::query::pool::{Pool, Work};
use millrace::query::searcher::{Begun, Cutting, Searcher};
use millrace::query::wanted::{Mode, Stage, Wanted};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// The pool thresholds that the paper compares everywhere.
const LATENCY: usize = 5;
const THROUGHPUT: usize = 150;

/// Loads, as parts of what `inter` can do.
const LOADS: [f64; 9] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3];

/// The point of a way at a load: all at once, or light.
fn find(points: &[Point], way: Way, at_once: bool) -> Option<&Point> {
    points.iter().find(|point| point.way == way && point.rate.is_infinite() == at_once)
}

impl Bench<'_> {
    fn print(&self, figure: &str, point: &Point, more: Value) -> anyhow::Result<()> {
        point.print(figure, self.block_len(), more)
    }

    /// Throughput with all queries there from the beginning, and latency at light load.
    pub(super) fn models(&self) -> anyhow::Result<()> {
        let queries = self.all();
        let one = Way { model: Model::Inter, workers: 1 };
        let light = self.args.light * 1e6 / self.mean_us(&queries);
        for &workers in &self.workers {
            let models = [
                Model::Inter,
                Model::DocpUi { barrier: true },
                Model::DocpPi { barrier: true },
                Model::DocpUi { barrier: false },
                Model::DocpPi { barrier: false },
                self.fgqp(THROUGHPUT),
                self.fgqp(LATENCY),
            ];
            // All are compared with `inter`.
            let wanted = |model: &Model| {
                let (names, name) = (&self.args.models, ModelName::of(*model));
                names.is_empty() || name == ModelName::Inter || names.contains(&name)
            };
            let models = models.into_iter().filter(wanted);
            let mut ways: Vec<Way> = models.map(|model| Way { model, workers }).collect();
            if workers > 1 {
                ways.insert(0, one);
            }
            let mut wanted: Vec<(Way, f64)> = Vec::new();
            for rate in [f64::INFINITY, light] {
                wanted.extend(ways.iter().map(|&way| (way, rate)));
            }
            let points = self.points(&wanted, &queries)?;
            let inter = Way { model: Model::Inter, workers };
            for point in &points {
                let at_once = point.rate.is_infinite();
                let (Some(one), Some(inter)) =
                    (find(&points, one, at_once), find(&points, inter, at_once))
                else {
                    continue;
                };
                let ratios = if at_once {
                    json!({
                        "throughput_over_inter_1": point.throughput() / one.throughput(),
                        "throughput_over_inter": point.throughput() / inter.throughput(),
                    })
                } else {
                    json!({
                        "latency_gain_over_inter_1": one.mean_us() / point.mean_us(),
                        "latency_gain_over_inter": inter.mean_us() / point.mean_us(),
                    })
                };
                self.print("models", point, ratios)?;
            }
        }
        Ok(())
    }

    /// What each threshold costs in throughput and gains in latency, in two experiments.
    ///
    /// `delta-closed-loop` is the paper's figure 4c: all queries are there, the next one is taken when
    /// the threshold allows it, and a query's latency is its processing time, from when it is taken to
    /// its answer. `delta-light-load` is ours: queries arrive seldom, so that hardly two are under way
    /// and the threshold can make little difference.
    pub(super) fn delta(&self) -> anyhow::Result<()> {
        let (queries, workers) = (self.all(), self.most_workers());
        let one = Way { model: Model::Inter, workers: 1 };
        let inter = Way { model: Model::Inter, workers };
        let light = self.args.light * 1e6 / self.mean_us(&queries);
        let mut ways = vec![one, inter];
        ways.extend(
            [5, 10, 20, 50, 75, 100, 150, 200].map(|n| Way { model: self.fgqp(n), workers }),
        );
        let mut wanted: Vec<(Way, f64)> = Vec::new();
        for rate in [f64::INFINITY, light] {
            wanted.extend(ways.iter().map(|&way| (way, rate)));
        }
        let points = self.points(&wanted, &queries)?;
        for &way in &ways {
            let [Some(all), Some(light), Some(of_all), Some(alone), Some(of_one)] = [
                find(&points, way, true),
                find(&points, way, false),
                find(&points, inter, true),
                find(&points, one, true),
                find(&points, one, false),
            ] else {
                continue;
            };
            let degradation = (1.0 - all.throughput() / of_all.throughput()) * 100.0;
            let gain = alone.processing_us() / all.processing_us();
            let ratios = json!({
                "throughput_degradation_percent": degradation,
                "processing_gain_over_inter_1": gain,
            });
            self.print("delta-closed-loop", all, ratios)?;
            let gain = of_one.mean_us() / light.mean_us();
            self.print("delta-light-load", light, json!({ "latency_gain_over_inter_1": gain }))?;
        }
        Ok(())
    }

    /// Latency from light load to past saturation.
    pub(super) fn load(&self, figure: &str, queries: &[&Query]) -> anyhow::Result<()> {
        for &workers in self.workers.iter().rev().take(2) {
            let capacity = self.capacity(workers, queries)?;
            let mut wanted = Vec::new();
            for load in LOADS {
                for model in [Model::Inter, Model::DocpUi { barrier: true }, self.fgqp(LATENCY)] {
                    wanted.push((Way { model, workers }, load * capacity));
                }
            }
            for point in &self.points(&wanted, queries)? {
                self.print(figure, point, json!({ "load": point.rate / capacity }))?;
            }
        }
        Ok(())
    }

    /// By the number of terms: latency at light load and throughput, and of 4 and 6 terms latency by
    /// load.
    pub(super) fn length(&self) -> anyhow::Result<()> {
        let workers = self.most_workers();
        for length in 2..=10 {
            let queries: Vec<&Query> = self
                .queries
                .iter()
                .filter(|(.., n)| *n == length)
                .map(|(query, ..)| query)
                .collect();
            if queries.is_empty() {
                continue;
            }
            let light = self.args.light * 1e6 / self.mean_us(&queries);
            let mut wanted = Vec::new();
            for rate in [f64::INFINITY, light] {
                for model in [Model::Inter, Model::DocpUi { barrier: true }, self.fgqp(LATENCY)] {
                    wanted.push((Way { model, workers }, rate));
                }
            }
            for point in &self.points(&wanted, &queries)? {
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
    pub(super) fn skips(&self) -> anyhow::Result<()> {
        let (queries, workers) = (self.all(), self.most_workers());
        let light = self.args.light * 1e6 / self.mean_us(&queries);
        let inter = Way { model: Model::Inter, workers };
        let (mut ways, mut rows) = (vec![inter], Vec::new());
        let block_len = self.block_len();
        for postings in [64, 128, 256, 512].into_iter().filter(|n| n % block_len == 0) {
            let skip = postings / block_len;
            let cutting = Cutting { skip, ..self.cutting() };
            rows.push(Tasks::of(self, Cutting { least_ns: 0.0, ..cutting })?);
            ways.push(Way { model: self.fgqp_cut(LATENCY, cutting), workers });
        }
        for row in &rows {
            row.print()?;
        }
        self.cost_of_tasks()?;
        let mut wanted = Vec::new();
        for rate in [f64::INFINITY, light] {
            wanted.extend(ways.iter().map(|&way| (way, rate)));
        }
        for point in &self.points(&wanted, &queries)? {
            self.print("skips", point, json!({}))?;
        }
        Ok(())
    }
}

impl Bench<'_> {
    /// What all tasks of a query take, done one after the other as a pool gives them out, against
    /// the query answered whole; of queries that are cut. No other thread has a part in this.
    fn cost_of_tasks(&self) -> anyhow::Result<()> {
        let (mut cut_queries, mut whole, mut cutting, mut working, mut estimated) =
            (0u64, 0.0, 0.0, 0.0, 0.0);
        let usual = self.args.ranking.wanted();
        let (mut planner, mut searcher) = (Planner::default(), Searcher::new());
        for (query, ..) in &self.queries {
            let wanted = query.wanted(&usual);
            let mut least = [f64::INFINITY; 3];
            let mut estimate = None;
            for _ in 0..self.args.passes.get() {
                let mut lap = lap();
                searcher.search(&self.snapshot, &wanted, &query.text)?;
                least[0] = least[0].min(lap());
                let plan = Arc::new(planner.plan(&self.snapshot, wanted, &query.text)?);
                let begun = searcher.begin(&plan, Stage::first(wanted.mode), &self.cutting())?;
                let Begun::Cut(cut) = begun else { break };
                estimate = Some(cut.cost_ns());
                least[1] = least[1].min(lap());
                let pool = Pool::new(LATENCY, self.most_workers());
                pool.open((), cut);
                while let (Some(Work::Tasks(open, tasks)), _) = pool.take(0, true) {
                    let start = Instant::now();
                    searcher.work(&open.cut, tasks.clone(), open.floor())?;
                    open.done((tasks, start.elapsed()), searcher.hits());
                }
                least[2] = least[2].min(lap());
            }
            if let Some(estimate) = estimate {
                cut_queries += 1;
                whole += least[0];
                cutting += least[1];
                working += least[2];
                estimated += estimate / 1e9;
            }
        }
        let line = json!({
            "figure": "tasks",
            "mode": usual.mode.name(),
            "workers": self.most_workers(),
            "queries": self.queries.len(),
            "queries_cut": cut_queries,
            "whole_us": whole * 1e6 / (cut_queries as f64).max(1.0),
            "tasks_over_whole": working / whole,
            "cutting_over_whole": cutting / whole,
            "estimate_over_whole": estimated / whole,
        });
        writeln!(std::io::stdout(), "{line}")?;
        eprintln!("tasks      {line}");
        Ok(())
    }
}

/// Gives the seconds since it was called last.
fn lap() -> impl FnMut() -> f64 {
    let mut last = Instant::now();
    move || {
        let now = Instant::now();
        (now - std::mem::replace(&mut last, now)).as_secs_f64()
    }
}

/// The tasks of all queries, as AND queries, with one size of skips.
#[derive(Default)]
struct Tasks {
    skip: usize,
    block_len: usize,
    queries: u64,
    tasks: u64,
    skips_a_list: f64,
    overlaps_a_list: f64,
    seconds: f64,
    seconds_of_queries: f64,
}

impl Tasks {
    fn of(bench: &Bench<'_>, cutting: Cutting) -> anyhow::Result<Self> {
        let (mut planner, mut searcher) = (Planner::default(), Searcher::new());
        let (skip, block_len) = (cutting.skip, bench.block_len());
        let mut sums = Tasks { skip, block_len, ..Tasks::default() };
        for (query, _, terms) in &bench.queries {
            if *terms < 2 {
                continue;
            }
            // What is cut is an AND query, so that is what its time is compared with.
            let wanted = query.wanted(&bench.args.ranking.wanted());
            let wanted = Wanted { mode: Mode::And, ..wanted };
            let mut lap = lap();
            searcher.search(&bench.snapshot, &wanted, &query.text)?;
            let whole = lap();
            let plan = Arc::new(planner.plan(&bench.snapshot, wanted, &query.text)?);
            let begun = searcher.begin(&plan, Stage::All, &cutting)?;
            let seconds = lap();
            let Begun::Cut(cut) = begun else { continue };
            sums.queries += 1;
            sums.tasks += cut.tasks() as u64;
            sums.seconds += seconds;
            sums.seconds_of_queries += whole;
            let lists = plan.terms().len() as f64;
            let skips_of = |blocks: u32| f64::from(blocks.div_ceil(cutting.skip as u32));
            for task in 0..cut.tasks() {
                let blocks = cut.blocks(task);
                let skips: f64 = blocks.iter().map(|range| skips_of(range.end - range.start)).sum();
                sums.skips_a_list += skips / lists;
                if task > 0 && lists > 1.0 {
                    let before = cut.blocks(task - 1);
                    let shared =
                        before.iter().zip(blocks).map(|(a, b)| a.end.saturating_sub(b.start));
                    let shared: f64 = shared.map(skips_of).sum();
                    sums.overlaps_a_list += shared / (lists - 1.0);
                }
            }
        }
        Ok(sums)
    }

    fn print(&self) -> anyhow::Result<()> {
        let tasks = (self.tasks as f64).max(1.0);
        let line = json!({
            "figure": "skips",
            "skip": self.skip * self.block_len,
            "queries": self.queries,
            "tasks_a_query": self.tasks as f64 / (self.queries as f64).max(1.0),
            "skips_a_list_and_task": self.skips_a_list / tasks,
            "overlaps_a_list_and_task": self.overlaps_a_list / tasks,
            "creation_us_a_query": self.seconds * 1e6 / (self.queries as f64).max(1.0),
            "creation_share": self.seconds / self.seconds_of_queries,
        });
        writeln!(std::io::stdout(), "{line}")?;
        eprintln!("skips      {line}");
        Ok(())
    }
}
