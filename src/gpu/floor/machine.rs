//! A device that works on named arrays: the trait against which the host's part is written, and
//! [`CudaQueue`], a CUDA device. The tests have an emulated one.

use super::arrays::{ArrayPlaces, CudaArrays};
use super::error::{GpuError, GpuWork};
use super::events::{Ticket, wait_for};
use super::pinned::Pinned;
#[cfg(test)]
use super::slab::Slab;
use super::steps::Step;
use super::wake::Wake;
use crate::crew::{Crew, lock};
use cudarc::driver::result;
use std::cell::Cell;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub(crate) trait UnderWay: Send {
    /// Never waits.
    ///
    /// # Errors
    /// It failed, and the device cannot be used any more.
    fn is_done(&self) -> Result<bool, GpuError>;

    /// The bytes that it brought, end to end.
    ///
    /// # Panics
    /// If `is_done` was not seen to be true.
    fn bytes(&self) -> &[u8];
}

/// Copies and kernels that a device does in one go, in the order of the fields.
pub(crate) struct DeviceWork<'a, A> {
    /// Bytes for an array from a place on, those of all slices end to end.
    pub up: Vec<(A, u64, Vec<&'a [u8]>)>,
    pub steps: Vec<Step<A>>,
    pub down: Vec<(A, Range<u64>)>,
}

impl<A> DeviceWork<'_, A> {
    /// What errors name.
    pub(crate) fn named(&self) -> GpuWork {
        let slices = self.up.iter().flat_map(|(_, _, slices)| slices);
        let brought = || slices.map(|slice| slice.len() as u64).sum();
        match self.steps.last() {
            Some(step) => GpuWork::Kernel(step.launched()),
            None if self.down.is_empty() => GpuWork::Upload(brought()),
            None => GpuWork::Download(self.bytes_down()),
        }
    }

    fn bytes_down(&self) -> u64 {
        self.down.iter().map(|(_, part)| part.end - part.start).sum()
    }
}

/// Calls take effect in their order, and none waits.
pub(crate) trait Machine<A>: Send {
    fn device(&self) -> String;

    /// Makes an array at least so long; its content is lost.
    fn reserve(&mut self, array: A, bytes: u64) -> Result<(), GpuError>;

    fn free_all(&mut self);

    /// Bytes that arrays may have, and those that are left.
    fn memory(&self) -> (u64, u64);

    fn fill(&mut self, array: A, byte: u8) -> Result<(), GpuError>;

    /// None while no buffer is free for the copies.
    fn give(&mut self, work: &DeviceWork<'_, A>) -> Result<Option<Box<dyn UnderWay>>, GpuError>;

    /// Bytes that one work can copy up, and down.
    fn buffer_bytes(&self) -> usize;

    /// Calls all of these once the work so far is done, or has failed.
    fn wake(&mut self, wakes: Vec<Wake>) -> Result<(), GpuError>;
}

/// A CUDA device whose copies go through a pool of pinned buffers.
#[derive(Debug)]
pub(crate) struct CudaQueue<A> {
    buffers: FreeBuffers,
    buffer_bytes: usize,
    /// Writes to the buffers, and these are this many threads with the one that gives work.
    pub(crate) crew: Crew,
    threads: usize,
    pub(crate) on: CudaArrays<A>,
}

/// Each with work under way that may use it, about which nobody asks any more.
type FreeBuffers = Arc<Mutex<Vec<(Pinned, Option<Ticket>)>>>;

pub(crate) const ALIGN: usize = 256;

impl<A: Copy + Debug + Eq + Hash> CudaQueue<A> {
    pub(crate) fn new(
        on: CudaArrays<A>,
        buffers: usize,
        buffer_bytes: usize,
        threads: usize,
    ) -> Result<Self, GpuError> {
        let pinned = |_| Ok((Pinned::new(&on.device, "copies", buffer_bytes)?, None));
        let buffers = Arc::new(Mutex::new((0..buffers).map(pinned).collect::<Result<_, _>>()?));
        Ok(Self { buffers, buffer_bytes, crew: Crew::new("copier"), threads, on })
    }

    #[cfg(test)]
    pub(crate) fn slab(&self, array: A) -> &Slab {
        self.on.memory.of(array)
    }

    /// As [`give`](Machine::give).
    pub(crate) fn begin(
        &mut self,
        work: &DeviceWork<'_, A>,
    ) -> Result<Option<LentTicket>, GpuError> {
        let Some(mut buffer) = self.free_buffer()? else { return Ok(None) };
        let ticket = Some(self.enqueue(work, &mut buffer)?);
        let bytes = work.bytes_down() as usize;
        let done = Cell::new(false);
        let buffers = self.buffers.clone();
        Ok(Some(LentTicket { ticket, done, bytes, buffer: Some(buffer), buffers }))
    }

    /// As [`begin`](Self::begin), but waits for a buffer, which others give back.
    pub(crate) fn begin_soon(&mut self, work: &DeviceWork<'_, A>) -> Result<LentTicket, GpuError> {
        wait_for(|| self.begin(work))
    }

    fn free_buffer(&self) -> Result<Option<Pinned>, GpuError> {
        let mut buffers = lock(&self.buffers);
        for at in (0..buffers.len()).rev() {
            if buffers[at].1.as_ref().map_or(Ok(true), Ticket::is_done)? {
                return Ok(Some(buffers.swap_remove(at).0));
            }
        }
        Ok(None)
    }

    fn enqueue(
        &mut self,
        work: &DeviceWork<'_, A>,
        buffer: &mut Pinned,
    ) -> Result<Ticket, GpuError> {
        let CudaArrays { memory, stream, .. } = &self.on;
        let mut filled = 0;
        for (array, at, slices) in &work.up {
            let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
            let to = memory.of(*array).part(*at, bytes as u64);
            let crew = (&mut self.crew, self.threads);
            // SAFETY: the array has this many bytes, and both stay until the work is done; only
            // copies of the bytes before were enqueued from the buffer.
            filled = unsafe { buffer.write_up(filled, slices, crew, to, stream) }?;
            filled = filled.next_multiple_of(ALIGN).min(self.buffer_bytes);
        }
        work.steps.iter().try_for_each(|step| self.on.launch(step))?;
        let mut brought = 0;
        for (array, Range { start, end }) in &work.down {
            let len = (end - start) as usize;
            let from = memory.of(*array).part(*start, end - start);
            // SAFETY: the array has this many bytes, and nobody reads the buffer until the work is
            // done; copies from there are done when this begins.
            unsafe { buffer.copy_down(from, brought, len, stream) }?;
            brought += len;
        }
        self.on.ticket(work.named())
    }
}

impl<A: Copy + Debug + Eq + Hash + Send + 'static> Machine<A> for CudaQueue<A> {
    fn device(&self) -> String {
        self.on.device.info().to_string()
    }

    fn reserve(&mut self, array: A, bytes: u64) -> Result<(), GpuError> {
        self.on.take(array, "arrays", bytes).map(drop)
    }

    fn free_all(&mut self) {
        self.on.memory.free_but(&[]);
    }

    fn memory(&self) -> (u64, u64) {
        (self.on.device.memory().limit(), self.on.device.memory().left())
    }

    fn fill(&mut self, array: A, byte: u8) -> Result<(), GpuError> {
        let CudaArrays { memory, stream, device, .. } = &self.on;
        let array = memory.of(array);
        let filled = device.context().bind_to_thread().and_then(|()| {
            let bytes = array.bytes() as usize;
            // SAFETY: the array has this many bytes.
            unsafe { result::memset_d8_async(array.address(), byte, bytes, stream.cu_stream()) }
        });
        filled.map_err(|e| device.call("fill memory", e))
    }

    fn give(&mut self, work: &DeviceWork<'_, A>) -> Result<Option<Box<dyn UnderWay>>, GpuError> {
        Ok(self.begin(work)?.map(|given| Box::new(given) as _))
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn wake(&mut self, wakes: Vec<Wake>) -> Result<(), GpuError> {
        self.on.device.wake_behind(&self.on.stream, wakes)
    }
}

/// Its buffer goes back when it is dropped, and is used again once the work is done.
#[derive(Debug)]
pub(crate) struct LentTicket {
    ticket: Option<Ticket>,
    done: Cell<bool>,
    bytes: usize,
    buffer: Option<Pinned>,
    buffers: FreeBuffers,
}

impl LentTicket {
    fn ticket(&self) -> &Ticket {
        self.ticket.as_ref().expect("it is taken out only when it is dropped")
    }

    pub(crate) fn wait(&self) -> Result<(), GpuError> {
        self.ticket().wait()?;
        self.done.set(true);
        Ok(())
    }

    /// Milliseconds of the device since an earlier ticket; both are done.
    pub(crate) fn ms_since(&self, began: &Ticket) -> Result<f32, GpuError> {
        self.ticket().ms_since(began)
    }
}

impl UnderWay for LentTicket {
    fn is_done(&self) -> Result<bool, GpuError> {
        self.done.set(self.done.get() || self.ticket().is_done()?);
        Ok(self.done.get())
    }

    fn bytes(&self) -> &[u8] {
        assert!(self.done.get(), "what is under way has brought nothing");
        let buffer = self.buffer.as_ref().expect("it is taken out only when it is dropped");
        // SAFETY: the work is done, and with it all copies.
        unsafe { &buffer.bytes()[..self.bytes] }
    }
}

impl Drop for LentTicket {
    fn drop(&mut self) {
        let under_way = self.ticket.take().filter(|_| !self.done.get());
        lock(&self.buffers).extend(self.buffer.take().map(|buffer| (buffer, under_way)));
    }
}
