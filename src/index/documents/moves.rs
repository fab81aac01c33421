//! Documents that lie elsewhere in the input than when their run was written: a generation has them
//! as stretches of neighbouring documents that moved alike (`docs/index-format.md`, Moves), so that
//! an insertion into a file costs one stretch for all that lies behind it.

use super::Location;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length};
use crate::index::generations::manifest::RunEntry;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::Range;
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// Neighbouring documents that moved alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(crate) struct Move {
    docid: u32,
    documents: u32,
    /// The input that they lie in now, by its number in the run.
    pub input: u32,
    /// How many bytes more a record has, modulo 2^32.
    more_bytes: u32,
    /// How far behind its old offset a record begins, modulo 2^64.
    offset: u64,
}

impl Move {
    fn end(&self) -> u32 {
        self.docid.saturating_add(self.documents)
    }

    /// Whether the others follow these and moved alike.
    fn is_before(&self, others: &Self) -> bool {
        let Self { docid, documents, .. } = *self;
        self.end() == others.docid && Self { docid, documents, ..*others } == *self
    }

    /// The documents that moved so.
    pub(crate) fn docids(&self) -> Range<u32> {
        self.docid..self.end()
    }

    fn apply(&self, was: Location) -> Location {
        let offset = was.offset.wrapping_add(self.offset);
        let bytes = was.bytes.wrapping_add(self.more_bytes);
        Location { offset, bytes, input: self.input }
    }
}

/// Where neighbouring documents lie now that lay in one input when their run was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relocated {
    moved: Move,
    was: u32,
}

impl Relocated {
    /// `was` is where the run has the document.
    pub(crate) fn new(docid: u32, was: Location, now: Location) -> Self {
        let more_bytes = now.bytes.wrapping_sub(was.bytes);
        let offset = now.offset.wrapping_sub(was.offset);
        let moved = Move { docid, documents: 1, input: now.input, more_bytes, offset };
        Self { moved, was: was.input }
    }

    /// The first one's.
    pub(crate) fn docid(&self) -> u32 {
        self.moved.docid
    }

    /// Where they lie now.
    pub(crate) fn input(&self) -> u32 {
        self.moved.input
    }

    /// The same documents, counted from `first` on, in an input of another number.
    pub(crate) fn counted_from(self, first: u32, input: u32) -> Self {
        let docid = self.moved.docid - first;
        Self { moved: Move { docid, input, ..self.moved }, ..self }
    }

    /// Adds it behind others, or to the last if that moved alike and ends there.
    pub(crate) fn add_to(self, all: &mut Vec<Self>) {
        match all.last_mut() {
            Some(last) if last.was == self.was && last.moved.is_before(&self.moved) => {
                last.moved.documents += self.moved.documents;
            }
            _ => all.push(self),
        }
    }

    /// Each document, and how far behind its old offset it lies.
    #[cfg(test)]
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, u64)> {
        let offset = self.moved.offset;
        self.moved.docids().map(move |docid| (docid, offset))
    }

    /// None if they lie where their run has them.
    fn moved(&self) -> Option<Move> {
        let Self { moved, was } = *self;
        let is_there = (moved.input, moved.offset, moved.more_bytes) == (was, 0, 0);
        (!is_there).then_some(moved)
    }
}

/// The moves of a run, mapped; none if it has no file of them.
#[derive(Debug, Default)]
pub(crate) struct Moves(Option<Map>);

impl Moves {
    /// `Damaged` unless they are in order and among the documents of the run.
    pub(crate) fn open(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        if run.moves.is_none() {
            return Ok(Self::default());
        }
        let map = Map::open(&run.path(generation, FileKind::Moves))?;
        let header = FileHeader::parse(map.path(), FileKind::Moves, map.bytes())?;
        header.check_unused(map.path(), 1)?;
        let bytes = header.values[0].checked_mul(size_of::<Move>() as u64);
        let expected = bytes.and_then(|bytes| bytes.checked_add(BODY));
        check_length(map.path(), map.bytes().len() as u64, expected)?;
        map.checked(0, map.bytes().len() as u64)?;
        let moves = Self(Some(map));
        let mut free = 0;
        for (at, stretch) in moves.stretches().iter().enumerate() {
            let end = stretch.docid.checked_add(stretch.documents);
            let is_right = stretch.docid >= free && stretch.documents > 0;
            match end.filter(|end| is_right && *end <= run.documents) {
                Some(end) => free = end,
                None => {
                    let at = BODY + (at * size_of::<Move>()) as u64;
                    let expected = format!("documents from {free} to {}", run.documents);
                    let Move { docid, documents, .. } = stretch;
                    let found = format!("{documents} from {docid} on");
                    let path = run.path(generation, FileKind::Moves);
                    return Err(IndexError::damaged(&path, at, expected, found));
                }
            }
        }
        Ok(moves)
    }

    /// Rising.
    pub(crate) fn stretches(&self) -> &[Move] {
        let Some(map) = &self.0 else { return &[] };
        let count = (map.bytes().len() as u64).saturating_sub(BODY) / size_of::<Move>() as u64;
        map.array(BODY, count).unwrap_or(&[])
    }

    pub(super) fn map(&self) -> Option<&Map> {
        self.0.as_ref()
    }

    /// Where a document lies that lay at `was`.
    #[inline]
    pub(crate) fn of(&self, docid: u32, was: Location) -> Location {
        let stretches = self.stretches();
        let behind = stretches.partition_point(|stretch| stretch.docid <= docid);
        let before = behind.checked_sub(1).map(|at| &stretches[at]);
        before.filter(|stretch| docid < stretch.end()).map_or(was, |stretch| stretch.apply(was))
    }

    /// The first stretch that does not end before a document.
    pub(crate) fn first_behind(&self, docid: u32) -> usize {
        self.stretches().partition_point(|stretch| stretch.end() <= docid)
    }

    /// As [`of`](Self::of), for documents by rising docid: `next` is the first stretch that does
    /// not end before them.
    pub(crate) fn next_of(&self, next: &mut usize, docid: u32, was: Location) -> Location {
        let stretches = &self.stretches()[*next..];
        let ended = stretches.iter().take_while(|stretch| stretch.end() <= docid).count();
        *next += ended;
        let here = stretches.get(ended).filter(|stretch| stretch.docid <= docid);
        here.map_or(was, |stretch| stretch.apply(was))
    }

    /// These moves, but some documents, by rising docid, lie where they do now.
    pub(crate) fn with(&self, now: impl IntoIterator<Item = Relocated>) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut old = self.stretches().iter().copied().peekable();
        for now in now {
            let Range { start, end } = now.moved.docids();
            while let Some(stretch) = old.peek_mut().filter(|stretch| stretch.docid < end) {
                let front = stretch.documents.min(start.saturating_sub(stretch.docid));
                add(&mut moves, Move { documents: front, ..*stretch });
                if stretch.end() > end {
                    stretch.documents = stretch.end() - end;
                    stretch.docid = end;
                } else {
                    old.next();
                }
            }
            now.moved().into_iter().for_each(|moved| add(&mut moves, moved));
        }
        old.for_each(|stretch| add(&mut moves, stretch));
        moves
    }
}

/// Adds a stretch behind the others, or to the last if that moved alike and ends there.
fn add(moves: &mut Vec<Move>, stretch: Move) {
    match moves.last_mut().filter(|last| last.is_before(&stretch)) {
        Some(last) => last.documents += stretch.documents,
        None if stretch.documents > 0 => moves.push(stretch),
        None => {}
    }
}

/// Writes the moves of a run for a generation in the folder `generation`.
pub(crate) fn write_moves(
    generation: &Path,
    run: &RunEntry,
    moves: &[Move],
) -> Result<FileEntry, IndexError> {
    let mut file = StorageFile::create(generation, &run.file(FileKind::Moves))?;
    file.write(bytemuck::cast_slice(moves))?;
    let values = [moves.len() as u64, 0, 0, 0, 0];
    file.finish(FileHeader { kind: FileKind::Moves, values, last: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(folder: &Path, documents: u32, moves: &[Move]) -> Result<Moves, IndexError> {
        let name = "000000".to_string();
        let run = RunEntry { name, documents, moves: Some(3), ..RunEntry::default() };
        std::fs::create_dir_all(folder.join("runs")).unwrap();
        _ = std::fs::remove_file(run.path(folder, FileKind::Moves));
        write_moves(folder, &run, moves).unwrap();
        Moves::open(folder, &run)
    }

    proptest! {
        /// A map of all places, in which some are replaced again and again.
        #[test]
        fn oracle_all_places(
            steps in prop::collection::vec(
                prop::collection::btree_map(0u32..60, (0u32..3, 0u64..40, 5u32..8), 0..40), 1..5),
            joins in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let was = |docid: u32| Location { offset: 10 * u64::from(docid), bytes: 6, input: 1 };
            let mut all: Vec<Location> = (0..60).map(was).collect();
            let mut moves = Moves::default();
            for step in steps {
                let now = step.iter().map(|(&docid, &(input, more, bytes))| {
                    // Many move by the same way, and some not at all.
                    let offset = was(docid).offset.wrapping_sub(20).wrapping_add(more / 20 * 20);
                    (docid, Location { offset, bytes, input })
                });
                let now: Vec<_> = now.collect();
                now.iter().for_each(|(docid, now)| all[*docid as usize] = *now);
                let one = |&(docid, now): &(u32, Location)| Relocated::new(docid, was(docid), now);
                let mut stretches = Vec::new();
                // One by one, or neighbours together.
                now.iter().map(one).for_each(|one| match joins {
                    true => one.add_to(&mut stretches),
                    false => stretches.push(one),
                });
                let stretches = moves.with(stretches);
                moves = written(folder.path(), 60, &stretches).unwrap();
                prop_assert_eq!(moves.stretches(), &stretches[..]);
                let mut next = 0;
                for docid in 0..60 {
                    prop_assert_eq!(moves.of(docid, was(docid)), all[docid as usize]);
                    let next = moves.next_of(&mut next, docid, was(docid));
                    prop_assert_eq!(next, all[docid as usize]);
                }
                let alike = stretches.windows(2).any(|two| {
                    let next = Move { docid: two[1].docid, documents: two[1].documents, ..two[0] };
                    two[0].end() == two[1].docid && next == two[1]
                });
                prop_assert!(!alike, "neighbours that moved alike are one stretch");
            }
        }
    }

    #[test]
    fn what_lies_behind_an_insertion_is_one_stretch() {
        let was = |docid: u32| Location { offset: 10 * u64::from(docid), bytes: 10, input: 0 };
        let moved = |docid| Location { offset: was(docid).offset + 7, ..was(docid) };
        let now = (400..1000).map(|docid| Relocated::new(docid, was(docid), moved(docid)));
        let moves = Moves::default().with(now);
        assert_eq!(moves.len(), 1);
        assert_eq!(moves[0].docids(), 400..1000);
    }

    #[test]
    fn moves_of_other_documents_are_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let stretch = |docid, documents| Move { docid, documents, ..Move::default() };
        for (moves, at) in [
            (vec![stretch(5, 6)], 64),
            (vec![stretch(0, 0)], 64),
            (vec![stretch(3, 2), stretch(4, 1)], 88),
            (vec![stretch(3, 2), stretch(1, 1)], 88),
            (vec![stretch(u32::MAX, 2)], 64),
        ] {
            let error = written(folder.path(), 10, &moves).unwrap_err();
            assert!(error.to_string().contains(&format!("byte {at}")), "{error}");
        }
    }
}
