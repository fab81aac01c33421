//! Words of all scripts: what belongs to a word, one spelling for equal texts, what is not seen,
//! capital letters of Turkish, and texts that are cut already.

use crate::support::*;
use std::path::{Path, PathBuf};

fn build(scratch: &Scratch, name: &str, more: &[&str], input: &Path) -> PathBuf {
    let index = scratch.path(name);
    let job = args!["build", "--quiet", "-w", "1", "--memory", "64M", "--index", index, input];
    millrace(job).args(more.iter().copied()).ok();
    index
}

const PLAIN: [&str; 4] = ["--stemmer", "none", "--stopwords", "none"];

/// The terms that a text has in an index.
fn analyzed(index: &Path, text: &str) -> Vec<String> {
    let shown = millrace(args!["show", "--index", index, "--analyze", text]).ok();
    let term = |line: &str| line.split_whitespace().last().unwrap().to_string();
    shown.text().lines().map(term).collect()
}

/// The documents that are found.
fn found(index: &Path, query: &str) -> Vec<String> {
    let job = args!["query", "--quiet", "--index", index, "--format", "jsonl", "-k", "9"];
    let hits = millrace(job).stdin(query).ok().json_lines().remove(0);
    let name = |hit: &serde_json::Value| hit["name"].as_str().unwrap().to_string();
    let mut names: Vec<String> = hits["hits"].as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

/// All terms of an index.
fn terms(index: &Path) -> Vec<String> {
    let dump = millrace(args!["dump", "--index", index, "--format", "tsv", "terms"]).ok();
    let term = |line: &str| line.split('\t').next().unwrap().to_string();
    let mut terms: Vec<String> = dump.text().lines().map(term).collect();
    terms.sort();
    terms
}

const WORDS: [&str; 15] = [
    "हिन्दी",
    "বিশ্ববিদ্যালয়",
    "తెలుగు",
    "தமிழ்நாடு",
    "เครื่องบิน",
    "မြန်မာ",
    "ខ្មែរ",
    "מוֹרֶה",
    "ਪੰਜਾਬੀ",
    "ಕನ್ನಡ",
    "മലയാളം",
    "සිංහල",
    "العَرَبِيَّة",
    "Михаи\u{301}л",
    "nai\u{308}ve",
];

#[test]
fn marks_do_not_end_words() {
    let scratch = Scratch::new();
    let line = |(n, word): (usize, &&str)| format!("{{\"id\": \"w{n}\", \"text\": \"{word}\"}}\n");
    let mut lines: String = WORDS.iter().enumerate().map(line).collect();
    lines += "{\"id\": \"parts\", \"text\": \"हिन दी cafe naive\"}\n";
    lines += r#"{"id": "apart", "text": "cafe\u0301"}"#;
    lines += "\n";
    lines += r#"{"id": "whole", "text": "caf\u00e9"}"#;
    let input = scratch.write("docs.jsonl", lines);
    for indexer in ["fast", "wei11"] {
        let index =
            build(&scratch, indexer, &[&PLAIN[..], &["--indexer", indexer]].concat(), &input);
        for (n, word) in WORDS.iter().enumerate() {
            assert_eq!(analyzed(&index, word).len(), 1, "{word}");
            assert_eq!(found(&index, word), [format!("w{n}")], "{word}");
        }
        for word in ["café", "cafe\u{301}", "CAFÉ", "CAFE\u{301}"] {
            assert_eq!(found(&index, word), ["apart", "whole"]);
        }
        assert_eq!(found(&index, "cafe"), ["parts"]);
    }
    let tamil = build(&scratch, "tamil", &["--stemmer", "tamil"], &input);
    let [term] = &analyzed(&tamil, "பள்ளிகள்")[..] else { panic!("one word") };
    assert!(term.starts_with("பள்ளி"), "{term}");
}

#[test]
fn what_is_not_seen_is_left_out_however_it_is_written() {
    let scratch = Scratch::new();
    let html = "<p>Wort&shy;trennung Wort&#173;trennung Wort&#xAD;trennung wort&zwnj;trennung wort&NoBreak;trennung wort\u{ad}trennung cafe&#x301; caf&eacute; a&ZeroWidthSpace;b</p>";
    let json = r#"{"id": "1", "text": "Wort\u00adtrennung wort\u200dtrennung wort\u2060trennung wort\ufeffTrennung wort\udb40\udc20trennung cafe\u0301 caf\u00E9 a\u200bb"}"#;
    let trec = "<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>Wort&shy;trennung wort&lrm;trennung cafe&#769; caf&eacute; a&#8203;b</TEXT>\n</DOC>\n";
    let wiki = "<mediawiki><page><title>a\u{200b}b</title><revision><text>Wort&amp;shy;trennung wort&#173;trennung cafe&#x301; caf&amp;eacute;</text></revision></page></mediawiki>";
    let latin = b"<meta charset=iso-8859-1><p>Wort\xadtrennung caf\xe9 a&#x200B;b";
    for (name, text) in [
        ("d.html", html.as_bytes()),
        ("d.jsonl", json.as_bytes()),
        ("d.trec", trec.as_bytes()),
        ("d.xml", wiki.as_bytes()),
        ("l.html", latin),
    ] {
        let input = scratch.write(name, text);
        let index = build(&scratch, &format!("of-{name}"), &PLAIN, &input);
        assert_eq!(terms(&index), ["a", "b", "café", "worttrennung"], "{name}");
    }
}

#[test]
fn turkish_has_its_own_capital_letters() {
    let scratch = Scratch::new();
    let lines = [
        r#"{"id": "a", "text": "ISPARTA ili"}"#,
        r#"{"id": "b", "text": "\u0130STANBUL"}"#,
        r#"{"id": "c", "text": "I\u0307zmir"}"#,
        r#"{"id": "d", "text": "isparta"}"#,
    ];
    let input = scratch.write("docs.jsonl", lines.join("\n"));
    let words = scratch.write("words.txt", "ILI\nKız\n");
    let more = ["--stemmer", "turkish", "--stopwords", words.to_str().unwrap()];
    for indexer in ["fast", "wei11"] {
        let index =
            build(&scratch, indexer, &[&more[..], &["--indexer", indexer]].concat(), &input);
        let text = "ISPARTA ısparta İSTANBUL istanbul I\u{307}STANBUL Isı ısı";
        let [a, b, c, d, e, f, g] = &analyzed(&index, text)[..] else { panic!("seven words") };
        assert!(a == b && c == d && d == e && f == g && a != c);
        assert_eq!(found(&index, "ısparta"), ["a"]);
        assert_eq!(found(&index, "isparta"), ["d"]);
        assert_eq!(found(&index, "istanbul"), ["b"]);
        assert_eq!(found(&index, "İZMİR"), ["c"]);
        // The stop words are `ılı` and `kız`.
        let shown = millrace(args!["show", "--index", index, "--analyze", "ılı ILI ili KIZ kiz"]);
        let shown = shown.ok();
        let stopped = shown.text().lines().map(|line| line.ends_with("(stop word)"));
        assert_eq!(Vec::from_iter(stopped), [true, true, false, true, false], "{shown:?}");
    }
    let english = build(&scratch, "english", &PLAIN, &input);
    assert_eq!(found(&english, "isparta"), ["a", "d"]);
}

#[test]
fn text_that_is_cut_stays_as_it_is() {
    let scratch = Scratch::new();
    let lines = [
        r#"{"id": "a", "text": "play ##ing the C++\u00a0x"}"#,
        r#"{"id": "b", "text": "playing c++ The ##ing"}"#,
    ];
    let input = scratch.write("docs.jsonl", lines.join("\n"));
    for indexer in ["fast", "wei11", "gpu"] {
        let index = scratch.path(indexer);
        let job = args!["build", "-w", "1", "--memory", "64M", "--index", index, input];
        let outcome = millrace(job).args(["--tokenizer", "whitespace", "--indexer", indexer]).ok();
        let said = outcome.stderr.matches("the tokenizer whitespace works on the CPU").count();
        assert_eq!(said, usize::from(indexer == "gpu"), "{outcome:?}");
        assert_eq!(terms(&index), ["##ing", "C++", "The", "c++", "play", "playing", "the", "x"]);
        assert_eq!(found(&index, "c++"), ["b"]);
        assert_eq!(found(&index, "##ing"), ["a", "b"]);
        assert_eq!(found(&index, "the"), ["a"]);
    }
    let more = ["--tokenizer", "whitespace", "--stemmer", "english", "--stopwords", "english"];
    let index = build(&scratch, "stemmed", &more, &input);
    assert_eq!(terms(&index), ["##ing", "C++", "The", "c++", "play", "x"]);
}

/// The inputs that were reported.
#[test]
fn the_reported_words_are_whole() {
    let Some(folder) = shared("reports/38-combining-marks") else { return };
    let scratch = Scratch::new();
    let index = build(&scratch, "words", &PLAIN, &folder.join("docs.jsonl"));
    for word in &WORDS[..8] {
        assert_eq!(analyzed(&index, word).len(), 1, "{word}");
    }
    assert_eq!(found(&index, "हिन्दी"), ["d0"]);
    assert_eq!(found(&index, "café"), ["d3", "d4"]);
    let Some(folder) = shared("reports/39b-turkish-case") else { return };
    let more = ["--stemmer", "turkish", "--stopwords", "none"];
    let index = build(&scratch, "turkish", &more, &folder.join("docs.jsonl"));
    let found = analyzed(&index, "ISPARTA ısparta İSTANBUL istanbul KIZ kız");
    assert!(found.chunks(2).all(|two| two[0] == two[1]), "{found:?}");
}
