//! Walks through the terms and postings of a generation, for tools that look into an index.

use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::generations::generation::Generation;
use crate::index::lexicon::{LexiconStream, TermEntry};
use crate::index::positions::PositionsCheck;
use crate::text::fields::collection_of;
use crate::text::trie_collection::{implied_prefix, implied_prefix_len};

const WINDOW_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermLists {
    pub term: Vec<u8>,
    /// By rising number of the run. A list may have postings of deleted documents.
    pub lists: Vec<(usize, TermEntry)>,
}

impl TermLists {
    /// Without a list the term is in no document. Lists of deleted documents alone are left out.
    pub fn find(generation: &Generation, term: &str) -> Result<Self, IndexError> {
        let collection = collection_of(generation.manifest().settings.fields.len(), term);
        let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
        let mut lists = Vec::new();
        for (number, run) in generation.runs().iter().enumerate() {
            match run.lexicon().find(collection, suffix)? {
                Some(entry) if run.live_df(&entry)? > 0 => lists.push((number, entry)),
                _ => {}
            }
        }
        Ok(Self { term: term.as_bytes().to_vec(), lists })
    }

    /// Documents with the term.
    pub fn df(&self, generation: &Generation) -> Result<u64, IndexError> {
        let df = |(number, entry): &(usize, TermEntry)| {
            generation.runs()[*number].count_live(entry).map(u64::from)
        };
        self.lists.iter().map(df).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lists.iter().map(|(_, entry)| entry.bytes).sum()
    }

    /// Calls `each` with docids of the generation and term frequencies, a block at a time, by
    /// docid. Deleted documents are left out.
    pub fn postings(
        &self,
        generation: &Generation,
        mut each: impl FnMut(&[u32], &[u32]),
    ) -> Result<(), IndexError> {
        self.read(generation, false, |docids, tfs, _| each(docids, tfs))
    }

    /// The same, and behind docids and term frequencies the positions of all, posting after
    /// posting; none in an index without positions.
    pub(crate) fn positions(
        &self,
        generation: &Generation,
        each: impl FnMut(&[u32], &[u32], &[u32]),
    ) -> Result<(), IndexError> {
        self.read(generation, true, each)
    }

    fn read(
        &self,
        generation: &Generation,
        with_positions: bool,
        mut each: impl FnMut(&[u32], &[u32], &[u32]),
    ) -> Result<(), IndexError> {
        let mut live = (Vec::new(), Vec::new(), Vec::new());
        for &(number, entry) in &self.lists {
            let run = &generation.runs()[number];
            let first = run.first_docid();
            let start = HEADER_BYTES as u64 + entry.offset;
            let of_list = if with_positions { run.positions(&entry)? } else { None };
            let block_len = run.postings_header().form.block_len();
            let mut checked = of_list.map(|list| PositionsCheck::new(list, block_len));
            let mut wrong = Ok(());
            run.list(entry)?
                .check(run.documents(), None, |docids, tfs| {
                    live.0.clear();
                    live.1.clear();
                    live.2.clear();
                    let values = checked.as_mut().map_or(Ok(&[][..]), |list| list.block(tfs));
                    let mut values = values.unwrap_or_else(|error| {
                        wrong = Err(error);
                        &[]
                    });
                    for (docid, tf) in docids.iter().zip(tfs) {
                        let own = values.split_off(..*tf as usize).unwrap_or(&[]);
                        if !run.deletions().contains(*docid) {
                            live.0.push(first + docid);
                            live.1.push(*tf);
                            live.2.extend(own.iter().scan(0, |sum, value| {
                                *sum += value;
                                Some(*sum)
                            }));
                        }
                    }
                    each(&live.0, &live.1, &live.2);
                })
                .map_err(IndexError::list(run.postings_path(), start))?;
            if let Some(of_run) = run.run_positions() {
                let start = (HEADER_BYTES as u64).saturating_add(entry.positions);
                wrong.map_err(IndexError::list(of_run.path(), start))?;
            }
        }
        Ok(())
    }
}

/// Calls `each` with every term, by trie collection, then by bytes, until it returns an error. A
/// term of deleted documents alone comes too, with a df of 0.
/// Memory: 64 KiB for each run.
pub(crate) fn for_each_term<E: From<IndexError>>(
    generation: &Generation,
    mut each: impl FnMut(&TermLists) -> Result<(), E>,
) -> Result<(), E> {
    let mut streams = Vec::new();
    for (number, run) in generation.runs().iter().enumerate() {
        let mut stream = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES)?;
        if stream.advance()? {
            streams.push((number, stream));
        }
    }
    let mut found = TermLists::default();
    let mut suffix: Vec<u8> = Vec::new();
    loop {
        let key = |stream: &LexiconStream| {
            let term = stream.term();
            (term.collection, term.suffix.to_vec())
        };
        let least = streams.iter().map(|(_, stream)| key(stream)).min();
        let Some((collection, least)) = least else { return Ok(()) };
        suffix.clone_from(&least);
        let (prefix, length) = implied_prefix(collection);
        found.term.clear();
        found.term.extend_from_slice(&prefix[..length]);
        found.term.extend_from_slice(&suffix);
        found.lists.clear();
        let mut at = 0;
        while let Some((number, stream)) = streams.get_mut(at) {
            let term = stream.term();
            if term.collection != collection || term.suffix != suffix {
                at += 1;
                continue;
            }
            found.lists.push((*number, term.list));
            if stream.advance()? {
                at += 1;
            } else {
                streams.remove(at);
            }
        }
        each(&found)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection};
    use std::collections::BTreeMap;

    #[test]
    fn all_terms_and_postings_are_there() {
        for cuts in [&[][..], &[0, 130, 300]] {
            let folder = tempfile::tempdir().unwrap();
            let collection = collection(16, 400, 200);
            build(folder.path(), &collection, cuts);
            let generation = Generation::open(folder.path()).unwrap();
            let mut found: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
            for_each_term::<IndexError>(&generation, |lists| {
                let term = String::from_utf8(lists.term.clone()).unwrap();
                let mut postings = Vec::new();
                lists.postings(&generation, |docids, tfs| {
                    postings.extend(docids.iter().copied().zip(tfs.iter().copied()));
                })?;
                assert_eq!(lists.df(&generation)?, postings.len() as u64);
                assert_eq!(&TermLists::find(&generation, &term)?, lists);
                assert!(found.insert(term, postings).is_none(), "a term comes once");
                Ok(())
            })
            .unwrap();
            let mut expected: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
            for (docid, terms) in (0..).zip(&collection) {
                for (term, &tf) in terms {
                    expected.entry(term.clone()).or_default().push((docid, tf));
                }
            }
            assert!(found == expected);
            assert!(TermLists::find(&generation, "nowhere").unwrap().lists.is_empty());
        }
    }
}
