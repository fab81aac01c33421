//! The docids of a run by hashes of their names, so that who has a name is a look-up
//! (`docs/index-format.md`, Documents). The names themselves decide: a hash has 32 bits.
//!
//! A *pair* of a hash and a docid takes 40 bits. Pairs lie in *buckets* by the first bits of their
//! hashes, as many as leave room for the others beside a docid; a directory tells where each bucket
//! begins. It has 128 to 256 pairs in the mean, or all.

mod column;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use column::NameColumn;
pub(crate) use stream::LookupStream;

use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::RunEntry;
use std::ops::Range;
use std::path::Path;
use twox_hash::XxHash3_64;

const BODY: u64 = HEADER_BYTES as u64;

/// A hash and a docid.
type LookupPair = [u32; 2];

const PAIR_BYTES: u64 = 5;
const PAIR_BITS: u32 = 8 * PAIR_BYTES as u32;
const START_BYTES: u64 = size_of::<u32>() as u64;

/// The first half of XXH3 (64 bits, no seed).
pub(crate) fn short_hash(name: &[u8]) -> u32 {
    (XxHash3_64::oneshot(name) >> 32) as u32
}

/// How a look-up of this many documents is laid out.
#[derive(Clone, Copy, Debug)]
struct LookupLayout {
    documents: u32,
    /// At least 8.
    docid_bits: u32,
}

impl LookupLayout {
    fn new(documents: u32) -> Self {
        let docid_bits = u32::BITS - documents.saturating_sub(1).leading_zeros();
        Self { documents, docid_bits: docid_bits.max(PAIR_BITS - u32::BITS) }
    }

    /// Bits of a hash that its pair has.
    fn hash_bits(&self) -> u32 {
        PAIR_BITS - self.docid_bits
    }

    /// At most 2^24.
    fn buckets(&self) -> u32 {
        1 << (u32::BITS - self.hash_bits())
    }

    fn bucket(&self, hash: u32) -> u32 {
        (u64::from(hash) >> self.hash_bits()) as u32
    }

    /// Where the directory tells where a bucket begins, and in the next entry where it ends.
    fn entry(&self, bucket: u32) -> u64 {
        BODY + START_BYTES * u64::from(bucket)
    }

    /// Where a pair lies.
    fn at(&self, pair: u32) -> u64 {
        let directory = START_BYTES * (u64::from(self.buckets()) + 1);
        BODY + directory + padding(directory) + PAIR_BYTES * u64::from(pair)
    }

    fn file_bytes(&self) -> u64 {
        let bytes = self.at(self.documents);
        bytes + padding(bytes)
    }

    fn packed(&self, [hash, docid]: LookupPair) -> [u8; PAIR_BYTES as usize] {
        let low = u64::from(hash) & ((1 << self.hash_bits()) - 1);
        let pair = low << self.docid_bits | u64::from(docid);
        *pair.to_le_bytes().first_chunk().expect("40 bits have five bytes")
    }

    /// A pair of a bucket.
    fn pair(&self, bucket: u32, packed: &[u8]) -> LookupPair {
        let mut bytes = [0; 8];
        bytes[..PAIR_BYTES as usize].copy_from_slice(packed);
        let pair = u64::from_le_bytes(bytes);
        let hash = u64::from(bucket) << self.hash_bits() | pair >> self.docid_bits;
        [hash as u32, (pair & ((1 << self.docid_bits) - 1)) as u32]
    }

    /// The pairs of a bucket by its entry and the next one.
    fn pairs(
        &self,
        path: &Path,
        bucket: u32,
        [start, end]: [u32; 2],
    ) -> Result<Range<u32>, IndexError> {
        if start <= end && end <= self.documents {
            return Ok(start..end);
        }
        let expected = format!("a bucket from pair {start} on, of {}", self.documents);
        Err(IndexError::damaged(path, self.entry(bucket + 1), expected, format_args!("to {end}")))
    }
}

/// The look-up of a run, mapped.
#[derive(Debug)]
pub(super) struct NameLookup {
    map: Map,
    layout: LookupLayout,
}

impl NameLookup {
    /// Reads no more than the header.
    pub(super) fn open_unverified(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Lookup))?;
        let header = FileHeader::parse(map.path(), FileKind::Lookup, map.bytes())?;
        header.check_unused(map.path(), 1)?;
        if header.values[0] != u64::from(run.documents) {
            return Err(IndexError::damaged(map.path(), 16, run.documents, header.values[0]));
        }
        let layout = LookupLayout::new(run.documents);
        check_length(map.path(), map.bytes().len() as u64, Some(layout.file_bytes()))?;
        Ok(Self { map, layout })
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Where a pair lies, by its place among all.
    pub(super) fn place_of(&self, pair: u32) -> u64 {
        self.layout.at(pair)
    }

    /// The packed pairs of a bucket, in blocks that are verified, and the place of the first.
    fn bucket(&self, bucket: u32) -> Result<(u32, &[u8]), IndexError> {
        let entries = self.map.checked_array::<u32>(self.layout.entry(bucket), 2)?;
        let pairs = self.layout.pairs(self.map.path(), bucket, [entries[0], entries[1]])?;
        let bytes = PAIR_BYTES * pairs.len() as u64;
        Ok((pairs.start, self.map.checked(self.layout.at(pairs.start), bytes)?))
    }

    /// All pairs whose hashes are in a range, by rising hash and docid, and their places among all.
    ///
    /// # Errors
    /// `Damaged`.
    pub(super) fn each(
        &self,
        hashes: Range<u64>,
        mut take: impl FnMut(u32, LookupPair) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let Some(last) = hashes.end.checked_sub(1).filter(|last| *last >= hashes.start) else {
            return Ok(());
        };
        let [first, last] = [hashes.start, last].map(|hash| hash.min(u32::MAX.into()) as u32);
        for bucket in self.layout.bucket(first)..=self.layout.bucket(last) {
            let (first, pairs) = self.bucket(bucket)?;
            for (place, packed) in (first..).zip(pairs.chunks_exact(PAIR_BYTES as usize)) {
                let pair = self.layout.pair(bucket, packed);
                if hashes.contains(&pair[0].into()) {
                    take(place, pair)?;
                }
            }
        }
        Ok(())
    }

    /// The documents whose names may be this one, rising.
    pub(super) fn of(&self, name: &[u8]) -> Result<impl Iterator<Item = u32> + '_, IndexError> {
        self.of_hash(short_hash(name))
    }

    pub(super) fn of_hash(&self, hash: u32) -> Result<impl Iterator<Item = u32> + '_, IndexError> {
        let (layout, number) = (self.layout, self.layout.bucket(hash));
        let (pairs, _) = self.bucket(number)?.1.as_chunks::<{ PAIR_BYTES as usize }>();
        let pair = move |packed: &[u8; PAIR_BYTES as usize]| layout.pair(number, packed);
        let first = pairs.partition_point(|packed| pair(packed)[0] < hash);
        let pairs = pairs[first..].iter().map(pair);
        Ok(pairs.take_while(move |pair| pair[0] == hash).map(|[_, docid]| docid))
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
