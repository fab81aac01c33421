use super::*;
use crate::index::documents::RunDocuments;
use crate::index::files::pages::seal;
use crate::index::format::{FileHeader, FileKind, before_sums, run_file};
use crate::index::lexicon::{LexiconStream, TermEntry};
use crate::index::run::Run;
use crate::index::testing::{build, collection};

/// A tiny index of two runs with a packed block, and its generation.
fn tiny() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut documents = collection(4, 140, 9);
    for terms in &mut documents[..135] {
        terms.insert("everywhere".into(), 1);
    }
    build(folder.path(), &documents, &[132]);
    let generation = current(folder.path()).unwrap().unwrap();
    (folder, generation)
}

fn names(generation: &Path) -> Vec<String> {
    let files = read_manifest(generation).unwrap().files;
    files.into_iter().map(|file| file.name).chain([MANIFEST.to_string()]).collect()
}

/// An index of three documents, of which every bit can be tried, and its generation.
fn tiniest() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(1, 3, 5), &[]);
    let generation = current(folder.path()).unwrap().unwrap();
    (folder, generation)
}

/// Bits to flip in a file: all, but of the manifest every fifth, since its own tests flip all.
fn bits(name: &str, bytes: &[u8]) -> Box<dyn Iterator<Item = usize>> {
    let all = 8 * bytes.len();
    if name == MANIFEST { Box::new((0..all).step_by(5)) } else { Box::new(0..all) }
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn texts(problems: &[IndexError]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_index_has_no_problems() {
    let (folder, generation) = tiny();
    let report = check(folder.path()).unwrap();
    let bytes = |name: &String| fs::metadata(file_path(&generation, name)).unwrap().len();
    assert_eq!(report.bytes, names(&generation).iter().map(bytes).sum::<u64>());
    assert_eq!((report.files, report.documents), (18, 140));
    assert_eq!(report.generation, generation);
    assert_eq!(report.debris, [] as [PathBuf; 0]);
}

#[test]
fn indexes_of_every_shape_have_no_problems() {
    for (seed, documents, cuts) in
        [(1, 0, &[][..]), (2, 0, &[0, 0]), (3, 1, &[]), (4, 1, &[0, 1]), (5, 700, &[128, 256])]
    {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(seed, documents, 500), cuts);
        check(folder.path()).unwrap();
    }
}

#[test]
fn every_flipped_bit_is_found_and_its_file_named() {
    let (folder, generation) = tiniest();
    for name in names(&generation) {
        let path = file_path(&generation, &name);
        let good = fs::read(&path).unwrap();
        for bit in bits(&name, &good) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            replace(&path, &bytes);
            let problems = texts(&check(folder.path()).unwrap_err());
            let named = problems.iter().any(|text| text.starts_with(&*path.to_string_lossy()));
            assert!(named, "{name}, bit {bit}: {problems:?}");
        }
        replace(&path, &good);
    }
    let path = folder.path().join("CURRENT");
    let good = fs::read(&path).unwrap();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        replace(&path, &bytes);
        check(folder.path()).unwrap_err();
    }
}

/// What threads find together, each of which takes as little as possible at a time, against what
/// one finds.
#[test]
fn what_is_found_does_not_depend_on_the_threads() {
    let (folder, generation) = tiny();
    let by = |threads| {
        let found = check_by(folder.path(), Share { threads, least: 1 }, &Stop::default());
        found.map_err(|problems| texts(&problems))
    };
    assert!(by(3).is_ok() && by(3) == by(1));
    let entry = &read_manifest(&generation).unwrap().runs[0];
    let run = Run::open_unverified(&generation, entry).unwrap();
    let documents = RunDocuments::open_unverified(&generation, entry).unwrap();
    let is_whole = |threads| {
        let manifest = read_manifest(&generation).unwrap();
        let share = Share { threads, least: 1 };
        let watched = &Stop::default();
        let check = Check {
            generation: &generation,
            manifest: &manifest,
            share,
            watched,
            problems: vec![],
        };
        check.lists_are_whole(entry, &run, &[documents.lengths()])
    };
    assert!(is_whole(2) && is_whole(3) && !is_whole(1), "one thread need not read twice");
    let kinds = [FileKind::Lexicon, FileKind::Postings, FileKind::Lengths]
        .map(|kind| run_file("000000", kind));
    for (name, step) in kinds.iter().zip([331, 157, 23]) {
        let good = fs::read(file_path(&generation, name)).unwrap();
        let header = 8 * 60..8 * 64;
        for bit in bits(name, &good).step_by(step).filter(|bit| !header.contains(bit)) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            sealed(&generation, name, &bytes);
            assert!(by(3) == by(1), "{name}, bit {bit}: {:?} and {:?}", by(3), by(1));
        }
        sealed(&generation, name, &good);
    }
}

#[test]
fn every_cut_is_found() {
    let (folder, generation) = tiny();
    for name in names(&generation) {
        let path = file_path(&generation, &name);
        let good = fs::read(&path).unwrap();
        let step = 1 + good.len() / 40;
        for length in (0..good.len()).step_by(step).chain([good.len() - 1, good.len() + 1]) {
            let mut bytes = good.clone();
            bytes.resize(length, 0);
            replace(&path, &bytes);
            check(folder.path()).unwrap_err();
        }
        fs::remove_file(&path).unwrap();
        let problems = check(folder.path()).unwrap_err();
        assert!(problems.iter().any(IndexError::is_not_found), "{problems:?}");
        fs::write(&path, good).unwrap();
    }
    check(folder.path()).unwrap();
}

#[test]
fn it_goes_on_behind_a_problem() {
    let (folder, generation) = tiny();
    let damaged = ["runs/000000.names", "runs/000000.lexicon", "runs/000001.postings"];
    for name in damaged {
        let path = file_path(&generation, name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[80] ^= 1;
        replace(&path, &bytes);
    }
    let problems = texts(&check(folder.path()).unwrap_err());
    for name in damaged {
        assert!(problems.iter().any(|text| text.contains(name)), "{name}: {problems:?}");
    }
}

#[test]
fn files_that_nobody_knows_are_found() {
    let (folder, generation) = tiny();
    for name in ["000000.more", "inputs.old"] {
        fs::write(generation.join(name), "").unwrap();
        let problems = texts(&check(folder.path()).unwrap_err());
        assert!(problems[0].contains(name) && problems.len() == 1, "{problems:?}");
        fs::remove_file(generation.join(name)).unwrap();
    }
    let left = ["000002.lexicon", "000003.lexicon.blocks", "000000-000007.moves"];
    for name in left.into_iter().chain(["000000.more"]) {
        fs::write(folder.path().join("runs").join(name), "").unwrap();
    }
    fs::create_dir(folder.path().join("gen-000002")).unwrap();
    fs::write(folder.path().join("CURRENT.tmp"), "").unwrap();
    assert_eq!(check(folder.path()).unwrap().debris.len(), 2 + left.len());
}

#[test]
fn without_an_index_there_is_one_problem() {
    let folder = tempfile::tempdir().unwrap();
    let problems = check(folder.path()).unwrap_err();
    assert!(matches!(problems[..], [IndexError::NoIndex { .. }]), "{problems:?}");
}

/// Changes a file, as a faulty program might, under checksums that fit: those of the header and of
/// blocks, that in the manifest and that of the manifest.
fn sealed(generation: &Path, name: &str, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    seal(&file_path(generation, name), &mut bytes);
    replace(&file_path(generation, name), &bytes);
    let mut manifest = read_manifest(generation).unwrap();
    let file = manifest.files.iter_mut().find(|file| file.name == name).unwrap();
    file.bytes = bytes.len() as u64;
    file.crc32 = crc32fast::hash(&bytes);
    fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
}

fn lists_of(path: &Path) -> Vec<TermEntry> {
    let mut stream = LexiconStream::open(path, 0).unwrap();
    let mut lists = Vec::new();
    while stream.advance().unwrap() {
        lists.push(stream.term().list);
    }
    lists
}

#[test]
fn flipped_bits_are_found_without_the_help_of_checksums() {
    let (folder, generation) = tiny();
    let lexicon = "runs/000000.lexicon";
    let lists = lists_of(&file_path(&generation, lexicon));
    let mut renamed = 0;
    for name in ["runs/000000.postings", lexicon] {
        let good = fs::read(file_path(&generation, name)).unwrap();
        // The checksum of the header would be made good again. Every fifth bit will do.
        let header = 8 * 60..8 * 64;
        for bit in bits(name, &good).step_by(5).filter(|bit| !header.contains(bit)) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            sealed(&generation, name, &bytes);
            if check(folder.path()).is_ok() {
                // A term that turned into another one between its neighbours looks like any other.
                assert_eq!(name, lexicon, "bit {bit}");
                assert!(lists_of(&file_path(&generation, name)) == lists, "bit {bit}");
                renamed += 1;
            }
        }
        sealed(&generation, name, &good);
    }
    assert!((1..200).contains(&renamed), "{renamed}");
    check(folder.path()).unwrap();
}

/// Found by fuzzing: such an index was whole, and no query could be asked.
#[test]
fn an_analysis_that_is_not_known_is_found() {
    let (folder, generation) = tiny();
    let good = read_manifest(&generation).unwrap();
    for (stemmer, stop_word) in [("klingon", "the"), ("english", "no_token")] {
        let mut manifest = good.clone();
        manifest.settings.stemmer = stemmer.to_string();
        manifest.settings.stop_words.words = vec![stop_word.to_string()];
        fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
        let problems = texts(&check(folder.path()).unwrap_err());
        assert!(problems.iter().any(|text| text.contains(MANIFEST)), "{problems:?}");
    }
    fs::write(generation.join(MANIFEST), good.encode()).unwrap();
    check(folder.path()).unwrap();
}

/// Found by fuzzing: a run without full blocks may be read as one of any codec, but is not opened.
#[test]
fn a_run_of_another_codec_is_found() {
    let (folder, generation) = tiny();
    let name = "runs/000000.postings";
    let mut bytes = fs::read(file_path(&generation, name)).unwrap();
    bytes[40] = bytes[40].wrapping_add(1);
    sealed(&generation, name, &bytes);
    let problems = texts(&check(folder.path()).unwrap_err());
    assert!(problems.iter().any(|text| text.contains(name)), "{problems:?}");
}

#[test]
fn documents_that_lie_are_found() {
    let (folder, generation) = tiny();
    // Three ramps for each of two blocks of documents, and one behind them.
    let path = file_path(&generation, &run_file("000000", FileKind::Locations));
    let ramps = before_sums(fs::metadata(path).unwrap().len()) - 7 * 16;
    let changes = [
        (FileKind::Names, BODY, 0xff, "a name in UTF-8"),
        (FileKind::Locations, ramps + 2 * 16, 3, "an input from 0 to below 3"),
        (FileKind::Lengths, 24, 0xff, "found"),
        (FileKind::Lengths, BODY + 20, 0xff, "tokens"),
        (FileKind::Ends, BODY, 0xff, "end"),
        (FileKind::Hashes, 16, 1, "found 1"),
    ];
    for (kind, at, value, expected) in changes {
        let name = &run_file("000000", kind);
        let good = fs::read(file_path(&generation, name)).unwrap();
        let mut bytes = good.clone();
        bytes[at as usize] = value;
        sealed(&generation, name, &bytes);
        let problems = texts(&check(folder.path()).unwrap_err());
        let found = problems.iter().any(|text| text.contains(expected) && text.contains(name));
        assert!(found, "{name}: {problems:?}");
        sealed(&generation, name, &good);
    }
    let path = file_path(&generation, &run_file("000000", FileKind::Names));
    FileHeader::parse(&path, FileKind::Names, &fs::read(&path).unwrap()).unwrap();
    check(folder.path()).unwrap();
}

#[test]
fn numbers_of_the_manifest_are_compared() {
    let (folder, generation) = tiny();
    let good = read_manifest(&generation).unwrap();
    let changes: [fn(&mut Manifest); 6] = [
        |m| {
            (m.statistics.tokens, m.runs[1].tokens) =
                (m.statistics.tokens + 1, m.runs[1].tokens + 1)
        },
        |m| m.statistics.terms += 1,
        |m| m.statistics.empty_documents += 1,
        |m| m.runs[0].terms -= 1,
        |m| m.runs[1].inputs += 1,
        |m| (m.runs[0].documents, m.runs[1].first_docid, m.runs[1].documents) = (131, 131, 9),
    ];
    for change in changes {
        let mut manifest = good.clone();
        change(&mut manifest);
        fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
        check(folder.path()).unwrap_err();
    }
    good.write(&generation).unwrap();
    check(folder.path()).unwrap();
}

#[test]
fn terms_know_their_collections() {
    for (collection, suffix, wrong) in [
        (0, &b""[..], "0 bytes"),
        (0, b"abcd", "belongs to"),
        (11, b"\xff", "not UTF-8"),
        (11, b"bcd", "belongs to 65"),
        (12, &[b'1'; 255], "256 bytes"),
    ] {
        let found = run::wrong_term(0, collection, suffix).unwrap();
        assert!(found.contains(wrong), "{found}");
    }
    for (collection, suffix) in [(0, "é"), (11, "bc"), (65, "d"), (12, "1")] {
        assert_eq!(run::wrong_term(0, collection, suffix.as_bytes()), None);
    }
}
