//! Hashes of names come from any threads, in a column by docid that lies in a file without a name.
//! Then the pairs are written in parts, each of which has as many neighbouring hashes as fit in
//! memory and is found in a pass over the column; some threads do that, for a build waits for it.

use super::{BODY, LookupLayout, short_hash};
use crate::crew::{Crew, cores};
use crate::fault;
use crate::index::error::IndexError;
use crate::index::files::storage::{FileEntry, FilledFile, StorageFile};
use crate::index::format::{FileHeader, FileKind, padding, run_file, run_name};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Pairs that a thread sorts in memory: this many, or a part of all.
const LEAST_SORTED: u32 = if cfg!(test) { 16 } else { 1 << 16 };
const SORTED_PART: u32 = 16;

/// Threads at most.
const SORTERS: usize = 4;

/// Hashes of the column that are read at a time.
pub(super) const AT_ONCE: usize = 1 << 14;

/// Neighbouring hashes: from the `first` to the `last`, and how many pairs have one of them, behind
/// this many others.
struct HashPart {
    first: u32,
    last: u32,
    place: u32,
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

/// How many pairs buckets have, from the first of these on.
type BucketCounts = (u32, Vec<u32>);

/// The hashes of the names of a run, until they are written in order.
#[derive(Debug)]
pub(crate) struct NameColumn {
    file: File,
    folder: PathBuf,
    run: u32,
}

impl NameColumn {
    /// Of run `run` of a generation.
    pub(crate) fn create(folder: &Path, run: u32) -> Result<Self, IndexError> {
        let error = IndexError::storage("keep hashes of names", folder);
        let file = fault::storage().and_then(|_| tempfile::tempfile_in(folder));
        Ok(Self { file: file.map_err(error)?, folder: folder.to_path_buf(), run })
    }

    /// Notes the names of neighbouring documents from `first` on, which end at these places.
    pub(crate) fn put(&self, first: u32, names: &[u8], ends: &[u64]) -> Result<(), IndexError> {
        let mut start = 0;
        let hash = |&end: &u64| {
            let name = &names[std::mem::replace(&mut start, end as usize)..end as usize];
            short_hash(name)
        };
        self.put_hashes(first, &ends.iter().map(hash).collect::<Vec<u32>>())
    }

    pub(super) fn put_hashes(&self, first: u32, hashes: &[u32]) -> Result<(), IndexError> {
        let bytes = bytemuck::cast_slice(hashes);
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
        let layout = LookupLayout::new(documents);
        let write = |room: &mut PartRoom, number: usize| {
            self.write_part(&file, layout, &parts[number], most, room)
        };
        let counts = Crew::new("names").in_order(cores().min(SORTERS), parts.len(), write)?;
        let mut starts = vec![0u32; layout.buckets() as usize + 1];
        for (first, counts) in counts {
            starts[first as usize + 1..].iter_mut().zip(counts).for_each(|(to, n)| *to += n);
        }
        let mut start = 0;
        for entry in &mut starts {
            start += *entry;
            *entry = start;
        }
        let directory = [
            bytemuck::cast_slice(&starts),
            &[0; 8][..padding(layout.entry(layout.buckets() + 1)) as usize],
        ];
        let room = file.room_at(0, layout.at(0) - BODY);
        file.fill(room, directory, &mut Vec::new());
        let mut file = file.end()?;
        file.pad()?;
        let values = [documents.into(), 0, 0, 0, 0];
        file.finish(FileHeader { kind: FileKind::Lookup, values, last: 0 })
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
            place += pairs;
        }
        Ok(parts)
    }

    /// Returns how many pairs the buckets of its hashes have.
    fn write_part(
        &self,
        file: &FilledFile,
        layout: LookupLayout,
        part: &HashPart,
        most: u32,
        (pairs, buffer): &mut PartRoom,
    ) -> Result<BucketCounts, IndexError> {
        let mut place = part.place;
        let first = layout.bucket(part.first);
        let mut counts = vec![0; (layout.bucket(part.last) - first) as usize + 1];
        let mut put = |pairs: &mut Vec<u64>| {
            let bytes = pack(layout, pairs, |bucket| counts[(bucket - first) as usize] += 1);
            let room = file.room_at(layout.at(place) - BODY, bytes.len() as u64);
            file.fill(room, [bytes], buffer);
            place += pairs.len() as u32;
            pairs.clear();
            file.check()
        };
        pairs.clear();
        self.each(layout.documents, |hash, docid| {
            // More have one hash: very many names, which are likely one name.
            if part.first == part.last && pairs.len() == most as usize {
                put(pairs)?;
            }
            pairs.extend(part.has(hash).then_some(u64::from(hash) << 32 | u64::from(docid)));
            Ok(())
        })?;
        pairs.sort_unstable();
        put(pairs)?;
        Ok((first, counts))
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
                take(hash, docid)?;
            }
        }
        Ok(())
    }
}

/// Packs pairs in their own memory, and names the bucket of each.
fn pack(layout: LookupLayout, pairs: &mut [u64], mut count: impl FnMut(u32)) -> &[u8] {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(pairs);
    let mut end = 0;
    for at in (0..bytes.len()).step_by(size_of::<u64>()) {
        let pair = bytes[at..].first_chunk().expect("a pair has eight bytes");
        let pair = u64::from_le_bytes(*pair);
        let hash = (pair >> 32) as u32;
        count(layout.bucket(hash));
        let packed = layout.packed([hash, pair as u32]);
        bytes[end..end + packed.len()].copy_from_slice(&packed);
        end += packed.len();
    }
    &bytes[..end]
}
