//! An emulated device: its arrays lie in the host's memory, full of rubbish at first; kernels are
//! run by whatever the test has, at once; and work says that it is done some questions later, or
//! fails, as it is told.

use super::{Arg, Emulator, Launch};
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use millrace::gpu::floor::error::{Cuda, GpuError};
use millrace::gpu::floor::machine::{DeviceWork, Machine, UnderWay};
use millrace::gpu::floor::steps::{Argument, Step};
use millrace::gpu::floor::wake::Wake;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const NAME: &str = "GPU 0 (emulated)";

pub(crate) type Memory<A> = HashMap<A, Vec<u8>>;

/// Runs a kernel.
pub(crate) type Run<A> = Box<dyn FnMut(&Step<A>, &mut Memory<A>) + Send>;

/// How a device behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Works that can be under way, and bytes that each copies at most.
    pub(crate) buffers: usize,
    pub(crate) buffer_bytes: usize,
    /// Questions that are answered with no.
    pub(crate) delay: u32,
    /// The work that fails, counted from 0.
    pub(crate) fails: Option<usize>,
    /// Bytes that all arrays together may have: as it says, and as it is.
    pub(crate) memory: (u64, u64),
}

impl Default for Manner {
    fn default() -> Self {
        let memory = (1 << 40, 1 << 40);
        Self { buffers: 2, buffer_bytes: 1 << 30, delay: 0, fails: None, memory }
    }
}

pub(crate) struct EmulatedArrays<A> {
    manner: Manner,
    memory: Memory<A>,
    run: Run<A>,
    works: usize,
    under_way: Arc<AtomicUsize>,
    /// Works under way at once, at most.
    pub(crate) most_under_way: Arc<AtomicUsize>,
}

impl<A> EmulatedArrays<A> {
    pub(crate) fn new(manner: Manner, run: Run<A>) -> Self {
        let (under_way, most_under_way) = Default::default();
        Self { manner, memory: HashMap::new(), run, works: 0, under_way, most_under_way }
    }

    fn bytes(&self) -> u64 {
        self.memory.values().map(Vec::len).sum::<usize>() as u64
    }
}

impl<A: Copy + Debug + Eq + Hash + Send + 'static> Machine<A> for EmulatedArrays<A> {
    fn device(&self) -> String {
        NAME.to_owned()
    }

    fn reserve(&mut self, array: A, bytes: u64) -> Result<(), GpuError> {
        if self.memory.get(&array).is_some_and(|old| old.len() as u64 >= bytes) {
            return Ok(());
        }
        self.memory.remove(&array);
        let limit = self.manner.memory.1;
        let left = self.manner.memory.1 - self.bytes();
        if bytes > left {
            let device = NAME.to_owned();
            let what = "arrays";
            return Err(GpuError::Budget { device, what, bytes, left, limit });
        }
        self.memory.insert(array, vec![0xa5; bytes as usize]);
        Ok(())
    }

    fn free_all(&mut self) {
        self.memory.clear();
    }

    fn memory(&self) -> (u64, u64) {
        let (limit, _) = self.manner.memory;
        (limit, limit - self.bytes())
    }

    fn fill(&mut self, array: A, byte: u8) -> Result<(), GpuError> {
        self.memory.get_mut(&array).expect("it is reserved").fill(byte);
        Ok(())
    }

    fn give(&mut self, work: &DeviceWork<'_, A>) -> Result<Option<Box<dyn UnderWay>>, GpuError> {
        if self.under_way.load(Ordering::Relaxed) == self.manner.buffers {
            return Ok(None);
        }
        let DeviceWork { up, steps, down } = work;
        let parts = |slices: &[&[u8]]| slices.iter().map(|slice| slice.len()).sum::<usize>();
        let brought: usize = up.iter().map(|(_, _, slices)| parts(slices)).sum();
        let brings: u64 = down.iter().map(|(_, part)| part.end - part.start).sum();
        assert!(brought.max(brings as usize) <= self.manner.buffer_bytes, "a buffer is too small");
        for (array, at, slices) in up {
            let bytes = slices.concat();
            self.memory.get_mut(array).expect("it is reserved")[*at as usize..][..bytes.len()]
                .copy_from_slice(&bytes);
        }
        steps.iter().for_each(|step| (self.run)(step, &mut self.memory));
        let bytes: Vec<u8> = down
            .iter()
            .flat_map(|(array, part)| {
                self.memory[array][part.start as usize..part.end as usize].to_vec()
            })
            .collect();
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_under_way.fetch_max(now, Ordering::Relaxed);
        let fails = self.manner.fails == Some(self.works);
        self.works += 1;
        let fails = fails.then(|| GpuError::Work {
            device: NAME.to_owned(),
            work: work.named(),
            fault: Cuda(DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)),
        });
        let left = AtomicU32::new(self.manner.delay);
        let fails = Mutex::new(fails);
        let under_way = self.under_way.clone();
        Ok(Some(Box::new(Late { left, fails, bytes, under_way })))
    }

    fn buffer_bytes(&self) -> usize {
        self.manner.buffer_bytes
    }

    fn wake(&mut self, _: Vec<Wake>) -> Result<(), GpuError> {
        Ok(())
    }
}

/// Work that was done at once, and says so later.
struct Late {
    left: AtomicU32,
    fails: Mutex<Option<GpuError>>,
    bytes: Vec<u8>,
    under_way: Arc<AtomicUsize>,
}

impl UnderWay for Late {
    fn is_done(&self) -> Result<bool, GpuError> {
        let less = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Ok(false);
        }
        self.fails.lock().unwrap().take().map_or(Ok(true), Err)
    }

    fn bytes(&self) -> &[u8] {
        assert_eq!(self.left.load(Ordering::Relaxed), 0, "it is under way");
        &self.bytes
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs kernels that are compiled for the CPU, by at most this many blocks: those that go from item
/// to item do the same with fewer.
pub(crate) fn kernels<A: Copy + Debug + Eq + Hash + Send + 'static>(
    emulator: Arc<Emulator>,
    most_blocks: u32,
    seed: u64,
) -> Run<A> {
    Box::new(move |step, memory| {
        let mut arrays: Vec<A> = Vec::new();
        let args: Vec<Arg<'_>> = step
            .arguments
            .iter()
            .map(|argument| match *argument {
                Argument::Number(number) => Arg::U32(number),
                Argument::Array(array, at) => {
                    assert_eq!(at, 0, "{array:?} is not given from its first byte on");
                    arrays.push(array);
                    Arg::Buffer(arrays.len() as u32 - 1)
                }
            })
            .collect();
        let mut buffers: Vec<Vec<u8>> = arrays
            .iter()
            .map(|array| memory.remove(array).unwrap_or_else(|| panic!("{array:?} is not there")))
            .collect();
        let launch = Launch {
            kernel: step.kernel,
            blocks: step.geometry.blocks.min(most_blocks),
            threads: step.geometry.threads,
            shared_bytes: step.geometry.shared_bytes,
            seed,
        };
        let mut lent: Vec<&mut Vec<u8>> = buffers.iter_mut().collect();
        emulator.launch(launch, &mut lent, &args).unwrap();
        memory.extend(arrays.into_iter().zip(buffers));
    })
}
