//! Snippets are parts of the text that was indexed: no markup, no metadata, no escapes.

use crate::support::*;
use serde_json::Value;

fn snippets(scratch: &Scratch, more: &[&str], name: &str, text: &str) -> Vec<Value> {
    let input = scratch.write(name, text);
    let index = scratch.path("index");
    _ = std::fs::remove_dir_all(&index);
    millrace(args!["build", "--quiet", "--index", index, input]).args(more.iter().copied()).ok();
    let job = args!["query", "--quiet", "--index", index, "--format", "jsonl", "--snippets"];
    let found = millrace(job).stdin("mills").ok().json_lines().remove(0);
    found["hits"].as_array().unwrap().iter().map(|hit| hit["snippet"].clone()).collect()
}

#[test]
fn snippets_are_parts_of_the_indexed_text() {
    let scratch = Scratch::new();
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Old</title><script>mill()</script><p>the mill &amp; <b>race</b>";
    let head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:1>\r\nWARC-Target-URI: http://mill.example/\r\nContent-Type: application/http\r\n";
    let warc = format!("{head}Content-Length: {}\r\n\r\n{http}\r\n\r\n", http.len());
    let html = "<html><head><style>mill {}</style><title>On mills</title></head><body class=mill><p>the<!-- mill --> mill&nbsp;&eacute;t<b>&eacute;</b>";
    let page = "<mediawiki><page><title>Mills</title><id>7</id><revision><id>8</id><timestamp>x</timestamp><text>{| class=\"mill\"\n| '''water''' [[race|mill]] &amp;amp; more\n|}</text></revision></page></mediawiki>";
    let json = r#"{"id": "1", "title": "Mills", "year": "mill 1900", "text": "a mill\nof \u00e9t\u00e9", "url": "http://mill"}"#;
    let trec = "<DOC>\n<DOCNO>mill-1</DOCNO>\n<TEXT>\nthe mill &amp; race\n</TEXT>\n</DOC>\n";
    for (name, more, text, expected) in [
        ("p.html", &[][..], html, "On mills the mill été"),
        ("d.jsonl", &[], json, "Mills a mill of été http://mill"),
        ("d.jsonl", &["--text-field", "year"], json, "mill 1900"),
        ("d.csv", &[], "id,n,text\n1,mill,\"a \"\"mill\"\", old\"\n", "a \"mill\", old"),
        ("d.tsv", &[], "1\ta mill\n", "a mill"),
        ("d.trec", &[], trec, "the mill & race"),
        ("d.warc", &[], &warc, "Old the mill & race"),
        ("d.xml", &[], page, "Mills water mill & more"),
    ] {
        let found = snippets(&scratch, more, name, text);
        let [Value::String(snippet)] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!(snippet, expected, "{name}");
    }
}

#[test]
fn a_changed_file_has_no_snippet() {
    let scratch = Scratch::new();
    let text = "{\"id\": \"1\", \"text\": \"a mill of old\"}\n";
    assert_eq!(snippets(&scratch, &[], "d.jsonl", text), ["a mill of old"]);
    let index = scratch.path("index");
    // As many bytes, and not as many words: of another document.
    scratch.write("d.jsonl", text.replace("of old", "ol dly"));
    let job = args!["query", "--quiet", "--index", index, "--format", "jsonl", "--snippets"];
    let found = millrace(job).stdin("mill").ok().json_lines().remove(0);
    assert_eq!(found["hits"][0].get("snippet"), None, "{found}");
}
