//! How do lists come to the device while batches run? A [`Bringer`] has a stream of its own and a
//! little memory on both sides. Long lists of `bp128` are copied as they lie on disk and decoded
//! there (`query_unpack`), so that a copy has the bytes of the index and not twice as many, and the
//! host hardly touches them; all others are made on the host. As many lists travel together as fit
//! a [`Parcel`].

use super::device::QueryDevice;
use super::list::{ListMaker, Placed, Windows};
use super::load::{lists_to_unpack, make_list};
use super::parcel::{Parcel, Tables};
use super::unpack::Outline;
use crate::fault;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::{Slab, Staging};
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a parcel: enough to hide what a copy and two launches cost, and little enough for many
/// threads.
const PARCEL_BYTES: usize = 2 << 20;

/// Bytes of a parcel before its data: a fault, which kernels write in the memory of the host.
const FAULT_BYTES: usize = 16;

const THREADS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It is there, in this place.
    Here(u64, Placed),
    /// There is no room for it.
    NoRoom,
    /// The index is damaged: whoever searches it finds out where. It was to come to this place, if
    /// that was known.
    Damaged(Option<u64>),
    /// The device took no copy to this place, and cannot be used any more.
    Lost(u64),
}

/// A list that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a, I> {
    pub id: I,
    /// The term in each run.
    pub entries: &'a [Option<TermEntry>],
}

#[derive(Debug)]
pub struct Bringer<I> {
    snapshot: Arc<Snapshot>,
    share: Range<u32>,
    stream: Arc<CudaStream>,
    put: CudaFunction,
    unpack: CudaFunction,
    windows: Windows,
    arena: Arc<Slab>,
    norms: Arc<Slab>,
    parcel: Parcel,
    /// The parcel on the host, behind a fault, and on the device.
    staging: Staging,
    memory: Slab,
    /// Lists that the parcel has the last bytes of.
    travelling: Vec<(I, u64, Placed)>,
    maker: ListMaker,
    bytes: Vec<u8>,
    multiprocessors: u32,
}

impl<I: Copy> Bringer<I> {
    /// Opens what one thread needs to bring lists of a share of the documents, which the device has
    /// the norms of.
    ///
    /// # Errors
    /// The device has not the memory.
    pub fn new(
        query: &QueryDevice,
        snapshot: &Arc<Snapshot>,
        share: &Range<u32>,
    ) -> Result<Self, GpuError> {
        let parcel_bytes = fault::parcel_bytes(PARCEL_BYTES);
        let (device, windows): (&Device, _) = (query.device(), query.windows());
        let stream = device.context().new_stream().map_err(|e| device.call("make a stream", e))?;
        // A portion of a list goes with the numbers of its windows.
        let bytes = parcel_bytes + 16 * windows.len();
        Ok(Self {
            snapshot: snapshot.clone(),
            share: share.clone(),
            stream,
            put: query.function("query_put").clone(),
            unpack: query.function("query_unpack").clone(),
            windows,
            arena: query.arena().clone(),
            norms: query.norms().clone(),
            parcel: Parcel::default(),
            staging: Staging::new(device, "lists on their way", FAULT_BYTES + bytes)?,
            memory: Slab::new(device, "lists on their way", bytes as u64)?,
            travelling: Vec::new(),
            maker: ListMaker::default(),
            bytes: Vec::new(),
            multiprocessors: device.info().multiprocessors,
        })
    }

    /// Bytes of postings on disk that fill a parcel, about.
    pub(crate) fn parcel_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Brings lists to where `room` says that so many bytes of the arena are free for each, and
    /// tells what came of each, in any order.
    ///
    /// # Panics
    /// If a list has not as many entries as there are runs.
    pub fn bring<'a>(
        &mut self,
        asked: impl IntoIterator<Item = ListRequest<'a, I>>,
        mut room: impl FnMut(I, u64) -> Option<u64>,
        mut tell: impl FnMut(I, Brought),
    ) where
        I: 'a,
    {
        let snapshot = self.snapshot.clone();
        for ListRequest { id, entries } in asked {
            let outline = lists_to_unpack(snapshot.generation(), entries).map(|lists| {
                lists.map(|lists| Outline::new(&lists, self.windows, &self.share)).transpose()
            });
            match outline {
                Err(_) | Ok(Err(_)) => tell(id, Brought::Damaged(None)),
                Ok(Ok(None)) => self.make(id, entries, &mut room, &mut tell),
                Ok(Ok(Some(outline))) => match room(id, outline.bytes()) {
                    Some(at) => self.pack(id, &outline, at, &mut tell),
                    None => tell(id, Brought::NoRoom),
                },
            }
        }
        self.send(&mut tell);
    }

    /// Makes a list on the host.
    fn make(
        &mut self,
        id: I,
        entries: &[Option<TermEntry>],
        room: &mut impl FnMut(I, u64) -> Option<u64>,
        tell: &mut impl FnMut(I, Brought),
    ) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let norms = &self.snapshot.norms()[self.share.start as usize..self.share.end as usize];
        let of = (self.windows, &self.share);
        let generation = self.snapshot.generation();
        let made = make_list(generation, entries, of, norms, &mut self.maker, &mut bytes);
        match made.map(|placed| (placed, room(id, bytes.len() as u64))) {
            Err(_) => tell(id, Brought::Damaged(None)),
            Ok((_, None)) => tell(id, Brought::NoRoom),
            Ok((placed, Some(at))) => {
                if self.put(at, &bytes, tell) {
                    self.travelling.push((id, at, placed));
                } else {
                    tell(id, Brought::Lost(at));
                }
            }
        }
        self.bytes = bytes;
    }

    /// Sends the parcel if it has not room for so many bytes and lines more. False if it has not
    /// then either.
    fn make_way(&mut self, data: usize, lines: usize, tell: &mut impl FnMut(I, Brought)) -> bool {
        let fits = |parcel: &Parcel, memory: &Slab| {
            parcel.bytes_with(data, lines) as u64 <= memory.bytes()
        };
        if !fits(&self.parcel, &self.memory) {
            self.send(tell);
        }
        fits(&self.parcel, &self.memory)
    }

    /// Puts bytes into the parcel, or, if they are too many for any, where they belong. False if
    /// the device is lost.
    fn put(&mut self, at: u64, bytes: &[u8], tell: &mut impl FnMut(I, Brought)) -> bool {
        if !self.make_way(bytes.len(), 0, tell) {
            return self.arena.write(at, bytes).is_ok();
        }
        // SAFETY: no copy is under way: `send` waits.
        let out = unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] };
        self.parcel.put(out, at, bytes);
        true
    }

    /// Puts a list that the device decodes into one parcel or several.
    fn pack(&mut self, id: I, outline: &Outline<'_>, at: u64, tell: &mut impl FnMut(I, Brought)) {
        let placed = outline.placed();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        outline.head(&mut bytes);
        let end_at = at + bytes.len() as u64 + 4 * u64::from(placed.postings);
        let mut is_well = self.put(at, &bytes, tell);
        bytes.clear();
        outline.end(&mut bytes);
        is_well &= self.put(end_at, &bytes, tell);
        self.bytes = bytes;
        let firsts_bytes = size_of_val(&outline.firsts[..]);
        // With its firsts any portion fits an empty parcel.
        let most = self.memory.bytes() as usize - 2 * firsts_bytes - 256;
        let mut firsts = None;
        for portion in outline.portions(most) {
            let data = firsts_bytes + 16 + portion.payload_bytes();
            if self.parcel.bytes_with(data, portion.blocks()) as u64 > self.memory.bytes() {
                is_well &= self.send(tell);
                firsts = None;
            }
            // SAFETY: as in `put`.
            let out = unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] };
            let firsts = *firsts.get_or_insert_with(|| self.parcel.firsts(out, &outline.firsts));
            self.parcel.portion(out, &portion, (at, placed.postings), firsts);
        }
        if is_well {
            self.travelling.push((id, at, placed));
        } else {
            // What was sent did not arrive whole; nothing reads the rest.
            tell(id, Brought::Damaged(Some(at)));
        }
    }

    /// Sends the parcel and tells of the lists that are whole then; false if anything in it was
    /// damaged.
    fn send(&mut self, tell: &mut impl FnMut(I, Brought)) -> bool {
        // A list that no parcel has room for has gone by itself, and waits to be told of with an
        // empty one.
        let sent = if self.parcel.is_empty() { Ok(true) } else { self.copy_and_launch() };
        self.parcel.clear();
        for (id, at, placed) in self.travelling.drain(..) {
            tell(
                id,
                match sent {
                    Ok(true) => Brought::Here(at, placed),
                    Ok(false) => Brought::Damaged(Some(at)),
                    Err(_) => Brought::Lost(at),
                },
            );
        }
        sent == Ok(true)
    }

    fn copy_and_launch(&mut self) -> Result<bool, DriverError> {
        self.stream.context().bind_to_thread()?;
        // SAFETY: no copy is under way: each is waited for below.
        let staging = unsafe { self.staging.bytes_mut() };
        staging[..FAULT_BYTES].fill(0);
        let tables = self.parcel.seal(&mut staging[FAULT_BYTES..]);
        let to = self.memory.part(0, tables.bytes as u64);
        let bytes = FAULT_BYTES..FAULT_BYTES + tables.bytes;
        // SAFETY: both live as long as this, and nobody writes them before the stream is waited
        // for.
        unsafe { self.staging.copy_up(bytes, to, &self.stream) }?;
        self.launch(&tables, true)?;
        self.stream.synchronize()?;
        // SAFETY: no kernel runs that could write it.
        Ok(unsafe { self.staging.bytes() }[..FAULT_BYTES] == [0; FAULT_BYTES])
    }

    /// As many blocks as are on the device at a time: more would begin with an equal part of the
    /// work when the first have ended, and leave most of it idle.
    fn config(&self, kernel: &CudaFunction, blocks: u32) -> Result<LaunchConfig, DriverError> {
        let resident = kernel.occupancy_max_active_blocks_per_multiprocessor(THREADS, 0, None)?;
        Ok(LaunchConfig {
            grid_dim: (blocks.clamp(1, resident.max(1) * self.multiprocessors), 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: 0,
        })
    }

    fn launch(&self, tables: &Tables, whole: bool) -> Result<(), DriverError> {
        let parcel = self.memory.address();
        let at = |place: usize| parcel + place as u64;
        let (arena, norms, fault) =
            (self.arena.address(), self.norms.address(), self.staging.address());
        let (pieces, pieces_len) = (at(tables.pieces.0), tables.pieces.1);
        if whole && pieces_len > 0 {
            let mut arguments = self.stream.launch_builder(&self.put);
            arguments.arg(&pieces).arg(&pieces_len).arg(&parcel).arg(&arena);
            // SAFETY: these are the arguments that the kernel declares, which the tests pass to it
            // too; pieces lie in the parcel and go to lists that have room in the arena.
            unsafe { arguments.launch(self.config(&self.put, pieces_len)?) }?;
        }
        let (lines, lines_len) = (at(tables.lines.0), tables.lines.1);
        if lines_len > 0 {
            let (owners, portions) = (at(tables.owners), at(tables.portions));
            let (windows, documents) = (self.windows.len() as u32, self.windows.documents);
            let mut arguments = self.stream.launch_builder(&self.unpack);
            arguments.arg(&lines).arg(&lines_len).arg(&owners).arg(&portions).arg(&parcel);
            arguments.arg(&tables.words).arg(&windows).arg(&documents).arg(&norms).arg(&arena);
            arguments.arg(&fault);
            let config = self.config(&self.unpack, lines_len.div_ceil(THREADS / 32))?;
            // SAFETY: as above; all arrays live until the stream is waited for, and the kernel
            // compares what the lines say with their lengths.
            unsafe { arguments.launch(config) }?;
        }
        Ok(())
    }
}

impl<I> Drop for Bringer<I> {
    fn drop(&mut self) {
        // Memory goes once nothing uses it; an error of the device is told by whoever uses it next.
        _ = self.stream.synchronize();
    }
}
