//! Porter's stemmer of English words (M. F. Porter, *An algorithm for suffix stripping*, Program
//! 14(3), 1980). Its steps keep their numbers here.
//!
//! This is the version of the program that Porter published himself, whose vocabulary of 23,531
//! words and their stems is the usual test. It departs from the paper in three points:
//!
//! - a word of one or two letters is left alone (the paper makes `a` of `as`),
//! - step 2 has `bli` -> `ble` in the place of `abli` -> `able` (`possibly` -> `possibl`),
//! - step 2 also has `logi` -> `log` (`apology` -> `apolog`).
//!
//! In the paper's terms a word is `[C](VC)^m[V]`, where C and V are runs of consonants and of
//! vowels; m is its *measure*. `y` is a consonant at the front and after a vowel.

/// Stems `word` in place and returns the length of its stem; what follows it is arbitrary. A word
/// of less than three bytes or with others than a to z is left alone.
#[must_use = "the length says where the stem ends"]
pub(crate) fn stem(word: &mut [u8]) -> usize {
    let len = word.len();
    if len < 3 || !word.iter().all(u8::is_ascii_lowercase) {
        return len;
    }
    let mut word = Word { bytes: word, len };
    word.step_1a();
    word.step_1b();
    word.step_1c();
    word.replace_suffix(STEP_2, 0);
    word.replace_suffix(STEP_3, 0);
    word.step_4();
    word.step_5a();
    word.step_5b();
    word.len
}

/// Suffixes and their replacements; a suffix comes before those that end it.
const STEP_2: &str = "\
    ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e \
    ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous \
    aliti:al iviti:ive biliti:ble logi:log";

const STEP_3: &str = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:";

/// `ion`, which needs an `s` or `t` before it, is apart.
const STEP_4: &str = "\
    al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ou: ism: ate: iti: ous: ive: \
    ize:";

/// No step makes the word longer than it was at the start.
struct Word<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl Word<'_> {
    fn step_1a(&mut self) {
        if self.ends(b"sses") || self.ends(b"ies") {
            self.len -= 2;
        } else if self.ends(b"s") && !self.ends(b"ss") {
            self.len -= 1;
        }
    }

    fn step_1b(&mut self) {
        if let Some(stem) = self.stem_before(b"eed") {
            if measure(stem) > 0 {
                self.len -= 1;
            }
            return;
        }
        let Some(stem) = self.stem_before(b"ed").or_else(|| self.stem_before(b"ing")) else {
            return;
        };
        if !has_vowel(stem) {
            return;
        }
        self.len = stem.len();
        if self.ends(b"at") || self.ends(b"bl") || self.ends(b"iz") {
            self.push_e();
        } else if self.ends_with_double_consonant() {
            if !matches!(self.left(), [.., b'l' | b's' | b'z']) {
                self.len -= 1;
            }
        } else if measure(self.left()) == 1 && ends_consonant_vowel_consonant(self.left()) {
            self.push_e();
        }
    }

    fn step_1c(&mut self) {
        if self.stem_before(b"y").is_some_and(has_vowel) {
            self.bytes[self.len - 1] = b'i';
        }
    }

    fn step_4(&mut self) {
        match self.stem_before(b"ion") {
            Some(stem) => {
                if matches!(stem, [.., b's' | b't']) && measure(stem) > 1 {
                    self.len = stem.len();
                }
            }
            None => self.replace_suffix(STEP_4, 1),
        }
    }

    fn step_5a(&mut self) {
        if let Some(stem) = self.stem_before(b"e") {
            let m = measure(stem);
            if m > 1 || (m == 1 && !ends_consonant_vowel_consonant(stem)) {
                self.len = stem.len();
            }
        }
    }

    fn step_5b(&mut self) {
        if self.ends(b"ll") && measure(self.left()) > 1 {
            self.len -= 1;
        }
    }

    /// Applies the first of `rules` whose suffix ends the word, if the stem before the suffix has a
    /// measure above `limit`. If not, no other rule is tried.
    fn replace_suffix(&mut self, rules: &str, limit: usize) {
        for rule in rules.split(' ') {
            let (suffix, replacement) = rule.split_once(':').expect("a rule has both");
            if let Some(stem) = self.stem_before(suffix.as_bytes()) {
                if measure(stem) > limit {
                    let start = stem.len();
                    self.len = start + replacement.len();
                    self.bytes[start..self.len].copy_from_slice(replacement.as_bytes());
                }
                return;
            }
        }
    }

    fn left(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn ends(&self, suffix: &[u8]) -> bool {
        self.left().ends_with(suffix)
    }

    fn stem_before(&self, suffix: &[u8]) -> Option<&[u8]> {
        self.left().strip_suffix(suffix)
    }

    /// Only after a suffix was taken off, so that there is room.
    fn push_e(&mut self) {
        self.bytes[self.len] = b'e';
        self.len += 1;
    }

    /// Of `yy` at most one is a consonant.
    fn ends_with_double_consonant(&self) -> bool {
        match self.left() {
            [.., a, b] => a == b && !matches!(b, b'a' | b'e' | b'i' | b'o' | b'u' | b'y'),
            _ => false,
        }
    }
}

fn consonants(word: &[u8]) -> impl Iterator<Item = bool> {
    let mut previous = false;
    word.iter().map(move |letter| {
        previous = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => !previous,
            _ => true,
        };
        previous
    })
}

/// The paper's m: how often a consonant follows a vowel.
fn measure(word: &[u8]) -> usize {
    let mut after_vowel = false;
    let mut m = 0;
    for is_consonant in consonants(word) {
        m += usize::from(after_vowel && is_consonant);
        after_vowel = !is_consonant;
    }
    m
}

fn has_vowel(word: &[u8]) -> bool {
    consonants(word).any(|is_consonant| !is_consonant)
}

/// The paper's `*o`: the last three are consonant, vowel and a consonant other than w, x or y.
fn ends_consonant_vowel_consonant(word: &[u8]) -> bool {
    if word.len() < 3 || matches!(word, [.., b'w' | b'x' | b'y']) {
        return false;
    }
    consonants(word).skip(word.len() - 3).eq([true, false, true])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn stemmed(word: &str) -> String {
        let mut bytes = word.as_bytes().to_vec();
        let len = stem(&mut bytes);
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    }

    #[test]
    fn all_pairs_of_the_published_vocabulary() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/formats/porter");
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        let (Ok(words), Ok(stems)) = (read("voc.txt"), read("output.txt")) else {
            println!("skipped: no voc.txt and output.txt in {}", folder.display());
            return;
        };
        assert_eq!(words.lines().count(), stems.lines().count());
        let wrong: Vec<_> = words
            .lines()
            .zip(stems.lines())
            .map(|(word, stem)| (word, stem, stemmed(word)))
            .filter(|(_, stem, found)| stem != found)
            .collect();
        assert!(wrong.is_empty(), "{} wrong: {:?}", wrong.len(), &wrong[..wrong.len().min(40)]);
    }

    #[test]
    fn every_step_has_its_examples() {
        let pairs = [
            // 1a
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "ti"),
            ("caress", "caress"),
            ("cats", "cat"),
            // 1b
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("fizzed", "fizz"),
            ("failing", "fail"),
            ("filing", "file"),
            // 1c
            ("happy", "happi"),
            ("sky", "sky"),
            ("say", "sai"),
            // 2
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("valenci", "valenc"),
            ("digitizer", "digit"),
            ("conformabli", "conform"),
            ("radicalli", "radic"),
            ("vileli", "vile"),
            ("analogousli", "analog"),
            ("vietnamization", "vietnam"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("decisiveness", "decis"),
            ("hopefulness", "hope"),
            ("callousness", "callous"),
            ("sensibiliti", "sensibl"),
            // 3
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("formalize", "formal"),
            ("electriciti", "electr"),
            ("goodness", "good"),
            // 4
            ("revival", "reviv"),
            ("inference", "infer"),
            ("airliner", "airlin"),
            ("replacement", "replac"),
            ("adjustment", "adjust"),
            ("dependent", "depend"),
            ("adoption", "adopt"),
            ("million", "million"),
            ("communism", "commun"),
            ("effective", "effect"),
            // 5
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("roll", "roll"),
            // the published departures
            ("as", "as"),
            ("possibly", "possibl"),
            ("apology", "apolog"),
        ];
        for (word, expected) in pairs {
            assert_eq!(stemmed(word), expected, "{word}");
        }
    }

    #[test]
    fn y_is_a_consonant_after_a_vowel_and_at_the_front() {
        let kinds: Vec<bool> = consonants(b"yoyyytoy").collect();
        assert_eq!(kinds, [true, false, true, false, true, true, false, true]);
        assert_eq!(measure(b"toy"), 1);
        assert_eq!(measure(b"syzygy"), 2);
    }

    #[test]
    fn other_tokens_are_left_alone() {
        for token in ["", "s", "is", "cafés", "mp3s", "CATS", "1990s", "i\u{307}ces", "北京s"] {
            assert_eq!(stemmed(token), token);
        }
    }

    proptest! {
        #[test]
        fn law_no_word_fails_or_grows(word in "[a-zé]{0,4}[aeiouytlsz]{0,6}(ed|ing|s|ational|ion|y|ll|e)?") {
            prop_assert!(stemmed(&word).len() <= word.len());
        }
    }
}
