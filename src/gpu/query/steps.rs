//! The kernels that answer a batch, in their order.

use super::QueryTuning;
use super::list::impacts::sampled;
use super::list::{Layout, Windows};
use super::plan::QueryState;
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument, Step};

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
    /// u32, by document.
    Scores,
    /// Of the ordered kernels, [`DIGITS_BYTES`].
    Digits,
}

pub(crate) const DIGITS_BYTES: usize = 16 + 4 * BINS;

pub(crate) const BINS: usize = 256;

/// Of the sums of learned weights.
pub(super) const SUM_BINS: usize = 1728;

pub(crate) const WORKS: usize = 8;

pub(crate) type QueryStep = Step<Array>;

/// The records of a batch: of AND, then of OR with sums of 8 bits, then with sums of 16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Groups {
    pub all: u32,
    /// Queries of OR with few terms. Of learned weights: with exact sums.
    pub narrow: u32,
    /// All others.
    pub wide: u32,
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

/// Of this many windows one is sampled first.
const SAMPLE_OF: u32 = 32;

/// Fewer windows are not sampled.
const LEAST_SAMPLED: u32 = 8;

use Argument::{Array as In, Number};

impl LaunchSettings {
    pub(crate) fn batch(&self, windows: Windows, groups: Groups) -> Vec<QueryStep> {
        let mut steps = vec![self.begin(windows.layout, groups.len())];
        if windows.layout == Layout::Impacts {
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
                // A few windows at least, however few there are.
                let step = SAMPLE_OF.min(count / 4);
                steps.push(self.or(windows, first, len, bits, Some(step), &mut work));
            }
            steps.push(self.or(windows, first, len, bits, None, &mut work));
            steps.push(self.rescore(windows, first, len, bits));
        }
        steps.push(self.select(0, groups.len()));
        steps
    }

    /// Of queries for learned weights.
    fn impacts(&self, windows: Windows, groups: Groups) -> Vec<QueryStep> {
        const WARPS: u32 = 4;
        let len = groups.len();
        let Windows { documents, bits, .. } = windows;
        let threads = self.tuning.impact_threads;
        let of_sample = sampled(documents).div_ceil(1 << bits);
        let of_all = windows.len() as u32;
        let sums = |kernel, asked: u32, per_sm: u32, shared_bytes, work| {
            let blocks = (per_sm * self.multiprocessors).min(asked.saturating_mul(len));
            let mut arguments =
                [Array::Arena, Array::Terms, Array::Records].map(|a| In(a, 0)).to_vec();
            arguments.extend([len, of_all, documents].map(Number));
            arguments.extend([Array::States, Array::Bins, Array::Keys].map(|a| In(a, 0)));
            arguments.push(In(Array::Work, work));
            QueryStep { kernel, geometry: Geometry { blocks, threads, shared_bytes }, arguments }
        };
        let bar = QueryStep {
            kernel: "query_impact_bar",
            geometry: Geometry {
                blocks: len.div_ceil(WARPS),
                threads: 32 * WARPS,
                shared_bytes: 0,
            },
            arguments: vec![
                In(Array::Records, 0),
                Number(len),
                In(Array::States, 0),
                In(Array::Bins, 0),
            ],
        };
        let [sample, all] = [true, false].map(|samples| self.tuning.impact_shared_bytes(samples));
        let mut steps = vec![
            sums("query_impact_sample", of_sample, 2, sample, 0),
            bar,
            sums("query_impact_or", of_all, self.tuning.blocks_per_sm, all, 4),
        ];
        if groups.wide > 0 {
            let each = self.blocks_of_each(len);
            let mut arguments: Vec<_> =
                [Array::Arena, Array::Terms, Array::Records].map(|a| In(a, 0)).into();
            arguments.extend([each, of_all, documents].map(Number));
            arguments.extend([Array::States, Array::Keys].map(|a| In(a, 0)));
            let geometry = Geometry { blocks: len * each, threads: 32 * WARPS, shared_bytes: 0 };
            steps.push(QueryStep { kernel: "query_impact_rank", geometry, arguments });
        }
        steps.push(self.select(0, len));
        steps
    }

    /// Enough blocks for the device, however few queries there are.
    fn blocks_of_each(&self, queries: u32) -> u32 {
        let most = (self.multiprocessors / queries).max(32);
        (self.multiprocessors * 16).div_ceil(queries).clamp(4, most)
    }

    fn begin(&self, layout: Layout, records: u32) -> QueryStep {
        let zeroed = (Zeroed::new(layout, records as usize).bytes() / 16) as u32;
        let arguments = vec![
            In(Array::Input, 0),
            In(Array::Records, 0),
            In(Array::Terms, 0),
            In(Array::States, 0),
            Number(zeroed),
        ];
        let blocks = zeroed.div_ceil(256).min(self.multiprocessors);
        let geometry = Geometry { blocks, threads: 256, shared_bytes: 0 };
        QueryStep { kernel: "query_begin", geometry, arguments }
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
        let bins = if sampled.is_some() { Array::SampleBins } else { Array::Bins };
        let mut arguments = vec![
            In(Array::Arena, 0),
            In(Array::Terms, 0),
            In(Array::Records, 0),
            Number(first),
            Number(len),
            Number(windows.len() as u32),
        ];
        arguments.extend(sampled.map(Number));
        arguments.extend([
            In(Array::States, 0),
            In(bins, 0),
            In(Array::Keys, 0),
            In(Array::Work, 4 * *work),
        ]);
        *work += 1;
        let shared_bytes = tuning.or_shared_bytes(bits);
        QueryStep { kernel, geometry: Geometry { blocks, threads, shared_bytes }, arguments }
    }

    fn and(&self, windows: Windows, len: u32) -> QueryStep {
        const THREADS: u32 = 128;
        let items = u64::from(len) * windows.len() as u64;
        let blocks = items.min(u64::from(self.multiprocessors) * 12) as u32;
        let arguments = vec![
            In(Array::Arena, 0),
            In(Array::Terms, 0),
            In(Array::Records, 0),
            Number(0),
            Number(len),
            Number(windows.len() as u32),
            In(Array::Norms, 0),
            In(Array::States, 0),
            In(Array::Bins, 0),
            In(Array::Keys, 0),
        ];
        let shared_bytes = self.tuning.and_shared_bytes();
        let geometry = Geometry { blocks, threads: THREADS, shared_bytes };
        QueryStep { kernel: "query_and", geometry, arguments }
    }

    fn rescore(&self, windows: Windows, first: u32, len: u32, bits: u32) -> QueryStep {
        const THREADS: u32 = 128;
        let each = self.blocks_of_each(len);
        let arguments = vec![
            In(Array::Arena, 0),
            In(Array::Terms, 0),
            In(Array::Records, 0),
            Number(first),
            Number(each),
            Number(windows.len() as u32),
            Number(bits),
            In(Array::Norms, 0),
            In(Array::States, 0),
            In(Array::Bins, 0),
            In(Array::Keys, 0),
        ];
        let shared_bytes = QueryTuning::RESCORE_SHARED_BYTES;
        let geometry = Geometry { blocks: len * each, threads: THREADS, shared_bytes };
        QueryStep { kernel: "query_rescore", geometry, arguments }
    }

    fn select(&self, first: u32, len: u32) -> QueryStep {
        let arguments = vec![
            In(Array::Records, 0),
            Number(first),
            In(Array::States, 0),
            In(Array::Keys, 0),
            In(Array::Sorted, 0),
            In(Array::Answers, 0),
            In(Array::Hits, 0),
        ];
        let threads = self.tuning.select_threads;
        let shared_bytes = self.tuning.select_shared_bytes();
        let geometry = Geometry { blocks: len, threads, shared_bytes };
        QueryStep { kernel: "query_select", geometry, arguments }
    }

    /// Answers record 0 of a batch exactly, list after list, whatever its lists hold; needs room
    /// for as many candidates as hits.
    pub(crate) fn ordered(&self, windows: Windows, all_terms: bool, k: u32) -> Vec<QueryStep> {
        let documents = windows.documents;
        let plain = |kernel, blocks, threads, shared_bytes, arguments| QueryStep {
            kernel,
            geometry: Geometry { blocks, threads, shared_bytes },
            arguments,
        };
        let scan = documents.div_ceil(256).clamp(1, self.multiprocessors * 8);
        let mut steps = vec![self.begin(windows.layout, 1)];
        steps.push(plain(
            "ordered_scores",
            2 * windows.len() as u32,
            256,
            self.tuning.ordered_shared_bytes(),
            vec![
                In(Array::Arena, 0),
                In(Array::Terms, 0),
                In(Array::Records, 0),
                Number(0),
                Number(all_terms.into()),
                Number(windows.len() as u32),
                In(Array::Norms, 0),
                Number(documents),
                In(Array::Scores, 0),
            ],
        ));
        for shift in (0..64).step_by(8).rev() {
            let counted =
                vec![In(Array::Scores, 0), Number(documents), Number(shift), In(Array::Digits, 0)];
            steps.push(plain("ordered_count", scan, 256, 4 * BINS as u32, counted));
            let chosen = vec![In(Array::Digits, 0), Number(k)];
            steps.push(plain("ordered_choose", 1, 32, 0, chosen));
        }
        let gathered = vec![
            In(Array::Scores, 0),
            Number(documents),
            In(Array::Digits, 0),
            In(Array::Records, 0),
            Number(0),
            In(Array::States, 0),
            In(Array::Keys, 0),
        ];
        steps.push(plain("ordered_gather", scan, 256, 0, gathered));
        steps.push(self.select(0, 1));
        steps
    }
}

/// Zeroed for a batch: states, bins, bins of samples, work, digits, in units of 16 bytes.
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
            Layout::Impacts => [SUM_BINS, 0],
        };
        Self { records, bins }
    }

    pub(crate) fn place(&self, array: Array) -> Option<usize> {
        let states = size_of::<QueryState>() * self.records;
        let [bins, of_samples] = self.bins.map(|bins| 4 * bins * self.records);
        match array {
            Array::States => Some(0),
            Array::Bins => Some(states),
            Array::SampleBins => Some(states + bins),
            Array::Work => Some(states + bins + of_samples),
            Array::Digits => Some(states + bins + of_samples + 4 * WORKS),
            _ => None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.place(Array::Digits).unwrap_or(0) + DIGITS_BYTES
    }
}
