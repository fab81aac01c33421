//! Repetition of a search's stages, to measure what each takes; it changes nothing in the answers.
//!
//! Only the feature `stages` compiles it in, for `cargo run --release -p experiments --
//! cpu-queries`; without it [`Again`] is empty and the loops around the stages vanish.

/// How many extra times each stage is done. The added time of a query is that of the extra stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Decoding of docids and term frequencies.
    #[cfg(feature = "stages")]
    pub decode: u8,
    /// Scoring of postings from their term frequencies.
    #[cfg(feature = "stages")]
    pub score: u8,
}

#[cfg(feature = "stages")]
impl Again {
    #[inline(always)]
    pub(super) fn decode(self) -> u8 {
        self.decode
    }

    #[inline(always)]
    pub(super) fn score(self) -> u8 {
        self.score
    }
}

#[cfg(not(feature = "stages"))]
impl Again {
    #[inline(always)]
    pub(super) const fn decode(self) -> u8 {
        0
    }

    #[inline(always)]
    pub(super) const fn score(self) -> u8 {
        0
    }
}
