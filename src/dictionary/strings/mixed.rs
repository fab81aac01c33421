//! A cache of words with bytes beyond ASCII. Such a span has to be decoded, cut into tokens, and
//! lower-cased letter by letter, which takes six times as long as another word does; most are a
//! word or a dash that comes again soon.

use crate::dictionary::device::members::hash_of_key;
use crate::dictionary::memo::NO_TERM;
use crate::text::scan::Key;

/// The meaning of a span that has one token, or none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Meaning {
    /// [`NO_TERM`] where there is no token.
    pub(crate) term: u32,
    /// Of the token's form, for the sketch of a piece: its bytes, if these matter, and its hash.
    pub(crate) bytes: u32,
    pub(crate) hash: u64,
}

impl Meaning {
    pub(crate) const NOTHING: Self = Self { term: NO_TERM, bytes: 0, hash: 0 };
}

/// The last span at each of a few places, chosen by its bytes.
pub(crate) struct Mixed {
    known: Box<[(Key, Meaning)]>,
}

/// A power of two; all of them fit the second-level cache and leave most of it to others.
const PLACES: usize = 1 << 11;

impl Default for Mixed {
    fn default() -> Self {
        Self { known: vec![<(Key, Meaning)>::default(); PLACES].into() }
    }
}

impl Mixed {
    fn place(key: Key) -> usize {
        hash_of_key(key) as usize % PLACES
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<Meaning> {
        let (known, meaning) = self.known[Self::place(key)];
        (known == key).then_some(meaning)
    }

    pub(crate) fn put(&mut self, key: Key, meaning: Meaning) {
        self.known[Self::place(key)] = (key, meaning);
    }

    /// Forgets all spans: their terms have other numbers now.
    pub(crate) fn forget(&mut self) {
        self.known.fill(Default::default());
    }
}
