//! How are terms and their postings kept while a run is built?
//!
//! A parser turns each piece into [`group::Group`]s, one for each owner: the [`memo`] gives a
//! surface form its term, the [`tally`] counts postings and lays them out by trie collection. An
//! owner keeps its part of the run in a [`run::RunDictionary`], until the run is encoded as
//! [`closed::ClosedTerms`]. For indexers that take tokens the piece becomes [`stream`]s, and the
//! terms of a run are kept in B-trees, a [`btree::run::BTreeRun`].

pub mod btree;
pub mod closed;
pub mod group;
pub mod hash;
pub mod lengths;
pub mod memo;
pub mod names;
pub mod run;
pub mod short;
pub mod slices;
pub mod stream;
pub mod tally;
