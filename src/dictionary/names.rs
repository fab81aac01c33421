//! Which documents have a name that an earlier one has? Counted exactly, in bounded memory: hashes of 128 bits are parted by
//! their first bits. When the memory is full the first ones go to a file without a name. In the end the last 32 bits of each hash alone
//! are parted and looked up in a table, which says of nearly all names that no other is the same; only the others
//! are compared by their whole hashes.
//!
//! Names that differ share such a hash with a chance below 10^-20 for 4 billion documents; no name
//! is compared.

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

/// With fewer names for each it is not worth starting a thread.
const LEAST_NAMES: usize = 1 << 15;
/// Names that come one by one are kept in pieces of so many.
const PIECE_NAMES: usize = 1 << 12;
/// Parts that are looked at together.
const PARTS_AT_ONCE: usize = 8;
/// Of so many hashes in memory one is kept whole a second time when those that may be the same are compared.
const COMPARED_PART: usize = 5;
/// Hashes have so many parts, as a power of two, if the memory holds so many for each of them.
const MOST_BITS: u32 = 12;
const LEAST_IN_PART: usize = 64;
/// If the memory is full a 256th of its hashes goes to the file, 2^18 of them at least: the thread that adds the next names parts them, which takes 30 ns a
/// hash, and all other threads may come to wait for what it does next.
const SPILLED_PART: usize = 256;
const LEAST_SPILLED: usize = 1 << 18;

/// Names that occur more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duplicates {
    /// Documents whose name an earlier document has.
    pub count: u64,
    /// The first document of that kind and the earlier one with its name.
    pub first: Option<(u32, u32)>,
}

impl Duplicates {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = [self.first, other.first].into_iter().flatten().min();
    }
}

/// The hash that stands for a name.
pub fn name_hash(name: &[u8]) -> u128 {
    XxHash3_128::oneshot(name)
}

/// A name and whose it is.
#[derive(Clone, Copy, AnyBitPattern, NoUninit)]
#[repr(C, packed(4))]
struct Entry {
    hash: u128,
    docid: u32,
}

/// The hashes of the names of neighbouring documents.
struct Piece {
    /// Docid of the first.
    first: u32,
    hashes: Vec<u128>,
}

/// Entries in the file by the first bits of their hashes.
struct Parted {
    /// Entries before the first.
    at: u64,
    /// Where each part ends.
    ends: Vec<u32>,
}

/// Collects the names of all documents; any threads may add some.
pub struct Names {
    folder: PathBuf,
    /// Hashes that are kept in memory.
    most: usize,
    /// Hashes that go to the file together, at least.
    at_once: usize,
    /// Of the beginning of a hash, which say to which part it belongs.
    bits: u32,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    pieces: Vec<Piece>,
    /// Hashes of these.
    hashes: usize,
    file: Option<Arc<File>>,
    /// Entries for which there is a place in the file.
    spilled: u64,
    parted: Vec<Parted>,
}

impl Names {
    /// Keeps at most `most_bytes` in memory; what is more goes to a file without a name in `folder`.
    pub fn new(folder: &Path, most_bytes: u64) -> Self {
        // The tag of each is there too, then all those that others have, and an entry of each of a few.
        let bytes = size_of::<u128>() + 2 * size_of::<u32>();
        let most = (most_bytes as usize / bytes).max(1);
        let at_once = (most / SPILLED_PART).max(LEAST_SPILLED);
        let bits = (most / LEAST_IN_PART).max(1).ilog2().min(MOST_BITS);
        Self { folder: folder.to_path_buf(), most, at_once, bits, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// Adds the name of a document.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&self, name: &[u8], docid: u32) -> io::Result<()> {
        self.push_hash(name_hash(name), docid)
    }

    /// Adds the name of a document by its [`name_hash`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push_hash(&self, hash: u128, docid: u32) -> io::Result<()> {
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

    /// Adds the names of neighbouring documents, of which `first` is the first, by their [`name_hash`]es.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn extend(&self, first: u32, mut hashes: Vec<u128>) -> io::Result<()> {
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
        let (entries, ends) = part(&pieces, self.bits, |hash, docid| Entry { hash, docid });
        crate::fault::storage()?;
        file.write_all_at(bytemuck::cast_slice(&entries), at * size_of::<Entry>() as u64)?;
        self.kept().parted.push(Parted { at, ends });
        Ok(())
    }

    /// Counts the duplicates among all names; so many `threads` look for them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn finish(self, threads: usize) -> io::Result<Duplicates> {
        let Self { bits, at_once, kept, .. } = self;
        let kept = kept.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Kept { pieces, hashes, file, spilled, parted } = kept;
        let threads = threads.min((hashes + spilled as usize) / LEAST_NAMES).max(1);
        let each = pieces.len().div_ceil(threads).max(1);
        let mut crew = Crew::new("names");
        let part_tags = |pieces| move || part(pieces, bits, |hash, _| tag(hash));
        let tags = crew.all(pieces.chunks(each).map(part_tags).collect());
        let file = file.as_deref();
        let look = |number: usize, room: &mut Room| {
            room.tags.clear();
            for (tags, ends) in &tags {
                room.tags.extend_from_slice(&tags[range(ends, number)]);
            }
            room.entries.clear();
            read(&parted, number, file, &mut room.entries)?;
            room.tags.extend(room.entries.iter().map(|entry| tag(entry.hash)));
            Ok(alike(&room.tags, &mut room.slots))
        };
        let mut wanted = vec![Vec::new(); 1 << bits];
        for (number, tags) in in_parts(&mut crew, threads, 0..1 << bits, look)? {
            wanted[number] = tags;
        }
        drop(tags);
        let most = (hashes / COMPARED_PART).max(at_once);
        let (mut duplicates, mut begin) = (Duplicates::default(), 0);
        while begin < wanted.len() {
            // Of names with one tag all but one have told of it.
            let mut names = 0;
            let enough = wanted[begin..].iter().position(|tags| {
                names += 2 * tags.len();
                names > most
            });
            let parts = begin..enough.map_or(wanted.len(), |more| begin + more + 1);
            begin = parts.end;
            if names == 0 {
                continue;
            }
            let wanted = |hash: u128| {
                let number = number(hash, bits);
                let tags = &wanted[number];
                parts.contains(&number) && tags.binary_search(&tag(hash)).is_ok()
            };
            let choose = |pieces| move || choose(pieces, bits, wanted);
            let chosen = crew.all(pieces.chunks(each).map(choose).collect());
            let look = |part: usize, Room { entries, slots, .. }: &mut Room| {
                entries.clear();
                for chosen in &chosen {
                    let before = |part| chosen.partition_point(|e| number(e.hash, bits) < part);
                    entries.extend_from_slice(&chosen[before(part)..before(part + 1)]);
                }
                read(&parted, part, file, entries)?;
                Ok(count(entries, slots))
            };
            for (_, counted) in in_parts(&mut crew, threads, parts.clone(), look)? {
                duplicates.add(counted);
            }
        }
        Ok(duplicates)
    }
}

/// The part of a hash: its first `bits`.
fn number(hash: u128, bits: u32) -> usize {
    (((hash >> 96) as u64) >> (32 - bits)) as usize
}

/// What of a hash is looked up first; never zero.
fn tag(hash: u128) -> u32 {
    (hash as u32).max(1)
}

/// Memory that is used again for each part.
#[derive(Default)]
struct Room {
    tags: Vec<u32>,
    entries: Vec<Entry>,
    slots: Vec<u32>,
}

/// Has threads look at some parts; what came of each.
fn in_parts<T: Send>(
    crew: &mut Crew,
    threads: usize,
    parts: Range<usize>,
    look: impl Fn(usize, &mut Room) -> io::Result<T> + Sync,
) -> io::Result<Vec<(usize, T)>> {
    let next = AtomicUsize::new(parts.start);
    let work = || {
        let (mut came, mut room) = (Vec::new(), Room::default());
        loop {
            let first = next.fetch_add(PARTS_AT_ONCE, Ordering::Relaxed);
            if first >= parts.end {
                return io::Result::Ok(came);
            }
            for number in first..(first + PARTS_AT_ONCE).min(parts.end) {
                came.push((number, look(number, &mut room)?));
            }
        }
    };
    let mut all = Vec::new();
    for came in crew.all(vec![&work; threads]) {
        all.extend(came?);
    }
    Ok(all)
}

/// What is made of the names of some pieces, by the first `bits` of their hashes, and where each part ends.
fn part<T: Zeroable + Copy>(
    pieces: &[Piece],
    bits: u32,
    make: impl Fn(u128, u32) -> T,
) -> (Vec<T>, Vec<u32>) {
    let mut ends = vec![0; 1 << bits];
    for hash in pieces.iter().flat_map(|piece| &piece.hashes) {
        ends[number(*hash, bits)] += 1;
    }
    let mut before = 0;
    for end in &mut ends {
        // Where the part begins, until what it has stands there.
        before += std::mem::replace(end, before);
    }
    let mut made = pages::zeroed(before as usize);
    for Piece { first, hashes } in pieces {
        for (docid, &hash) in (*first..).zip(hashes) {
            let place = &mut ends[number(hash, bits)];
            made[*place as usize] = make(hash, docid);
            *place += 1;
        }
    }
    (made, ends)
}

/// The names of some pieces that are wanted, by the parts of their hashes.
fn choose(pieces: &[Piece], bits: u32, wanted: impl Fn(u128) -> bool) -> Vec<Entry> {
    let mut chosen = Vec::new();
    for Piece { first, hashes } in pieces {
        let entries = (*first..).zip(hashes).map(|(docid, &hash)| Entry { hash, docid });
        chosen.extend(entries.filter(|entry| wanted(entry.hash)));
    }
    chosen.sort_unstable_by_key(|entry| number(entry.hash, bits));
    chosen
}

/// Where a part stands.
fn range(ends: &[u32], number: usize) -> Range<usize> {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    start as usize..ends[number] as usize
}

/// Reads the entries of one part that are in the file.
fn read(
    parted: &[Parted],
    number: usize,
    file: Option<&File>,
    entries: &mut Vec<Entry>,
) -> io::Result<()> {
    for Parted { at, ends } in parted {
        let file = file.expect("entries went to a file");
        let (range, have) = (range(ends, number), entries.len());
        entries.resize(have + range.len(), Entry { hash: 0, docid: 0 });
        let at = (at + range.start as u64) * size_of::<Entry>() as u64;
        file.read_exact_at(bytemuck::cast_slice_mut(&mut entries[have..]), at)?;
    }
    Ok(())
}

/// The tags that came before, as often as they did, in order; `slots` is room for a table.
fn alike(tags: &[u32], slots: &mut Vec<u32>) -> Vec<u32> {
    let mask = (2 * tags.len()).next_power_of_two() - 1;
    slots.clear();
    slots.resize(mask + 1, 0);
    let mut alike = Vec::new();
    for &tag in tags {
        let mut slot = tag as usize & mask;
        while slots[slot] != 0 && slots[slot] != tag {
            slot = (slot + 1) & mask;
        }
        if std::mem::replace(&mut slots[slot], tag) == tag {
            alike.push(tag);
        }
    }
    alike.sort_unstable();
    alike
}

/// Counts the duplicates among some entries in any order; `slots` is room for a table, and entries are changed.
///
/// Of equal names the first entry keeps the least docid so far. Whichever of the two least comes later meets the other one, so that
/// the first duplicate is found; what it is compared with besides is greater.
fn count(entries: &mut [Entry], slots: &mut Vec<u32>) -> Duplicates {
    let mask = (2 * entries.len()).next_power_of_two() - 1;
    slots.clear();
    slots.resize(mask + 1, 0);
    let mut duplicates = Duplicates::default();
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
                let pair = (known.max(docid), known.min(docid));
                duplicates.add(Duplicates { count: 1, first: Some(pair) });
                break;
            }
            slot = (slot + 1) & mask;
        }
    }
    duplicates
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn oracle_counts_like_a_map(names in prop::collection::vec(0u32..300, 0..1500), most in 1u64..40_000, at_once in 1usize..1500, threads in 1usize..4) {
            let dir = tempfile::tempdir().unwrap();
            let counted = Names { at_once, ..Names::new(dir.path(), most) };
            let mut seen: HashMap<u32, u32> = HashMap::new();
            let mut expected = Duplicates::default();
            for (docid, name) in (0u32..).zip(&names) {
                // Pieces of one name and of some.
                match docid % 3 {
                    0 => counted.extend(docid, vec![name_hash(&name.to_le_bytes())]).unwrap(),
                    _ => counted.push(&name.to_le_bytes(), docid).unwrap(),
                }
                match seen.get(name) {
                    Some(&earlier) => {
                        expected.count += 1;
                        expected.first.get_or_insert((docid, earlier));
                    }
                    None => _ = seen.insert(*name, docid),
                }
            }
            prop_assert_eq!(counted.finish(threads).unwrap(), expected);
            prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn names_that_agree_in_what_is_looked_up_first_are_compared() {
        let dir = tempfile::tempdir().unwrap();
        let names = Names { at_once: 50, ..Names::new(dir.path(), 9000) };
        // Ten of each tag, the first of which is zero and counts as one, in three parts.
        let hash = |n: u32| u128::from(n % 3) << 126 | u128::from(n) << 40 | u128::from(n / 10);
        for docid in 0..1000 {
            let n = if docid < 900 { docid } else { docid - 900 };
            names.push_hash(hash(n), docid).unwrap();
        }
        let expected = Duplicates { count: 100, first: Some((900, 0)) };
        assert_eq!(names.finish(3).unwrap(), expected);
    }

    #[test]
    fn threads_count_alike() {
        let dir = tempfile::tempdir().unwrap();
        let counted = |threads| {
            let names = Names::new(dir.path(), u64::MAX);
            for docid in 0..300_000u32 {
                // Two of five have a name that an earlier one has.
                let name = if docid % 5 < 3 { docid } else { docid / 7 };
                names.push(&name.to_le_bytes(), docid).unwrap();
            }
            names.finish(threads).unwrap()
        };
        let expected = counted(1);
        assert!(expected.count > 100_000);
        for threads in [2, 3, 16] {
            assert_eq!(counted(threads), expected, "{threads} threads");
        }
    }
}
