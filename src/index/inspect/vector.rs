//! The terms of a document, which are looked for in all lists of its run.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::generations::generation::Generation;
use crate::index::lexicon::LexiconStream;
use crate::index::list::SegmentColumns;
use crate::text::trie_collection::implied_prefix;
use serde::{Serialize, Serializer};

const WINDOW_BYTES: usize = 64 << 10;

/// The terms of a document and how often it has each, in the order of `dump`; in an index of
/// vectors their impacts. An object in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentVector(pub Vec<(String, u32)>);

impl DocumentVector {
    /// Takes the time of a look into one block of every list of the document's run, and, where
    /// these lists are read for the first time, that of their checksums.
    ///
    /// # Errors
    /// `Damaged`, `List`.
    pub fn of(generation: &Generation, docid: u32) -> Result<Self, IndexError> {
        let Some((number, own)) = generation.place(docid) else { return Ok(Self::default()) };
        let run = &generation.runs()[number];
        let fields = generation.manifest().settings.index_fields();
        let mut columns = SegmentColumns::default();
        let (mut docids, mut tfs, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut stream = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
        while stream.advance()? {
            let term = stream.term();
            let list = run.list(term.list)?;
            let block = list.last_docids().partition_point(|&last| u32::from_le_bytes(last) < own);
            docids.resize(list.block_len(), 0);
            tfs.resize(list.block_len(), 0);
            columns.close();
            let start = HEADER_BYTES as u64 + term.list.offset;
            let count = list
                .decode_postings(block, run.documents(), &mut columns, &mut docids, &mut tfs)
                .map_err(IndexError::list(run.postings_path(), start))?;
            if let Ok(at) = docids[..count].binary_search(&own) {
                let (prefix, length) = implied_prefix(term.collection);
                let term = [&prefix[..length], term.suffix].concat();
                found.push((fields.shown(&String::from_utf8_lossy(&term)), tfs[at]));
            }
        }
        Ok(Self(found))
    }

    /// A line for each term, and its frequency behind a tab.
    #[must_use]
    pub fn lines(&self) -> String {
        self.0.iter().map(|(term, tf)| format!("{term}\t{tf}\n")).collect()
    }
}

impl Serialize for DocumentVector {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(term, tf)| (term, tf)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection};

    #[test]
    fn oracle_vectors_are_those_of_the_documents() {
        let collection = collection(16, 400, 200);
        for cuts in [&[][..], &[0, 130, 300]] {
            let folder = tempfile::tempdir().unwrap();
            build(folder.path(), &collection, cuts);
            let generation = Generation::open(folder.path()).unwrap();
            for (docid, terms) in (0..).zip(&collection) {
                let mut found = DocumentVector::of(&generation, docid).unwrap().0;
                found.sort();
                let expected: Vec<_> = terms.iter().map(|(term, &tf)| (term.clone(), tf)).collect();
                assert_eq!(found, expected, "{docid}");
            }
            assert!(DocumentVector::of(&generation, 400).unwrap().0.is_empty());
        }
    }
}
