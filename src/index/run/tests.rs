//! Tests of runs: lists are found, damage is noticed, and chunks are assembled.

use super::*;
use crate::codec::folded;
use crate::dictionary::closed::{ClosedError, ClosedTerms};
use crate::index::documents::{DocumentsWriter, Location};
use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::lexicon::TermCoder;
use crate::index::list::{BLOCK, ListEncoder, SegmentColumns};
use crate::index::testing::{TestList, write_lists};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;

fn write(folder: &Path) -> (RunEntry, Vec<FileEntry>) {
    fs::create_dir(folder.join("runs")).unwrap();
    let mut run = RunWriter::create(NewRun::alone(folder, 3, Form::BP128), vec![0]).unwrap();
    // In parts, as a merge writes long lists.
    let mut chunks = ListChunks::new(Form::BP128, folder, 1, |chunk| run.put(chunk));
    let mut encoder = ListEncoder::new();
    for (collection, suffix, df) in [(0u16, "x", 300u32), (11, "", 1), (11, "b", 128)] {
        for docid in 0..df {
            encoder.push(docid, 1 + docid % 3, 5);
        }
        let (df, bytes) = encoder.finish();
        let payload = std::mem::take(encoder.payload());
        let parts = if df >= 128 { payload.len() / 2 } else { 0 };
        let (head, tail) = payload.split_at(parts);
        let (a, b) = head.split_at(head.len() / 2);
        chunks.go_on(collection, &mut a.to_vec()).unwrap();
        chunks.go_on(collection, &mut b.to_vec()).unwrap();
        chunks.end((collection, suffix.as_bytes()), df, bytes, &mut tail.to_vec()).unwrap();
    }
    chunks.finish(&mut Vec::new()).unwrap();
    run.finish(40, 300).unwrap()
}

#[test]
fn lists_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (entry, files) = write(folder.path());
    assert_eq!((entry.name.as_str(), entry.terms, entry.postings), ("000003", 3, 429));
    let run = Run::open(folder.path(), &entry, &files).unwrap();
    assert_eq!((run.first_docid(), run.documents()), (40, 300));
    for (collection, suffix, expected) in [(0u16, "x", 300u32), (11, "", 1), (11, "b", 128)] {
        let list = run.find(collection, suffix.as_bytes()).unwrap().unwrap();
        let mut found = Vec::new();
        list.check(300, Some(&[5; 300]), |docids, tfs| {
            found.extend(docids.iter().copied().zip(tfs.iter().copied()));
        })
        .unwrap();
        let expected: Vec<_> = (0..expected).map(|docid| (docid, 1 + docid % 3)).collect();
        assert_eq!(found, expected);
    }
    assert!(run.find(12, b"").unwrap().is_none());
}

/// The lists of the run of [`write`], as far as they can be read.
fn read(run: &Run) -> Result<Vec<(u32, u32)>, IndexError> {
    let mut found = Vec::new();
    for (collection, suffix) in [(0u16, "x"), (11, ""), (11, "b")] {
        let list = run.find(collection, suffix.as_bytes())?.expect("the lexicon has it");
        let wrong = |error| IndexError::list(run.postings_path(), 0)(error);
        let columns = &mut SegmentColumns::default();
        let mut docids = [0; BLOCK];
        let mut tfs = [0; BLOCK];
        for i in 0..list.full_blocks() {
            list.decode_block(i, run.documents(), columns, &mut docids).map_err(wrong)?;
            list.decode_tfs(i, columns, &mut tfs).map_err(wrong)?;
            found.extend(docids.into_iter().zip(tfs));
        }
        let count = list.decode_tail(run.documents(), &mut docids, &mut tfs).map_err(wrong)?;
        found.extend(docids.into_iter().zip(tfs).take(count));
    }
    Ok(found)
}

#[test]
fn lists_with_a_full_block_begin_on_sixteen_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (entry, files) = write(folder.path());
    let run = Run::open(folder.path(), &entry, &files).unwrap();
    let offset =
        |c, suffix: &str| run.lexicon().find(c, suffix.as_bytes()).unwrap().unwrap().offset;
    let x = offset(0, "x");
    let one = offset(11, "");
    let b = offset(11, "b");
    assert!(x == 0 && b % 16 == 0 && b > one + 1, "{x} {one} {b}");
    let list = run.find(11, b"b").unwrap().unwrap();
    let block = list.bytes_of(&list.block(0).unwrap());
    assert_eq!(block.as_ptr() as usize % 16, 0);
}

#[test]
fn a_flipped_bit_is_an_error_or_makes_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let (entry, files) = write(folder.path());
    let good = read(&Run::open(folder.path(), &entry, &files).unwrap()).unwrap();
    let path = folder.path().join("runs/000003.postings");
    let bytes = fs::read(&path).unwrap();
    let mut harmless = 0;
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        let run = Run::open(folder.path(), &entry, &files);
        let verified = run.as_ref().map(|run| run.verify(folder.path(), &entry, &files));
        assert!(!matches!(verified, Ok(Ok(()))), "bit {bit}");
        let Ok(run) = run else { continue };
        if let Ok(found) = read(&run) {
            assert!(found == good, "bit {bit}");
            harmless += 1;
        }
        // What was found damaged stays so.
        assert!(read(&run).is_ok_and(|found| found == good) || read(&run).is_err());
    }
    assert!((8 * 64..8 * 80).contains(&harmless), "{harmless} bits of slack and padding");
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let good = bytes;
    for length in 0..good.len() {
        fs::remove_file(&path).unwrap();
        fs::write(&path, &good[..length]).unwrap();
        Run::open(folder.path(), &entry, &files).unwrap_err();
    }
}

#[test]
fn a_run_of_nothing_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let run = NewRun::alone(folder.path(), 0, Form::BP128);
    let (mut entry, mut files) = write_lists(run, 0, []);
    let documents = DocumentsWriter::create(folder.path(), 0, 7).unwrap();
    let documents = documents.finish().unwrap();
    documents.complete(folder.path(), &mut entry, &mut files).unwrap();
    let run = Run::open(folder.path(), &entry, &files).unwrap();
    assert!(run.find(0, b"a").unwrap().is_none());
}

/// A term's trie collection, suffix and postings, as (docid, tf).
type Term = (u16, Vec<u8>, Vec<(u32, u32)>);

struct Terms {
    terms: Vec<Term>,
    behind: usize,
}

impl ClosedTerms for Terms {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        let Some((_, _, list)) = self.terms.get(self.behind) else { return Ok(false) };
        postings.clear();
        let mut expected = 0;
        for &(docid, tf) in list {
            folded::put(docid - expected, tf, postings);
            expected = docid + 1;
        }
        self.behind += 1;
        Ok(true)
    }

    fn term(&self) -> (u16, &[u8]) {
        let (collection, suffix, _) = &self.terms[self.behind - 1];
        (*collection, suffix)
    }
}

/// Two owners' parts in chunks, assembled as they come, are a run with the lists of both.
#[test]
fn owners_parts_become_one_run() {
    let [one, other] = [0, 3].map(owners_parts);
    assert!(one == other, "threads write the same bytes");
}

/// Writes them by this many threads; returns the files.
fn owners_parts(threads: usize) -> Vec<FileEntry> {
    const DOCUMENTS: u32 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    // The second owner's long lists take more than a chunk, and a chunk ends within one.
    let long: Vec<(u32, u32)> = (0..DOCUMENTS).map(|docid| (docid, 1 + docid * 7 % 90)).collect();
    let owned = [
        vec![(0, b"x".to_vec(), vec![(3, 1)]), (9, b"".to_vec(), vec![(0, 4), (199_999, 1)])],
        vec![
            (2, b"a".to_vec(), long.clone()),
            (2, b"aa".to_vec(), long.clone()),
            (2, b"ab".to_vec(), long),
            (2, b"b".to_vec(), vec![(7, 2)]),
            (11, b"c".to_vec(), vec![(8, 1)]),
        ],
    ];
    let lengths = Arc::new(vec![5; DOCUMENTS as usize]);
    let part = |owner| RunPart { run: 4, first_docid: 60, documents: DOCUMENTS, owner };
    let mut encoders: Vec<_> = (0..)
        .zip(&owned)
        .map(|(owner, terms)| {
            let terms = Terms { terms: terms.clone(), behind: 0 };
            PartEncoder::new(part(owner), Box::new(terms), lengths.clone(), Form::default())
        })
        .collect();
    let new = NewRun { threads, ..NewRun::alone(folder.path(), 4, Form::default()) };
    let mut run = RunWriter::create(new, vec![0; 2]).unwrap();
    let written = [(); 2].map(|()| Arc::new(()));
    let mut made = [0; 2];
    let mut lists = [(0, 0); 2];
    // The first owner is ahead.
    for owner in [0, 1] {
        loop {
            let mut chunk = encoders[owner].chunk().unwrap();
            assert_eq!(chunk.part.owner, owner);
            chunk.guard = Some(written[owner].clone());
            let ends = chunk.ends;
            let ended = chunk.ended();
            lists[owner] = (lists[owner].0 + ended.0, lists[owner].1 + ended.1);
            made[owner] += 1;
            run.take(owner, chunk);
            let over = run.write().unwrap();
            assert_eq!(over, ends && owner == 1);
            if ends {
                break;
            }
        }
    }
    assert_eq!(lists, [(2, 3), (5, 3 * u64::from(DOCUMENTS) + 2)]);
    let (mut entry, mut files) = run.finish(60, DOCUMENTS).unwrap();
    let waiting = written.map(|chunks| Arc::strong_count(&chunks));
    assert!(made[1] > 2 && waiting == [1; 2], "{made:?} {waiting:?}");
    assert_eq!((entry.name.as_str(), entry.terms), ("000004", 7));
    let mut documents = DocumentsWriter::create(folder.path(), 4, 0).unwrap();
    for number in 0..DOCUMENTS {
        let location = Location { offset: number.into(), bytes: 1, input: 0 };
        documents.push(&number.to_string(), 5, location, 0).unwrap();
    }
    documents.finish().unwrap().complete(folder.path(), &mut entry, &mut files).unwrap();
    let run = Run::open(folder.path(), &entry, &files).unwrap();
    for (collection, suffix, postings) in owned.iter().flatten() {
        let list = run.find(*collection, suffix).unwrap().unwrap();
        let mut found = Vec::new();
        list.check(DOCUMENTS, Some(&[5; DOCUMENTS as usize]), |docids, tfs| {
            found.extend(docids.iter().copied().zip(tfs.iter().copied()));
        })
        .unwrap();
        assert!(found == *postings, "{collection}");
    }
    files
}

/// The chunks of each share, in order, and its owner; `ends` says whether one ends with a chunk.
fn in_shares(
    chunks: Vec<Vec<LaidChunk>>,
    mut ends: impl FnMut() -> bool,
) -> Vec<(usize, VecDeque<LaidChunk>)> {
    let mut shares: Vec<(usize, VecDeque<LaidChunk>)> = Vec::new();
    for (owner, chunks) in chunks.into_iter().enumerate() {
        let last = chunks.len() - 1;
        let mut share = 0;
        shares.push((owner, VecDeque::new()));
        for (number, chunk) in chunks.into_iter().enumerate() {
            let ends_part = number == last;
            let ends_share = ends_part || ends();
            let chunk = LaidChunk { share, ends_share, ends: ends_part, ..chunk };
            shares.last_mut().unwrap().1.push_back(chunk);
            if ends_share && !ends_part {
                share += 1;
                shares.push((owner, VecDeque::new()));
            }
        }
    }
    shares
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Owners' lists in any chunks, in any order between owners and their shares, give the files of
    /// a run that is written list by list.
    #[test]
    fn oracle_an_assembled_run_is_a_written_one(
        lists in prop::collection::btree_map(
            (0u16..7, "[a-c]{0,3}"),
            prop::sample::select(vec![1u32, 2, 127, 128, 129, 400, 9000]),
            0..70,
        ),
        owners in 1usize..4,
        threads in 0usize..3,
        steps in prop::collection::vec(any::<u8>(), 1..50),
    ) {
        const DOCUMENTS: u32 = 18_000;
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [written, assembled] = folders.each_ref().map(|folder| folder.path());
        for folder in [written, assembled] {
            fs::create_dir(folder.join("runs")).unwrap();
        }
        let mut steps = steps.into_iter().cycle();
        let mut step = |below: usize| usize::from(steps.next().unwrap()) % below;
        let mut all = Vec::new();
        let mut chunks = vec![Vec::new(); owners];
        let mut payloads = vec![Vec::new(); owners];
        let mut layouts: Vec<ChunkLayout> = (0..owners).map(|_| ChunkLayout::new(Form::default())).collect();
        // The last term of each owner, and how many its collection has.
        let mut last = vec![(0, "", 0); owners];
        let mut encoder = ListEncoder::new();
        for ((collection, suffix), count) in &lists {
            let gap = 1 + u32::from(*collection) % 2;
            (0..*count).for_each(|i| encoder.push(i * gap, 1 + i % 5, 9));
            let (df, bytes) = encoder.finish();
            let payload = std::mem::take(encoder.payload());
            all.push(((*collection, suffix.as_bytes()), df, payload.clone()));
            // A long list in several parts, each in a chunk of its own.
            let parts = if df >= BLOCK as u32 { 1 + step(3) } else { 1 };
            let owner = usize::from(*collection) * 5 % owners;
            let chunks = &mut chunks[owner];
            let layout = &mut layouts[owner];
            let last = &mut last[owner];
            let chunk = &mut payloads[owner];
            for number in 0..parts {
                let here = &payload[payload.len() * number / parts..payload.len() * (number + 1) / parts];
                if step(4) == 0 || number > 0 {
                    chunks.push(layout.take(std::mem::take(chunk)));
                    if number == 0 && last.2 > 0 {
                        // The layout knows only what precedes.
                        *layout = ChunkLayout::behind(Form::default(), TermCoder::behind(last.0, last.1.as_bytes(), last.2));
                    }
                }
                chunk.extend_from_slice(here);
                if number + 1 == parts {
                    layout.list((*collection, suffix.as_bytes()), df, bytes, chunk.len()).unwrap();
                } else {
                    layout.part(*collection, chunk.len());
                }
            }
            let before = if last.0 == *collection { last.2 } else { 0 };
            *last = (*collection, suffix, before + 1);
        }
        for ((chunks, mut layout), payload) in chunks.iter_mut().zip(layouts).zip(payloads) {
            chunks.push(layout.take(payload));
        }
        let new = |folder| NewRun { threads, ..NewRun::alone(folder, 2, Form::default()) };
        let (entry, expected) = write_lists(new(written), DOCUMENTS, all.iter().cloned());
        prop_assert_eq!(postings(written), expected_postings(&all));
        let mut run = RunWriter::create(new(assembled), vec![0; owners]).unwrap();
        let mut waiting = in_shares(chunks, || step(3) == 0);
        let mut over = false;
        while !waiting.is_empty() {
            let at = step(waiting.len());
            let (owner, chunks) = &mut waiting[at];
            prop_assert!(!over);
            run.take(*owner, chunks.pop_front().unwrap());
            if chunks.is_empty() {
                waiting.remove(at);
            }
            over = run.write().unwrap();
        }
        prop_assert!(over);
        let (found_entry, found) = run.finish(0, DOCUMENTS).unwrap();
        prop_assert_eq!((found_entry, &found), (entry, &expected));
        for file in &found {
            let [written, assembled] = [written, assembled].map(|folder| fs::read(folder.join(&file.name)).unwrap());
            prop_assert!(written == assembled, "{} differs", file.name);
        }
    }
}

fn postings(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("runs/000002.postings")).unwrap()[HEADER_BYTES..].to_vec()
}

fn expected_postings(lists: &[TestList<'_>]) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES];
    for (_, df, list) in lists {
        let aligned = if *df >= BLOCK as u32 { 16 } else { 1 };
        file.resize(file.len().next_multiple_of(aligned), 0);
        file.extend_from_slice(list);
    }
    let page = |(number, page): (usize, &[u8])| {
        crc32fast::hash(if number == 0 { &page[HEADER_BYTES..] } else { page }).to_le_bytes()
    };
    let pages =
        file.chunks(4096).enumerate().filter(|(n, page)| *n > 0 || page.len() > HEADER_BYTES);
    let sums: Vec<u8> = pages.flat_map(page).collect();
    file.resize(file.len().next_multiple_of(8) + POSTINGS_SLACK as usize, 0);
    file.extend(sums);
    file.resize(file.len().next_multiple_of(8), 0);
    file.split_off(HEADER_BYTES)
}

#[test]
fn lists_that_do_not_fit_are_not_laid_out() {
    let lay = |lists: &[(&str, u32, u64)]| {
        let mut layout = ChunkLayout::new(Form::default());
        (1..).zip(lists).try_for_each(|(n, &(suffix, df, bytes))| {
            layout.list((3, suffix.as_bytes()), df, bytes, 2 * n)
        })
    };
    assert_eq!(lay(&[("a", 1, 2), ("b", 1, 2)]), Ok(()));
    assert_eq!(lay(&[("b", 1, 2), ("a", 1, 2)]), Err("terms come in rising order"));
    assert_eq!(lay(&[("a", 1, 3)]), Err("a list came with other bytes than it has"));
    let mut layout = ChunkLayout::new(Form::default());
    layout.part(3, 2);
    let reason = "a list without a full block came in parts";
    assert_eq!(layout.list((3, b"a"), 127, 4, 4), Err(reason));
}
