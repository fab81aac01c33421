//! A device that works on named arrays: the trait against which the host's part is written, and
//! [`CudaQueue`], a CUDA device. The tests have an emulated one.

use super::arrays::{ArrayPlaces, CudaArrays};
use super::device::Device;
use super::error::{GpuError, GpuWork};
use super::events::Ticket;
use super::pinned::Pinned;
#[cfg(test)]
use super::slab::Slab;
use super::steps::{Kernels, Step};
use super::wake::Wake;
use crate::crew::lock;
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

    /// That one work can copy up, and down.
    fn buffer_bytes(&self) -> usize;

    /// Calls all of these once the work so far is done, or has failed.
    fn wake(&mut self, wakes: Vec<Wake>) -> Result<(), GpuError>;
}

/// A CUDA device whose copies go through a pool of pinned buffers.
pub(crate) struct CudaQueue<A> {
    buffers: Arc<Mutex<Vec<Pinned>>>,
    buffer_bytes: usize,
    on: CudaArrays<A>,
}

pub(crate) const ALIGN: usize = 256;

impl<A: Copy + Debug + Eq + Hash> CudaQueue<A> {
    pub(crate) fn new(
        device: Device,
        kernels: Kernels,
        buffers: usize,
        buffer_bytes: usize,
    ) -> Result<Self, GpuError> {
        let pinned = (0..buffers).map(|_| Pinned::new(&device, "copies", buffer_bytes));
        let buffers = Arc::new(Mutex::new(pinned.collect::<Result<_, _>>()?));
        Ok(Self { buffers, buffer_bytes, on: CudaArrays::new(Arc::new(device), kernels, None)? })
    }

    #[cfg(test)]
    pub(crate) fn slab(&self, array: A) -> &Slab {
        self.on.memory.of(array)
    }

    fn enqueue(&self, work: &DeviceWork<'_, A>, buffer: &mut Pinned) -> Result<Ticket, GpuError> {
        let CudaArrays { memory, stream, .. } = &self.on;
        let mut filled = 0;
        for (array, at, slices) in &work.up {
            let begin = filled;
            // SAFETY: only copies of the bytes before were enqueued from the buffer.
            let room = unsafe { &mut buffer.bytes_mut()[begin..] };
            for slice in slices {
                room[filled - begin..][..slice.len()].copy_from_slice(slice);
                filled += slice.len();
            }
            let to = memory.of(*array).part(*at, (filled - begin) as u64);
            if filled > begin {
                // SAFETY: the array has so many bytes, and both stay until the work is done.
                unsafe { buffer.copy_up(begin..filled, to, stream) }?;
            }
            filled = filled.next_multiple_of(ALIGN).min(self.buffer_bytes);
        }
        work.steps.iter().try_for_each(|step| self.on.launch(step))?;
        let mut brought = 0;
        for (array, Range { start, end }) in &work.down {
            let len = (end - start) as usize;
            let from = memory.of(*array).part(*start, end - start);
            // SAFETY: the array has so many bytes, and nobody reads the buffer until the work is
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
            // SAFETY: the array has so many bytes.
            unsafe { result::memset_d8_async(array.address(), byte, bytes, stream.cu_stream()) }
        });
        filled.map_err(|e| device.call("fill memory", e))
    }

    fn give(&mut self, work: &DeviceWork<'_, A>) -> Result<Option<Box<dyn UnderWay>>, GpuError> {
        let free = lock(&self.buffers).pop();
        let Some(mut buffer) = free else { return Ok(None) };
        let ticket = self.enqueue(work, &mut buffer)?;
        let bytes = work.bytes_down() as usize;
        let done = Cell::new(false);
        let buffers = self.buffers.clone();
        Ok(Some(Box::new(LentTicket { ticket, done, bytes, buffer: Some(buffer), buffers })))
    }

    fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    fn wake(&mut self, wakes: Vec<Wake>) -> Result<(), GpuError> {
        self.on.device.wake_behind(&self.on.stream, wakes)
    }
}

/// Its buffer goes back when it is dropped.
struct LentTicket {
    ticket: Ticket,
    done: Cell<bool>,
    bytes: usize,
    buffer: Option<Pinned>,
    buffers: Arc<Mutex<Vec<Pinned>>>,
}

impl UnderWay for LentTicket {
    fn is_done(&self) -> Result<bool, GpuError> {
        self.done.set(self.done.get() || self.ticket.is_done()?);
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
        // Else copies may still use the buffer: it is freed, behind them.
        lock(&self.buffers).extend(self.buffer.take().filter(|_| self.done.get()));
    }
}
