//! How does a parsed block get to a device?

use super::block::{PADDING, Row, TokenBlock};
use crate::dictionary::stream::TokenGroup;
use crate::gpu::floor::device::{Device, Ticket};
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::memory::DeviceBuffer;
use crate::gpu::floor::pinned::Pinned;
use crate::text::trie_collection::TRIE_COLLECTIONS;

/// The most that blocks of one owner have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Bytes of the streams of all pieces.
    pub bytes: usize,
    pub segments: usize,
}

/// A parsed block on a device.
#[derive(Debug)]
pub struct Staged {
    pub(super) input: DeviceBuffer<u8>,
    pub(super) streams: DeviceBuffer<u8>,
    pub(super) segments: DeviceBuffer<u32>,
    pub(super) work: DeviceBuffer<u32>,
    /// Segments and collections of the block that is there.
    pub(super) rows: (u32, u32),
    /// Its copy, and the kernels that read what was there before.
    pub(super) uploaded: Option<Ticket>,
    pub(super) read: Option<Ticket>,
}

impl Most {
    /// Bytes of pinned memory that such a block takes.
    pub fn pinned_bytes(&self) -> usize {
        let rows = self.segments + PADDING + TRIE_COLLECTIONS;
        self.bytes.next_multiple_of(size_of::<Row>()) + rows * size_of::<Row>()
    }

    /// Whether a block has no more than this.
    #[cfg(test)]
    pub(crate) fn holds(&self, block: &TokenBlock) -> bool {
        block.input_bytes as usize <= self.bytes && block.segments_len() as usize <= self.segments
    }
}

impl Staged {
    /// Makes room for a block.
    ///
    /// # Errors
    /// The device has not so much memory.
    pub fn new(device: &Device, most: &Most) -> Result<Self, GpuError> {
        let streams = most.bytes + TRIE_COLLECTIONS * size_of::<Row>();
        Ok(Self {
            input: device.alloc("pieces", most.bytes)?,
            // Lanes read the sixteen bytes around the end of a stream.
            streams: device.alloc("streams", streams)?,
            segments: device.alloc("segments", (most.segments + PADDING) * 4)?,
            work: device.alloc("work list", TRIE_COLLECTIONS * 4)?,
            rows: (0, 0),
            uploaded: None,
            read: None,
        })
    }

    /// Writes a block to pinned memory of at least [`Most::pinned_bytes`]; `pieces` are those that
    /// `block` was made from.
    ///
    /// # Errors
    /// The memory's last copy is under way.
    ///
    /// # Panics
    /// If it is too small.
    pub fn fill(
        block: &TokenBlock,
        pieces: &[(&TokenGroup, u32)],
        to: &mut Pinned,
    ) -> Result<(), GpuError> {
        let mut rest = to.bytes_mut()?;
        let mut put = |bytes: &[u8]| {
            let (here, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            here.copy_from_slice(bytes);
            rest = behind;
        };
        for (group, _) in pieces {
            put(&group.bytes);
        }
        let tables = Self::tables_at(block);
        put(&[0; size_of::<Row>()][..tables - block.input_bytes as usize]);
        put(bytemuck::cast_slice(&block.segments));
        put(bytemuck::cast_slice(&block.work));
        Ok(())
    }

    /// Where the tables begin in pinned memory.
    fn tables_at(block: &TokenBlock) -> usize {
        (block.input_bytes as usize).next_multiple_of(size_of::<Row>())
    }

    /// Enqueues the copy of a block that [`fill`](Self::fill) wrote. Its ticket is that of the
    /// copy.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If there is no room for the block.
    pub fn upload(
        &mut self,
        device: &Device,
        block: &TokenBlock,
        from: &Pinned,
    ) -> Result<Ticket, GpuError> {
        assert!(block.input_bytes as usize <= self.input.len(), "a block has too many bytes");
        assert!(block.segments.len() * 4 <= self.segments.len(), "a block has too many segments");
        let tables = Self::tables_at(block);
        let work = tables + block.segments.len() * size_of::<Row>();
        let end = work + block.work.len() * size_of::<Row>();
        self.rows = (block.segments_len(), block.work.len() as u32);
        let stream = device.upload();
        if let Some(read) = &self.read {
            read.holds_back(stream)?;
        }
        if block.input_bytes > 0 {
            device.copy_up::<u8>(
                stream,
                from,
                0..block.input_bytes as usize,
                self.input.slice_mut(),
            )?;
            device.copy_up::<u32>(stream, from, tables..work, self.segments.slice_mut())?;
            device.copy_up::<u32>(stream, from, work..end, self.work.slice_mut())?;
        }
        let copied = || device.ticket(stream, GpuWork::Upload(end as u64));
        self.uploaded = Some(copied()?);
        copied()
    }
}
