//! What a stretch with bytes beyond ASCII was when it came before. It has to be decoded, cut into
//! tokens, and lower-cased letter by letter, which takes six times as long as another word does;
//! most are a word or a dash that comes again soon.

use crate::dictionary::device::members::hash_of_key;
use crate::dictionary::memo::NO_TERM;
use crate::text::scan::TokenKey;

/// What a stretch is that has one token, or none.
#[derive(Clone, Copy, Default)]
pub(crate) struct StretchMeaning {
    /// The term, which is [`NO_TERM`] where there is no token.
    pub(crate) term: u32,
    /// Of the token's form, for the sketch of a piece: its bytes, if these matter, and its hash.
    pub(crate) bytes: u32,
    pub(crate) hash: u64,
}

impl StretchMeaning {
    /// Of a stretch without tokens.
    pub(crate) const NOTHING: Self = Self { term: NO_TERM, bytes: 0, hash: 0 };
}

/// The last stretch at each of a few places, which its bytes choose.
pub(crate) struct Mixed {
    known: Box<[(TokenKey, StretchMeaning)]>,
}

/// A power of two; all of them fit the second-level cache and leave most of it to others.
const PLACES: usize = 1 << 11;

impl Default for Mixed {
    fn default() -> Self {
        Self { known: vec![<(TokenKey, StretchMeaning)>::default(); PLACES].into() }
    }
}

impl Mixed {
    fn place(key: TokenKey) -> usize {
        hash_of_key(key) as usize % PLACES
    }

    #[inline]
    pub(crate) fn get(&self, key: TokenKey) -> Option<StretchMeaning> {
        let (known, meaning) = self.known[Self::place(key)];
        (known == key).then_some(meaning)
    }

    pub(crate) fn put(&mut self, key: TokenKey, meaning: StretchMeaning) {
        self.known[Self::place(key)] = (key, meaning);
    }

    /// Forgets all stretches: their terms have other numbers now.
    pub(crate) fn forget(&mut self) {
        self.known.fill(Default::default());
    }
}
