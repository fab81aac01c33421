//! The host's side of a GPU indexer asks a device for the right things, whatever that is like: an
//! emulated one whose kernels are their twins.

mod builds;
mod emulated;

use self::emulated::{TUNING, emulated, on, room_for, twins};
use crate::inside_tests::emulation::machine::{EmulatedArrays, Manner};
use millrace::dictionary::closed::{ClosedError, ClosedShare};
use millrace::papers::wei11::cpu::CpuIndexer;
use millrace::papers::wei11::gpu::btree::block::Most;
use millrace::papers::wei11::gpu::btree::room::TreeRoom;
use millrace::papers::wei11::gpu::btree::trees::Trees;
use millrace::papers::wei11::gpu::indexer::GpuIndexer;
use millrace::papers::wei11::indexer::{ParsedBlock, TokenIndexer};
use millrace::papers::wei11::stream::{StreamWriter, TokenGroup};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Collections and terms of one document.
type Document = Vec<(u16, Vec<u8>)>;

type Run = Vec<Vec<Document>>;

fn group(documents: &[Document]) -> TokenGroup {
    let mut tokens: Vec<(u16, u32, &[u8])> = Vec::new();
    for (n, document) in (0u32..).zip(documents) {
        tokens.extend(document.iter().map(|(collection, term)| (*collection, n, &term[..])));
    }
    tokens.sort_by_key(|&(collection, n, _)| (collection, n));
    let mut writer = StreamWriter::new(0, 0);
    for (collection, n, term) in tokens {
        writer.token(collection, n, term);
    }
    writer.finish(Arc::default(), vec![0; documents.len()].into())
}

/// A run as parsed blocks of this many pieces.
fn blocks(run: &Run, pieces: usize) -> Vec<ParsedBlock> {
    let mut first = 0;
    let groups: Vec<(TokenGroup, u32)> = run
        .iter()
        .map(|piece| {
            let place = first;
            first += piece.len() as u32;
            (group(piece), place)
        })
        .collect();
    let mut blocks = Vec::new();
    let mut groups = groups.into_iter().peekable();
    while groups.peek().is_some() {
        blocks.push(groups.by_ref().take(pieces).collect());
    }
    blocks
}

type Terms = Vec<(u16, Vec<u8>, Vec<u8>)>;

/// The terms of a run that closes, how many shares they came in, and how often the next one was not
/// there yet. All shares are there before the first is read, as if other workers were late.
fn close(indexer: &mut dyn TokenIndexer) -> Result<(Terms, usize, u64), ClosedError> {
    let mut shares = Vec::new();
    let mut later = 0;
    while shares.last().is_none_or(|share: &ClosedShare| !share.last) {
        match indexer.close()? {
            Some(share) => shares.push(share),
            None => later += 1,
        }
        assert!(later < 1_000_000, "nothing comes");
    }
    let count = shares.len();
    let mut found = Terms::new();
    let mut postings = Vec::new();
    for mut share in shares {
        let before = found.last().map(|(collection, ..)| *collection);
        while share.terms.advance(&mut postings)? {
            let (collection, suffix) = share.terms.term();
            assert!(before.is_none_or(|before| before < collection), "a share begins a collection");
            found.push((collection, suffix.to_vec(), postings.clone()));
        }
    }
    Ok((found, count, later))
}

/// What the CPU makes of a run.
fn expected(run: &Run) -> Terms {
    let mut indexer = CpuIndexer::default();
    for block in blocks(run, 1) {
        indexer.append(block).unwrap();
        assert_eq!(indexer.advance().unwrap(), 0);
    }
    close(&mut indexer).unwrap().0
}

/// Indexes a run as the operator does; returns its terms, the parts before the last, and how often
/// something was not done yet.
fn index(
    indexer: &mut GpuIndexer,
    run: &Run,
    pieces: usize,
) -> Result<(Terms, usize, u64), ClosedError> {
    let mut waits = 0;
    let mut open = 0;
    for block in blocks(run, pieces) {
        while open >= indexer.most_blocks() {
            open = indexer.advance()?;
            waits += 1;
            assert!(waits < 1_000_000, "a block is never done");
        }
        indexer.append(block)?;
        open += 1;
    }
    while indexer.advance()? > 0 {
        waits += 1;
        assert!(waits < 1_000_000, "a block is never done");
    }
    let parts = indexer.parts();
    let (terms, _, later) = close(indexer)?;
    Ok((terms, parts, waits + later))
}

/// Enough room, blocks that are large enough, and bytes that come back at a time.
fn generous() -> (TreeRoom, Most, usize) {
    (room_for(1 << 13), Most { bytes: 1 << 16, segments: 1 << 14 }, 1 << 12)
}

/// Runs of pieces of documents of terms; few collections and terms, so that they repeat.
fn runs() -> impl Strategy<Value = Vec<Run>> {
    let term = prop_oneof![
        3 => "[a-c]{0,2}".prop_map(String::into_bytes),
        1 => "[a-c]{5,40}".prop_map(String::into_bytes),
    ];
    let document = prop::collection::vec((0u16..5, term), 0..12);
    let piece = prop::collection::vec(document, 0..6);
    prop::collection::vec(prop::collection::vec(piece, 0..8), 1..4)
}

proptest! {
    /// Whatever blocks, buffers and arenas are like, and however late work is done, the device's
    /// runs are the CPU's.
    #[test]
    fn twin_of_the_cpu_indexer(
        runs in runs(),
        pieces in 1usize..5,
        room in prop_oneof![Just(2u64), 2u64..40, Just(1 << 13)],
        bytes in prop_oneof![Just(1usize), 1usize..200, Just(1 << 16)],
        segments in prop_oneof![1usize..20, Just(1 << 14)],
        download in 1usize..64,
        buffers in 1usize..4,
        delay in 0u32..5,
        share_bytes in prop_oneof![Just(1u64), 1u64..200, Just(1 << 19)],
    ) {
        let most = Most { bytes: bytes.max(42), segments };
        let room = room_for(room);
        let manner = Manner { buffers, delay, ..Manner::default() };
        let mut indexer = GpuIndexer::new(emulated((room, most, 4 * download), manner));
        indexer.share_bytes = share_bytes;
        for run in &runs {
            let (terms, _, _) = index(&mut indexer, run, pieces).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(terms, expected(run));
        }
    }

    /// Whatever work fails, the indexer reports it, with device, kernel and geometry.
    #[test]
    fn a_failure_of_the_device_is_told(runs in runs(), fails in 0usize..12, delay in 0u32..3) {
        let manner = Manner { fails: Some(fails), delay, ..Manner::default() };
        let (_, most, _) = generous();
        let mut indexer = GpuIndexer::new(emulated((room_for(60), most, 64), manner));
        for run in &runs {
            match index(&mut indexer, run, 2) {
                Ok((terms, _, _)) => prop_assert_eq!(terms, expected(run)),
                Err(error) => {
                    let error = error.to_string();
                    let told = ["the kernel btree_", "a copy of "]
                        .iter()
                        .any(|work| error.starts_with(&format!("GPU 0 (emulated): {work}")));
                    prop_assert!(told && error.contains(" failed: CUDA_ERROR_"), "{}", error);
                    return Ok(());
                }
            }
        }
    }
}

/// The smaller the shares, the more there are, up to one for each collection; whether or not the
/// device was emptied in between.
#[test]
fn a_closed_run_is_dealt_in_shares_of_collections() {
    let documents = |piece: u16| {
        let term = |i: u16| (10 * (i % 40), format!("{}{i}", piece % 3).into_bytes());
        vec![(0..200).map(term).collect()]
    };
    let run: Run = (0..6).map(documents).collect();
    let (_, most, stretch) = generous();
    for room in [room_for(300), room_for(1 << 13)] {
        let found = [1, 2000, 1 << 19].map(|share_bytes| {
            let manner = Manner { delay: 1, ..Manner::default() };
            let mut indexer = GpuIndexer::new(emulated((room, most, stretch), manner));
            indexer.share_bytes = share_bytes;
            for block in blocks(&run, 1) {
                indexer.append(block).unwrap();
                while indexer.advance().unwrap() > 0 {}
            }
            let (terms, shares, _) = close(&mut indexer).unwrap();
            assert_eq!(terms, expected(&run));
            shares
        });
        assert!(found[0] == 40 && (2..40).contains(&found[1]) && found[2] == 1, "{found:?}");
    }
}

fn document(terms: &[&str]) -> Document {
    terms.iter().map(|term| (7, term.as_bytes().to_vec())).collect()
}

/// `n` documents, each with a term of its own and one of all.
fn distinct(n: usize) -> Run {
    vec![(0..n).map(|i| document(&["all", &format!("{i:06}")])).collect()]
}

#[test]
fn blocks_are_under_way_together_and_nothing_waits() {
    let run: Run = (0..12).map(|_| vec![document(&["a", "b"]); 3]).collect();
    let of = generous();
    let device = EmulatedArrays::new(Manner { delay: 3, ..Manner::default() }, twins(of.0));
    let overlap = device.most_under_way.clone();
    let mut indexer = GpuIndexer::new(on(device, of));
    let (terms, parts, waits) = index(&mut indexer, &run, 1).unwrap();
    assert_eq!(terms, expected(&run));
    assert_eq!((parts, overlap.load(Ordering::Relaxed)), (0, 2));
    assert!(waits > 3, "the device was asked {waits} times only");
}

#[test]
fn a_full_device_is_emptied_into_parts() {
    let run = distinct(1000);
    let manner = Manner { delay: 1, ..Manner::default() };
    let (_, most, stretch) = generous();
    let mut indexer = GpuIndexer::new(emulated((room_for(300), most, stretch), manner));
    let (terms, parts, _) = index(&mut indexer, &run, 1).unwrap();
    assert!(parts > 2, "{parts} parts");
    assert_eq!(terms.len(), 1001);
    assert_eq!(terms, expected(&run));
    // The next run begins again.
    let next = distinct(3);
    assert_eq!(index(&mut indexer, &next, 1).unwrap().0, expected(&next));
}

#[test]
fn one_document_that_fills_the_device_more_than_once_is_one_posting() {
    let words: Vec<String> = (0..2000).map(|i| format!("{:02}", i % 50)).collect();
    let run: Run = vec![vec![document(&words.iter().map(String::as_str).collect::<Vec<_>>())]];
    let (_, most, stretch) = generous();
    let mut indexer = GpuIndexer::new(emulated((room_for(60), most, stretch), Manner::default()));
    let (terms, parts, _) = index(&mut indexer, &run, 1).unwrap();
    assert!(parts > 2, "{parts} parts");
    assert_eq!(terms, expected(&run));
    let mut at = 0;
    assert_eq!(millrace::codec::folded::get(&terms[0].2, &mut at), Some((0, 40)));
    assert_eq!(at, terms[0].2.len(), "one posting");
}

#[test]
fn a_token_that_does_not_fit_an_empty_device_is_an_error() {
    let (_, most, stretch) = generous();
    let mut indexer =
        GpuIndexer::new(emulated((TreeRoom::default(), most, stretch), Manner::default()));
    let error = index(&mut indexer, &distinct(1), 1).unwrap_err();
    assert!(error.to_string().contains("device memory"), "{error}");
}

#[test]
fn smaller_arenas_are_tried_where_a_device_has_less_memory_than_it_says() {
    let (_, most, _) = generous();
    let largest = |memory| {
        let machine =
            EmulatedArrays::new(Manner { memory, ..Manner::default() }, twins(room_for(9)));
        Trees::largest(Box::new(machine), TUNING, u64::MAX, room_for(9), most)
    };
    let all = largest((256 << 20, 256 << 20)).unwrap().room().bytes();
    let less = largest((256 << 20, 200 << 20)).unwrap().room().bytes();
    assert!(all > 128 << 20 && less <= all / 2 && less > all / 3, "{less} of {all}");
    let error = largest((1 << 20, 1 << 20)).err().unwrap();
    assert!(error.is_out_of_memory() && error.to_string().contains("trees takes"), "{error}");
}

#[test]
fn a_share_without_tokens_gives_empty_runs() {
    let mut indexer = GpuIndexer::new(emulated(generous(), Manner::default()));
    for run in [vec![], vec![vec![]], vec![vec![Document::new(); 4]; 3]] {
        assert_eq!(index(&mut indexer, &run, 2).unwrap().0, []);
    }
    let run = distinct(5);
    assert_eq!(index(&mut indexer, &run, 2).unwrap().0, expected(&run));
}

#[test]
fn terms_of_255_bytes_and_the_last_collection_come_back() {
    let long = vec![b'z'; 255];
    let run: Run = vec![vec![vec![(0, long.clone()), (17_612, long), (17_612, vec![])]]];
    let (room, most, _) = generous();
    let mut indexer = GpuIndexer::new(emulated((room, most, 4), Manner::default()));
    assert_eq!(index(&mut indexer, &run, 1).unwrap().0, expected(&run));
}
