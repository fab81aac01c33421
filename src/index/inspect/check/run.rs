//! Checks a run: its terms, its lists from end to end, and the frequencies of all terms of a
//! document against the document's length.
//!
//! Threads read lists side by side; if they find a problem, one thread reads all again, to tell the
//! problems in order. Threads do not count the tokens of each document, which would make them wait
//! for each other's memory at every posting: they compare two sums over all documents, in each of
//! which a document has a weight of its own.

use super::{BODY, Check, Share};
use crate::crew::Crew;
use crate::index::columns::RunColumns;
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::documents::fields::FieldLengths;
use crate::index::error::IndexError;
use crate::index::format::{
    DELETIONS, FileKind, IMPORTED, MANIFEST, MAX_TERM_BYTES, POSTINGS_SLACK, list_pages, padding,
};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::{LexiconStream, TermRange, parts_of};
use crate::index::positions::PositionsCheck;
use crate::index::run::Run;
use crate::index::texts::check_texts;
use crate::text::fields::{collection_of, split};
use crate::text::trie_collection::implied_prefix;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

const WINDOW_BYTES: usize = 64 << 10;

/// Parts of a run for each thread, so that all end at about the same time.
const PARTS: usize = 16;
/// A term takes as long as lists of this many times its bytes.
const TERM_COST: u64 = 6;

/// The documents' lengths less the term frequencies that were read.
struct TokensLeft {
    /// Of the whole text, then of each field.
    left: Vec<Vec<u32>>,
    /// The first document that has more tokens in the lists than its length, and of which.
    overdrawn: Option<(usize, u32)>,
}

impl TokensLeft {
    fn take(&mut self, of: usize, docids: &[u32], tfs: &[u32]) {
        let Some(left) = self.left.get_mut(of) else { return };
        for (docid, tf) in docids.iter().zip(tfs) {
            match left.get_mut(*docid as usize) {
                Some(left) if *tf <= *left => *left -= tf,
                _ => self.overdrawn = self.overdrawn.or(Some((of, *docid))),
            }
        }
    }
}

/// Sums numbers of documents, modulo 2^64, each with a weight of its document, independent of the
/// others: numbers that are not the same for every document have the same sum once in 2^32 times or
/// less. The weights are splitmix64's (Steele, Lea and Flood, OOPSLA 2014).
fn weighted<'a>(of: usize, numbers: impl Iterator<Item = (u32, &'a u32)>) -> u64 {
    numbers.fold(0, |sum, (docid, &number)| {
        let bits = ((of as u64) << 32 | u64::from(docid))
            .wrapping_add(1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum.wrapping_add((bits ^ (bits >> 31)).wrapping_mul(number.into()))
    })
}

impl Check<'_> {
    pub(crate) fn run(
        &mut self,
        entry: &RunEntry,
        documents: Option<&RunDocuments>,
        deletions: Option<&Arc<Deletions>>,
    ) {
        if let (Some(documents), Some(deletions)) = (documents, deletions) {
            self.deleted_tokens(entry, documents, deletions);
        }
        let Some(run) = self.note(Run::open_unverified(self.generation, entry)) else { return };
        let run = run.without(deletions.cloned().unwrap_or_default());
        self.problems.extend(run.check_form(&self.manifest.settings).err());
        let lexicon = entry.file(FileKind::Lexicon);
        let header = run.lexicon().header();
        self.zeros(&lexicon, BODY + header.block_bytes);
        let lists_end = BODY + header.list_bytes;
        let slack = padding(lists_end) + POSTINGS_SLACK;
        let postings = entry.file(FileKind::Postings);
        self.zero_bytes(&postings, lists_end, slack);
        let sums = 4 * list_pages(header.list_bytes);
        self.zeros(&postings, run.postings_header().sums_start() + sums);
        if let Some(of_run) = run.run_positions() {
            let positions = entry.file(FileKind::Positions);
            let header = of_run.header();
            let end = BODY + header.list_bytes;
            self.zero_bytes(&positions, end, padding(end) + POSTINGS_SLACK);
            self.zeros(&positions, header.sums_start() + 4 * list_pages(header.list_bytes));
        }

        let columns = &self.manifest.settings.columns;
        if !columns.is_empty() {
            let opened = RunColumns::open(self.generation, entry, columns);
            self.problems.extend(opened.and_then(|columns| columns.check()).err());
        }
        let settings = &self.manifest.settings;
        if settings.record_parts() > 0 {
            self.problems.extend(check_texts(self.generation, entry, settings, documents).err());
        }
        let of_fields = self.field_lengths(entry, deletions);
        let lengths = documents.map(|documents| {
            let of_fields = of_fields.iter().map(Vec::as_slice);
            std::iter::once(documents.lengths()).chain(of_fields).collect::<Vec<_>>()
        });
        let lengths = lengths.as_deref();
        if lengths.is_some_and(|lengths| self.lists_are_whole(entry, &run, lengths)) {
            return;
        }
        let left = lengths.map_or(Vec::new(), |of| of.iter().map(|of| of.to_vec()).collect());
        let mut tokens = TokensLeft { left, overdrawn: None };
        let terms = LexiconStream::open(run.lexicon().path(), WINDOW_BYTES);
        let all_read = self.note(terms).is_some_and(|mut terms| {
            let take = |of: usize, docids: &[u32], tfs: &[u32]| tokens.take(of, docids, tfs);
            let all_read = self.lists(entry, &run, &mut terms, lengths, take);
            let positions = run.run_positions().map_or(0, |all| all.header().list_bytes);
            if all_read && terms.position_bytes() != positions {
                let file = entry.file(FileKind::Positions);
                self.damaged(&file, 32, terms.position_bytes().to_string(), positions);
            }
            all_read
        });
        // What a damaged list lacks would be missed in every document.
        if let Some(lengths) = lengths
            && all_read
            && self.has_tokens()
        {
            self.lengths(entry, lengths, &tokens);
        }
    }

    /// The lengths of each field of a run, whose sums are compared with what the manifest has.
    fn field_lengths(
        &mut self,
        entry: &RunEntry,
        deletions: Option<&Arc<Deletions>>,
    ) -> Vec<Vec<u32>> {
        let fields = self.note(FieldLengths::open(self.generation, entry)).flatten();
        let Some(fields) = fields else { return Vec::new() };
        let mut all = Vec::new();
        for (field, &found) in (1..).zip(&entry.field_tokens) {
            let Some(lengths) = self.note(fields.of(field)) else { return all };
            let is_live = |docid| deletions.is_none_or(|deletions| !deletions.contains(docid));
            let live = (0..).zip(&lengths).filter(|(docid, _)| is_live(*docid));
            let tokens: u64 = live.map(|(_, tokens)| u64::from(*tokens)).sum();
            if tokens != found {
                let expected = format!("{tokens} tokens of field {field} of run {}", entry.name);
                self.damaged(MANIFEST, 0, expected, found);
            }
            all.push(lengths);
        }
        let tokens: u64 = all.iter().flatten().map(|tokens| u64::from(*tokens)).sum();
        if tokens != fields.tokens() {
            self.damaged(&entry.file(FileKind::Fields), 24, tokens, fields.tokens());
        }
        all
    }

    /// Whether the lengths of documents are the numbers of their tokens.
    fn has_tokens(&self) -> bool {
        self.manifest.settings.indexer != IMPORTED
    }

    /// Whether threads find nothing wrong with the terms, the lists and the lengths of their
    /// documents. Also false if there is only one thread, or little to read.
    pub(crate) fn lists_are_whole(&self, entry: &RunEntry, run: &Run, lengths: &[&[u32]]) -> bool {
        let lexicon = run.lexicon();
        let Share { threads, least } = self.share;
        if threads < 2 {
            return false;
        }
        let weight = |terms: u64, lists: u64| terms.saturating_mul(TERM_COST).saturating_add(lists);
        let parts = parts_of(lexicon.path(), least, threads * PARTS, weight);
        let Some(parts) = parts.ok().filter(|parts| parts.len() > 1) else { return false };
        let is_wrong = AtomicBool::new(false);
        let sums = [const { AtomicU64::new(0) }; 4];
        let read = |range: TermRange| {
            let mut part = Check { problems: Vec::new(), ..*self };
            let mut terms = LexiconStream::open_range(lexicon.path(), WINDOW_BYTES, &range)?;
            let mut tokens = 0u64;
            let take = |of: usize, docids: &[u32], tfs: &[u32]| {
                tokens = tokens.wrapping_add(weighted(of, docids.iter().copied().zip(tfs)));
            };
            let all_read = part.lists(entry, run, &mut terms, Some(lengths), take);
            let (positions, (terms, postings)) = (terms.position_bytes(), terms.seen());
            for (sum, here) in sums.iter().zip([terms, postings, tokens, positions]) {
                // The sums of tokens wrap around.
                sum.fetch_add(here, Relaxed);
            }
            Ok::<_, IndexError>(all_read && part.problems.is_empty())
        };
        Crew::new("checker").share(threads - 1, parts, |part| {
            if !is_wrong.load(Relaxed) && !read(part).is_ok_and(|is_whole| is_whole) {
                is_wrong.store(true, Relaxed);
            }
        });
        let header = lexicon.header();
        let [terms, postings, tokens, positions] = sums.map(AtomicU64::into_inner);
        let all_positions = run.run_positions().map_or(0, |all| all.header().list_bytes);
        let sum = |(of, lengths): (usize, &&[u32])| weighted(of, (0..).zip(*lengths));
        let all_tokens = lengths.iter().enumerate().map(sum).fold(0, u64::wrapping_add);
        !is_wrong.into_inner()
            && (terms, postings, positions) == (header.terms, header.postings, all_positions)
            && (!self.has_tokens() || tokens == all_tokens)
    }

    /// Reads terms and their lists; false if that was not possible.
    fn lists(
        &mut self,
        entry: &RunEntry,
        run: &Run,
        terms: &mut LexiconStream,
        lengths: Option<&[&[u32]]>,
        mut take: impl FnMut(usize, &[u32], &[u32]),
    ) -> bool {
        let path = run.lexicon().path();
        let counted = &run.deletions().counted;
        // Where the lists of the terms before end.
        let mut all_read = true;
        let mut lists_end = terms.term().list.offset;
        loop {
            let place = terms.position();
            match self.note(terms.advance()) {
                None => return false,
                Some(false) => return all_read,
                Some(true) => {}
            }
            let term = terms.term();
            let fields = entry.field_tokens.len();
            let (_, field) = split(fields, term.suffix);
            let of = field.map_or(0, usize::from);
            if let Some(wrong) = wrong_term(fields, term.collection, term.suffix) {
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
            let start = BODY.saturating_add(term.list.offset);
            let mut deleted = 0;
            let list = term.list;
            let mut wrong = None;
            let of_list = self.note(run.positions(&list)).flatten();
            let block_len = run.postings_header().form.block_len();
            let mut positions = of_list.map(|list| PositionsCheck::new(list, block_len));
            let read = run.list(list).and_then(|list| {
                let each = |docids: &[u32], tfs: &[u32]| {
                    take(of, docids, tfs);
                    if let (Some(positions), None) = (&mut positions, &wrong) {
                        wrong = positions.block(tfs).err();
                    }
                    if counted.len() > 0 {
                        deleted += docids.iter().filter(|id| counted.contains(**id)).count();
                    }
                };
                let lengths = lengths.and_then(|lengths| lengths.get(of).copied());
                list.check(run.documents(), lengths, each)
                    .map_err(IndexError::list(run.postings_path(), start))
            });
            let is_read = self.note(read).is_some();
            if is_read && let Some(of_run) = run.run_positions() {
                let wrong = wrong.or_else(|| positions?.end().err());
                let start = BODY.saturating_add(list.positions);
                let wrong = wrong.map_or(Ok(()), Err);
                self.note(wrong.map_err(IndexError::list(of_run.path(), start)));
            }
            all_read &= is_read;
            let noted = run.deletions().counted_in(&list);
            if is_read && deleted != noted as usize {
                let name = &entry.name;
                let expected = format!("{deleted} postings of the list at {start} of run {name}");
                self.damaged(DELETIONS, BODY, expected, noted);
            }
            if self.full() {
                return false;
            }
        }
    }

    fn lengths(&mut self, entry: &RunEntry, lengths: &[&[u32]], tokens: &TokensLeft) {
        let fields = entry.field_tokens.len();
        // Those of fields lie side by side.
        let place = |of: usize, docid: usize| match of.checked_sub(1) {
            None => (entry.file(FileKind::Lengths), BODY + 2 * docid as u64),
            Some(at) => (entry.file(FileKind::Fields), BODY + 2 * (docid * fields + at) as u64),
        };
        if let Some((of, docid)) = tokens.overdrawn {
            let found = lengths[of].get(docid as usize).copied().unwrap_or(0);
            let expected = format!("more tokens, as run {} has them", entry.name);
            let (file, at) = place(of, docid as usize);
            return self.damaged(&file, at, expected, found);
        }
        for (of, left) in tokens.left.iter().enumerate() {
            let wrong = left.iter().enumerate().find(|(_, left)| **left != 0);
            if let Some((docid, left)) = wrong {
                let found = lengths[of][docid];
                let expected = format!("{} tokens, as run {} has", found - left, entry.name);
                let (file, at) = place(of, docid);
                self.damaged(&file, at, expected, found);
            }
        }
    }
}

pub(crate) fn wrong_term(fields: usize, collection: u16, suffix: &[u8]) -> Option<String> {
    let (prefix, length) = implied_prefix(collection);
    let bytes = [&prefix[..length], suffix].concat();
    let shown = bytes.escape_ascii();
    let Ok(term) = std::str::from_utf8(&bytes) else {
        return Some(format!("`{shown}`, which is not UTF-8"));
    };
    if term.is_empty() || term.len() > MAX_TERM_BYTES {
        return Some(format!("a term of {} bytes", term.len()));
    }
    match collection_of(fields, term) {
        own if own == collection => None,
        own => Some(format!("`{shown}`, which belongs to {own}")),
    }
}
