//! How are terms and their postings kept while a run is built?
//!
//! A parser turns each piece into [`group::Group`]s, one for each owner: the [`memo`] gives a
//! surface form its term, the [`tally`] counts postings and lays them out by trie collection. An
//! owner keeps its part of the run in a [`run::RunDictionary`], until the run is encoded.

pub mod group;
pub mod hash;
pub mod lengths;
pub mod memo;
pub mod names;
pub mod run;
pub mod short;
pub mod slices;
pub mod tally;
