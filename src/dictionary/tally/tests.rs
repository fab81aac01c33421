use super::*;
use crate::dictionary::device::members::for_each_member;
use crate::order::Sketch;
use crate::score::bounds::code_below;
use crate::text::tokenizer::Tokenizer;
use crate::text::trie_collection::{implied_prefix, trie_collection};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Lists = BTreeMap<String, Vec<(u32, u32)>>;

fn read(groups: &[TermGroup], owners: &Owners) -> Lists {
    let mut lists = Lists::new();
    for group in groups {
        let mut list_at = 0;
        for t in &group.terms {
            let collection = t.suffix.collection;
            assert_eq!(owners.of(collection), group.owner);
            let (prefix, len) = implied_prefix(collection);
            let mut term = prefix[..len].to_vec();
            term.extend_from_slice(t.suffix.of(&group.suffixes));
            assert_eq!(crate::dictionary::strings::hash::hash(&term), t.hash);
            let bytes = &group.lists[list_at..][..t.list_bytes as usize];
            list_at += bytes.len();
            let mut list = vec![(t.first, t.first_tf)];
            let mut at = 0;
            while at < bytes.len() {
                let (gap, tf) = folded::get(bytes, &mut at).unwrap();
                list.push((list.last().unwrap().0 + gap + 1, tf));
            }
            assert_eq!((list.len() as u32, list.last().unwrap().0), (t.postings, t.last));
            let term = String::from_utf8(term).unwrap();
            assert_eq!(trie_collection(&term), collection);
            assert!(lists.insert(term, list).is_none());
        }
        assert_eq!(list_at, group.lists.len());
    }
    lists
}

/// Lists that leave their line, gaps and frequencies that are written in another way, and all
/// of it again in the next piece.
#[test]
fn long_lists_and_rare_numbers_stay_in_order() {
    let owners = Arc::new(Owners::in_turn(1));
    let mut tally = Tally::new(Analysis::default(), owners.clone(), 1 << 20);
    for common in [1000u32, 3, 700] {
        let mut expected = Lists::new();
        let mut add = |document: u32, term: &str, tf: u32| {
            expected.entry(term.to_string()).or_default().push((document, tf));
        };
        for document in 0..common {
            // Frequencies about those that take a byte more, each behind a list of another
            // length.
            let tf = [1, 2, 129, 130, 131][document as usize % 5];
            tally.document(format!("river {}", "mill ".repeat(tf as usize)).as_bytes());
            add(document, "river", 1);
            add(document, "mill", tf);
        }
        let mut document = common;
        for gap in [62, 63, 64, 8190, 8191, 8192, 20_000] {
            (0..gap).for_each(|_| _ = tally.document(b""));
            document += gap;
            tally.document(b"mill wind wind");
            add(document, "mill", 1);
            add(document, "wind", 2);
            document += 1;
        }
        let groups = tally.finish();
        assert_eq!(groups[0].counts.documents, document);
        assert_eq!(read(&groups, &owners), expected);
    }
}

/// A stop word in a stretch that was seen before has its place as when it was new.
#[test]
fn positions_do_not_depend_on_what_came_before() {
    let owners = Arc::new(Owners::in_turn(1));
    let mut tally = Tally::new(Analysis::default(), owners, 1 << 20).with_positions(true);
    let mut positions = || {
        tally.document("river “the mill wind «не» river".as_bytes());
        tally.finish()[0].positions.clone()
    };
    let new = positions();
    assert_eq!(positions(), new);
}

proptest! {
    #[test]
    fn oracle_counts_like_a_map(
        pieces in prop::collection::vec(prop::collection::vec("[a-cTH0-9 \u{e9}\u{c9}\u{2013}\u{5317}\u{4eac}\u{bd}\u{fb01}\u{ff21}]{0,80}", 0..20), 1..4),
        workers in 1usize..5, memo_bytes in 0usize..300_000, tokenizer in prop::sample::select(&Tokenizer::ALL[..]), fold in any::<bool>(),
    ) {
        let owners = Arc::new(Owners::in_turn(workers));
        let analysis = Analysis { tokenizer, fold, ..Analysis::default() };
        let mut tally = Tally::new(analysis.clone(), owners.clone(), memo_bytes);
        for texts in pieces {
            let mut expected = Lists::new();
            let mut lengths = Vec::new();
            let mut forms = Sketch::default();
            for (document, text) in (0u32..).zip(&texts) {
                let mut length = 0;
                analysis.for_each_token(text.as_bytes(), |token| {
                    if analysis.analyze_token(token).is_some() {
                        for_each_member(token, |hash| forms.add(hash));
                    }
                });
                analysis.terms(text.as_bytes(), |term| {
                    length += 1;
                    let list = expected.entry(term.to_string()).or_default();
                    match list.last_mut() {
                        Some((d, tf)) if *d == document => *tf += 1,
                        _ => list.push((document, 1)),
                    }
                });
                prop_assert_eq!(tally.document(text.as_bytes()), length);
                lengths.push(code_below(length));
            }
            let groups = tally.finish();
            prop_assert_eq!(groups.len(), workers);
            prop_assert!(groups.iter().all(|group| *group.lengths == *lengths));
            prop_assert_eq!(groups[0].counts.documents as usize, texts.len());
            prop_assert_eq!(&groups[0].counts.forms, &forms);
            let postings: usize = expected.values().map(Vec::len).sum();
            prop_assert_eq!(groups[0].counts.postings, postings as u64);
            prop_assert_eq!(read(&groups, &owners), expected);
        }
    }
}
