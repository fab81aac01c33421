//! Is a run whole? Its terms, its lists from end to end, and the frequencies of all terms of a
//! document against the document's length.

#![forbid(unsafe_code)]

use super::{BODY, Check};
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::format::{
    IMPORTED, Kind, MAX_TERM_BYTES, POSTINGS_SLACK, list_pages, padding, run_file,
};
use crate::index::lexicon::LexiconStream;
use crate::index::manifest::RunEntry;
use crate::index::run::Run;
use crate::text::trie_collection::{implied_prefix, trie_collection};

/// Bytes of the window on the lexicon.
const WINDOW_BYTES: usize = 64 << 10;

/// What is left of the documents' lengths when the term frequencies that were read are taken away.
struct Tokens {
    left: Vec<u32>,
    /// The first document of whose length more was taken than there is.
    overdrawn: Option<u32>,
}

impl Tokens {
    fn take(&mut self, docids: &[u32], tfs: &[u32]) {
        for (docid, tf) in docids.iter().zip(tfs) {
            match self.left.get_mut(*docid as usize) {
                Some(left) if *tf <= *left => *left -= tf,
                _ => self.overdrawn = self.overdrawn.or(Some(*docid)),
            }
        }
    }
}

impl Check<'_> {
    /// Checks one run.
    pub(super) fn run(
        &mut self,
        entry: &RunEntry,
        documents: Option<&RunDocuments>,
        deletions: Option<&Deletions>,
    ) {
        if let (Some(documents), Some(deletions)) = (documents, deletions) {
            self.deleted_tokens(entry, documents, deletions);
        }
        let Some(run) = self.note(Run::open_unverified(self.generation, entry)) else { return };
        self.problems.extend(run.check_form(&self.manifest.settings).err());
        let lexicon = run_file(&entry.name, Kind::Lexicon);
        let header = run.lexicon().header();
        self.zeros(&lexicon, BODY + header.block_bytes);
        let lists_end = BODY + header.list_bytes;
        let slack = padding(lists_end) + POSTINGS_SLACK;
        let postings = run_file(&entry.name, Kind::Postings);
        self.zero_bytes(&postings, lists_end, slack);
        let sums = 4 * list_pages(header.list_bytes);
        self.zeros(&postings, run.postings_header().sums_start() + sums);

        let lengths = documents.map(RunDocuments::lengths);
        let left = lengths.map_or_else(Vec::new, <[u32]>::to_vec);
        let mut tokens = Tokens { left, overdrawn: None };
        let all_read = self.lists((entry, &run), lengths, &mut tokens);
        // What a damaged list lacks would be missed in every document.
        if let Some(lengths) = lengths
            && all_read
            && self.manifest.settings.indexer != IMPORTED
        {
            self.lengths(entry, lengths, &tokens);
        }
    }

    /// Reads all terms and their lists; tells whether that was possible.
    fn lists(
        &mut self,
        (entry, run): (&RunEntry, &Run),
        lengths: Option<&[u32]>,
        tokens: &mut Tokens,
    ) -> bool {
        let path = run.lexicon().path();
        let Some(mut terms) = self.note(LexiconStream::open(path, WINDOW_BYTES)) else {
            return false;
        };
        let (mut all_read, mut lists_end) = (true, 0);
        loop {
            let place = terms.position();
            match self.note(terms.advance()) {
                None => return false,
                Some(false) => return all_read,
                Some(true) => {}
            }
            let term = terms.term();
            if let Some(wrong) = wrong_term(term.collection, term.suffix) {
                let expected = format!("a term of trie collection {}", term.collection);
                let error = IndexError::damaged(path, place, expected, wrong);
                self.note(Err::<(), _>(error));
            }
            let gap = run.list_bytes(lists_end, term.list.offset);
            if let Some(gap) = self.note(gap)
                && let Some(at) = gap.iter().position(|byte| *byte != 0)
            {
                let at = BODY + lists_end + at as u64;
                let path = run.postings_path();
                let error = IndexError::damaged(path, at, "a zero byte of padding", "another");
                self.note(Err::<(), _>(error));
            }
            lists_end = term.list.offset.saturating_add(term.list.bytes);
            self.watched.pass(term.list.bytes);
            let start = BODY + term.list.offset;
            let (mut deleted, list) = (0, term.list);
            let read = run.list(list).and_then(|list| {
                let each = |docids: &[u32], tfs: &[u32]| {
                    tokens.take(docids, tfs);
                    if let Some(deletions) = run.deletions() {
                        deleted += docids.iter().filter(|id| deletions.contains(**id)).count();
                    }
                };
                list.check(run.documents(), lengths, each)
                    .map_err(IndexError::list(run.postings_path(), start))
            });
            let is_read = self.note(read).is_some();
            all_read &= is_read;
            let noted = run.deletions().map_or(0, |deletions| deletions.of_list(&list));
            if is_read && deleted != noted as usize {
                let expected = format!("{deleted} postings of the list at {start}");
                self.damaged(&run_file(&entry.name, Kind::Deletions), BODY, expected, noted);
            }
            if self.full() {
                return false;
            }
        }
    }

    /// Compares the lengths of the run's documents with what the lists have left of them.
    fn lengths(&mut self, entry: &RunEntry, lengths: &[u32], tokens: &Tokens) {
        let place = |docid: usize| BODY + 2 * docid as u64;
        let file = run_file(&entry.name, Kind::Lengths);
        if let Some(docid) = tokens.overdrawn {
            let found = lengths.get(docid as usize).copied().unwrap_or(0);
            let expected = format!("more tokens, as run {} has them", entry.name);
            return self.damaged(&file, place(docid as usize), expected, found);
        }
        let wrong = tokens.left.iter().enumerate().find(|(_, left)| **left != 0);
        if let Some((docid, left)) = wrong {
            let expected = format!("{} tokens, as run {} has", lengths[docid] - left, entry.name);
            self.damaged(&file, place(docid), expected, lengths[docid]);
        }
    }
}

/// Says what is wrong with a term, if anything is.
pub(super) fn wrong_term(collection: u16, suffix: &[u8]) -> Option<String> {
    let (prefix, length) = implied_prefix(collection);
    let bytes = [&prefix[..length], suffix].concat();
    let shown = bytes.escape_ascii();
    let Ok(term) = std::str::from_utf8(&bytes) else {
        return Some(format!("`{shown}`, which is not UTF-8"));
    };
    if term.is_empty() || term.len() > MAX_TERM_BYTES {
        return Some(format!("a term of {} bytes", term.len()));
    }
    match trie_collection(term) {
        own if own == collection => None,
        own => Some(format!("`{shown}`, which belongs to {own}")),
    }
}
