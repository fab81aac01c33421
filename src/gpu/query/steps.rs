//! The kernels that answer a batch, in their order.

use super::QueryTuning;
use super::list::impacts::{sampled, slices};
use super::list::{Layout, Windows};
use super::plan::QueryState;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument, Step, launch};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Array {
    /// [`QueryBatch::write`](super::batch::QueryBatch::write).
    Input,
    /// All lists, in bytes.
    Arena,
    /// [`TermRecord`](super::plan::TermRecord)s.
    Terms,
    /// [`QueryRecord`](super::plan::QueryRecord)s.
    Records,
    /// A [`QueryState`] for each query.
    States,
    /// 256 u32 for each query, or [`SUM_BINS`].
    Bins,
    SampleBins,
    /// u64: candidates.
    Keys,
    /// u64: room to sort in.
    Sorted,
    /// A [`QueryState`] for each query, for the host.
    Answers,
    /// u64: hits, for the host.
    Hits,
    /// f32, by document.
    Norms,
    /// A u32 for each step.
    Work,
    /// Of queries that are answered by blocks, [`document_blocks_bytes`].
    DocumentBlocks,
    /// Lists on their way to the arena.
    Parcel,
    /// What is wrong with them, in the memory of the host.
    Fault,
}

impl From<Array> for Argument<Array> {
    fn from(array: Array) -> Self {
        Argument::Array(array, 0)
    }
}

pub(crate) const BINS: usize = 256;

/// Of the sums of learned weights.
pub(super) const SUM_BINS: usize = 1728;

pub(crate) const WORKS: usize = 8;

/// A window of each query, then windows of some, as pairs of u32; and u32, a bound for each query
/// and window of documents.
pub(crate) fn document_blocks_bytes(windows: Windows, records: usize) -> usize {
    match windows.layout {
        Layout::DocumentBlocks => 8 * records + 12 * records * windows.len(),
        _ => 0,
    }
}

pub(crate) type QueryStep = Step<Array>;

/// The records of a batch: of AND, then of OR with sums of 8 bits, then with sums of 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Groups {
    pub all: u32,
    /// Queries of OR with few terms. Of learned weights: with exact sums.
    pub narrow: u32,
    /// All others.
    pub wide: u32,
    /// Windows are chosen by bounds of their blocks.
    pub by_blocks: bool,
}

impl Groups {
    pub(crate) fn len(&self) -> u32 {
        self.all + self.narrow + self.wide
    }
}

/// What decides about the geometry of launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchSettings {
    pub tuning: QueryTuning,
    pub multiprocessors: u32,
}

/// Of this many windows one is sampled first. Of few queries more are, since a block has one window
/// to sample at most all the same: for 1,000 hits the sample of one query often has too few
/// documents for a threshold, and then all windows at once find millions of candidates.
const SAMPLE_OF: u32 = 32;
const LEAST_SAMPLE_OF: u32 = 4;

/// Fewer windows are not sampled.
const LEAST_SAMPLED: u32 = 8;

use Array::*;

fn step(
    kernel: &'static str,
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
    arguments: Vec<Argument<Array>>,
) -> QueryStep {
    QueryStep { kernel, geometry: Geometry { blocks, threads, shared_bytes }, arguments }
}

impl LaunchSettings {
    pub(crate) fn batch(&self, windows: Windows, groups: Groups) -> Vec<QueryStep> {
        let mut steps = vec![self.begin(windows.layout, groups.len())];
        if windows.layout != Layout::Bounds {
            steps.extend(self.impacts(windows, groups));
            return steps;
        }
        let mut work = 0;
        if groups.all > 0 {
            steps.push(self.and(windows, groups.all));
        }
        for (first, len, bits) in
            [(groups.all, groups.narrow, 8), (groups.all + groups.narrow, groups.wide, 16)]
        {
            if len == 0 {
                continue;
            }
            let count = windows.len() as u32;
            if count >= LEAST_SAMPLED {
                let blocks = self.tuning.blocks_per_sm * self.multiprocessors;
                let step = len.saturating_mul(count).div_ceil(blocks);
                // A few windows at least, however few there are.
                let step = step.clamp(LEAST_SAMPLE_OF, SAMPLE_OF).min(count / 4);
                steps.push(self.or(windows, first, len, bits, Some(step), &mut work));
            }
            steps.push(self.or(windows, first, len, bits, None, &mut work));
            steps.push(self.rescore(windows, first, len, bits));
        }
        steps.push(self.select(0, groups.len()));
        steps
    }

    /// Of queries for learned weights: a threshold by the sample, and then all windows. Or, by
    /// blocks, bounds of all windows, a threshold by the window with the greatest one, and then
    /// those whose bounds reach it.
    fn impacts(&self, windows: Windows, groups: Groups) -> Vec<QueryStep> {
        const WARPS: u32 = 4;
        let len = groups.len();
        let Windows { documents, bits, .. } = windows;
        let of_documents = windows.len() as u32;
        let of_blocks = slices(windows) as u32 - of_documents;
        let of_sample = sampled(documents).div_ceil(1 << bits);
        let by_blocks = groups.by_blocks;
        let per_sm = self.tuning.blocks_per_sm;
        let sums = |kernel, items: u32, per_sm: u32, rest: &[_]| {
            let shared_bytes = self.tuning.impact_shared_bytes(kernel == "query_impact_sample");
            let ctas = (per_sm * self.multiprocessors).min(items);
            let mut arguments: Vec<_> = [Arena, Terms, Records].map(Argument::from).into();
            let numbers = [slices(windows) as u32, documents, items, len];
            arguments.extend(numbers.map(Argument::from));
            arguments.extend_from_slice(rest);
            step(kernel, ctas, self.tuning.impact_threads, shared_bytes, arguments)
        };
        let of_blocks_at = |at: u64| {
            Argument::Array(DocumentBlocks, if by_blocks { at * u64::from(len) } else { 0 })
        };
        let [chosen, live] = [0, 8].map(of_blocks_at);
        let bounds = of_blocks_at(8 + 8 * u64::from(of_documents));
        let [sample_work, or_work, live_len, bounds_work] =
            [0, 4, 8, 12].map(|at| Argument::Array(Work, at));
        let listed = Argument::from(u32::from(by_blocks));
        // A warp each.
        let ctas = len.div_ceil(WARPS);
        let mut steps = Vec::new();
        if by_blocks {
            let rest = [of_documents.into(), bounds, bounds_work];
            steps.push(sums("query_impact_bounds", of_blocks * len, per_sm, &rest));
            steps.push(launch!("query_impact_best", ctas, 32 * WARPS, 0;
                len, of_documents, bounds, chosen));
        }
        let items = if by_blocks { len } else { of_sample.saturating_mul(len) };
        let rest = [listed, chosen, Bins.into(), sample_work];
        steps.push(sums("query_impact_sample", items, 2, &rest));
        let with_bounds = if by_blocks { of_documents } else { 0 };
        steps.push(launch!("query_impact_bar", ctas, 32 * WARPS, 0;
            Records, len, States, Bins, with_bounds, bounds, live, live_len));
        let rest = [listed, live, States.into(), Keys.into(), or_work];
        steps.push(sums("query_impact_or", of_documents.saturating_mul(len), per_sm, &rest));
        if groups.wide > 0 {
            let each = self.ctas_of_each(len);
            steps.push(launch!("query_impact_rank", len * each, 32 * WARPS, 0;
                Arena, Terms, Records, each, slices(windows) as u32, documents, States, Keys));
        }
        steps.push(self.select(0, len));
        steps
    }

    /// Enough CUDA blocks for the device, however few queries there are.
    fn ctas_of_each(&self, queries: u32) -> u32 {
        let most = (self.multiprocessors / queries).max(32);
        (self.multiprocessors * 16).div_ceil(queries).clamp(4, most)
    }

    fn begin(&self, layout: Layout, records: u32) -> QueryStep {
        let zeroed = (Zeroed::new(layout, records as usize).bytes() / 16) as u32;
        let blocks = zeroed.div_ceil(256).min(self.multiprocessors);
        launch!("query_begin", blocks, 256, 0; Input, Records, Terms, States, zeroed)
    }

    fn or(
        &self,
        windows: Windows,
        first: u32,
        len: u32,
        bits: u32,
        sampled: Option<u32>,
        work: &mut u64,
    ) -> QueryStep {
        let tuning = &self.tuning;
        let (kernel, threads, per_sm) = match (bits, sampled) {
            (8, Some(_)) => ("query_sample", tuning.threads, tuning.blocks_per_sm),
            (8, None) => ("query_or", tuning.threads, tuning.blocks_per_sm),
            (_, Some(_)) => ("query_wide_sample", tuning.wide_threads, 1),
            (_, None) => ("query_wide_or", tuning.wide_threads, 1),
        };
        let items = (windows.len() as u32).div_ceil(sampled.unwrap_or(1)).saturating_mul(len);
        let blocks = (per_sm * self.multiprocessors).min(items);
        let bins = if sampled.is_some() { SampleBins } else { Bins };
        let mut arguments: Vec<_> = [Arena, Terms, Records].map(Argument::from).into();
        arguments.extend(
            [first, len, windows.len() as u32].into_iter().chain(sampled).map(Argument::from),
        );
        let place = Argument::Array(Work, 4 * *work);
        *work += 1;
        launch!(kernel, blocks, threads, tuning.or_shared_bytes(bits);
            ..arguments, States, bins, Keys, place)
    }

    fn and(&self, windows: Windows, len: u32) -> QueryStep {
        const THREADS: u32 = 128;
        let of_each = windows.len() as u32;
        let items = u64::from(len) * u64::from(of_each);
        let blocks = items.min(u64::from(self.multiprocessors) * 12) as u32;
        launch!("query_and", blocks, THREADS, self.tuning.and_shared_bytes();
            Arena, Terms, Records, 0u32, len, of_each, Norms, States, Bins, Keys)
    }

    fn rescore(&self, windows: Windows, first: u32, len: u32, bits: u32) -> QueryStep {
        const THREADS: u32 = 128;
        let each = self.ctas_of_each(len);
        launch!("query_rescore", len * each, THREADS, QueryTuning::RESCORE_SHARED_BYTES;
            Arena, Terms, Records, first, each, windows.len() as u32, bits, Norms, States, Bins,
            Keys)
    }

    fn select(&self, first: u32, len: u32) -> QueryStep {
        let QueryTuning { select_threads, .. } = self.tuning;
        launch!("query_select", len, select_threads, self.tuning.select_shared_bytes();
            Records, first, States, Keys, Sorted, Answers, Hits)
    }
}

/// Zeroed for a batch: states, bins, bins of samples, work, in units of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zeroed {
    records: usize,
    /// For each record, and of its sample.
    bins: [usize; 2],
}

impl Zeroed {
    pub(crate) fn new(layout: Layout, records: usize) -> Self {
        let bins = match layout {
            Layout::Bounds => [BINS, BINS],
            _ => [SUM_BINS, 0],
        };
        Self { records, bins }
    }

    pub(crate) fn place(&self, array: Array) -> Option<usize> {
        let states = size_of::<QueryState>() * self.records;
        let [bins, of_samples] = self.bins.map(|bins| 4 * bins * self.records);
        match array {
            States => Some(0),
            Bins => Some(states),
            SampleBins => Some(states + bins),
            Work => Some(states + bins + of_samples),
            _ => None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.place(Work).unwrap_or(0) + 4 * WORKS
    }
}
