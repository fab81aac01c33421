//! Several lists in one copy to a device. A [`Parcel`] is filled with what the host has made whole,
//! and with blocks that the device decodes; two kernels put all of it where it belongs. Most lists
//! are short: a copy, two launches and a wait for hundreds of them take less time than for each.

use super::unpack::{BlockLine, Portion};
use bytemuck::{Pod, Zeroable, cast_slice};

/// This and the next as in `kernels/query_unpack.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct ParcelPiece {
    to: u64,
    from: u32,
    units: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct ListRecord {
    place: u64,
    firsts: u32,
    postings: u32,
    block_len: u32,
    spare: [u32; 3],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub bytes: usize,
    /// First byte and number.
    pub pieces: (usize, u32),
    /// First byte and number.
    pub lines: (usize, u32),
    /// A u32 for each line: the number of its portion.
    pub owners: usize,
    /// A record for each portion.
    pub portions: usize,
    pub words: u32,
}

/// Its bytes are the caller's: the same for all calls since [`clear`](Self::clear).
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    /// Bytes of data so far, a multiple of 16.
    used: usize,
    pieces: Vec<ParcelPiece>,
    portions: Vec<ListRecord>,
    lines: Vec<BlockLine>,
    owners: Vec<u32>,
}

fn whole(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

impl Parcel {
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.pieces.clear();
        self.portions.clear();
        self.lines.clear();
        self.owners.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Bytes with so many more of data and so many lines.
    pub(crate) fn bytes_with(&self, data: usize, lines: usize) -> usize {
        // One more piece and portion, and padding of each array to a multiple of 16.
        let pieces = size_of::<ParcelPiece>() * (self.pieces.len() + 2);
        let portions = size_of::<ListRecord>() * (self.portions.len() + 1);
        let lines = (size_of::<BlockLine>() + 4) * (self.lines.len() + lines);
        self.used + whole(data) + 64 + pieces + portions + lines
    }

    /// Adds bytes for a place of the arena; both are multiples of 16.
    pub(crate) fn put(&mut self, out: &mut [u8], to: u64, bytes: &[u8]) {
        debug_assert!(bytes.len().is_multiple_of(16) && to.is_multiple_of(16));
        if bytes.is_empty() {
            return;
        }
        let from = (self.used / 16) as u32;
        let units = (bytes.len() / 16) as u32;
        self.write(out, bytes);
        self.pieces.push(ParcelPiece { to, from, units });
    }

    /// Adds the numbers of windows' first postings; [`portion`](Self::portion) needs the result.
    pub(crate) fn firsts(&mut self, out: &mut [u8], firsts: &[u32]) -> u32 {
        let at = (self.used / 4) as u32;
        self.write(out, cast_slice(firsts));
        at
    }

    fn write(&mut self, out: &mut [u8], bytes: &[u8]) {
        out[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += whole(bytes.len());
    }

    /// Adds blocks of a list, by its place in the arena and its postings there.
    pub(crate) fn portion(
        &mut self,
        out: &mut [u8],
        portion: &Portion<'_>,
        place: u64,
        postings: u32,
        firsts: u32,
    ) {
        let owner = self.portions.len() as u32;
        let spare = [0; 3];
        let block_len = portion.block_len;
        self.portions.push(ListRecord { place, firsts, postings, block_len, spare });
        let from = (self.used / 4) as u32;
        self.lines.extend(portion.lines(from));
        self.owners.resize(self.lines.len(), owner);
        portion.write(&mut out[self.used..]);
        self.used += whole(portion.payload_bytes());
    }

    /// Writes the tables behind the data.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn seal(&self, out: &mut [u8]) -> Tables {
        let mut at = self.used;
        let mut table = |bytes: &[u8]| {
            let here = at;
            out[here..here + bytes.len()].copy_from_slice(bytes);
            at += whole(bytes.len());
            here
        };
        let pieces = (table(cast_slice(&self.pieces)), self.pieces.len() as u32);
        let portions = table(cast_slice(&self.portions));
        let lines = (table(cast_slice(&self.lines)), self.lines.len() as u32);
        let owners = table(cast_slice(&self.owners));
        let words = (self.used / 4) as u32;
        Tables { bytes: at, pieces, lines, owners, portions, words }
    }
}
