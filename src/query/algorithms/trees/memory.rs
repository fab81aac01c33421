//! The memory of searches by trees.

/// The documents of a window, a bit each.
pub(super) type Bits = Vec<u64>;

#[derive(Debug, Default)]
pub(crate) struct TreeMemory {
    /// Bitmaps that are not used.
    pub(super) spare: Vec<Bits>,
    /// By document of the window; arbitrary where none matches.
    pub(super) sums: Vec<f32>,
    /// Of each document, the number of optional parts that match, where two at least have to.
    pub(super) matched: Vec<u32>,
}
