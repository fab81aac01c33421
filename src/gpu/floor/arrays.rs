//! The named arrays of a device, and the launch of kernels on them.

use super::device::Device;
use super::error::{GpuError, GpuWork};
use super::events::Ticket;
use super::slab::Slab;
use super::steps::{Kernels, Step};
use cudarc::driver::{CudaStream, result};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// Of the arrays of a list.
pub(crate) const ALIGNMENT: usize = 16;

/// Appends an array, and padding.
pub(crate) fn put(out: &mut Vec<u8>, array: &[u8]) {
    out.extend_from_slice(array);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

/// Arrays, and memory set aside, which moves without a copy.
#[derive(Debug)]
pub(crate) struct Arrays<A, M> {
    there: HashMap<A, M>,
    aside: Vec<Option<M>>,
}

impl<A: Copy + Debug + Eq + Hash, M> Arrays<A, M> {
    pub(crate) fn new() -> Self {
        Self { there: HashMap::new(), aside: Vec::new() }
    }

    pub(crate) fn get(&self, array: A) -> Option<&M> {
        self.there.get(&array)
    }

    pub(crate) fn of(&self, array: A) -> &M {
        self.get(array).unwrap_or_else(|| panic!("{array:?} is not reserved"))
    }

    pub(crate) fn take(&mut self, array: A) -> Option<M> {
        self.there.remove(&array)
    }

    /// Returns what the array had.
    pub(crate) fn put(&mut self, array: A, memory: M) -> Option<M> {
        self.there.insert(array, memory)
    }

    #[cfg(test)]
    pub(crate) fn named(&self) -> impl Iterator<Item = &M> {
        self.there.values()
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = &M> {
        self.there.values().chain(self.aside.iter().flatten())
    }
}

/// Operations of [`Arrays`] that need not know their memory.
pub trait ArrayPlaces<A> {
    fn free_but(&mut self, kept: &[A]);

    fn free(&mut self, arrays: &[A]);

    /// Moves an array's memory behind what is set aside.
    fn set_aside(&mut self, array: A);

    /// Swaps the memory of an array and number `n` of what is set aside.
    fn exchange(&mut self, array: A, n: usize);

    fn free_aside(&mut self);

    fn swap(&mut self, one: A, other: A);
}

impl<A: Copy + Debug + Eq + Hash, M> ArrayPlaces<A> for Arrays<A, M> {
    fn free_but(&mut self, kept: &[A]) {
        self.there.retain(|array, _| kept.contains(array));
    }

    fn free(&mut self, arrays: &[A]) {
        arrays.iter().for_each(|array| _ = self.there.remove(array));
    }

    fn set_aside(&mut self, array: A) {
        let memory = self.take(array);
        self.aside.push(memory);
    }

    fn exchange(&mut self, array: A, n: usize) {
        let memory = self.take(array);
        if let Some(other) = std::mem::replace(&mut self.aside[n], memory) {
            self.put(array, other);
        }
    }

    fn free_aside(&mut self) {
        self.aside.clear();
    }

    fn swap(&mut self, one: A, other: A) {
        let of_one = self.take(one);
        let of_other = self.take(other);
        self.there.extend(of_other.map(|memory| (one, memory)));
        self.there.extend(of_one.map(|memory| (other, memory)));
    }
}

#[derive(Debug)]
pub(crate) struct CudaArrays<A> {
    pub(crate) memory: Arrays<A, Arc<Slab>>,
    pub(crate) kernels: Kernels,
    pub(crate) stream: Arc<CudaStream>,
    // Dropped last: all the rest is of its context.
    pub(crate) device: Arc<Device>,
}

impl<A> CudaArrays<A> {
    /// A ticket for all that is enqueued so far.
    pub(crate) fn ticket(&self, work: GpuWork) -> Result<Ticket, GpuError> {
        self.device.ticket(&self.stream, work)
    }
}

impl<A: Copy + Debug + Eq + Hash> CudaArrays<A> {
    /// Of two streams that with the lower `priority` comes first.
    pub(crate) fn new(
        device: Arc<Device>,
        kernels: Kernels,
        priority: Option<i32>,
    ) -> Result<Self, GpuError> {
        let stream = device.new_stream(priority)?;
        Ok(Self { memory: Arrays::new(), kernels, stream, device })
    }

    /// Makes an array at least `bytes` long, or `ample` if there is the memory; the first `kept`
    /// bytes stay, the others are undefined.
    ///
    /// # Errors
    /// There is too little memory; an array of which bytes stay is as before.
    pub(crate) fn reserve(
        &mut self,
        array: A,
        what: &'static str,
        bytes: u64,
        ample: u64,
        kept: u64,
    ) -> Result<(), GpuError> {
        let old = self.memory.get(array);
        let had = old.map_or(0, |old| old.bytes());
        assert!(kept <= had, "{array:?} has {had} bytes, of which {kept} are to stay");
        if bytes <= had && old.is_some() {
            return Ok(());
        }
        if kept == 0 {
            // The memory need not hold both.
            self.memory.take(array);
        }
        let slab = Slab::new(&self.device, what, ample)
            .or_else(|_| Slab::new(&self.device, what, bytes))?;
        if let Some(old) = self.memory.get(array) {
            let to = slab.part(0, kept);
            let from = old.part(0, kept);
            let copied = self.device.context().bind_to_thread().and_then(|()| {
                // SAFETY: both have this many bytes; the old ones are freed when the device is
                // done.
                unsafe {
                    result::memcpy_dtod_async(to, from, kept as usize, self.stream.cu_stream())
                }
            });
            copied.map_err(|e| self.device.call("copy on the device", e))?;
        }
        self.memory.put(array, Arc::new(slab));
        Ok(())
    }

    pub(crate) fn take(
        &mut self,
        array: A,
        what: &'static str,
        bytes: u64,
    ) -> Result<&Slab, GpuError> {
        self.reserve(array, what, bytes, bytes, 0)?;
        Ok(self.memory.of(array))
    }

    pub(crate) fn launch(&self, step: &Step<A>) -> Result<(), GpuError> {
        self.launch_with(step, |_| None)
    }

    /// As [`launch`](Self::launch), with other places of some arrays.
    pub(crate) fn launch_with(
        &self,
        step: &Step<A>,
        place: impl Fn(A) -> Option<u64>,
    ) -> Result<(), GpuError> {
        let address = |array| place(array).unwrap_or_else(|| self.memory.of(array).address());
        // SAFETY: steps have the arguments that the kernel declares, as in the tests, and their
        // makers have reserved what it reads and writes for as many items as it is told. What
        // shares memory with others, such as lists, lies where no work under way writes.
        unsafe { self.kernels.launch(&self.device, &self.stream, step, address) }
    }

    /// Launches steps, and waits; returns the milliseconds of each.
    pub(crate) fn time(&self, steps: &[Step<A>]) -> Result<Vec<f32>, GpuError> {
        let mut last = self.ticket(GpuWork::Upload(0))?;
        let ended = steps.iter().map(|step| {
            self.launch(step)?;
            self.ticket(GpuWork::Kernel(step.launched()))
        });
        let ended = ended.collect::<Result<Vec<_>, _>>()?;
        let each = ended.into_iter().map(|ended| {
            ended.wait()?;
            let took = ended.ms_since(&last)?;
            last = ended;
            Ok(took)
        });
        each.collect()
    }
}

impl<A> Drop for CudaArrays<A> {
    fn drop(&mut self) {
        // A job that ends early has work under way, which uses arrays and buffers.
        self.stream.context().record_err(self.stream.synchronize());
    }
}
