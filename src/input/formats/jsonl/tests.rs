//! Corner cases of JSON lines, and `serde_json` as the oracle.

use proptest::prelude::*;

use super::*;
use crate::input::document::KeptDocuments;

/// Parses `piece` in every way of scanning.
fn parse(piece: PieceView<'_>) -> KeptDocuments {
    let mut all = JsonlParser::all().map(|(_, mut parser)| {
        let mut kept = KeptDocuments::default();
        let line_feeds = parser.parse(piece, &mut kept);
        assert_eq!(line_feeds, memchr::memchr_iter(b'\n', piece.bytes).count() as u64);
        kept
    });
    let first = all.next().unwrap();
    all.for_each(|kept| assert_eq!(kept, first));
    first
}

/// Name and text of the only record.
fn one(line: &[u8]) -> (Option<String>, String) {
    let mut kept = parse(PieceView::whole(line));
    assert_eq!((kept.documents.len(), &kept.skipped), (1, &Vec::new()));
    let (name, text, ..) = kept.documents.remove(0);
    (name, String::from_utf8_lossy(&text).into_owned())
}

fn refused(line: &[u8]) -> Skip {
    let kept = parse(PieceView::whole(line));
    assert_eq!((kept.documents.len(), kept.skipped.len()), (0, 1));
    kept.skipped[0].3
}

fn pair(name: &str, text: &str) -> (Option<String>, String) {
    (Some(name.to_owned()), text.to_owned())
}

/// The records of WikiExtractor, whose fields may come in any order, and no others.
#[test]
fn addresses_of_an_extracted_wiki_are_no_text() {
    let url = "https://en.wikipedia.org/wiki?curid=12";
    for line in [
        format!(r#"{{"id":"12","revid":"7","url":"{url}","title":"Mill","text":"race"}}"#),
        format!(r#"{{"title":"Mill","text":"race","url":"{url}","id":12,"revid":7}}"#),
        format!(r#"{{"id":"12","revi\u0064":null,"url":"{url}","title":"Mill","text":"race"}}"#),
    ] {
        assert_eq!(one(line.as_bytes()), pair("12", "Mill\nrace"), "{line}");
        let more = line.replacen('{', r#"{"lang":"en","#, 1);
        assert!(one(more.as_bytes()).1.contains(url), "{more}");
        let other = line.replace("\"id\"", "\"docid\"");
        assert!(one(other.as_bytes()).1.contains(url), "{other}");
        let fewer = line.replace(r#","title":"Mill""#, "").replace(r#""title":"Mill","#, "");
        assert!(one(fewer.as_bytes()).1.contains(url), "{fewer}");
    }
    let line = format!(r#"{{"id":"12","revid":"7","url":"{url}","title":"Mill","text":"race"}}"#);
    for (names, texts, expected) in [
        (&["id"][..], &[][..], "Mill\nrace"),
        (&[], &["url"], url),
        (&["revid"], &[], &format!("{url}\nMill\nrace")),
    ] {
        let owned = |fields: &[&str]| fields.iter().map(|field| field.to_string()).collect();
        let mut kept = KeptDocuments::default();
        let mut parser = JsonlParser::new();
        parser.take_fields(&Fields { names: owned(names), texts: owned(texts) });
        parser.parse(PieceView::whole(line.as_bytes()), &mut kept);
        assert_eq!(String::from_utf8_lossy(&kept.documents[0].1), *expected, "{names:?} {texts:?}");
    }
}

#[test]
fn places_count_from_the_piece_and_the_file() {
    let bytes = b"{\"id\":\"a\",\"text\":\"x\"}\r\n \r\n[1]\n{\"id\":7,\"text\":\"y\\nz\"}";
    let kept = parse(PieceView { bytes, offset: 1000, line: 50 });
    let documents = vec![
        (Some("a".into()), b"x".to_vec(), 0, 21, 50),
        (Some("7".into()), b"y\nz".to_vec(), 30, 22, 53),
    ];
    assert_eq!(kept, KeptDocuments { documents, skipped: vec![(26, 52, 3, Skip::NotAnObject)] });
}

#[test]
fn the_best_key_names_the_document() {
    let line = br#"{"docno":"d","docid":"c","id":"a","_id":"b","id":"z"}"#;
    assert_eq!(one(line), pair("a", ""));
    assert_eq!(one(br#"{"docno":"d","_id":-1.50E3}"#), pair("-1.50E3", ""));
    assert_eq!(one(br#"{"id":null,"docid":"","docno":"d"}"#), pair("d", ""));
    assert_eq!(one(br#"{"id":{"id":"x"},"_id":[1]}"#), (None, String::new()));
    assert_eq!(one(br#"{"\u0069d":"\u00e4\"1"}"#), pair("ä\"1", ""));
    assert_eq!(one(b"{\"id\":\"a\xffb\\u0020\"}"), pair("a\u{fffd}b ", ""));
    assert_eq!(one(br#"{"id\"x":"a","id\u0022":"b","\u005fid":"c","idx":"d"}"#), pair("c", ""));
    assert_eq!(one(b"{}"), (None, String::new()));
}

#[test]
fn texts_are_joined_in_their_order() {
    let line = br#"{"body":"b","x":"no","title":"t\tt","url":null,"te\u0078t":"u","body":"c"}"#;
    assert_eq!(one(line), (None, "b\nt\tt\nu\nc".into()));
    assert_eq!(one(br#"{"contents":"only", "Text":"no"}"#), (None, "only".into()));
    assert_eq!(one(br#"{"title":"","text":"a"}"#), (None, "\na".into()));
    let raw = parse(PieceView::whole(b"{\"text\":\"\xff\x00\x1f\xe2\x82\"}"));
    assert_eq!(raw.documents[0].1, b"\xff\x00\x1f\xe2\x82");
}

#[test]
fn refusals_say_where_and_why() {
    assert_eq!(refused(br#"{"text":5}"#), Skip::NotAString { field: "text" });
    assert_eq!(refused(br#"{"url":{"a":1},"#), Skip::NotAString { field: "url" });
    assert_eq!(refused(br#"{"url":[1,{"a":"b"}]}"#), Skip::NotAString { field: "url" });
    assert_eq!(refused(b"\"text\""), Skip::NotAnObject);
    for (line, at, expected) in [
        (&b"hello"[..], 0, "`{`"),
        (b"{\"a\":1,}", 7, "a key in quotes"),
        (b"{\"a\" 1}", 5, "`:`"),
        (b"{\"a\":1 \"b\":2}", 7, "`,` or `}`"),
        (b"{\"a\":01}", 6, "`,` or `}`"),
        (b"{\"text\":nil}", 8, "a value"),
        (b"{\"text\":}", 8, "a value"),
        (b"{} {}", 3, "the end of the line"),
        (b"{\"text\":\"a\\xb\"}", 10, "an escape of JSON"),
        (b"{\"text\":\"a\\n", 12, "`\"` at the end of a string"),
        (b"{\"b\":[{\"c\":]}", 11, "a value"),
        (b"{", 1, "a key in quotes"),
    ] {
        let found = line.get(at).copied();
        let skip = Skip::BadJson { offset: at, column: at + 1, expected, found };
        assert_eq!(refused(line), skip, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn other_names_are_taken_where_there_is_no_usual_one() {
    for other in ["doc_id", "paper_id", "cord_uid", "uid"] {
        assert_eq!(one(format!("{{\"{other}\":\"x\",\"docno\":7}}").as_bytes()), pair("7", ""));
        assert_eq!(one(format!("{{\"{other}\":\"x\"}}").as_bytes()), pair("x", ""));
    }
    assert_eq!(one(br#"{"uid":"u","cord_uid":"c","doc_id":5}"#), pair("5", ""));
    assert_eq!(one(br#"{"Doc_id":"u","doc_id2":"c"}"#), (None, String::new()));
}

#[test]
fn other_texts_are_taken_where_none_of_the_usual_ones_is() {
    let text = |line: &str| one(line.as_bytes()).1;
    assert_eq!(text(r#"{"abstract":"a","title":"t","full_text":"f","note":"n"}"#), "a\nt\nf");
    // In any order, and whatever stands between.
    for usual in ["text", "body", "passage", "contents"] {
        assert_eq!(text(&format!(r#"{{"abstract":"a","{usual}":"u"}}"#)), "u");
        assert_eq!(text(&format!(r#"{{"{usual}":["u"],"title":"t","segment":"a"}}"#)), "u\nt");
        assert_eq!(text(&format!(r#"{{"{usual}":"","document":"a"}}"#)), "");
        assert_eq!(text(&format!(r#"{{"{usual}":null,"document":"a"}}"#)), "a");
    }
    assert_eq!(text(r#"{"url":"u","headings":"h","para\u0067raph":"p\u0061"}"#), "u\nh\npa");
    assert_eq!(
        text(r#"{"title":"t","content":{"text":"x"},"article":7,"description":["d",1,"e"]}"#),
        "t\nd\ne"
    );
    assert_eq!(text(r#"{"title":"t","content":[{"text":"x"}]}"#), "t");
    let kept = parse(PieceView::whole(b"{\"content\":\"a\",\"x\":}\n{\"content\":\"b\"}"));
    assert_eq!((kept.skipped.len(), &*kept.documents[0].1), (1, &b"b"[..]));
    // What is asked for is taken, and nothing else.
    let fields = Fields { texts: vec!["abstract".into()], ..Fields::default() };
    let mut kept = KeptDocuments::default();
    let line = PieceView::whole(br#"{"text":"t","abstract":["a"],"content":"c"}"#);
    let mut parser = JsonlParser::new();
    parser.take_fields(&fields);
    parser.parse(line, &mut kept);
    assert_eq!(kept.documents[0].1, b"a");
}

#[test]
fn strings_of_a_list_are_joined() {
    let text = |line: &str| one(line.as_bytes()).1;
    assert_eq!(text(r#"{"contents":["one", "tw\u006f" ,"",null],"title":"t"}"#), "one\ntwo\n\nt");
    assert_eq!(text(r#"{"text":[]}"#), "");
    assert_eq!(text(r#"{"text":[[1],{"a":"b"}],"title":"t"}"#), "t");
    assert_eq!(text(r#"{"text":[5,"a",{"b":"c"}]}"#), "a");
    assert!(matches!(refused(br#"{"text":["a",]}"#), Skip::BadJson { column: 14, .. }));
}

#[test]
fn the_record_after_a_bad_one_is_read() {
    let kept = parse(PieceView::whole(b"\xef\xbb\xbf{\"text\":\"open\n{\"id\":\"b\"}\n{\"a\n\n"));
    assert_eq!(kept.documents, vec![(Some("b".into()), Vec::new(), 17, 10, 2)]);
    let places: Vec<_> = kept.skipped.iter().map(|s| (s.0, s.1, s.2)).collect();
    assert_eq!(places, [(3, 1, 13), (28, 3, 3)]);
    let Skip::BadJson { offset, column, found, .. } = kept.skipped[0].3 else { panic!() };
    assert_eq!((offset, column, found), (16, 14, Some(b'\n')));
}

#[test]
fn a_long_text_does_not_keep_its_memory() {
    let line = format!("{{\"text\":\"{}\\n\"}}", "x".repeat(2 * KEPT_BUFFER_BYTES));
    let mut parser = JsonlParser::new();
    let mut kept = KeptDocuments::default();
    parser.parse(PieceView::whole(line.as_bytes()), &mut kept);
    assert_eq!(kept.documents[0].1.len(), 2 * KEPT_BUFFER_BYTES + 1);
    assert_eq!(parser.buffers.text.capacity(), 0);
}

/// Members and how their characters are escaped: 0 as they are where JSON allows it, 1 short
/// escapes, 2 by number.
fn members() -> impl Strategy<Value = Vec<(String, String, u8)>> {
    let key = proptest::sample::select(&["id", "_id", "docno", "title", "text", "body", "x", "é"]);
    let text = prop_oneof![
        any::<String>(),
        proptest::collection::vec(
            proptest::sample::select(&[
                "\n",
                "word",
                "\\",
                "\"",
                "😀",
                "\u{7f}",
                " a longer piece"
            ]),
            0..40
        )
        .prop_map(|parts| parts.concat()),
    ];
    proptest::collection::vec((key.prop_map(str::to_owned), text, 0u8..3), 0..6)
}

fn quoted(text: &str, style: u8) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match (char, style) {
            (_, 2) => {
                char.encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            }
            ('\n', _) => out.push_str("\\n"),
            ('"', _) => out.push_str("\\\""),
            ('\\', _) => out.push_str("\\\\"),
            ('/', 1) => out.push_str("\\/"),
            (control @ '\0'..' ', _) => out.push_str(&format!("\\u{:04x}", control as u32)),
            _ => out.push(char),
        }
    }
    out + "\""
}

proptest! {
    #[test]
    fn oracle_reads_what_serde_json_reads(records in proptest::collection::vec(members(), 1..4)) {
        let mut input = String::new();
        for members in &records {
            let members: Vec<_> = members
                .iter()
                .map(|(key, text, style)| format!("{} : {}", quoted(key, *style), quoted(text, *style)))
                .collect();
            input += &format!(" {{{}}}\n", members.join(" ,"));
        }
        let kept = parse(PieceView::whole(input.as_bytes()));
        prop_assert_eq!(kept.skipped.len(), 0);
        prop_assert_eq!(kept.documents.len(), records.len());
        for ((members, line), ours) in records.iter().zip(input.lines()).zip(kept.documents) {
            let whole: serde_json::Value = serde_json::from_str(line).unwrap();
            for (key, ..) in members {
                // Of a key given twice serde_json keeps the last value.
                let last = members.iter().rev().find(|(k, ..)| k == key).map(|(_, t, _)| t.as_str());
                prop_assert_eq!(whole[key].as_str(), last);
            }
            let texts: Vec<_> = members
                .iter()
                .filter(|(k, ..)| ["title", "text", "body"].contains(&k.as_str()))
                .map(|(_, text, _)| text.as_str())
                .collect();
            prop_assert_eq!(String::from_utf8(ours.1).unwrap(), texts.join("\n"));
            let name = ["id", "_id", "docno"].iter().find_map(|key| {
                members.iter().find(|(k, text, _)| k == key && !text.is_empty())
            });
            prop_assert_eq!(ours.0, name.map(|(_, text, _)| text.clone()));
            prop_assert_eq!(&input[ours.2..ours.2 + ours.3], line);
        }
    }

    #[test]
    fn law_any_bytes_are_split_into_lines(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>(), proptest::sample::select(b"{}[]\":,\\\nun\r t0123abc".as_slice()),
            ],
            0..400,
        ),
    ) {
        let kept = parse(PieceView { bytes: &bytes, offset: 1, line: 1 });
        let mut places: Vec<_> = kept.documents.iter().map(|d| (d.2, d.4, d.3)).collect();
        places.extend(kept.skipped.iter().map(|s| (s.0, s.1, s.2)));
        places.sort_unstable();
        let mut offset = 0;
        let mut expected = Vec::new();
        for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if text.iter().any(|byte| !b" \t\r".contains(byte)) {
                expected.push((offset, line, length_without_return(text)));
            }
            offset += text.len() + 1;
        }
        prop_assert_eq!(places, expected);
    }
}
