//! A device for tests: it keeps terms in a map on the host, is done with its work some questions
//! later, has as many buffers as it is told, and fails when it is told.

use super::super::{Column, Stretch, TreeDevice, UnderWay, Waiter};
use crate::codec::folded;
use crate::dictionary::closed::Wake;
use crate::dictionary::stream::{TokenGroup, Tokens};
use crate::gpu::btree::block::TokenBlock;
use crate::gpu::btree::room::{Coming, TreeRoom, Usage};
use crate::gpu::btree::staged::Most;
use crate::gpu::btree::terms::Sums;
use crate::gpu::floor::error::Cuda;
use crate::gpu::floor::error::{Geometry, GpuError, GpuWork, Launched};
use crate::text::trie_collection::TRIE_COLLECTIONS;
use cudarc::driver::{DriverError, sys};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) room: TreeRoom,
    pub(super) most: Most,
    pub(super) download_bytes: usize,
    /// Insertions, and downloads, that can be under way.
    pub(super) buffers: usize,
    /// Questions that are answered with no.
    pub(super) delay: u32,
    /// The work that fails, counted from 0.
    pub(super) fails: Option<usize>,
}

type Postings = Vec<(u32, u32)>;

pub(super) struct Emulated {
    manner: Manner,
    terms: BTreeMap<(u16, Vec<u8>), Postings>,
    columns: [Vec<u8>; 6],
    inserts: usize,
    downloads: usize,
    works: usize,
    /// Insertions under way at once, at most.
    pub(super) overlap: Rc<Cell<usize>>,
}

/// Work that was done at once, and says so later.
pub(super) struct Late<R> {
    left: Cell<u32>,
    fails: bool,
    result: R,
}

impl<R> UnderWay for Late<R> {
    fn is_done(&self) -> Result<bool, GpuError> {
        match self.left.get() {
            0 if self.fails => Err(failure()),
            0 => Ok(true),
            left => {
                self.left.set(left - 1);
                Ok(false)
            }
        }
    }
}

fn failure() -> GpuError {
    let geometry = Geometry { blocks: 480, threads: 32, shared_bytes: 0 };
    let kernel = "btree_insert";
    GpuError::Work {
        device: "GPU 0 (emulated)".into(),
        work: GpuWork::Kernel(Launched { kernel, geometry }),
        source: Cuda(DriverError(sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)),
    }
}

impl Emulated {
    pub(super) fn new(manner: Manner) -> Self {
        Self {
            manner,
            terms: BTreeMap::new(),
            columns: Default::default(),
            inserts: 0,
            downloads: 0,
            works: 0,
            overlap: Rc::default(),
        }
    }

    fn late<R>(&mut self, result: R) -> Late<R> {
        let fails = self.manner.fails == Some(self.works);
        self.works += 1;
        Late { left: Cell::new(self.manner.delay), fails, result }
    }

    fn token(&mut self, collection: u16, suffix: &[u8], docid: u32) {
        let list = self.terms.entry((collection, suffix.to_vec())).or_default();
        match list.last_mut() {
            Some((last, tf)) if *last == docid => *tf += 1,
            _ => list.push((docid, 1)),
        }
    }

    /// What a device counts, with words and slices as few as they can be.
    fn counted(&self) -> Usage {
        let mut usage = Usage { terms: self.terms.len() as u64, ..Usage::default() };
        for ((_, suffix), postings) in &self.terms {
            usage.postings += postings.len() as u64;
            usage.taken.string_words += suffix.len().saturating_sub(4).div_ceil(8) as u64;
            let closed = &encoded(postings)[..];
            usage.list_bytes += (closed.len() - last_bytes(postings)) as u64;
        }
        usage.taken.records = usage.terms;
        usage.taken.nodes = usage.terms.div_ceil(31);
        usage.taken.slice_units = usage.list_bytes.div_ceil(8);
        usage
    }
}

fn encoded(postings: &[(u32, u32)]) -> Vec<u8> {
    let (mut bytes, mut expected) = (Vec::new(), 0);
    for &(docid, tf) in postings {
        folded::put(docid - expected, tf, &mut bytes);
        expected = docid + 1;
    }
    bytes
}

fn last_bytes(postings: &[(u32, u32)]) -> usize {
    let (last, before) = postings.split_last().unwrap();
    let expected = before.last().map_or(0, |&(docid, _)| docid + 1);
    folded::bytes(last.0 - expected, last.1)
}

impl TreeDevice for Emulated {
    type Insert = Late<Usage>;
    type Measure = Late<Vec<Sums>>;
    type Download = Late<Vec<u8>>;

    fn room(&self) -> TreeRoom {
        self.manner.room
    }

    fn warps(&self) -> u32 {
        0
    }

    fn most(&self) -> Most {
        self.manner.most
    }

    fn download_bytes(&self) -> usize {
        self.manner.download_bytes
    }

    fn insert(
        &mut self,
        pieces: &[(&TokenGroup, u32)],
        block: &TokenBlock,
    ) -> Result<Option<Self::Insert>, GpuError> {
        assert!(self.manner.most.holds(block), "a block that is too large");
        if self.inserts == self.manner.buffers {
            return Ok(None);
        }
        self.inserts += 1;
        self.overlap.set(self.overlap.get().max(self.inserts));
        // As the kernel goes: collection by collection, segment by segment.
        let input: Vec<u8> = pieces.iter().flat_map(|(group, _)| group.bytes.clone()).collect();
        for &[collection, _, bytes, mut segment] in &block.work {
            let mut done = 0;
            while done < bytes {
                let [from, _, here, first] = block.segments[segment as usize];
                for (document, suffix) in Tokens::new(&input[from as usize..][..here as usize]) {
                    self.token(collection as u16, suffix, first + document);
                }
                done += here;
                segment += 1;
            }
        }
        let usage = self.counted();
        assert!(self.manner.room.holds(usage.taken), "an arena is full: {usage:?}");
        Ok(Some(self.late(usage)))
    }

    fn usage(&mut self, inserted: Self::Insert) -> Result<Usage, GpuError> {
        self.inserts -= 1;
        Ok(inserted.result)
    }

    fn measure(&mut self) -> Result<Self::Measure, GpuError> {
        assert_eq!(self.inserts, 0, "measured before all is inserted");
        let mut sums = vec![Sums::default(); TRIE_COLLECTIONS];
        for ((collection, suffix), postings) in &self.terms {
            let sum = &mut sums[usize::from(*collection)];
            sum[0] += 1;
            sum[1] += suffix.len() as u64;
            sum[2] += encoded(postings).len() as u64;
        }
        Ok(self.late(sums))
    }

    fn sums(&mut self, measured: Self::Measure) -> Result<Vec<Sums>, GpuError> {
        Ok(measured.result)
    }

    fn collect(&mut self, starts: &[Sums], all: Sums) -> Result<(), GpuError> {
        self.columns = Default::default();
        let mut before = None;
        for ((collection, suffix), postings) in &self.terms {
            if before != Some(*collection) {
                let [terms, suffixes, lists] = starts[usize::from(*collection)];
                assert_eq!(self.columns[Column::Lengths as usize].len() as u64, terms);
                assert_eq!(self.columns[Column::Suffixes as usize].len() as u64, suffixes);
                assert_eq!(self.columns[Column::Lists as usize].len() as u64, lists);
                before = Some(*collection);
            }
            let list = encoded(postings);
            let last = postings.last().unwrap().0;
            let mut put = |column: Column, bytes: &[u8]| {
                self.columns[column as usize].extend_from_slice(bytes);
            };
            put(Column::Dfs, &(postings.len() as u32).to_le_bytes());
            put(Column::Lasts, &last.to_le_bytes());
            put(Column::ListBytes, &(list.len() as u32).to_le_bytes());
            put(Column::Lengths, &[suffix.len() as u8]);
            put(Column::Suffixes, suffix);
            put(Column::Lists, &list);
        }
        assert_eq!(all[0], self.terms.len() as u64);
        Ok(())
    }

    fn download(&mut self, stretches: &[Stretch]) -> Result<Option<Self::Download>, GpuError> {
        if self.downloads == self.manner.buffers {
            return Ok(None);
        }
        self.downloads += 1;
        let bytes: Vec<u8> = stretches
            .iter()
            .flat_map(|(column, range)| {
                self.columns[*column as usize][range.start as usize..range.end as usize].to_vec()
            })
            .collect();
        assert!(bytes.len() <= self.manner.download_bytes);
        Ok(Some(self.late(bytes)))
    }

    fn fetched(&mut self, downloaded: Self::Download, to: &mut [u8]) -> Result<(), GpuError> {
        self.downloads -= 1;
        to.copy_from_slice(&downloaded.result);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), GpuError> {
        assert_eq!((self.inserts, self.downloads), (0, 0), "cleared while it works");
        self.terms.clear();
        Ok(())
    }

    fn wake_by(&mut self, _: Waiter, _: Wake) {}

    fn too_small(&self, needed: TreeRoom) -> GpuError {
        GpuError::Budget {
            device: "GPU 0 (emulated)".into(),
            what: "trees",
            bytes: needed.bytes(),
            left: 0,
            limit: self.manner.room.bytes(),
        }
    }
}

/// The room for `tokens` tokens of up to 40 bytes each, whatever they are.
pub(super) fn room_for(tokens: u64) -> TreeRoom {
    let coming = Coming { tokens, bytes: 42 * tokens, documents: 1 << 20 };
    Usage::default().with(&coming, 0)
}
