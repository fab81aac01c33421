//! Which kernels answer a batch, one after the other? Steps name arrays, not memory: a device and
//! the emulation of one take the same ones.

use super::Merging;
use super::batch::{DingBatch, DingShares, TILE, WARPS};
use crate::gpu::floor::error::Geometry;
use crate::gpu::floor::steps::{Argument as AnyArgument, Step as AnyStep};

/// Threads of a block that decodes exceptions.
const OPEN_THREADS: u32 = 256;

/// Shared memory of a block that decodes: 512 words for each warp.
pub(crate) const DECODE_SHARED_BYTES: u32 = WARPS * 512 * 4;

/// Shared memory of a block that adds up.
pub(crate) const SUM_SHARED_BYTES: u32 = 128;

/// An array that kernels work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DingArray {
    /// All lists, in bytes.
    Arena,
    /// What the host says of the batch: [`DingBatch::write`].
    Input,
    /// The batch's memory: [`DingBatch::used`].
    Words,
    /// f32: norms of all documents.
    Norms,
    /// What the host is told: [`DingBatch::output`].
    Output,
}

pub(crate) type Argument = AnyArgument<DingArray>;

pub(crate) type Step = AnyStep<DingArray>;

/// What is decoded of a list, as kernels name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The docids of all blocks, with localised sums.
    Docids = 0,
    Chosen = 1,
    /// The term frequencies of all blocks.
    Tfs = 2,
    /// The gaps of all blocks, without sums.
    Gaps = 3,
}

use AnyArgument::{Array as In, Number};

/// Makes the steps of a batch.
struct Maker<'a> {
    batch: &'a DingBatch,
    steps: Vec<Step>,
}

impl Maker<'_> {
    fn push(&mut self, kernel: &'static str, blocks: u32, threads: u32, arguments: Vec<Argument>) {
        if blocks == 0 {
            return;
        }
        let shared_bytes = match kernel {
            "ding_decode" => DECODE_SHARED_BYTES,
            "ding_open" | "ding_sum_counts" | "ding_choose" | "ding_compact" => SUM_SHARED_BYTES,
            _ => 0,
        };
        let geometry = Geometry { blocks, threads, shared_bytes };
        self.steps.push(Step { kernel, geometry, arguments });
    }

    fn terms(&self) -> Argument {
        In(DingArray::Input, self.batch.input().terms as u64)
    }

    fn records(&self) -> Argument {
        In(DingArray::Input, self.batch.input().records as u64)
    }

    fn firsts(&self, shares: DingShares) -> Argument {
        In(DingArray::Input, (self.batch.input().firsts + 4 * shares.at) as u64)
    }

    fn open(&mut self) {
        let items = In(DingArray::Input, self.batch.input().items as u64);
        let arguments = vec![ARENA, self.terms(), items, WORDS];
        self.push("ding_open", self.batch.items.len() as u32, OPEN_THREADS, arguments);
    }

    /// Arguments of most kernels: what the `lists` are in if it reads any, and which queries it is
    /// for.
    fn common(&self, lists: bool, shares: DingShares) -> Vec<Argument> {
        let mut arguments = if lists { vec![ARENA] } else { Vec::new() };
        arguments.extend([self.terms(), self.records(), self.firsts(shares)]);
        arguments.push(Number(shares.queries));
        arguments
    }

    fn decode(&mut self, rank: usize, what: Decoded) {
        let shares = self.batch.decoders[rank];
        let mut arguments = self.common(true, shares);
        arguments.extend([Number(rank as u32), Number(what as u32), RANKS, WORDS]);
        self.push("ding_decode", shares.blocks, WARPS * 32, arguments);
    }

    /// A kernel that handles candidates in tiles.
    fn tiles(&mut self, kernel: &'static str, rank: usize, more: &[Argument], lists: bool) {
        let shares = self.batch.tiles_at(rank);
        let mut arguments = self.common(lists, shares);
        arguments.push(Number(rank as u32));
        arguments.extend(more);
        arguments.extend([RANKS, WORDS]);
        self.push(kernel, shares.blocks, TILE, arguments);
    }

    fn sum_counts(&mut self, rank: usize, chosen: bool) {
        let queries = self.batch.tiles_at(rank).queries;
        let (rank, chosen) = (Number(rank as u32), Number(chosen.into()));
        let arguments = vec![self.terms(), self.records(), rank, chosen, RANKS, WORDS];
        self.push("ding_sum_counts", queries, TILE, arguments);
    }

    fn all_terms(&mut self, merging: Merging) {
        let documents = Number(self.batch.documents);
        for rank in 0..self.batch.decoders.len() {
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
        let shares = self.batch.tiles;
        let mut arguments = self.common(false, shares);
        arguments.extend([RANKS, WORDS]);
        self.push("ding_scores", shares.blocks, TILE, arguments);
    }

    fn any_term(&mut self) {
        let documents = Number(self.batch.documents);
        let shares = self.batch.clearers;
        let queries = [self.records(), self.firsts(shares), Number(shares.queries)];
        let arguments = [&queries[..], &[documents, WORDS]].concat();
        self.push("ding_clear", shares.blocks, TILE, arguments);
        for rank in 0..self.batch.decoders.len() {
            self.decode(rank, Decoded::Docids);
            self.decode(rank, Decoded::Tfs);
            let shares = self.batch.decoders[rank];
            let mut arguments = self.common(true, shares);
            arguments.extend([Number(rank as u32), NORMS, documents, WORDS]);
            self.push("ding_accumulate", shares.blocks, WARPS * 32, arguments);
        }
    }

    fn best(&mut self) {
        let DingBatch { all_terms, documents, .. } = *self.batch;
        let what = [Number(all_terms.into()), Number(documents), RANKS, WORDS];
        for (level, shares) in (1..).zip(self.batch.maximisers) {
            let mut arguments = self.common(false, shares);
            arguments.push(Number(level));
            arguments.extend(what);
            self.push("ding_maxima", shares.blocks, WARPS * 32, arguments);
        }
        let output = self.batch.output();
        let mut arguments = vec![self.terms(), self.records()];
        arguments.extend(what);
        arguments.push(In(DingArray::Output, output.answers as u64));
        arguments.push(In(DingArray::Output, output.hits as u64));
        self.push("ding_extract", self.batch.records.len() as u32, 32, arguments);
    }
}

const ARENA: Argument = In(DingArray::Arena, 0);
const WORDS: Argument = In(DingArray::Words, 0);
const NORMS: Argument = In(DingArray::Norms, 0);
const RANKS: Argument = In(DingArray::Output, 0);

/// The steps that answer a batch.
pub fn batch(batch: &DingBatch, merging: Merging) -> Vec<Step> {
    let mut maker = Maker { batch, steps: Vec::new() };
    maker.open();
    match batch.all_terms {
        true => maker.all_terms(merging),
        false => maker.any_term(),
    }
    maker.best();
    maker.steps
}

/// The steps that decode the first list of each query of a batch, and no more: to measure that.
pub fn decoding(batch: &DingBatch, what: Decoded) -> Vec<Step> {
    let mut maker = Maker { batch, steps: Vec::new() };
    maker.open();
    maker.decode(0, what);
    maker.steps
}

/// The steps of Parallel Merge Find alone, of `m` numbers at the beginning of the words in `n` that
/// follow them; and the word from which on places come out. They belong to an empty batch.
pub fn merging((m, n): (u32, u32), merging: Merging) -> (Vec<Step>, u64) {
    let word = |word: u64| In(DingArray::Words, 4 * word);
    let places = u64::from(m) + u64::from(n);
    let step = |level| Step {
        kernel: "ding_merge_find",
        geometry: Geometry { blocks: m.div_ceil(TILE), threads: TILE, shared_bytes: 0 },
        arguments: vec![
            word(0),
            Number(m),
            word(m.into()),
            Number(n),
            Number(level),
            Number(merging.levels),
            Number(merging.bits()),
            word(places),
        ],
    };
    ((1..=merging.levels + 1).map(step).collect(), places)
}
