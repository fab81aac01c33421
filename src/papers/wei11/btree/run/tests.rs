use super::super::node::{DEGREE, MOST_TERMS, NO_TERM};
use super::super::strings::words;
use super::super::{NONE, forest::Forest};
use super::*;
use crate::papers::wei11::stream::StreamWriter;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// (collection, document, suffix) in document order.
type Token = (u16, u32, Vec<u8>);
type Lists = BTreeMap<(u16, Vec<u8>), Vec<(u32, u32)>>;

fn group(tokens: &[(u16, u32, &[u8])]) -> TokenGroup {
    let mut sorted = tokens.to_vec();
    sorted.sort_by_key(|&(collection, ..)| collection);
    let mut writer = StreamWriter::new(0, 0);
    for (collection, document, suffix) in sorted {
        writer.token(collection, document, suffix);
    }
    writer.finish(Arc::default(), Arc::default())
}

fn lists(run: BTreeRun) -> Lists {
    let mut bytes = vec![7];
    let mut lists = Lists::new();
    let mut before: Option<(u16, Vec<u8>)> = None;
    for mut share in run.shares(50) {
        while share.advance(&mut bytes).unwrap() {
            let (collection, suffix) = share.term();
            let term = (collection, suffix.to_vec());
            assert!(before.is_none_or(|before| before < term));
            lists.insert(term.clone(), folded::list(&bytes));
            before = Some(term);
        }
    }
    lists
}

#[test]
fn a_closed_run_is_cut_between_collections() {
    // This many trees, each with two terms of one posting, and this many postings a share.
    for (trees, postings, expected) in [
        (10, 5, vec![3, 3, 3, 1]),
        (10, 20, vec![10]),
        (10, 1, vec![1; 10]),
        (1, 1, vec![1]),
        (0, 1, vec![0]),
    ] {
        let mut run = BTreeRun::default();
        for tree in 0..trees {
            run.append_tokens([(7 * tree, 0, &b"a"[..]), (7 * tree, 0, b"b")].into_iter());
        }
        let mut found = Vec::new();
        for mut share in run.shares(postings) {
            let mut terms = Vec::new();
            while share.advance(&mut Vec::new()).unwrap() {
                terms.push(share.term().0);
            }
            assert_eq!(terms.len() % 2, 0);
            terms.dedup();
            found.push(terms.len());
        }
        assert_eq!(found, expected, "{trees} trees, {postings} postings a share");
    }
}

/// Checks Table II and the definition of a B-tree; returns terms and depth below a node.
fn check(forest: &Forest, node: u32, is_root: bool) -> (u32, u32) {
    let n = forest.node(node);
    let count = n.count as usize;
    assert!(count <= MOST_TERMS && (is_root || count >= DEGREE - 1));
    assert!(n.caches[count..].iter().all(|&cache| cache == NO_TERM));
    assert!(n.caches[..count].is_sorted() && n.caches[..count].iter().all(|&c| c != NO_TERM));
    assert!(n.postings[count..].iter().chain(&n.strings[count..]).all(|&none| none == NONE));
    let children = if n.leaf == 1 { 0 } else { count + 1 };
    assert!(n.leaf == 1 || n.leaf == 0);
    assert!(n.children[children..].iter().all(|&child| child == NONE));
    let below: Vec<_> = n.children[..children].iter().map(|&c| check(forest, c, false)).collect();
    assert!(below.iter().all(|&(_, depth)| depth == below[0].1));
    let terms = n.count + below.iter().map(|&(terms, _)| terms).sum::<u32>();
    (terms, below.first().map_or(1, |&(_, depth)| depth + 1))
}

fn check_all(forest: &Forest) {
    let roots = (0..17_613).map(|c| forest.root(c)).filter(|&root| root != NONE);
    let terms: u32 = roots.map(|root| check(forest, root, true).0).sum();
    assert_eq!(terms, forest.terms());
}

/// Appends pieces by blocks and compares with a map.
fn compare(pieces: &[Vec<Token>], pieces_of_block: usize) {
    let groups: Vec<TokenGroup> = pieces
        .iter()
        .map(|piece| group(&piece.iter().map(|(c, d, s)| (*c, *d, &s[..])).collect::<Vec<_>>()))
        .collect();
    let mut expected = Lists::new();
    let mut first = 0;
    let mut block = Vec::new();
    for (piece, group) in pieces.iter().zip(&groups) {
        block.push((group, first));
        for (collection, document, suffix) in piece {
            let list = expected.entry((*collection, suffix.clone())).or_default();
            match list.last_mut() {
                Some((d, tf)) if *d == first + document => *tf += 1,
                _ => list.push((first + document, 1)),
            }
        }
        first += piece.last().map_or(0, |&(_, document, _)| document + 1);
    }
    let mut firsts = block.iter().map(|&(_, first)| first);
    let mut unregrouped = BTreeRun::default();
    for piece in pieces {
        let first = firsts.next().expect("every piece has a group");
        let tokens = piece.iter().map(|(c, document, s)| (*c, first + document, &s[..]));
        unregrouped.append_tokens(tokens);
    }
    let mut run = BTreeRun::default();
    block.chunks(pieces_of_block).for_each(|block| run.append(block));
    assert_eq!(lists(unregrouped), expected);
    check_all(run.forest());
    assert_eq!(run.terms(), expected.len());
    assert_eq!(run.postings_len(), expected.values().map(|list| list.len() as u64).sum::<u64>());
    assert_eq!(lists(run), expected);
}

/// Suffixes that share prefixes: short ones, ones that agree in the cached bytes, long ones, and
/// bytes of other scripts.
fn suffix() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => b'a'..b'd', 1 => 0x80u8..0xc0, 1 => 0xc2u8..0xf5];
    prop_oneof![
        3 => prop::collection::vec(byte.clone(), 0..7),
        2 => prop::collection::vec(byte.clone(), 0..9).prop_map(|b| [b"same", &b[..]].concat()),
        1 => (240usize..252, prop::collection::vec(byte, 0..4)).prop_map(|(n, b)| {
            [&vec![b'x'; n][..], &b[..]].concat()
        }),
    ]
}

fn pieces() -> impl Strategy<Value = Vec<Vec<Token>>> {
    let collection = prop_oneof![6 => Just(36u16), 2 => 0u16..40, 1 => 0u16..17_613];
    let gap = prop_oneof![6 => 0u32..2, 1 => 0u32..700];
    let token = (collection, gap, suffix());
    let piece = prop::collection::vec(token, 0..400).prop_map(|tokens| {
        let mut document = 0;
        let place = |(collection, gap, suffix)| {
            document += gap;
            (collection, document, suffix)
        };
        tokens.into_iter().map(place).collect()
    });
    prop::collection::vec(piece, 0..5)
}

proptest! {
    #[test]
    fn oracle_collects_tokens_like_a_map(pieces in pieces(), pieces_of_block in 1usize..4) {
        compare(&pieces, pieces_of_block);
    }

    #[test]
    fn oracle_compares_strings_as_bytes(a in suffix(), b in suffix()) {
        let mut forest = Forest::default();
        let terms = [forest.find_or_insert(5, &a), forest.find_or_insert(5, &b)];
        prop_assert_eq!(terms[0], (0, true));
        prop_assert_eq!(terms[1], (u32::from(a != b), a != b));
        prop_assert_eq!(forest.strings().len(), words(a.len()) + words(b.len()) * usize::from(a != b));
    }
}

/// A tree of four levels, filled from the left, from the right and from all sides.
#[test]
fn trees_stay_balanced() {
    let name = |i: u32| -> Token { (12, i % 3, format!("{:06}", i * 7 % 100_003).into_bytes()) };
    for order in [|i| i, |i: u32| 60_000 - i, |i: u32| (i * 48_271) % 60_013] {
        let mut tokens: Vec<Token> = (0..60_000).map(order).map(name).collect();
        tokens.sort_by_key(|&(_, document, _)| document);
        compare(&[tokens], 1);
    }
}

#[test]
fn nothing_gives_nothing() {
    compare(&[], 1);
    compare(&[Vec::new(), Vec::new()], 2);
    compare(&[vec![(0, 0, Vec::new())], vec![(0, 0, Vec::new()), (0, 0, Vec::new())]], 2);
}
