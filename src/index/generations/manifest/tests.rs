use super::*;
use crate::index::format::{FileKind, run_file};
use crate::index::generations::manifest::summary::Summary;
use std::fs;

fn example() -> Manifest {
    let run = |name: &str, first_docid, documents, terms, postings| RunEntry {
        name: name.into(),
        first_docid,
        documents,
        terms,
        postings,
        tokens: 2 * postings,
        first_input: 0,
        inputs: 1,
        ..RunEntry::default()
    };
    let names = ["000000", "000001"].map(|run| FileKind::OF_RUN.map(|kind| run_file(run, kind)));
    let file = |name: &String| FileEntry { name: name.clone(), bytes: 64, crc32: 0xabc };
    Manifest {
        format: VERSION,
        generation: 7,
        settings: Settings { codec: "bp128".into(), block_size: 128, ..Settings::default() },
        command: "millrace build \"checksum\" é".into(),
        statistics: Statistics {
            documents: 5,
            terms: 4,
            postings: 9,
            tokens: 18,
            skipped: [("too long".to_string(), 1)].into(),
            ..Statistics::default()
        },
        runs: vec![run("000000", 0, 3, 4, 5), run("000001", 3, 2, 3, 4)],
        inputs: 1,
        files: names.iter().flatten().chain([&INPUTS.to_string()]).map(file).collect(),
        ..Manifest::default()
    }
}

fn decode(text: &str) -> Result<Manifest, IndexError> {
    Manifest::decode(Path::new("m"), text.as_bytes())
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    example().write(folder.path()).unwrap();
    assert_eq!(Manifest::read(folder.path()).unwrap(), example());
    let text = fs::read(folder.path().join(MANIFEST)).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(json["statistics"]["documents"], 5);
    assert_eq!(json["files"][0]["crc32"], "00000abc");
}

#[test]
fn checksum_covers_everything_before_it() {
    let text = example().encode();
    let at = text.rfind("\"checksum\"").unwrap();
    let crc = crc32fast::hash(&text.as_bytes()[..at]);
    assert_eq!(text[at..], format!("\"checksum\": \"{crc:08x}\"\n}}\n"));
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    let text = example().encode().into_bytes();
    for bit in 0..8 * text.len() {
        let mut bytes = text.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        Manifest::decode(Path::new("m"), &bytes).unwrap_err();
    }
    for length in 0..text.len() {
        Manifest::decode(Path::new("m"), &text[..length]).unwrap_err();
    }
    let longer = [&text[..], b"\n"].concat();
    Manifest::decode(Path::new("m"), &longer).unwrap_err();
}

#[test]
fn foreign_and_newer_files_have_their_messages() {
    let newer = decode("{\"format\": 6, \"generation\": 1, \"new\": []}").unwrap_err();
    assert!(newer.to_string().contains("version 6 is newer than 5"), "{newer}");
    let start = "{\n  \"format\": 4,\n  \"generation\": 1,\n  \"old\": [],\n  ";
    let older = format!("{start}{}", tail(crc32fast::hash(start.as_bytes())));
    let error = decode(&older).unwrap_err();
    assert!(matches!(error, IndexError::Older { found: 4, .. }), "{error}");
    let message = "m: format version 4 is older than 5, the only one that this program reads: \
                   build the index again, or rebuild it by its job file";
    assert_eq!(error.to_string(), message);
    assert!(matches!(decode(&older.replace("old", "odd")), Err(IndexError::Damaged { .. })));
    let foreign = decode("{\"name\": \"something else\", \"and\": \"so on\"}\n\n\n").unwrap_err();
    assert!(foreign.to_string().contains("expected \\\"checksum\\\": "), "{foreign}");
    let empty = decode("").unwrap_err();
    assert!(empty.to_string().starts_with("m: byte 0: expected the manifest"), "{empty}");
}

/// A text of another program of this version under a good checksum.
#[test]
fn unknown_members_are_named_with_their_place() {
    let text = example().encode().replace("\"workers\"", "\"walkers\"");
    let start = &text[..text.rfind("\"checksum\"").unwrap()];
    let text = format!("{start}{}", tail(crc32fast::hash(start.as_bytes())));
    let error = decode(&text).unwrap_err();
    let IndexError::Damaged { offset, ref found, .. } = error else { panic!("{error}") };
    assert!(found.contains("walkers"), "{found}");
    assert!(text[..offset as usize + 2].ends_with("\"walkers\":"), "{offset}");
}

#[test]
fn parts_that_do_not_agree_are_neither_written_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let order = |name: &str, global| Some(OrderEntry { name: name.into(), global });
    let changes: [&dyn Fn(&mut Manifest); 22] = [
        &|m: &mut Manifest| m.settings.codec = "rot13".into(),
        &|m: &mut Manifest| m.settings.block_size = 256,
        &|m: &mut Manifest| m.format = 0,
        &|m: &mut Manifest| m.runs[1].first_docid = 2,
        &|m: &mut Manifest| m.runs[1].documents = 3,
        &|m: &mut Manifest| m.runs[0].postings = 6,
        &|m: &mut Manifest| m.runs[1].name = "../../x".into(),
        &|m: &mut Manifest| m.runs[1].name = "000000".into(),
        &|m: &mut Manifest| m.statistics.documents = u64::MAX,
        &|m: &mut Manifest| m.statistics.terms = 3,
        &|m: &mut Manifest| m.statistics.terms = 8,
        &|m: &mut Manifest| m.runs[0].postings = u64::MAX,
        &|m: &mut Manifest| m.runs[0].tokens = 1,
        &|m: &mut Manifest| m.runs[0].inputs = 2,
        &|m: &mut Manifest| m.runs[1].first_input = u32::MAX,
        &|m: &mut Manifest| drop(m.files.pop()),
        &|m: &mut Manifest| m.files[0].name = "/etc/passwd".into(),
        &|m: &mut Manifest| m.runs[1].process = Some(u32::MAX),
        &|m: &mut Manifest| m.order = order("rot13", None),
        &|m: &mut Manifest| m.order = order("global", None),
        &|m: &mut Manifest| m.order = order("name", Some(GlobalEntry::default())),
        // Of one run alone.
        &|m: &mut Manifest| {
            let global = GlobalEntry { documents: 5, tokens: 18, ..GlobalEntry::default() };
            m.order = order("global", Some(global));
        },
    ];
    for change in changes {
        let mut manifest = example();
        change(&mut manifest);
        manifest.write(folder.path()).unwrap_err();
        decode(&manifest.encode()).unwrap_err();
    }
    let mut extra = example();
    extra.files.push(extra.files[0].clone());
    decode(&extra.encode()).unwrap_err();
}

#[test]
fn a_summary_is_what_the_manifest_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(MANIFEST);
    let whole = Manifest { inputs: 5000, ..example() };
    whole.write(folder.path()).unwrap();
    let text = fs::read(&path).unwrap();
    assert_eq!(text, whole.encode().into_bytes());
    assert_eq!(Manifest::read(folder.path()).unwrap(), whole);
    let summary = Summary::read(folder.path()).unwrap();
    let Summary { generation, created, settings, statistics, .. } = summary;
    let Summary { files, is_commit, .. } = summary;
    assert_eq!((generation, is_commit), (7, false));
    assert_eq!((created, settings), (whole.created, whole.settings));
    assert_eq!((statistics, files), (whole.statistics, whole.files));

    example().write(folder.path()).unwrap();
    let text = fs::read(&path).unwrap();
    for place in 0..text.len() {
        let mut bytes = text.clone();
        bytes[place] ^= 4;
        fs::write(&path, &bytes).unwrap();
        Summary::read(folder.path()).unwrap_err();
    }
    for bytes in [&text[..0], &text[..10], &text[..text.len() - 1], &[&text[..], b"\n"].concat()] {
        fs::write(&path, bytes).unwrap();
        Summary::read(folder.path()).unwrap_err();
    }
}
