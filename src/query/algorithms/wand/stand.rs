//! The places of the lists of a search by WAND.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stand {
    /// The list has no wanted posting before this document.
    pub(crate) docid: u32,
    /// Whether its cursor stands at that document.
    pub(crate) is_there: bool,
    pub(crate) term: usize,
    /// The most that it adds to a score.
    pub(crate) most: f32,
    /// The most that it adds in the last block that was looked at, or in the whole list.
    pub(crate) block_most: f32,
    pub(crate) block: usize,
    pub(crate) block_last: u32,
}
