//! What does an index have of a term: how often it occurs, what its postings are worth at most, and what the
//! lists say that they are worth?

use crate::index::browse::TermLists;
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::score::bm25::{Bm25, IdfKind, idf, score};
use crate::score::bounds::BoundNorms;
use serde::Serialize;

/// A posting, and the length of its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PostingRow {
    /// The document.
    pub docid: u32,
    /// How often it has the term.
    pub tf: u32,
    /// Its indexed tokens.
    pub tokens: u32,
}

/// What there is of a term in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TermStatistics {
    /// The term.
    pub term: String,
    /// Documents that have it.
    pub df: u64,
    /// How often it occurs in all of them.
    pub cf: u64,
    /// The greatest term frequency of a document.
    pub most_tf: u32,
    /// Its inverse document frequency, in the form of Lucene.
    pub idf: f64,
    /// Bytes of its lists.
    pub bytes: u64,
    /// Runs that have a list of it.
    pub runs: usize,
    /// The score of its best posting, for a query that has the term once.
    pub most_score: f32,
    /// The greatest bound that its lists have for that; 0 if none of them has one.
    pub bound: f32,
    /// Its first postings.
    pub first: Vec<PostingRow>,
}

impl TermStatistics {
    /// Reads all postings of a term, and keeps the `shown` first ones. Without postings all numbers are 0.
    ///
    /// # Errors
    /// When the index is damaged.
    pub fn new(
        generation: &Generation,
        term: &str,
        bm25: &Bm25,
        shown: usize,
    ) -> Result<Self, IndexError> {
        let lists = TermLists::find(generation, term)?;
        let documents = generation.documents();
        let mean =
            generation.manifest().statistics.tokens as f64 / f64::from(documents.len().max(1));
        let df = lists.df();
        // An index has fewer than 2^32 documents.
        let idf = if df == 0 { 0.0 } else { idf(documents.len(), df as u32, IdfKind::Lucene) };
        let weight = bm25.weight(idf, 1);
        let (mut cf, mut most_tf, mut most_score, mut first) = (0, 0, 0f32, Vec::new());
        lists.postings(generation, |docids, tfs| {
            for (&docid, &tf) in docids.iter().zip(tfs) {
                cf += u64::from(tf);
                most_tf = most_tf.max(tf);
                let tokens = documents.lengths()[docid as usize];
                most_score = most_score.max(score(weight, tf, bm25.norm(tokens, mean)));
                if first.len() < shown {
                    first.push(PostingRow { docid, tf, tokens });
                }
            }
        })?;
        let (norms, mut bound) = (BoundNorms::new(bm25, mean), 0f32);
        for &(number, entry) in &lists.lists {
            let list = generation.runs()[number].list(entry)?;
            let bounds = list.list_bounds().iter().map(|pairs| norms.most(weight.into(), pairs));
            bound = bounds.fold(bound, f32::max);
        }
        let (bytes, runs) = (lists.bytes(), lists.lists.len());
        let term = term.to_string();
        Ok(Self { term, df, cf, most_tf, idf, bytes, runs, most_score, bound, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection};

    #[test]
    fn what_is_said_is_what_was_indexed() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(16, 400, 20);
        build(folder.path(), &collection, &[130]);
        let generation = Generation::open(folder.path(), true).unwrap();
        for term in collection[0].keys() {
            let found = TermStatistics::new(&generation, term, &Bm25::default(), 3).unwrap();
            let postings: Vec<(u32, u32)> = (0..)
                .zip(&collection)
                .filter_map(|(docid, terms)| Some((docid, *terms.get(term)?)))
                .collect();
            assert_eq!(found.df, postings.len() as u64);
            assert_eq!(found.cf, postings.iter().map(|&(_, tf)| u64::from(tf)).sum::<u64>());
            assert_eq!(Some(found.most_tf), postings.iter().map(|&(_, tf)| tf).max());
            let first: Vec<_> = found.first.iter().map(|row| (row.docid, row.tf)).collect();
            assert_eq!(first, postings[..postings.len().min(3)]);
            assert!(found.most_score > 0.0);
            assert!(found.bound == 0.0 || found.bound >= found.most_score, "{found:?}");
        }
        let none = TermStatistics::new(&generation, "nowhere", &Bm25::default(), 3).unwrap();
        assert_eq!((none.df, none.cf, none.runs, none.bound), (0, 0, 0, 0.0));
    }
}
