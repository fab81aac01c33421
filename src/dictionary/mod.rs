//! Terms and their postings while a run is built.
//!
//! A parser turns each piece into groups, one for each of the [`owners`] of trie collections: the
//! [`memo`] gives a surface form its term, the `counter` counts, and the counts are laid out as
//! [`parsed`] says: [`tally`] makes postings, [`group::TermGroup`]. An owner keeps its part of the
//! run in a [`run::RunDictionary`] until the run is encoded as [`closed::ClosedTerms`]; an indexer
//! that is handed in has groups and a keeping of its own. For a device that turns whole texts into
//! lists, [`texts`](device::texts) are its input, [`forms`](device::forms) its terms, short ones by
//! their [`codes`](strings::codes), and [`inverted`](device::inverted) its result.

pub(crate) mod closed;
pub(crate) mod counter;
pub(crate) mod device;
pub(crate) mod group;
pub(crate) mod indexer;
pub(crate) mod lengths;
pub(crate) mod memo;
pub(crate) mod owners;
pub(crate) mod parsed;
mod positions;
pub(crate) mod run;
pub(crate) mod shared;
pub(crate) mod slices;
pub(crate) mod strings;
pub(crate) mod tally;
pub(crate) mod vector;
