//! Any file that is imported as CIFF is either refused with a byte of it, or an index that is
//! whole.

use crate::fuzzing::damage::edit;
use crate::fuzzing::sample;
use crate::fuzzing::take::Take;
use millrace::index::ciff::{Import, export, import};
use millrace::index::files::storage::Stop;
use millrace::index::generations::generation::Generation;
use millrace::index::generations::manifest::Manifest;
use millrace::index::inputs::InputEntry;
use millrace::index::inspect::check::check;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A good file, what its manifest was, and a folder.
static GOOD: LazyLock<(Vec<u8>, Manifest, PathBuf)> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    let manifest = sample::build(&folder, &sample::collection(30), &[10]).expect("it is written");
    let (mut bytes, generation) = (Vec::new(), Generation::open(&folder));
    let generation = generation.expect("it was written");
    export(&generation, "fuzz", &mut bytes, &Stop::default()).expect("memory takes it");
    (bytes, manifest, crate::fuzzing::folder())
});

/// What is asked of an input.
pub fn ciff(data: &[u8]) {
    let (good, manifest, folder) = &*GOOD;
    let mut take = Take(data);
    let bytes = if take.u8() & 1 == 0 {
        take.rest().to_vec()
    } else {
        let mut bytes = good.clone();
        while !take.is_empty() {
            edit(&mut bytes, &mut take);
        }
        bytes
    };
    let (file, index) = (folder.join("x.ciff"), folder.join("index"));
    fs::write(&file, &bytes).expect("the folder can be written");
    let input = InputEntry { path: "x.ciff".into(), ..InputEntry::default() };
    let (command, settings) = ("fuzz".to_string(), manifest.settings.clone());
    let what = Import { command, settings, input, keep: 0, memory_bytes: 1 << 20 };
    let opened = fs::File::open(&file).expect("it was written");
    match import(&file, opened, &index, what, &Stop::default()) {
        Ok(_) => assert!(check(&index).is_ok()),
        Err(error) => assert!(error.to_string().contains("byte ") || bytes.is_empty(), "{error}"),
    }
}
