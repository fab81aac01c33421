//! The kernels that answer a batch, in their order.

use super::DingTuning;
use super::batch::{DingShares, TILE, WARPS};
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::Argument::{Array as In, Number};
use crate::papers::methods::batch::{BatchInput, BatchOutput, MethodBatch};
use crate::papers::methods::{MethodArgument, MethodArray, MethodStep};

const OPEN_THREADS: u32 = 256;

/// 512 words for each warp.
pub(crate) const DECODE_SHARED_BYTES: u32 = WARPS * 512 * 4;

pub(crate) const SUM_SHARED_BYTES: u32 = 128;

/// What is decoded of a list, as kernels number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Of all blocks, with localised sums.
    Docids = 0,
    Chosen = 1,
    Tfs = 2,
    /// Of all blocks, without sums.
    Gaps = 3,
}

const RECORDS: MethodArgument = In(MethodArray::Input, 0);
const WORDS: MethodArgument = In(MethodArray::Words, 0);
const NORMS: MethodArgument = In(MethodArray::Norms, 0);

struct StepMaker<'a> {
    batch: &'a MethodBatch<DingTuning>,
    input: BatchInput,
    output: BatchOutput,
    steps: Vec<MethodStep>,
}

impl<'a> StepMaker<'a> {
    fn new(batch: &'a MethodBatch<DingTuning>) -> Self {
        Self { batch, input: batch.input(), output: batch.output(), steps: Vec::new() }
    }

    fn push(
        &mut self,
        kernel: &'static str,
        blocks: u32,
        threads: u32,
        arguments: Vec<MethodArgument>,
    ) {
        if blocks == 0 {
            return;
        }
        let shared_bytes = match kernel {
            "ding_decode" => DECODE_SHARED_BYTES,
            "ding_open" | "ding_sum_counts" | "ding_choose" | "ding_compact" => SUM_SHARED_BYTES,
            _ => 0,
        };
        let geometry = Geometry { blocks, threads, shared_bytes };
        self.steps.push(MethodStep { kernel, geometry, arguments });
    }

    fn lists(&self) -> [MethodArgument; 2] {
        [In(MethodArray::Cached, 0), In(MethodArray::Input, self.input.lists as u64)]
    }

    fn terms(&self) -> MethodArgument {
        In(MethodArray::Input, self.input.terms as u64)
    }

    fn firsts(&self, shares: DingShares) -> MethodArgument {
        In(MethodArray::Input, (self.input.more + 4 * shares.at) as u64)
    }

    fn ranks(&self) -> MethodArgument {
        In(MethodArray::Output, self.output.beside as u64)
    }

    fn open(&mut self) {
        let [cached, travelling] = self.lists();
        let items = In(MethodArray::Input, self.input.more as u64);
        let arguments = vec![cached, travelling, self.terms(), items, WORDS];
        self.push("ding_open", self.batch.plan.items, OPEN_THREADS, arguments);
    }

    /// Arguments of most kernels: the lists if it reads any, its queries, and more.
    fn common(
        &self,
        lists: bool,
        shares: DingShares,
        more: &[MethodArgument],
    ) -> Vec<MethodArgument> {
        let lists = if lists { &self.lists()[..] } else { &[] };
        let queries = [self.terms(), RECORDS, self.firsts(shares), Number(shares.queries)];
        [lists, &queries, more].concat()
    }

    fn decode(&mut self, rank: usize, what: Decoded) {
        let shares = self.batch.plan.decoders[rank];
        let more = [Number(rank as u32), Number(what as u32), self.ranks(), WORDS];
        let arguments = self.common(true, shares, &more);
        self.push("ding_decode", shares.blocks, WARPS * 32, arguments);
    }

    /// A kernel that takes candidates in tiles.
    fn tiles(&mut self, kernel: &'static str, rank: usize, more: &[MethodArgument], lists: bool) {
        let shares = self.batch.tiles_at(rank);
        let more = [&[Number(rank as u32)], more, &[self.ranks(), WORDS]].concat();
        let arguments = self.common(lists, shares, &more);
        self.push(kernel, shares.blocks, TILE, arguments);
    }

    fn sum_counts(&mut self, rank: usize, chosen: bool) {
        let queries = self.batch.tiles_at(rank).queries;
        let rank = Number(rank as u32);
        let chosen = Number(chosen.into());
        let arguments = vec![self.terms(), RECORDS, rank, chosen, self.ranks(), WORDS];
        self.push("ding_sum_counts", queries, TILE, arguments);
    }

    fn all_terms(&mut self, merging: DingTuning) {
        let documents = Number(self.batch.documents);
        for rank in 0..self.batch.plan.decoders.len() {
            if rank == 0 {
                self.decode(rank, Decoded::Docids);
            } else {
                for level in 1..=merging.levels + 1 {
                    let levels = [level, merging.levels, merging.bits()].map(Number);
                    self.tiles("ding_find", rank, &levels, true);
                }
                self.sum_counts(rank, true);
                self.tiles("ding_choose", rank, &[], true);
                self.decode(rank, Decoded::Chosen);
            }
            self.tiles("ding_match", rank, &[NORMS, documents], true);
            self.sum_counts(rank, false);
            self.tiles("ding_compact", rank, &[], false);
        }
        let shares = self.batch.plan.tiles;
        let arguments = self.common(false, shares, &[self.ranks(), WORDS]);
        self.push("ding_scores", shares.blocks, TILE, arguments);
    }

    fn any_term(&mut self) {
        let documents = Number(self.batch.documents);
        let shares = self.batch.plan.clearers;
        let queries = Number(shares.queries);
        let arguments = vec![RECORDS, self.firsts(shares), queries, documents, WORDS];
        self.push("ding_clear", shares.blocks, TILE, arguments);
        for rank in 0..self.batch.plan.decoders.len() {
            self.decode(rank, Decoded::Docids);
            self.decode(rank, Decoded::Tfs);
            let shares = self.batch.plan.decoders[rank];
            let more = [Number(rank as u32), NORMS, documents, WORDS];
            let arguments = self.common(true, shares, &more);
            self.push("ding_accumulate", shares.blocks, WARPS * 32, arguments);
        }
    }

    fn best(&mut self) {
        let MethodBatch { all_terms, documents, .. } = *self.batch;
        let what = [Number(all_terms.into()), Number(documents), self.ranks(), WORDS];
        for (level, shares) in (1..).zip(self.batch.plan.maximisers) {
            let arguments = self.common(false, shares, &[&[Number(level)], &what[..]].concat());
            self.push("ding_maxima", shares.blocks, WARPS * 32, arguments);
        }
        let hits = In(MethodArray::Output, self.output.hits as u64);
        let found = [In(MethodArray::Output, 0), hits];
        let arguments = [&[self.terms(), RECORDS], &what[..], &found].concat();
        self.push("ding_extract", self.batch.records.len() as u32, 32, arguments);
    }
}

pub(super) fn all(batch: &MethodBatch<DingTuning>) -> Vec<MethodStep> {
    let mut maker = StepMaker::new(batch);
    maker.open();
    match batch.all_terms {
        true => maker.all_terms(batch.how),
        false => maker.any_term(),
    }
    maker.best();
    maker.steps
}

/// Decodes the first list of each query of a batch, and no more: to measure that.
pub fn decoding(batch: &MethodBatch<DingTuning>, what: Decoded) -> Vec<MethodStep> {
    let mut maker = StepMaker::new(batch);
    maker.open();
    maker.decode(0, what);
    maker.steps
}
