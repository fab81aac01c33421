//! The fast scanner finds the tokens of the plain one, and terms are what they have to be.

use millrace::dictionary::owners::Owners;
use millrace::dictionary::parsed::Regroup;
use millrace::dictionary::tally::Tally;
use millrace::text::analysis::{Analysis, MAX_TERM_BYTES};
use millrace::text::scan::{KEY_BYTES, Scanner, Stretches, TOGETHER, TokenKey, key_bytes, key_of};
use millrace::text::stemmer::Stemmer;
use millrace::text::tokenizer::{Tokenizer, for_each_token};
use millrace::text::trie_collection::{implied_prefix, trie_collection};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    // Kept from input to input, as a parser keeps it from document to document.
    static KEPT: RefCell<(Scanner, Vec<(Analysis, Tally)>)> = RefCell::new((Scanner::new(), tallies()));
}

fn tallies() -> Vec<(Analysis, Tally)> {
    let owners = Arc::new(Owners::in_turn(2));
    let tally =
        |analysis: Analysis| (analysis.clone(), Tally::new(analysis, owners.clone(), 1 << 16));
    let stemmers = Stemmer::all().map(|stemmer| Analysis { stemmer, ..Analysis::default() });
    let bigrams = Analysis { tokenizer: Tokenizer::CjkBigram, ..Analysis::default() };
    stemmers.chain([bigrams]).map(tally).collect()
}

#[derive(Default)]
struct Found(Vec<String>);

impl Stretches for Found {
    fn keys(&mut self, keys: &[TokenKey], _ahead: &[u32]) {
        assert!(keys.len() <= TOGETHER);
        for &key in keys {
            let (bytes, len) = key_bytes(key);
            let token = std::str::from_utf8(&bytes[..len]).expect("a key is ASCII");
            assert_eq!(key_of(token.as_bytes()), Some(key));
            self.0.push(token.to_owned());
        }
    }

    fn long(&mut self, token: &[u8]) {
        assert!(token.len() > KEY_BYTES && token.is_ascii());
        self.0.push(String::from_utf8_lossy(token).to_lowercase());
    }

    fn mixed(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_ascii());
        for_each_token(bytes, |token| self.0.push(token.to_owned()));
    }
}

fn check_term(term: &str) {
    assert!((1..=MAX_TERM_BYTES).contains(&term.len()));
    let (prefix, len) = implied_prefix(trie_collection(term));
    assert!(term.as_bytes().starts_with(&prefix[..len]));
}

/// What is asked of an input.
pub fn tokenizer(data: &[u8]) {
    // A vector of its own, so that a read behind the text is seen.
    let text = data.to_vec();
    let mut expected = Vec::new();
    for_each_token(&text, |token| expected.push(token.to_owned()));
    let lossy = String::from_utf8_lossy(&text);
    let mut plain = Vec::new();
    Tokenizer::FirstWords.for_each_token(&text, |token| plain.push(token.to_owned()));
    let naive = lossy.split(|c: char| !c.is_alphanumeric()).filter(|token| !token.is_empty());
    assert_eq!(plain, Vec::from_iter(naive.map(str::to_lowercase)));
    KEPT.with_borrow_mut(|(scanner, tallies)| {
        let mut found = Found::default();
        scanner.scan(&text, &mut found);
        // Keys come together, and others between them.
        let (mut found, mut expected) = (found.0, expected.clone());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);

        // One stemmer an input: its first byte says which.
        let one = usize::from(data.first().copied().unwrap_or(0)) % tallies.len();
        let (analysis, tally) = &mut tallies[one];
        let mut terms = 0;
        analysis.terms(&text, |term| {
            check_term(term);
            terms += 1;
        });
        assert_eq!(tally.document(&text), terms, "{}", analysis.stemmer.name());
        tally.finish();
    });
}
