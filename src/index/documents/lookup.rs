//! The docids of a run by hashes of their names, so that who has a name is a look-up
//! (`docs/index-format.md`, Documents). The names themselves decide: a hash has 32 bits.
//!
//! Hashes come from any threads, in a column by docid that lies in a file without a name. Then the
//! docids are written in parts, each of which has as many neighbouring hashes as fit in memory and
//! is found in a pass over the column; some threads do that, for a build waits for it.

#[cfg(test)]
mod tests;

use super::ramps::RampWindow;
use crate::crew::{Crew, cores};
use crate::fault;
use crate::index::deletions::{Deletions, LiveRun};
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::packed::{self, FilePlace};
use crate::index::files::storage::{FileEntry, FilledFile, StorageFile};
use crate::index::files::window::FileWindow;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, run_file, run_name};
use crate::index::generations::manifest::RunEntry;
use std::fs::File;
use std::ops::{Range, RangeInclusive};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use twox_hash::{XxHash3_64, XxHash3_128};

const BODY: u64 = HEADER_BYTES as u64;

/// A hash and a docid.
type LookupPair = [u32; 2];

const PAIR_BYTES: u64 = size_of::<LookupPair>() as u64;

/// Pairs that a thread sorts in memory: this many, or a part of all.
const LEAST_SORTED: u32 = if cfg!(test) { 16 } else { 1 << 16 };
const SORTED_PART: u32 = 16;

/// Threads at most.
const SORTERS: usize = 4;

/// Hashes of the column that are read at a time.
const AT_ONCE: usize = 1 << 14;

/// The first half of XXH3 (64 bits, no seed).
pub(crate) fn short_hash(name: &[u8]) -> u32 {
    (XxHash3_64::oneshot(name) >> 32) as u32
}

/// Neighbouring hashes: from the `first` to the `last`, and how many pairs have one of them, behind
/// this many others.
struct HashPart {
    first: u32,
    last: u32,
    place: u64,
    pairs: u32,
}

impl HashPart {
    fn has(&self, hash: u32) -> bool {
        (self.first..=self.last).contains(&hash)
    }
}

/// What a thread has for the pairs of a part, each a hash in the upper half and a docid, and to
/// write them.
type PartRoom = (Vec<u64>, Vec<u8>);

/// The hashes of the names of a run, until they are written in order.
#[derive(Debug)]
pub(crate) struct NameColumn {
    file: File,
    folder: PathBuf,
    run: u32,
}

impl NameColumn {
    /// Of run `run` of a generation.
    pub(super) fn create(folder: &Path, run: u32) -> Result<Self, IndexError> {
        let error = IndexError::storage("keep hashes of names", folder);
        let file = fault::storage().and_then(|_| tempfile::tempfile_in(folder));
        Ok(Self { file: file.map_err(error)?, folder: folder.to_path_buf(), run })
    }

    /// Notes the names of neighbouring documents from `first` on, which end at these places.
    pub(super) fn put(&self, first: u32, names: &[u8], ends: &[u64]) -> Result<(), IndexError> {
        let mut start = 0;
        let hash = |&end: &u64| {
            let name = &names[std::mem::replace(&mut start, end as usize)..end as usize];
            short_hash(name).to_le()
        };
        let hashes: Vec<u32> = ends.iter().map(hash).collect();
        let bytes = bytemuck::cast_slice(&hashes);
        let written =
            fault::storage().and_then(|_| self.file.write_all_at(bytes, 4 * u64::from(first)));
        written.map_err(IndexError::storage("keep hashes of names", &self.folder))
    }

    /// Bytes of memory that it takes to write the file of this many `documents`.
    pub(crate) fn memory(documents: u32) -> u64 {
        SORTERS as u64 * 8 * u64::from((documents / SORTED_PART).max(LEAST_SORTED))
    }

    /// Writes the file of the run, which has this many `documents`.
    pub(crate) fn write(&self, documents: u32) -> Result<FileEntry, IndexError> {
        let name = run_file(&run_name(self.run), FileKind::Lookup);
        let file = FilledFile::of(StorageFile::create(&self.folder, &name)?);
        let most = (documents / SORTED_PART).max(LEAST_SORTED);
        let all = HashPart { first: 0, last: u32::MAX, place: 0, pairs: documents };
        let mut parts = Vec::new();
        // What fits in memory is one part, without a look at how its hashes are spread.
        let halves = if documents > most { self.cut(documents, &all, most)? } else { vec![all] };
        for part in halves {
            match part.pairs > most && part.first != part.last {
                // Names of one half of a hash.
                true => parts.extend(self.cut(documents, &part, most)?),
                false => parts.push(part),
            }
        }
        let write = |room: &mut PartRoom, number: usize| {
            self.write_part(&file, documents, &parts[number], most, room)
        };
        Crew::new("names").in_order(cores().min(SORTERS), parts.len(), write)?;
        let values = [documents.into(), 0, 0, 0, 0];
        file.end()?.finish(FileHeader { kind: FileKind::Lookup, values, last: 0 })
    }

    /// Cuts a part by the first 16 bits of hashes or, if all of its have the same, by the others,
    /// into parts of at most this many pairs, or of one value of these bits.
    fn cut(&self, documents: u32, part: &HashPart, most: u32) -> Result<Vec<HashPart>, IndexError> {
        let shift = if part.first >> 16 == part.last >> 16 { 0 } else { 16 };
        let mut counts = vec![0u32; 1 << 16];
        self.each(documents, |hash, _| {
            counts[(hash >> shift) as u16 as usize] += u32::from(part.has(hash));
            Ok(())
        })?;
        let mut parts: Vec<HashPart> = Vec::new();
        let mut place = part.place;
        for (value, pairs) in (0u32..).zip(counts).filter(|(_, pairs)| *pairs > 0) {
            let first = part.first | value << shift;
            let last = first | ((1 << shift) - 1);
            match parts.last_mut().filter(|before| before.pairs.saturating_add(pairs) <= most) {
                Some(before) => {
                    before.last = last;
                    before.pairs += pairs;
                }
                None => parts.push(HashPart { first, last, place, pairs }),
            }
            place += u64::from(pairs);
        }
        Ok(parts)
    }

    fn write_part(
        &self,
        file: &FilledFile,
        documents: u32,
        part: &HashPart,
        most: u32,
        (pairs, buffer): &mut PartRoom,
    ) -> Result<(), IndexError> {
        let mut place = part.place;
        let mut put = |pairs: &mut Vec<u64>| {
            // The hash comes first in the file.
            pairs.iter_mut().for_each(|pair| *pair = pair.rotate_left(32));
            let bytes = bytemuck::cast_slice(pairs);
            let room = file.room_at(PAIR_BYTES * place, bytes.len() as u64);
            file.fill(room, [bytes], buffer);
            place += pairs.len() as u64;
            pairs.clear();
            file.check()
        };
        pairs.clear();
        self.each(documents, |hash, docid| {
            // More have one hash: very many names, which are likely one name.
            if part.first == part.last && pairs.len() == most as usize {
                put(pairs)?;
            }
            pairs.extend(part.has(hash).then_some(u64::from(hash) << 32 | u64::from(docid)));
            Ok(())
        })?;
        pairs.sort_unstable();
        put(pairs)
    }

    /// Calls `take` with the hash of each docid.
    fn each(
        &self,
        documents: u32,
        mut take: impl FnMut(u32, u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let mut hashes = vec![0u32; AT_ONCE.min(documents as usize)];
        for first in (0..documents).step_by(AT_ONCE) {
            let hashes = &mut hashes[..AT_ONCE.min((documents - first) as usize)];
            let read =
                self.file.read_exact_at(bytemuck::cast_slice_mut(hashes), 4 * u64::from(first));
            read.map_err(IndexError::storage("read hashes of names in", &self.folder))?;
            for (docid, &hash) in (first..).zip(&*hashes) {
                take(u32::from_le(hash), docid)?;
            }
        }
        Ok(())
    }
}

/// The look-up of a run, mapped.
#[derive(Debug)]
pub(super) struct NameLookup(Map);

impl NameLookup {
    /// Reads no more than the header.
    pub(super) fn open_unverified(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Lookup))?;
        let header = FileHeader::parse(map.path(), FileKind::Lookup, map.bytes())?;
        header.check_unused(map.path(), 1)?;
        if header.values[0] != u64::from(run.documents) {
            return Err(IndexError::damaged(map.path(), 16, run.documents, header.values[0]));
        }
        let expected = HEADER_BYTES as u64 + PAIR_BYTES * u64::from(run.documents);
        check_length(map.path(), map.bytes().len() as u64, Some(expected))?;
        Ok(Self(map))
    }

    pub(super) fn map(&self) -> &Map {
        &self.0
    }

    pub(super) fn pairs(&self) -> &[LookupPair] {
        let count = (self.0.bytes().len() as u64 - BODY) / PAIR_BYTES;
        self.0.array(BODY, count).unwrap_or(&[])
    }

    /// The pairs of documents whose names may be this one, in blocks that are verified.
    pub(super) fn of(&self, name: &[u8]) -> Result<&[LookupPair], IndexError> {
        self.of_hash(short_hash(name))
    }

    fn of_hash(&self, hash: u32) -> Result<&[LookupPair], IndexError> {
        let map = &self.0;
        let pair = |at: usize| map.checked_array::<LookupPair>(BODY + PAIR_BYTES * at as u64, 1);
        let count = self.pairs().len();
        let is_before = |at: usize| Ok(pair(at)?[0][0] < hash);
        // Hashes are spread evenly, so that it lies near where they say, which touches few pages
        // of a large file.
        let guess = ((u64::from(hash) * count as u64) >> 32) as usize;
        let (mut low, mut high, mut step) = (guess, guess, 64);
        while low > 0 && !is_before(low - 1)? {
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 64;
        while high < count && is_before(high)? {
            high = (high + step).min(count);
            step *= 2;
        }
        let first = partition(low..high, is_before)?;
        let mut end = first;
        while end < count && pair(end)?[0][0] == hash {
            end += 1;
        }
        Ok(&self.pairs()[first..end])
    }
}

/// The first place of a range of which something is not true, which is true before that and nowhere
/// behind it; or the end.
pub(super) fn partition(
    mut range: Range<usize>,
    is_before: impl Fn(usize) -> Result<bool, IndexError>,
) -> Result<usize, IndexError> {
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        match is_before(middle)? {
            true => range.start = middle + 1,
            false => range.end = middle,
        }
    }
    Ok(range.start)
}

/// The documents of a run that are not deleted, in order of the hashes of their names, by
/// positioned reads.
pub(crate) struct LookupStream {
    pairs: FileWindow,
    /// Looked at for names of equal hashes, which are few and lie anywhere.
    names: OpenFile,
    ends: RampWindow,
    deletions: Arc<Deletions>,
    first_docid: u32,
    /// The next two pairs, and which is read next, up to `end`.
    next: [Option<LookupPair>; 2],
    at: u32,
    end: u32,
}

const WINDOW_BYTES: usize = 64 << 10;
const NAMES_BYTES: usize = 256;

impl LookupStream {
    /// Of names whose hashes are in a range.
    pub(crate) fn open(
        generation: &Path,
        live: &LiveRun<'_>,
        hashes: RangeInclusive<u32>,
    ) -> Result<Self, IndexError> {
        let LiveRun { run, deletions } = live;
        let mut pairs = FileWindow::open(&run.path(generation, FileKind::Lookup), WINDOW_BYTES)?;
        let mut first_from = |hash: u64| {
            let (mut low, mut high) = (0, run.documents);
            while low < high {
                let middle = low + (high - low) / 2;
                let bytes = pairs.read(BODY + PAIR_BYTES * u64::from(middle), 8)?;
                let [found, _]: LookupPair = bytemuck::pod_read_unaligned(bytes);
                match u64::from(found) < hash {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            Ok::<_, IndexError>(low)
        };
        let at = first_from((*hashes.start()).into())?;
        let end = first_from(u64::from(*hashes.end()) + 1)?;
        let names = OpenFile::open(run.path(generation, FileKind::Names))?;
        let open = FileWindow::open;
        let ends = RampWindow::open(generation, run, FileKind::Ends, NAMES_BYTES, open)?;
        let (deletions, first_docid, next) = (deletions.clone(), run.first_docid, [None; 2]);
        let mut stream = Self { pairs, names, ends, deletions, first_docid, next, at, end };
        stream.go_on()?;
        stream.go_on()?;
        Ok(stream)
    }

    pub(super) fn next_hash(&self) -> Option<u32> {
        self.next[0].map(|[hash, _]| hash)
    }

    pub(super) fn hash_repeats(&self) -> bool {
        self.next[1].map(|[hash, _]| hash) == self.next_hash()
    }

    pub(super) fn next_document(&mut self) -> Result<(u32, u128), IndexError> {
        let docid = self.next[0].map_or(0, |[_, docid]| docid);
        let mut hash = XxHash3_128::new();
        let mut buffer = [0; NAMES_BYTES];
        for Range { start: mut at, end } in self.ends.name(docid)?.parts() {
            while at < end {
                let here = usize::try_from(end - at).unwrap_or(NAMES_BYTES).min(NAMES_BYTES);
                self.names.read(BODY + at, &mut buffer[..here])?;
                hash.write(&buffer[..here]);
                at += here as u64;
            }
        }
        Ok((self.first_docid.saturating_add(docid), hash.finish_128()))
    }

    pub(super) fn go_on(&mut self) -> Result<(), IndexError> {
        self.next = [self.next[1], None];
        while self.at < self.end && self.next[1].is_none() {
            let at = BODY + PAIR_BYTES * u64::from(self.at);
            let pair: LookupPair = bytemuck::pod_read_unaligned(self.pairs.read(at, 8)?);
            self.next[1] = (!self.deletions.contains(pair[1])).then_some(pair);
            self.at += 1;
        }
        Ok(())
    }
}

struct OpenFile {
    place: FilePlace,
    path: PathBuf,
}

impl OpenFile {
    fn open(path: PathBuf) -> Result<Self, IndexError> {
        Ok(Self { place: packed::open(&path)?, path })
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IndexError> {
        let FilePlace { file, start, .. } = &self.place;
        file.read_exact_at(bytes, start + at).map_err(IndexError::storage("read", &self.path))
    }
}
