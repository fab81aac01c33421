//! The outline of a list of `bp128` with which a device decodes it: where each block lies, which
//! postings are first of their windows, and which have term frequencies too great for a byte. The
//! host decodes only blocks in which a window begins, or whose bounds allow such term frequencies.
//!
//! The list is then the one that a [`ListMaker`](super::list::ListMaker) makes, to the byte.

use super::list::{EXCEPTION, GROUP, PlacedList, Windows};
use crate::gpu::floor::arrays::{ALIGNMENT, put};
use crate::index::list::{BEFORE_FIRST, ListError, ListView, MAX_BLOCK, SegmentColumns};
use crate::score::bounds::{Bound, greatest_tf};
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// Shorter lists are made on the host, in less time than a launch takes.
pub(crate) const LEAST_UNPACKED: u32 = 4096;

/// As in `kernels/query_unpack.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BlockLine {
    pub place: u32,
    pub previous: u32,
    pub widths: u32,
    pub number: u32,
}

/// Consecutive blocks of a list in one run, and their bytes.
#[derive(Clone, Debug)]
struct BlockStretch<'a> {
    /// The last may be that of the tail.
    lines: Vec<BlockLine>,
    payload: &'a [u8],
    /// The tail as a block of full width.
    tail: Vec<u32>,
    block_len: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outline<'a> {
    stretches: Vec<BlockStretch<'a>>,
    /// The number in the index of the first posting of each window, and of the first behind all.
    pub firsts: Vec<u32>,
    /// The same in the list of the device.
    starts: Vec<u32>,
    /// Number and term frequency of postings whose tf is too great for a byte.
    great: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunList<'a> {
    pub list: ListView<'a>,
    pub first_docid: u32,
    pub documents: u32,
}

fn may_be_great(bound: Option<&Bound>) -> bool {
    // The first pair has the greatest term frequency.
    bound.is_none_or(|bound| greatest_tf(bound[0]) >= EXCEPTION)
}

impl<'a> Outline<'a> {
    /// Of the lists of a term in all runs, as far as documents are in `share`.
    ///
    /// # Errors
    /// A list is damaged. Not all damage is found.
    ///
    /// # Panics
    /// If a list is not one of `bp128`.
    pub(crate) fn new(
        lists: &[RunList<'a>],
        windows: Windows,
        share: &Range<u32>,
    ) -> Result<Self, ListError> {
        let mut outline = Self::default();
        let mut first = 0;
        for run in lists {
            outline.read(run, first, windows, share)?;
            first += run.list.df();
        }
        outline.reach(windows.len(), first);
        outline.starts.push(0);
        for pair in outline.firsts.windows(2) {
            let before = outline.starts[outline.starts.len() - 1];
            outline.starts.push(before + (pair[1] - pair[0]).next_multiple_of(GROUP as u32));
        }
        Ok(outline)
    }

    /// Windows up to `window` that have not begun yet begin with posting `number`.
    fn reach(&mut self, window: usize, number: u32) {
        while self.firsts.len() <= window {
            self.firsts.push(number);
        }
    }

    fn read(
        &mut self,
        run: &RunList<'a>,
        first: u32,
        windows: Windows,
        share: &Range<u32>,
    ) -> Result<(), ListError> {
        let RunList { list, first_docid, documents } = *run;
        assert!(list.form().is_bp128(), "only bp128 is decoded on devices");
        let block_len = list.block_len();
        let mut docids = [0; MAX_BLOCK];
        let mut tfs = [0; MAX_BLOCK];
        let mut columns = SegmentColumns::default();
        let mut lines = Vec::with_capacity(list.full_blocks() + 1);
        // All that is left lies behind the share.
        let mut is_behind = false;
        let mut payload: &[u8] = &[];
        let mut words: u32 = 0;
        for block in 0..list.full_blocks() {
            let line = list.block(block)?;
            let number = first + (block * block_len) as u32;
            let low = first_docid.saturating_add(line.previous.wrapping_add(1));
            let high = first_docid.saturating_add(line.last);
            if high < share.start {
                continue;
            }
            if low >= share.end {
                self.reach(windows.len(), number);
                is_behind = true;
                break;
            }
            if lines.is_empty() {
                payload = list.bytes_of(&line);
            }
            let [gap_bits, tf_bits] = line.widths().map(u32::from);
            lines.push(BlockLine {
                place: words,
                previous: line.previous.wrapping_add(first_docid).wrapping_sub(share.start),
                widths: gap_bits | tf_bits << 8 | (block_len as u32) << 16,
                number,
            });
            words += (line.bytes() / 4) as u32;
            let window = (high.saturating_sub(share.start) >> windows.bits) as usize;
            if low < share.start || high >= share.end || self.firsts.len() <= window {
                list.docids_of(&line, &mut columns, documents, &mut docids[..block_len])?;
                self.begin_windows(&docids[..block_len], first_docid, number, windows, share);
            }
            if may_be_great(list.bounds().get(block)) {
                list.tfs_of(&line, &mut columns, &mut tfs[..block_len])?;
                self.note_great(&tfs[..block_len], number);
            }
        }
        let tail_first = first + (list.full_blocks() * block_len) as u32;
        let mut tail = Vec::new();
        if list.tail_len() > 0 && !is_behind {
            let len = list.decode_tail(documents, &mut docids, &mut tfs)?;
            let docids = &docids[..len];
            let tfs = &tfs[..len];
            self.begin_windows(docids, first_docid, tail_first, windows, share);
            self.note_great(tfs, tail_first);
            let previous = match list.full_blocks() {
                0 => BEFORE_FIRST,
                full => list.last_docid(full - 1),
            };
            tail = tail_block(previous, docids, tfs, block_len);
            lines.push(BlockLine {
                place: words,
                previous: previous.wrapping_add(first_docid).wrapping_sub(share.start),
                widths: 32 | 32 << 8 | (len as u32) << 16,
                number: tail_first,
            });
        }
        self.stretches.push(BlockStretch {
            lines,
            payload: &payload[..4 * words as usize],
            tail,
            block_len: block_len as u32,
        });
        Ok(())
    }

    /// Notes the windows that begin in consecutive postings, the first of which is `number`.
    fn begin_windows(
        &mut self,
        docids: &[u32],
        first_docid: u32,
        number: u32,
        windows: Windows,
        share: &Range<u32>,
    ) {
        for (&docid, number) in docids.iter().zip(number..) {
            let docid = first_docid + docid;
            if docid >= share.end {
                return self.reach(windows.len(), number);
            }
            if docid >= share.start {
                self.reach(((docid - share.start) >> windows.bits) as usize, number);
            }
        }
    }

    fn note_great(&mut self, tfs: &[u32], number: u32) {
        let numbered = (number..).zip(tfs.iter().copied());
        self.great.extend(numbered.filter(|&(_, tf)| tf >= EXCEPTION));
    }

    pub(crate) fn placed(&self) -> PlacedList {
        let postings = self.starts[self.starts.len() - 1].next_multiple_of(ALIGNMENT as u32);
        PlacedList { postings, exceptions: self.exceptions().count() as u32, most: 1.0 }
    }

    /// Place in the device's list, and tf, of postings whose tf is too great for a byte.
    fn exceptions(&self) -> impl Iterator<Item = (u32, u32)> {
        self.great.iter().filter_map(|&(number, tf)| {
            let window = self.firsts.partition_point(|&first| first <= number).checked_sub(1)?;
            let begins = self.starts.get(window).filter(|_| window + 1 < self.firsts.len())?;
            Some((begins + (number - self.firsts[window]), tf))
        })
    }

    /// The beginning of the list: where windows begin, and zeros for their greatest impacts.
    pub(crate) fn head(&self, out: &mut Vec<u8>) {
        put(out, bytemuck::cast_slice(&self.starts));
        out.resize(out.len() + (self.starts.len() - 1).next_multiple_of(ALIGNMENT), 0);
    }

    /// The end of the list: its exceptions.
    pub(crate) fn end(&self, out: &mut Vec<u8>) {
        let (places, tfs): (Vec<u32>, Vec<u32>) = self.exceptions().unzip();
        out.extend_from_slice(bytemuck::cast_slice(&places));
        out.extend_from_slice(bytemuck::cast_slice(&tfs));
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// Of the list on the device.
    pub(crate) fn bytes(&self) -> u64 {
        let windows = self.starts.len() - 1;
        let placed = self.placed();
        let head = (4 * self.starts.len()).next_multiple_of(ALIGNMENT)
            + windows.next_multiple_of(ALIGNMENT);
        let end = (8 * u64::from(placed.exceptions)).next_multiple_of(ALIGNMENT as u64);
        head as u64 + 4 * u64::from(placed.postings) + end
    }

    /// Portions with their lines have at most `most` bytes each.
    pub(crate) fn portions(&self, most: usize) -> impl Iterator<Item = Portion<'_>> {
        self.stretches.iter().flat_map(move |stretch| Portions { stretch, most, next: 0 })
    }
}

/// The tail as a block of values of 32 bits: gaps less one, then term frequencies less one.
fn tail_block(mut previous: u32, docids: &[u32], tfs: &[u32], block_len: usize) -> Vec<u32> {
    let mut words = vec![0; 2 * block_len];
    for (i, (&docid, &tf)) in docids.iter().zip(tfs).enumerate() {
        words[i] = docid.wrapping_sub(previous).wrapping_sub(1);
        words[block_len + i] = tf - 1;
        previous = docid;
    }
    words
}

/// Consecutive blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portion<'a> {
    lines: &'a [BlockLine],
    /// Bytes of the blocks, and the words of the tail.
    payload: &'a [u8],
    tail: &'a [u32],
    pub block_len: u32,
}

impl Portion<'_> {
    pub(crate) fn blocks(&self) -> usize {
        self.lines.len()
    }

    /// The lines, if the bytes begin at `word`.
    pub(crate) fn lines(&self, word: u32) -> impl Iterator<Item = BlockLine> {
        let from = self.lines.first().map_or(0, |line| line.place);
        self.lines.iter().map(move |line| BlockLine { place: line.place - from + word, ..*line })
    }

    /// Bytes that [`write`](Self::write) writes.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload.len() + size_of_val(self.tail)
    }

    /// # Panics
    /// If there is no room.
    pub(crate) fn write(&self, out: &mut [u8]) {
        let (payload, tail) = out.split_at_mut(self.payload.len());
        payload.copy_from_slice(self.payload);
        let words: &[u8] = bytemuck::cast_slice(self.tail);
        tail[..words.len()].copy_from_slice(words);
    }
}

struct Portions<'a> {
    stretch: &'a BlockStretch<'a>,
    most: usize,
    next: usize,
}

impl<'a> Iterator for Portions<'a> {
    type Item = Portion<'a>;

    fn next(&mut self) -> Option<Portion<'a>> {
        let BlockStretch { lines, payload, tail, block_len } = self.stretch;
        let from = self.next;
        let begin = 4 * lines.get(from)?.place as usize;
        let all = payload.len() + size_of_val(&tail[..]);
        let end_of = |line: usize| lines.get(line + 1).map_or(all, |next| 4 * next.place as usize);
        let line_bytes = size_of::<BlockLine>() + 4;
        let fits =
            |&line: &usize| line_bytes * (line + 1 - from) + end_of(line) - begin <= self.most;
        // One at least: no block has more bytes than any portion.
        let count = (from..lines.len()).take_while(fits).count().max(1);
        self.next = from + count;
        let is_last = self.next == lines.len();
        let end = if is_last { payload.len() } else { end_of(self.next - 1) };
        Some(Portion {
            lines: &lines[from..self.next],
            payload: &payload[begin..end],
            tail: if is_last { tail } else { &[] },
            block_len: *block_len,
        })
    }
}
