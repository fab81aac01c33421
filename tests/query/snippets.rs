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
fn matches_in_long_runs_of_letters_and_no_signs_of_wikis_are_shown() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let far = "这是一段很长的文字没有空格也没有换行".repeat(40);
    let line = |n: usize, text: &str| serde_json::json!({"id": n, "text": text}).to_string() + "\n";
    let texts =
        [&format!("{far}北京大学在这里。{far}"), &format!("mill {far} 北京大学"), "北京大学"];
    let lines: String = texts.iter().enumerate().map(|(n, text)| line(n, text)).collect();
    let input = scratch.write("c.jsonl", lines);
    millrace(args!["build", "--quiet", "--index", index, "--tokenizer", "cjk-bigram", input]).ok();
    let job = args!["query", "--quiet", "--index", index, "--format", "jsonl", "--snippets"];
    let found = millrace(job).stdin("北京大学").ok().json_lines().remove(0);
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 3);
    for hit in hits {
        let snippet = hit["snippet"].as_str().unwrap();
        assert!(snippet.contains("北京大学") && snippet.chars().count() < 170, "{snippet}");
    }
    let text = "A mill.\n==History==\nIt is old.\n=== Early mills ===\n* wheel\n: x == y\n";
    let page = format!(
        "<mediawiki><page><title>Mills</title><revision><text>{text}</text></revision></page></mediawiki>"
    );
    let found = snippets(&scratch, &[], "w.xml", &page);
    assert_eq!(found, ["Mills A mill. History It is old. Early mills wheel x == y"]);
    // Elsewhere they are part of the text.
    let found = snippets(&scratch, &[], "w.jsonl", &line(1, "a mill\n==History=="));
    assert_eq!(found, ["a mill ==History=="]);
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
