//! Stemmers by name: `english`, Snowball's, the default; other languages of Snowball; `porter`, the
//! older English one of [`super::porter`]; and `none`.
//!
//! `english` is [`super::english`], and for the few words that it does not take Snowball's own
//! program, which gives the same stems.
//!
//! Two guards stand before Snowball's stemmers, since any token must be survived:
//!
//! - Some take quadratic time, so a token over [`MAX_STEMMED_BYTES`] is left alone. For `english`
//!   and `porter` this changes no term: they only touch the last bytes of a long token, and a term
//!   is cut long before those (see [`super::analysis`]).
//! - The Greek one panics on some words (`ισαισα`), which are left alone too.

use crate::settings::SettingError;
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::str::FromStr;
use std::sync::Once;

use rust_stemmers::Algorithm;

use super::{english, porter};

/// At this length the slowest token of the slowest stemmer takes below 1 ms, or 0.2 µs a byte.
pub(crate) const MAX_STEMMED_BYTES: usize = 4096;

const STEMMERS: [(&str, StemmerKind); 20] = [
    ("english", StemmerKind::English),
    ("porter", StemmerKind::Porter),
    ("none", StemmerKind::None),
    ("arabic", StemmerKind::Snowball(Algorithm::Arabic)),
    ("danish", StemmerKind::Snowball(Algorithm::Danish)),
    ("dutch", StemmerKind::Snowball(Algorithm::Dutch)),
    ("finnish", StemmerKind::Snowball(Algorithm::Finnish)),
    ("french", StemmerKind::Snowball(Algorithm::French)),
    ("german", StemmerKind::Snowball(Algorithm::German)),
    ("greek", StemmerKind::Snowball(Algorithm::Greek)),
    ("hungarian", StemmerKind::Snowball(Algorithm::Hungarian)),
    ("italian", StemmerKind::Snowball(Algorithm::Italian)),
    ("norwegian", StemmerKind::Snowball(Algorithm::Norwegian)),
    ("portuguese", StemmerKind::Snowball(Algorithm::Portuguese)),
    ("romanian", StemmerKind::Snowball(Algorithm::Romanian)),
    ("russian", StemmerKind::Snowball(Algorithm::Russian)),
    ("spanish", StemmerKind::Snowball(Algorithm::Spanish)),
    ("swedish", StemmerKind::Snowball(Algorithm::Swedish)),
    ("tamil", StemmerKind::Snowball(Algorithm::Tamil)),
    ("turkish", StemmerKind::Snowball(Algorithm::Turkish)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StemmerKind {
    None,
    English,
    Porter,
    Snowball(Algorithm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stemmer(StemmerKind);

impl Stemmer {
    /// [`super::english`].
    pub const ENGLISH: Self = Self(StemmerKind::English);
    /// [`super::porter`].
    pub const PORTER: Self = Self(StemmerKind::Porter);
    /// Leaves every token as it is.
    pub const NONE: Self = Self(StemmerKind::None);
    pub(crate) const TURKISH: Self = Self(StemmerKind::Snowball(Algorithm::Turkish));

    #[cfg(any(test, fuzzing))]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        STEMMERS.iter().map(|&(_, kind)| Self(kind))
    }

    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        let same = STEMMERS.iter().find(|&&(_, kind)| kind == self.0);
        same.expect("every kind is in the table").0
    }

    /// The stem of a lower-cased token; it may be empty, and longer than the token.
    #[inline]
    #[must_use]
    pub fn stem<'a>(&self, token: &'a str) -> Cow<'a, str> {
        if token.len() > MAX_STEMMED_BYTES {
            return Cow::Borrowed(token);
        }
        match self.0 {
            StemmerKind::None => Cow::Borrowed(token),
            StemmerKind::English => {
                english::stem(token).unwrap_or_else(|| stem_by_snowball(Algorithm::English, token))
            }
            StemmerKind::Porter => stem_by_porter(token),
            StemmerKind::Snowball(algorithm) => stem_by_snowball(algorithm, token),
        }
    }
}
impl Default for Stemmer {
    fn default() -> Self {
        Self::ENGLISH
    }
}

impl FromStr for Stemmer {
    type Err = SettingError;

    fn from_str(name: &str) -> Result<Self, SettingError> {
        match STEMMERS.iter().find(|&&(known, _)| known == name) {
            Some(&(_, kind)) => Ok(Self(kind)),
            None => {
                let names = STEMMERS.map(|(name, _)| name).join(", ");
                let why = format!("{name:?} is not a stemmer; the stemmers are {names}");
                Err(SettingError::value("stemmer", why))
            }
        }
    }
}

fn stem_by_porter(token: &str) -> Cow<'_, str> {
    // On the stack for nearly every token.
    let mut short = [0; 64];
    let mut long = Vec::new();
    let word = match short.get_mut(..token.len()) {
        Some(word) => word,
        None => {
            long.resize(token.len(), 0);
            long.as_mut_slice()
        }
    };
    word.copy_from_slice(token.as_bytes());
    let len = porter::stem(word);
    let stem = &word[..len];
    if token.as_bytes().starts_with(stem) {
        return Cow::Borrowed(&token[..len]);
    }
    let stem = std::str::from_utf8(stem).expect("only words of a to z are changed");
    Cow::Owned(stem.to_string())
}

fn stem_by_snowball(algorithm: Algorithm, token: &str) -> Cow<'_, str> {
    let stemmer = rust_stemmers::Stemmer::create(algorithm);
    survive(|| stemmer.stem(token)).unwrap_or(Cow::Borrowed(token))
}

thread_local! {
    /// Whether this thread runs a stemmer whose panics are survived.
    static SURVIVING: Cell<bool> = const { Cell::new(false) };
}

/// `None` if `stem` panics, which then prints nothing.
fn survive<T>(stem: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !SURVIVING.get() {
                before(panic);
            }
        }));
    });
    SURVIVING.set(true);
    // Nothing that a stemmer changes outlives the call.
    let stem = panic::catch_unwind(AssertUnwindSafe(stem));
    SURVIVING.set(false);
    stem.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn stemmer(name: &str) -> Stemmer {
        name.parse().unwrap()
    }

    #[test]
    fn each_language_stems_its_own_words() {
        let words = [
            ("english", "generalizations", "general"),
            ("porter", "generalizations", "gener"),
            ("none", "generalizations", "generalizations"),
            ("arabic", "الكتاب", "كتاب"),
            ("danish", "undersøgelserne", "undersøg"),
            ("dutch", "lichamelijkheden", "licham"),
            ("finnish", "taloissani", "talo"),
            ("french", "continuellement", "continuel"),
            ("german", "aufeinanderfolgenden", "aufeinanderfolg"),
            ("greek", "θαλασσες", "θαλασσ"),
            ("hungarian", "házakban", "ház"),
            ("italian", "abbandonata", "abbandon"),
            ("norwegian", "havnedistriktene", "havnedistrikt"),
            ("portuguese", "quilométricas", "quilométr"),
            ("romanian", "abruptă", "abrupt"),
            ("russian", "книгами", "книг"),
            ("spanish", "torneadas", "torn"),
            ("swedish", "jaktkarlarne", "jaktkarl"),
            ("tamil", "மரங்கள்", "மரங்"),
            ("turkish", "kitaplarımız", "kitap"),
        ];
        assert_eq!(words.len(), STEMMERS.len());
        for (name, word, stem) in words {
            assert_eq!(stemmer(name).stem(word), stem, "{name}");
        }
    }

    #[test]
    fn names_lead_to_stemmers_and_back() {
        assert_eq!(Stemmer::default().name(), "english");
        assert_eq!(stemmer("porter"), Stemmer::PORTER);
        for found in Stemmer::all() {
            assert_eq!(stemmer(found.name()), found);
        }
        let mut names: Vec<_> = Stemmer::all().map(Stemmer::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEMMERS.len());
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        for name in ["", "English", "klingon"] {
            let error = name.parse::<Stemmer>().unwrap_err();
            let message = error.to_string();
            assert!(message.contains(&format!("{name:?}")), "{message}");
            assert!(Stemmer::all().all(|known| message.contains(known.name())), "{message}");
        }
    }

    #[test]
    fn porter_borrows_what_it_only_shortens() {
        assert!(matches!(Stemmer::PORTER.stem("cats"), Cow::Borrowed("cat")));
        assert!(matches!(Stemmer::PORTER.stem("happy"), Cow::Owned(stem) if stem == "happi"));
        assert!(matches!(Stemmer::PORTER.stem("北京"), Cow::Borrowed("北京")));
        let long = "x".repeat(200);
        assert_eq!(Stemmer::PORTER.stem(&format!("{long}ational")), format!("{long}ation"));
        assert_eq!(Stemmer::PORTER.stem(&format!("{long}appy")), format!("{long}appi"));
    }

    #[test]
    fn stemmers_that_panic_leave_the_token_alone() {
        for token in ["ισαισα", "ισαισατειζουνε", "σκροθετε", "μπορροθετε"]
        {
            assert_eq!(stemmer("greek").stem(token), token);
        }
        assert!(!SURVIVING.get());
    }

    #[test]
    fn endless_tokens_are_left_alone() {
        for stemmer in Stemmer::all() {
            let token = "ay".repeat(1 << 20) + "s";
            assert!(matches!(stemmer.stem(&token), Cow::Borrowed(stem) if stem == token));
        }
    }

    /// Letters of every language, and endings of the stemmers.
    fn tokens() -> impl Strategy<Value = String> {
        let parts = "a e i o u y b c d g l m n r s t z ä ö ü ß å æ ø é è ê ç ñ ã ş ţ ı ő i\u{307} \
            ing ed ational ness ies ung heit keit ment eux ación mente ssa ille lar ları mız \
            α ε ι ο ς ισα θ ρ κ ετε ουνε αμε ιζ ав ый ого и ть ال ة ون ﻻ م க ம ் ங்கள் ா 1 北 𐐨";
        let parts: Vec<&str> = parts.split_whitespace().collect();
        vec(prop::sample::select(parts), 0..10).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn law_any_token_is_survived(token in tokens()) {
            for stemmer in Stemmer::all() {
                let stem = stemmer.stem(&token);
                prop_assert_eq!(&stem, &stemmer.stem(&token));
                prop_assert!(stem.len() <= 2 * token.len());
            }
        }
    }
}
