//! Reads a look-up from one hash to another, where memory counts.

use super::{BODY, LookupLayout, LookupPair, PAIR_BYTES, START_BYTES};
use crate::index::deletions::{Deletions, LiveRun};
use crate::index::documents::ramps::{NamePlace, RampWindow};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::FileKind;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;
use twox_hash::XxHash3_128;

/// The documents of a run that are not deleted, in order of the hashes of their names, by
/// positioned reads.
pub(crate) struct LookupStream {
    layout: LookupLayout,
    pairs: FileWindow,
    /// Of the same file.
    buckets: FileWindow,
    /// Looked at for names of equal hashes, which are few and lie anywhere.
    names: FileWindow,
    ends: RampWindow,
    deletions: Arc<Deletions>,
    first_docid: u32,
    /// The next two pairs, and which is read next, up to `end`.
    next: [Option<LookupPair>; 2],
    at: u32,
    end: u32,
    /// The bucket of that, and where it ends.
    bucket: u32,
    bucket_end: u32,
}

const WINDOW_BYTES: usize = 64 << 10;
const BUCKETS_BYTES: usize = 4 << 10;
/// Names of a block are read in one go, if they have no more bytes.
const NAMES_BYTES: usize = if cfg!(test) { 64 } else { 4 << 10 };

impl LookupStream {
    /// Of names whose hashes are in a range.
    pub(crate) fn open(
        generation: &Path,
        live: &LiveRun<'_>,
        hashes: RangeInclusive<u32>,
    ) -> Result<Self, IndexError> {
        let LiveRun { run, deletions } = live;
        let path = run.path(generation, FileKind::Lookup);
        let mut pairs = FileWindow::open(&path, WINDOW_BYTES)?;
        let mut buckets = FileWindow::open(&path, BUCKETS_BYTES)?;
        let layout = LookupLayout::new(run.documents);
        let mut first_from = |hash: u32| {
            let bucket = layout.bucket(hash);
            let in_bucket = read_bucket(layout, &mut buckets, bucket)?;
            let end = in_bucket.end;
            for at in in_bucket {
                if read_pair(layout, &mut pairs, bucket, at)?[0] >= hash {
                    return Ok((at, bucket, end));
                }
            }
            Ok::<_, IndexError>((end, bucket, end))
        };
        let (at, bucket, bucket_end) = first_from(*hashes.start())?;
        let end = match hashes.end().checked_add(1) {
            Some(behind) => first_from(behind)?.0,
            None => run.documents,
        };
        let names = run.path(generation, FileKind::Names);
        let names = FileWindow::open_for_good(&names, NAMES_BYTES)?;
        let ends = RampWindow::open_for_good(generation, run, FileKind::Ends)?;
        let (deletions, first_docid, next) = (deletions.clone(), run.first_docid, [None; 2]);
        let mut stream = Self {
            layout,
            pairs,
            buckets,
            names,
            ends,
            deletions,
            first_docid,
            next,
            at,
            end,
            bucket,
            bucket_end,
        };
        stream.go_on()?;
        stream.go_on()?;
        Ok(stream)
    }

    pub(crate) fn next_hash(&self) -> Option<u32> {
        self.next[0].map(|[hash, _]| hash)
    }

    pub(crate) fn hash_repeats(&self) -> bool {
        self.next[1].map(|[hash, _]| hash) == self.next_hash()
    }

    pub(crate) fn next_document(&mut self) -> Result<(u32, u128), IndexError> {
        let docid = self.next[0].map_or(0, |[_, docid]| docid);
        let place = self.ends.name(docid)?;
        let NamePlace { front, front_end, start, end } = place;
        let mut hash = XxHash3_128::new();
        if end - front <= NAMES_BYTES as u64 {
            let block = self.names.read(BODY + front, (end - front) as usize)?;
            hash.write(&block[..(front_end - front) as usize]);
            hash.write(&block[(start - front) as usize..]);
        } else {
            for Range { start: mut at, end } in place.parts() {
                while at < end {
                    let rest = usize::try_from(end - at).unwrap_or(usize::MAX);
                    let bytes = self.names.read(BODY + at, rest)?;
                    hash.write(bytes);
                    at += bytes.len() as u64;
                }
            }
        }
        Ok((self.first_docid.saturating_add(docid), hash.finish_128()))
    }

    pub(crate) fn go_on(&mut self) -> Result<(), IndexError> {
        self.next = [self.next[1], None];
        while self.at < self.end && self.next[1].is_none() {
            while self.at >= self.bucket_end {
                self.bucket += 1;
                self.bucket_end = read_bucket(self.layout, &mut self.buckets, self.bucket)?.end;
            }
            let pair = read_pair(self.layout, &mut self.pairs, self.bucket, self.at)?;
            self.next[1] = (!self.deletions.contains(pair[1])).then_some(pair);
            self.at += 1;
        }
        Ok(())
    }
}

fn read_pair(
    layout: LookupLayout,
    pairs: &mut FileWindow,
    bucket: u32,
    at: u32,
) -> Result<LookupPair, IndexError> {
    Ok(layout.pair(bucket, pairs.read(layout.at(at), PAIR_BYTES as usize)?))
}

/// The pairs of a bucket.
fn read_bucket(
    layout: LookupLayout,
    buckets: &mut FileWindow,
    bucket: u32,
) -> Result<Range<u32>, IndexError> {
    if bucket >= layout.buckets() {
        let expected = format!("buckets of {} pairs", layout.documents);
        let at = layout.entry(layout.buckets());
        return Err(IndexError::damaged(buckets.path(), at, expected, "the end of the directory"));
    }
    let entries = buckets.read(layout.entry(bucket), 2 * START_BYTES as usize)?;
    let entries: [u32; 2] = bytemuck::pod_read_unaligned(entries);
    layout.pairs(buckets.path(), bucket, entries)
}
