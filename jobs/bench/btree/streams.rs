//! Token streams made from a seed: the share of each trie collection falls with its rank and is
//! capped, as placement caps what a device gets; its terms follow Zipf's law and are as many as its
//! share of all terms. Suffixes are letters, a third of them no longer than a node caches.

use millrace::dictionary::stream::{StreamWriter, TokenGroup};
use millrace::text::trie_collection::TRIE_COLLECTIONS;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What streams are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub(super) tokens: u64,
    /// Terms of all collections; not all of them need to appear.
    pub(super) terms: u64,
    /// The largest share of a collection.
    pub(super) cap: f64,
    /// Exponent of Zipf's law within a collection.
    pub(super) zipf: f64,
    /// Tokens of a piece, and of a document.
    pub(super) piece_tokens: u32,
    pub(super) document_tokens: u32,
    pub(super) seed: u64,
}

/// 64 bits that depend on all bits of `x` (the finaliser of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The collections: where each ends in the unit interval, and its terms.
struct Shares {
    ends: Vec<f64>,
    terms: Vec<u32>,
}

impl Shares {
    fn new(recipe: &Recipe) -> Self {
        // Ranks are spread over the collections: neighbours differ.
        let rank = |c: usize| (c * 7919) % TRIE_COLLECTIONS;
        let mut weights: Vec<f64> =
            (0..TRIE_COLLECTIONS).map(|c| 1.0 / (rank(c) as f64 + 20.0)).collect();
        for _ in 0..50 {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight = (*weight / sum).min(recipe.cap));
        }
        let sum: f64 = weights.iter().sum();
        let mut end = 0.0;
        let ends = weights.iter().map(|weight| {
            end += weight / sum;
            end
        });
        let ends = ends.collect();
        let terms = weights.iter().map(|w| ((w / sum * recipe.terms as f64) as u32).max(1));
        Self { ends, terms: terms.collect() }
    }
}

/// The suffix of a collection's term by its rank: different ones for different ranks.
fn suffix(rank: u32, terms: u32, letters: &mut Vec<u8>) {
    letters.clear();
    let mut digits = 2;
    let mut range = 26u64 * 26;
    while range < u64::from(terms) {
        digits += 1;
        range *= 26;
    }
    // A permutation of the range, so that terms come in no order.
    let mut rest = (u64::from(rank) * 10_000_019 + 7) % range;
    for _ in 0..digits {
        letters.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
    let mut more = mix(u64::from(rank));
    for _ in 0..more % 6 {
        more /= 26;
        letters.push(b'a' + (more % 26) as u8);
    }
}

fn piece(recipe: &Recipe, shares: &Shares, number: u64, tokens: u32) -> TokenGroup {
    let mut state = mix(recipe.seed ^ number << 20);
    let mut unit = || {
        state = mix(state);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut drawn: Vec<(u16, u32, u32)> = (0..tokens)
        .map(|token| {
            let at = unit();
            let collection =
                shares.ends.partition_point(|&end| end <= at).min(TRIE_COLLECTIONS - 1);
            let terms = f64::from(shares.terms[collection]);
            let u = unit();
            let rank = if (recipe.zipf - 1.0).abs() < 1e-6 {
                (terms + 1.0).powf(u) - 1.0
            } else {
                let e = 1.0 - recipe.zipf;
                (((terms + 1.0).powf(e) - 1.0) * u + 1.0).powf(1.0 / e) - 1.0
            };
            (collection as u16, token / recipe.document_tokens, rank as u32)
        })
        .collect();
    drawn.sort_by_key(|&(collection, ..)| collection);
    let mut writer = StreamWriter::new(0, tokens as usize * 9);
    let mut letters = Vec::new();
    for (collection, document, rank) in drawn {
        let terms = shares.terms[usize::from(collection)];
        suffix(rank.min(terms - 1), terms, &mut letters);
        writer.token(collection, document, &letters);
    }
    writer.finish(Arc::default(), Arc::default())
}

/// All pieces with the docid of their first document, made by all cores.
pub(super) fn pieces(recipe: &Recipe) -> Vec<(TokenGroup, u32)> {
    let shares = Shares::new(recipe);
    let count = recipe.tokens.div_ceil(u64::from(recipe.piece_tokens));
    let documents = recipe.piece_tokens.div_ceil(recipe.document_tokens);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, TokenGroup)> = std::thread::scope(|scope| {
        let make = || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number as u64 >= count {
                    return made;
                }
                let done = number as u64 * u64::from(recipe.piece_tokens);
                let tokens = (recipe.tokens - done).min(u64::from(recipe.piece_tokens)) as u32;
                made.push((number, piece(recipe, &shares, number as u64, tokens)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(make)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no piece panics")).collect()
    });
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(number, group)| (group, number as u32 * documents)).collect()
}
