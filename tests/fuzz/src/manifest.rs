//! Any manifest is either one that says the same when it is written again, or an error.

use crate::fuzzing::damage::{edit, manifest_tail};
use crate::fuzzing::sample;
use crate::fuzzing::take::Take;
use millrace::index::generations::manifest::sharded::ShardedManifest;
use millrace::index::generations::manifest::summary::Summary;
use millrace::index::generations::manifest::{Manifest, find_file};
use std::path::Path;
use std::sync::LazyLock;

/// The text of a good manifest, without its checksum.
static GOOD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    let manifest = sample::build(&folder, &sample::collection(30), &[10]).expect("it is written");
    let mut text = manifest.encode().into_bytes();
    text.truncate(text.len() - manifest_tail(b"").len());
    text
});

/// The same of a generation of two shards.
static SHARDED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = crate::fuzzing::folder();
    let whole = sample::build(&folder, &sample::collection(30), &[10]).expect("it is written");
    let generation = folder.join(format!("gen-{:06}", whole.generation));
    let shard = Summary::read(&generation).expect("it was written").shard();
    let mut manifest = ShardedManifest {
        format: whole.format,
        generation: whole.generation,
        settings: whole.settings,
        shards: vec![shard.clone(), shard],
        ..ShardedManifest::default()
    };
    manifest.line_up(&folder).expect("there are few documents");
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
        let mut text = if flags & 2 == 0 { GOOD.clone() } else { SHARDED.clone() };
        while !take.is_empty() {
            edit(&mut text, &mut take);
        }
        text
    };
    let mut sealed = text.clone();
    sealed.extend_from_slice(manifest_tail(&text).as_bytes());
    for bytes in [&text, &sealed] {
        match ShardedManifest::decode(path, bytes) {
            Ok(Some(manifest)) => {
                let again = ShardedManifest::decode(path, manifest.encode().as_bytes());
                assert_eq!(again.ok().flatten().as_ref(), Some(&manifest));
                let docids = manifest.shards.iter().map(|shard| shard.docids).sum::<u32>();
                let last = docids.checked_sub(1);
                assert!(last.is_none_or(|docid| manifest.shard_of(docid).is_some()));
                assert!(Manifest::decode(path, bytes).is_err());
            }
            Ok(None) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        match Manifest::decode(path, bytes) {
            Ok(manifest) => {
                let again = Manifest::decode(path, manifest.encode().as_bytes());
                assert_eq!(again.ok().as_ref(), Some(&manifest));
                for run in &manifest.runs {
                    let name = format!("runs/{}.lexicon", run.name);
                    assert!(find_file(&manifest.files, path, &name).is_ok());
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
