//! What becomes of records that are bad, cut short, without a name, or with one that another has.

use crate::support::*;
use std::path::Path;

/// One good document.
const ONE: &str = "{\"id\": \"one\", \"contents\": \"mill race\"}\n";

fn build_job(index: &Path) -> Job {
    millrace(args!["build", "--index", index])
}

#[test]
fn duplicate_names_are_counted_and_strict_refuses_them() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let names = ["a", "b", "a", "c", "b", "a"];
    let docs = names.map(|n| Doc { name: Some(n.into()), text: format!("text of {n}") });
    let input = scratch.write("c.jsonl", jsonl(&docs));
    build_job(&index).arg(&input).ok().says("3 duplicate names");
    let found = info(&index);
    assert_eq!((&found["documents"], &found["duplicate_names"]), (&6.into(), &3.into()));
    // All are indexed; a name finds the first.
    let show = millrace(args!["show", "--index", index, "b"]).ok();
    assert!(show.text().starts_with("docid     1\n"), "{show:?}");
    let outcome = build_job(&scratch.path("strict")).arg("--strict").arg(&input).fails(1);
    let outcome = outcome.says("3 documents have the name of an earlier one");
    outcome.says("document 2, named as document 0");
    // Across pieces, workers and runs.
    let mut docs = Collection::new(41, 9000, 60).docs;
    docs[8990].name = docs[17].name.clone();
    let input = scratch.write("d.jsonl", jsonl(&docs));
    let job = build_job(&index).args(["--strict", "-w", "3"]).arg(&input);
    job.env("MILLRACE_RUN_LIMIT", "1").fails(1).says("document 8990, named as document 17");
}

/// The index is that of the input without the other documents.
#[test]
fn the_first_or_last_document_of_a_name_is_indexed_alone() {
    let scratch = Scratch::new();
    let mut docs = Collection::new(43, 3000, 30).docs;
    for (at, doc) in docs.iter_mut().enumerate() {
        // Some names are common and some are there twice.
        let of = if at % 3 == 0 { at % 39 } else { at - at % 2 };
        doc.name = Some(format!("name-{of}"));
    }
    let input = scratch.write("c.jsonl", jsonl(&docs));
    for (which, kept) in [("first", 0), ("last", 1)] {
        let is_kept = |at: &usize| {
            let name = &docs[*at].name;
            let others = if kept == 0 { 0..*at } else { at + 1..3000 };
            others.into_iter().all(|other| docs[other].name != *name)
        };
        let left: Vec<Doc> = (0..3000).filter(is_kept).map(|at| docs[at].clone()).collect();
        let expected = scratch.path(format!("{which}-expected"));
        build(&expected, args![scratch.write(format!("{which}.jsonl"), jsonl(&left))]);
        for (run, limit) in [("one", "1000000"), ("many", "40")] {
            let index = scratch.path(format!("{which}-{run}"));
            let job = build_job(&index).args(["--duplicates", which, "-w", "2"]).arg(&input);
            let outcome = job.env("MILLRACE_RUN_LIMIT", limit).ok();
            let gone = 3000 - left.len();
            outcome.says(format!("{gone} documents are left out: another one is the {which}"));
            let found = info(&index);
            assert_eq!(found["documents"], left.len());
            assert_eq!(found["duplicate_names"], 0);
            for kind in ["lexicon", "postings", "names", "lengths", "hashes", "lookup"] {
                let [found, expected] = [&index, &expected]
                    .map(|index| std::fs::read(run_path(index, 0, kind)).unwrap());
                assert!(found == expected, "{kind}, {which}, {run}");
            }
        }
    }
    let job = build_job(&scratch.path("refused")).args(["--duplicates", "refuse"]).arg(&input);
    job.fails(1).says("have the name of an earlier one");
}

#[test]
fn bad_records_are_skipped_counted_and_named() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let mut docs: Vec<Vec<u8>> =
        Collection::new(42, 12_000, 40).docs.chunks(1).map(jsonl).collect();
    docs[3] = b"{\"id\": \"x\", \"contents\": oops}\n".to_vec();
    docs[5] = b"\n".to_vec();
    docs[8] = b"[\"not an object\"]\n".to_vec();
    docs[9000] = b"{\"id\": \"y\", \"contents\": 7}\n".to_vec();
    docs[9001] = b"{\"id\": \"z\"\n".to_vec();
    let offset = |place: usize| docs[..place].iter().map(Vec::len).sum::<usize>();
    let input = scratch.write("c.jsonl", docs.concat());
    let path = input.display();
    let mut before = None;
    for workers in ["1", "3"] {
        let mut outcome =
            build_job(&index).args(["-w", workers]).arg(&input).ok().says("4 skipped");
        for (place, says) in [
            (3, "expected a value"),
            (8, "not a JSON object"),
            (9000, "not a string"),
            (9001, "bad JSON"),
        ] {
            let place = format!("{path}: byte {} (line {}): ", offset(place), place + 1);
            let line = outcome.stderr.lines().find(|line| line.contains(&place));
            let line =
                line.unwrap_or_else(|| panic!("`{place}` is not in\n{outcome:?}")).to_string();
            assert!(line.contains(says), "{line}");
            outcome = outcome.says(&place);
        }
        let skipped = info(&index)["skipped"].clone();
        let count = |reason: &str| skipped[reason].as_u64();
        assert_eq!(count("bad JSON"), Some(2));
        assert_eq!(count("not a JSON object"), Some(1));
        assert_eq!(count("text is not a string"), Some(1));
        assert_eq!(info(&index)["documents"], 12_000 - 5);
        let now = files(&index);
        assert!(before.replace(now.clone()).is_none_or(|before| before == now));
    }
    let outcome = build_job(&index).arg("--strict").arg(&input).fails(1);
    outcome.says(format!("{path}: byte {} (line 4)", offset(3)));
    // The first few are named, all are counted.
    let many = scratch.write("many.jsonl", format!("{ONE}{}", "bad\n".repeat(50)));
    let outcome = build_job(&index).arg(&many).ok().says("50 records were skipped in all");
    let named = outcome.stderr.matches("many.jsonl: byte").count();
    assert!((1..=10).contains(&named), "{named} named\n{outcome:?}");
}

#[test]
fn a_compressed_stream_cut_short_keeps_what_came_before() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let bytes = Collection::new(43, 3000, 40).jsonl();
    for (name, whole) in [("c.jsonl.gz", gzip(&bytes, 1)), ("c.jsonl.zst", zstd(&bytes, 1))] {
        let cut = scratch.write(name, &whole[..whole.len() / 2]);
        let outcome = build_job(&index).arg("--allow-cut").arg(&cut).ok();
        let outcome = outcome.says(cut.to_str().unwrap());
        outcome.says("cut short").says("skipped");
        let documents = info(&index)["documents"].as_u64().unwrap();
        assert!((1000..2500).contains(&documents), "{documents} documents of {name}");
        for refusing in [&["--strict"][..], &[]] {
            build_job(&index).args(refusing).arg(&cut).fails(1).says(cut.to_str().unwrap());
        }
    }
}

#[test]
fn documents_without_a_name_are_named_for_file_and_line() {
    let scratch = Scratch::new();
    let collection = Collection::new(44, 9000, 50);
    let docs: Vec<Doc> =
        collection.docs.iter().map(|d| Doc { name: None, text: d.text.clone() }).collect();
    // Blank lines count as lines, and lines of earlier pieces do.
    let bytes = [b"\n\n".to_vec(), jsonl(&docs)].concat();
    assert!(bytes.len() > 2 << 20);
    let index = scratch.path("index");
    let has = |name: &str, docid: usize| {
        let outcome = millrace(args!["show", "--index", index, name]).ok();
        assert!(outcome.text().starts_with(&format!("docid     {docid}\n")), "{outcome:?}");
    };
    build(&index, args![scratch.write("c.jsonl", &bytes), "-w", "3"]);
    for docid in [0, 1, 4000, 8999] {
        has(&format!("c.jsonl:{}", docid + 3), docid);
    }
    // In a folder by the path below it, without the ending of a compression.
    scratch.write("in/a/d.jsonl.gz", gzip(&bytes, 3));
    scratch.write("in/b.tsv", "\tno name\n\tnor here\n");
    build(&index, args![scratch.path("in")]);
    for docid in [0, 8999] {
        has(&format!("a/d.jsonl:{}", docid + 3), docid);
    }
    has("b.tsv:2", 9001);
    let job = millrace(args!["build", "--quiet", "--index", index, "-"]);
    job.stdin(ONE.replace("\"id\"", "\"no\"")).ok();
    has_no_text(&index, "stdin:1");
}

/// Checks that a document of standard input is known, and that its text is not.
fn has_no_text(index: &Path, name: &str) {
    let outcome = millrace(args!["show", "--index", index, name]).run().expect_status(1);
    assert!(outcome.text().starts_with("docid     0\n"), "{outcome:?}");
    outcome.says("standard input");
}

#[test]
fn a_line_of_a_gigabyte_is_skipped_within_the_budget() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    // Members of a gzip stream may end anywhere, so the line costs little to make.
    let head = gzip(format!("{ONE}{{\"id\": \"huge\", \"contents\": \"").as_bytes(), 1);
    let middle = gzip("water mill ".repeat(95_326).as_bytes(), 1);
    let tail = gzip(format!("\"}}\n{}", ONE.replace("one", "two")).as_bytes(), 1);
    let input = scratch.write("c.jsonl.gz", [head, middle.repeat(1024), tail].concat());
    let report = scratch.path("report.json");
    let job = build_job(&index).args(["-w", "2", "--memory", "128M"]);
    let outcome = job.args(args!["--report", report, input]).ok();
    let place = format!("{}: byte {}: ", input.display(), ONE.len());
    outcome.says(place).says("a document of 1073").says("the most is 67108864");
    assert_eq!(info(&index)["documents"], 2);
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let peak = report["peak_memory_bytes"].as_u64().unwrap();
    assert!(peak < 141 << 20, "{peak} bytes for a budget of 128 MiB");
}

/// The head of a TSV and the addresses of an extracted wiki are no text, for any number of workers,
/// compressed or not, and when a document is read again.
#[test]
fn heads_of_tsv_and_addresses_of_extracted_wikis_are_no_text() {
    let scratch = Scratch::new();
    let mut random = Random::new(68);
    let words = |random: &mut Random| {
        let words: Vec<String> = (0..30).map(|_| format!("w{}", random.below(900))).collect();
        words.join(" ")
    };
    let mut tsv = "id\ttext\ttitle\n".to_string();
    let mut wiki = String::new();
    for n in 0..12_000 {
        let text = words(&mut random);
        tsv += &format!("d{n}\t{text}\tt{}\n", n % 7);
        let url = format!("https://wiki.example/?curid={n}");
        let record =
            serde_json::json!({"id": n, "revid": "5", "url": url, "title": "T", "text": text});
        wiki += &(record.to_string() + "\n");
    }
    wiki += "{\"id\":\"last\",\"url\":\"https://kept.example\",\"text\":\"end\"}\n";
    let said = "names columns, and is no document";
    for (name, text, documents) in [("p.tsv", &tsv, 12_000), ("w.jsonl", &wiki, 12_001)] {
        let plain = scratch.write(name, text);
        let packed = scratch.write(format!("{name}.gz"), gzip(text.as_bytes(), 2));
        let first = scratch.path("first");
        let index = scratch.path("index");
        let told = build_job(&first).args(args!["-w", "1", &plain]).ok();
        assert_eq!(told.stderr.matches(said).count(), usize::from(name == "p.tsv"), "{told:?}");
        assert_eq!(info(&first)["documents"], documents);
        for more in [
            &args!["-w", "4", "--strict", &plain][..],
            &args!["-w", "3", "--indexer", "wei11", &plain],
            &args!["-w", "2", "--memory", "64M", &packed],
        ] {
            let told = build_job(&index).args(more).ok();
            assert_eq!(told.stderr.matches(said).count(), usize::from(name == "p.tsv"), "{told:?}");
            assert_same_index(&first, &index, &[]);
        }
        build_job(&index).args(["-w", "2", "-"]).stdin(text.as_bytes()).ok();
        assert_same_index(&first, &index, &[]);
        // What is read again is what was indexed.
        let ask = args!["query", "--quiet", "--index", first, "--format", "jsonl", "--snippets"];
        let found =
            millrace(ask).args(["--rm3", "3,5,0.5"]).stdin("w17").ok().json_lines().remove(0);
        let hits = found["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 10);
        assert!(hits.iter().all(|hit| hit["snippet"].as_str().unwrap().contains("w17")), "{found}");
        let terms = millrace(args!["dump", "--index", first, "--format", "tsv", "terms"]).ok();
        let has =
            |term: &str| terms.text().lines().any(|line| line.split('\t').next() == Some(term));
        assert!(!has("text") && !has("wiki") && !has("curid"), "{name}");
        assert_eq!(has("kept"), name == "w.jsonl");
    }
    // A file of which the head is all has no document.
    let head = scratch.write("h.tsv", "id\ttext\n");
    build_job(&scratch.path("index")).arg(&head).fails(1).says("no document in 8 bytes");
    build_job(&scratch.path("index")).args(args!["--allow-empty", head]).ok().says("0 documents");
}
