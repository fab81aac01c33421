use super::*;
use crate::text::tokenizer::for_each_token;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::BTreeSet;
use std::path::Path;

fn oracle(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

fn agrees(word: &str) -> bool {
    stem(word).is_none_or(|stem| stem == oracle(word))
}

fn is_taken(word: &str) -> bool {
    stem(word).is_some()
}

/// Everything that any step looks at.
const PARTS: &str = "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 '
    's 's' sses ied ies us ss eed eedly ed edly ing ingly at bl iz bb dd ff gg mm nn pp rr tt
    tional enci anci abli entli izer ization ational ation ator alism aliti alli fulness ousli
    ousness iveness iviti biliti bli ogi logi fulli lessli li cli zli ative alize icate iciti ical ful
    ness al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize sion tion ion ll ly
    ily ally ably ibly ously fully lessly ility ivity ality icity ogy ancy ency y yy ay eye gener commun
    arsen generous communism arsenic skis skies dying lying tying idly gently ugly early only singly sky
    news howe atlas cosmos bias andes inning outing canning herring earring proceed exceed succeed
    hop fil fall tan w x ow ex ey ba be un past univers inter";

fn parts() -> Vec<&'static str> {
    PARTS.split_whitespace().collect()
}

fn assert_all_agree<'a>(words: impl IntoIterator<Item = &'a str>) {
    let wrong = |&word: &&str| stem(word).as_deref() != Some(&*oracle(word));
    let wrong: Vec<_> =
        words.into_iter().filter(wrong).map(|word| (word, stem(word), oracle(word))).collect();
    assert!(wrong.is_empty(), "{} wrong: {:?}", wrong.len(), &wrong[..wrong.len().min(40)]);
}

#[test]
fn every_step_has_its_examples() {
    let pairs = [
        // exceptions
        ("skies", "sky"),
        ("dying", "die"),
        ("news", "news"),
        ("inning", "inning"),
        ("proceeds", "proceed"),
        ("generous", "generous"),
        ("communication", "communic"),
        ("arsenal", "arsenal"),
        // 0
        ("'tis'", "tis"),
        ("mill's", "mill"),
        // 1a
        ("caresses", "caress"),
        ("ties", "tie"),
        ("cries", "cri"),
        ("gas", "gas"),
        ("gaps", "gap"),
        ("kiwis", "kiwi"),
        ("census", "census"),
        // 1b
        ("agreed", "agre"),
        ("feed", "feed"),
        ("luxuriated", "luxuri"),
        ("hopping", "hop"),
        ("hoping", "hope"),
        ("falling", "fall"),
        ("markedly", "mark"),
        // 1c
        ("cry", "cri"),
        ("by", "by"),
        ("say", "say"),
        // 2
        ("rationally", "ration"),
        ("possibly", "possibl"),
        ("sensibility", "sensibl"),
        ("apology", "apolog"),
        ("demagogy", "demagogi"),
        ("fruitlessly", "fruitless"),
        ("kindly", "kind"),
        ("wily", "wili"),
        // 3
        ("formative", "format"),
        ("goodness", "good"),
        // 4
        ("replacement", "replac"),
        ("adoption", "adopt"),
        ("million", "million"),
        // 5
        ("rate", "rate"),
        ("cease", "ceas"),
        ("controll", "control"),
        ("roll", "roll"),
        // digits are non-vowels
        ("1990s", "1990s"),
        ("mp3s", "mp3s"),
        ("a4s", "a4"),
        ("", ""),
        ("y", "y"),
    ];
    for (word, expected) in pairs {
        assert_eq!(stem(word).as_deref(), Some(expected), "{word}");
        assert_eq!(oracle(word), expected, "{word}");
    }
}

#[test]
fn y_is_a_vowel_after_a_non_vowel() {
    let vowels = |word: &str| Letters::new(word.as_bytes()).unwrap().vowels;
    assert_eq!(vowels("yoyyytoy"), 0b0100_1010);
    assert_eq!(vowels("syzygy"), 0b10_1010);
    assert_eq!(vowels("yyyy"), 0b1010);
}

#[test]
fn words_that_are_not_taken() {
    for word in ["naïvely", "Running", "run\0ing", "a-bes", "'北", &"s".repeat(64)] {
        assert_eq!(stem(word), None, "{word}");
    }
    // No suffix ends these.
    for word in ["北京", "café", "1995", "x", &"o".repeat(64), &("ï".repeat(40) + "o")] {
        assert!(matches!(stem(word), Some(Cow::Borrowed(stem)) if stem == word));
        assert_eq!(oracle(word), word);
    }
    let longest = "u".repeat(57) + "ration";
    assert_eq!(longest.len(), MAX_WORD_BYTES);
    assert_all_agree([&*longest]);
}

#[test]
fn all_words_of_one_to_four_letters() {
    let letters: [char; 28] = std::array::from_fn(|i| b"abcdefghijklmnopqrstuvwxyz'1"[i].into());
    let mut words = vec![String::new()];
    for _ in 0..4 {
        let longer = words.iter().flat_map(|word| letters.map(|letter| format!("{word}{letter}")));
        words = longer.collect();
        assert_all_agree(words.iter().map(String::as_str));
    }
}

#[test]
fn all_pairs_and_triples_of_suffixes() {
    let parts = parts();
    for a in &parts {
        for b in &parts {
            let words: Vec<_> = parts.iter().map(|c| format!("{a}{b}{c}")).collect();
            assert_all_agree(words.iter().map(String::as_str));
            assert_all_agree([&*format!("{a}{b}")]);
        }
    }
}

#[test]
fn all_words_of_the_test_collections() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let mut words = BTreeSet::new();
    let mut read = 0;
    for file in [
        "collections/cacm/corpus.jsonl",
        "collections/cisi/corpus.jsonl",
        "collections/cranfield/corpus.jsonl",
        "collections/vaswani/corpus.jsonl",
        "formats/porter/voc.txt",
        "queries/million-query.tsv",
        "queries/msmarco-dev.tsv",
        "queries/terabyte-efficiency.tsv",
    ] {
        let Ok(text) = std::fs::read(data.join(file)) else {
            println!("skipped: no {file} in {}", data.display());
            continue;
        };
        read += 1;
        for_each_token(&text, |token| _ = words.insert(token.to_string()));
    }
    assert!(read == 0 || words.len() > 1000);
    println!("{read} files, {} words", words.len());
    let wrong: Vec<_> = words.iter().filter(|word| !agrees(word)).collect();
    assert!(wrong.is_empty(), "{} wrong: {:?}", wrong.len(), &wrong[..wrong.len().min(40)]);
    let passed_on = words.iter().filter(|word| !is_taken(word)).count();
    assert!(passed_on * 100 <= words.len(), "{passed_on} of {} words not taken", words.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/english.txt")
        )
    })]

    #[test]
    fn oracle_words_of_letters(word in "[a-zy']{0,20}") {
        prop_assert_eq!(stem(&word).unwrap(), oracle(&word));
    }

    #[test]
    fn oracle_letters_and_suffixes(
        front in "'?[aeioubcdfgrstlyy1]{0,8}",
        parts in vec(prop::sample::select(parts()), 0..5),
    ) {
        let word = front + &parts.concat();
        let stem = stem(&word);
        let end = word.as_bytes().last_chunk();
        prop_assert_eq!(stem.is_some(), word.len() <= MAX_WORD_BYTES || !may_end_suffix(*end.unwrap()));
        prop_assert!(stem.is_none_or(|stem| stem == oracle(&word)));
    }

    #[test]
    fn oracle_words_of_any_script(word in "'?([a-z]|[à-ÿ]|北|[0-9]){0,6}(ed|ing|s|ies|y|ation|é|o|l|e)?") {
        prop_assert!(agrees(&word));
    }
}
