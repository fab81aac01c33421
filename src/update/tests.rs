//! A writer whose merges go on while others and itself commit.

use super::{Update, Writer};
use crate::build::{BuildOptions, build};
use crate::index::generations::folder::{IndexLock, generations};
use crate::index::generations::generation::Generation;
use crate::index::generations::merged::merge_index;
use crate::index::inspect::check::check;
use crate::index::testing::Noise;
use crate::input::memory::OwnedDocument;
use crate::query::open_index::Index;
use std::fs;
use std::path::Path;

/// Names and texts in the order of docids.
type Model = Vec<(String, String)>;

fn options(index: &Path, model: &Model) -> BuildOptions {
    let owned = |(name, text)| OwnedDocument::new(name, text);
    let mut build = BuildOptions::of_documents(index, model.clone().into_iter().map(owned));
    (build.workers, build.memory) = (1, 64 << 20);
    build
}

fn document(noise: &mut Noise, names: u32) -> (String, String) {
    let name = format!("name-{}", noise.below(names));
    (name, (0..1 + noise.below(6)).map(|_| format!("word{} ", noise.below(40))).collect())
}

/// An index of many documents with a name and few without, and a writer that takes merges when they
/// are this many commits old.
fn begin(index: &Path, lag: usize) -> (Model, Writer) {
    let text = |n| (format!("old-{n}"), format!("word{n} water mill"));
    let model: Model = (0..60).map(text).collect();
    build(options(index, &model)).unwrap();
    let mut writer = Writer::new(index);
    (writer.workers, writer.memory) = (1, 64 << 20);
    writer.held.get_mut().unwrap().lag = Some(lag);
    (model, writer)
}

fn note(model: &mut Model, writer: &Writer, (name, text): (String, String)) {
    model.retain(|(other, _)| *other != name);
    writer.update(name.clone(), text.clone());
    model.push((name, text));
}

fn assert_as_built(index: &Path, model: &Model, when: &str) {
    let report = check(index).unwrap_or_else(|problems| panic!("{when}: {problems:?}"));
    drop(report);
    let expected = tempfile::tempdir().unwrap();
    build(options(expected.path(), model)).unwrap();
    let [found, expected] = [index, expected.path()].map(|path| Index::open(path).unwrap());
    for query in ["word1 word2 mill", "word17", "water word3 word4 word39"] {
        let ask = |index: &Index| {
            let hits = index.search(query, 30).unwrap().into_iter();
            hits.map(|hit| (hit.name, hit.score.to_bits())).collect::<Vec<_>>()
        };
        assert_eq!(ask(&found), ask(&expected), "{when}: {query}");
    }
}

#[test]
fn oracle_commits_beside_merges() {
    for lag in [0, 1, 3, 9] {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let (mut model, writer) = begin(index, lag);
        let mut noise = Noise::new(lag as u64 + 3);
        let (mut most, mut merges, mut gone) = (0, 0, 0);
        for step in 0..80 {
            // Few names, so that runs lose all of their documents while they are merged.
            for _ in 0..1 + noise.below(3) {
                note(&mut model, &writer, document(&mut noise, 25));
            }
            if noise.below(4) == 0 {
                let at = noise.below(model.len() as u32) as usize;
                writer.delete(model.remove(at).0);
            }
            let before = most;
            let told = writer.commit(false).unwrap();
            most = told.runs;
            merges += u32::from(most < before);
            assert!(most <= 16, "{most} runs at step {step}, lag {lag}");
            for remark in told.remarks {
                assert!(remark.contains("another job has changed its runs"), "{remark}");
                gone += 1;
            }
            if step % 20 == 13 {
                let other = document(&mut noise, 25);
                model.retain(|(name, _)| *name != other.0);
                model.push(other.clone());
                let update = Update::new(options(index, &vec![other]));
                update.update().unwrap();
            }
            if step == 40 {
                merge_index(index, 64 << 20, "test", 1, Default::default(), &Default::default())
                    .unwrap();
            }
            if step % 8 == 7 {
                assert_as_built(index, &model, &format!("step {step}, lag {lag}"));
            }
        }
        assert!(merges > 5, "{merges} merges, lag {lag}");
        println!("lag {lag}: {merges} merges, of {gone} the runs were changed");
        drop(writer);
        IndexLock::acquire(index).unwrap().remove_debris().unwrap();
        let left = generations(index).unwrap().len();
        assert_eq!(left, 2, "the build and the live one, lag {lag}");
        assert_as_built(index, &model, "the writer is closed");
    }
}

/// Merges that fail are told of, and nothing is lost; once their reason is gone others succeed.
#[test]
fn a_merge_beside_commits_may_fail() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let (mut model, writer) = begin(index, 0);
    let mut noise = Noise::new(7);
    let mut commit = |model: &mut Model| {
        note(model, &writer, document(&mut noise, 1000));
        writer.commit(false).unwrap()
    };
    commit(&mut model);
    // The last checksum, of a block that was verified.
    let places = index.join("runs/000000.locations");
    let good = fs::read(&places).unwrap();
    let mut bad = good.clone();
    let sum = bad.iter().rposition(|byte| *byte != 0).unwrap();
    bad[sum] ^= 1;
    fs::write(&places, bad).unwrap();
    // The first run is worn then.
    (0..20).for_each(|n| writer.delete(format!("old-{n}")));
    model.drain(..20);
    assert!(commit(&mut model).remarks.is_empty());
    for _ in 0..2 {
        let told = commit(&mut model);
        assert!(told.remarks[0].contains("a merge beside commits failed: "), "{told:?}");
        assert!(told.remarks[0].contains("000000.locations"), "{told:?}");
    }
    fs::write(&places, good).unwrap();
    // The merge that is under way may have read the file, or may read it now.
    commit(&mut model);
    assert!(commit(&mut model).remarks.is_empty());
    let live = Generation::open(index).unwrap();
    assert_ne!(live.manifest().runs[0].name, "000000", "it is merged");
    assert_as_built(index, &model, "in the end");
}
