use super::*;
use crate::index::columns::ColumnsSource;
use crate::index::files::pages::seal;
use crate::index::files::storage::Stop;
use crate::index::format::before_sums;
use proptest::prelude::*;
use std::fs;

fn run(documents: usize) -> RunEntry {
    let name = "000000".to_string();
    RunEntry { name, documents: documents as u32, ..RunEntry::default() }
}

fn path(folder: &Path) -> std::path::PathBuf {
    run(0).path(folder, FileKind::Texts)
}

/// Writes this many parts of each document in pieces of this many documents, by two threads, the
/// later pieces first.
fn write(folder: &Path, texts: &[String], parts: usize, piece: usize) {
    fs::create_dir_all(folder.join("runs")).unwrap();
    _ = fs::remove_file(path(folder));
    let file = TextsFile::create(folder, 0, parts).unwrap();
    let mut pieces = Vec::new();
    for (number, part) in texts.chunks(piece * parts).enumerate() {
        let mut of_piece = PieceTexts::of(parts).unwrap();
        part.iter().for_each(|text| of_piece.push(text.as_bytes()));
        pieces.push(((number * piece) as u32, of_piece));
    }
    std::thread::scope(|scope| {
        let half = pieces.split_off(pieces.len() / 2);
        for pieces in [pieces, half] {
            let file = &file;
            scope.spawn(move || {
                pieces.into_iter().rev().for_each(|(first, texts)| file.put(first, texts).unwrap());
            });
        }
    });
    file.finish((texts.len() / parts) as u32).unwrap();
}

fn read(folder: &Path, documents: usize, parts: usize) -> Result<Vec<String>, IndexError> {
    let opened = RunTexts::open(folder, &run(documents), parts)?;
    let mut last = LastTexts::default();
    let part = |place: usize| {
        let part = opened.part(0, (place / parts) as u32, place % parts, &mut last)?;
        Ok(String::from_utf8_lossy(part).into_owned())
    };
    (0..documents * parts).map(part).collect()
}

fn texts(most: usize) -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(vec!["water ", "mill ", "river ", "of ", "\u{e9}\n"]);
    let text =
        prop::collection::vec(prop_oneof![word.prop_map(String::from), "[a-z]{1,9} "], 0..60);
    prop::collection::vec(text.prop_map(|words| words.concat()), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The same texts, and the same bytes however they come.
    #[test]
    fn law_what_is_written_is_read(
        mut texts in texts(120),
        parts in 1..4usize,
        pieces in (1..9usize, 1..200usize),
    ) {
        let folder = tempfile::tempdir().unwrap();
        texts.truncate(texts.len() / parts * parts);
        write(folder.path(), &texts, parts, pieces.0);
        let documents = texts.len() / parts;
        prop_assert_eq!(&read(folder.path(), documents, parts).unwrap(), &texts);
        prop_assert!(read(folder.path(), documents, parts + 1).is_err());
        let bytes = fs::read(path(folder.path())).unwrap();
        write(folder.path(), &texts, parts, pieces.1);
        prop_assert!(bytes == fs::read(path(folder.path())).unwrap());
    }

    #[test]
    fn oracle_carried_texts(
        mut texts in texts(60),
        parts in 1..4usize,
        order: u64,
        gone in 0..4usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        texts.truncate(texts.len() / parts * parts);
        write(folder.path(), &texts, parts, 7);
        let documents = texts.len() / parts;
        let mut docids: Vec<u32> = (0..documents as u32).collect();
        docids.retain(|docid| *docid as usize % 4 != gone);
        docids.sort_by_key(|&docid| (u64::from(docid) + 1).wrapping_mul(order | 1));
        let entry = run(documents);
        let of_run = || Box::new(docids.iter().copied()) as Box<dyn Iterator<Item = u32>>;
        let source =
            ColumnsSource { generation: folder.path(), run: &entry, docids: Box::new(of_run) };
        let to = tempfile::tempdir().unwrap();
        fs::create_dir(to.path().join("runs")).unwrap();
        let count = (docids.len() as u32, parts);
        carry_texts(&[source], (to.path(), 0), count, &Stop::default()).unwrap();
        let of = |&docid: &u32| texts[docid as usize * parts..][..parts].to_vec();
        let expected: Vec<String> = docids.iter().flat_map(of).collect();
        prop_assert_eq!(&read(to.path(), docids.len(), parts).unwrap(), &expected);
        let carried = fs::read(path(to.path())).unwrap();
        write(to.path(), &expected, parts, 100);
        prop_assert!(carried == fs::read(path(to.path())).unwrap());
    }
}

fn noise(count: usize) -> Vec<String> {
    let mut random = crate::index::testing::Noise::new(7);
    let words = ["water", "mill", "wheel", "river", "stone", "flour", "grain", "weir"];
    let mut text = |words_of: u32| -> String {
        let word = |_| match random.below(5) {
            0 => format!("w{} ", random.below(900)),
            _ => format!("{} ", words[random.below(8) as usize]),
        };
        (0..words_of).map(word).collect()
    };
    (0..count).map(|at| text(1 + (at as u32 * 7) % 60)).collect()
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let texts = noise(24);
    write(folder.path(), &texts, 2, 5);
    let path = path(folder.path());
    let good = fs::read(&path).unwrap();
    assert_eq!(read(folder.path(), 12, 2).unwrap(), texts);
    let is_same = || read(folder.path(), 12, 2).is_ok_and(|found| found == texts);
    for at in 0..before_sums(good.len() as u64) as usize {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let found = read(folder.path(), 12, 2);
        assert!(found.is_err() || found.is_ok_and(|found| found == texts), "byte {at}");
        // A faulty program may have written others, which hashes tell.
        seal(&path, &mut bytes);
        fs::write(&path, &bytes).unwrap();
        _ = read(folder.path(), 12, 2);
    }
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        read(folder.path(), 12, 2).unwrap_err();
    }
    fs::write(&path, &good).unwrap();
    assert!(is_same());
    let opened = RunTexts::open(folder.path(), &run(12), 2).unwrap();
    assert!(opened.part(0, 12, 0, &mut LastTexts::default()).is_err());
}

#[test]
fn values_of_fields_are_json() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { texts: true, stored: vec!["a".into()], ..Settings::default() };
    let check = |value: &str| {
        write(folder.path(), &["mill", "", "mill", value].map(String::from), 2, 1);
        let opened = RunTexts::open(folder.path(), &run(2), 2).unwrap();
        assert_eq!(opened.json(0, 0, 1, &mut LastTexts::default()).unwrap(), None);
        check_texts(folder.path(), &run(2), &settings, None)
    };
    check("[1, \"\u{e9}\"]").unwrap();
    for value in ["[1", "1 2", "\"\n\"", "x"] {
        let error = check(value).unwrap_err().to_string();
        assert!(error.contains("000000.texts") && error.contains("of document 1"), "{error}");
    }
}

/// At most 1.1 of what the same blocks take at level 3, without a dictionary.
#[test]
fn texts_take_no_more_than_their_blocks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let texts = noise(3000);
    write(folder.path(), &texts, 1, 50);
    let whole = fs::metadata(path(folder.path())).unwrap().len();
    let (mut alone, mut block) = (0, Vec::new());
    for text in &texts {
        block.extend_from_slice(text.as_bytes());
        if block.len() >= write::BLOCK_BYTES {
            alone += zstd::encode_all(&block[..], 3).unwrap().len();
            block.clear();
        }
    }
    assert!((whole as f64) < 1.1 * alone as f64, "{whole} of {alone}");
}
