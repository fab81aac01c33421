//! A collection comes to the same index in whatever form it is, and what cannot be read is refused.

use crate::support::*;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Compresses as bzip2 and xz, in three streams.
fn bzip2_and_xz(bytes: &[u8]) -> [Vec<u8>; 2] {
    let mut packed = [Vec::new(), Vec::new()];
    let size = bytes.len().div_ceil(3).max(1);
    for part in bytes.chunks(size) {
        let mut e = bzip2::write::BzEncoder::new(&mut packed[0], bzip2::Compression::fast());
        e.write_all(part).unwrap();
        e.finish().unwrap();
        let mut e = liblzma::write::XzEncoder::new(&mut packed[1], 0);
        e.write_all(part).unwrap();
        e.finish().unwrap();
    }
    packed
}

/// Names and texts of documents, on one line each; more than a piece.
fn rows() -> Vec<(String, String)> {
    let collection = Collection::new(16, 2500, 60);
    let rows = collection.docs.iter().map(|doc| {
        let text = doc.text.replace(['\n', '\r', '\t'], " ");
        (doc.name.clone().unwrap(), text.trim().to_string())
    });
    rows.collect()
}

/// Builds from a file with these bytes, and compares with another index in all but where the
/// documents lie and how their text is written there.
fn same(scratch: &Scratch, expected: &Path, name: &str, bytes: &[u8], more: &[&str]) {
    let input = scratch.write(name, bytes);
    let index = scratch.path(format!("{name}.index"));
    build(&index, args![input].into_iter().chain(more.iter().map(Into::into)));
    let names: Vec<String> = files(expected).into_keys().collect();
    let of_form = |name: &&String| name.ends_with(".locations") || name.ends_with(".hashes");
    let places: Vec<&str> = names.iter().filter(of_form).map(|name| &**name).collect();
    assert_same_index(&index, expected, &places);
    let last = info(&index)["documents"].as_u64().unwrap() - 1;
    let show = |index: &Path| {
        let shown = millrace(args!["show", "--index", index, "--docid", last.to_string()]).ok();
        shown.text().lines().take(3).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(show(&index), show(expected), "{name}");
}

#[test]
fn all_forms_come_to_the_same_index() {
    let scratch = Scratch::new();
    let rows = rows();
    let object = |(name, text): &(String, String)| json!({"id": name, "contents": text});
    let lines: String = rows.iter().map(|row| object(row).to_string() + "\n").collect();
    let expected = scratch.path("expected");
    build(&expected, args![scratch.write("lines.jsonl", &lines)]);
    let objects: Vec<_> = rows.iter().map(object).collect();
    let same =
        |name: &str, bytes: &[u8], more: &[&str]| same(&scratch, &expected, name, bytes, more);
    same("array.json", serde_json::to_string(&objects).unwrap().as_bytes(), &[]);
    same("pretty.json", serde_json::to_string_pretty(&objects).unwrap().as_bytes(), &[]);
    let apart: Vec<_> = objects.iter().map(|o| serde_json::to_string_pretty(o).unwrap()).collect();
    same("apart.json", apart.join("\n").as_bytes(), &[]);
    let [packed, squeezed] = bzip2_and_xz(lines.as_bytes());
    same("lines.jsonl.bz2", &packed, &[]);
    same("lines.jsonl.xz", &squeezed, &[]);
    let plain: String = rows.iter().map(|(name, text)| format!("{name} {text}\n")).collect();
    same("pisa.plaintext", plain.as_bytes(), &[]);
    same("pisa", plain.as_bytes(), &["--format", "plaintext"]);
    let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\"").replace(' ', "\n"));
    let csv = |head: &str| {
        let row = |(name, text): &(String, String)| format!("{},x,{name}\r\n", quote(text));
        head.to_string() + &rows.iter().map(row).collect::<String>()
    };
    same("table.csv", csv("text,year,id\r\n").as_bytes(), &[]);
    same("table", csv("text,year,id\r\n").as_bytes(), &[]);
    let asked = ["--id-field", "Key", "--text-field", "Words"];
    same("asked.csv", csv("Words,id,Key\n").as_bytes(), &asked);
    let marco: String = rows
        .iter()
        .map(|(name, text)| {
            json!({"docid": "msmarco_doc_1", "passage": text, "pid": name, "spans": "(0,1)"})
                .to_string()
                + "\n"
        })
        .collect();
    same("marco.jsonl", marco.as_bytes(), &[]);
    let fields: String = rows
        .iter()
        .map(|(name, text)| {
            let (a, b) = text.split_once(' ').unwrap_or((text, ""));
            json!({"a": a, "id": "no", "k\u{e9}y": name, "contents": "no", "b": b}).to_string()
                + "\n"
        })
        .collect();
    let asked =
        ["--id-field", "none", "--id-field", "k\u{e9}y", "--text-field", "b", "--text-field", "a"];
    same("fields.jsonl", fields.as_bytes(), &asked);
}

#[test]
fn a_dump_of_a_wiki_is_its_articles() {
    let Some(dump) = shared("formats/mediawiki/enwiki-pages-articles-shortened.xml.bz2") else {
        return;
    };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![dump]);
    let found = info(&index);
    // As many as its pages of namespace 0 without <redirect>, counted by another program.
    assert_eq!(found["documents"], 106);
    let query = |text: &str| {
        let job = millrace(args!["query", "--quiet", "--index", index, "--format", "jsonl"]);
        job.stdin(text).ok().json_lines().remove(0)
    };
    assert_eq!(query("anarchism philosophy\n")["hits"][0]["name"], "Anarchism");
    for markup in ["infobox", "nbsp", "reflist"] {
        assert_eq!(query(markup)["hits"].as_array().unwrap().len(), 0, "{markup}");
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let job = |name: &str, bytes: &[u8]| {
        millrace(args!["build", "--index", index, scratch.write(name, bytes)])
    };
    let binary: Vec<u8> =
        (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for name in ["binary", "binary.txt", "binary.txt.gz"] {
        let bytes = if name.ends_with("gz") { gzip(&binary, 1) } else { binary.clone() };
        job(name, &bytes).fails(1).says("binary data, not text").says(name);
    }
    job("toy.ciff", b"\x08\x01\x10\x02text").fails(1).says("this is an index, not documents");
    let wrong = b"{\"pid\": \"1\", \"words\": \"mill\"}\n{\"pid\": \"2\", \"words\": \"race\"}\n";
    let said = job("wrong.jsonl", wrong).fails(1);
    let said = said.says("no text in any of 2 documents").says("has the fields pid, words");
    said.says("--text-field");
    job("wrong.csv", b"a,b\n1,2\n").fails(1).says("no text column").says("--text-field");
    assert!(!index.join("CURRENT").exists());
    let folder = scratch.path("folder");
    scratch.write("folder/a.txt", "a text");
    scratch.write("folder/b.txt", &binary);
    let outcome = millrace(args!["build", "--index", index, folder]).ok();
    outcome.says("1 document,").says("1 file of no known format ignored");
}
