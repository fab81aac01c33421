//! Statistics of a term: frequencies, the score of the best posting, the bound of its lists.

use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::TermLists;
use crate::score::bm25::{Bm25, IdfKind, idf, score};
use crate::score::bounds::BoundNorms;
use crate::shown::visible;
use crate::text::fields::field_term;
use serde::Serialize;
use std::fmt::{self, Write};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PostingRow {
    pub docid: u32,
    pub tf: u32,
    pub tokens: u32,
    pub name: String,
}

/// Over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TermStatistics {
    pub term: String,
    pub df: u64,
    /// Occurrences in all documents.
    pub cf: u64,
    pub most_tf: u32,
    /// In the form of Lucene.
    pub idf: f64,
    pub bytes: u64,
    pub runs: usize,
    /// The score of its best posting, for a query that has the term once.
    pub most_score: f32,
    /// The greatest bound of its lists for that; 0 if none of them has one.
    pub bound: f32,
    pub first: Vec<PostingRow>,
}

impl TermStatistics {
    /// Reads all postings of a term and returns the `shown` first; zeros without postings.
    pub(crate) fn new(
        generation: &Generation,
        term: &str,
        bm25: &Bm25,
        shown: usize,
    ) -> Result<Self, IndexError> {
        let lists = TermLists::find(generation, term)?;
        let documents = generation.documents();
        let count = generation.live_documents();
        let fields = generation.manifest().settings.index_fields();
        let (_, field) = fields.split(term.as_bytes());
        let statistics = &generation.manifest().statistics;
        let all_tokens = match field {
            Some(field) => statistics.field_tokens[usize::from(field) - 1],
            None => statistics.tokens,
        };
        let of_field = field.map(|field| generation.field_lengths(field)).transpose()?;
        let mean = all_tokens as f64 / f64::from(count.max(1));
        let df = lists.df(generation)?;
        // An index has fewer than 2^32 documents.
        let idf = if df == 0 { 0.0 } else { idf(count, df as u32, IdfKind::Lucene) };
        let weight = bm25.weight(idf, 1);
        let mut cf = 0;
        let mut most_tf = 0;
        let mut most_score = 0f32;
        let mut first = Vec::new();
        lists.postings(generation, |docids, tfs| {
            for (&docid, &tf) in docids.iter().zip(tfs) {
                cf += u64::from(tf);
                most_tf = most_tf.max(tf);
                let tokens = match &of_field {
                    Some(lengths) => lengths.get(docid as usize).copied(),
                    None => documents.length(docid),
                };
                let tokens = tokens.unwrap_or_default();
                most_score = most_score.max(score(weight, tf, bm25.norm(tokens, mean)));
                if first.len() < shown {
                    first.push(PostingRow { docid, tf, tokens, name: String::new() });
                }
            }
        })?;
        for row in &mut first {
            row.name = String::from_utf8_lossy(&documents.name(row.docid)?).into_owned();
        }
        let norms = BoundNorms::new(bm25, mean);
        let mut bound = 0f32;
        for &(number, entry) in &lists.lists {
            let list = generation.runs()[number].list(entry)?;
            let bounds = list.list_bounds().iter().map(|pairs| norms.most(weight.into(), pairs));
            bound = bounds.fold(bound, f32::max);
        }
        let bytes = lists.bytes();
        let runs = lists.lists.len();
        let term = fields.shown(term);
        Ok(Self { term, df, cf, most_tf, idf, bytes, runs, most_score, bound, first })
    }

    /// The statistics of each term of a word, preceded by those of the word itself if that is a
    /// term: one copied from elsewhere may be the term of no word. Empty if the word makes no term.
    /// Of a word behind the name of a field and a colon those of the terms of the field.
    ///
    /// # Errors
    /// If the index is damaged, or its analysis is unknown.
    pub fn of_word(
        generation: &Generation,
        word: &str,
        bm25: &Bm25,
        shown: usize,
    ) -> Result<Vec<Self>, IndexError> {
        let mut terms = Vec::new();
        let analysis = generation.manifest().analysis(generation.path())?;
        let fields = generation.manifest().settings.index_fields();
        if let Some((number, word)) = fields.of_shown(word) {
            analysis.terms(word.as_bytes(), |term| terms.push(field_term(term, number)));
            return terms.iter().map(|term| Self::new(generation, term, bm25, shown)).collect();
        }
        analysis.terms(word.as_bytes(), |term| terms.push(term.to_string()));
        let is_among = terms.iter().any(|term| term == word);
        if !is_among && !TermLists::find(generation, word)?.lists.is_empty() {
            terms.insert(0, word.to_string());
        }
        terms.iter().map(|term| Self::new(generation, term, bm25, shown)).collect()
    }

    /// As text: a row for each number, and one for each of the first postings.
    pub fn text(&self, generation: &Generation, bm25: &Bm25) -> String {
        let mut text = String::new();
        _ = self.write(&mut text, generation, bm25);
        text
    }

    fn write(&self, to: &mut String, generation: &Generation, bm25: &Bm25) -> fmt::Result {
        let documents = generation.live_documents();
        let Self { term, df, cf, most_tf, idf, bytes, runs, most_score, bound, first } = self;
        writeln!(to, "term      {term}")?;
        writeln!(to, "df        {df} of {documents} documents")?;
        if *df == 0 {
            return Ok(());
        }
        writeln!(to, "cf        {cf}; at most {most_tf} in a document")?;
        writeln!(to, "idf       {idf:.4}")?;
        writeln!(to, "lists     {bytes} bytes in {runs} of {} runs", generation.runs().len())?;
        let k1 = bm25.k1();
        let b = bm25.b();
        write!(to, "score     at most {most_score:.4} (k1 {k1}, b {b})")?;
        if *bound > 0.0 {
            write!(to, "; its bound is {bound:.4}")?;
        }
        writeln!(to, "\n{:>10}  {:>6}  {:>8}  name", "docid", "tf", "tokens")?;
        for PostingRow { docid, tf, tokens, name } in first {
            writeln!(to, "{docid:>10}  {tf:>6}  {tokens:>8}  {}", visible(name))?;
        }
        match df - first.len() as u64 {
            0 => Ok(()),
            more => writeln!(to, "... and {more} more"),
        }
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
        let generation = Generation::open(folder.path()).unwrap();
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
