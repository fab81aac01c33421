//! Tests of snapshots that follow one another: they are what a fresh one is, and open what is new.

use super::*;
use crate::index::documents::Location;
use crate::index::files::storage::Stop;
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::inputs::InputEntry;
use crate::index::inspect::browse::for_each_term;
use crate::index::list::Form;
use crate::index::merge::Merging;
use crate::index::run::Run;
use crate::index::testing::{Noise, build, collection, rank, term, write_run};
use crate::query::searcher::Searcher;
use crate::query::wanted::{Algorithm, Mode, Wanted};
use crate::score::bm25::Bm25;
use crate::score::named::Mu;
use std::collections::HashMap;

fn scorings() -> [Scoring; 4] {
    let scores = [Score::Bm25, Score::Ql(Mu::new(30.0).unwrap()), Score::Wang(Wang::default())];
    let of = |score| Scoring { score, ..Scoring::default() };
    let bm25 = Bm25::new(2.0, 0.3).unwrap();
    let [a, b, c] = scores.map(of);
    [a.clone(), b, c, Scoring { bm25, ..a }]
}

/// The next generation: without some documents, with one more run, with runs merged, with other
/// scores or places, or as it was.
fn go_on(index: &Path, noise: &mut Noise, step: u32) {
    let lock = IndexLock::acquire(index).unwrap();
    let from = current(index).unwrap().unwrap();
    let old = Generation::open_folder(&from).unwrap();
    let manifest = old.manifest();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&from, manifest).unwrap();
    let run = noise.below(manifest.runs.len() as u32) as usize;
    let documents = manifest.runs[run].documents;
    match step {
        0 | 1 => {
            let some = 1 + noise.below(if step == 0 { 3 } else { 40 });
            let docids: Vec<u32> = (0..some).map(|_| noise.below(documents)).collect();
            draft.delete(run, &docids).unwrap();
        }
        2 => {
            let first = old.documents().len();
            draft.add_inputs((0..3).map(|_| InputEntry::default())).unwrap();
            let more = collection(u64::from(first), 40, 60);
            let (folder, number) = (draft.folder().to_path_buf(), draft.next_run());
            let (mut entry, files) = write_run(&folder, number, first, &more);
            entry.first_input = 0;
            draft.add((entry, files)).unwrap();
            let ranks: Vec<f32> = (0..40).map(|_| noise.below(50) as f32).collect();
            draft.rank(manifest.runs.len(), &ranks).unwrap();
        }
        3 if manifest.runs.len() > 1 => {
            let first = noise.below(manifest.runs.len() as u32 - 1) as usize;
            let (memory_bytes, stop) = (8 << 20, Stop::default());
            let merging = Merging {
                memory_bytes,
                threads: 2,
                form: Form::BP128,
                columns: Vec::new(),
                record_parts: 0,
                stop,
            };
            draft.merge(first..first + 2, &merging).unwrap();
        }
        4 => {
            let ranks: Vec<f32> = (0..documents).map(|_| noise.below(50) as f32).collect();
            draft.rank(run, &ranks).unwrap();
        }
        5 => {
            let open = old.documents().runs().nth(run).unwrap();
            let place = |offset| Location { offset, bytes: noise.below(90), input: 0 };
            let now = (0..documents).zip((0..).step_by(100).map(place));
            draft.relocate(run, 3, &open.moved(now).unwrap()).unwrap();
        }
        _ => {}
    }
    let description = Description { settings: manifest.settings.clone(), ..Description::default() };
    draft.publish(&lock, description, 8 << 20).unwrap();
}

/// Live df and cf of each term.
type Counts = HashMap<Vec<u8>, (u64, u64)>;

fn counts(generation: &Generation, only_some: Option<&mut Noise>) -> Counts {
    let mut found = Counts::new();
    let mut noise = only_some;
    for_each_term::<IndexError>(generation, |lists| {
        if noise.as_mut().is_some_and(|noise| noise.below(3) == 0) {
            return Ok(());
        }
        let mut sums = (0, 0);
        for (number, entry) in &lists.lists {
            let run = &generation.runs()[*number];
            sums.0 += u64::from(run.live_df(entry)?);
            sums.1 += run.live_cf(entry)?;
        }
        found.insert(lists.term.clone(), sums);
        Ok(())
    })
    .unwrap();
    found
}

fn hits(snapshot: &Arc<Snapshot>) -> Vec<Vec<(u32, u32)>> {
    let mut searcher = Searcher::new();
    let mut all = Vec::new();
    for mode in [Mode::Or, Mode::And] {
        for terms in [&[0][..], &[1, 0], &[2, 0, 3], &[5, 1]] {
            let words: Vec<String> = terms.iter().copied().map(term).collect();
            let wanted = Wanted { k: 20, mode, algorithm: Algorithm::Auto, ..Wanted::default() };
            let (hits, _) = searcher.search(snapshot, &wanted, &words.join(" ")).unwrap();
            all.push(hits.iter().map(|hit| (hit.docid, hit.score.to_bits())).collect());
        }
    }
    all
}

fn assert_is(followed: &Arc<Snapshot>, fresh: &Arc<Snapshot>) {
    let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
    assert_eq!(followed.whole(), fresh.whole());
    assert_eq!(bits(followed.norms()), bits(fresh.norms()));
    assert_eq!(bits(followed.statics()), bits(fresh.statics()));
    assert_eq!(bits(followed.globals()), bits(fresh.globals()));
    let [now, expected] = [followed, fresh].map(|snapshot| snapshot.generation());
    assert_eq!(now.manifest(), expected.manifest());
    assert!(now.deleted().eq(expected.deleted()));
    for docid in 0..expected.documents().len() {
        let of = |generation: &Generation| {
            let documents = generation.documents();
            let name = documents.name(docid).unwrap().to_vec();
            (name, documents.length(docid), documents.location(docid), documents.hash(docid))
        };
        assert_eq!(of(now), of(expected));
    }
    assert_eq!(hits(followed), hits(fresh));
}

#[test]
fn what_follows_is_what_is_opened_afresh() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let mut noise = Noise::new(seed);
        build(index, &collection(seed, 300, 60), &[90, 200]);
        rank(index, &[2.0; 300]);
        let mut followed = scorings().map(|scoring| Snapshot::open(index, scoring).unwrap());
        for number in 0..14 {
            // Some lists are touched before and some only later.
            for snapshot in &followed {
                counts(snapshot.generation(), Some(&mut noise));
            }
            let step = if number < 7 { number } else { noise.below(7) };
            go_on(index, &mut noise, step);
            for snapshot in &mut followed {
                let fresh = Snapshot::open(index, snapshot.scoring().clone()).unwrap();
                let before = std::mem::replace(snapshot, snapshot.follow(index).unwrap());
                assert_is(snapshot, &fresh);
                let live = |generation| counts(generation, None);
                assert_eq!(live(snapshot.generation()), live(fresh.generation()), "step {step}");
                // What was there before stays what it was, whatever was counted meanwhile.
                let old = Generation::open_folder(before.generation().path());
                assert!(old.is_err() || live(before.generation()) == live(&old.unwrap()));
            }
        }
    }
}

/// After a rollback other documents are deleted of the same runs.
#[test]
fn generations_that_part_do_not_share_counts() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let mut noise = Noise::new(9);
    build(index, &collection(9, 3000, 60), &[2000]);
    let live = |snapshot: &Arc<Snapshot>| counts(snapshot.generation(), None);
    let mut open = vec![Snapshot::open(index, Scoring::default()).unwrap()];
    for parts in 0..3 {
        // One more than the last of each branch, and of the first.
        for step in [0, 1] {
            go_on(index, &mut noise, step);
            for known in [0, open.len() - 1] {
                let next = open[known].follow(index).unwrap();
                let fresh = Snapshot::open(index, Scoring::default()).unwrap();
                assert_is(&next, &fresh);
                assert_eq!(live(&next), live(&fresh), "{parts} {step} {known}");
                open.push(next);
            }
        }
        std::fs::write(index.join("CURRENT"), "gen-000001\n").unwrap();
        let first = open[open.len() - 1].follow(index).unwrap();
        assert_eq!(live(&first), live(&open[0]));
    }
    for snapshot in &open {
        let folder = snapshot.generation().path();
        let again = Generation::open_folder(folder).unwrap();
        assert_eq!(live(snapshot), counts(&again, None));
    }
}

fn is_shared(run: &Run, other: &Run) -> bool {
    std::ptr::eq(run.lexicon(), other.lexicon())
}

#[test]
fn runs_that_stay_are_the_same_open_objects() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let mut noise = Noise::new(7);
    build(index, &collection(7, 300, 60), &[90, 200]);
    rank(index, &[2.0; 300]);
    let first = Snapshot::open(index, Scoring::default()).unwrap();
    assert!(Arc::ptr_eq(&first.follow(index).unwrap(), &first));
    // What each step leaves of the norms, and how many runs are opened.
    for (step, are_norms, opened) in
        [(6, true, 0), (4, true, 0), (5, true, 0), (1, false, 0), (2, false, 1), (3, false, 1)]
    {
        let before = Snapshot::open(index, Scoring::default()).unwrap();
        go_on(index, &mut noise, step);
        let after = before.follow(index).unwrap();
        assert_eq!(Arc::ptr_eq(&before.norms, &after.norms), are_norms, "step {step}");
        let [old, new] = [&before, &after].map(|snapshot| snapshot.generation());
        let new_ones = new.runs().iter().zip(new.documents().runs()).filter(|(run, documents)| {
            let known = old.runs().iter().position(|old| is_shared(old, run));
            let same = known.is_some_and(|at| {
                let old = old.documents().runs().nth(at).unwrap();
                std::ptr::eq(old.lengths(), documents.lengths())
            });
            assert_eq!(known.is_some(), same);
            !same
        });
        assert_eq!(new_ones.count(), opened, "step {step}");
    }
    // Runs of the same names in an index that was built again are others.
    let before = Snapshot::open(index, Scoring::default()).unwrap();
    std::fs::remove_dir_all(index).unwrap();
    build(index, &collection(8, 300, 60), &[90, 200]);
    let after = before.follow(index).unwrap();
    assert_is(&after, &Snapshot::open(index, Scoring::default()).unwrap());
    let runs = before.generation().runs().iter();
    assert!(!runs.zip(after.generation().runs()).any(|(old, new)| is_shared(old, new)));
}
