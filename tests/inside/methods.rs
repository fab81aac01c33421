//! Batches of the methods of papers on a device that is emulated.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator};
use millrace::gpu::methods::batch::{BatchRoom, Found, MethodBatch};
use millrace::gpu::methods::{DeviceMethod, MethodArray, MethodStep};
use millrace::query::top_k::Hit;
use std::collections::HashMap;

/// Room of a batch of any method.
pub(crate) const ROOM: BatchRoom = BatchRoom {
    words: 1 << 26,
    hits: 1 << 16,
    terms: 1024,
    list_bytes: 1 << 22,
    more: 1 << 16,
    shared_bytes: 96 << 10,
};

/// What emulated kernels write of a batch that is finished.
pub(crate) fn emulated<M: DeviceMethod>(
    emulator: &Emulator,
    batch: &MethodBatch<M>,
    (arena, worth): (&[u8], [&[f32]; 3]),
    seed: u64,
) -> Vec<u8> {
    let arrays = emulated_steps(emulator, batch, (arena, worth), &M::steps(batch), seed);
    arrays[&MethodArray::Output].download().unwrap()
}

/// The arrays of an emulated device behind some steps of a batch.
pub(crate) fn emulated_steps<M: DeviceMethod>(
    emulator: &Emulator,
    batch: &MethodBatch<M>,
    (arena, [norms, statics, globals]): (&[u8], [&[f32]; 3]),
    steps: &[MethodStep],
    seed: u64,
) -> HashMap<MethodArray, Buffer> {
    let mut input = vec![0; batch.input().bytes];
    for (at, part) in batch.parts() {
        input[at..at + part.len()].copy_from_slice(part);
    }
    let (used, output) = (batch.used(), batch.output().bytes);
    assert!(input.len() <= used.input_bytes::<M>() && output <= used.output_bytes::<M>());
    let floats = |values: &[f32]| emulator.upload(bytemuck::cast_slice(values)).unwrap();
    let arrays: HashMap<MethodArray, Buffer> = [
        (MethodArray::Cached, emulator.upload(arena).unwrap()),
        (MethodArray::Input, emulator.upload(&input).unwrap()),
        (MethodArray::Norms, floats(norms)),
        (MethodArray::Statics, floats(statics)),
        (MethodArray::Globals, floats(globals)),
        (MethodArray::Words, emulator.alloc(4 * used.words as usize).unwrap()),
        (MethodArray::Output, emulator.alloc(output).unwrap()),
    ]
    .into();
    emulator.run(steps, seed, |array, at| Arg::Resident(&arrays[&array], at));
    arrays
}

/// Hits of answers that are whole.
pub(crate) fn hits(found: Vec<Found>) -> Vec<Vec<Hit>> {
    assert!(found.iter().all(|found| found.rest.is_none()));
    found.into_iter().map(|found| found.hits).collect()
}
