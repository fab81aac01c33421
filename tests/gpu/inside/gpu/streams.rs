//! Memory that a copy uses is safe, and waiters are woken. A kernel that runs until it is told
//! to end stands for work that takes long.

use super::{TurnArray, Turned, arrays, device, give, wait};
use millrace::gpu::floor::error::Geometry;
use millrace::gpu::floor::machine::{DeviceWork, Machine};
use millrace::gpu::floor::steps::{Argument, Step};
use std::sync::Arc;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

/// Keeps a device busy until its flag is set.
fn gate(device: &mut Turned) -> Step<TurnArray> {
    device.reserve(TurnArray::Flag, 4).unwrap();
    device.slab(TurnArray::Flag).write(0, &[0; 4]).unwrap();
    let geometry = Geometry { blocks: 1, threads: 1, shared_bytes: 0 };
    let arguments = vec![Argument::Array(TurnArray::Flag, 0)];
    Step { kernel: "wait_for", geometry, arguments }
}

/// Lets a device go on, by a stream that is not held up.
fn open(device: &Turned) {
    device.slab(TurnArray::Flag).write(0, &[1; 4]).unwrap();
}

#[test]
fn pinned_memory_is_nobodys_while_a_copy_uses_it() {
    let Some(found) = device() else { return };
    let mut device = arrays(found, &[("wait_for", 0)], (2, 4096));
    device.reserve(TurnArray::In, 4096).unwrap();
    let gate = gate(&mut device);
    let seven = [7; 4096];
    let all = 0..4096;
    let kept = give(
        &mut device,
        vec![(TurnArray::In, 0, vec![&seven])],
        vec![gate],
        vec![(TurnArray::In, all.clone())],
    )
    .unwrap();
    let dropped = give(&mut device, vec![], vec![], vec![(TurnArray::In, all.clone())]).unwrap();
    assert!(!kept.is_done().unwrap() && !dropped.is_done().unwrap(), "nothing waits");
    let down = vec![(TurnArray::In, all.clone())];
    let third = DeviceWork { up: vec![], steps: vec![], down };
    assert!(device.give(&third).unwrap().is_none(), "both buffers are under way");
    // Its buffer comes back when the copies are done.
    drop(dropped);
    assert!(device.give(&third).unwrap().is_none(), "both buffers are under way");
    open(&device);
    wait(&*kept).unwrap();
    assert!(kept.bytes() == seven);
    drop(kept);
    let mut again =
        || give(&mut device, vec![], vec![], vec![(TurnArray::In, all.clone())]).unwrap();
    for again in [(); 2].map(|()| again()) {
        wait(&*again).unwrap();
        assert!(again.bytes() == seven);
    }
}

#[test]
fn whoever_waits_for_a_device_is_woken() {
    let (Some(one), Some(other)) = (device(), device()) else { return };
    let mut held = arrays(one, &[("wait_for", 0)], (1, 16));
    let mut free = arrays(other, &[], (1, 16));
    let gate = gate(&mut held);
    let (woken, receive) = channel();
    let wake = |name: &'static str| -> millrace::gpu::floor::wake::Wake {
        let woken = woken.clone();
        Arc::new(move || woken.send(name).unwrap())
    };
    let given = give(&mut held, vec![], vec![gate], vec![]).unwrap();
    held.wake(vec![wake("held up")]).unwrap();
    // Another stream goes on beside it.
    free.wake(vec![wake("free")]).unwrap();
    assert_eq!(receive.recv_timeout(Duration::from_secs(60)).unwrap(), "free");
    assert_eq!(receive.try_recv(), Err(TryRecvError::Empty));
    open(&held);
    assert_eq!(receive.recv_timeout(Duration::from_secs(60)).unwrap(), "held up");
    wait(&*given).unwrap();
}

#[test]
fn a_kernel_may_have_all_the_shared_memory_of_a_multiprocessor() {
    let Some(found) = device() else { return };
    let most = found.0.most_shared_bytes();
    assert!(most > 48 << 10, "{most}");
    let numbers: Vec<u32> = (0..most / 4).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&numbers);
    let mut device = arrays(found, &[("turn_all", most)], (3, bytes.len()));
    for array in [TurnArray::In, TurnArray::Out] {
        device.reserve(array, bytes.len() as u64).unwrap();
    }
    let turned = |shared_bytes| {
        let geometry = Geometry { blocks: 1, threads: 1024, shared_bytes };
        let arguments = vec![
            Argument::Array(TurnArray::In, 0),
            Argument::Array(TurnArray::Out, 0),
            Argument::Number(numbers.len() as u32),
        ];
        Step { kernel: "turn_all", geometry, arguments }
    };
    let up = vec![(TurnArray::In, 0, vec![bytes])];
    let down = vec![(TurnArray::Out, 0..bytes.len() as u64)];
    let given = give(&mut device, up, vec![turned(most)], down).unwrap();
    wait(&*given).unwrap();
    let found: &[u32] = bytemuck::cast_slice(given.bytes());
    assert!(found.iter().eq(numbers.iter().rev()));
    // One byte more is an error that names the kernel, and nothing is lost by it.
    let refused = give(&mut device, vec![], vec![turned(most + 1)], vec![]).err().unwrap();
    assert!(refused.to_string().contains("turn_all") && !refused.is_device_lost(), "{refused}");
    wait(&*give(&mut device, vec![], vec![], vec![]).unwrap()).unwrap();
}
