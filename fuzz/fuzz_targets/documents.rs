//! Is any documents' table either read inside of its bounds, or an error?
#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace::index::documents::{Documents, DocumentsWriter, Location};
use millrace::index::format::{ENDS, LENGTHS, LOCATIONS, NAMES};
use millrace_fuzz::damage::{edit, edit_header, seal_header};
use millrace_fuzz::take::Take;
use std::path::PathBuf;
use std::sync::LazyLock;

const FILES: [&str; 4] = [LENGTHS, NAMES, ENDS, LOCATIONS];

static FOLDER: LazyLock<PathBuf> = LazyLock::new(millrace_fuzz::folder);

fn write(take: &mut Take<'_>) {
    // Writers refuse to replace a file.
    for name in FILES {
        let _ = std::fs::remove_file(FOLDER.join(name));
    }
    let mut writer = DocumentsWriter::create(&FOLDER).expect("the folder can be written");
    for i in 0..take.u8() % 40 {
        let name = format!("{i:0width$}", width = usize::from(take.u8() % 20));
        let location = Location { offset: u64::from(i), bytes: 7, input: 0 };
        writer.push(name.as_bytes(), u32::from(take.u8()), location).expect("it is written");
    }
    writer.finish().expect("it is written");
}

fuzz_target!(|data: &[u8]| {
    let mut take = Take(data);
    write(&mut take);
    while !take.is_empty() {
        let which = take.u8();
        let path = FOLDER.join(FILES[usize::from(which % 4)]);
        let mut bytes = std::fs::read(&path).expect("it was written");
        match which >> 2 & 3 {
            0 => edit_header(&mut bytes, &mut take),
            _ => edit(&mut bytes, &mut take),
        }
        if which & 0x80 == 0 {
            seal_header(&mut bytes);
        }
        std::fs::write(&path, bytes).expect("the folder can be written");
    }

    let documents = match Documents::open_unverified(&FOLDER) {
        Ok(documents) => documents,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let good = documents.check_ends().is_ok();
    let count = documents.len();
    assert_eq!(
        (documents.lengths().len(), documents.locations().len()),
        (count as usize, count as usize)
    );
    for docid in 0..count {
        assert!(documents.length(docid).is_some() && documents.location(docid).is_some());
        let name = documents.name(docid);
        assert!(!good || name.is_some());
        if let Some(name) = name {
            assert!(documents.find_name(name).is_some_and(|first| first <= docid));
        }
    }
    for docid in [count, u32::MAX] {
        let found = (documents.length(docid), documents.name(docid), documents.location(docid));
        assert_eq!(found, (None, None, None));
    }
});
