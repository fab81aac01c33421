//! Brings lists to a device while batches run. A [`Bringer`] has a stream of its own and a little
//! memory on both sides. Long lists of `bp128` are copied as on disk and decoded there
//! (`query_unpack`), so that a copy has the bytes of the index and not twice as many, and the host
//! hardly touches them; others are made on the host. Lists travel together as fit a [`Parcel`].

use super::device::QueryDevice;
use super::list::{ListMaker, PlacedList, Windows};
use super::load::{lists_to_unpack, make_list};
use super::parcel::{Parcel, Tables};
use super::steps::{Array, QueryStep};
use super::unpack::Outline;
use crate::fault;
use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::error::{Geometry, GpuError};
use crate::gpu::floor::pinned::Pinned;
use crate::gpu::floor::steps::{Argument, launch};
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use crate::score::weight::Weight;
use std::ops::Range;
use std::sync::Arc;

/// Enough to hide what a copy and two launches cost, and little enough for many threads.
const PARCEL_BYTES: usize = 2 << 20;

/// Before a parcel's data: a fault, which kernels write in the memory of the host.
const FAULT_BYTES: usize = 16;

const THREADS: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BroughtList {
    Here(u64, PlacedList),
    NoRoom,
    /// The index is damaged: a search of it finds out where. Its place, if that was known.
    Damaged(Option<u64>),
    /// The device took no copy to this place, and cannot be used any more.
    Lost(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct ListRequest<'a, I> {
    pub id: I,
    /// By run.
    pub entries: &'a [Option<TermEntry>],
    /// Of the term, in any query.
    pub weight: Weight,
}

#[derive(Debug)]
pub struct Bringer<I> {
    snapshot: Arc<Snapshot>,
    share: Range<u32>,
    /// Blocks of the kernels that are on the device at a time: more would begin with an equal part
    /// of the work when the first have ended, and leave most of the device idle.
    resident: [u32; 2],
    windows: Windows,
    parcel: Parcel,
    /// The parcel on the host, behind a fault.
    staging: Pinned,
    on: CudaArrays<Array>,
    memory_bytes: u64,
    /// Lists whose last bytes are in the parcel.
    travelling: Vec<(I, u64, PlacedList)>,
    maker: ListMaker,
    bytes: Vec<u8>,
}

impl<I: Copy> Bringer<I> {
    /// What a thread needs to bring lists of a share of the documents, whose norms the device has.
    pub fn new(
        query: &QueryDevice,
        snapshot: &Arc<Snapshot>,
        share: &Range<u32>,
    ) -> Result<Self, GpuError> {
        let mut on = query.arrays()?;
        let resident = |kernel| on.kernels.resident(&on.device, kernel, THREADS);
        let resident = [resident("query_put")?, resident("query_unpack")?];
        let windows = query.windows();
        // A portion of a list goes with the numbers of its windows.
        let bytes = fault::parcel_bytes(PARCEL_BYTES) + 16 * windows.len();
        let what = "lists on their way";
        let memory_bytes = on.take(Array::Parcel, what, bytes as u64)?.bytes();
        Ok(Self {
            snapshot: snapshot.clone(),
            share: share.clone(),
            resident,
            windows,
            parcel: Parcel::default(),
            staging: Pinned::new(&on.device, what, FAULT_BYTES + bytes)?,
            on,
            memory_bytes,
            travelling: Vec::new(),
            maker: ListMaker::default(),
            bytes: Vec::new(),
        })
    }

    /// Bytes of postings on disk that fill a parcel, about.
    pub(crate) fn parcel_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Brings lists to where `room` finds space in the arena, and tells each outcome, in any order.
    ///
    /// # Panics
    /// If a list has not as many entries as there are runs.
    pub fn bring<'a>(
        &mut self,
        asked: impl IntoIterator<Item = ListRequest<'a, I>>,
        mut room: impl FnMut(I, u64) -> Option<u64>,
        mut tell: impl FnMut(I, BroughtList),
    ) where
        I: 'a,
    {
        let snapshot = self.snapshot.clone();
        for ListRequest { id, entries, weight } in asked {
            self.maker.begin(weight);
            let lists = lists_to_unpack(snapshot.generation(), entries, self.windows, weight);
            let outline = lists.map(|lists| {
                lists.map(|lists| Outline::new(&lists, self.windows, &self.share)).transpose()
            });
            match outline {
                Err(_) | Ok(Err(_)) => tell(id, BroughtList::Damaged(None)),
                Ok(Ok(None)) => self.make(id, entries, &mut room, &mut tell),
                Ok(Ok(Some(outline))) => match room(id, outline.bytes()) {
                    Some(at) => self.pack(id, &outline, at, &mut tell),
                    None => tell(id, BroughtList::NoRoom),
                },
            }
        }
        self.send(&mut tell);
    }

    fn make(
        &mut self,
        id: I,
        entries: &[Option<TermEntry>],
        room: &mut impl FnMut(I, u64) -> Option<u64>,
        tell: &mut impl FnMut(I, BroughtList),
    ) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let Self { snapshot, share, windows, maker, .. } = self;
        let norms = snapshot.norms_of(share);
        let generation = snapshot.generation();
        let made = make_list(generation, entries, *windows, share, norms, maker, &mut bytes);
        let made =
            made.map(|placed| placed.and_then(|list| Some((list, room(id, bytes.len() as u64)?))));
        match made {
            Err(_) => tell(id, BroughtList::Damaged(None)),
            Ok(None) => tell(id, BroughtList::NoRoom),
            Ok(Some((placed, at))) => {
                if self.put(at, &bytes, tell) {
                    self.travelling.push((id, at, placed));
                } else {
                    tell(id, BroughtList::Lost(at));
                }
            }
        }
        self.bytes = bytes;
    }

    /// Sends the parcel if so much more does not fit it. False if there is still no room.
    fn make_way(
        &mut self,
        data: usize,
        lines: usize,
        tell: &mut impl FnMut(I, BroughtList),
    ) -> bool {
        if !self.fits(data, lines) {
            self.send(tell);
        }
        self.fits(data, lines)
    }

    fn fits(&self, data: usize, lines: usize) -> bool {
        self.parcel.bytes_with(data, lines) as u64 <= self.memory_bytes
    }

    /// Puts bytes into the parcel, or, if too many, where they belong. False if the device is lost.
    fn put(&mut self, at: u64, bytes: &[u8], tell: &mut impl FnMut(I, BroughtList)) -> bool {
        if !self.make_way(bytes.len(), 0, tell) {
            return self.on.memory.of(Array::Arena).write(at, bytes).is_ok();
        }
        // SAFETY: no copy is under way: `send` waits.
        let out = unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] };
        self.parcel.put(out, at, bytes);
        true
    }

    /// Puts a list that the device decodes into one parcel or several.
    fn pack(
        &mut self,
        id: I,
        outline: &Outline<'_>,
        at: u64,
        tell: &mut impl FnMut(I, BroughtList),
    ) {
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
        let most = self.memory_bytes as usize - 2 * firsts_bytes - 256;
        let mut firsts = None;
        for portion in outline.portions(most) {
            let data = firsts_bytes + 16 + portion.payload_bytes();
            if !self.fits(data, portion.blocks()) {
                is_well &= self.send(tell);
                firsts = None;
            }
            // SAFETY: as in `put`.
            let out = unsafe { &mut self.staging.bytes_mut()[FAULT_BYTES..] };
            let firsts = *firsts.get_or_insert_with(|| self.parcel.firsts(out, &outline.firsts));
            self.parcel.portion(out, &portion, at, placed.postings, firsts);
        }
        if is_well {
            self.travelling.push((id, at, placed));
        } else {
            // What was sent did not arrive whole; nothing reads the rest.
            tell(id, BroughtList::Damaged(Some(at)));
        }
    }

    /// Sends the parcel and tells of lists that are whole then; false if it had damaged ones.
    fn send(&mut self, tell: &mut impl FnMut(I, BroughtList)) -> bool {
        // A list too large for a parcel has gone by itself, and is told of with an empty one.
        let sent = if self.parcel.is_empty() { Ok(true) } else { self.copy_and_launch() };
        self.parcel.clear();
        for (id, at, placed) in self.travelling.drain(..) {
            tell(
                id,
                match sent {
                    Ok(true) => BroughtList::Here(at, placed),
                    Ok(false) => BroughtList::Damaged(Some(at)),
                    Err(_) => BroughtList::Lost(at),
                },
            );
        }
        matches!(sent, Ok(true))
    }

    fn copy_and_launch(&mut self) -> Result<bool, GpuError> {
        // SAFETY: no copy is under way: each is waited for below.
        let staging = unsafe { self.staging.bytes_mut() };
        staging[..FAULT_BYTES].fill(0);
        let tables = self.parcel.seal(&mut staging[FAULT_BYTES..]);
        let to = self.on.memory.of(Array::Parcel).part(0, tables.bytes as u64);
        let bytes = FAULT_BYTES..FAULT_BYTES + tables.bytes;
        // SAFETY: both live as long as this, and nobody writes them until the stream is done.
        unsafe { self.staging.copy_up(bytes, to, &self.on.stream) }?;
        let fault = |array| (array == Array::Fault).then(|| self.staging.address());
        for step in self.steps(&tables) {
            self.on.launch_with(&step, fault)?;
        }
        let done = self.on.stream.synchronize();
        done.map_err(|e| self.on.device.call("bring lists to the device", e))?;
        // SAFETY: no kernel runs that could write it.
        Ok(unsafe { self.staging.bytes() }[..FAULT_BYTES] == [0; FAULT_BYTES])
    }

    fn steps(&self, tables: &Tables) -> Vec<QueryStep> {
        use Array::{Arena, Fault, Norms, Parcel};
        let at = |place: usize| Argument::Array(Parcel, place as u64);
        let mut steps = Vec::new();
        let (pieces, pieces_len) = tables.pieces;
        if pieces_len > 0 {
            steps.push(launch!("query_put", pieces_len, self.resident[0];
                at(pieces), pieces_len, at(0), Arena));
        }
        let (lines, lines_len) = tables.lines;
        if lines_len > 0 {
            let windows = &self.windows;
            steps.push(launch!("query_unpack", lines_len.div_ceil(THREADS / 32), self.resident[1];
                at(lines), lines_len, at(tables.owners), at(tables.portions), at(0), tables.words,
                windows.len() as u32, windows.documents, Norms, Arena, Fault));
        }
        steps
    }
}

/// Of at most this many blocks.
fn step(
    kernel: &'static str,
    blocks: u32,
    most: u32,
    arguments: Vec<Argument<Array>>,
) -> QueryStep {
    let geometry = Geometry { blocks: blocks.clamp(1, most), threads: THREADS, shared_bytes: 0 };
    QueryStep { kernel, geometry, arguments }
}
