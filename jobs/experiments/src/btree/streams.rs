//! Token streams made from a seed: the share of each trie collection falls with its rank and is
//! capped, as placement caps what a device gets; its terms follow Zipf's law and are as many as its
//! share of all terms. Suffixes are letters, a third of them no longer than a node caches.

use crate::threads::{in_turn, threads};
use millrace::inside::dictionary::{StreamWriter, TokenGroup};
use millrace::inside::text::TRIE_COLLECTIONS;
use std::sync::Arc;

/// Tokens of a piece.
const PIECE: u64 = 80_000;

/// Tokens of a document.
const DOCUMENT: u32 = 400;

/// 64 bits that depend on all bits of `x` (the finaliser of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The collections: where each ends in the unit interval, and its terms.
fn shares(terms: u64, cap: f64) -> Vec<(f64, u32)> {
    // Ranks are spread over the collections: neighbours differ.
    let rank = |c: usize| (c * 7919) % TRIE_COLLECTIONS;
    let mut weights: Vec<f64> =
        (0..TRIE_COLLECTIONS).map(|c| 1.0 / (rank(c) as f64 + 20.0)).collect();
    for _ in 0..50 {
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight = (*weight / sum).min(cap));
    }
    let sum = weights.iter().sum::<f64>();
    let mut end = 0.0;
    let share = |weight: f64| {
        end += weight / sum;
        (end, ((weight / sum * terms as f64) as u32).max(1))
    };
    weights.into_iter().map(share).collect()
}

/// The suffix of a collection's term by its rank: different ones for different ranks.
fn suffix(rank: u32, terms: u32, letters: &mut Vec<u8>) {
    letters.clear();
    let letter = |number: u64| b'a' + (number % 26) as u8;
    let digits = (2..).find(|&digits| 26u64.pow(digits) >= u64::from(terms)).unwrap_or(2);
    // A permutation of the range, so that terms come in no order.
    let number = (u64::from(rank) * 10_000_019 + 7) % 26u64.pow(digits);
    letters.extend((0..digits).map(|digit| letter(number / 26u64.pow(digit))));
    let more = mix(u64::from(rank));
    letters.extend((1..=more % 6).map(|digit| letter(more / 26u64.pow(digit as u32))));
}

fn piece(shares: &[(f64, u32)], number: u64, tokens: u32) -> TokenGroup {
    let mut state = mix(1 ^ number << 20);
    let mut unit = || {
        state = mix(state);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut drawn: Vec<(usize, u32, u32)> = (0..tokens)
        .map(|token| {
            let at = unit();
            let collection = shares.partition_point(|&(end, _)| end <= at).min(shares.len() - 1);
            let rank = (f64::from(shares[collection].1) + 1.0).powf(unit()) - 1.0;
            (collection, token / DOCUMENT, rank as u32)
        })
        .collect();
    drawn.sort_by_key(|&(collection, ..)| collection);
    let mut writer = StreamWriter::new(0, tokens as usize * 9);
    let mut letters = Vec::new();
    for (collection, document, rank) in drawn {
        let terms = shares[collection].1;
        suffix(rank.min(terms - 1), terms, &mut letters);
        writer.token(collection as u16, document, &letters);
    }
    writer.finish(Arc::default(), Arc::default())
}

/// All pieces with the docid of their first document.
pub(super) fn pieces(tokens: u64, terms: u64, cap: f64) -> anyhow::Result<Vec<(TokenGroup, u32)>> {
    let shares = shares(terms, cap);
    let documents = PIECE.div_ceil(DOCUMENT.into()) as u32;
    in_turn(
        threads(),
        || Ok(()),
        |(), number| {
            let left = tokens.saturating_sub(number as u64 * PIECE).min(PIECE) as u32;
            let piece = || (piece(&shares, number as u64, left), number as u32 * documents);
            Ok((left > 0).then(piece))
        },
    )
}
