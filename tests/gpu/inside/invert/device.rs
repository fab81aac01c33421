//! The kernels of `invert.cu` on a device. Without one this test prints that it was skipped, unless
//! `MILLRACE_REQUIRE_GPU` is set. It is small enough for `compute-sanitizer`.

use super::encode::encode;
use super::{SHAPES, invert, inverter, inverter_of};
use crate::inside_tests::gpu::device;
use millrace::gpu::invert::InvertTuning;
use millrace::gpu::invert::cuda::CudaMachine;
use millrace::gpu::invert::machine::InvertMachine;
use millrace::gpu::invert::steps::InvertArray;
use millrace::text::tokenizer::Tokenizer;

#[test]
fn twin_batches_are_inverted_on_a_device() {
    let clashing = InvertTuning { fingerprint_bits: 6, probes: 2, ..InvertTuning::default() };
    for tuning in [InvertTuning::default(), clashing] {
        for (seed, shape) in (300..).zip(SHAPES.into_iter().chain([(40, 200, 90, 20_000)])) {
            let Some((device, toolchain)) = device() else { return };
            let machine = CudaMachine::open(device, &toolchain).unwrap();
            let tokenizer = Tokenizer::ALL[seed as usize % 2];
            let mut inverter = inverter_of(machine, tokenizer, 2).tuned(tuning);
            invert(&mut inverter, tokenizer, seed, shape);
        }
    }
}

#[test]
fn twin_runs_are_encoded_on_a_device() {
    for (gathered_at_once, encoded_at_once) in
        [(2000, 500), (u32::MAX - 1, 500), (u32::MAX - 1, 1 << 20)]
    {
        let Some((device, toolchain)) = device() else { return };
        let machine = CudaMachine::open(device, &toolchain).unwrap();
        let tuning = InvertTuning { gathered_at_once, encoded_at_once, ..InvertTuning::default() };
        let mut inverter = inverter(machine, 2).tuned(tuning).encoding();
        encode(&mut inverter, 17, 9000);
    }
}

#[test]
fn the_memory_of_all_machines_of_a_device_is_told() {
    let Some((device, toolchain)) = device() else { return };
    let machine = CudaMachine::open(device, &toolchain).unwrap();
    let before = machine.bytes();
    let mut sibling = machine.sibling().unwrap();
    sibling.reserve(InvertArray::Text, 1 << 20, 0).unwrap();
    assert!(machine.bytes() >= before + (1 << 20));
    drop(sibling);
    assert_eq!(machine.bytes(), before);
}
