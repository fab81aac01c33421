use super::*;
use crate::index::generations::generation::Generation;
use crate::index::testing::{build, collection, with_deletions};
use crate::query::snapshot::Scoring;

/// Of documents that were deleted since postings were counted, a query counts them.
#[test]
fn damage_is_found_where_deleted_postings_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    with_deletions(folder.path(), &collection(3, 200, 20), &[], &[7], &[]);
    let plan = || {
        let snapshot = Snapshot::open(folder.path(), Scoring::default()).unwrap();
        Planner::default().plan(&snapshot, Wanted::default(), "0 abc1 q3").map(|plan| {
            assert!(plan.terms().iter().all(|term| term.df > 0));
        })
    };
    plan().unwrap();
    let path = folder.path().join("runs/000000.postings");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(plan(), Err(IndexError::Damaged { path: named, .. }) if named == path));
}

#[test]
fn terms_are_told_apart_by_a_look_at_few_others() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(3, 20, 20), &[0]);
    let generation = Generation::open(folder.path()).unwrap();
    let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
    let text = |terms: usize| -> String {
        let word = |i: usize| format!("w{}x ", if i < terms { i } else { 7 * i % terms });
        (0..terms + 100).map(word).collect()
    };
    let mut planner = Planner::default();
    for terms in [1, 3, FEW_TERMS, FEW_TERMS + 1, FEW_TERMS + 2, 5000, MOST_TERMS] {
        LOOKED_AT.set(0);
        let text = text(terms);
        let plan = planner.plan(&snapshot, Wanted::default(), &text).unwrap();
        assert_eq!(plan.terms().len(), terms);
        assert_eq!(plan.terms().iter().map(|term| term.times).sum::<f64>(), terms as f64 + 100.0);
        let first: String = plan.term_strings().map(|term| format!("{term} ")).collect();
        assert!(text.starts_with(&first), "by first appearance");
        let most = (FEW_TERMS * (FEW_TERMS + 100)) as u64;
        assert!(LOOKED_AT.get() <= most, "{terms} terms: {}", LOOKED_AT.get());
        assert_eq!(check(&snapshot, Wanted::default(), &text, false), Ok(()));
    }
    let text = text(MOST_TERMS + 1);
    for text in [&text, "applypipeline:off w1x^-1"] {
        let why = check(&snapshot, Wanted::default(), text, false).unwrap_err();
        let was_read = check(&snapshot, Wanted::default(), text, true);
        assert_eq!(was_read.is_err(), text.len() > MOST_TERMS, "reading refuses weights");
        let refused = planner.plan(&snapshot, Wanted::default(), text).unwrap_err();
        assert_eq!(refused.to_string(), format!("a query {why}"));
    }
}
