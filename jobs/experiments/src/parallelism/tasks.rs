//! The tasks of all queries, as AND queries, with one size of skips.

use super::ParallelismBench;
use millrace::inside::query::{Begun, Cutting, Planner, QueryCut, Stage};
use millrace::{Mode, Searcher, Wanted};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

#[derive(Default)]
pub(super) struct Tasks {
    /// Blocks of a skip, and postings.
    skip: usize,
    postings: usize,
    queries: u64,
    tasks: u64,
    skips_a_list: f64,
    overlaps_a_list: f64,
    /// What finding the lists and cutting took, and what the same queries take whole.
    creation_s: f64,
    whole_s: f64,
}

impl Tasks {
    pub(super) fn of(bench: &ParallelismBench, cutting: Cutting) -> anyhow::Result<Self> {
        let mut planner = Planner::default();
        let mut searcher = Searcher::new();
        let skip = cutting.skip;
        let postings = cutting.skip * bench.block_len;
        let mut sums = Tasks { skip, postings, ..Tasks::default() };
        for query in &bench.queries {
            // What is cut is an AND query, so that is what its time is compared with.
            let wanted = query.wanted(&bench.args.ranking.wanted());
            let wanted = Wanted { mode: Mode::And, ..wanted };
            let plan = Arc::new(planner.plan(&bench.snapshot, wanted, &query.text)?);
            if plan.terms().len() < 2 {
                continue;
            }
            let mut whole = f64::INFINITY;
            let mut creation = f64::INFINITY;
            let mut cut = None;
            for _ in 0..bench.args.passes.get() {
                let start = Instant::now();
                searcher.answer(&plan)?;
                whole = whole.min(start.elapsed().as_secs_f64());
                let start = Instant::now();
                let begun = searcher.begin(&plan, Stage::All, &cutting)?;
                creation = creation.min(start.elapsed().as_secs_f64());
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

    /// Counts the tasks of a query of this many terms.
    fn add(&mut self, cut: &QueryCut, terms: usize) {
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

    /// Prints the row, as the paper does beside that of the longest skips.
    pub(super) fn print(&self, longest: &Self) -> anyhow::Result<()> {
        let tasks = (self.tasks as f64).max(1.0);
        let each = |sums: &Self, sum: f64| sum / (sums.queries as f64).max(1.0);
        let tasks_of = |sums: &Self| each(sums, sums.tasks as f64);
        let creation_of = |sums: &Self| each(sums, sums.creation_s * 1e6);
        crate::rows::print(json!({
            "figure": "skips",
            "skip": self.postings,
            "queries": self.queries,
            "tasks_a_query": tasks_of(self),
            "tasks_over_those_of_longest": tasks_of(self) / tasks_of(longest),
            "skips_a_list_and_task": self.skips_a_list / tasks,
            "overlaps_a_list_and_task": self.overlaps_a_list / tasks,
            "creation_us_a_query": creation_of(self),
            "creation_over_that_of_longest": creation_of(self) / creation_of(longest),
            "whole_us_a_query": each(self, self.whole_s * 1e6),
            "creation_share": self.creation_s / self.whole_s,
        }))
    }
}
