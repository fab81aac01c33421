//! Cuts encoded lists into parts that are taken to the host together. The length of each list is
//! known when it is encoded, so that a part has its room in the file before its bytes come. Whoever
//! takes a part puts it there, and lays out what the lexicon has of its terms.

use crate::dictionary::device::forms::OrderedTerms;
use crate::index::files::storage::{FileRoom, FilledFile, ZEROS};
use crate::index::format::list_start;
use crate::index::lexicon::TermCoder;
use crate::index::list::{BLOCK, Form};
use crate::index::run::{ChunkLayout, LaidChunk, padded};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// In the order of the lexicon.
pub(super) struct RunTerms {
    pub(super) order: OrderedTerms,
    pub(super) numbers: u32,
}

#[derive(Clone, Copy)]
struct Last {
    rank: usize,
    suffix: usize,
    /// Of its collection, up to it.
    terms: usize,
}

/// A place behind some lists: where the suffix of the next rank begins, the last term before, and
/// where its list ends among those of the run.
#[derive(Clone, Copy, Default)]
pub(super) struct RankCut {
    suffix: usize,
    last: Option<Last>,
    end: u64,
}

pub(super) struct EncodedRanks<L> {
    pub(super) ranks: Range<usize>,
    /// Postings of each; 0 of terms of which only pieces behind the run have a form.
    pub(super) dfs: Vec<u32>,
    pub(super) places: Vec<u32>,
    pub(super) lists: L,
}

/// Some of them, or some bytes of one that is longer than a part.
pub(super) struct ListPart {
    /// Of the lists that end here.
    ranks: Range<usize>,
    pub(super) bytes: Range<u64>,
    is_of_long: bool,
    behind: RankCut,
    /// In the file, and its beginning among the lists of the run.
    room: FileRoom,
    at: u64,
}

/// Cuts the lists of a run, chunk after chunk, into parts of at most `most` bytes.
pub(super) struct ListCutter {
    most: u64,
    /// Behind the lists that are passed, and the next rank.
    cut: RankCut,
    rank: usize,
    /// Of the open part: what is before it, first rank, and first byte of the chunk and of the run.
    behind: RankCut,
    begin: usize,
    from: u64,
    at: u64,
    /// The end of the list that was passed last, if that is longer than a part.
    long: Option<u64>,
}

impl ListCutter {
    pub(super) fn new(most: u64) -> Self {
        let cut = RankCut::default();
        let behind = RankCut::default();
        Self { most, cut, rank: 0, behind, begin: 0, from: 0, at: 0, long: None }
    }

    fn begin(&mut self, from: u64) {
        self.behind = self.cut;
        self.begin = self.rank;
        self.from = from;
        self.at = self.cut.end;
    }

    /// The next part of a chunk; None when the next chunk may come.
    pub(super) fn part<L>(
        &mut self,
        terms: &RunTerms,
        encoded: &EncodedRanks<L>,
        room: impl FnOnce(u64) -> FileRoom,
    ) -> Option<ListPart> {
        let Range { start: first, end: last } = encoded.ranks;
        let place = |rank: usize| u64::from(encoded.places[rank - first]);
        let (ranks, to, placed, is_of_long) = loop {
            if let Some(end) = self.long {
                if self.from < end {
                    let to = end.min(self.from + self.most);
                    let ranks = self.begin..if to == end { self.rank } else { self.begin };
                    break (ranks, to, self.cut.end - (end - to), true);
                }
                self.long = None;
                self.begin(end);
            }
            let start = place(self.rank);
            if self.rank == last {
                if start > self.from {
                    break (self.begin..last, start, self.cut.end, false);
                }
                self.begin(0);
                return None;
            }
            let end = place(self.rank + 1);
            if end - self.from > self.most && start > self.from {
                break (self.begin..self.rank, start, self.cut.end, false);
            }
            terms.pass(&mut self.cut, self.rank, encoded.dfs[self.rank - first], end - start);
            self.rank += 1;
            if end - self.from > self.most {
                self.long = Some(end);
            }
        };
        let room = room(placed - self.at);
        let bytes = self.from..to;
        let part = ListPart { ranks, bytes, is_of_long, behind: self.behind, room, at: self.at };
        match is_of_long {
            true => (self.from, self.at) = (to, placed),
            false => self.begin(to),
        }
        Some(part)
    }
}

impl RunTerms {
    fn suffix(&self, rank: usize, at: usize) -> &[u8] {
        &self.order.suffixes[at..at + usize::from(self.order.suffix_bytes[rank])]
    }

    fn pass(&self, cut: &mut RankCut, rank: usize, df: u32, bytes: u64) {
        let collections = &self.order.collections;
        if df > 0 {
            let same = cut.last.filter(|last| collections[last.rank] == collections[rank]);
            let terms = 1 + same.map_or(0, |last| last.terms);
            cut.last = Some(Last { rank, suffix: cut.suffix, terms });
            let begin = list_start(cut.end, df, BLOCK as u32);
            cut.end = begin.expect("lists that are in memory have no such places") + bytes;
        }
        cut.suffix += usize::from(self.order.suffix_bytes[rank]);
    }

    pub(super) fn place<L>(
        &self,
        encoded: &EncodedRanks<L>,
        part: ListPart,
        payload: &[u8],
        file: &Arc<FilledFile>,
    ) -> LaidChunk {
        let laid = self.lay(encoded, &part);
        let mut buffer = Vec::new();
        if part.is_of_long {
            // Only before its beginning may be anything else.
            let zeros = part.room.bytes() - payload.len();
            file.fill(part.room, [&ZEROS[..zeros], payload], &mut buffer);
        } else {
            file.fill(part.room, padded(&laid.stretches, part.at, payload), &mut buffer);
        }
        LaidChunk { placed: Some(file.clone()), ..laid }
    }

    fn lay<L>(&self, encoded: &EncodedRanks<L>, part: &ListPart) -> LaidChunk {
        let coder = part.behind.last.map_or_else(TermCoder::default, |last| {
            let collection = self.order.collections[last.rank];
            TermCoder::behind(collection, self.suffix(last.rank, last.suffix), last.terms)
        });
        let mut layout = ChunkLayout::behind(Form::BP128, coder);
        let mut at = part.behind.suffix;
        let mut payload_bytes = 0;
        for rank in part.ranks.clone() {
            let suffix = self.suffix(rank, at);
            at += suffix.len();
            let n = rank - encoded.ranks.start;
            let df = encoded.dfs[n];
            if df > 0 {
                let bytes = encoded.places[n + 1] - encoded.places[n];
                payload_bytes += bytes as usize;
                let term = (self.order.collections[rank], suffix);
                let laid = layout.list(term, df, bytes.into(), payload_bytes);
                laid.expect("terms of a run come in order");
            }
        }
        layout.take(Vec::new())
    }
}

/// Reorders chunks, which are made in any order, by their numbers.
pub(super) struct InOrder<F> {
    next: usize,
    waiting: BTreeMap<usize, LaidChunk>,
    emit: F,
}

impl<F: FnMut(LaidChunk)> InOrder<F> {
    pub(super) fn new(emit: F) -> Self {
        Self { next: 0, waiting: BTreeMap::new(), emit }
    }

    pub(super) fn give(&mut self, number: usize, chunk: LaidChunk) {
        self.waiting.insert(number, chunk);
        while let Some(chunk) = self.waiting.remove(&self.next) {
            (self.emit)(chunk);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::run::{NewRun, RunWriter, WrittenRun};
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;

    /// Whether a collection begins with it, postings, and bytes of its list.
    type Rank = (bool, u32, usize);

    fn ranks() -> impl Strategy<Value = Vec<Rank>> {
        let df = prop_oneof![Just(0u32), 1u32..128, 128u32..2000];
        let bytes = prop_oneof![1usize..40, Just(100), 90usize..700];
        prop::collection::vec((prop::bool::weighted(0.2), df, bytes), 0..60)
    }

    fn terms(ranks: &[Rank]) -> RunTerms {
        let mut order = OrderedTerms::default();
        let mut collection = 3;
        for (n, &(begins, _, _)) in ranks.iter().enumerate() {
            collection += u16::from(begins);
            let suffix = format!("{n:03}").repeat(1 + n % 3);
            order.numbers.push(n as u32);
            order.collections.push(collection);
            order.suffix_bytes.push(suffix.len() as u8);
            order.suffixes.extend_from_slice(suffix.as_bytes());
        }
        RunTerms { order, numbers: ranks.len() as u32 }
    }

    /// Lexicon and postings.
    fn run(folder: &Path, chunks: Vec<LaidChunk>) -> (WrittenRun, [Vec<u8>; 2]) {
        let lists = chunks.first().and_then(|chunk| chunk.placed.clone());
        let new = NewRun { lists, ..NewRun::alone(folder, 0, Form::BP128) };
        let mut run = RunWriter::create(new, vec![0]).unwrap();
        for chunk in chunks {
            run.take(0, chunk);
            assert!(!run.write().unwrap());
        }
        run.take(0, LaidChunk { ends: true, ..LaidChunk::default() });
        assert!(run.write().unwrap());
        let written = run.finish(0, 5000).unwrap();
        let read = |name| fs::read(folder.join("runs").join(name)).unwrap();
        (written, ["000000.lexicon", "000000.postings"].map(read))
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runs")).unwrap();
        folder
    }

    proptest! {
        #[test]
        fn law_lists_that_are_placed_are_the_run_of_their_payload(
            ranks in ranks(),
            most in prop_oneof![Just(1u64), Just(100), 20u64..3000],
            cuts in prop::collection::vec(0usize..60, 0..4),
            turn in 0usize..7,
        ) {
            let terms = terms(&ranks);
            let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 / 5) as u8 | 1).collect();
            let mut at = 0;
            let lists: Vec<&[u8]> = ranks.iter().map(|&(_, df, len)| {
                let list = &bytes[at..at + if df > 0 { len } else { 0 }];
                at += list.len();
                list
            }).collect();
            let mut layout = ChunkLayout::new(Form::BP128);
            let mut suffix = 0;
            let mut payload = Vec::new();
            for (rank, list) in lists.iter().enumerate() {
                let here = terms.suffix(rank, suffix);
                suffix += here.len();
                let collection = terms.order.collections[rank];
                let df = ranks[rank].1;
                payload.extend_from_slice(list);
                if df > 0 {
                    layout.list((collection, here), df, list.len() as u64, payload.len()).unwrap();
                }
            }
            let whole = layout.take(payload);
            let expected = run(folder().path(), vec![whole]);

            let folder = folder();
            let file = Arc::new(FilledFile::create(folder.path(), "runs/000000.postings").unwrap());
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(ranks.len())).collect();
            ends.push(ranks.len());
            ends.sort_unstable();
            let mut begin = 0;
            let mut cutter = ListCutter::new(most);
            let mut chunks = Vec::new();
            for end in ends {
                let mut places = vec![0];
                for list in &lists[begin..end] {
                    places.push(places.last().unwrap() + list.len() as u32);
                }
                let dfs = ranks[begin..end].iter().map(|rank| rank.1).collect();
                let encoded = EncodedRanks { ranks: begin..end, dfs, places, lists: () };
                let payload = lists[begin..end].concat();
                begin = end;
                let mut parts = Vec::new();
                while let Some(part) = cutter.part(&terms, &encoded, |bytes| file.room(bytes)) {
                    parts.push(part);
                }
                prop_assert!(parts.iter().all(|part| part.bytes.end - part.bytes.start <= most));
                let mut placed: Vec<_> = parts.into_iter().enumerate().collect();
                let count = placed.len();
                placed.sort_by_key(|(n, _)| n * 5 % 7 != turn);
                let mut here: Vec<Option<LaidChunk>> = vec![None; count];
                for (n, part) in placed {
                    let payload = &payload[part.bytes.start as usize..part.bytes.end as usize];
                    here[n] = Some(terms.place(&encoded, part, payload, &file));
                }
                chunks.extend(here.into_iter().map(Option::unwrap));
            }
            drop(file);
            if chunks.is_empty() {
                fs::remove_file(folder.path().join("runs/000000.postings")).unwrap();
            }
            let found = run(folder.path(), chunks);
            prop_assert!(found == expected);
        }
    }
}
