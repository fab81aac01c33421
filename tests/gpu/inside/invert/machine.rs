//! An emulated device that inverts: arrays have exactly the bytes that are asked for, and are full
//! of rubbish.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator};
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use millrace::buffers::Pin;
use millrace::gpu::floor::arrays::{ArrayPlaces, Arrays};
use millrace::gpu::floor::error::{Cuda, GpuError};
use millrace::gpu::invert::machine::{
    ArrayReading, DeviceMemory, Downloader, InvertMachine, NextParcel, Uploader,
};
use millrace::gpu::invert::source;
use millrace::gpu::invert::steps::{InvertArray, InvertStep};
use std::ops::Range;
use std::sync::Arc;
use std::thread::scope;

/// The kernels of `invert.cu`, compiled for the CPU; none where there is no compiler.
pub(crate) fn compiled() -> Option<Arc<Emulator>> {
    let source = source();
    Emulator::compile(source.text, &source.kernels(), &source.sizes).map(Arc::new)
}

pub(crate) struct Emulated {
    emulator: Arc<Emulator>,
    arrays: Arrays<InvertArray, Buffer>,
    seed: u64,
    /// Bytes that all arrays together may have.
    pub(crate) most_bytes: u64,
    /// Times that it makes room for encoded lists, and how often it refuses to then.
    pub(crate) refusals: (usize, usize),
    /// Launches until it is lost.
    pub(crate) launches_left: usize,
    /// Times that the postings of some lists were gathered.
    pub(crate) gathered: usize,
}

impl Emulated {
    pub(crate) fn new(emulator: Arc<Emulator>, seed: u64) -> Self {
        Self {
            emulator,
            arrays: Arrays::new(),
            seed,
            most_bytes: u64::MAX,
            refusals: (0, 0),
            launches_left: usize::MAX,
            gathered: 0,
        }
    }

    /// Bytes that all arrays have.
    pub(crate) fn bytes(&self) -> u64 {
        self.arrays.all().map(Buffer::len).sum::<usize>() as u64
    }

    /// Bytes of an array, if it is there.
    pub(crate) fn bytes_of(&self, array: InvertArray) -> u64 {
        self.arrays.get(array).map_or(0, Buffer::len) as u64
    }

    /// Has it have this many bytes beside those of the batches that stay.
    pub(crate) fn allow(&mut self, bytes: u64) {
        let others: usize = self.arrays.named().map(Buffer::len).sum();
        self.most_bytes = bytes + self.bytes() - others as u64;
    }

    fn array(&self, array: InvertArray) -> &Buffer {
        self.arrays.of(array)
    }
}

/// Brings texts, which are the host's bytes until they are adopted.
struct Brought;

impl Uploader for Brought {
    unsafe fn pin(&mut self, memory: *const [u8]) -> Option<Pin> {
        Some(Box::new(memory.len()))
    }

    fn upload(
        &mut self,
        parts: &[&[u8]],
        old: Option<DeviceMemory>,
    ) -> Result<DeviceMemory, GpuError> {
        let mut bytes = old.map_or_else(Vec::new, |old| *old.downcast::<Vec<u8>>().unwrap());
        bytes.clear();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        Ok(Box::new(bytes))
    }
}

/// Takes lists, which are the host's bytes as soon as they are lent.
struct Taken;

impl Downloader for Taken {
    fn download(&mut self, next: NextParcel<'_>) -> Result<(), GpuError> {
        let take = || {
            while let Some(parcel) = next() {
                let memory = parcel.memory().downcast_ref::<Vec<u8>>().unwrap();
                let Range { start, end } = parcel.bytes();
                let bytes = memory[start as usize..end as usize].to_vec();
                parcel.take(&bytes);
            }
        };
        scope(|scope| (0..3).for_each(|_| _ = scope.spawn(take)));
        Ok(())
    }
}

impl InvertMachine for Emulated {
    fn sibling(&self) -> Result<Box<dyn InvertMachine>, GpuError> {
        let Self { most_bytes, launches_left, .. } = *self;
        let new = Self::new(self.emulator.clone(), self.seed + 1);
        Ok(Box::new(Self { most_bytes, launches_left, ..new }))
    }

    fn reserve(&mut self, array: InvertArray, bytes: u64, kept: u64) -> Result<(), GpuError> {
        let old = self.arrays.get(array);
        if old.is_some_and(|old| old.len() as u64 >= bytes) {
            return Ok(());
        }
        let others = self.bytes() - self.bytes_of(array);
        let left = self.most_bytes.saturating_sub(others);
        let (before, refusals) = &mut self.refusals;
        let is_refused = array == InvertArray::Encoded && *before == 0 && *refusals > 0;
        if array == InvertArray::Encoded {
            *refusals -= usize::from(is_refused);
            *before = before.saturating_sub(1);
        }
        if bytes > left || is_refused {
            let device = "an emulated device".to_owned();
            let limit = self.most_bytes;
            return Err(GpuError::Budget { device, what: "arrays", bytes, left, limit });
        }
        let new = self.emulator.alloc(bytes as usize).unwrap();
        if kept > 0 {
            let old = old.expect("what is kept is there").download().unwrap();
            new.write(0, &old[..kept as usize]).unwrap();
        }
        self.arrays.put(array, new);
        Ok(())
    }

    fn places(&mut self) -> &mut dyn ArrayPlaces<InvertArray> {
        &mut self.arrays
    }

    fn write(&mut self, array: InvertArray, at: u64, parts: &[&[u8]]) -> Result<(), GpuError> {
        self.array(array).write(at as usize, &parts.concat()).unwrap();
        Ok(())
    }

    fn read(&mut self, parts: &mut [ArrayReading<'_>]) -> Result<(), GpuError> {
        for ArrayReading { array, at, to, .. } in parts {
            let bytes = self.array(*array).download().unwrap();
            to.copy_from_slice(&bytes[*at as usize..][..to.len()]);
        }
        Ok(())
    }

    fn uploader(&mut self) -> Result<Box<dyn Uploader>, GpuError> {
        Ok(Box::new(Brought))
    }

    fn downloader(&mut self) -> Result<Box<dyn Downloader>, GpuError> {
        Ok(Box::new(Taken))
    }

    fn lend(&mut self, array: InvertArray) -> Result<Option<DeviceMemory>, GpuError> {
        let lent = self.arrays.take(array);
        Ok(lent.map(|lent| Box::new(lent.download().unwrap()) as _))
    }

    fn adopt(
        &mut self,
        array: InvertArray,
        text: DeviceMemory,
    ) -> Result<Option<DeviceMemory>, GpuError> {
        let text = text.downcast::<Vec<u8>>().unwrap();
        let new = self.emulator.alloc(text.len()).unwrap();
        new.write(0, &text).unwrap();
        let old = self.arrays.put(array, new);
        Ok(old.map(|old| Box::new(old.download().unwrap()) as _))
    }

    fn run(&mut self, steps: &[InvertStep]) -> Result<(), GpuError> {
        let Some(left) = self.launches_left.checked_sub(steps.len()) else {
            let fault = Cuda(DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
            return Err(GpuError::Lost { device: "an emulated device".to_owned(), fault });
        };
        self.launches_left = left;
        self.gathered += steps.iter().filter(|step| step.kernel == "invert_cursors").count();
        self.emulator.run(steps, self.seed, |array, at| Arg::Resident(self.array(array), at));
        Ok(())
    }
}
