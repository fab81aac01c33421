//! Tests of what the first bytes and the name of a file say.

use super::*;
use proptest::prelude::*;

#[test]
fn names_tell_formats() {
    for (name, format) in [
        ("a.jsonl", Some(Format::Jsonl)),
        ("x/b.JSON.gz", Some(Format::Jsonl)),
        ("c.ndjson.zst", Some(Format::Jsonl)),
        ("d.tsv.zstd", Some(Format::Tsv)),
        ("e.Markdown", Some(Format::Text)),
        ("f.md.gz", Some(Format::Text)),
        ("d.CSV.bz2", Some(Format::Csv)),
        ("d.plaintext.xz", Some(Format::Plaintext)),
        ("tsv", None),
        ("g.gz", None),
        ("h.tsv.gz.gz", None),
        ("i.warc.gz", Some(Format::Warc)),
        ("i.warc.wet.gz", Some(Format::Warc)),
        ("j.HTM", Some(Format::Html)),
        ("k.html.zst", Some(Format::Html)),
        ("l.trec.gz", Some(Format::Trec)),
        ("m.pdf", None),
        ("", None),
    ] {
        assert_eq!(Format::by_name(Path::new(name)), format, "{name}");
    }
}

#[test]
fn formats_print_as_they_read() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "TSV".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected jsonl, tsv, text, html, warc, trec, json, csv, plaintext, mediawiki or vectors, found `TSV`"
    );
}

#[test]
fn content_tells_formats() {
    for (head, format) in [
        (&b""[..], Ok(Format::Text)),
        (b" \n\r\n {\"a\":1}", Ok(Format::Jsonl)),
        (b"\xef\xbb\xbf{", Ok(Format::Jsonl)),
        (b"1\tone text\n2\ttwo\n\n3\tthr", Ok(Format::Tsv)),
        (b"1\tcut off", Ok(Format::Tsv)),
        (b"1\ta\n2\tb\n3\tc\nnone\n", Ok(Format::Tsv)),
        (b"1\ta\nnone\n3\tc\nnone\n", Ok(Format::Text)),
        (b"two words\ttab\n", Ok(Format::Text)),
        (b"\tindented\n", Ok(Format::Text)),
        (b"title\n1\ta\n2\tb\n", Ok(Format::Text)),
        ("Grüße aus Köln".as_bytes(), Ok(Format::Text)),
        (b"Gr\xfc\xdfe aus K\xf6ln", Ok(Format::Text)),
        (b"a\xe2\x82", Ok(Format::Text)),
        (b"WARC/1.0\r\nWARC-Type: warcinfo", Ok(Format::Warc)),
        (b"WARC/0.18\nWARC-Type: warcinfo", Ok(Format::Warc)),
        (b"WARC/x", Ok(Format::Text)),
        (b"\n<doc>\n<DOCNO>1", Ok(Format::Trec)),
        (b"<DOC id=1>x</DOC>", Ok(Format::Trec)),
        (b"<doc>x", Ok(Format::Text)),
        (b"<documents><docno>", Ok(Format::Text)),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>", Ok(Format::Html)),
        (b"<html lang=en>", Ok(Format::Html)),
        (b"<HTML\n>", Ok(Format::Html)),
        (b"<mediawiki x", Ok(Format::Mediawiki)),
        (b"[ {\"id\": 1}]", Ok(Format::Json)),
        (b"[]", Ok(Format::Json)),
        (b"[1] a note", Ok(Format::Text)),
        (b"{\n \"id\": 1", Ok(Format::Json)),
        (b"{\"id\": 1,\n\"text\": 2}", Ok(Format::Json)),
        (b"{\"id\": \"broken\n{\"id\": 1}", Ok(Format::Jsonl)),
        (b"id,\"text\"\r\n1,x\n", Ok(Format::Csv)),
        (b"Title;ID\n", Ok(Format::Csv)),
        (b"a text, with an id\n", Ok(Format::Text)),
        (b"\x01\x02 protobuf \x0f", Err(Unknown::Binary)),
        (b"PK\x02\x04\x00\x00", Err(Unknown::Binary)),
        (b"{\"index\": {\"_id\": \"1\"}}\n{\"text\": \"x\"}\n", Err(Unknown::Bulk)),
        (b"{\"create\":{}}\r\n{\"text\":\"x\"}\r\n", Err(Unknown::Bulk)),
        (b"{\"index\": 7}\n", Ok(Format::Jsonl)),
        (b"{\"index\": {\"text\": \"x\"}}\n", Ok(Format::Jsonl)),
        (b"{\"index\": {}, \"id\": 1}\n", Ok(Format::Jsonl)),
        (b"abc\xff\xfe\x80\x81", Err(Unknown::Binary)),
        (b"{\0\"\0a\0\"\0", Err(Unknown::Utf16)),
        (b"\0{\0\"\0a\0\"", Err(Unknown::Utf16)),
    ] {
        assert_eq!(Format::by_content(head), format, "{}", String::from_utf8_lossy(head));
    }
}

#[test]
fn a_nul_far_behind_is_text() {
    let mut head = vec![b'a'; BINARY_HEAD_BYTES + 1];
    head[BINARY_HEAD_BYTES] = 0;
    assert_eq!(Format::by_content(&head), Ok(Format::Text));
    head[BINARY_HEAD_BYTES - 1] = 0;
    assert_eq!(Format::by_content(&head), Err(Unknown::Binary));
}

#[test]
fn magic_bytes_tell_compression() {
    assert_eq!(Compression::by_content(b"\x1f\x8b\x08\x00"), Compression::Gzip);
    assert_eq!(Compression::by_content(b"\x28\xb5\x2f\xfd"), Compression::Zstd);
    assert_eq!(Compression::by_content(b"\x5e\x2a\x4d\x18\x04"), Compression::Zstd);
    assert_eq!(Compression::by_content(b"BZh91A"), Compression::Bzip2);
    assert_eq!(Compression::by_content(b"BZh9\x17rE8P\x90"), Compression::Bzip2);
    assert_eq!(Compression::by_content(b"\xfd7zXZ\0"), Compression::Xz);
    for head in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"{\"id\"", b"\x60\x2a\x4d\x18"] {
        assert_eq!(Compression::by_content(head), Compression::None);
    }
}

proptest! {
    #[test]
    fn law_valid_text_cut_anywhere_is_not_binary(text in "\\PC{0,50}", cut in 0usize..200) {
        let head = &text.as_bytes()[..cut.min(text.len())];
        prop_assert_ne!(Format::by_content(head), Err(Unknown::Binary));
        prop_assert_eq!(invalid_bytes(head), 0);
    }

    #[test]
    fn law_any_bytes_get_an_answer(head in proptest::collection::vec(any::<u8>(), 0..50)) {
        if let Ok(format) = Format::by_content(&head)
            && matches!(format, Format::Jsonl | Format::Tsv | Format::Text)
        {
            prop_assert!(!head.contains(&0), "{format} with a NUL");
        }
    }
}
