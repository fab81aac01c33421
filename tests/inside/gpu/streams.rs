//! Is work on several streams in the order that it was given, and is memory safe that a copy uses?
//! A kernel that runs until it is told to end stands for work that takes long.

use super::{device, turn, wait};
use cudarc::driver::{CudaStream, PushKernelArg};
use millrace::gpu::floor::device::{Device, Kernel};
use millrace::gpu::floor::error::{Geometry, GpuError, GpuWork};
use millrace::gpu::floor::memory::DeviceBuffer;
use millrace::gpu::floor::pinned::{PinnedPool, Way};
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

const ONE: Geometry = Geometry { blocks: 1, threads: 1, shared_bytes: 0 };

/// Keeps a stream busy until the flag is set.
struct Gate {
    flag: DeviceBuffer<u32>,
    kernel: Kernel,
}

impl Gate {
    fn new(device: &Device, kernel: Kernel) -> Self {
        let flag = device.alloc("flag", 1).unwrap();
        // The flag is zero before anybody asks for it.
        device.context().synchronize().unwrap();
        Self { flag, kernel }
    }

    fn close(&self, stream: &CudaStream) {
        // SAFETY: the kernel reads the flag alone, which lives until it ends.
        let launched = unsafe {
            self.kernel.launch(stream, ONE, |arguments| {
                arguments.arg(self.flag.slice());
            })
        };
        launched.unwrap();
    }

    /// Lets the stream go on, by a stream that is not held up.
    fn open(&mut self, device: &Device, by: &CudaStream) {
        device.fill(by, &mut self.flag, 1).unwrap();
    }
}

#[test]
fn pinned_memory_is_nobodys_while_a_copy_uses_it() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 2, 4096).unwrap();
    let mut up = PinnedPool::new(&device, Way::Upload, 1, 4096).unwrap();
    let mut values = device.alloc::<u32>("values", 1024).unwrap();
    device.context().synchronize().unwrap();
    let mut gate = Gate::new(&device, module.kernel(&device, "wait_for").unwrap());
    let stream = device.compute().clone();
    gate.close(&stream);
    let (mut to, mut dropped) = (down.take().unwrap(), down.take().unwrap());
    let mut from = up.take().unwrap();
    from.bytes_mut().unwrap().fill(7);
    let copied = [
        device.copy_up::<u32>(&stream, &from, 0..4096, values.slice_mut()).unwrap(),
        device.copy_down(&stream, values.slice(), &mut to, 0).unwrap(),
        device.copy_down(&stream, values.slice(), &mut dropped, 0).unwrap(),
    ];
    for ticket in &copied {
        assert!(!ticket.is_done().unwrap(), "a copy does not wait for its stream");
    }
    assert!(matches!(to.bytes(), Err(GpuError::Busy { .. })));
    assert!(matches!(from.bytes_mut(), Err(GpuError::Busy { .. })));
    gate.open(&device, device.upload());
    // This one is freed, and the buffer on the device too, when the copies are done.
    drop(dropped);
    drop(values);
    for ticket in &copied {
        wait(ticket).unwrap();
    }
    assert_eq!(to.bytes().unwrap(), [7; 4096]);
    assert_eq!(from.bytes_mut().unwrap().len(), 4096);
}

#[test]
fn whoever_waits_for_a_device_is_woken() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let mut gate = Gate::new(&device, module.kernel(&device, "wait_for").unwrap());
    let (woken, receive) = channel();
    let wake = |name: &'static str| -> millrace::gpu::floor::wake::Wake {
        let woken = woken.clone();
        Arc::new(move || woken.send(name).unwrap())
    };
    let stream = device.new_stream().unwrap();
    gate.close(&stream);
    device.wake_behind(&stream, vec![wake("held up")]).unwrap();
    // Another stream goes on beside it.
    device.wake_behind(device.download(), vec![wake("free")]).unwrap();
    assert_eq!(receive.recv_timeout(Duration::from_secs(60)).unwrap(), "free");
    assert_eq!(receive.try_recv(), Err(TryRecvError::Empty));
    gate.open(&device, device.upload());
    assert_eq!(receive.recv_timeout(Duration::from_secs(60)).unwrap(), "held up");
}

#[test]
fn streams_wait_for_each_other_where_they_are_told_to() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let turn_all = module.kernel(&device, "turn_all").unwrap();
    let mut gate = Gate::new(&device, module.kernel(&device, "wait_for").unwrap());
    let streams: Vec<_> = (0..4).map(|_| device.new_stream().unwrap()).collect();
    let mut values: Vec<_> = (0..5).map(|_| device.alloc::<u32>("values", 1000).unwrap()).collect();
    let mut up = PinnedPool::new(&device, Way::Upload, 1, 4000).unwrap().take().unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 1, 4000).unwrap().take().unwrap();
    let numbers: Vec<u32> = (0..1000).map(|n| n * n).collect();
    up.bytes_mut().unwrap().copy_from_slice(bytemuck::cast_slice(&numbers));
    // The first stream is held up, and each of the others waits for the one before.
    gate.close(&streams[0]);
    device.copy_up::<u32>(&streams[0], &up, 0..4000, values[0].slice_mut()).unwrap();
    for i in 0..4 {
        if i > 0 {
            let before = device.ticket(&streams[i - 1], GpuWork::Upload(0)).unwrap();
            match i % 2 {
                0 => device.order(&streams[i - 1], &streams[i]).unwrap(),
                _ => before.holds_back(&streams[i]).unwrap(),
            }
        }
        let (from, to) = values.split_at_mut(i + 1);
        let geometry = Geometry { blocks: 1, threads: 256, shared_bytes: 4000 };
        // SAFETY: both buffers have so many values.
        let launched = unsafe {
            turn_all.launch(&streams[i], geometry, |arguments| {
                arguments.arg(from[i].slice()).arg(to[0].slice_mut()).arg(&1000u32);
            })
        };
        launched.unwrap();
    }
    let copied = device.copy_down(&streams[3], values[4].slice(), &mut down, 0).unwrap();
    assert!(!copied.is_done().unwrap());
    gate.open(&device, device.upload());
    wait(&copied).unwrap();
    let found: &[u32] = bytemuck::cast_slice(down.bytes().unwrap());
    assert_eq!(found, numbers, "turned around four times");
}

#[test]
fn a_kernel_may_have_all_the_shared_memory_of_a_multiprocessor() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let kernel = module.kernel(&device, "turn_all").unwrap();
    let most = device.most_shared_bytes() / 4 * 4;
    assert!(most > 48 << 10, "{most}");
    let (count, bytes) = (most / 4, most as usize);
    let mut up = PinnedPool::new(&device, Way::Upload, 1, bytes).unwrap().take().unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 1, bytes).unwrap().take().unwrap();
    let numbers: Vec<u32> = (0..count).collect();
    up.bytes_mut().unwrap().copy_from_slice(bytemuck::cast_slice(&numbers));
    let mut from = device.alloc_unset::<u32>("from", count as usize).unwrap();
    let mut to = device.alloc_unset::<u32>("to", count as usize).unwrap();
    let stream = device.compute();
    device.copy_up::<u32>(stream, &up, 0..bytes, from.slice_mut()).unwrap();
    for shared_bytes in [most, 4096 * 4, most] {
        let count = shared_bytes / 4;
        let geometry = Geometry { blocks: 1, threads: 1024, shared_bytes };
        // SAFETY: both buffers have so many values, and shared memory too.
        let launched = unsafe {
            kernel.launch(stream, geometry, |arguments| {
                arguments.arg(from.slice()).arg(to.slice_mut()).arg(&count);
            })
        };
        launched.unwrap();
    }
    wait(&device.copy_down(stream, to.slice(), &mut down, 0).unwrap()).unwrap();
    let found: &[u32] = bytemuck::cast_slice(down.bytes().unwrap());
    assert!(found.iter().eq(numbers.iter().rev()));
    // One byte more is an error that names the kernel, and nothing is lost by it.
    let geometry = Geometry { blocks: 1, threads: 1, shared_bytes: device.most_shared_bytes() + 1 };
    // SAFETY: nothing is launched.
    let refused = unsafe { kernel.launch(stream, geometry, |_| ()) }.unwrap_err();
    assert!(refused.to_string().contains("turn_all") && !refused.is_device_lost(), "{refused}");
    wait(&device.ticket(stream, GpuWork::Upload(0)).unwrap()).unwrap();
}
