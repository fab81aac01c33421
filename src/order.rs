//! Docids in the order of the input, ends of runs, and shares of the memory.
//!
//! Nothing here depends on time, on the number of workers, or on which worker does the work: that
//! an index has the same bytes for any number of workers rests on it (`docs/ARCHITECTURE.md`).
//!
//! - **Order.** A [`Position`] is the time of the build dataflow. Positions are totally ordered as
//!   the input is: by split, then by place in the split.
//! - **Cost.** A piece's [`PieceCounts`] are what parsing it gives. A run closes at the end of the
//!   piece that brings its cost beyond a limit: `2 * bytes of postings + 8 * documents + 112 *
//!   units of the dictionary`. Every index operator feeds the counts of all pieces, in order, to a
//!   [`Sequencer`] of its own, and all of them come to the same docids and the same run borders
//!   without a word between them.
//! - **Memory.** A [`Budget`] cuts `--memory` into a part for the run, which fixes where runs end
//!   and so may depend on `--memory` alone, and parts for each worker.
//!
//! The memory of an open run is its postings, which add up, and its dictionary, which does not: a
//! term costs once however many pieces hold it. Adding up distinct terms piece by piece
//! overestimates English text five times, so each piece carries a [`Sketch`] of its surface forms,
//! which are at least as many as its terms, and a piece costs what it adds to the union, which
//! depends on the set of forms only.

pub(crate) mod budget;

pub(crate) use budget::Budget;

use crate::settings::SettingError;

/// A piece ends at the first record border at or behind a multiple of this many bytes, or of
/// [more](Budget::piece_bytes): few enough that 64 MiB of memory do for four parsers, whatever the
/// text, and enough that most terms of English text occur several times.
pub const PIECE_BYTES: usize = 1 << 19;

/// A document of more bytes takes its turn when it is parsed, and counts by what it takes.
pub(crate) const LONG_BYTES: usize = 2 * PIECE_BYTES;

/// Times its bytes, what a long document takes beside its terms: the record, its text, and what
/// grows with these.
pub(crate) const DOCUMENT_TIMES: u64 = 3;

/// Bytes of a read of a file.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Longer documents (records of the input) are skipped by default, which must not depend on the
/// memory.
pub const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// The place of a piece in the order of the input: split, block of the file, piece in the block, in
/// 24, 24 and 16 bits, which are the timestamp of the build dataflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Position(pub u64);

impl Position {
    /// Of piece `piece` among those that block `block` of split `split` ends. Fails for more than
    /// 16,777,216 splits, files beyond 4 TiB, or 65,536 pieces of one block.
    pub(crate) fn new(split: u64, block: u64, piece: u64) -> Result<Self, SettingError> {
        let fits = |what, got, bits: u32| {
            if got >> bits == 0 {
                Ok(got)
            } else {
                let most = (1u64 << bits) - 1;
                let remedy = "give the input in fewer, larger files";
                let why = format!("too many {what}: {got}, the most is {most}; {remedy}");
                Err(SettingError::value("input", why))
            }
        };
        let split = fits("input files", split, 24)?;
        let block = fits("blocks in one file", block, 24)?;
        let piece = fits("pieces in one block", piece, 16)?;
        Ok(Self((split << 40) | (block << 16) | piece))
    }

    pub(crate) fn split_of(time: u64) -> u32 {
        (time >> 40) as u32
    }

    /// The position behind `time` for another piece that the same block ends.
    pub(crate) fn next_piece(time: u64) -> Result<Self, SettingError> {
        Self::new(time >> 40, (time >> 16) & 0xff_ffff, (time & 0xffff) + 1)
    }
}

/// Bits of a sketch's register number.
const SKETCH_BITS: u32 = 12;

/// Counts the distinct members of a union of sets within about 2 % (HyperLogLog; Flajolet, Fusy,
/// Gandouet, Meunier 2007), from 4,096 registers of one byte. The union is the greatest of each
/// register, so order, repetition and parts of the members do not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    registers: Box<[u8; 1 << SKETCH_BITS]>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self { registers: Box::new([0; 1 << SKETCH_BITS]) }
    }
}

impl Sketch {
    pub(crate) const REGISTERS: usize = 1 << SKETCH_BITS;

    pub(crate) fn of_registers(registers: [u8; Self::REGISTERS]) -> Self {
        Self { registers: Box::new(registers) }
    }

    /// The register of a member with this hash, and its rank there, 1 to 53.
    #[inline]
    pub(crate) fn place(hash: u64) -> (usize, u8) {
        let register = (hash >> (64 - SKETCH_BITS)) as usize;
        let rank = ((hash << SKETCH_BITS) | (1 << (SKETCH_BITS - 1))).leading_zeros() as u8 + 1;
        (register, rank)
    }

    /// By its 64-bit hash.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        let (register, rank) = Self::place(hash);
        let old = &mut self.registers[register];
        *old = (*old).max(rank);
    }

    /// Calls `rises` with each rank that a register had, and has now in its place.
    pub(crate) fn unite(&mut self, other: &Sketch, mut rises: impl FnMut(u8, u8)) {
        let (mine, _) = self.registers.as_chunks_mut::<64>();
        let (theirs, _) = other.registers.as_chunks::<64>();
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            // In most chunks none does, once there are some members; that is soon seen.
            if !mine.iter().zip(theirs).fold(false, |any, (mine, theirs)| any | (theirs > mine)) {
                continue;
            }
            for (mine, &theirs) in mine.iter_mut().zip(theirs) {
                if theirs > *mine {
                    rises(*mine, theirs);
                    *mine = theirs;
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn estimate(&self) -> u64 {
        let mut ranks = Ranks([0; _]);
        self.registers.iter().for_each(|&rank| ranks.0[usize::from(rank)] += 1);
        ranks.estimate()
    }
}

/// How many registers of a [`Sketch`] have each rank.
struct Ranks([u64; 66]);

impl Ranks {
    /// Of a sketch without members.
    fn new() -> Self {
        let mut ranks = [0; _];
        ranks[0] = 1 << SKETCH_BITS;
        Self(ranks)
    }

    /// Estimates the number of distinct members. All of it is integer arithmetic, the logarithm
    /// too, so that it is the same everywhere.
    fn estimate(&self) -> u64 {
        let Self(histogram) = self;
        // The sum of 2^-rank as a fixed-point number with 52 fraction bits: a rank is at most 53.
        let sum: u128 = histogram
            .iter()
            .enumerate()
            .map(|(rank, &n)| u128::from(n) * ((1u128 << 52) >> rank.min(52)))
            .sum();
        let m = 1u128 << SKETCH_BITS;
        // 0.7213 / (1 + 1.079 / m) for m = 4096, times m * m.
        let raw = ((m * m * 7211 / 10_000) << 52) / sum.max(1);
        let zeros = histogram[0];
        if raw < m * 5 / 2 && zeros > 0 {
            return linear_count(zeros);
        }
        u64::try_from(raw).unwrap_or(u64::MAX)
    }
}

/// `m * ln(m / zeros)` for the small range, with the logarithm by squaring in integers.
fn linear_count(zeros: u64) -> u64 {
    // log2 of m / zeros with 16 fraction bits.
    let mut x = (1u128 << (SKETCH_BITS + 32)) / u128::from(zeros);
    let mut whole = 0u128;
    while x >= 2 << 32 {
        x >>= 1;
        whole += 1;
    }
    let mut log2 = whole << 16;
    for bit in (0..16).rev() {
        x = (x * x) >> 32;
        if x >= 2 << 32 {
            x >>= 1;
            log2 |= 1 << bit;
        }
    }
    // ln 2 = 0.693147
    u64::try_from(((log2 << SKETCH_BITS) * 693_147 / 1_000_000) >> 16).unwrap_or(u64::MAX)
}

/// A form is a member of the sketch for each started unit of its bytes.
pub(crate) const SKETCH_UNIT_BYTES: usize = 24;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceCounts {
    pub documents: u32,
    pub postings: u64,
    /// Bytes of the piece's postings as vbytes.
    pub list_bytes: u64,
    /// The piece's surface forms without stop words, a member for each started
    /// [`SKETCH_UNIT_BYTES`] of a form. Forms and not terms, so that ends of runs do not need
    /// stems.
    pub forms: Sketch,
}

/// Bytes of memory that a document costs until its run is flushed: codes of its length, and its
/// part of what sorts the hashes of names.
const DOCUMENT_COST: u64 = 8;
/// Bytes of memory for one byte of postings: slices are never less than half full.
const LIST_BYTE_COST: u64 = 2;
/// Bytes of memory for one unit of the dictionary: entry 32, hash slots 23 and at most 34 while
/// they double, 16 when terms are sorted for the flush, string 24, first slice 8.
const UNIT_COST: u64 = 112;

/// A run never costs more, whatever the memory, except for its last piece: one indexer may own all
/// of it, and slices of postings end at 32 GiB (`dictionary/slices.rs`). The rest is for that
/// piece, and for sketches, which may find a twentieth too few forms.
pub(crate) const MOST_RUN_BYTES: u64 = 28 << 30;
/// Bytes of the strings of such a run: a unit of the dictionary has at most this many, and costs
/// `UNIT_COST`.
pub(crate) const MOST_STRING_BYTES: u64 = MOST_RUN_BYTES / UNIT_COST * SKETCH_UNIT_BYTES as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PiecePlacement {
    /// From 0.
    pub run: u32,
    pub run_first: u32,
    /// The piece's first docid, counted from the run's first.
    pub first: u32,
    /// Documents in the run up to the end of this piece.
    pub run_documents: u32,
    pub closes: bool,
}

/// A `u32` docid cannot count them.
fn too_many_documents() -> SettingError {
    let most = u32::MAX - 1;
    let why = format!(
        "the collection has more than {most} documents, the most that one index holds; split it \
         into several indexes"
    );
    SettingError::value("input", why)
}

/// Gives every piece its docids and its run, from the counts of all pieces in order.
pub(crate) struct Sequencer {
    limit: u64,
    run: u32,
    run_first: u32,
    next: u32,
    additive: u64,
    forms: Sketch,
    /// Of `forms`.
    ranks: Ranks,
}

impl Sequencer {
    /// The first run has the number `run`; `limit` is [`Budget::run_limit`].
    pub(crate) fn new(run: u32, limit: u64) -> Self {
        let (run_first, next, additive, forms) = Default::default();
        Self { limit, run, run_first, next, additive, forms, ranks: Ranks::new() }
    }

    pub(crate) fn place(&mut self, counts: &PieceCounts) -> Result<PiecePlacement, SettingError> {
        let first = self.next;
        // The greatest docid stays free as a sentinel.
        self.next = first
            .checked_add(counts.documents)
            .filter(|&next| next < u32::MAX)
            .ok_or_else(too_many_documents)?;
        self.additive +=
            counts.list_bytes * LIST_BYTE_COST + u64::from(counts.documents) * DOCUMENT_COST;
        let Ranks(ranks) = &mut self.ranks;
        self.forms.unite(&counts.forms, |old, new| {
            ranks[usize::from(old)] -= 1;
            ranks[usize::from(new)] += 1;
        });
        let cost = self.additive + self.ranks.estimate() * UNIT_COST;
        let placement = PiecePlacement {
            run: self.run,
            run_first: self.run_first,
            first: first - self.run_first,
            run_documents: self.next - self.run_first,
            closes: cost > self.limit && self.next > self.run_first,
        };
        if placement.closes {
            *self = Self::new(self.run + 1, self.limit);
            self.next = placement.run_first + placement.run_documents;
            self.run_first = self.next;
        }
        Ok(placement)
    }

    /// The open run with its documents so far, as if it were closed now.
    pub(crate) fn open_run(&self) -> PiecePlacement {
        PiecePlacement {
            run: self.run,
            run_first: self.run_first,
            first: 0,
            run_documents: self.next - self.run_first,
            closes: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;

    fn hash(i: u64) -> u64 {
        twox_hash::XxHash3_64::oneshot(&i.to_le_bytes())
    }

    fn counts(documents: u32, list_bytes: u64, terms: impl Iterator<Item = u64>) -> PieceCounts {
        let mut sketch = Sketch::default();
        terms.for_each(|t| sketch.add(hash(t)));
        PieceCounts { documents, postings: list_bytes, list_bytes, forms: sketch }
    }

    #[test]
    fn positions_follow_split_block_piece() {
        let at = |s, b, p| Position::new(s, b, p).unwrap();
        assert!(at(0, 0, 1) < at(0, 1, 0));
        assert!(at(0, (1 << 24) - 1, (1 << 16) - 1) < at(1, 0, 0));
        assert!(Position::new(1 << 24, 0, 0).is_err());
        assert!(Position::new(0, 1 << 24, 0).is_err());
        assert!(Position::new(0, 0, 1 << 16).is_err());
    }

    #[test]
    fn estimates_within_five_percent() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.estimate(), 0);
        let mut n = 0u64;
        for target in [10u64, 100, 1000, 5000, 9000, 11_000, 50_000, 300_000, 2_000_000] {
            while n < target {
                sketch.add(hash(n));
                n += 1;
            }
            let got = sketch.estimate();
            assert!(got.abs_diff(n) * 20 <= n, "{n} estimated as {got}");
        }
    }

    #[test]
    fn docids_end_before_the_sentinel() {
        let mut s = Sequencer::new(0, u64::MAX);
        s.place(&counts(u32::MAX - 2, 0, 0..0)).unwrap();
        s.place(&counts(1, 0, 0..0)).unwrap();
        assert_eq!(s.place(&counts(1, 0, 0..0)), Err(too_many_documents()));
    }

    #[test]
    fn a_repeated_vocabulary_costs_once() {
        let limit = 20_000 * UNIT_COST;
        let mut same = Sequencer::new(0, limit);
        let mut fresh = Sequencer::new(0, limit);
        for i in 0..50 {
            same.place(&counts(1, 0, 0..10_000)).unwrap();
            fresh.place(&counts(1, 0, i * 10_000..(i + 1) * 10_000)).unwrap();
        }
        assert_eq!(same.open_run().run, 0);
        assert!(fresh.open_run().run >= 12, "{:?}", fresh.open_run());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/order.txt")
        ))]

        /// Runs are contiguous, and docids dense, whatever the pieces and the limit.
        #[test]
        fn law_runs_partition_the_documents(
            pieces in prop::collection::vec((0u32..50, 0u64..10_000, 0u64..500), 1..60),
            limit in 1_000u64..200_000,
        ) {
            let mut s = Sequencer::new(0, limit);
            let mut next = 0u32;
            let mut run = 0u32;
            let mut run_first = 0u32;
            for (documents, bytes, terms) in pieces {
                let p = s.place(&counts(documents, bytes, 0..terms)).unwrap();
                prop_assert_eq!((p.run, p.run_first), (run, run_first));
                prop_assert_eq!(p.run_first + p.first, next);
                next += documents;
                prop_assert_eq!(p.run_first + p.run_documents, next);
                if p.closes {
                    prop_assert!(p.run_documents > 0);
                    run += 1;
                    run_first = next;
                }
            }
            let open = s.open_run();
            prop_assert_eq!((open.run, open.run_first), (run, run_first));
            prop_assert_eq!(open.run_documents, next - run_first);
        }

        /// The sketch of a union does not depend on how its members were spread.
        #[test]
        fn law_unions_forget_their_parts(members in prop::collection::vec(0u64..5_000, 0..2_000), parts in 1usize..6) {
            let mut whole = Sketch::default();
            let mut spread = vec![Sketch::default(); parts];
            for (i, &m) in members.iter().enumerate() {
                whole.add(hash(m));
                spread[i % parts].add(hash(m));
            }
            let (mut united, mut ranks) = (Sketch::default(), Ranks::new());
            for sketch in spread.iter().rev() {
                united.unite(sketch, |old, new| {
                    ranks.0[usize::from(old)] -= 1;
                    ranks.0[usize::from(new)] += 1;
                });
            }
            prop_assert_eq!(&united.registers[..], &whole.registers[..]);
            prop_assert_eq!(ranks.estimate(), whole.estimate());
        }
    }
}
