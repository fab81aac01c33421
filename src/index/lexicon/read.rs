//! Finds terms in the mapped lexicon.

use super::{CodedTerm, LexiconHeader, SparseEntry, TermEntry, no_term};
use crate::codec::prefetch::prefetch_bytes;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::FileEntry;
use crate::index::format::{
    DIRECTORY_ENTRIES, HEADER_BYTES, MAX_TERM_BYTES, file_path, list_start,
};
use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

/// Bytes of a block that are prefetched: most blocks are shorter.
const FETCHED: usize = 192;

#[derive(Debug)]
pub struct Lexicon {
    map: Map,
    header: LexiconHeader,
    /// The [`key`] of the first term of each block; empty if the lexicon was not verified.
    keys: Vec<u64>,
    /// The directory, if it is sparse.
    sparse: Vec<SparseEntry>,
}

/// The block that would hold a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermPlace {
    /// Where the block begins and ends among the blocks.
    place: u64,
    end: u64,
    /// Where the list before the first of its lists ends, and its positions.
    first_list: u64,
    first_positions: u64,
}

/// The first bytes of a suffix as a number: of two suffixes with different keys, the one of the
/// smaller key comes first.
fn key(suffix: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = suffix.len().min(8);
    bytes[..len].copy_from_slice(&suffix[..len]);
    u64::from_be_bytes(bytes)
}

impl Lexicon {
    /// Maps a lexicon and verifies its checksum. Keeps 8 bytes of the first term of each block in
    /// memory, so that look-ups are fast.
    pub(crate) fn open(generation: &Path, entry: &FileEntry) -> Result<Self, IndexError> {
        let mut lexicon = Self::open_unverified(&file_path(generation, &entry.name))?;
        lexicon.map.verify(entry.bytes, entry.crc32)?;
        lexicon.map.trust();
        let first = |block: &[u64]| lexicon.first_term(block[0]).map(key);
        let words = lexicon.header.entry_words();
        let blocks = lexicon.blocks()?.chunks_exact(words);
        lexicon.keys = blocks.map(first).collect::<Result<_, _>>()?;
        Ok(lexicon)
    }

    /// Maps a lexicon and reads no more than its header. What is read later is verified.
    pub(crate) fn open_unverified(path: &Path) -> Result<Self, IndexError> {
        let map = Map::open(path)?;
        let header = LexiconHeader::parse(path, map.bytes(), map.bytes().len() as u64)?;
        let mut sparse = Vec::new();
        if let Some(entries) = header.sparse {
            sparse = map.checked_array::<SparseEntry>(header.directory_start(), entries)?.to_vec();
            header.check_sparse(path, &sparse)?;
        }
        Ok(Self { map, header, keys: Vec::new(), sparse })
    }

    /// Verifies all of it.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        self.map.check_all()
    }

    pub(crate) fn header(&self) -> &LexiconHeader {
        &self.header
    }

    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// Two look-ups in tables, a binary search over the blocks of the collection, and a scan of one
    /// block.
    pub(crate) fn find(
        &self,
        collection: u16,
        suffix: &[u8],
    ) -> Result<Option<TermEntry>, IndexError> {
        match self.locate(collection, suffix)? {
            Some(place) => self.scan(place, suffix),
            None => Ok(None),
        }
    }

    /// Finds the block that would hold a term and begins to fetch it: the first half of
    /// [`find`](Self::find), so that those of several terms overlap.
    pub(crate) fn locate(
        &self,
        collection: u16,
        suffix: &[u8],
    ) -> Result<Option<TermPlace>, IndexError> {
        if usize::from(collection) >= DIRECTORY_ENTRIES - 1 || suffix.len() > MAX_TERM_BYTES {
            return Ok(None);
        }
        let blocks = self.blocks()?;
        let Some((low, high)) = self.blocks_of(collection)? else { return Ok(None) };
        let words = self.header.entry_words();
        let Some(own) = blocks.get(words * low..words * high) else {
            let offset = self.header.directory_start() + 4 * u64::from(collection);
            let expected = "rising blocks";
            let found = format_args!("{low} and {high}").to_string();
            return Err(IndexError::damaged(self.path(), offset, expected, found));
        };
        // One more, where the last of them ends.
        let entries = (blocks.len() / words).min(high + 1) - low;
        let entry = self.header.entry_bytes();
        let start = self.header.index_start() + entry * low as u64;
        self.map.checked(start, entry * entries as u64)?;
        // The last block whose first term is not behind the one that is sought. Keys leave only
        // blocks that begin with the same bytes.
        let (mut at, mut behind) = match self.keys.get(low..high) {
            Some(keys) => {
                let wanted = key(suffix);
                let at = keys.partition_point(|&key| key < wanted);
                (at, at + keys[at..].partition_point(|&key| key == wanted))
            }
            None => (0, high - low),
        };
        while at < behind {
            let middle = at + (behind - at) / 2;
            match self.first_term(own[words * middle])?.cmp(suffix) {
                Ordering::Greater => behind = middle,
                _ => at = middle + 1,
            }
        }
        let Some(block) = at.checked_sub(1) else { return Ok(None) };
        let own = &own[words * block..][..words];
        let next = blocks.get(words * (low + block + 1));
        let end = next.copied().unwrap_or(self.header.block_bytes);
        let first_positions = own.get(2).copied().unwrap_or(0);
        let place = TermPlace { place: own[0], end, first_list: own[1], first_positions };
        prefetch_bytes(self.block(place.place, end)?, FETCHED);
        Ok(Some(place))
    }

    /// The numbers of a collection's blocks, and the place among them of the last block that begins
    /// with no greater bytes; none if it has no terms.
    pub(super) fn blocks_from(
        &self,
        collection: u16,
        bytes: &[u8],
    ) -> Result<Option<(Range<usize>, usize)>, IndexError> {
        if usize::from(collection) >= DIRECTORY_ENTRIES - 1 {
            return Ok(None);
        }
        let Some((low, high)) = self.blocks_of(collection)? else { return Ok(None) };
        let (mut at, mut behind) = (low, high);
        while at < behind {
            let middle = at + (behind - at) / 2;
            let (place, _) = self.block_at(&(0..high), middle)?;
            match self.first_term(place)? < bytes {
                true => at = middle + 1,
                false => behind = middle,
            }
        }
        Ok(Some((low..high, at.saturating_sub(1).max(low) - low)))
    }

    /// A block by its place among `blocks`: where it begins, and its bytes.
    pub(super) fn block_at(
        &self,
        blocks: &Range<usize>,
        at: usize,
    ) -> Result<(u64, &[u8]), IndexError> {
        let words = self.header.entry_words();
        let number = blocks.start + at;
        let all = self.blocks()?;
        let Some(&place) = all.get(words * number) else {
            let found = format_args!("{number}").to_string();
            let offset = self.header.directory_start();
            return Err(IndexError::damaged(self.path(), offset, "a block that there is", found));
        };
        let end = all.get(words * (number + 1)).copied().unwrap_or(self.header.block_bytes);
        Ok((place, self.block(place, end)?))
    }

    /// The first block of a collection, and that behind its last; none if it has no terms.
    fn blocks_of(&self, collection: u16) -> Result<Option<(usize, usize)>, IndexError> {
        let pair = |low: u32, high: u32| Some((low as usize, high as usize));
        if self.header.sparse.is_some() {
            let found = self.sparse.binary_search_by_key(&u32::from(collection), |entry| entry[0]);
            // The last entry is that of no collection.
            return Ok(found.ok().and_then(|at| pair(self.sparse[at][1], self.sparse[at + 1][1])));
        }
        let start = self.header.directory_start();
        let own: &[u32] = self.map.checked_array(start + 4 * u64::from(collection), 2)?;
        Ok(pair(own[0], own[1]))
    }

    /// The entries of the block index, end to end.
    fn blocks(&self) -> Result<&[u64], IndexError> {
        let words = self.header.blocks * self.header.entry_words() as u64;
        self.map.array(self.header.index_start(), words)
    }

    fn first_term(&self, place: u64) -> Result<&[u8], IndexError> {
        let start = place.saturating_add(2);
        match *self.block(place, start)? {
            [0, length] => self.block(start, start.saturating_add(length.into())),
            _ => Err(no_term(self.path(), place)),
        }
    }

    /// Looks for a term in the block that [`locate`](Self::locate) found for it.
    pub(crate) fn scan(
        &self,
        TermPlace { place, end, first_list, first_positions }: TermPlace,
        suffix: &[u8],
    ) -> Result<Option<TermEntry>, IndexError> {
        let bytes = self.block(place, end)?;
        let mut length = 0;
        let mut lists_end = first_list;
        let mut positions = first_positions;
        let mut at = 0;
        // The term before is less than the one sought, and begins with this many bytes of it.
        let mut common = 0;
        while at < bytes.len() {
            let start = place + at as u64;
            let coded = CodedTerm::parse(bytes, &mut at, self.header.positions)
                .filter(|coded| coded.shared <= length)
                .ok_or_else(|| no_term(self.path(), start))?;
            // At most 255 each.
            length = coded.shared + coded.rest.len();
            if length > MAX_TERM_BYTES {
                return Err(no_term(self.path(), start));
            }
            let order = match coded.shared.cmp(&common) {
                // It differs from the term before where that agrees with the one sought, or behind
                // that.
                Ordering::Less => Ordering::Greater,
                Ordering::Greater => Ordering::Less,
                Ordering::Equal => {
                    let sought = &suffix[common..];
                    let more = coded.rest.iter().zip(sought).take_while(|(a, b)| a == b).count();
                    common += more;
                    coded.rest.get(more).cmp(&sought.get(more))
                }
            };
            let offset = list_start(lists_end, coded.df, self.header.block_len);
            let end = offset.and_then(|offset| offset.checked_add(coded.list_bytes));
            let (Some(offset), Some(end)) = (offset, end) else {
                return Err(no_term(self.path(), start));
            };
            match order {
                Ordering::Less => {}
                Ordering::Equal => {
                    let CodedTerm { df, list_bytes: bytes, position_bytes, .. } = coded;
                    let entry = TermEntry { df, offset, bytes, positions, position_bytes };
                    return Ok(Some(entry));
                }
                Ordering::Greater => return Ok(None),
            }
            lists_end = end;
            positions = positions.saturating_add(coded.position_bytes);
        }
        Ok(None)
    }

    /// The bytes from `place` to `end`, both counted from the first block.
    fn block(&self, place: u64, end: u64) -> Result<&[u8], IndexError> {
        if place > end || end > self.header.block_bytes {
            let expected = format!("blocks inside of {} bytes", self.header.block_bytes);
            let found = format_args!("one from {place} to {end}").to_string();
            return Err(IndexError::damaged(
                self.path(),
                self.header.index_start(),
                expected,
                found,
            ));
        }
        self.map.checked(HEADER_BYTES as u64 + place, end - place)
    }
}
