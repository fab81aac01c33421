//! A device makes of texts the lists that the CPU makes. The kernels of `invert.cu`, emulated and
//! on a device, against their twins.

mod builds;
mod device;
mod encode;
pub(crate) mod machine;
mod terms;

use crate::inside_tests::emulation::Random;
use machine::{Emulated, compiled};
use millrace::codec::folded;
use millrace::dictionary::device::inverted::InvertedLists;
use millrace::dictionary::device::texts::TextGatherer;
use millrace::dictionary::parsed::Regroup;
use millrace::gpu::invert::InvertTuning;
use millrace::gpu::invert::classes::CharacterClasses;
use millrace::gpu::invert::inverter::{CountedBatch, Inverter, InverterHooks};
use millrace::gpu::invert::machine::{ArrayReading, InvertMachine};
use millrace::gpu::invert::steps::{self, InvertArray, postings};
use millrace::gpu::invert::text::{PieceText, TILE_BYTES, content};
use millrace::gpu::invert::twin::{self, TwinRun};
use millrace::text::analysis::Analysis;
use millrace::text::tokenizer::Tokenizer;
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes a word: common ones, stop words, rare ones, long ones, and runs of other scripts.
fn word(random: &mut Random, rare: u32) -> Vec<u8> {
    const COMMON: [&str; 12] = [
        "the",
        "Mill",
        "mills",
        "OF",
        "Running",
        "runs",
        "1984",
        "x",
        "3d",
        "na\u{ef}ve",
        "don\u{2019}t",
        "\u{2014}",
    ];
    match random.below(60) {
        0 => "\u{5317}\u{4eac}\u{3002}\u{5927}\u{5b66}".repeat(random.below(9) as usize).into(),
        1 => vec![b'q'; random.below(300) as usize],
        2 => format!("internationalisation{}", random.below(5)).into(),
        3 => scripts(random, 12),
        4..10 => format!("w{}", random.below(rare)).into(),
        _ => COMMON[(random.below(12).min(random.below(12))) as usize].into(),
    }
}

/// This many characters and bytes of several scripts, marks between them, and encodings that are
/// cut or wrong.
fn scripts(random: &mut Random, pieces: u32) -> Vec<u8> {
    const LETTERS: &str = "aZ9-\u{e9}\u{3a3}\u{130}\u{5317}\u{4eac}\u{5927}\u{3005}\u{3072}\u{30ab}\u{30ca}\u{30fc}\u{ff76}\u{ff9e}\u{ff21}\u{d6c8}\u{20000}\u{3002}\u{2019}\u{2014}\u{3000}\u{10400}\u{1f600}\u{ad}\u{200b}\u{200d}\u{e0100}\u{301}\u{3099}\u{94d}\u{304b}\u{ac00}\u{11a8}";
    const WRONG: [&[u8]; 8] = [
        b"\xc3",
        b"\xe2\x80",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xf4\x90\x80\x80",
        b"\x94",
    ];
    let letters = Vec::from_iter(LETTERS.chars().map(String::from));
    let piece = |_| match random.below(12) {
        0 => WRONG[random.below(8) as usize],
        _ => letters[random.below(letters.len() as u32) as usize].as_bytes(),
    };
    Vec::from_iter((0..pieces).map(piece)).concat()
}

/// Pieces of documents of words, among them empty ones.
fn pieces(
    random: &mut Random,
    tokenizer: Tokenizer,
    (pieces, documents, words, rare): (u32, u32, u32, u32),
) -> Vec<PieceText> {
    let analysis = Analysis { tokenizer, ..Analysis::default() };
    let piece = |random: &mut Random| {
        let mut piece = TextGatherer::new(Arc::default()).prepared_by(&analysis);
        for _ in 0..random.below(documents + 1) {
            let mut text = Vec::new();
            for _ in 0..random.below(words + 1) {
                text.extend(word(random, rare));
                text.extend([&b" "[..], b"\n", b", ", b"-"][random.below(4) as usize]);
            }
            // The last word may end with the text.
            text.extend(word(random, rare));
            piece.document(if random.below(8) == 0 { &[] } else { &text });
        }
        piece.take()
    };
    (0..pieces).map(|_| piece(random)).collect()
}

/// Postings by trie collection and suffix.
type Keyed = BTreeMap<(u16, Vec<u8>), Vec<(u32, u32)>>;

/// The lists of a run.
fn read(inverted: &millrace::dictionary::device::forms::Terms, batches: &[InvertedLists]) -> Keyed {
    let mut lists = BTreeMap::new();
    inverted.for_each(|number, collection, suffix| {
        let mut bytes = Vec::new();
        for batch in batches {
            if let Some([start, end]) = batch.starts.get(number as usize..number as usize + 2) {
                bytes.extend_from_slice(&batch.bytes[*start as usize..*end as usize]);
            }
        }
        let list = folded::list(&bytes);
        if !list.is_empty() {
            assert!(lists.insert((collection, suffix.to_vec()), list).is_none(), "a term twice");
        }
    });
    lists
}

fn keyed(run: &TwinRun) -> Keyed {
    let keyed = run.iter().map(|(term, list)| {
        let collection = trie_collection(term);
        ((collection, term.as_bytes()[implied_prefix_len(collection)..].to_vec()), list.clone())
    });
    keyed.collect()
}

fn compare(counted: &[CountedBatch], expected: &[CountedBatch]) {
    assert_eq!(counted.len(), expected.len());
    for (counted, expected) in counted.iter().zip(expected) {
        assert_eq!((&counted.lengths, &counted.contents), (&expected.lengths, &expected.contents));
        assert_eq!(counted.codes, expected.codes);
        let numbers =
            |of: &CountedBatch| (of.counts.documents, of.counts.postings, of.counts.list_bytes);
        assert_eq!(numbers(counted), numbers(expected));
        assert!(counted.counts.forms == expected.counts.forms, "the sketches differ");
    }
}

/// An inverter of which nobody hears beside.
fn inverter<M: InvertMachine>(machine: M, threads: usize) -> Inverter<M> {
    inverter_of(machine, Tokenizer::default(), threads)
}

fn inverter_of<M: InvertMachine>(machine: M, tokenizer: Tokenizer, threads: usize) -> Inverter<M> {
    let analysis = Analysis { tokenizer, ..Analysis::default() };
    Inverter::new(Box::new(machine), &analysis, threads, &InverterHooks::default()).unwrap()
}

/// Asks for some of the batches that come, if there is room.
fn ask<M: InvertMachine>(
    inverter: &mut Inverter<M>,
    random: &mut Random,
    coming: &[Arc<Vec<PieceText>>],
) {
    while let Some(next) = coming.get(inverter.found()) {
        if !inverter.has_room() || random.below(4) == 0 {
            return;
        }
        inverter.find(next.clone(), None);
    }
}

/// Two runs of several batches, one of them counted twice since the run is to end within it; forms
/// of later ones are found before, or not.
fn invert<M: InvertMachine>(
    inverter: &mut Inverter<M>,
    tokenizer: Tokenizer,
    seed: u64,
    shape: (u32, u32, u32, u32),
) {
    let mut random = Random(seed);
    let analysis = Analysis { tokenizer, ..Analysis::default() };
    for batches in [5, 1] {
        let mut run = TwinRun::new();
        let mut lists = Vec::new();
        let mut first = 0;
        let all =
            Vec::from_iter((0..batches).map(|_| Arc::new(pieces(&mut random, tokenizer, shape))));
        for (batch, pieces) in all.iter().enumerate() {
            ask(inverter, &mut random, &all[batch..]);
            let mut pieces = &pieces[..];
            if batch == 1 {
                // What is behind the run's end belongs to the next one.
                inverter.count(pieces, first).unwrap();
                pieces = &pieces[..pieces.len().div_ceil(2)];
            }
            let expected = twin::invert(&analysis, pieces, first, &mut run);
            let counted = inverter.count(pieces, first).unwrap();
            compare(&counted, &expected);
            first += counted.iter().map(|piece| piece.counts.documents).sum::<u32>();
            lists.extend(inverter.lists().unwrap());
        }
        assert_eq!(read(&inverter.end_run().unwrap(), &lists), keyed(&run));
    }
}

const SHAPES: [(u32, u32, u32, u32); 4] =
    [(1, 1, 0, 1), (3, 2, 3, 5), (5, 12, 60, 900), (9, 40, 12, 40)];

#[test]
fn twin_emulated_batches_are_inverted() {
    let Some(emulator) = compiled() else { return };
    for (seed, shape) in (0..).zip(SHAPES) {
        let tokenizer = Tokenizer::ALL[seed as usize % 2];
        let mut inverter = inverter_of(Emulated::new(emulator.clone(), seed), tokenizer, 2);
        invert(&mut inverter, tokenizer, seed + 100, shape);
        let work = inverter.work();
        assert!(work.batches >= 5 && work.forgotten == 0, "{work:?}");
    }
}

/// Pieces of which nobody has brought the texts may lie where others did.
#[test]
fn texts_that_were_brought_are_used_once() {
    let Some(emulator) = compiled() else { return };
    let analysis = Analysis::default();
    let mut inverter = inverter(Emulated::new(emulator, 3), 1);
    let mut random = Random(17);
    let mut run = TwinRun::new();
    let mut first = 0;
    let mut batch = Arc::new(pieces(&mut random, Tokenizer::Words, SHAPES[2]));
    let bytes: usize = batch.iter().map(|piece| piece.bytes.len()).sum();
    let rest = vec![b' '; bytes.next_multiple_of(TILE_BYTES) - bytes];
    let parts: Vec<&[u8]> = batch.iter().map(|piece| &*piece.bytes).chain([&*rest]).collect();
    let text = inverter.machine().uploader().unwrap().upload(&parts, None).unwrap();
    inverter.find(batch.clone(), Some(text));
    for _ in 0..2 {
        let counted = inverter.count(&batch, first).unwrap();
        let expected = twin::invert(&analysis, &batch, first, &mut run);
        compare(&counted, &expected);
        first += counted.iter().map(|piece| piece.counts.documents).sum::<u32>();
        inverter.lists().unwrap();
        let others = pieces(&mut random, Tokenizer::Words, SHAPES[2]);
        let here = Arc::get_mut(&mut batch).expect("nobody needs what is counted");
        here.iter_mut().zip(others).for_each(|(piece, other)| *piece = other);
    }
}

/// Forms whose fingerprints are those of others, and tables without room, change nothing but the
/// work.
#[test]
fn twin_emulated_clashes_change_nothing() {
    let Some(emulator) = compiled() else { return };
    for (seed, tokenizer) in [0, 7].into_iter().zip(Tokenizer::ALL) {
        let mut inverter = inverter_of(Emulated::new(emulator.clone(), seed), tokenizer, 1);
        inverter = inverter.tuned(InvertTuning {
            fingerprint_bits: 5,
            probes: 2,
            ..InvertTuning::default()
        });
        invert(&mut inverter, tokenizer, seed + 200, SHAPES[2]);
        let work = inverter.work();
        assert!(work.odd * 8 > work.tokens, "{work:?}");
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn get(machine: &mut Emulated, array: InvertArray, len: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * len];
    machine.read(&mut [ArrayReading { array, at: 0, to: &mut bytes }]).unwrap();
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn put(machine: &mut Emulated, array: InvertArray, bytes: &[u8]) {
    machine.reserve(array, bytes.len().max(16) as u64, 0).unwrap();
    machine.write(array, 0, &[bytes]).unwrap();
}

#[test]
fn twin_emulated_steps_find_what_their_twins_find() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(5);
    for seed in 0..3 {
        let mut machine = Emulated::new(emulator.clone(), seed);
        put(&mut machine, InvertArray::Counters, &[0; 4 * steps::COUNTERS]);
        for len in [1, 33, 8192, 8193, 20_000] {
            let values: Vec<u32> = (0..len).map(|_| random.below(1000)).collect();
            put(&mut machine, InvertArray::Tiles, &words(&values));
            machine
                .reserve(InvertArray::Sums, 4 * u64::from(steps::sum_words(len)).max(4), 0)
                .unwrap();
            machine.run(&steps::scan(InvertArray::Tiles, len)).unwrap();
            let (sums, sum) = twin::scan(&values);
            assert_eq!(get(&mut machine, InvertArray::Tiles, len as usize), sums);
            assert_eq!(get(&mut machine, InvertArray::Counters, steps::COUNTERS)[steps::SUM], sum);
        }
        for &tokenizer in &Tokenizer::ALL[..Tokenizer::OF_DEVICES] {
            let mut text = scripts(&mut random, 3 * TILE_BYTES as u32);
            text.truncate(3 * TILE_BYTES);
            for byte in &mut text[..TILE_BYTES] {
                *byte = b" aZ0-@[`{:/'x"[random.below(13) as usize];
            }
            text[3 * TILE_BYTES - 1] = b' ';
            put(
                &mut machine,
                InvertArray::Classes,
                &words(CharacterClasses::of(tokenizer).words()),
            );
            put(&mut machine, InvertArray::Text, &text);
            put(&mut machine, InvertArray::Tiles, &[0; 12]);
            machine.run(&steps::count_tokens(3)).unwrap();
            let tokens =
                get(&mut machine, InvertArray::Counters, steps::COUNTERS)[steps::SUM] as usize;
            put(&mut machine, InvertArray::Tokens, &vec![0; 4 * tokens]);
            machine.run(&[steps::write_tokens(3)]).unwrap();
            assert_eq!(
                get(&mut machine, InvertArray::Tokens, tokens),
                twin::tokens(tokenizer, &text)
            );
        }

        for (len, below, bits) in [(1, 1, 1), (700, 5, 3), (9000, 70_000, 17), (9001, 70_000, 24)] {
            let mut pairs: Vec<(u32, u32)> = (0..len).map(|i| (random.below(below), i)).collect();
            for array in [InvertArray::SortedKeys, InvertArray::SortedValues] {
                machine.reserve(array, 4 * u64::from(len).max(4), 0).unwrap();
            }
            machine
                .reserve(InvertArray::Tiles, 4 * u64::from(postings::sort_words(len)), 0)
                .unwrap();
            for (shift, bits) in postings::sort_digits(bits) {
                put(
                    &mut machine,
                    InvertArray::Keys,
                    &words(&Vec::from_iter(pairs.iter().map(|p| p.0))),
                );
                put(
                    &mut machine,
                    InvertArray::Values,
                    &words(&Vec::from_iter(pairs.iter().map(|p| p.1))),
                );
                machine.run(&postings::sort_pass(len, shift, bits)).unwrap();
                let keys = get(&mut machine, InvertArray::SortedKeys, len as usize);
                let values = get(&mut machine, InvertArray::SortedValues, len as usize);
                pairs = twin::sort_pass(&pairs, shift, bits);
                assert_eq!(keys.into_iter().zip(values).collect::<Vec<_>>(), pairs);
            }
            let pairs: Vec<(u32, u32)> = pairs.iter().map(|&(key, i)| (key, i / 4)).collect();
            put(
                &mut machine,
                InvertArray::Keys,
                &words(&Vec::from_iter(pairs.iter().map(|p| p.0))),
            );
            put(
                &mut machine,
                InvertArray::Values,
                &words(&Vec::from_iter(pairs.iter().map(|p| p.1))),
            );
            machine.run(&postings::count_postings(len)).unwrap();
            let postings =
                get(&mut machine, InvertArray::Counters, steps::COUNTERS)[steps::SUM] as usize;
            machine.reserve(InvertArray::Postings, 4 * (postings as u64 + 1).max(4), 0).unwrap();
            machine.run(&[postings::write_postings(len)]).unwrap();
            assert_eq!(
                get(&mut machine, InvertArray::Postings, postings + 1),
                twin::postings(&pairs)
            );
        }
    }
}

/// Texts of all lengths that are hashed in different ways, wherever they begin.
#[test]
fn twin_emulated_texts_are_hashed() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(11);
    let mut machine = Emulated::new(emulator, 2);
    for round in 0..8 {
        let mut texts = TextGatherer::new(Arc::default());
        let mut expected = Vec::new();
        // With a first text of other lengths all others begin elsewhere.
        let lengths = (0..300).chain([1023, 1024, 1025, 1087, 1088, 1089, 2048, 2049, 5000]);
        for length in [round].into_iter().chain(lengths) {
            let text = Vec::from_iter((0..length).map(|_| random.below(256) as u8));
            texts.document(&text);
            expected.push(content(&text));
        }
        let piece = texts.take();
        let mut bytes = piece.bytes.to_vec();
        let ends = [bytes.len() as u32];
        bytes.resize(bytes.len().next_multiple_of(TILE_BYTES), b' ');
        put(&mut machine, InvertArray::Text, &bytes);
        put(
            &mut machine,
            InvertArray::DocumentStarts,
            &words(&[&piece.starts[..], &ends].concat()),
        );
        put(&mut machine, InvertArray::Contents, &vec![0; 8 * expected.len()]);
        machine.run(&[steps::hash_documents(piece.documents())]).unwrap();
        let found = get(&mut machine, InvertArray::Contents, 2 * expected.len());
        let (found, _) = found.as_chunks::<2>();
        let found = found.iter().map(|&[low, high]| u64::from(high) << 32 | u64::from(low));
        assert_eq!(found.collect::<Vec<_>>(), expected, "round {round}");
    }
}

/// A device without memory for a batch says so, and takes a smaller one as if nothing had been.
#[test]
fn a_full_device_takes_smaller_batches() {
    let Some(emulator) = compiled() else { return };
    let mut random = Random(9);
    let analysis = Analysis::default();
    let pieces = pieces(&mut random, Tokenizer::Words, (12, 30, 40, 500));
    let mut machine = Emulated::new(emulator, 3);
    machine.most_bytes = 250_000;
    let mut inverter = inverter(machine, 1);
    let Err(error) = inverter.count(&pieces, 0) else { panic!("a full device takes all") };
    assert!(error.is_out_of_memory(), "{error}");
    let mut run = TwinRun::new();
    let mut found = Vec::new();
    let mut first = 0;
    for pieces in pieces.chunks(2) {
        let expected = twin::invert(&analysis, pieces, first, &mut run);
        compare(&inverter.count(pieces, first).unwrap(), &expected);
        first += pieces.iter().map(PieceText::documents).sum::<u32>();
        found.extend(inverter.lists().unwrap());
    }
    assert_eq!(read(&inverter.end_run().unwrap(), &found), keyed(&run));
}

/// A larger table of terms takes the place of the one before: there need not be room for both. If
/// there is none for it a smaller one does.
#[test]
fn a_full_device_has_one_table_of_terms() {
    let Some(emulator) = compiled() else { return };
    let pieces = [0..900, 300..1100].map(|words| {
        let mut piece = TextGatherer::new(Arc::default());
        words.for_each(|n| _ = piece.document(format!("w{n} mill").as_bytes()));
        [piece.take()]
    });
    let mut refused = 0;
    let mut tables = Vec::new();
    for room in (0..24).map(|n| n << 11) {
        let mut inverter = inverter(Emulated::new(emulator.clone(), 6), 1);
        let mut run = TwinRun::new();
        let mut found = Vec::new();
        let mut first = 0;
        let mut is_refused = false;
        let table = |machine: &Emulated| {
            machine.bytes_of(InvertArray::TermSlots) + machine.bytes_of(InvertArray::SlotTerms)
        };
        for pieces in &pieces {
            let expected = twin::invert(&Analysis::default(), pieces, first, &mut run);
            let counted = inverter.count(pieces, first).or_else(|error| {
                assert!(error.is_out_of_memory(), "{error}");
                is_refused = true;
                // The terms that there were have their numbers still.
                inverter.machine().most_bytes = u64::MAX;
                inverter.count(pieces, first)
            });
            compare(&counted.unwrap(), &expected);
            found.extend(inverter.lists().unwrap());
            first += pieces[0].documents();
            let machine = inverter.machine();
            // What is known of the terms makes room for a larger table.
            machine.most_bytes = machine.bytes() - table(machine) + room;
        }
        match is_refused {
            true => refused += 1,
            false => tables.push(table(inverter.machine())),
        }
        assert_eq!(read(&inverter.end_run().unwrap(), &found), keyed(&run));
    }
    assert!(refused > 0 && tables.is_sorted(), "{refused} {tables:?}");
    // Both would have 72 KiB.
    assert!(tables.starts_with(&[12 * 2048]) && tables.ends_with(&[12 * 4096]), "{tables:?}");
}
