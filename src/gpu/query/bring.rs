//! How do lists come to the device while batches run? A [`Bringer`] has a stream of its own and a little memory on
//! both sides: long lists of `bp128` are copied as they lie on disk, some blocks at a time, and decoded there
//! (`query_unpack`), so that a copy has the bytes of the index and not four times as many, and the host hardly touches
//! them. All other lists are made on the host.

use super::device::QueryDevice;
use super::list::{ListMaker, Placed, Windows};
use super::load::{lists_to_unpack, make_list};
use super::slab::{Slab, Staging};
use super::unpack::{Outline, Portion};
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a portion: enough to hide what a copy and a launch cost, and little enough for many threads.
const PORTION_BYTES: usize = 2 << 20;

/// Threads of a block, which are warps of their own.
const THREADS: u32 = 256;

/// What came of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It is there, in this place.
    Here(u64, Placed),
    /// There is no room for it.
    NoRoom,
    /// The index is damaged: whoever searches it finds out where. It was to come to this place, if that was known.
    Damaged(Option<u64>),
    /// The device took no copy to this place, and cannot be used any more.
    Lost(u64),
}

/// Brings lists to a device, one at a time.
#[derive(Debug)]
pub struct Bringer {
    snapshot: Arc<Snapshot>,
    share: Range<u32>,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    windows: Windows,
    portion_bytes: usize,
    arena: Arc<Slab>,
    norms: Arc<Slab>,
    /// Portions on the host, and on the device: a fault, the first postings of windows, and a portion.
    staging: Staging,
    memory: Slab,
    maker: ListMaker,
    bytes: Vec<u8>,
    most_blocks: u32,
}

/// Bytes before the first postings of windows.
const FAULT_BYTES: usize = 16;

fn firsts_bytes(windows: Windows) -> usize {
    (4 * (windows.len() + 1)).next_multiple_of(16)
}

impl Bringer {
    /// Opens what one thread needs to bring lists of a share of the documents, which the device has the norms of.
    ///
    /// # Errors
    /// The device has not the memory.
    pub fn new(
        query: &QueryDevice,
        snapshot: &Arc<Snapshot>,
        share: &Range<u32>,
    ) -> Result<Self, GpuError> {
        Self::with_portions(query, snapshot, share, PORTION_BYTES)
    }

    /// As [`new`](Self::new), with portions of so many bytes.
    ///
    /// # Errors
    /// As there.
    pub fn with_portions(
        query: &QueryDevice,
        snapshot: &Arc<Snapshot>,
        share: &Range<u32>,
        portion_bytes: usize,
    ) -> Result<Self, GpuError> {
        let (device, windows): (&Device, _) = (query.device(), query.windows());
        let stream = device.context().new_stream().map_err(|e| device.call("make a stream", e))?;
        let bytes = FAULT_BYTES + firsts_bytes(windows) + portion_bytes;
        Ok(Self {
            snapshot: snapshot.clone(),
            share: share.clone(),
            stream,
            kernel: query.function("query_unpack").clone(),
            windows,
            portion_bytes,
            arena: query.arena().clone(),
            norms: query.norms().clone(),
            staging: Staging::new(device, "lists on their way", bytes)?,
            memory: Slab::new(device, "lists on their way", bytes as u64)?,
            maker: ListMaker::default(),
            bytes: Vec::new(),
            most_blocks: 8 * device.info().multiprocessors,
        })
    }

    /// Brings the list of a term, whose entries in all runs are given, to where `room` says that so many bytes
    /// of the arena are free.
    ///
    /// # Panics
    /// If there are not as many entries as runs.
    pub fn bring(
        &mut self,
        entries: &[Option<TermEntry>],
        room: impl FnOnce(u64) -> Option<u64>,
    ) -> Brought {
        let snapshot = self.snapshot.clone();
        let lists = lists_to_unpack(snapshot.generation(), entries);
        let outline = match lists {
            Err(_) => return Brought::Damaged(None),
            Ok(None) => return self.make(entries, room),
            Ok(Some(lists)) => Outline::new(&lists, self.windows, &self.share),
        };
        let Ok(outline) = outline else { return Brought::Damaged(None) };
        let Some(at) = room(outline.bytes()) else { return Brought::NoRoom };
        match self.unpack(&outline, at) {
            Ok(true) => Brought::Here(at, outline.placed()),
            Ok(false) => Brought::Damaged(Some(at)),
            Err(_) => Brought::Lost(at),
        }
    }

    /// Makes a list on the host.
    fn make(
        &mut self,
        entries: &[Option<TermEntry>],
        room: impl FnOnce(u64) -> Option<u64>,
    ) -> Brought {
        self.bytes.clear();
        let norms = &self.snapshot.norms()[self.share.start as usize..self.share.end as usize];
        let of = (self.windows, &self.share);
        let generation = self.snapshot.generation();
        let made = make_list(generation, entries, of, norms, &mut self.maker, &mut self.bytes);
        let Ok(placed) = made else { return Brought::Damaged(None) };
        let Some(at) = room(self.bytes.len() as u64) else { return Brought::NoRoom };
        match self.arena.write(at, &self.bytes) {
            Ok(()) => Brought::Here(at, placed),
            Err(_) => Brought::Lost(at),
        }
    }

    /// Has the device make the list of an outline at a place of the arena. False if the list is damaged.
    fn unpack(&mut self, outline: &Outline<'_>, at: u64) -> Result<bool, DriverError> {
        self.stream.context().bind_to_thread()?;
        let placed = outline.placed();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        outline.head(&mut bytes);
        self.arena.write(at, &bytes)?;
        let postings_at = bytes.len() as u64;
        bytes.clear();
        outline.end(&mut bytes);
        self.arena.write(at + postings_at + 4 * u64::from(placed.postings), &bytes)?;
        self.bytes = bytes;
        // What every portion needs goes with the first.
        let mut sent = 0..FAULT_BYTES + firsts_bytes(self.windows);
        // SAFETY: no copy is under way: each is waited for below.
        let head = unsafe { &mut self.staging.bytes_mut()[sent.clone()] };
        head.fill(0);
        let firsts: &[u8] = bytemuck::cast_slice(&outline.firsts);
        head[FAULT_BYTES..FAULT_BYTES + firsts.len()].copy_from_slice(firsts);
        let begin = sent.end;
        for portion in outline.portions(self.portion_bytes) {
            sent.end = begin + portion.bytes();
            // SAFETY: as above.
            portion.write(unsafe { &mut self.staging.bytes_mut()[begin..sent.end] });
            let to = self.memory.part(sent.start as u64, sent.len() as u64);
            // SAFETY: both parts live as long as this, and nobody writes them before the stream is waited for.
            unsafe { self.staging.copy_up(sent.clone(), to, &self.stream) }?;
            self.launch(&portion, at, placed.postings)?;
            self.stream.synchronize()?;
            sent.start = begin;
        }
        // SAFETY: the fault is the first word of both, and nobody looks at it before the stream is waited for.
        unsafe { self.staging.copy_down(self.memory.part(0, 4), 0, 4, &self.stream) }?;
        self.stream.synchronize()?;
        // SAFETY: no copy is under way.
        Ok(unsafe { self.staging.bytes() }[..4] == [0; 4])
    }

    /// Has the device decode the first portion of a list that is in the arena again, so many times; returns
    /// its postings and the seconds of one time, or `None` if the device does not decode such lists. For measurements.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If the list cannot be read.
    pub fn measure(
        &mut self,
        entries: &[Option<TermEntry>],
        at: u64,
        times: u32,
    ) -> Result<Option<(u64, f64)>, DriverError> {
        let snapshot = self.snapshot.clone();
        let lists = lists_to_unpack(snapshot.generation(), entries).expect("the list was read");
        let Some(lists) = lists else { return Ok(None) };
        let outline = Outline::new(&lists, self.windows, &self.share).expect("the list was read");
        self.unpack(&outline, at)?;
        let portion = outline.portions(self.portion_bytes).next().expect("a list has postings");
        let begin = FAULT_BYTES + firsts_bytes(self.windows);
        // SAFETY: `unpack` has waited for all copies.
        portion.write(unsafe { &mut self.staging.bytes_mut()[begin..begin + portion.bytes()] });
        let to = self.memory.part(begin as u64, portion.bytes() as u64);
        // SAFETY: as in `unpack`.
        unsafe { self.staging.copy_up(begin..begin + portion.bytes(), to, &self.stream) }?;
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let began = self.stream.record_event(flags)?;
        for _ in 0..times {
            self.launch(&portion, at, outline.placed().postings)?;
        }
        let ended = self.stream.record_event(flags)?;
        ended.synchronize()?;
        let seconds = f64::from(began.elapsed_ms(&ended)?) / 1e3 / f64::from(times);
        Ok(Some((u64::from(portion.lines() * portion.block_len), seconds)))
    }

    fn launch(&self, portion: &Portion<'_>, at: u64, postings: u32) -> Result<(), DriverError> {
        let firsts = self.memory.part(FAULT_BYTES as u64, 0);
        let lines = firsts + firsts_bytes(self.windows) as u64;
        let payload = lines + portion.lines_bytes() as u64;
        let (fault, norms) = (self.memory.address(), self.norms.address());
        let list = self.arena.part(at, 4 * u64::from(postings));
        let (count, payload_words) = (portion.lines(), portion.payload_words());
        let (windows, documents) = (self.windows.len() as u32, self.windows.documents);
        let mut arguments = self.stream.launch_builder(&self.kernel);
        arguments.arg(&lines).arg(&count).arg(&portion.block_len).arg(&portion.first);
        arguments.arg(&payload).arg(&payload_words).arg(&firsts).arg(&windows).arg(&documents);
        arguments.arg(&norms).arg(&list).arg(&postings).arg(&fault);
        let blocks = count.div_ceil(THREADS / 32).clamp(1, self.most_blocks);
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: these are the arguments that the kernel declares, which the tests pass to it too; all arrays live
        // until the stream is waited for, and the kernel compares what it is told with their lengths.
        unsafe { arguments.launch(config) }.map(drop)
    }
}

impl Drop for Bringer {
    fn drop(&mut self) {
        // Memory goes once nothing uses it; an error of the device is told by whoever uses it next.
        _ = self.stream.synchronize();
    }
}
