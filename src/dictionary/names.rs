//! Counts documents whose name an earlier one has: exactly, in bounded memory.
//!
//! Hashes of 128 bits are parted by their first bits; when the memory is full the first ones go to
//! a file without a name. In the end a sample tells whether many names occur more than once. If
//! not, the last 32 bits of each hash alone are parted and looked up in small tables, which say of
//! nearly all names that no other is the same; only the others are compared by their whole hashes.
//! If many do, all are parted and compared whole. Different names share such a hash with a chance
//! below 10^-20 for 4 billion documents; no name itself is compared.

use crate::crew::{Crew, lock};
use crate::pages;
use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use twox_hash::XxHash3_128;

/// With fewer names for each, threads are not started.
const LEAST_NAMES: usize = 1 << 15;
/// Names of a piece of those that come one by one.
const PIECE_NAMES: usize = 1 << 12;
const PARTS_AT_ONCE: usize = 8;
/// The part that is the sample.
const SAMPLED: usize = 0;
/// Duplicates are many if one of so many of the sample is one, which is so when some hundredths of
/// all names are: with fewer, finding their hashes takes less time than parting all hashes whole
/// takes more.
const MANY_PART: usize = 100;
const TABLE_PART: usize = 4;
/// Tags are rotated by so much for each look-up.
const ROTATED: [u32; 3] = [0, 11, 22];
/// Memory for each name: its hash and, in the end, its tag.
const HASH_BYTES: usize = size_of::<u128>() + size_of::<Tag>();
/// The most parts, as a power of two, and the fewest hashes of each that the memory has to hold.
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
struct Entry {
    hash: u128,
    docid: u32,
}

/// The hashes of the names of neighbouring documents.
struct Piece {
    first: u32,
    hashes: Vec<u128>,
}

/// Entries in the file by the first bits of their hashes.
struct Parted {
    at: u64,
    ends: Vec<u32>,
}

/// All that is in the file.
struct Spilled {
    names: usize,
    file: Option<Arc<File>>,
    parted: Vec<Parted>,
}

impl Spilled {
    fn read(&self, number: usize, entries: &mut Vec<Entry>) -> io::Result<()> {
        for Parted { at, ends } in &self.parted {
            let file = self.file.as_ref().expect("entries went to a file");
            let (range, have) = (range(ends, number), entries.len());
            entries.resize(have + range.len(), Entry { hash: 0, docid: 0 });
            let at = (at + range.start as u64) * size_of::<Entry>() as u64;
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
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    pieces: Vec<Piece>,
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

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    pub(crate) fn push(&self, name: &[u8], docid: u32) -> io::Result<()> {
        self.push_hash(name_hash(name), docid)
    }

    pub(crate) fn push_hash(&self, hash: u128, docid: u32) -> io::Result<()> {
        let mut kept = self.kept();
        match kept.pieces.last_mut() {
            Some(Piece { first, hashes })
                if hashes.len() < PIECE_NAMES && *first + hashes.len() as u32 == docid =>
            {
                hashes.push(hash);
            }
            _ => kept.pieces.push(Piece { first: docid, hashes: vec![hash] }),
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
        let mut kept = self.kept();
        kept.hashes += hashes.len();
        kept.pieces.push(Piece { first, hashes });
        self.spill_if_many(kept)
    }

    fn spill_if_many(&self, mut kept: MutexGuard<'_, Kept>) -> io::Result<()> {
        if kept.hashes < self.most {
            return Ok(());
        }
        let (mut count, mut pieces) = (0, 0);
        while count < self.at_once && pieces < kept.pieces.len() {
            count += kept.pieces[pieces].hashes.len();
            pieces += 1;
        }
        let pieces: Vec<Piece> = kept.pieces.drain(..pieces).collect();
        kept.hashes -= count;
        if kept.file.is_none() {
            crate::fault::storage()?;
            kept.file = Some(Arc::new(tempfile::tempfile_in(&self.folder)?));
        }
        let (file, at) = (kept.file.clone().expect("a file was made"), kept.spilled);
        kept.spilled += count as u64;
        // Others may go on.
        drop(kept);
        let (sizes, _) = survey(&pieces, self.bits);
        let InParts { all, ends } = part(&pieces, &sizes, 0..sizes.len(), |entry| entry);
        crate::fault::storage()?;
        file.write_all_at(bytemuck::cast_slice(&all), at * size_of::<Entry>() as u64)?;
        self.kept().parted.push(Parted { at, ends });
        Ok(())
    }

    /// Counts the duplicates with `threads`.
    pub(crate) fn finish(self, threads: usize) -> io::Result<Duplicates> {
        let Self { most, at_once, bits, kept, .. } = self;
        let kept = kept.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Kept { mut pieces, hashes, file, spilled, parted } = kept;
        let spilled = Spilled { names: spilled as usize, file, parted };
        let names = hashes + spilled.names;
        let threads = threads.min(names / LEAST_NAMES).max(1);
        let mut crew = Crew::new("names");
        pieces.sort_by_key(|piece| piece.first);
        let chunks: Vec<&[Piece]> = pieces.chunks(pieces.len().div_ceil(threads).max(1)).collect();
        let survey = |&pieces| move || survey(pieces, bits);
        let (sizes, samples): (Vec<_>, Vec<_>) =
            crew.all(chunks.iter().map(survey).collect()).into_iter().unzip();
        let mut sample = samples.concat();
        spilled.read(SAMPLED, &mut sample)?;
        let alike = count(&mut sample, &mut Vec::new()).count as usize;
        if alike * MANY_PART < sample.len() {
            let part = chunks.iter().zip(&sizes).map(|(&pieces, sizes)| {
                let parts = 0..1 << bits;
                move || part(pieces, sizes, parts, Tag::of)
            });
            let parted = crew.all(part.collect());
            let look = |number: usize, room: &mut Room| {
                let Room { entries, tags, table, slots } = room;
                entries.clear();
                spilled.read(number, entries)?;
                tags.clear();
                parted.iter().for_each(|parted| tags.extend_from_slice(parted.part(number)));
                tags.extend(entries.iter().copied().map(Tag::of));
                keep_alike(tags, entries, table);
                entries.extend(tags.iter().filter_map(|tag| find(&pieces, tag.docid)));
                Ok(count(entries, slots))
            };
            return in_parts(&mut crew, threads, 0..1 << bits, look);
        }
        // They may take the memory of tags, and that of hashes that are not there.
        let bytes = most.saturating_mul(HASH_BYTES) - hashes.min(most) * size_of::<u128>();
        let room = (bytes / size_of::<Entry>()).max(at_once);
        let (mut duplicates, mut begin) = (Duplicates::default(), 0);
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
                move || part(pieces, sizes, parts, |entry| entry)
            });
            let parted = crew.all(part.collect());
            let look = |number: usize, Room { entries, slots, .. }: &mut Room| {
                entries.clear();
                parted.iter().for_each(|parted| entries.extend_from_slice(parted.part(number)));
                spilled.read(number, entries)?;
                Ok(count(entries, slots))
            };
            duplicates.add(in_parts(&mut crew, threads, parts.clone(), look)?);
        }
        Ok(duplicates)
    }
}

fn number(hash: u128, bits: u32) -> usize {
    (((hash >> 96) as u64) >> (32 - bits)) as usize
}

/// The entry of a document, if some piece has it; pieces are in order.
fn find(pieces: &[Piece], docid: u32) -> Option<Entry> {
    let piece = pieces.partition_point(|piece| piece.first <= docid).checked_sub(1)?;
    let Piece { first, hashes } = &pieces[piece];
    hashes.get((docid - first) as usize).map(|&hash| Entry { hash, docid })
}

/// What is looked up first of a name.
#[derive(Clone, Copy, Zeroable)]
#[repr(C)]
struct Tag {
    tag: u32,
    docid: u32,
}

impl Tag {
    fn of(Entry { hash, docid }: Entry) -> Self {
        Self { tag: hash as u32, docid }
    }
}

/// Something of each name, by the first bits of the hashes.
struct InParts<T> {
    all: Vec<T>,
    ends: Vec<u32>,
}

impl<T> InParts<T> {
    fn part(&self, number: usize) -> &[T] {
        &self.all[range(&self.ends, number)]
    }
}

fn range(ends: &[u32], number: usize) -> Range<usize> {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[number] as usize
}

/// The names of some pieces in each part, and a sample of them: all of one part, so that all copies
/// of these are there, and one of each piece, so that some are of a name that very many documents
/// have.
fn survey(pieces: &[Piece], bits: u32) -> (Vec<u32>, Vec<Entry>) {
    let (mut sizes, mut sample) = (vec![0; 1 << bits], Vec::new());
    for Piece { first, hashes } in pieces {
        for (docid, &hash) in (*first..).zip(hashes) {
            let number = number(hash, bits);
            sizes[number] += 1;
            if number == SAMPLED {
                sample.push(Entry { hash, docid });
            }
        }
        let any = *first as usize % hashes.len();
        if number(hashes[any], bits) != SAMPLED {
            sample.push(Entry { hash: hashes[any], docid: first + any as u32 });
        }
    }
    (sizes, sample)
}

/// Deals what `make` makes of the names of some pieces out to some parts; `sizes` are those of all
/// parts, whose number is a power of two.
fn part<T: Zeroable + Copy>(
    pieces: &[Piece],
    sizes: &[u32],
    parts: Range<usize>,
    make: impl Fn(Entry) -> T,
) -> InParts<T> {
    let bits = sizes.len().ilog2();
    let (mut ends, mut names) = (vec![0; sizes.len()], 0);
    for (number, end) in ends.iter_mut().enumerate() {
        // The beginning of the part, until its entries are there.
        *end = names;
        names += if parts.contains(&number) { sizes[number] } else { 0 };
    }
    let mut all = pages::zeroed(names as usize);
    for Piece { first, hashes } in pieces {
        for (docid, &hash) in (*first..).zip(hashes) {
            let number = number(hash, bits);
            if parts.contains(&number) {
                let place = &mut ends[number];
                all[*place as usize] = make(Entry { hash, docid });
                *place += 1;
            }
        }
    }
    InParts { all, ends }
}

#[derive(Default)]
struct Room {
    entries: Vec<Entry>,
    tags: Vec<Tag>,
    table: Vec<u8>,
    slots: Vec<u32>,
}

fn in_parts(
    crew: &mut Crew,
    threads: usize,
    parts: Range<usize>,
    look: impl Fn(usize, &mut Room) -> io::Result<Duplicates> + Sync,
) -> io::Result<Duplicates> {
    let next = AtomicUsize::new(parts.start);
    let work = || {
        let (mut duplicates, mut room) = (Duplicates::default(), Room::default());
        loop {
            let first = next.fetch_add(PARTS_AT_ONCE, Ordering::Relaxed);
            if first >= parts.end {
                return io::Result::Ok(duplicates);
            }
            for number in first..(first + PARTS_AT_ONCE).min(parts.end) {
                duplicates.add(look(number, &mut room)?);
            }
        }
    };
    let mut all = Duplicates::default();
    for counted in crew.all(vec![&work; threads]) {
        all.add(counted?);
    }
    Ok(all)
}

/// Keeps the names that may be the same as others: all that are, and few more. Those of the
/// `entries`, which come from the file, have tags too. The table knows whether none, one or more
/// names have some bits of their tags; few that share these share the next ones too.
fn keep_alike(tags: &mut Vec<Tag>, entries: &mut Vec<Entry>, table: &mut Vec<u8>) {
    let mask = (TABLE_PART * tags.len()).next_power_of_two() - 1;
    let mut alike = tags.len();
    for rotate in ROTATED {
        let place = |tag: u32| tag.rotate_right(rotate) as usize & mask;
        table.clear();
        table.resize(mask + 1, 0);
        for tag in &tags[..alike] {
            let many = &mut table[place(tag.tag)];
            *many = *many << 1 | 1;
        }
        let mut kept = 0;
        for at in 0..alike {
            let tag = tags[at];
            tags[kept] = tag;
            kept += usize::from(table[place(tag.tag)] > 1);
        }
        alike = kept;
        entries.retain(|entry| table[place(entry.hash as u32)] > 1);
    }
    tags.truncate(alike);
}

/// Counts the duplicates among some entries in any order; `slots` is room for a table, and entries
/// are changed.
///
/// Of equal names the first entry keeps the least docid so far. Whichever of the two least comes
/// later meets the other one, so that the first duplicate is found; all others that it is compared
/// with are greater.
fn count(entries: &mut [Entry], slots: &mut Vec<u32>) -> Duplicates {
    let mask = (2 * entries.len()).next_power_of_two() - 1;
    slots.clear();
    slots.resize(mask + 1, 0);
    let (mut count, mut first) = (0, (u32::MAX, u32::MAX));
    for number in 0..entries.len() {
        let Entry { hash, docid } = entries[number];
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
