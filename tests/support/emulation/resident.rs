//! Blocks run beside each other, and buffers stay where they are.

use super::{Arg, Emulator, Launch};

const KERNELS: [&str; 8] = [
    "chain",
    "lost_update",
    "last_block",
    "own_shared",
    "beyond_array",
    "unwritten",
    "misaligned",
    "arguments",
];
const TABLES_BYTES: u32 = 33 * 4 + 4 + 32 * 8;

fn compiled() -> Option<Emulator> {
    Emulator::compile(include_str!("resident.cu"), &KERNELS, &[])
}

fn launch(kernel: &str, blocks: u32, threads: u32, seed: u64) -> Launch<'_> {
    Launch { kernel, blocks, threads, shared_bytes: TABLES_BYTES, seed }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn blocks_that_wait_for_earlier_ones_go_on() {
    let Some(emulator) = compiled() else { return };
    for seed in 0..20 {
        let mut flags = vec![0; 80];
        let mut order = vec![0; 80];
        let mut next = vec![0; 4];
        let buffers = &mut [&mut flags, &mut order, &mut next];
        let args = [0, 1, 2].map(Arg::Buffer);
        emulator.launch(launch("chain", 20, 32, seed), buffers, &args).unwrap();
        assert_eq!(words(&order), (0..20).collect::<Vec<u32>>(), "seed {seed}");
    }
}

#[test]
fn updates_of_other_blocks_are_lost_without_atomics() {
    let Some(emulator) = compiled() else { return };
    let sum = |seed| {
        let mut sum = vec![0; 4];
        let launch = launch("lost_update", 8, 32, seed);
        emulator.launch(launch, &mut [&mut sum], &[Arg::Buffer(0)]).unwrap();
        words(&sum)[0]
    };
    assert!((1..20).any(|seed| sum(seed) < 8), "blocks never run beside each other");
}

#[test]
fn the_last_block_is_one_and_sees_everything() {
    let Some(emulator) = compiled() else { return };
    for seed in 0..20 {
        let mut values = vec![0xa5; 120];
        let mut arrived = vec![0; 4];
        let mut out = vec![0; 4];
        let buffers = &mut [&mut values, &mut arrived, &mut out];
        let args = [0, 1, 2].map(Arg::Buffer);
        emulator.launch(launch("last_block", 30, 64, seed), buffers, &args).unwrap();
        assert_eq!(words(&out), [30 * 31 / 2], "seed {seed}");
    }
}

#[test]
fn every_block_has_its_own_shared_memory() {
    let Some(emulator) = compiled() else { return };
    let expected: Vec<u32> = (0..9)
        .flat_map(|block| (0..32).map(move |thread| block * 1000 + 31 - thread + thread))
        .collect();
    for seed in 0..10 {
        let mut out = vec![0; 9 * 32 * 4];
        let launch = launch("own_shared", 9, 32, seed);
        emulator.launch(launch, &mut [&mut out], &[Arg::Buffer(0)]).unwrap();
        assert_eq!(words(&out), expected, "seed {seed}");
    }
}

#[test]
fn shared_memory_is_watched() {
    let Some(emulator) = compiled() else { return };
    let run = |kernel, shared_bytes, args: &[Arg]| {
        let mut out = vec![0; 128];
        let launch = Launch { shared_bytes, ..launch(kernel, 1, 32, 3) };
        emulator.launch(launch, &mut [&mut out], args).map(|()| words(&out))
    };
    let behind = |n| run("beyond_array", TABLES_BYTES, &[Arg::Buffer(0), Arg::U32(n)]);
    behind(1).unwrap();
    let error = behind(4).unwrap_err();
    assert!(error.contains("AddressSanitizer: use-after-poison"), "{error}");
    let error = run("own_shared", TABLES_BYTES - 1, &[Arg::Buffer(0)]).unwrap_err();
    assert!(error.contains("a struct of 392 bytes in shared memory"), "{error}");
    // Rubbish, and other rubbish in another run.
    let rubbish = |seed| {
        let mut out = vec![0; 128];
        let launch = launch("unwritten", 1, 32, seed);
        emulator.launch(launch, &mut [&mut out], &[Arg::Buffer(0)]).unwrap();
        out
    };
    assert_eq!(rubbish(0), [0xa5; 128]);
    assert_eq!(rubbish(5), rubbish(5));
    assert_ne!(rubbish(5), rubbish(6));
    let misaligned = |place| run("misaligned", 0, &[Arg::Buffer(0), Arg::U32(place)]);
    misaligned(4).unwrap();
    let error = misaligned(2).unwrap_err();
    assert!(error.contains("load of misaligned address"), "{error}");
}

#[test]
fn static_shared_memory_does_not_compile() {
    let Some(_) = compiled() else { return };
    let text = "extern \"C\" __global__ void f(unsigned* out) { __shared__ unsigned a[32]; out[0] = a[0]; }";
    let tried = std::panic::catch_unwind(|| Emulator::compile(text, &["f"], &[]));
    let Err(log) = tried else { panic!("it compiled") };
    let log = log.downcast_ref::<String>().unwrap();
    assert!(log.contains("shared memory is SHARED or DYNAMIC_SHARED"), "{log}");
}

#[test]
fn buffers_stay_until_they_are_dropped_or_a_launch_fails() {
    let Some(emulator) = compiled() else { return };
    let next = emulator.upload(&[0; 4]).unwrap();
    let flags = emulator.upload(&[0; 48]).unwrap();
    let order = emulator.alloc(48).unwrap();
    let args = [&flags, &order, &next].map(|buffer| Arg::Resident(buffer, 0));
    for (first, blocks) in [(0, 5), (5, 7)] {
        flags.write(0, &[0; 48]).unwrap();
        emulator.launch(launch("chain", blocks, 32, 1), &mut [], &args).unwrap();
        let found = words(&order.download().unwrap());
        assert_eq!(found[..blocks as usize], (first..first + blocks).collect::<Vec<_>>());
    }
    assert_eq!(words(&next.download().unwrap()), [12]);
    let numbers = [Arg::U32(7), Arg::U64(9 << 32), Arg::F32(1.5)];
    let args = [[Arg::Resident(&order, 16)].into_iter()].into_iter().flatten().chain(numbers);
    let args: Vec<Arg> = args.collect();
    emulator.launch(launch("arguments", 1, 1, 0), &mut [], &args).unwrap();
    assert_eq!(words(&order.download().unwrap())[4..7], [7, 9, 1.5f32.to_bits()]);
    // Behind the end of a resident buffer, too.
    let behind = [Arg::Resident(&order, 44), Arg::U32(7), Arg::U64(0), Arg::F32(0.0)];
    let error = emulator.launch(launch("arguments", 1, 1, 0), &mut [], &behind).unwrap_err();
    assert!(error.contains("heap-buffer-overflow"), "{error}");
    let lost = emulator.launch(launch("arguments", 1, 1, 0), &mut [], &args).unwrap_err();
    assert!(lost.contains("a buffer was lost"), "{lost}");
    assert!(order.download().is_err());
    let anew = emulator.upload(&[1, 2, 3]).unwrap();
    assert_eq!((anew.len(), anew.download().unwrap()), (3, vec![1, 2, 3]));
}
