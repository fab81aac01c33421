use super::*;
use crate::input::document::KeptDocuments;
use proptest::prelude::*;

/// A record whose length is right.
fn record(kind: &str, fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\n{fields}Content-Length: {length}\r\n\r\n{content}\r\n\r\n"
    )
}

fn response(name: &str, head: &str, body: &str) -> String {
    let fields =
        format!("WARC-TREC-ID: {name}\r\nContent-Type: application/http; msgtype=response\r\n");
    record("response", &fields, &format!("HTTP/1.1 {head}\r\n\r\n{body}"))
}

fn parse(file: &[u8]) -> KeptDocuments {
    let mut kept = KeptDocuments::default();
    WarcParser::new(1 << 20).parse(PieceView::whole(file), true, &mut kept);
    kept
}

/// Names, and texts with single blanks.
fn documents(kept: &KeptDocuments) -> Vec<(&str, String)> {
    let words = |text: &[u8]| {
        String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    kept.documents.iter().map(|d| (d.0.as_deref().unwrap_or(""), words(&d.1))).collect()
}

fn assert_documents(kept: &KeptDocuments, expected: &[(&str, &str)]) {
    let found = documents(kept);
    let found: Vec<_> = found.iter().map(|(name, text)| (*name, &**text)).collect();
    assert_eq!(found, expected);
}

fn reasons(kept: &KeptDocuments) -> Vec<&'static str> {
    kept.skipped.iter().map(|skipped| skipped.3.reason()).collect()
}

#[test]
fn pages_and_conversions_are_documents() {
    let file = [
        record("warcinfo", "", "software: x"),
        record("request", "WARC-Target-URI: http://a/\r\n", "GET / HTTP/1.1\r\n\r\n"),
        response("1", "200 OK\r\nContent-Type: text/html; charset=utf-8", "<p>one<b>1</b>"),
        response("2", "200\r\nContent-Type: Application/XHTML+xml", "<script/>two"),
        response("3", "200 OK\r\ncontent-type: text/plain", "a <p> three"),
        response("4", "200 OK", "<p>four"),
        response("5", "200 OK\r\nTransfer-Encoding: chunked", "6\r\n<p>fiv\r\n1\r\ne\r\n0\r\n\r\n"),
        response("6", "200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked", "<p>six"),
        response("", "404 Not Found\r\nContent-Type: text/html", "<p>no"),
        response("", "301 Moved", ""),
        response("no", "200 OK\r\nContent-Type: image/png", "\u{89}PNG"),
        response("no", "200 OK", "a\0b"),
        response("", "bad", "x"),
        record("response", "Content-Type: text/dns\r\n", "20090101\nhost. 1 IN A 1.2.3.4"),
        record("response", "Content-Type: text/html\r\nWARC-Record-ID: <urn:7>\r\n", "<p>seven"),
        record("conversion", "WARC-Target-URI: http://8/\r\nContent-Type: text/plain\r\n", "a <p>"),
        record("Conversion", "", "nine"),
        record("resource", "Content-Type: text/html\r\n", "<p>no"),
        record("revisit", "", "HTTP/1.1 200 OK\r\n\r\n"),
        record("metadata", "", "x: y"),
    ]
    .concat();
    let kept = parse(file.as_bytes());
    assert_documents(
        &kept,
        &[
            ("1", "one1"),
            ("2", "two"),
            ("3", "a <p> three"),
            ("4", "four"),
            ("5", "five"),
            ("6", "six"),
            ("urn:7", "seven"),
            ("http://8/", "a <p>"),
            ("", "nine"),
        ],
    );
    let status = "HTTP status";
    let content = "content type";
    assert_eq!(reasons(&kept), [status, status, content, content, status, content]);
    assert_eq!(kept.skipped[0].3, Skip::HttpStatus { status: 404 });
    assert_eq!(kept.skipped[2].3.to_string(), "content type image/png");
    assert_eq!(kept.skipped[3].3.to_string(), "content type missing, and binary data");
    // Places: the record without what parts it from the next; numbers for those without a name.
    for (_, _, offset, bytes, _) in &kept.documents {
        assert!(file[*offset..].starts_with("WARC/1.0"));
        assert!(file[offset + bytes..].starts_with("\r\n\r\nWARC/"));
    }
    assert_eq!(kept.documents[8].4, 17);
}

/// ClueWeb has pages that came with other statuses; its judgements and its list of documents name
/// them.
#[test]
fn a_record_with_a_trec_name_is_a_document_whatever_its_status() {
    let file = [
        response("1", "404 Not Found\r\nContent-Type: text/html", "<p>one"),
        response("2", "301 Moved", ""),
        response("3", "206 Partial\r\nContent-Type: image/png", "x"),
        response("", "404 Not Found", "<p>no"),
    ]
    .concat();
    let kept = parse(file.as_bytes());
    assert_documents(&kept, &[("1", "one"), ("2", "")]);
    assert_eq!(reasons(&kept), ["content type", "HTTP status"]);
}

#[test]
fn a_body_that_cannot_be_inflated_is_no_text() {
    let body = |coding: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {coding}\r\n\r\n"
        );
        let content = [head.as_bytes(), body].concat();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-TREC-ID: {coding}\r\nContent-Length: {}\r\n\r\n",
            content.len()
        );
        [head.as_bytes(), &content, b"\r\n\r\n"].concat()
    };
    let text = b"<p>words ".repeat(10_000);
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    let mut damaged = zstd.clone();
    damaged[4] ^= 0x08; // A reserved bit of the frame's head.
    // A window of 2 GiB, more than a body may ask for.
    let window = [&b"\x28\xb5\x2f\xfd\x00\xa8"[..], &zstd[6..]].concat();
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff".to_vec();
    let empty = zstd::encode_all(&b""[..], 1).unwrap();
    let file = [
        body("zstd", &zstd),
        body("zstd", &damaged),
        body("zstd", &window),
        body("zstd", &zstd[..10]),
        body("gzip", &gzip),
        body("zstd", &empty),
    ]
    .concat();
    let kept = parse(&file);
    let texts: Vec<usize> = kept.documents.iter().map(|document| document.1.len()).collect();
    assert!(texts[0] > 50_000 && texts[1..] == [0], "{texts:?}");
    assert_eq!(reasons(&kept), ["broken body"; 4]);
    let told = kept.skipped[0].3.to_string();
    assert_eq!(told, "the body is zstd that cannot be inflated");
}

#[test]
fn a_record_with_a_wrong_length_is_counted_and_kept() {
    let wrong = |length: &str| {
        let page = "HTTP/1.1 200 OK\n\n<p>two";
        format!("WARC/0.18\nWARC-Type: response\nWARC-TREC-ID: 2\n{length}\n\n{page}\n\n")
    };
    let one = response("1", "200 OK", "<p>one");
    let three = response("3", "200 OK", "<p>three");
    for length in [
        "Content-Length: 5",
        "Content-Length: 26",
        "Content-Length: 200",
        "Content-Length: 99999",
        "Content-Length: 999999999999999999",
        "Content-Length: x",
        "Content-Length:",
        "x: y",
    ] {
        let file = [&*one, &*wrong(length), &*three].concat();
        let kept = parse(file.as_bytes());
        assert_documents(&kept, &[("1", "one"), ("2", "two"), ("3", "three")]);
        assert_eq!(reasons(&kept), ["broken WARC record"], "{length}");
        assert_eq!(kept.skipped[0].0, one.len());
    }
    // It is no document if it is none with the right length either; one reason is enough.
    let file =
        [&*wrong("x: y").replace("200 OK", "404 No").replace("TREC-ID", "X"), &*three].concat();
    let kept = parse(file.as_bytes());
    assert_documents(&kept, &[("3", "three")]);
    assert_eq!(reasons(&kept), ["broken WARC record"]);
}

#[test]
fn a_record_that_the_end_cuts_is_none() {
    let file = [response("1", "200 OK", "<p>one"), response("2", "200 OK", "<p>two")].concat();
    let two = response("1", "200 OK", "<p>one").len();
    for cut in two + 1..file.len() {
        let kept = parse(&file.as_bytes()[..cut]);
        let whole = file.len() - "\r\n\r\n".len();
        if cut >= whole {
            assert_documents(&kept, &[("1", "one"), ("2", "two")]);
            assert!(kept.skipped.is_empty());
            continue;
        }
        assert_documents(&kept, &[("1", "one")]);
        assert_eq!(reasons(&kept), ["broken WARC record"], "{cut}");
        assert_eq!(kept.skipped[0].0, two);
    }
}

#[test]
fn junk_between_records_is_counted() {
    let one = response("1", "200 OK", "<p>one");
    let file = ["\r\nWARC/1.0 junk\n", &*one, "\n\n \n", &*one, "x"].concat();
    let kept = parse(file.as_bytes());
    // The blank and the letter stand where a record should end, so its length is not believed.
    assert_documents(&kept, &[("1", "one"), ("1", "one x")]);
    assert_eq!(reasons(&kept), ["broken WARC record"; 3]);
    assert_eq!(
        kept.skipped[0].3.to_string(),
        "broken WARC record: expected a line such as WARC/1.0; skipped 16 bytes"
    );
    let kept = parse(b"not a WARC file");
    assert_eq!(reasons(&kept), ["broken WARC record"]);
    assert_eq!(parse(b"\xef\xbb\xbf"), KeptDocuments::default());
    assert_documents(&parse(&[b"\xef\xbb\xbf", one.as_bytes()].concat()), &[("1", "one")]);
}

#[test]
fn names_are_made_valid() {
    let mut file = response("a\u{1}?b", "200 OK", "x").into_bytes();
    let at = file.iter().position(|byte| *byte == b'?').unwrap();
    file[at] = 0xff;
    assert_documents(&parse(&file), &[("a\u{1}\u{fffd}b", "x")]);
}

proptest! {
    #[test]
    fn law_any_bytes_are_parsed(parts in proptest::collection::vec(prop_oneof![
        proptest::sample::select(vec![
            "WARC/1.0\r\n", "WARC/0.18\n", "WARC/", "WARC-Type: response\n", "WARC-Type: conversion\r\n",
            "Content-Length: 5\n", "Content-Length: 40\r\n", "Content-Length: ", "\r\n", "\n\n",
            "HTTP/1.1 200 OK\n", "Transfer-Encoding: chunked\n", "Content-Encoding: gzip\n", "<p>", "x",
        ]).prop_map(|part| part.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..5),
    ], 0..60), ends_input: bool) {
        let file = parts.concat();
        let mut kept = KeptDocuments::default();
        WarcParser::new(1 << 20).parse(PieceView::whole(&file), ends_input, &mut kept);
        let mut end = 0;
        for (_, _, offset, bytes, _) in kept.documents {
            prop_assert!(offset >= end);
            end = offset + bytes;
            prop_assert!(end <= file.len());
        }
        if kept.skipped.is_empty() && end == 0 && !file.trim_ascii().is_empty() {
            // Nothing is passed over in silence but whole records of other kinds.
            prop_assert!(file.starts_with(b"WARC/") || file.trim_ascii_start().starts_with(b"WARC/"));
        }
    }
}
