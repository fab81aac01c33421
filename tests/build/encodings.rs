//! Input that is not UTF-8: it is decoded, or counted, or refused.

use super::misread::{build_of, is_silent, names, terms};
use crate::support::*;

/// A text in UTF-16 with a mark.
fn utf16(text: &str, is_big: bool) -> Vec<u8> {
    let bytes = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
    format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect()
}

#[test]
fn texts_in_other_encodings_are_those_in_utf8() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let utf32 = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}").chars().flat_map(|char| u32::from(char).to_le_bytes()).collect()
    };
    let latin1 =
        |text: &str| -> Vec<u8> { text.chars().map(|char| u32::from(char) as u8).collect() };
    let trec = "<DOC><DOCNO>x</DOCNO>Café Ulm</DOC>\n";
    let declared = format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n{trec}");
    for (name, text, named) in [
        ("a.jsonl", "{\"id\":\"x\",\"text\":\"Café Ulm\"}\n", "x"),
        ("a.json", "[{\"id\":\"x\",\n\"text\":\"Café Ulm\"}]\n", "x"),
        ("a.csv", "id,text\nx,\"Café\nUlm\"\n", "x"),
        ("a.tsv", "x\tCafé Ulm\n", "x"),
        ("a.plaintext", "x Café Ulm\n", "x"),
        ("a.trec", trec, "x"),
        ("a.txt", "Café Ulm", "a.txt"),
        ("a.html", "<p>Café <b>Ulm</b>", "a.html"),
        ("no-ending", "{\"id\":\"x\",\"text\":\"Café Ulm\"}\n", "x"),
    ] {
        for (bytes, more) in [
            (utf16(text, false), &[][..]),
            (utf16(text, true), &[]),
            (gzip(&utf16(text, true), 2), &[]),
            (utf16(text, false)[2..].to_vec(), &["--encoding", "utf-16le"]),
            (utf32(text), &[]),
            (latin1(text), &["--encoding", "latin1"]),
            (zstd(&latin1(text), 1), &["--encoding", "ISO-8859-1", "--strict"]),
            (utf16(text, false), &["--encoding", "latin1"]),
            (format!("\u{feff}{text}").into(), &["--encoding", "latin1"]),
        ] {
            // Pages are decoded by themselves, by the rules of HTML, which know no UTF-32.
            let is_page = name == "a.html";
            let is_odd = bytes == utf32(text)
                || more.first() == Some(&"--encoding") && bytes == utf16(text, false)[2..];
            if is_page && is_odd {
                continue;
            }
            build_of(&scratch, name, &bytes, more).expect_status(0);
            assert_eq!((&*names(&index), &*terms(&index)), (named, "café ulm"), "{name} {more:?}");
            // What is read again is read alike.
            let queries = scratch.write("q", "ulm\n");
            let query = args![
                "query",
                "--index",
                index,
                "--format",
                "jsonl",
                "--snippets",
                "--rm3",
                "2,2,0.5",
                queries
            ];
            let hit = millrace(query).ok().json_lines()[0]["hits"][0].clone();
            if !is_page {
                assert!(hit["snippet"].as_str().unwrap().contains("Café"), "{name} {more:?} {hit}");
                let show = millrace(args!["show", "--index", index, named]).ok();
                assert!(show.text().contains("Café"), "{name} {more:?} {show:?}");
            }
        }
    }
    build_of(&scratch, "a.trec", latin1(&declared), &["--encoding", "utf-16"]).expect_status(0);
    assert_eq!(terms(&index), "café ulm");
    // XML that is ASCII where it says that it is UTF-16 is UTF-8, as if it said so.
    for (name, more) in [("UTF-8", ""), ("utf-16", ""), ("utf-32", &*" ".repeat(900))] {
        let text = format!("<?xml version=\"1.0\"{more} encoding='{name}'?>\n{trec}");
        for asked in ["latin1", "utf-16", "koi8-r"] {
            build_of(&scratch, "a.trec", &text, &["--encoding", asked]).expect_status(0);
            assert_eq!(terms(&index), "café ulm", "{name} {asked}");
        }
    }
    // A character that is cut at the end is none.
    for bytes in [utf16("x\tUlmé", false), utf16("x\tUlmé", true), utf32("x\tUlmé")] {
        build_of(&scratch, "a.tsv", &bytes[..bytes.len() - 1], &[]).expect_status(0);
        assert_eq!(terms(&index), "ulm");
    }
    build_of(&scratch, "a.jsonl", "{}\n", &["--encoding", "klingon"])
        .expect_status(2)
        .says("klingon");
    // Without a mark it is refused, and in a folder it is named.
    for name in ["a.jsonl", "a.tsv", "a.csv", "a.txt", "no-ending"] {
        let bare = &utf16("{\"id\":\"x\"}\t\n", true)[2..];
        let outcome = build_of(&scratch, name, bare, &[]).expect_status(1);
        outcome.says("UTF-16 or UTF-32 without a byte order mark");
        build_of(&scratch, name, bare, &["--format", "jsonl"]).expect_status(1).says("UTF-16");
        let bare = &utf32("{\"id\":\"x\"}\t\n")[4..];
        build_of(&scratch, name, bare, &[]).expect_status(1).says("UTF-16 or UTF-32 without a");
        if name != "no-ending" {
            scratch.write("in/b.jsonl", "{\"id\":\"b\",\"text\":\"mill\"}\n");
            scratch.write(format!("in/{name}"), bare);
            let outcome = millrace(args!["build", "--index", index, scratch.path("in")]).ok();
            outcome.says("in/").says("UTF-16 text");
            std::fs::remove_dir_all(scratch.path("in")).unwrap();
        }
    }
}

#[test]
fn an_encoded_file_of_many_pieces_gives_one_index() {
    let scratch = Scratch::new();
    let docs = Collection::new(52, 6000, 60);
    let text = String::from_utf8(docs.jsonl()).unwrap();
    let plain = scratch.write("p/c.jsonl", &text);
    let wide = scratch.write("w/c.jsonl", utf16(&text, false));
    let packed = scratch.write("g/c.jsonl.gz", gzip(&utf16(&text, true), 4));
    let indexes: Vec<_> = (0..4).map(|n| scratch.path(format!("i{n}"))).collect();
    build(&indexes[0], args![plain, "-w", "1"]);
    for (n, (input, workers)) in [(&wide, "1"), (&wide, "3"), (&packed, "2")].iter().enumerate() {
        build(&indexes[n + 1], args![input, "-w", workers]);
        assert_eq!(names(&indexes[0]), names(&indexes[n + 1]));
        // Places count the decoded bytes.
        assert_same_index(&indexes[0], &indexes[n + 1], &[]);
    }
}

#[test]
fn documents_that_are_no_utf8_are_counted_and_refused_by_strict() {
    let scratch = Scratch::new();
    let trec =
        |n: u32| [format!("<DOC><DOCNO>d{n}</DOCNO>mill ").as_bytes(), b"caf\xe9</DOC>\n"].concat();
    let some: Vec<u8> = (0..9).flat_map(trec).collect();
    let at = trec(0).len();
    let outcome = build_of(&scratch, "a.trec", &some, &[]).expect_status(0);
    let outcome = outcome.says("9 documents have bytes that are not UTF-8, the first at ");
    let outcome = outcome.says("a.trec: byte 0, ");
    is_silent(&outcome.says(format!("a.trec: byte {}; if", 4 * at)), &format!("byte {}", 5 * at));
    let strict = build_of(&scratch, "a.trec", &some, &["--strict"]).expect_status(1);
    strict.says("a.trec: byte 0: this document has bytes that are not UTF-8");
    for (name, bytes) in [
        (
            "a.jsonl",
            &b"{\"id\":\"a\",\"text\":\"caf\xe9\"}\n{\"id\":\"b\",\"text\":\"caf\xc3\xa9\"}\n"[..],
        ),
        ("a.tsv", b"a\tcaf\xe9\nb\tcaf\xc3\xa9\n"),
        ("a.csv", b"id,text\na,caf\xe9\nb,caf\xc3\xa9\n"),
    ] {
        build_of(&scratch, name, bytes, &[]).expect_status(0).says("1 documents have bytes");
        build_of(&scratch, name, bytes, &["--strict"]).expect_status(1);
    }
}

#[test]
fn lines_that_end_with_carriage_returns_alone_are_named() {
    let scratch = Scratch::new();
    for (name, bytes) in [
        ("a.jsonl", "{\"id\":1,\"text\":\"a\"}\r{\"id\":2,\"text\":\"b\"}\r"),
        ("a.tsv", "a\tmill\rb\trace\r"),
        ("a.csv", "id,text\ra,mill\r"),
        ("a.plaintext", "a mill\rb race"),
        ("no-ending", "a\tmill\rb\trace\r"),
    ] {
        build_of(&scratch, name, bytes, &[]).expect_status(1).says("carriage returns only");
    }
    for (name, bytes) in [
        ("a.jsonl", "{\"id\":1,\r\"text\":\"a\"}\r"),
        ("a.tsv", "a\tmill\rrace"),
        ("a.tsv", "a\tmill\r\nb\trace\r\n"),
        ("a.txt", "a\tmill\rb\trace"),
    ] {
        build_of(&scratch, name, bytes, &[]).expect_status(0);
    }
}

#[test]
fn reported_encodings_are_read_or_named() {
    let Some(reports) = shared("reports") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let read = |folder: &str, name: &str, more: &[&str]| {
        let bytes = std::fs::read(reports.join(folder).join(name)).unwrap();
        build_of(&scratch, name, bytes, more)
    };
    for name in ["le.jsonl", "be.jsonl", "u32.jsonl", "le.tsv", "le.txt"] {
        read("08-json-utf16", name, &[]).expect_status(0);
        assert!(!terms(&index).is_empty(), "{name}");
    }
    read("08-json-utf16", "lenobom.txt", &[]).expect_status(1).says("UTF-16");
    read("21-trec-latin1", "l.trec", &[]).expect_status(0).says("not UTF-8");
    let outcome = read("21-trec-latin1", "l.trec", &["--encoding", "latin1"]).expect_status(0);
    is_silent(&outcome, "not UTF-8");
}
