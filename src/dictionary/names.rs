//! Counts documents whose name an earlier one has: exactly, in bounded memory.
//!
//! Hashes of 128 bits are parted by their first bits; when the memory is full the first ones go to
//! a file without a name. In the end each part is looked through by itself. Different names share
//! such a hash with a chance below 10^-20 for 4 billion documents; no name itself is compared.

use crate::crew::{Crew, lock};
use crate::pages;
use bytemuck::{AnyBitPattern, NoUninit};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use twox_hash::XxHash3_128;

/// With fewer names for each, threads are not started.
const LEAST_NAMES: usize = 1 << 15;
/// Names of a piece of those that come one by one.
const PIECE_NAMES: usize = 1 << 12;
/// Memory for each name: its hash and, in the end, room in which hashes are parted.
const HASH_BYTES: usize = size_of::<u128>() + size_of::<u64>();
/// Hashes have so many parts, as a power of two, if the memory holds so many for each of them.
const MOST_BITS: u32 = 12;
const LEAST_IN_PART: usize = 64;
/// If the memory is full a 256th of its hashes goes to the file, 2^18 of them at least: the thread
/// that adds the next names parts them, which takes 30 ns a hash, and all other threads may have to
/// wait for it.
const SPILLED_PART: usize = 256;
const LEAST_SPILLED: usize = 1 << 18;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duplicates {
    /// Documents whose name an earlier document has.
    pub count: u64,
    /// The first of these documents and the earlier one with its name.
    pub first: Option<(u32, u32)>,
}

impl Duplicates {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

pub(crate) fn name_hash(name: &[u8]) -> u128 {
    XxHash3_128::oneshot(name)
}

#[derive(Clone, Copy, AnyBitPattern, NoUninit)]
#[repr(C, packed(4))]
struct NameEntry {
    hash: u128,
    docid: u32,
}

struct NameHashes {
    first: u32,
    hashes: Vec<u128>,
}

/// Entries in the file by the first bits of their hashes.
struct Parted {
    at: u64,
    ends: Vec<u32>,
}

/// All that is in the file.
struct SpilledNames {
    names: usize,
    file: Option<Arc<File>>,
    parted: Vec<Parted>,
}

impl SpilledNames {
    fn read(&self, number: usize, entries: &mut Vec<NameEntry>) -> io::Result<()> {
        for Parted { at, ends } in &self.parted {
            let file = self.file.as_ref().expect("entries went to a file");
            let range = range(ends, number);
            let have = entries.len();
            entries.resize(have + range.len(), NameEntry { hash: 0, docid: 0 });
            let at = (at + range.start as u64) * size_of::<NameEntry>() as u64;
            file.read_exact_at(bytemuck::cast_slice_mut(&mut entries[have..]), at)?;
        }
        Ok(())
    }
}

/// Collects the names of all documents, from any threads.
pub(crate) struct Names {
    folder: PathBuf,
    /// Hashes that are kept in memory.
    most: usize,
    /// Hashes that go to the file together, at least.
    at_once: usize,
    /// Bits at the beginning of a hash that give its part.
    bits: u32,
    kept: Mutex<KeptNames>,
}

#[derive(Default)]
struct KeptNames {
    pieces: Vec<NameHashes>,
    hashes: usize,
    file: Option<Arc<File>>,
    /// Entries that have a place in the file.
    spilled: u64,
    parted: Vec<Parted>,
}

impl Names {
    /// Keeps at most `most_bytes` in memory; the rest goes to a file without a name in `folder`.
    pub(crate) fn new(folder: &Path, most_bytes: u64) -> Self {
        let most = (most_bytes as usize / HASH_BYTES).max(1);
        let at_once = (most / SPILLED_PART).max(LEAST_SPILLED);
        let bits = (most / LEAST_IN_PART).max(1).ilog2().min(MOST_BITS);
        Self { folder: folder.to_path_buf(), most, at_once, bits, kept: Mutex::default() }
    }

    pub(crate) fn push(&self, name: &[u8], docid: u32) -> io::Result<()> {
        self.push_hash(name_hash(name), docid)
    }

    pub(crate) fn push_hash(&self, hash: u128, docid: u32) -> io::Result<()> {
        let mut kept = lock(&self.kept);
        match kept.pieces.last_mut() {
            Some(NameHashes { first, hashes })
                if hashes.len() < PIECE_NAMES && *first + hashes.len() as u32 == docid =>
            {
                hashes.push(hash);
            }
            _ => kept.pieces.push(NameHashes { first: docid, hashes: vec![hash] }),
        }
        kept.hashes += 1;
        self.spill_if_many(kept)
    }

    /// Adds the names of neighbouring documents, from `first` on, by their [`name_hash`]es.
    pub(crate) fn extend(&self, first: u32, mut hashes: Vec<u128>) -> io::Result<()> {
        if hashes.is_empty() {
            return Ok(());
        }
        hashes.shrink_to_fit();
        let mut kept = lock(&self.kept);
        kept.hashes += hashes.len();
        kept.pieces.push(NameHashes { first, hashes });
        self.spill_if_many(kept)
    }

    fn spill_if_many(&self, mut kept: MutexGuard<'_, KeptNames>) -> io::Result<()> {
        if kept.hashes < self.most {
            return Ok(());
        }
        let mut count = 0;
        let mut pieces = 0;
        while count < self.at_once && pieces < kept.pieces.len() {
            count += kept.pieces[pieces].hashes.len();
            pieces += 1;
        }
        let pieces: Vec<NameHashes> = kept.pieces.drain(..pieces).collect();
        kept.hashes -= count;
        if kept.file.is_none() {
            crate::fault::storage()?;
            kept.file = Some(Arc::new(tempfile::tempfile_in(&self.folder)?));
        }
        let file = kept.file.clone().expect("a file was made");
        let at = kept.spilled;
        kept.spilled += count as u64;
        // Others may go on.
        drop(kept);
        let sizes = sizes_of_parts(&pieces, self.bits);
        let InParts { all, ends } = part(&pieces, &sizes, 0..sizes.len());
        crate::fault::storage()?;
        file.write_all_at(bytemuck::cast_slice(&all), at * size_of::<NameEntry>() as u64)?;
        lock(&self.kept).parted.push(Parted { at, ends });
        Ok(())
    }

    pub(crate) fn finish(self, threads: usize) -> io::Result<Duplicates> {
        let Self { most, at_once, bits, kept, .. } = self;
        let kept = kept.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let KeptNames { pieces, hashes, file, spilled, parted } = kept;
        let spilled = SpilledNames { names: spilled as usize, file, parted };
        let names = hashes + spilled.names;
        let threads = threads.min(names / LEAST_NAMES).max(1);
        let mut crew = Crew::new("names");
        let chunks: Vec<&[NameHashes]> =
            pieces.chunks(pieces.len().div_ceil(threads).max(1)).collect();
        let sizes = |&pieces| move || sizes_of_parts(pieces, bits);
        let sizes = crew.all(chunks.iter().map(sizes).collect());
        // Parts may also take what hashes that are not there would have.
        let bytes = most.saturating_mul(HASH_BYTES) - hashes.min(most) * size_of::<u128>();
        let room = (bytes / size_of::<NameEntry>()).max(at_once);
        let mut duplicates = Duplicates::default();
        let mut begin = 0;
        while begin < 1 << bits {
            let mut names = 0;
            let enough = (begin..1 << bits).find(|&number| {
                names += sizes.iter().map(|sizes| sizes[number] as usize).sum::<usize>();
                names > room
            });
            let parts = begin..enough.map_or(1 << bits, |end| end.max(begin + 1));
            begin = parts.end;
            let part = chunks.iter().zip(&sizes).map(|(&pieces, sizes)| {
                let parts = parts.clone();
                move || part(pieces, sizes, parts)
            });
            let parted = crew.all(part.collect());
            let look = |CountRoom { entries, slots }: &mut CountRoom, part: usize| {
                entries.clear();
                let number = parts.start + part;
                parted.iter().for_each(|parted| entries.extend_from_slice(parted.part(number)));
                spilled.read(number, entries)?;
                io::Result::Ok(count(entries, slots))
            };
            let counted = crew.in_order(threads, parts.len(), look)?;
            counted.into_iter().for_each(|counted| duplicates.add(counted));
        }
        Ok(duplicates)
    }
}

fn number(hash: u128, bits: u32) -> usize {
    (((hash >> 96) as u64) >> (32 - bits)) as usize
}

/// Some names, by the first bits of their hashes.
struct InParts {
    all: Vec<NameEntry>,
    /// Where each part ends.
    ends: Vec<u32>,
}

impl InParts {
    fn part(&self, number: usize) -> &[NameEntry] {
        &self.all[range(&self.ends, number)]
    }
}

fn range(ends: &[u32], number: usize) -> Range<usize> {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[number] as usize
}

/// How many names of some pieces each part has.
fn sizes_of_parts(pieces: &[NameHashes], bits: u32) -> Vec<u32> {
    let mut sizes = vec![0; 1 << bits];
    for &hash in pieces.iter().flat_map(|piece| &piece.hashes) {
        sizes[number(hash, bits)] += 1;
    }
    sizes
}

/// Puts the names of some pieces into some parts; `sizes` are those of all parts, of which there is
/// a power of two.
fn part(pieces: &[NameHashes], sizes: &[u32], parts: Range<usize>) -> InParts {
    let bits = sizes.len().ilog2();
    let mut ends = vec![0; sizes.len()];
    let mut names = 0;
    for (number, end) in ends.iter_mut().enumerate() {
        // The beginning of the part, until its entries are there.
        *end = names;
        names += if parts.contains(&number) { sizes[number] } else { 0 };
    }
    let mut all = pages::zeroed(names as usize);
    for NameHashes { first, hashes } in pieces {
        for (docid, &hash) in (*first..).zip(hashes) {
            let number = number(hash, bits);
            if parts.contains(&number) {
                let place = &mut ends[number];
                all[*place as usize] = NameEntry { hash, docid };
                *place += 1;
            }
        }
    }
    InParts { all, ends }
}

#[derive(Default)]
struct CountRoom {
    entries: Vec<NameEntry>,
    slots: Vec<u32>,
}

/// Counts the duplicates among some entries in any order; `slots` is room for a table, and entries
/// are changed.
///
/// Of equal names the first entry keeps the least docid so far. Whichever of the two least comes
/// later meets the other one, so that the first duplicate is found; all others that it is compared
/// with are greater.
fn count(entries: &mut [NameEntry], slots: &mut Vec<u32>) -> Duplicates {
    let mask = (2 * entries.len()).next_power_of_two() - 1;
    slots.clear();
    slots.resize(mask + 1, 0);
    let mut count = 0;
    let mut first = (u32::MAX, u32::MAX);
    for number in 0..entries.len() {
        let NameEntry { hash, docid } = entries[number];
        let mut slot = hash as usize & mask;
        loop {
            let Some(other) = (slots[slot] as usize).checked_sub(1) else {
                slots[slot] = number as u32 + 1;
                break;
            };
            if entries[other].hash == hash {
                let known = entries[other].docid;
                entries[other].docid = known.min(docid);
                first = first.min((known.max(docid), known.min(docid)));
                count += 1;
                break;
            }
            slot = (slot + 1) & mask;
        }
    }
    Duplicates { count, first: (count > 0).then_some(first) }
}

#[cfg(test)]
mod tests;
