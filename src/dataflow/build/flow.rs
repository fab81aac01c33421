//! Bounds the input under way between the readers and the far end, and picks the parser of the
//! next piece.
//!
//! The index takes pieces in the order of the input, so what comes from later splits waits, as
//! pieces, groups or batches. All of it is counted here in bytes; a piece that is not parsed counts
//! as the expected size of its parsed form. The first split that is not done, for which all others
//! wait, may use all of the room; the others leave it a quarter.

use crate::order::PIECE_BYTES;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// A parser with this many pieces of the least size to do, or `ENOUGH_PIECES` of the build's, needs
/// no more now.
const ENOUGH_BYTES: usize = 8 * PIECE_BYTES;
/// The one that it parses, and some for the time in which the reader parses one itself.
const ENOUGH_PIECES: usize = 4;
/// Sixteenths of the room that the farthest splits may use.
const FARTHEST: usize = 3;
/// The expected growth before anything is parsed, in units of 1/256: a piece in which no word
/// occurs twice takes eight times its bytes.
const SWELL_AT_FIRST: usize = 8 << 8;

pub(crate) struct Flow {
    /// Bytes that may be under way.
    limit: usize,
    /// A parser with this many bytes to do needs no more now.
    enough: usize,
    parsers: Range<usize>,
    /// By worker, bytes of pieces that are not parsed.
    loads: Vec<AtomicUsize>,
    /// By worker, whether it reads what has to wait until all that comes before is absorbed.
    waiting: Vec<AtomicBool>,
    /// Bytes of groups and batches that are not absorbed.
    parsed: AtomicUsize,
    /// Parsed bytes that a byte of a piece becomes, in units of 1/256: follows the greatest.
    swell: AtomicUsize,
}

impl Flow {
    /// `limit` is in bytes; `parsers` are some of the `workers`.
    pub(crate) fn new(
        limit: usize,
        workers: usize,
        parsers: Range<usize>,
        piece_bytes: usize,
    ) -> Self {
        Self {
            limit,
            enough: ENOUGH_BYTES.max(ENOUGH_PIECES * piece_bytes),
            loads: (0..parsers.end).map(|_| AtomicUsize::new(0)).collect(),
            waiting: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            parsers,
            parsed: AtomicUsize::new(0),
            swell: AtomicUsize::new(SWELL_AT_FIRST),
        }
    }

    /// Whether there is room for another piece, of the `first` split that is not done or of
    /// another.
    pub(crate) fn has_room(&self, first: bool) -> bool {
        self.has_room_behind(usize::from(!first))
    }

    /// Whether there is room for another piece of the split that is this many behind the first that
    /// is not done. The farther behind, the less room: what is near is needed sooner.
    pub(crate) fn has_room_behind(&self, splits: usize) -> bool {
        let pieces: usize = self.loads.iter().map(|load| load.load(Relaxed)).sum();
        let swollen = pieces.max((pieces * self.swell.load(Relaxed)) >> 8);
        let room = match splits {
            0 => self.limit,
            // Who gathers parsed pieces hands them on, so that the wait ends.
            _ if self.waiting.iter().any(|waits| waits.load(Relaxed)) => 0,
            near => self.limit / 16 * 13usize.saturating_sub(near).max(FARTHEST),
        };
        self.parsed.load(Relaxed) + swollen < room
    }

    /// Tells whether a worker's reader waits until all that comes before is absorbed.
    pub(crate) fn set_waiting(&self, worker: usize, waits: bool) {
        self.waiting[worker].store(waits, Relaxed);
    }

    /// Whether there is an idle parser, and room for what it would make.
    pub(crate) fn is_hungry(&self) -> bool {
        let mut loads = self.loads[self.parsers.clone()].iter();
        loads.any(|load| load.load(Relaxed) == 0) && self.has_room(false)
    }

    pub(crate) fn is_idle(&self, worker: usize) -> bool {
        self.parsers.contains(&worker) && self.loads[worker].load(Relaxed) == 0
    }

    pub(crate) fn take(&self, parser: usize, bytes: usize) {
        self.loads[parser].fetch_add(bytes, Relaxed);
    }

    /// Picks the parser with the fewest bytes to do for a piece of `bytes`; also tells whether all
    /// have enough now. Of equals the next behind `own` comes first and `own` last: it parses
    /// between two looks at the loads and so seems to have little to do.
    pub(crate) fn assign(&self, own: usize, bytes: usize) -> (usize, bool) {
        let load = |w: usize| self.loads[w].load(Relaxed);
        let behind = (own + 1).clamp(self.parsers.start, self.parsers.end);
        let others = (behind..self.parsers.end).chain(self.parsers.start..behind);
        let parser = others.min_by_key(|&w| load(w)).unwrap_or(own);
        (parser, self.loads[parser].fetch_add(bytes, Relaxed) >= self.enough)
    }

    pub(crate) fn parsed(&self, parser: usize, bytes: usize, parsed: usize) {
        self.parsed.fetch_add(parsed, Relaxed);
        self.loads[parser].fetch_sub(bytes, Relaxed);
        // The ratio of a piece of a few records is an outlier.
        if bytes >= PIECE_BYTES / 8 {
            let swell = (parsed << 8) / bytes;
            let before = self.swell.load(Relaxed);
            self.swell.store(swell.max(before - before / 16), Relaxed);
        }
    }

    /// Counts `bytes` that a decoder holds until they are [absorbed](Self::absorbed).
    pub(crate) fn hold(&self, bytes: usize) {
        self.parsed.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn absorbed(&self, bytes: usize) {
        self.parsed.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_follows_what_pieces_become() {
        let flow = Flow::new(100 * PIECE_BYTES, 2, 0..2, PIECE_BYTES);
        // Before anything is known a piece counts eight times.
        let mut parsers = Vec::new();
        for _ in 0..12 {
            assert!(flow.has_room(true));
            parsers.push(flow.assign(0, PIECE_BYTES).0);
        }
        assert!(!flow.has_room(false) && flow.has_room(true));
        parsers.push(flow.assign(0, PIECE_BYTES).0);
        assert!(!flow.has_room(true));
        // Pieces turn out to halve.
        for parser in parsers {
            flow.parsed(parser, PIECE_BYTES, PIECE_BYTES / 2);
        }
        assert!(flow.has_room(false));
        for _ in 0..50 {
            let (parser, _) = flow.assign(0, PIECE_BYTES);
            flow.parsed(parser, PIECE_BYTES, PIECE_BYTES / 2);
        }
        flow.absorbed(63 * PIECE_BYTES / 2);
        for _ in 0..70 {
            flow.assign(0, PIECE_BYTES);
        }
        assert!(flow.has_room(false), "the expectation has come down");
        // One that swells raises it at once.
        flow.parsed(0, PIECE_BYTES, 8 * PIECE_BYTES);
        assert!(!flow.has_room(true));
    }

    #[test]
    fn splits_that_are_far_behind_have_less_room() {
        let flow = Flow::new(16 * PIECE_BYTES, 1, 0..1, PIECE_BYTES);
        let most = |splits| {
            let held = (0..20).take_while(|_| {
                let room = flow.has_room_behind(splits);
                flow.hold(PIECE_BYTES);
                room
            });
            let held = held.count();
            flow.absorbed(flow.parsed.load(Relaxed));
            held
        };
        assert_eq!([0, 1, 2, 9, 10, 11, 999].map(most), [16, 12, 11, 4, 3, 3, 3]);
    }

    #[test]
    fn nothing_else_has_room_while_a_reader_waits_for_all() {
        let flow = Flow::new(16 * PIECE_BYTES, 2, 0..2, PIECE_BYTES);
        flow.set_waiting(1, true);
        assert!(flow.has_room(true) && !flow.has_room(false) && !flow.is_hungry());
        flow.set_waiting(1, false);
        assert!(flow.has_room(false) && flow.is_hungry());
    }

    #[test]
    fn is_hungry_while_a_parser_has_nothing() {
        let flow = Flow::new(100 * PIECE_BYTES, 3, 1..3, PIECE_BYTES);
        assert!(flow.is_hungry());
        let first = flow.assign(0, 10).0;
        assert!(flow.is_hungry());
        flow.assign(0, 10);
        assert!(!flow.is_hungry(), "both have something");
        assert!(!flow.is_idle(first) && !flow.is_idle(0));
        flow.parsed(first, 10, 20);
        assert!(flow.is_hungry() && flow.is_idle(first));
        flow.take(first, 10);
        assert!(!flow.is_hungry());
        let full = Flow::new(PIECE_BYTES, 2, 0..2, PIECE_BYTES);
        full.assign(0, PIECE_BYTES);
        assert!(!full.is_hungry(), "there is no room");
    }

    #[test]
    fn pieces_are_dealt_to_the_least_loaded() {
        let flow = Flow::new(usize::MAX, 3, 0..3, PIECE_BYTES);
        let parsers: Vec<usize> = (0..6).map(|_| flow.assign(1, 10).0).collect();
        assert_eq!(parsers, [2, 0, 1, 2, 0, 1]);
        assert_eq!(flow.assign(0, ENOUGH_BYTES), (1, false));
        assert_eq!(flow.assign(0, ENOUGH_BYTES), (2, false));
        assert_eq!(flow.assign(0, ENOUGH_BYTES), (0, false));
        assert_eq!(flow.assign(0, 1), (1, true), "all have enough");
        let flow = Flow::new(usize::MAX, 4, 2..4, PIECE_BYTES);
        let parsers: Vec<usize> = [0, 1, 2, 3, 3].map(|own| flow.assign(own, 10).0).into();
        assert_eq!(parsers, [2, 3, 3, 2, 2], "only these parse");
    }
}
