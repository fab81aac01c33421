//! The part of one piece for one owner: the paper's regrouped stream (wei11, section III.C, step
//! 5), with postings in the place of tokens.

use crate::dictionary::strings::suffix::Suffix;
use crate::order::PieceCounts;
use std::sync::Arc;

/// One term of one piece: its string and its postings.
#[derive(Clone, Copy, Debug)]
pub struct GroupTerm {
    /// [`hash`](crate::dictionary::strings::hash::hash) of the whole term.
    pub hash: u64,
    /// First document with the term, counted from the piece's first.
    pub first: u32,
    pub first_tf: u32,
    pub last: u32,
    pub postings: u32,
    /// Bytes in [`TermGroup::lists`]: the postings behind the first.
    pub list_bytes: u32,
    pub suffix: Suffix,
}

/// The terms of one piece that belong to one owner, in order of appearance, and what every owner
/// must know of the piece. A term's string travels with every piece that has it: sending it once
/// for each parser would save a fifth of these bytes, and needs tables that follow runs, parsers
/// and the order of pieces.
#[derive(Default)]
pub struct TermGroup {
    pub owner: u32,
    /// For the owner's sequencer.
    pub counts: Arc<PieceCounts>,
    /// The codes of its documents' lengths (`score::bounds`), and behind them those of each field.
    pub lengths: Arc<[u8]>,
    pub terms: Vec<GroupTerm>,
    /// Of the terms with long ones.
    pub suffixes: Vec<u8>,
    /// The postings behind the first of each term, end to end, as in a run's tail:
    /// `docs/index-format.md`.
    pub lists: Vec<u8>,
    /// The positions of each term, end to end, in a run that has them: of each posting the first
    /// position, then the gaps between the others, as vbytes. And of each term how many bytes.
    pub positions: Vec<u8>,
    pub position_bytes: Vec<u32>,
}
