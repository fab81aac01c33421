//! Any file of columns is either read inside of its bounds, or an error; what the check accepts has
//! a value wherever a condition finds one. This is a part of the target for documents.

use crate::fuzzing::damage::{edit, edit_header};
use crate::fuzzing::take::Take;
use millrace::index::columns::{
    Column, ColumnParts, ColumnsWriter, KeySet, PieceColumns, RunColumns,
};
use millrace::index::documents::Location;
use millrace::index::files::pages::seal;
use millrace::index::format::{FileKind, RUNS, run_name};
use millrace::index::generations::manifest::RunEntry;
use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    std::fs::create_dir_all(folder.join(RUNS)).expect("the folder can be written");
    folder
});

/// What is asked of an input.
pub(super) fn columns(data: &[u8]) {
    let mut take = Take(data);
    let columns = ["a:int", "b:word[]", "c:float[]", "d:word"];
    let columns: Vec<Column> = columns.map(|column| column.parse().expect("it is one")).into();
    let documents = u32::from(take.u8() % 80);
    let mut piece = PieceColumns::new(columns.len());
    for _ in 0..documents {
        for (number, column) in columns.iter().enumerate() {
            let most = if column.several { 4 } else { 2 };
            for _ in 0..take.u8() % most {
                let value = u32::from(take.u8()).pow(u32::from(take.u8() % 4)).to_string();
                piece.push(number, column, &Location::default(), &value);
            }
        }
        piece.end();
    }
    let run = RunEntry { name: run_name(0), documents, ..RunEntry::default() };
    let path = run.path(&FOLDER, FileKind::Columns);
    // Writers refuse to replace a file.
    _ = std::fs::remove_file(&path);
    let mut parts = ColumnParts::default();
    if documents > 0 {
        parts.put(0, piece);
    }
    let written = ColumnsWriter::write_all(&FOLDER, 0, documents, &columns, parts);
    written.expect("the folder can be written");
    while !take.is_empty() {
        let mut bytes = std::fs::read(&path).expect("it was written");
        let which = take.u8();
        match which % 4 {
            0 => edit_header(&mut bytes, &mut take),
            _ => edit(&mut bytes, &mut take),
        }
        if which & 0x80 == 0 {
            seal(&path, &mut bytes);
        }
        std::fs::write(&path, bytes).expect("the folder can be written");
    }
    let opened = match RunColumns::open(&FOLDER, &run, &columns) {
        Ok(opened) => opened,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let is_good = opened.check().is_ok();
    for (number, column) in columns.iter().enumerate() {
        let values: Result<Vec<_>, _> =
            (0..documents).map(|docid| opened.values(number, docid)).collect();
        let any = opened.exists(number);
        let words = KeySet::Words(vec![[Some(("1".to_string(), false)), None]]);
        _ = opened.select(number, &words);
        if is_good {
            let values = values.expect("it was checked");
            let any = any.expect("it was checked");
            for (docid, values) in values.iter().enumerate() {
                let has = any[docid / 64] >> (docid % 64) & 1 == 1;
                assert_eq!(has, !values.is_empty(), "{column}");
                assert!(column.several || values.len() < 2);
            }
        }
    }
}
