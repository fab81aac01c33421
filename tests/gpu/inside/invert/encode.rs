//! A device encodes the lists of a run as the host does: bytes are compared with those of
//! `ListEncoder`.

use super::machine::{Emulated, compiled};
use super::{ask, compare, keyed, read};
use crate::inside_tests::emulation::Random;
use crate::inside_tests::util::Scratch;
use millrace::codec::vbyte;
use millrace::dictionary::device::texts::TextGatherer;
use millrace::dictionary::parsed::Regroup;
use millrace::gpu::floor::error::GpuError;
use millrace::gpu::invert::InvertTuning;
use millrace::gpu::invert::inverter::Inverter;
use millrace::gpu::invert::machine::InvertMachine;
use millrace::gpu::invert::text::PieceText;
use millrace::gpu::invert::twin::{self, TwinRun};
use millrace::index::files::storage::FilledFile;
use millrace::index::list::{Form, ListEncoder};
use millrace::index::run::{LaidChunk, NewRun, RunPart, RunWriter};
use millrace::text::analysis::Analysis;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A piece of documents of few words, some of which are in most documents and some often, so that
/// lists have many blocks, wide and narrow ones, and bounds of more than three pairs.
fn piece(random: &mut Random, documents: u32) -> PieceText {
    let mut piece = TextGatherer::new(Arc::default());
    for _ in 0..documents {
        let mut text = String::new();
        if random.below(16) > 0 {
            text += "mill ";
        }
        if random.below(4) == 0 {
            text += &"river ".repeat(1 << random.below(7));
        }
        if random.below(3) > 0 {
            text += "wheel race ";
        }
        for _ in 0..random.below(3) {
            text += &format!("w{} ", random.below(300));
        }
        if random.below(90) == 0 {
            text += &"mill ".repeat(random.below(900) as usize);
        }
        piece.document(text.as_bytes());
    }
    piece.take()
}

/// The lists by collection and suffix: postings and bytes.
type Encoded = BTreeMap<(u16, Vec<u8>), (u32, Vec<u8>)>;

/// Puts chunks together, which come in the order of the lexicon, laid out as it will have them;
/// their lists are in the `file` where they belong.
fn join(chunks: &[LaidChunk], part: RunPart, file: &[u8]) -> Encoded {
    let mut lists = Encoded::new();
    assert!(chunks.iter().rev().map(|chunk| chunk.ends).eq((0..chunks.len()).map(|i| i == 0)));
    let body = file.get(64..).unwrap_or_default();
    let mut suffix = Vec::new();
    let mut before = None;
    let mut of_collection = 0;
    let mut end = 0usize;
    for chunk in chunks {
        assert!(chunk.whole && chunk.guard.is_some() && chunk.part == part);
        assert!(chunk.payload.is_empty() && chunk.placed.is_some() != chunk.ends);
        let mut at = 0;
        let mut blocks = &chunk.blocks[..];
        let mut begun = Vec::new();
        let mut begin = Vec::new();
        for stretch in &chunk.stretches {
            let start = if stretch.is_aligned { end.next_multiple_of(16) } else { end };
            let (here, rest) = blocks.split_at(stretch.blocks);
            begun.extend(here.iter().map(|block| (at + block.terms, start + block.lists)));
            blocks = rest;
            let collection = stretch.collection;
            for n in 0..stretch.terms {
                of_collection = if before == Some(collection) { of_collection + 1 } else { 0 };
                before = Some(collection);
                if of_collection % 16 == 0 {
                    begin.push((at, end));
                }
                let [shared, more] = [chunk.terms[at], chunk.terms[at + 1]].map(usize::from);
                assert!(of_collection % 16 != 0 || shared == 0);
                suffix.truncate(shared);
                suffix.extend_from_slice(&chunk.terms[at + 2..][..more]);
                at += 2 + more;
                let mut number = || vbyte::get(&chunk.terms, &mut at).unwrap();
                let df = number() as u32;
                let bytes = number() as usize;
                let key = (collection, suffix.clone());
                assert!(lists.last_key_value().is_none_or(|(last, _)| *last < key), "they rise");
                assert_eq!(df >= 128, n == 0 && stretch.is_aligned);
                let from = if df >= 128 { start } else { end };
                assert!(body[end..from].iter().all(|&byte| byte == 0));
                lists.insert(key, (df, body[from..from + bytes].to_vec()));
                end = from + bytes;
            }
            assert!(stretch.terms == 0 || end == start + stretch.payload_bytes);
        }
        assert_eq!(at, chunk.terms.len());
        assert!(begun == begin && blocks.is_empty(), "every sixteenth term begins a block");
    }
    assert!(body.len() >= end);
    lists
}

fn expected(run: &TwinRun, codes: &[u8]) -> Encoded {
    let mut encoder = ListEncoder::new();
    let lists = keyed(run).into_iter().map(|(key, list)| {
        for &(docid, tf) in &list {
            encoder.push(docid, tf, codes[docid as usize]);
        }
        let (df, bytes) = encoder.finish();
        let list = std::mem::take(encoder.payload());
        assert_eq!(bytes, list.len() as u64);
        (key, (df, list))
    });
    lists.collect()
}

/// Runs of several batches, of which the first is large; later ones are asked for before, or not.
pub(super) fn encode<M: InvertMachine>(inverter: &mut Inverter<M>, seed: u64, documents: u32) {
    let mut random = Random(seed);
    let analysis = Analysis::default();
    for (number, documents) in [documents, 0, 30].into_iter().enumerate() {
        let mut run = TwinRun::new();
        let mut codes = Vec::new();
        let batches = (0..6).map(|_| {
            let pieces = [documents / 4, 0, documents / 20, 9].map(|here| piece(&mut random, here));
            Arc::new(Vec::from(pieces))
        });
        let batches = Vec::from_iter(batches);
        for (batch, pieces) in batches.iter().enumerate() {
            ask(inverter, &mut random, &batches[batch..]);
            let mut pieces = &pieces[..];
            let first = codes.len() as u32;
            if batch == 2 {
                // What follows belongs to another run, as far as is known then.
                inverter.count(pieces, first).unwrap();
                pieces = &pieces[..3];
            }
            let expected = twin::invert(&analysis, pieces, first, &mut run);
            compare(&inverter.count(pieces, first).unwrap(), &expected);
            codes.extend(expected.iter().flat_map(|piece| piece.codes.iter().copied()));
            assert!(inverter.keeps() && inverter.lists().unwrap().is_none());
        }
        let part =
            RunPart { run: number as u32, documents: codes.len() as u32, ..RunPart::default() };
        let held = Arc::new(());
        let mut chunks = Vec::new();
        let scratch = Scratch::new();
        let open = || Ok(FilledFile::create(&scratch.path(""), "lists")?);
        let lengths = [codes[..].into()];
        inverter.encode(part, &lengths, &held, open, |chunk| chunks.push(chunk)).unwrap();
        assert_eq!(Arc::strong_count(&held), 1 + chunks.len());
        // A run without terms has none.
        let file = std::fs::read(scratch.path("lists")).unwrap_or_default();
        let found = join(&chunks, part, &file);
        let expected = expected(&run, &codes);
        assert!(found.keys().eq(expected.keys()), "the terms differ");
        for (key, list) in expected {
            assert!(found[&key] == list, "the list of {key:?}, of {} postings", list.0);
        }
        if documents > 1000 {
            let most = run.values().map(Vec::len).max().unwrap();
            assert!(most > 16 * 128, "a list has several places");
        }
    }
}

#[test]
fn twin_emulated_runs_are_encoded() {
    let Some(emulator) = compiled() else { return };
    let all = u32::MAX - 1;
    for (seed, gathered_at_once, encoded_at_once, documents) in [
        (1, all, 1 << 20, 1400),
        (2, all, 700, 90),
        (6, 900, 500, 90),
        (7, 400, 500, 90),
        (8, 400, 500, 300),
    ] {
        let machine = Emulated::new(emulator.clone(), seed);
        let tuning = InvertTuning { gathered_at_once, encoded_at_once, ..InvertTuning::default() };
        let mut inverter = super::inverter(machine, 2).tuned(tuning).encoding();
        encode(&mut inverter, seed + 5, documents);
        assert_eq!(inverter.work().spilled, 0);
    }
}

/// A piece, and its lists.
fn one_batch() -> ([PieceText; 1], [Arc<[u8]>; 1], Encoded) {
    let pieces = [piece(&mut Random(7), 200)];
    let mut run = TwinRun::new();
    let counted = twin::invert(&Analysis::default(), &pieces, 0, &mut run);
    let codes = counted[0].codes.clone();
    let expected = expected(&run, &codes);
    (pieces, [codes], expected)
}

/// A device that has no room to gather all lists gathers those of some terms at a time, or says
/// that it has none.
#[test]
fn lists_are_gathered_as_many_at_a_time_as_there_is_room_for() {
    let Some(emulator) = compiled() else { return };
    let (pieces, codes, expected) = one_batch();
    let mut refused = 0;
    let mut times = Vec::new();
    for room in (4..16).map(|n| 1500 * n).chain([1 << 20]) {
        let machine = Emulated::new(emulator.clone(), 2);
        let tuning = InvertTuning { encoded_at_once: 700, ..InvertTuning::default() };
        let mut inverter = super::inverter(machine, 1).tuned(tuning).encoding();
        inverter.count(&pieces, 0).unwrap();
        assert!(inverter.lists().unwrap().is_none());
        inverter.machine().allow(room);
        let part = RunPart::default();
        let held = Arc::new(());
        let scratch = Scratch::new();
        let open = || Ok(FilledFile::create(&scratch.path(""), "lists")?);
        let mut chunks = Vec::new();
        match inverter.encode(part, &codes, &held, open, |chunk| chunks.push(chunk)) {
            Ok(()) => {
                let file = std::fs::read(scratch.path("lists")).unwrap();
                assert!(join(&chunks, part, &file) == expected, "{room}");
                times.push(inverter.machine().gathered);
            }
            Err(error) => {
                let error = error.downcast::<GpuError>().unwrap();
                assert!(error.is_out_of_memory(), "{error}");
                assert!(times.is_empty(), "{room} is refused, and less was not");
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && times.is_sorted_by(|a, b| a >= b), "{refused} {times:?}");
    assert!(times.iter().any(|&times| times > 1) && times.last() == Some(&0), "{times:?}");
}

/// Somebody else takes the memory of a device when all is gathered and its postings are freed:
/// fewer lists are encoded at a time.
#[test]
fn lists_are_encoded_with_less_room_than_was_likely() {
    let Some(emulator) = compiled() else { return };
    let (pieces, codes, expected) = one_batch();
    for refusals in [(1, 1), (1, 2), (1, 3)] {
        let tuning = InvertTuning { encoded_at_once: 700, ..InvertTuning::default() };
        let mut machine = Emulated::new(emulator.clone(), 2);
        machine.refusals = refusals;
        let mut inverter = super::inverter(machine, 1).tuned(tuning).encoding();
        inverter.count(&pieces, 0).unwrap();
        assert!(inverter.lists().unwrap().is_none());
        let part = RunPart::default();
        let held = Arc::new(());
        let scratch = Scratch::new();
        let open = || Ok(FilledFile::create(&scratch.path(""), "lists")?);
        let mut chunks = Vec::new();
        inverter.encode(part, &codes, &held, open, |chunk| chunks.push(chunk)).unwrap();
        let machine = inverter.machine();
        assert_eq!((machine.refusals, machine.gathered), ((0, 0), 0));
        let file = std::fs::read(scratch.path("lists")).unwrap();
        assert!(join(&chunks, part, &file) == expected, "{refusals:?}");
    }
}

/// A disk is full, or the job has ended otherwise: no more lists are encoded than are on their way.
#[test]
fn lists_that_cannot_be_written_are_not_encoded() {
    let Some(emulator) = compiled() else { return };
    let pieces = [piece(&mut Random(8), 600)];
    let chunks = [false, true].map(|ends_early| {
        let machine = Emulated::new(emulator.clone(), 2);
        let tuning = InvertTuning { encoded_at_once: 30, ..InvertTuning::default() };
        let mut inverter = super::inverter(machine, 1).tuned(tuning).encoding();
        let counted = inverter.count(&pieces, 0).unwrap();
        let codes = counted[0].codes.clone();
        assert!(inverter.lists().unwrap().is_none());
        let part = RunPart::default();
        let held = Arc::new(());
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.path("runs")).unwrap();
        let open = || Ok(FilledFile::create(&scratch.path(""), "runs/000000.postings")?);
        let mut chunks = 0;
        let mut ended = false;
        let mut out = |chunk: LaidChunk| {
            (chunks, ended) = (chunks + 1, chunk.ends);
            if ends_early && chunks == 1 {
                let folder = scratch.path("");
                let new = NewRun::alone(&folder, 0, Form::BP128);
                let new = NewRun { lists: chunk.placed.clone(), ..new };
                let mut run = RunWriter::create(new, vec![0]).unwrap();
                run.take(0, chunk);
                // Nobody needs the lists any more when this is dropped.
                assert!(!run.write().unwrap());
            }
        };
        inverter.encode(part, &[codes], &held, open, &mut out).unwrap();
        assert!(ended, "whoever waits for the end of the run hears of it");
        chunks
    });
    assert!(chunks[0] > 20 && chunks[1] < 10, "{chunks:?}");
}

/// What a device has of a run when there is no room for more is taken to the host, and nothing is
/// lost.
#[test]
fn runs_that_a_device_has_no_room_for_are_taken_to_the_host() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(4);
    let analysis = Analysis::default();
    let mut inverter = super::inverter(Emulated::new(emulator, 2), 1).encoding();
    for _ in 0..2 {
        let mut run = TwinRun::new();
        let mut found = Vec::new();
        let mut first = 0;
        let batches = Vec::from_iter((0..6).map(|_| Arc::new(vec![piece(&mut random, 20)])));
        for (batch, pieces) in batches.iter().enumerate() {
            if batch == 3 {
                found = inverter.spill().unwrap();
                assert_eq!((found.len(), inverter.keeps()), (3, false));
            }
            ask(&mut inverter, &mut random, &batches[batch..]);
            let expected = twin::invert(&analysis, pieces, first, &mut run);
            compare(&inverter.count(pieces, first).unwrap(), &expected);
            first += 20;
            found.extend(inverter.lists().unwrap());
        }
        assert_eq!(read(&inverter.end_run().unwrap(), &found), keyed(&run));
        assert!(inverter.keeps(), "the next run stays there again");
    }
    assert_eq!(inverter.work().spilled, 2);
}
