use super::*;
use crate::index::files::pages::seal;
use crate::index::files::storage::FileEntry;
use crate::index::format::before_sums;
use crate::index::format::list_start;
use crate::index::list::Form;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;

type Terms = BTreeMap<(u16, Vec<u8>), (u32, u64)>;

fn write(folder: &Path, terms: &Terms, positions: bool) -> FileEntry {
    let terms: Vec<_> = terms.iter().map(|((c, suffix), list)| (*c, &suffix[..], *list)).collect();
    write_terms(folder, "lexicon", &terms, positions)
}

/// The bytes of the positions of a list, in a test.
fn position_bytes(positions: bool, bytes: u64) -> u64 {
    if positions { bytes % 1000 } else { 0 }
}

/// Writes terms, each with the postings and bytes of its list, one by one.
pub(crate) fn write_terms(
    folder: &Path,
    name: &str,
    terms: &[(u16, &[u8], (u32, u64))],
    positions: bool,
) -> FileEntry {
    let form = Form::BP128.with_positions(positions);
    let mut writer = LexiconWriter::create(folder, name, form).unwrap();
    let mut coder = TermCoder::default();
    let (mut end, mut positions_end) = (0, 0);
    for &(collection, suffix, (df, bytes)) in terms {
        let begins = [BlockStart { terms: 0, lists: 0, positions: 0 }];
        let blocks = if coder.begins_block(collection) { &begins[..] } else { &[] };
        let mut coded = Vec::new();
        let own = position_bytes(positions, bytes);
        let coded_positions = positions.then_some(own);
        coder.code(collection, suffix, df, bytes, coded_positions, &mut coded).unwrap();
        let term = CodedTerms { collection, terms: 1, postings: df.into(), bytes: &coded, blocks };
        let start = list_start(end, df, 128).unwrap() + bytes;
        writer.coded_terms(&term, end, start, positions_end).unwrap();
        end = start;
        positions_end += own;
    }
    assert_eq!(writer.terms(), terms.len() as u64);
    writer.finish().unwrap()
}

fn expected(terms: &Terms, positions: bool) -> Vec<(u16, Vec<u8>, TermEntry)> {
    let (mut offset, mut at) = (0, 0);
    let with_offset = terms.iter().map(|((collection, suffix), (df, bytes))| {
        offset = list_start(offset, *df, 128).unwrap();
        let position_bytes = position_bytes(positions, *bytes);
        let (df, bytes) = (*df, *bytes);
        let entry = TermEntry { df, offset, bytes, positions: at, position_bytes };
        offset += bytes;
        at += position_bytes;
        (*collection, suffix.clone(), entry)
    });
    with_offset.collect()
}

fn stream_all(path: &Path) -> Result<Vec<(u16, Vec<u8>, TermEntry)>, IndexError> {
    let mut stream = LexiconStream::open(path, 0)?;
    let mut all = Vec::new();
    while stream.advance()? {
        let term = stream.term();
        all.push((term.collection, term.suffix.to_vec(), term.list));
    }
    Ok(all)
}

fn terms() -> impl Strategy<Value = Terms> {
    let suffix = prop_oneof![
        prop::collection::vec(prop::sample::select(vec![b'a', b'b', 0, 255]), 0..6),
        prop::collection::vec(any::<u8>(), 250..=255),
    ];
    let collection = prop_oneof![Just(0u16), Just(17_612), 11..14u16];
    let list = (1..=u32::MAX, prop_oneof![0..300u64, 0..1u64 << 40]);
    prop::collection::btree_map((collection, suffix), list, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn law_every_term_is_found_and_streamed(terms in terms(), positions: bool) {
        let folder = tempfile::tempdir().unwrap();
        let entry = write(folder.path(), &terms, positions);
        let lexicon = Lexicon::open(folder.path(), &entry).unwrap();
        let expected = expected(&terms, positions);
        for (collection, suffix, list) in &expected {
            prop_assert_eq!(lexicon.find(*collection, suffix).unwrap(), Some(*list));
            for (other, longer) in [(collection ^ 1, 0), (*collection, 1), (u16::MAX, 0)] {
                let mut suffix = suffix.clone();
                suffix.resize(suffix.len() + longer, b'a');
                let known = terms.contains_key(&(other, suffix.clone()));
                prop_assert_eq!(lexicon.find(other, &suffix).unwrap().is_some(), known);
            }
        }
        prop_assert_eq!(lexicon.find(1, b"").unwrap(), None);
        prop_assert_eq!(stream_all(lexicon.path()).unwrap(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Where a collection is cut, and anywhere else.
    #[test]
    fn law_the_ranges_of_a_collection_have_its_terms(
        suffixes in prop::collection::btree_set("[a-cж]{0,7}", 1..300),
        others in any::<bool>(),
        pieces in 1..9u64,
        more in prop::collection::btree_set("[a-d]{1,3}", 0..4),
    ) {
        let mut terms: Terms = suffixes
            .iter()
            .map(|suffix| ((12, suffix.as_bytes().to_vec()), (7, 20 + suffix.len() as u64)))
            .collect();
        if others {
            terms.extend([11, 13].map(|other| ((other, b"own".to_vec()), (1, 3))));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(write(folder.path(), &terms, false).name);
        let cuts = LexiconStream::cuts(&path, 12, pieces, |terms, lists| terms + lists).unwrap();
        prop_assert!(cuts.len() < pieces as usize);
        prop_assert!(suffixes.len() < 160 || cuts.len() + 2 > pieces as usize, "{:?}", cuts);
        let more = more.into_iter().map(String::into_bytes).collect();
        for cuts in [cuts, more] {
            let starts = std::iter::once(Vec::new()).chain(cuts.iter().cloned());
            let ends = cuts.iter().cloned().map(Some).chain([None]);
            let (mut found, mut seen) = (Vec::new(), 0);
            for (from, to) in starts.zip(ends) {
                let range = TermRange { collections: 12..13, from, to };
                let mut stream = LexiconStream::open_range(&path, 0, &range).unwrap();
                while stream.advance().unwrap() {
                    let term = stream.term();
                    found.push((term.collection, term.suffix.to_vec(), term.list));
                }
                prop_assert_eq!(stream.seen().0 * 7, stream.seen().1);
                seen += stream.seen().0;
            }
            let expected = expected(&terms, false).into_iter().filter(|(own, ..)| *own == 12);
            prop_assert_eq!(&found, &expected.collect::<Vec<_>>());
            prop_assert_eq!(seen, found.len() as u64);
        }
    }
}

#[test]
fn blocks_of_every_length() {
    for count in [0, 1, 2, 15, 16, 17, 31, 32, 33, 100] {
        let folder = tempfile::tempdir().unwrap();
        let mut terms = Terms::new();
        for i in 0..count {
            terms.insert((0, format!("x{i:03}").into_bytes()), (i + 1, 3));
            terms.insert((500, format!("y{i:03}").into_bytes()), (1, u64::from(i)));
        }
        let positions = count % 2 == 0;
        let entry = write(folder.path(), &terms, positions);
        let lexicon = Lexicon::open(folder.path(), &entry).unwrap();
        assert_eq!(lexicon.header().blocks, 2 * u64::from(count.div_ceil(16)));
        for (collection, suffix, list) in expected(&terms, positions) {
            assert_eq!(lexicon.find(collection, &suffix).unwrap(), Some(list));
        }
        assert_eq!(stream_all(lexicon.path()).unwrap(), expected(&terms, positions));
    }
}

#[test]
fn what_breaks_the_rules_is_not_written() {
    let mut coder = TermCoder::default();
    let mut coded = Vec::new();
    coder.code(5, b"b", 1, 1, None, &mut coded).unwrap();
    let wrong: [(u16, &[u8], u32); 6] = [
        (5, b"b", 1),
        (5, b"a", 1),
        (4, b"c", 1),
        (17_613, b"c", 1),
        (6, b"c", 0),
        (6, &[1; 256], 1),
    ];
    for (collection, suffix, df) in wrong {
        coder.code(collection, suffix, df, 1, None, &mut coded).unwrap_err();
    }
    coder.code(6, b"", 1, 1, None, &mut coded).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LexiconWriter::create(folder.path(), "l", Form::BP128).unwrap();
    let terms = |collection| CodedTerms {
        collection,
        terms: 1,
        postings: 1,
        bytes: &[],
        blocks: &[BlockStart { terms: 0, lists: 0, positions: 0 }],
    };
    writer.coded_terms(&terms(5), 0, 1, 0).unwrap();
    let error = writer.coded_terms(&terms(4), 1, 2, 0).unwrap_err();
    assert!(matches!(error, IndexError::Refused { .. }), "{error}");
}

/// A small lexicon with positions, of two blocks in a collection and one in another; or without
/// them and with many more collections, if its directory is not to be sparse.
fn small(folder: &Path, sparse: bool) -> (FileEntry, Terms) {
    let mut terms = Terms::new();
    for i in 0..20u8 {
        terms.insert((11, vec![b'a', i, i]), (u32::from(i) + 1, 200));
    }
    terms.insert((40, b"zz".to_vec()), (300, 70_000));
    let more = if sparse { 0 } else { MOST_SPARSE as u16 };
    terms.extend((0..more).map(|i| ((1000 + i, b"x".to_vec()), (1, 2))));
    (write(folder, &terms, sparse), terms)
}

/// Where the directory of [`small`] begins.
fn directory(bytes: &[u8], sparse: bool) -> usize {
    let end = before_sums(bytes.len() as u64) as usize;
    end - if sparse { 3 * SPARSE_BYTES as usize } else { DIRECTORY_BYTES as usize }
}

/// Damage is tried bit by bit; in a directory that has all collections, and so most entries twice,
/// around the entries that differ.
fn damaged_bits(bytes: &[u8], sparse: bool) -> Vec<usize> {
    let of_byte = |byte: usize| 8 * byte..8 * byte + 8;
    if sparse {
        return (0..bytes.len()).flat_map(of_byte).collect();
    }
    let directory = directory(bytes, sparse);
    let near = |entry: usize| directory + 4 * entry..directory + 4 * (entry + 2);
    let end = before_sums(bytes.len() as u64) as usize - 8..bytes.len();
    near(0).chain(near(11)).chain(near(40)).chain(end).flat_map(of_byte).collect()
}

#[test]
fn damage_is_an_error_and_no_panic() {
    [true, false].into_iter().for_each(damage_is_found);
}

fn damage_is_found(sparse: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (entry, terms) = small(folder.path(), sparse);
    let path = folder.path().join("lexicon");
    let good = fs::read(&path).unwrap();
    let found = expected(&terms, sparse);
    for bit in damaged_bits(&good, sparse) {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // A new file each time: the old one stays as it is under its map.
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        Lexicon::open(folder.path(), &entry).unwrap_err();
        if let Ok(lexicon) = Lexicon::open_unverified(&path) {
            for (collection, suffix, _) in &found {
                let _ = lexicon.find(*collection, suffix);
            }
        }
        // Of all damage only that of the terms' own bytes, of a df or of a length that another
        // makes up for could go unseen without the checksum.
        if let Ok(all) = stream_all(&path) {
            assert_eq!(all.len(), found.len());
        }
    }
    for length in (0..good.len())
        .step_by(if sparse { 13 } else { 613 })
        .chain([good.len() - 1, good.len() + 8])
    {
        let mut bytes = good.clone();
        bytes.resize(length, 0);
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        Lexicon::open_unverified(&path).unwrap_err();
        stream_all(&path).unwrap_err();
    }
}

/// Tables that do not fit the blocks, under a header that does.
#[test]
fn tables_that_lie_are_found_by_the_stream() {
    [true, false].into_iter().for_each(lies_are_found);
}

fn lies_are_found(sparse: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (_, terms) = small(folder.path(), sparse);
    let path = folder.path().join("lexicon");
    let good = fs::read(&path).unwrap();
    assert_eq!(stream_all(&path).unwrap(), expected(&terms, sparse));
    let entry_bytes = if sparse { 24 } else { 16 };
    let directory = directory(&good, sparse);
    let blocks = u64::from_le_bytes(*good[24..].first_chunk().unwrap());
    let index = directory - blocks as usize * entry_bytes;
    // Of a sparse one the first number is a collection.
    let first = directory + if sparse { 4 } else { 0 };
    // A block that the directory moves to another collection is for `check` to find: it knows the
    // collection of every term.
    let last = before_sums(good.len() as u64) as usize - 4;
    let all = [index, index + 8, index + 16, index + 24, index + 40, first, last];
    for at in all {
        for change in [1, 3, 255] {
            let mut bytes = good.clone();
            bytes[at] ^= change;
            seal(&path, &mut bytes);
            fs::write(&path, &bytes).unwrap();
            let error = stream_all(&path).unwrap_err();
            assert!(matches!(error, IndexError::Damaged { .. }), "{at}: {error}");
        }
    }
    // Found by fuzzing: bytes before the first block, with tables and a header that agree.
    let mut bytes = good.clone();
    let places = (0..blocks as usize).map(|entry| index + entry * entry_bytes);
    for place in places.chain([32]) {
        let more = u64::from_le_bytes(*bytes[place..].first_chunk().unwrap()) + 8;
        bytes[place..place + 8].copy_from_slice(&more.to_le_bytes());
    }
    bytes.splice(HEADER_BYTES..HEADER_BYTES, [0; 8]);
    seal(&path, &mut bytes);
    fs::write(&path, &bytes).unwrap();
    let error = stream_all(&path).unwrap_err().to_string();
    assert!(error.contains("expected 0, found 8"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn law_noise_never_panics(noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (_, terms) = small(folder.path(), true);
        let path = folder.path().join("lexicon");
        let mut bytes = fs::read(&path).unwrap();
        let behind_header = before_sums(bytes.len() as u64) as usize - HEADER_BYTES;
        for (at, value) in noise {
            // Half of it goes where it hurts most.
            let places = if value % 2 == 0 { behind_header } else { behind_header.min(300) };
            bytes[HEADER_BYTES + at.index(places)] = value;
        }
        seal(&path, &mut bytes);
        fs::write(&path, &bytes).unwrap();
        if let Ok(lexicon) = Lexicon::open_unverified(&path) {
            for (collection, suffix) in terms.keys() {
                let _ = lexicon.find(*collection, suffix);
            }
        }
        let _ = stream_all(&path);
    }
}
