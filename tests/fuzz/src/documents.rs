//! Any table of documents is either read inside of its bounds, or an error, and so are the lengths
//! of their fields.

use crate::fuzzing::damage::{edit, edit_header};
use crate::fuzzing::take::Take;
use millrace::index::documents::fields::FieldLengths;
use millrace::index::documents::{DocumentsWriter, Location, RunDocuments};
use millrace::index::files::pages::seal;
use millrace::index::format::{FileKind, RUNS, run_file, run_name};
use millrace::index::generations::manifest::RunEntry;
use std::path::PathBuf;
use std::sync::LazyLock;

const FIELDS: usize = 2;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    std::fs::create_dir_all(folder.join(RUNS)).expect("the folder can be written");
    folder
});

/// The path of a file of the documents of run 0.
fn path(kind: FileKind) -> PathBuf {
    FOLDER.join(run_file(&run_name(0), kind))
}

fn write(take: &mut Take<'_>) -> RunEntry {
    // Writers refuse to replace a file.
    for kind in FileKind::OF_DOCUMENTS.into_iter().chain([FileKind::Fields]) {
        let _ = std::fs::remove_file(path(kind));
    }
    let writer = DocumentsWriter::create(&FOLDER, 0, 0);
    let writer = writer.and_then(|writer| writer.with_fields(&FOLDER, 0, FIELDS));
    let mut writer = writer.expect("the folder can be written");
    let documents = take.u8() % 40;
    for i in 0..documents {
        let name = format!("{i:0width$}", width = usize::from(take.u8() % 20));
        let location = Location { offset: u64::from(i), bytes: 7, input: 0 };
        let long = u32::from(take.u8() % 2) << 16;
        (0..FIELDS).for_each(|_| writer.push_field(long + u32::from(i)));
        writer.push(&name, u32::from(take.u8()), location, 7).expect("it is written");
    }
    let documents = documents.into();
    let mut run = RunEntry { name: run_name(0), documents, ..RunEntry::default() };
    let written = writer.finish().expect("it is written");
    written.complete(&FOLDER, &mut run, &mut Vec::new()).expect("they fit");
    run
}

/// What is asked of an input.
pub fn documents(data: &[u8]) {
    super::columns::columns(data);
    let mut take = Take(data);
    let run = write(&mut take);
    while !take.is_empty() {
        let which = take.u8();
        let kind = FileKind::OF_DOCUMENTS.get(usize::from(which % 7));
        let path = path(kind.copied().unwrap_or(FileKind::Fields));
        let mut bytes = std::fs::read(&path).expect("it was written");
        match which >> 3 & 3 {
            0 => edit_header(&mut bytes, &mut take),
            _ => edit(&mut bytes, &mut take),
        }
        if which & 0x80 == 0 {
            seal(&path, &mut bytes);
        }
        std::fs::write(&path, bytes).expect("the folder can be written");
    }

    read_fields(&run);
    let documents = match RunDocuments::open_unverified(&FOLDER, &run) {
        Ok(documents) => documents,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let good = documents.check_ends().is_ok();
    let _ = documents.check_lookup();
    let count = documents.len();
    assert_eq!(documents.lengths().len(), count as usize);
    for docid in 0..count {
        let _ = documents.location(docid);
        let name = documents.name(docid);
        if let Ok(of_name) = name.and_then(|name| documents.of_name(&name)) {
            assert!(!good || of_name.len() <= count as usize);
        }
    }
    for docid in [count, u32::MAX] {
        documents.name(docid).unwrap_err();
        assert!(documents.location(docid).is_none());
    }
}

fn read_fields(run: &RunEntry) {
    let Ok(fields) = FieldLengths::open(&FOLDER, run) else { return };
    let fields = fields.expect("the run has fields");
    let all: Vec<_> = (1..=FIELDS as u8).map(|field| fields.of(field)).collect();
    for docid in 0..run.documents {
        let lengths = fields.of_document(docid);
        for (at, of_field) in all.iter().enumerate() {
            if let (Ok(lengths), Ok(of_field)) = (&lengths, of_field) {
                assert_eq!(lengths[at], of_field[docid as usize]);
            }
        }
    }
    fields.of_document(run.documents).unwrap_err();
}
