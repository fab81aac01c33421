//! Words of all scripts: what belongs to a word, one spelling for equal texts, what is not seen,
//! capital letters of Turkish, texts that are cut already, spellings that are folded, and letters
//! that no tokenizer cuts.

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

/// Spellings that are one with `--fold`, and others that are two.
const FOLDED: [(&str, &str); 22] = [
    ("H\u{2082}O", "h2o"),
    ("km\u{b2}", "km2"),
    ("5 \u{b5}m", "5 \u{3bc}m"),
    ("\u{2126}", "\u{3c9}"),
    ("\u{212b}ngstr\u{f6}m", "angstrom"),
    ("\u{ff2d}\u{ff30}\u{ff13}", "mp3"),
    ("\u{fb01}nd", "find"),
    ("\u{2163}", "iv"),
    ("Caf\u{e9}", "cafe"),
    ("cafe\u{301}", "CAF\u{c9}"),
    ("M\u{fc}ller", "muller"),
    ("Stra\u{df}e", "strasse"),
    ("\u{c6}on \u{153}uvre", "aeon oeuvre"),
    ("\u{141}\u{f3}d\u{17a}", "lodz"),
    ("\u{de}\u{f3}r \u{d8}re \u{111}i", "thor ore di"),
    ("H\u{e0} N\u{1ed9}i", "ha noi"),
    (
        "\u{1f48}\u{3b4}\u{3c5}\u{3c3}\u{3c3}\u{3b5}\u{3cd}\u{3c2}",
        "\u{3bf}\u{3b4}\u{3c5}\u{3c3}\u{3c3}\u{3b5}\u{3c5}\u{3c2}",
    ),
    ("\u{5de}\u{5d5}\u{5b9}\u{5e8}\u{5b6}\u{5d4}", "\u{5de}\u{5d5}\u{5e8}\u{5d4}"),
    ("\u{627}\u{644}\u{639}\u{64e}\u{631}\u{64e}\u{628}", "\u{627}\u{644}\u{639}\u{631}\u{628}"),
    ("\u{ff12}\u{bd}", "2 1/2"),
    ("10\u{b2}", "10 2"),
    ("\u{2460}\u{2461}", "1 2"),
];

#[test]
fn folded_spellings_are_one() {
    let scratch = Scratch::new();
    let line = |(n, (text, _)): (usize, &(&str, &str))| {
        format!("{{\"id\": \"d{n:02}\", \"text\": \"{text}\"}}\n")
    };
    let mut lines: String = FOLDED.iter().enumerate().map(line).collect();
    let whole = "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} \u{e19}\u{e49}\u{e33} \u{304c} \u{439} \u{623}\u{62d}";
    lines += &format!("{{\"id\": \"whole\", \"text\": \"{whole}\"}}\n");
    let input = scratch.write("docs.jsonl", lines);
    let mut before = None;
    for indexer in ["fast", "wei11"] {
        let with = |name: &str, more: &[&str]| {
            let more = [&PLAIN[..], &["--indexer", indexer], more].concat();
            build(&scratch, &format!("{name}-{indexer}"), &more, &input)
        };
        let plain = with("plain", &[]);
        let folded = with("folded", &["--fold"]);
        for (n, (text, other)) in FOLDED.iter().enumerate() {
            let terms = analyzed(&folded, text);
            assert_eq!(terms, analyzed(&folded, other), "{text}");
            assert!(terms.iter().all(|term| term.chars().all(char::is_alphanumeric)), "{text}");
            assert!(found(&folded, other).contains(&format!("d{n:02}")), "{text}");
            // The composed form is one without folding.
            let apart = n != 3 && n != 9;
            assert_eq!(analyzed(&plain, text) != analyzed(&plain, other), apart, "{text}");
        }
        assert_eq!(analyzed(&folded, whole), analyzed(&plain, whole));
        assert_eq!(found(&folded, "\u{304b}"), [""; 0]);
        let settings = &info(&folded)["settings"];
        assert_eq!(
            (&settings["fold"], &info(&plain)["settings"]["fold"]),
            (&true.into(), &serde_json::Value::Null)
        );
        assert!(millrace(args!["info", "--index", folded]).ok().text().contains("words, folded"));
        // The terms of `explain` are those of the query.
        let explained = millrace(args!["explain", "--index", folded, "d00", "H2O"]).ok();
        assert!(explained.text().contains("h2o"), "{explained:?}");
        let query = args![
            "query",
            "--quiet",
            "--index",
            folded,
            "--snippets",
            "--format",
            "jsonl",
            "--query",
            "cafe"
        ];
        assert!(millrace(query).ok().text().contains("Caf\u{e9}"));
        before = Some(before.map_or(terms(&folded), |before| {
            assert_eq!(before, terms(&folded));
            before
        }));
    }
    let stopped = scratch.write("words.txt", "f\u{fc}r\nM\u{dc}LLER\n");
    let index =
        build(&scratch, "stopped", &["--fold", "--stopwords", stopped.to_str().unwrap()], &input);
    assert_eq!(
        analyzed(&index, "F\u{fc}r fur Muller m\u{fc}ller mills"),
        ["word)", "word)", "word)", "word)", "mill"]
    );
    let job = args![
        "build",
        "--index",
        scratch.path("cut"),
        "--fold",
        "--tokenizer",
        "whitespace",
        input
    ];
    millrace(job).fails(2).says("--fold does not go with --tokenizer whitespace");
}

#[test]
fn lists_of_stop_words_are_used_as_they_are_published() {
    let scratch = Scratch::new();
    let input = scratch.write("docs.jsonl", "{\"id\": \"a\", \"text\": \"the mill\"}\n");
    let text = "i me don't don clock o'clock it's the";
    let build = |words: &str, more: &[&str]| {
        let words = scratch.write("words.txt", words);
        let index = scratch.path("index");
        let job = args![
            "build",
            "-w",
            "1",
            "--memory",
            "64M",
            "--index",
            index,
            "--stopwords",
            words,
            input
        ];
        let outcome = millrace(job).args(more.iter().copied()).ok();
        let kept = analyzed(&index, text).into_iter().filter(|term| term != "word)");
        (outcome, kept.collect::<Vec<_>>().join(" "))
    };
    let (outcome, kept) = build("a\ndon't\no'clock\nit's\n", &[]);
    outcome.says("parts of others, or they have no letter: don of don't, clock of o'clock\n");
    assert_eq!(kept, "i me don don clock clock the");
    let (outcome, kept) = build(
        "| of Snowball\n\ni      | one\nme\nit\nit's | it is\ndon\ndon't\n",
        &["--stemmer", "none"],
    );
    assert!(!outcome.stderr.contains("stop words"), "{outcome:?}");
    assert_eq!(kept, "clock o clock the");
    let ciff = scratch.path("a.ciff");
    millrace(args!["export", "--index", scratch.path("index"), ciff]).ok();
    let job = args![
        "import",
        "--index",
        scratch.path("other"),
        "--stopwords",
        scratch.write("w", "won't\n"),
        ciff
    ];
    millrace(job).ok().says("won of won't");
}

#[test]
fn letters_that_are_not_cut_are_told() {
    let scratch = Scratch::new();
    let bigrams = "--tokenizer cjk-bigram";
    let none = "there is no tokenizer yet that finds words in such text";
    let english = "The mill stands by the river, and so on. ".repeat(9);
    let han = "\u{5317}\u{4eac}\u{5927}\u{5b66}\u{306f}\u{30e1}";
    let thai = "\u{e20}\u{e32}\u{e29}\u{e32}\u{e44}\u{e17}\u{e22}";
    for (n, (text, options, says)) in [
        (han.to_string(), &[][..], bigrams),
        (format!("{english}{}", han.repeat(9)), &[], bigrams),
        (format!("{english}{han}"), &[], ""),
        ("\u{d55c}\u{ad6d}\u{c5b4} \u{c0ac}\u{c804}".into(), &[], bigrams),
        (thai.into(), &[], none),
        ("\u{1781}\u{17d2}\u{1798}\u{17c2}\u{179a}".into(), &[], none),
        ("\u{1019}\u{103c}\u{1014}\u{103a}\u{1019}\u{102c}".into(), &[], none),
        ("\u{e9e}\u{eb2}\u{eaa}\u{eb2}".into(), &[], none),
        (thai.into(), &["--tokenizer", "cjk-bigram"], none),
        (han.to_string(), &["--tokenizer", "cjk-bigram"], ""),
        (han.to_string(), &["--tokenizer", "whitespace"], ""),
        ("\u{43c}\u{435}\u{43b}\u{44c}\u{43d}\u{438}\u{446}\u{430} \u{645}\u{637}\u{62d}\u{646}\u{629}".into(), &[], ""),
    ]
    .into_iter()
    .enumerate()
    {
        let input = scratch.write("d.jsonl", format!("{{\"id\": \"a\", \"text\": \"{text}\"}}\n"));
        let index = scratch.path(format!("index-{n}"));
        let job = args!["build", "-w", "1", "--memory", "64M", "--index", index, input];
        let outcome = millrace(job).args(options.iter().copied()).ok();
        let told = outcome.stderr.matches("of the letters in a sample").count();
        assert_eq!(told, usize::from(!says.is_empty()), "{outcome:?}");
        assert!(outcome.stderr.contains(says), "{outcome:?}");
    }
    let ask = |index: &str, queries: &str, more: &[&str]| {
        let job = args!["query", "--index", scratch.path(index)];
        millrace(job).args(more.iter().copied()).stdin(queries).ok()
    };
    let queries = "\u{4eac}\u{90fd}\nmill\n\u{5357}\u{4eac}\n";
    let said = ask("index-1", queries, &["--quiet"]);
    // It is told once, of the query that is answered first.
    let why = ": no term of it is in the index; its letters are mostly Chinese";
    assert!(
        ["query 1", "query 3"].iter().any(|q| said.stderr.contains(&format!("{q}{why}"))),
        "{said:?}"
    );
    assert_eq!(said.stderr.matches(bigrams).count(), 1, "{said:?}");
    ask("index-1", "\u{e20}\u{e32}\n", &[]).says(none);
    ask("index-1", "\u{c11c}\u{c6b8}\n", &["--format", "text"]);
    // Found, cut, of other letters, or hardly of such ones.
    for (index, query) in [
        ("index-0", han),
        ("index-9", queries),
        ("index-1", "unheard"),
        ("index-1", "unheard of words \u{5317}"),
    ] {
        let said = ask(index, query, &[]);
        assert!(!said.stderr.contains("letters are mostly"), "{said:?}");
    }
    let text = ask("index-1", "\u{5357}\u{4eac}\n", &["--format", "text"]);
    assert!(
        text.text()
            .contains("no term of the query is in the index; its letters are mostly Chinese"),
        "{text:?}"
    );
}

/// The inputs that were reported.
#[test]
fn the_reported_lists_and_letters_are_read() {
    let scratch = Scratch::new();
    if let Some(folder) = shared("reports/85-stopwords-file") {
        for name in ["smart.txt", "snowball.txt", "bom.txt", "plain.txt"] {
            let words = folder.join(name);
            let more = ["--stemmer", "none", "--stopwords", words.to_str().unwrap()];
            build(&scratch, name, &more, &folder.join("d.jsonl"));
        }
        assert!(!analyzed(&scratch.path("snowball.txt"), "i me").contains(&"me".into()));
    }
    if let Some(folder) = shared("reports/88-cjk-default") {
        let job = args![
            "build",
            "-w",
            "1",
            "--memory",
            "64M",
            "--index",
            scratch.path("cjk"),
            folder.join("d.jsonl")
        ];
        millrace(job).ok().says("--tokenizer cjk-bigram");
    }
    if let Some(folder) = shared("reports/80-numbers") {
        let index = build(&scratch, "numbers", &["--fold"], &folder.join("d.jsonl"));
        assert_eq!(
            analyzed(&index, "m\u{b3} 2\u{bd} H\u{2082}O \u{b5}m").join(" "),
            "m3 2 1 2 h2o \u{3bc}m"
        );
    }
}
