//! Collections, and batches of the papers' methods, on an emulated device.

use crate::inside_tests::emulation::{Arg, Buffer, Emulator};
use millrace::papers::ding09::gpu::twin::{DingTwinTerm, best};
use millrace::papers::methods::batch::{AskedPart, BatchRoom, FoundHits, MethodBatch};
use millrace::papers::methods::lists::DevicePart;
use millrace::papers::methods::travelling::Bytes;
use millrace::papers::methods::{DeviceMethod, MethodArray, MethodStep};
use millrace::query::top_k::Hit;
use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Range;

/// Room of a batch of any method.
pub(crate) const ROOM: BatchRoom = BatchRoom {
    words: 1 << 26,
    hits: 1 << 16,
    terms: 1024,
    list_bytes: 1 << 22,
    more: 1 << 16,
    shared_bytes: 96 << 10,
};

pub(crate) type Postings = Vec<(u32, u32)>;

pub(crate) struct List<L> {
    pub(crate) postings: Postings,
    pub(crate) weight: f32,
    /// Where it is among the lists that stay; the others travel.
    pub(crate) cached: Option<(u64, L)>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) laid: L,
}

pub(crate) struct Collection<L> {
    pub(crate) norms: Vec<f32>,
    pub(crate) arena: Vec<u8>,
    pub(crate) lists: Vec<List<L>>,
}

impl<L: Copy> Collection<L> {
    /// One without lists.
    pub(crate) fn of(norms: Vec<f32>) -> Self {
        Self { norms, arena: vec![0; 64], lists: Vec::new() }
    }

    pub(crate) fn documents(&self) -> u32 {
        self.norms.len() as u32
    }

    /// Adds a list in the device's layout, which stays on the device or travels.
    pub(crate) fn push(
        &mut self,
        postings: Postings,
        (laid, bytes): (L, Vec<u8>),
        stays: bool,
        weight: f32,
    ) {
        let cached = stays.then(|| {
            let place = self.arena.len().next_multiple_of(256);
            self.arena.resize(place, 0);
            self.arena.extend(&bytes);
            (place as u64, laid)
        });
        self.lists.push(List { postings, weight, cached, bytes, laid });
    }

    pub(crate) fn arrays(&self) -> (&[u8], [&[f32]; 3]) {
        (&self.arena, [&self.norms, &[], &[]])
    }
}

/// A query of some lists, by their numbers.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) lists: Vec<usize>,
    pub(crate) k: u32,
    pub(crate) docids: Range<u32>,
}

impl Query {
    /// Adds it to a batch, if there is room.
    pub(crate) fn add<M>(
        &self,
        collection: &Collection<M::Laid>,
        batch: &mut MethodBatch<M>,
    ) -> bool
    where
        M: DeviceMethod,
    {
        let of = |n: u64| &collection.lists[n as usize];
        let asked = self.lists.iter().map(|&n| {
            let key = std::iter::once(n as u64).collect();
            let weight = collection.lists[n].weight;
            AskedPart { part: DevicePart::whole([]), key, weight }
        });
        let asked: Vec<AskedPart> = asked.collect();
        let lay = |t: usize| {
            let list = of(asked[t].key[0]);
            Ok::<Bytes<M::Laid>, Infallible>((list.laid, list.bytes.as_slice().into()))
        };
        batch.add(&asked, self.k, self.docids.clone(), |key| of(key[0]).cached, lay).unwrap()
    }

    /// What its answer is.
    pub(crate) fn expected<L>(&self, collection: &Collection<L>, all_terms: bool) -> Vec<Hit> {
        let terms = self.lists.iter().map(|&n| &collection.lists[n]);
        let terms: Vec<DingTwinTerm<'_>> = terms
            .map(|list| DingTwinTerm { weight: list.weight, postings: &list.postings })
            .collect();
        best(&terms, &collection.norms, (self.k as usize, self.docids.clone()), all_terms)
    }
}

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
    let input = batch.parts().concat();
    let used = batch.used();
    let output = batch.output().bytes;
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
pub(crate) fn hits(found: Vec<FoundHits>) -> Vec<Vec<Hit>> {
    assert!(found.iter().all(|found| found.rest.is_none()));
    found.into_iter().map(|found| found.hits).collect()
}
