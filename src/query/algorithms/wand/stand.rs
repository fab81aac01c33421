//! Where the lists of a search by WAND stand.

/// Where a list stands, and what it may be worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    /// The list has no posting before this document that matters.
    pub(crate) docid: u32,
    /// Whether its cursor stands at that document.
    pub(crate) is_there: bool,
    pub(crate) term: usize,
    /// What it may add to a score in any document.
    pub(crate) most: f32,
    /// What it may add in the block that was looked at last, or in the whole list.
    pub(crate) block_most: f32,
    /// Number of that block, and its last docid.
    pub(crate) block: usize,
    pub(crate) block_last: u32,
}
