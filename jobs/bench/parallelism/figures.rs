//! The figures of `tatikonda11`, one a method.

use super::super::rows;
use super::{Bench, Point, Way};
use anyhow::Context;
use millrace::query::engines::engine::Model;
use millrace::query::engines::pool::{Pool, Work};
use millrace::query::plan::Planner;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::{Begun, Cut, Cutting, Searcher};
use millrace::query::wanted::{Mode, Stage, Wanted};
use serde_json::{Value, json};
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

    /// By workers, in two experiments.
    ///
    /// `models-closed-loop` has the paper's figures 4a and 4b: all queries are there, a model takes the
    /// next one when it can, and a query's latency is its processing time, from when it is taken to its
    /// answer, which is why that of INTER does not depend on the workers. `models-light-load` is ours:
    /// queries arrive seldom, and waking counts too.
    pub(super) fn models(&self) -> anyhow::Result<()> {
        let queries = self.all();
        let one = Way { model: Model::Inter, workers: 1 };
        for &workers in &self.workers {
            let mut models = vec![
                Model::Inter,
                Model::DocpUi { barrier: true },
                Model::DocpPi { barrier: true },
                Model::DocpUi { barrier: false },
                Model::DocpPi { barrier: false },
            ];
            models.extend(self.fgqp_both(THROUGHPUT));
            models.extend(self.fgqp_both(LATENCY));
            let mut ways = self.ways(models, workers);
            if workers > 1 {
                ways.insert(0, one);
            }
            self.compare("models", &ways, &queries)?;
        }
        Ok(())
    }

    /// By threshold, in the same two experiments: `delta-closed-loop` has the paper's figure 4c. In
    /// `delta-light-load` hardly two queries are under way, so that the threshold can make little
    /// difference.
    pub(super) fn delta(&self) -> anyhow::Result<()> {
        let workers = self.most_workers();
        let mut models = vec![Model::Inter];
        for delta in [5, 10, 20, 50, 75, 100, 150, 200] {
            models.extend(self.fgqp_both(delta));
        }
        let mut ways = vec![Way { model: Model::Inter, workers: 1 }];
        ways.extend(self.ways(models, workers));
        self.compare("delta", &ways, &self.all())
    }

    /// Measures ways with all queries there, and at light load; compares each with `inter` on one
    /// worker and on as many, which are among them.
    fn compare(&self, figure: &str, ways: &[Way], queries: &[&Query]) -> anyhow::Result<()> {
        let light = self.args.light * 1e6 / self.mean_us(queries);
        let mut wanted: Vec<(Way, f64)> = Vec::new();
        for rate in [f64::INFINITY, light] {
            wanted.extend(ways.iter().map(|&way| (way, rate)));
        }
        let points = self.points(&wanted, queries)?;
        let inter = |workers, at_once| find(&points, Way { model: Model::Inter, workers }, at_once);
        for point in &points {
            let at_once = point.rate.is_infinite();
            let (Some(one), Some(all)) = (inter(1, at_once), inter(point.way.workers, at_once))
            else {
                continue;
            };
            if at_once {
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
    fn few(&self, workers: usize) -> Vec<Way> {
        let mut models = vec![Model::Inter, Model::DocpUi { barrier: true }];
        models.extend(self.fgqp_both(LATENCY));
        self.ways(models, workers)
    }

    /// Latency from light load to past saturation.
    pub(super) fn load(&self, figure: &str, queries: &[&Query]) -> anyhow::Result<()> {
        for &workers in self.workers.iter().rev().take(2) {
            let capacity = self.capacity(workers, queries)?;
            let mut wanted = Vec::new();
            for load in LOADS {
                wanted.extend(self.few(workers).into_iter().map(|way| (way, load * capacity)));
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
                wanted.extend(self.few(workers).into_iter().map(|way| (way, rate)));
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
        let (mut models, mut rows) = (vec![Model::Inter], Vec::new());
        let block_len = self.block_len();
        for postings in [512, 256, 128, 64].into_iter().filter(|n| n % block_len == 0) {
            let cutting = Cutting { skip: postings / block_len, least_ns: 0.0 };
            rows.push(Tasks::of(self, cutting)?);
            models.push(self.fgqp_cut(LATENCY, Cutting { skip: cutting.skip, ..self.cutting() }));
            models.push(self.fgqp_cut(LATENCY, cutting));
        }
        models.dedup();
        let longest = rows.first().context("skips have 512 postings at most")?;
        for row in &rows {
            row.print(longest)?;
        }
        self.cost_of_tasks()?;
        let ways = self.ways(models, workers);
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
        say!("tasks      {line}");
        rows::print(line)
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
    /// What finding the lists and cutting took, and what the same queries take whole.
    creation_s: f64,
    whole_s: f64,
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
            let plan = Arc::new(planner.plan(&bench.snapshot, wanted, &query.text)?);
            let (mut whole, mut creation, mut cut) = (f64::INFINITY, f64::INFINITY, None);
            for _ in 0..bench.args.passes.get() {
                let mut lap = lap();
                searcher.answer(&plan)?;
                whole = whole.min(lap());
                let begun = searcher.begin(&plan, Stage::All, &cutting)?;
                creation = creation.min(lap());
                match begun {
                    Begun::Cut(tasks) => cut = Some(tasks),
                    Begun::Answered => break,
                }
            }
            let Some(cut) = cut else { continue };
            sums.add(&cut, plan.terms().len());
            sums.creation_s += creation;
            sums.whole_s += whole;
        }
        Ok(sums)
    }

    /// Counts the tasks of a query of so many terms.
    fn add(&mut self, cut: &Cut, terms: usize) {
        let skip = self.skip as u32;
        let skips_of = |blocks: u32| f64::from(blocks.div_ceil(skip));
        self.queries += 1;
        self.tasks += cut.tasks() as u64;
        for task in 0..cut.tasks() {
            let blocks = cut.blocks(task);
            let skips: f64 = blocks.iter().map(|range| skips_of(range.end - range.start)).sum();
            self.skips_a_list += skips / terms as f64;
            if task > 0 && terms > 1 {
                let before = cut.blocks(task - 1);
                let shared = before.iter().zip(blocks).map(|(a, b)| a.end.saturating_sub(b.start));
                let shared: f64 = shared.map(skips_of).sum();
                self.overlaps_a_list += shared / (terms - 1) as f64;
            }
        }
    }

    fn tasks_a_query(&self) -> f64 {
        self.tasks as f64 / (self.queries as f64).max(1.0)
    }

    fn creation_us(&self) -> f64 {
        self.creation_s * 1e6 / (self.queries as f64).max(1.0)
    }

    /// Prints the row, as the paper does beside that of the longest skips.
    fn print(&self, longest: &Tasks) -> anyhow::Result<()> {
        let tasks = (self.tasks as f64).max(1.0);
        let line = json!({
            "figure": "skips",
            "skip": self.skip * self.block_len,
            "queries": self.queries,
            "tasks_a_query": self.tasks_a_query(),
            "tasks_over_those_of_longest": self.tasks_a_query() / longest.tasks_a_query(),
            "skips_a_list_and_task": self.skips_a_list / tasks,
            "overlaps_a_list_and_task": self.overlaps_a_list / tasks,
            "creation_us_a_query": self.creation_us(),
            "creation_over_that_of_longest": self.creation_us() / longest.creation_us(),
            "whole_us_a_query": self.whole_s * 1e6 / (self.queries as f64).max(1.0),
            "creation_share": self.creation_s / self.whole_s,
        });
        say!("skips      {line}");
        rows::print(line)
    }
}
