//! Input that other programs write, and of which nothing is to be misread without a word: names and
//! texts in fields of other names.

use crate::support::*;
use std::path::Path;

/// Builds an index of a file without stemming, in which each word is a term.
pub(super) fn build_of(
    scratch: &Scratch,
    name: &str,
    bytes: impl AsRef<[u8]>,
    more: &[&str],
) -> Outcome {
    let input = scratch.write(name, bytes);
    let job = millrace(args!["build", "--index", scratch.path("index"), "--stemmer", "none"]);
    job.args(args!["--stopwords", "none", "--memory", "64M", "-w", "1"]).args(more).arg(input).run()
}

/// The names of an index, in order.
pub(super) fn names(index: &Path) -> String {
    let rows = millrace(args!["dump", "--index", index, "documents"]).ok().json_lines();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap().to_string()).collect();
    names.join(" ")
}

/// The terms of an index, sorted.
pub(super) fn terms(index: &Path) -> String {
    let rows = millrace(args!["dump", "--index", index, "terms"]).ok().json_lines();
    let mut terms: Vec<_> =
        rows.iter().map(|row| row["term"].as_str().unwrap().to_string()).collect();
    terms.sort();
    terms.join(" ")
}

pub(super) fn is_silent(outcome: &Outcome, what: &str) {
    assert!(!outcome.stderr.contains(what), "`{what}` is in\n{outcome:?}");
}

#[test]
fn documents_are_named_by_other_fields_where_there_is_no_usual_one() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let lines = "{\"doc_id\":\"a\",\"text\":\"one\"}\n{\"doc_id\":\"x\",\"docno\":\"b\",\"text\":\"two\"}\n";
    let outcome = build_of(&scratch, "a.jsonl", lines, &[]).expect_status(0);
    is_silent(&outcome, "have no name");
    assert_eq!(names(&index), "a b");
    build_of(&scratch, "a.csv", "cord_uid,abstract\nc,one\nd,two\n", &[]).expect_status(0);
    assert_eq!((names(&index), terms(&index)), ("c d".into(), "one two".into()));
    // What nobody knows as a name is told, with what could be one.
    let line =
        |n: u32| format!("{{\"key\":\"k{n}\",\"lang\":\"en\",\"text\":\"mill race {n}\"}}\n");
    let lines: String = (0..90).map(line).collect();
    let outcome = build_of(&scratch, "k.jsonl", &lines, &[]).expect_status(0);
    let outcome = outcome.says("most documents of ").says("k.jsonl have no name");
    outcome.says("these fields could be names: key\n");
    let outcome = build_of(&scratch, "k.jsonl", &lines, &["--id-field", "key"]).expect_status(0);
    is_silent(&outcome, "have no name");
    // And so are names that repeat.
    let line = |n: u32| format!("{{\"id\":{},\"part\":\"p{n}\",\"text\":\"mill race\"}}\n", n / 3);
    let lines: String = (0..90).map(line).collect();
    let outcome = build_of(&scratch, "r.jsonl", &lines, &[]).expect_status(0);
    let outcome = outcome.says("60 documents have the name of an earlier one");
    outcome.says("these fields could be names: part\n");
    let lines: String =
        (0..300).map(|n: u32| format!("{{\"id\":{},\"text\":\"a b c\"}}\n", n.max(2))).collect();
    is_silent(&build_of(&scratch, "r.jsonl", lines, &[]).expect_status(0), "an earlier one;");
}

#[test]
fn texts_are_in_other_fields_where_there_is_no_usual_one() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let words = "lighthouse breakwater harbour quay";
    for field in
        "segment abstract content full_text description document article paragraph".split(' ')
    {
        let line = format!("{{\"id\":\"a\",\"{field}\":\"{words}\",\"title\":\"short\"}}\n");
        let outcome = build_of(&scratch, "f.jsonl", &line, &[]).expect_status(0);
        is_silent(&outcome, "not indexed");
        assert_eq!(terms(&index), "breakwater harbour lighthouse quay short", "{field}");
        let input = &info(&index)["input_files"][0];
        assert_eq!(input["taken_fields"], serde_json::json!(["title", field]));
        // Snippets and texts are read again as they were indexed.
        let queries = scratch.write("q", "quay\n");
        let asked =
            args!["query", "--index", index, "--format", "jsonl", "--rm3", "5,5,0.5", &queries];
        assert_eq!(millrace(asked).ok().json_lines()[0]["hits"][0]["name"], "a");
        // Beside a usual one it is not taken, wherever it stands.
        let line = line.replace(
            "\"title\":\"short\"",
            "\"body\":\"short and long enough to be the text of it\"",
        );
        let outcome = build_of(&scratch, "f.jsonl", line, &[]).expect_status(0);
        outcome.says(format!("fields that are not indexed: {field}\n"));
        assert!(terms(&index).starts_with("and be enough"), "{field}");
    }
    let line = format!(
        "{{\"id\":\"a\",\"txt\":\"{words}\",\"title\":\"short\",\"x\":{{\"y\":\"{words}\"}}}}\n"
    );
    let outcome = build_of(&scratch, "f.jsonl", &line, &[]).expect_status(0);
    let outcome = outcome.says("93 % of the bytes of strings in ");
    outcome.says("f.jsonl are in fields that are not indexed: txt, x\n");
    // It is said once for all files.
    scratch.write("in/f.jsonl", &line);
    scratch.write("in/g.jsonl", &line);
    scratch.write("in/h.csv", format!("id,title,other\n1,a,{words}\n"));
    let outcome = millrace(args!["build", "--index", index, scratch.path("in")]).ok();
    let outcome = outcome.says("f.jsonl and 2 more files are in fields");
    outcome.says("not indexed: txt, x, other\n");
    // A name that is misspelt is told beside one that is not.
    let options = ["--text-field", "title", "--text-field", "ttx"];
    let outcome = build_of(&scratch, "f.jsonl", &line, &options).expect_status(0);
    outcome.says("no record has these fields, which were asked for as text: ttx\n");
    // Who asks for fields knows of the others.
    let outcome = build_of(&scratch, "f.jsonl", &line, &["--text-field", "title"]).expect_status(0);
    is_silent(&outcome, "not indexed");
}

#[test]
fn the_text_of_each_record_is_decided_by_itself_for_any_pieces() {
    let scratch = Scratch::new();
    let mut random = Random::new(51);
    let mut lines = String::new();
    for n in 0..9000u32 {
        let words: Vec<String> = (0..40).map(|_| format!("w{}", random.below(500))).collect();
        let text = words.join(" ");
        lines += &match n % 4 {
            0 => format!("{{\"id\":{n},\"text\":\"{text}\"}}\n"),
            1 => format!("{{\"abstract\":\"{text}\",\"doc_id\":{n}}}\n"),
            2 => format!("{{\"uid\":\"u{n}\",\"content\":[\"{text}\",\"end\"],\"title\":\"t\"}}\n"),
            _ => format!("{{\"abstract\":\"no\",\"id\":{n},\"contents\":\"{text}\"}}\n"),
        };
    }
    let input = scratch.write("m.jsonl", &lines);
    let packed = scratch.write("p/m.jsonl.gz", gzip(lines.as_bytes(), 3));
    let first = scratch.path("first");
    build(&first, args![&input, "-w", "1"]);
    for (n, more) in [vec!["-w", "4"], vec!["-w", "2", "--indexer", "wei11"]].iter().enumerate() {
        let index = scratch.path(format!("other-{n}"));
        build(&index, args![&input].iter().cloned().chain(more.iter().map(Into::into)));
        assert_same_index(&first, &index, &[]);
    }
    build(&scratch.path("packed"), args![packed, "-w", "3"]);
    assert_eq!(terms(&first), terms(&scratch.path("packed")));
    assert_eq!(names(&first), names(&scratch.path("packed")));
    assert!(!terms(&first).split(' ').any(|term| term == "no"));
}

#[test]
fn queries_beside_a_collection_are_named() {
    let scratch = Scratch::new();
    for name in ["corpus.jsonl", "queries.jsonl"] {
        let line = format!("{{\"_id\":\"{name}\",\"title\":\"mill\",\"text\":\"race\"}}\n");
        scratch.write(format!("beir/{name}"), line);
    }
    scratch.write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\tcorpus.jsonl\t1\n");
    let index = scratch.path("index");
    let job = |input: &str| {
        millrace(args!["build", "--index", index, scratch.path(format!("beir/{input}"))]).ok()
    };
    let told = "beir/queries.jsonl: these look like queries or judgements";
    job("").says("beir/qrels/test.tsv, ").says(told);
    let alone = job("corpus.jsonl");
    assert!(!alone.stderr.contains("look like queries"), "{alone:?}");
    let shown = millrace(args!["info", "--index", index]).ok();
    assert!(shown.text().contains(", text from title, text)\n"), "{shown:?}");
    // A folder of queries alone is a collection of queries.
    std::fs::remove_file(scratch.path("beir/corpus.jsonl")).unwrap();
    let queries = job("");
    assert!(!queries.stderr.contains("look like queries"), "{queries:?}");
}

#[test]
fn reported_files_of_fields_and_lists_are_read() {
    let Some(reports) = shared("reports") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let read = |name: &str| {
        let bytes = std::fs::read(reports.join(name)).unwrap();
        build_of(&scratch, Path::new(name).file_name().unwrap().to_str().unwrap(), bytes, &[])
    };
    let outcome = read("06-json-array-text/c.jsonl").expect_status(0);
    assert_eq!(names(&index), "a c e");
    outcome.says("the field `contents` is not a string");
    assert_eq!(terms(&index), "first kept para plain second title x");
    for field in "abstract article content description document full_text paragraph".split(' ') {
        let outcome = read(&format!("67-other-text-fields/{field}.jsonl")).expect_status(0);
        is_silent(&outcome, "not indexed");
        assert_eq!(terms(&index), "breakwater lighthouse long other short text the title");
    }
    read("67-other-text-fields/txt.jsonl")
        .expect_status(0)
        .says("fields that are not indexed: txt");
}

/// A tar archive with one file of these bytes.
fn tar(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    for (at, field) in [(100, "0000644"), (108, "0000000"), (116, "0000000"), (136, "00000000000")]
    {
        head[at..at + field.len()].copy_from_slice(field.as_bytes());
    }
    head[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head.extend_from_slice(bytes);
    head.resize(head.len().next_multiple_of(512) + 1024, 0);
    head
}

#[test]
fn archives_are_refused_with_the_command_that_unpacks_them() {
    let scratch = Scratch::new();
    let line = "{\"id\":\"a\",\"text\":\"mill race\"}\n";
    let tar = tar("docs/a.jsonl", line.as_bytes());
    for (name, bytes, command) in [
        ("t.tar", tar.clone(), "tar -xf"),
        ("t.tar.gz", gzip(&tar, 1), "tar -xf"),
        ("t.tgz", gzip(&tar, 2), "tar -xf"),
        ("t.tar.zst", zstd(&tar, 1), "tar -xf"),
        ("t.jsonl", tar.clone(), "tar -xf"),
        ("t.txt.gz", gzip(&tar, 1), "tar -xf"),
        ("no-ending", tar.clone(), "tar -xf"),
        ("t.zip", b"PK\x03\x04\x14\0\0\0\x08\0".to_vec(), "unzip"),
        ("t.json.Z", b"\x1f\x9d\x90\x7b\x44".to_vec(), "uncompress"),
        ("t.arc.gz", gzip(b"filedesc://t.arc 0.0.0.0 2001 text/plain 76\n1 0 x\n", 1), "warcio"),
    ] {
        for more in [&[][..], &["--format", "jsonl"]] {
            let outcome = build_of(&scratch, name, &bytes, more).expect_status(1);
            outcome.says(format!("{name}: this is a")).says(format!("`{command} "));
        }
        // In a folder it is named, and everything else is read.
        let folder = scratch.path("in");
        scratch.write("in/a.jsonl", line);
        let input = scratch.write(format!("in/{name}"), &bytes);
        let index = scratch.path("index");
        let outcome = millrace(args!["build", "--index", index, &folder]).ok();
        if name != "no-ending" {
            outcome.says(format!("skipped: {}: archive: ", input.display()));
            assert_eq!(info(&index)["skipped"]["archive"], 1);
            millrace(args!["build", "--index", index, "--strict", &folder]).fails(1).says(name);
        }
        assert_eq!(names(&index), "a", "{name}");
        std::fs::remove_file(input).unwrap();
    }
}

#[test]
fn bulk_actions_are_refused_with_the_command_that_converts_them() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let bulk = "{\"index\":{\"_index\":\"x\",\"_id\":\"a\"}}\n{\"text\":\"mill\"}\n{\"create\":{\"_id\":7}}\n{\"text\":\"race\"}\n";
    for (name, bytes) in [("b.json", bulk.into()), ("b.ndjson.gz", gzip(bulk.as_bytes(), 1))] {
        for more in [&[][..], &["--format", "jsonl"]] {
            let outcome = build_of(&scratch, name, &bytes, more).expect_status(1);
            let outcome = outcome.says("bulk interface of Elasticsearch");
            let start = outcome.stderr.find("'inputs").unwrap() + 1;
            let filter = &outcome.stderr[start..][..outcome.stderr[start..].find('\'').unwrap()];
            let jq = std::process::Command::new("jq")
                .args(["-nc", filter])
                .arg(scratch.write("b.json", bulk))
                .output();
            let Ok(jq) = jq else {
                eprintln!("skipped: there is no jq");
                continue;
            };
            build_of(&scratch, "made.jsonl", jq.stdout, &[]).expect_status(0);
            assert_eq!((names(&index), terms(&index)), ("a 7".into(), "mill race".into()));
        }
    }
    scratch.write("in/b.json", bulk);
    scratch.write("in/c.jsonl", "{\"id\":\"c\",\"text\":\"x\"}\n");
    let outcome = millrace(args!["build", "--index", index, scratch.path("in")]).ok();
    outcome.says("b.json: bulk actions: ");
    assert_eq!(names(&index), "c");
}

#[test]
fn marks_where_files_were_joined_are_dropped() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    for (name, one, two) in [
        ("a.jsonl", "{\"id\":\"a\",\"text\":\"mill\"}\n", "{\"id\":\"b\",\"text\":\"race\"}\n"),
        (
            "a.json",
            "[{\"id\":\"a\",\n\"text\":\"mill\"}]\n",
            "[{\"id\":\"b\",\n\"text\":\"race\"}]\n",
        ),
        ("a.tsv", "a\tmill\n", "b\trace\n"),
        ("a.plaintext", "a mill\n", "b race\n"),
        ("a.csv", "id,text\na,mill\n", "b,race\n"),
        ("a.trec", "<DOC><DOCNO>a</DOCNO>mill</DOC>\n", "<DOC><DOCNO>b</DOCNO>race</DOC>\n"),
    ] {
        let joined = format!("\u{feff}{one}\u{feff}{two}");
        build_of(&scratch, name, joined, &["--strict"]).expect_status(0);
        assert_eq!((names(&index), terms(&index)), ("a b".into(), "mill race".into()), "{name}");
        let queries = scratch.write("q", "race\n");
        let query =
            args!["query", "--index", index, "--format", "jsonl", "--rm3", "2,2,0.5", queries];
        assert_eq!(millrace(query).ok().json_lines()[0]["hits"][0]["name"], "b");
    }
    let only = "{\"id\":\"a\",\"text\":\"mill\"}\n\u{feff}\n\u{feff}x\n";
    let outcome = build_of(&scratch, "a.jsonl", only, &[]).expect_status(0);
    outcome.says("2 skipped");
}

#[test]
fn archives_of_the_web_may_be_packed_twice_or_with_a_dictionary() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let record = |name: &str, body: &[u8]| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip, gzip\r\n\r\n";
        let length = head.len() + body.len();
        let warc = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-TREC-ID: {name}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n{head}"
        );
        [warc.as_bytes(), body, b"\r\n\r\n"].concat()
    };
    let twice = record("a", &gzip(&gzip(b"<p>mill <b>race</b>", 1), 1));
    build_of(&scratch, "a.warc", twice, &[]).expect_status(0);
    assert_eq!((names(&index), terms(&index)), ("a".into(), "mill race".into()));
    let inner = gzip(b"<p>mill", 1);
    let outcome =
        build_of(&scratch, "a.warc", record("a", &gzip(&inner[..10], 1)), &["--allow-empty"]);
    outcome.expect_status(0).says("1 skipped");
    let pages: Vec<_> = (0..300)
        .map(|n| record(&format!("p{n}"), format!("<p>page{n} of the mill").as_bytes()))
        .collect();
    let dictionary = zstd::dict::from_samples(&pages, 2048).unwrap();
    let mut packer = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let frames: Vec<u8> =
        pages[..9].iter().flat_map(|page| packer.compress(page).unwrap()).collect();
    for dictionary in [dictionary.clone(), zstd::encode_all(&dictionary[..], 3).unwrap()] {
        let head = [b"\x5d\x2a\x4d\x18", &(dictionary.len() as u32).to_le_bytes()[..]].concat();
        let file = [&head[..], &dictionary, &frames].concat();
        for name in ["a.warc.zst", "no-ending"] {
            build_of(&scratch, name, &file, &[]).expect_status(0);
            assert_eq!(names(&index), "p0 p1 p2 p3 p4 p5 p6 p7 p8");
        }
    }
    // Without it the frames are nothing.
    build_of(&scratch, "a.warc.zst", frames, &[]).expect_status(1).says("ictionary");
}

#[test]
fn reported_archives_and_dumps_are_read_or_refused() {
    let Some(reports) = shared("reports") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let read = |folder: &str, name: &str| {
        let bytes = std::fs::read(reports.join(folder).join(name)).unwrap();
        build_of(&scratch, name, bytes, &[])
    };
    for name in ["t.tar", "t.tar.gz", "t.tgz", "t.tar.bz2", "t.zip"] {
        read("13-archives-tar-zip", name).expect_status(1).says("this is an archive of ");
    }
    for name in ["n.warc.zst", "d.warc.zst", "dz.warc.zst"] {
        read("16-warc-zst-dict", name).expect_status(0);
        assert_eq!(info(&index)["documents"], 3, "{name}");
    }
    read("64-double-gzip-http", "w.warc").expect_status(0);
    assert_eq!(terms(&index), "doublegzip lighthouse");
    read("65-mediawiki-inline-cells", "w.xml").expect_status(0);
    assert_eq!(terms(&index), "aone atwo bone bthree btwo t");
}
