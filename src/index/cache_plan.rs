//! The plan of a cache: which parts of which lists of a generation are kept in a memory that has
//! not room for all (`docs/index-format.md`, Plan of a cache). `papers/wang` makes one from a
//! log of queries.
//!
//! A plan names lists by their places in the files of one generation and lies in that folder, but
//! the manifest does not name it: it may be replaced at any time.

#[cfg(test)]
mod tests;

use crate::index::error::IndexError;
use crate::index::files::map::check_crc;
use crate::index::files::{plain, storage};
use crate::index::format::{
    CACHE_PLAN, FileHeader, FileKind, HEADER_BYTES, MANIFEST, check_length,
};
use crate::index::generations::generation::Generation;
use crate::index::lexicon::TermEntry;
use crate::settings::names;
use std::collections::HashMap;
use std::path::Path;

/// Bytes of the plan's own numbers behind the header, and of each list.
const RECORD_BYTES: usize = 32;
/// Bytes behind the lists: the checksum, and zeros.
const END_BYTES: usize = 8;

/// How lists, or parts of lists, are chosen (`wang`, sections 2.1.5 and 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// Units of 256 postings by how many queries visit them; of equal ones, those of the terms that
    /// most queries have. At most a share of a list.
    Vfb,
    /// Whole lists by how many queries have their terms.
    Qtf,
    /// As `Qtf`, divided by the documents of the list.
    QtfDf,
}

// The paper's names.
names!(CachePolicy { Vfb = "vfb", Qtf = "qtf", QtfDf = "qtfdf" });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedList {
    pub run: u32,
    pub entry: TermEntry,
    /// Cached blocks, from the list's first on, at least 1; the tail of a list is a block, too.
    pub blocks: u32,
    /// Queries of the log that have its term.
    pub queries: u32,
}

/// Lists of which something is cached, each once, in the order in which they were chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CachedLists {
    lists: Vec<CachedList>,
    /// Places in `lists` by run and offset.
    places: HashMap<(u32, u64), u32>,
}

impl CachedLists {
    /// Of a list that is named twice the first stays.
    pub(crate) fn new(lists: impl IntoIterator<Item = CachedList>) -> Self {
        let mut taken = Self::default();
        for list in lists {
            taken.push(list);
        }
        taken
    }

    /// Returns false for a list that is there already.
    fn push(&mut self, list: CachedList) -> bool {
        let next = self.lists.len() as u32;
        let key = (list.run, list.entry.offset);
        let is_new = *self.places.entry(key).or_insert(next) == next;
        if is_new {
            self.lists.push(list);
        }
        is_new
    }

    /// Cached blocks of a list of a run, from its first on; none if nothing of it is cached.
    #[inline]
    pub fn blocks(&self, run: usize, entry: &TermEntry) -> Option<usize> {
        let place = *self.places.get(&(run as u32, entry.offset))?;
        Some(self.lists[place as usize].blocks as usize)
    }

    /// In the order in which they were chosen.
    pub fn lists(&self) -> &[CachedList] {
        &self.lists
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOf {
    pub generation: u32,
    /// Checksum of the manifest, which has the checksums of all files.
    pub manifest_crc: u32,
}

impl PlanOf {
    pub fn generation(generation: &Generation) -> Result<Self, IndexError> {
        let bytes = plain::read(&generation.path().join(MANIFEST))?;
        let number = generation.manifest().generation;
        let crc = crc32fast::hash(&bytes);
        Ok(Self { generation: number, manifest_crc: crc })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CachePlan {
    pub of: PlanOf,
    pub policy: CachePolicy,
    /// The greatest share of a list that may be cached, from 0 to 1.
    pub lambda: f64,
    /// Hits of the queries whose visits were counted.
    pub k: u32,
    /// Queries of the log that counted.
    pub queries: u64,
    /// The memory that the plan was made for.
    pub memory_bytes: u64,
    /// What the cached parts take of it, in their bytes on disk.
    pub cached_bytes: u64,
    pub cached: CachedLists,
}

impl CachePlan {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let of = u64::from(self.of.manifest_crc) << 32 | u64::from(self.of.generation);
        let lists = self.cached.lists();
        let values = [of, lists.len() as u64, self.queries, self.memory_bytes, self.cached_bytes];
        let mut bytes = FileHeader { kind: FileKind::CachePlan, values, last: 0 }.encode().to_vec();
        bytes.reserve((lists.len() + 1) * RECORD_BYTES + END_BYTES);
        bytes.extend((self.policy as u32).to_le_bytes());
        bytes.extend(self.k.to_le_bytes());
        bytes.extend(self.lambda.to_bits().to_le_bytes());
        bytes.extend([0; 16]);
        for list in lists {
            let CachedList { run, entry, blocks, queries } = *list;
            let numbers = [run, entry.df, blocks, queries];
            numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            bytes.extend(entry.offset.to_le_bytes());
            bytes.extend(entry.bytes.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend(u64::from(crc).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(path: &Path, bytes: &[u8]) -> Result<Self, IndexError> {
        let header = FileHeader::parse(path, FileKind::CachePlan, bytes)?;
        let [of, lists, queries, memory_bytes, cached_bytes] = header.values;
        let expected = lists
            .checked_mul(RECORD_BYTES as u64)
            .and_then(|bytes| bytes.checked_add((HEADER_BYTES + RECORD_BYTES + END_BYTES) as u64));
        check_length(path, bytes.len() as u64, expected)?;
        let (body, end) = bytes.split_at(bytes.len() - END_BYTES);
        let sealed = end.first_chunk().map_or(0, |crc| u64::from_le_bytes(*crc));
        if sealed >> 32 != 0 {
            let expected = "four zero bytes after the checksum";
            return Err(IndexError::damaged(path, body.len() as u64 + 4, expected, sealed >> 32));
        }
        check_crc(path, sealed as u32, crc32fast::hash(body))?;
        let mut records = body[HEADER_BYTES..].as_chunks::<RECORD_BYTES>().0.iter();
        let first =
            records.next().map_or(PlanRecord([0; RECORD_BYTES]), |record| PlanRecord(*record));
        let at = HEADER_BYTES as u64;
        let policy = CachePolicy::ALL.get(first.u32(0) as usize).copied();
        let policy = policy.ok_or_else(|| {
            IndexError::damaged(path, at, "the number of a policy, 0 to 2", first.u32(0))
        })?;
        let lambda = f64::from_bits(first.u64(8));
        if !(0.0..=1.0).contains(&lambda) {
            return Err(IndexError::damaged(path, at + 8, "a share from 0 to 1", lambda));
        }
        if let Some(field) = [16, 24].into_iter().find(|&field| first.u64(field) != 0) {
            let found = first.u64(field);
            return Err(IndexError::damaged(path, at + field as u64, 0, found));
        }
        let mut cached = CachedLists::default();
        for (number, record) in (1..).zip(records) {
            let record = PlanRecord(*record);
            let at = at + number * RECORD_BYTES as u64;
            let entry = TermEntry {
                df: record.u32(4),
                offset: record.u64(16),
                bytes: record.u64(24),
                ..TermEntry::default()
            };
            let run = record.u32(0);
            let blocks = record.u32(8);
            let queries = record.u32(12);
            if blocks == 0 || blocks > entry.df {
                let expected = format!("1 to {} blocks", entry.df);
                return Err(IndexError::damaged(path, at + 8, expected, blocks));
            }
            if !cached.push(CachedList { run, entry, blocks, queries }) {
                let found = format!("the list at {} of run {run} again", entry.offset);
                return Err(IndexError::damaged(path, at, "a list that was not named yet", found));
            }
        }
        let of = PlanOf { generation: of as u32, manifest_crc: (of >> 32) as u32 };
        let k = first.u32(4);
        Ok(Self { of, policy, lambda, k, queries, memory_bytes, cached_bytes, cached })
    }

    /// Replaces the plan in the folder `generation`.
    pub fn write(&self, generation: &Path) -> Result<(), IndexError> {
        // The temporary file must not lie among the files of the generation.
        let next = generation.with_file_name(format!("{CACHE_PLAN}.tmp"));
        storage::write_whole(&next, &self.encode())?;
        storage::rename(&next, &generation.join(CACHE_PLAN))?;
        storage::sync_dir(generation)
    }

    pub fn read(generation: &Path) -> Result<Option<Self>, IndexError> {
        let path = generation.join(CACHE_PLAN);
        match plain::read(&path) {
            Ok(bytes) => Self::decode(&path, &bytes).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the plan of a generation, if there is one; `Lacks` if it is about another.
    pub(crate) fn open(generation: &Generation) -> Result<Option<Self>, IndexError> {
        let plan = Self::read(generation.path())?;
        let path = generation.path().join(CACHE_PLAN);
        plan.map(|plan| plan.check(&path, generation).map(|()| plan)).transpose()
    }

    /// Checks that the plan in the file at `path` is about this generation (or `Lacks`) and names
    /// lists that are there (or `Damaged`).
    pub(crate) fn check(&self, path: &Path, generation: &Generation) -> Result<(), IndexError> {
        let now = PlanOf::generation(generation)?;
        if now != self.of {
            let of = self.of.generation;
            let now = now.generation;
            let reason = match of == now {
                true => format!("the plan is about another index with a generation {of}"),
                false => format!("the plan is about generation {of}, and this is generation {now}"),
            };
            return Err(IndexError::lacks(path, reason + ": make a new one"));
        }
        for (number, list) in (1..).zip(self.cached.lists()) {
            let CachedList { run, entry, blocks, .. } = *list;
            let fits = generation.runs().get(run as usize).is_some_and(|run| {
                let header = run.postings_header();
                let end = entry.offset.checked_add(entry.bytes);
                end.is_some_and(|end| end <= header.list_bytes)
                    && entry.df <= run.documents()
                    && blocks as usize <= (entry.df as usize).div_ceil(header.form.block_len())
            });
            if !fits {
                let at = HEADER_BYTES as u64 + number * RECORD_BYTES as u64;
                let found = format!("run {run}, byte {}, df {}", entry.offset, entry.df);
                return Err(IndexError::damaged(path, at, "a list of the generation", found));
            }
        }
        Ok(())
    }
}

struct PlanRecord([u8; RECORD_BYTES]);

impl PlanRecord {
    fn u32(&self, at: usize) -> u32 {
        self.0[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&self, at: usize) -> u64 {
        self.0[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
