//! Any manifest is either one that says the same when it is written again, or an error.

use crate::fuzzing::damage::{edit, manifest_tail};
use crate::fuzzing::sample;
use crate::fuzzing::take::Take;
use millrace::index::generations::manifest::held::WhichRuns;
use millrace::index::generations::manifest::{Manifest, find_file};
use std::path::Path;
use std::sync::LazyLock;

/// The text of a good manifest, of two processes, without its checksum.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    let mut manifest =
        sample::build(&folder, &sample::collection(30), &[10]).expect("it is written");
    manifest.runs[1].process = Some(1);
    let mut text = manifest.encode().into_bytes();
    text.truncate(text.len() - manifest_tail(b"").len());
    text
});

/// What is asked of an input.
pub fn manifest(data: &[u8]) {
    let path = Path::new("manifest.json");
    let mut take = Take(data);
    let flags = take.u8();
    let text = if flags & 1 == 0 {
        take.rest().to_vec()
    } else {
        let mut text = GOOD.clone();
        while !take.is_empty() {
            edit(&mut text, &mut take);
        }
        text
    };
    let mut sealed = text.clone();
    sealed.extend_from_slice(manifest_tail(&text).as_bytes());
    for bytes in [&text, &sealed] {
        match Manifest::decode(path, bytes) {
            Ok(manifest) => {
                let again = Manifest::decode(path, manifest.encode().as_bytes());
                assert_eq!(again.ok().as_ref(), Some(&manifest));
                for run in &manifest.runs {
                    let name = format!("runs/{}.lexicon", run.name);
                    assert!(find_file(&manifest.files, path, &name).is_ok());
                }
                let of = |process| WhichRuns::Of(process).of(path, manifest.clone()).0.runs.len();
                assert_eq!((0..manifest.processes()).map(of).sum::<usize>(), manifest.runs.len());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
