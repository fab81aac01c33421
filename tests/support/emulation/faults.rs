//! The emulation does what a device does, and finds what a device would not tell.

use super::{Arg, Emulator, Launch};

const KERNELS: [&str; 10] = [
    "collectives",
    "lane_left",
    "lane_elsewhere",
    "lane_unnamed",
    "lane_asked",
    "warp_missing",
    "beyond_buffer",
    "beyond_shared",
    "beyond_dynamic",
    "race",
];

fn compiled() -> Option<Emulator> {
    Emulator::compile(include_str!("faults.cu"), &KERNELS, &[])
}

/// Launches a kernel that fills a buffer of words.
fn run(
    emulator: &Emulator,
    kernel: &str,
    (blocks, threads): (u32, u32),
    seed: u64,
    words: u32,
) -> Result<Vec<u32>, String> {
    let mut out = vec![0xa5; words as usize * 4];
    let shared_bytes = if kernel == "beyond_dynamic" { threads * 4 } else { threads.max(32) * 8 };
    let launch = Launch { kernel, blocks, threads, shared_bytes, seed };
    emulator.launch(launch, &mut [&mut out], &[Arg::Buffer(0)])?;
    Ok(out.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

/// What `collectives` returns to thread `t` of a block.
fn expected(t: u32, threads: u32) -> [u32; 16] {
    let lane = t % 32;
    let warp = t / 32 * 32;
    let other = threads - 1 - t;
    let evens: u32 = (0..32).filter(|lane| lane % 2 == 0).sum();
    let matching = (0..32).filter(|other| other / 7 == lane / 7).map(|other| 1u32 << other).sum();
    let first_set = t.checked_ilog2().map_or(0, |_| t.trailing_zeros() + 1);
    [
        other * 8,
        (warp + (lane + 3) % 32) * 7,
        if lane < 4 { t } else { t - 4 },
        if lane > 27 { t } else { t + 4 },
        t,
        (0..32).filter(|lane| lane % 3 == 0).map(|lane| 1u32 << lane).sum(),
        2,
        matching,
        if lane.is_multiple_of(2) { evens } else { 31 },
        1,
        threads / 4,
        threads,
        0x5544_3322,
        0x1155_4488,
        t.count_ones() + 100 * t.leading_zeros() + 10_000 * first_set,
        if t % 8 == 7 { t } else { t + 1 },
    ]
}

#[test]
fn collectives_do_what_those_of_a_device_do() {
    let Some(emulator) = compiled() else { return };
    for (blocks, threads) in [(1, 32), (3, 64), (1, 1024)] {
        let expected: Vec<u32> = (0..threads)
            .flat_map(|t| expected(t, threads))
            .collect::<Vec<_>>()
            .repeat(blocks as usize);
        for seed in [0, 1, 99] {
            let words = blocks * threads * 16;
            let found = run(&emulator, "collectives", (blocks, threads), seed, words).unwrap();
            assert_eq!(found.len(), expected.len());
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let t = i / 16 % threads as usize;
                let what = i % 16;
                assert_eq!(
                    found, expected,
                    "{threads} threads, seed {seed}, thread {t}, value {what}"
                );
            }
        }
    }
}

#[test]
fn lanes_that_do_not_meet_are_an_error_and_no_hang() {
    let Some(emulator) = compiled() else { return };
    for (kernel, threads, said) in [
        ("lane_left", 32, "thread 7 has returned"),
        ("lane_elsewhere", 32, "thread 3 waits at __syncwarp"),
        ("lane_unnamed", 32, "lane 31 calls a vote, but the mask does not name it"),
        ("lane_asked", 32, "asks lane 8 for its value, which the mask does not name"),
        ("lane_left", 16, "is stuck"),
        ("warp_missing", 64, "the mask does not name it"),
    ] {
        let error = run(&emulator, kernel, (1, threads), 0, 64).unwrap_err();
        assert!(error.contains("emulation: ") && error.contains(said), "{kernel}: {error}");
    }
}

#[test]
fn access_outside_is_caught() {
    let Some(emulator) = compiled() else { return };
    for (kernel, said) in [
        ("beyond_buffer", "heap-buffer-overflow"),
        ("beyond_shared", "index 32 out of bounds"),
        ("beyond_dynamic", "heap-buffer-overflow"),
    ] {
        let error = run(&emulator, kernel, (1, 32), 0, 32).unwrap_err();
        assert!(error.contains(said), "{kernel}: {error}");
    }
}

#[test]
fn a_race_shows_in_another_order() {
    let Some(emulator) = compiled() else { return };
    let in_order = run(&emulator, "race", (1, 32), 0, 32).unwrap();
    let orders = (1..9).map(|seed| run(&emulator, "race", (1, 32), seed, 32).unwrap());
    assert!(orders.into_iter().any(|found| found != in_order));
}
