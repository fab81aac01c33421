//! Where the lists of a search by WAND stand.

/// Where a list stands, and what it may be worth.
#[derive(Clone, Copy, Debug)]
pub(in crate::query) struct Stand {
    /// The list has no posting before this document that matters.
    pub(in crate::query) docid: u32,
    /// Whether its cursor stands at that document.
    pub(in crate::query) is_there: bool,
    pub(in crate::query) term: usize,
    /// What it may add to a score in any document.
    pub(in crate::query) most: f32,
    /// What it may add in the block that was looked at last, or in the whole list.
    pub(in crate::query) block_most: f32,
    /// Number of that block, and its last docid.
    pub(in crate::query) block: usize,
    pub(in crate::query) block_last: u32,
}
