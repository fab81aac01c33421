//! How is it measured what a stage of a search takes? It is done several times, which changes
//! nothing that is found.
//!
//! Only the feature `stages` compiles that in, for `cargo run --release -p experiments --
//! cpu-queries`. Without it every stage is done once, [`Again`] is empty, and the loops around the
//! stages are none.

/// How many times more than once a stage of a search is done. What that adds to the time of a query
/// is what the stage takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// Docids and term frequencies of blocks are decoded.
    #[cfg(feature = "stages")]
    pub decode: u8,
    /// Postings are scored from their term frequencies.
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
