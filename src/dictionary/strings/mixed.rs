//! What a stretch with bytes beyond ASCII was when it came before. It has to be decoded, cut into
//! tokens, and lower-cased letter by letter, which takes six times as long as another word does;
//! most are a word or a dash that comes again soon.

use crate::text::scan::{StretchKey, spread_stretch};

/// What a stretch is that has one token, or none.
#[derive(Clone, Copy, Default)]
pub(crate) struct StretchMeaning {
    pub(crate) has_token: bool,
    /// The term; [`NO_TERM`](crate::dictionary::memo::NO_TERM) if the token is a stop word.
    pub(crate) term: u32,
    /// Of the token's form, for the sketch of a piece: its bytes, if these matter, and its hash.
    pub(crate) bytes: u32,
    pub(crate) hash: u64,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct KnownStretch {
    key: StretchKey,
    pub(crate) meaning: StretchMeaning,
    /// The last piece that had it; 0 is none.
    pub(crate) seen: u32,
}

/// The last stretch at each of some places, which its bytes choose: few for English, and more for
/// a text that would miss many in each piece.
pub(crate) struct Mixed {
    known: Box<[KnownStretch]>,
    most: usize,
    /// Stretches of the piece that were not there.
    missed: usize,
}

/// Powers of two; those of English leave most of the second-level cache to others.
const LEAST_PLACES: usize = 1 << 10;
const MOST_PLACES: usize = 1 << 14;

impl Mixed {
    /// Takes 64 KiB, or more, but at most this many bytes.
    pub(crate) fn new(most_bytes: usize) -> Self {
        let most = (most_bytes / size_of::<KnownStretch>()).min(MOST_PLACES);
        Self { known: places(LEAST_PLACES), most, missed: 0 }
    }

    fn place(&self, key: &StretchKey) -> usize {
        spread_stretch(key) as usize & (self.known.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&mut self, key: &StretchKey) -> Option<&mut KnownStretch> {
        let known = &mut self.known[self.place(key)];
        (known.key == *key).then_some(known)
    }

    pub(crate) fn put(&mut self, key: StretchKey, meaning: StretchMeaning, seen: u32) {
        self.missed += 1;
        self.known[self.place(&key)] = KnownStretch { key, meaning, seen };
    }

    /// Makes more places if the piece has missed many.
    pub(crate) fn end_piece(&mut self) {
        let len = 2 * self.known.len();
        if std::mem::take(&mut self.missed) > len / 4 && len <= self.most {
            for known in std::mem::replace(&mut self.known, places(len)) {
                self.known[self.place(&known.key)] = known;
            }
        }
    }

    /// Forgets all stretches: their terms have other numbers now.
    pub(crate) fn forget(&mut self) {
        self.known.fill(KnownStretch::default());
    }
}

fn places(count: usize) -> Box<[KnownStretch]> {
    vec![KnownStretch::default(); count].into()
}
