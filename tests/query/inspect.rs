//! `explain`, `dump` and `show --term` tell what queries and builds do.

use crate::support::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// An index in one run or several, of the same documents.
fn index(scratch: &Scratch, collection: &Collection, merged: bool) -> std::path::PathBuf {
    let path = scratch.path(if merged { "merged" } else { "apart" });
    let input = scratch.write("docs.jsonl", collection.jsonl());
    let mut job = millrace(args!["build", "--quiet", "--index", path, input]);
    if !merged {
        job = job.arg("--no-merge").env("MILLRACE_RUN_LIMIT", "100000");
    }
    job.ok();
    path
}

#[test]
fn explain_tells_the_score_and_place_of_every_hit() {
    let scratch = Scratch::new();
    let collection = Collection::new(8, 400, 30);
    let mut random = Random::new(5);
    for merged in [true, false] {
        let index = index(&scratch, &collection, merged);
        for _ in 0..3 {
            let query: Vec<String> =
                (0..4).map(|_| collection.words.draw(&mut random).to_string()).collect();
            let query = query.join(" ");
            for mode in ["or", "and"] {
                let job =
                    args!["query", "--quiet", "--format", "jsonl", "-k", "400", "--mode", mode];
                let found = millrace(job).args(args!["--index", index]).stdin(query.clone());
                let hits = found.ok().json_lines()[0]["hits"].as_array().unwrap().clone();
                for hit in hits.iter().step_by(1 + hits.len() / 4) {
                    let docid = hit["docid"].to_string();
                    let job = args!["explain", "--json", "--index", index, "--docid", docid, query];
                    let told = &millrace(job).ok().json_lines()[0];
                    let bits = |value: &Value| (value.as_f64().unwrap() as f32).to_bits();
                    assert_eq!(bits(&told["score"]), bits(&hit["score"]), "{told}");
                    assert_eq!(told["name"], hit["name"]);
                    let rank = if mode == "or" { "rank" } else { "rank_of_all" };
                    assert_eq!(told[rank], hit["rank"], "{told}");
                    let of = if mode == "or" { "with_any" } else { "with_all" };
                    assert_eq!(told[of], hits.len(), "{told}");
                    let sum: f64 = told["terms"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|t| t["score"].as_f64().unwrap())
                        .sum();
                    assert!((sum - told["score"].as_f64().unwrap()).abs() < 1e-3);
                }
            }
        }
    }
}

#[test]
fn what_is_not_found_is_said() {
    let scratch = Scratch::new();
    let input = scratch.write(
        "docs.jsonl",
        "{\"id\":\"a\",\"contents\":\"mill race mill\"}\n{\"id\":\"b\",\"contents\":\"river\"}\n",
    );
    let index = scratch.path("index");
    build(&index, args![input]);
    let explain = |words: &[&str]| millrace(args!["explain", "--index", index]).args(words);
    let text = explain(&["a", "Mills", "and", "rivers", "-k", "1"]).ok();
    for part in ["docid 0", "lacks     river", "place     2 of 2", "not in the first 1"] {
        assert!(text.text().contains(part), "{part}: {text:?}");
    }
    for (query, place) in [
        ("wind", "place     no document has any term"),
        ("mill river", "          no document has all terms"),
        ("race", "place     not among the 1 document with any term"),
    ] {
        let text = explain(&["b", query]).ok();
        assert!(text.text().contains(place), "{place}: {text:?}");
    }
    let text = explain(&["a", "the"]).ok();
    assert!(text.text().contains("the query has no term") && !text.text().contains("place"));
    explain(&["nobody", "mill"]).fails(1).says("no document is named `nobody`");
    explain(&["--docid", "7", "mill"]).fails(1).says("no docid 7");
    explain(&["mill"]).fails(2).says("give --docid N");
    let show = |args: &[&str]| millrace(args!["show", "--index", index]).args(args);
    let term = show(&["--term", "Mills"]).ok();
    let rows: Vec<Vec<&str>> =
        term.text().lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["term", "mill"]);
    assert_eq!(rows[1], ["df", "1", "of", "2", "documents"]);
    assert!(rows.contains(&vec!["0", "2", "3", "a"]), "{rows:?}");
    show(&["--term", "the"]).fails(1).says("stop word");
    let tokens = show(&["--analyze", "The Mills, grinding"]).ok();
    let rows: Vec<Vec<&str>> =
        tokens.text().lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [vec!["the", "(stop", "word)"], vec!["mills", "mill"], vec!["grinding", "grind"]]
    );
}

#[test]
fn dumps_hold_everything() {
    let scratch = Scratch::new();
    let collection = Collection::new(9, 300, 20);
    for merged in [true, false] {
        let index = index(&scratch, &collection, merged);
        let dump = |args: &[&str]| millrace(args!["dump", "--index", index]).args(args).ok();
        let known = info(&index);
        let terms = dump(&["terms"]).json_lines();
        assert_eq!(terms.len(), known["terms"].as_u64().unwrap() as usize);
        let sum = |rows: &[Value], key: &str| {
            rows.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(sum(&terms, "df"), known["postings"].as_u64().unwrap());
        assert_eq!(sum(&terms, "cf"), known["tokens"].as_u64().unwrap());
        let documents = dump(&["documents"]).json_lines();
        assert_eq!(documents.len(), 300);
        assert_eq!(documents[7]["name"], "doc-9-7");
        // The lengths of documents are what their postings add up to.
        let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
        for row in dump(&["postings"]).json_lines() {
            for posting in row["postings"].as_array().unwrap() {
                *lengths.entry(posting[0].as_u64().unwrap()).or_default() +=
                    posting[1].as_u64().unwrap();
            }
        }
        for row in &documents {
            let docid = row["docid"].as_u64().unwrap();
            assert_eq!(row["tokens"].as_u64().unwrap(), lengths.get(&docid).copied().unwrap_or(0));
        }
        let lines = |what: &str| dump(&["--format", "tsv", what]).text().lines().count() as u64;
        assert_eq!(lines("postings"), known["postings"].as_u64().unwrap());
        assert_eq!(lines("terms"), known["terms"].as_u64().unwrap());
        assert_eq!(lines("documents"), 300);
    }
}

/// Reads protobuf as plainly as can be: a varint, and the fields of a message.
struct Message<'a>(&'a [u8]);

impl<'a> Message<'a> {
    fn varint(&mut self) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = self.0[0];
            self.0 = &self.0[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn take(&mut self) -> Message<'a> {
        let length = self.varint() as usize;
        let (head, rest) = self.0.split_at(length);
        self.0 = rest;
        Message(head)
    }

    /// Numbers and texts by their fields, in order.
    fn fields(mut self) -> Vec<(u64, u64, &'a [u8])> {
        let mut fields = Vec::new();
        while !self.0.is_empty() {
            let tag = self.varint();
            fields.push(match tag & 7 {
                0 => (tag >> 3, self.varint(), &[][..]),
                1 => {
                    let (double, rest) = self.0.split_at(8);
                    self.0 = rest;
                    (tag >> 3, 0, double)
                }
                2 => (tag >> 3, 0, self.take().0),
                kind => panic!("field of kind {kind}"),
            });
        }
        fields
    }
}

#[test]
fn ciff_holds_the_same_as_the_dumps() {
    let scratch = Scratch::new();
    let collection = Collection::new(10, 300, 20);
    for merged in [true, false] {
        let index = index(&scratch, &collection, merged);
        let file = scratch.path("index.ciff");
        millrace(args!["export", "--index", index, "--format", "ciff", file]).ok();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(millrace(args!["export", "--index", index, "-"]).ok().stdout, bytes);
        let mut rest = Message(&bytes);
        let header = rest.take().fields();
        let known = info(&index);
        let number = |key: &str| known[key].as_u64().unwrap();
        let terms = number("terms");
        let documents = number("documents");
        let numbers: Vec<u64> = header[..6].iter().map(|field| field.1).collect();
        assert_eq!(numbers, [1, terms, documents, terms, documents, number("tokens")]);
        let mean = f64::from_le_bytes(header[6].2.try_into().unwrap());
        assert_eq!(mean, number("tokens") as f64 / documents as f64);
        let mut found: BTreeMap<String, Vec<[u64; 2]>> = BTreeMap::new();
        let mut last = Vec::new();
        for _ in 0..terms {
            let list = rest.take().fields();
            let term = list[0].2.to_vec();
            assert!(last < term, "lists are in the order of their terms");
            let mut docid = 0;
            let mut cf = 0;
            let postings = list[3..].iter().map(|&(field, _, bytes)| {
                assert_eq!(field, 4);
                let posting = Message(bytes).fields();
                docid += posting[0].1;
                cf += posting[1].1;
                [docid, posting[1].1]
            });
            let postings: Vec<[u64; 2]> = postings.collect();
            assert_eq!((list[1].1, list[2].1), (postings.len() as u64, cf));
            found.insert(String::from_utf8(term.clone()).unwrap(), postings);
            last = term;
        }
        let dump = |what: &str| millrace(args!["dump", "--index", index, what]).ok().json_lines();
        let dumped = dump("postings").into_iter().map(|row| {
            let postings = serde_json::from_value(row["postings"].clone()).unwrap();
            (row["term"].as_str().unwrap().to_string(), postings)
        });
        assert!(found == dumped.collect());
        for row in dump("documents") {
            let record = rest.take().fields();
            assert_eq!(record[0].1, row["docid"].as_u64().unwrap());
            assert_eq!(record[1].2, row["name"].as_str().unwrap().as_bytes());
            assert_eq!(record[2].1, row["tokens"].as_u64().unwrap());
        }
        assert!(rest.0.is_empty());
    }
}

/// An index that was imported answers as the one that was exported, to the byte.
#[test]
fn ciff_that_was_imported_answers_alike() {
    let scratch = Scratch::new();
    let collection = Collection::new(11, 400, 20);
    let from = index(&scratch, &collection, true);
    let to = scratch.path("imported");
    let file = scratch.path("a.ciff");
    let again = scratch.path("b.ciff");
    millrace(args!["export", "--index", from, file]).ok();
    millrace(args!["import", "--index", to, file, "--codec", "vbyte"]).ok().says("400 documents");
    millrace(args!["check", "--index", to]).ok();
    millrace(args!["export", "--index", to, again]).ok();
    assert!(std::fs::read(file).unwrap() == std::fs::read(&again).unwrap());
    let mut random = Random::new(110);
    let queries: String =
        (0..40).map(|n| collection.words.phrase(&mut random, 1 + n % 4) + "\n").collect();
    for mode in ["or", "and"] {
        let ask = |index| {
            let job = millrace(args!["query", "--quiet", "--mode", mode, "--index", index]);
            job.stdin(&*queries).ok().stdout
        };
        assert!(ask(&from) == ask(&to) && !ask(&from).is_empty(), "{mode}");
    }
    millrace(args!["show", "--index", to, "--docid", "3"]).run().says("without the texts");
    let broken = scratch.write("broken.ciff", &std::fs::read(&again).unwrap()[..2000]);
    millrace(args!["import", "--index", to, broken]).fails(1).says("broken.ciff: byte ");
    assert_eq!(info(&to)["generation"], 1);
}

#[test]
fn ciff_may_be_compressed_or_come_from_a_pipe() {
    let scratch = Scratch::new();
    let collection = Collection::new(12, 200, 20);
    let from = index(&scratch, &collection, true);
    let export = |name: &str| millrace(args!["export", "--index", from, scratch.path(name)]);
    let read = |name: &str| std::fs::read(scratch.path(name)).unwrap();
    for name in ["a.ciff", "a.ciff.gz", "a.CIFF.ZST"] {
        export(name).ok().says("200 documents");
    }
    let plain = read("a.ciff");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&read("a.ciff.gz")[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain && ::zstd::decode_all(&read("a.CIFF.ZST")[..]).unwrap() == plain);
    export("a.ciff.bz2").fails(1).says("CIFF is compressed as .gz or .zst");
    assert!(!scratch.path("a.ciff.bz2").exists());
    let import = |name: &str, file: &std::ffi::OsStr| {
        millrace(args!["import", "--index", scratch.path(name), file])
    };
    import("one", scratch.path("a.ciff").as_os_str()).ok();
    let members = scratch.write("no-ending", gzip(&plain, 3));
    for (n, file) in
        [scratch.path("a.ciff.gz"), scratch.path("a.CIFF.ZST"), members].iter().enumerate()
    {
        let other = format!("other-{n}");
        import(&other, file.as_os_str()).ok();
        assert!(files(&scratch.path(&other)) == files(&scratch.path("one")));
    }
    for (name, bytes) in [("piped", plain.clone()), ("packed", gzip(&plain, 1))] {
        import(name, "-".as_ref()).stdin(bytes.clone()).ok();
        import(name, "/dev/stdin".as_ref()).stdin(bytes).ok().says("generation 2");
        assert!(files(&scratch.path(name)) == files(&scratch.path("one")));
        assert!(info(&scratch.path(name))["input_files"][0]["path"] == "/dev/stdin");
    }
    // Damage is told by the file, and by the place in what it holds.
    let packed = gzip(&plain, 1);
    let cut = scratch.write("cut.ciff.gz", &packed[..packed.len() - 9]);
    import("bad", cut.as_os_str()).fails(1).says("cut.ciff.gz: the compressed stream is cut short");
    let part = scratch.write("part.ciff.gz", gzip(&plain[..2000], 1));
    import("bad", part.as_os_str()).fails(1).says("part.ciff.gz: byte 1");
    import("bad", "-".as_ref()).stdin("").fails(1).says("-: byte 0: expected the header");
    let left = std::fs::read_dir(scratch.path("bad")).unwrap();
    assert!(left.map(|entry| entry.unwrap().file_name()).eq(["LOCK"]));
}

/// The toy example of CIFF, which Anserini exported: BM25 by the formula on the numbers of the
/// file.
#[test]
fn ciff_of_anserini_has_its_scores() {
    let Some(file) = shared("formats/ciff/toy-complete-20200309.ciff") else { return };
    let scratch = Scratch::new();
    let index = scratch.path("index");
    millrace(args!["import", "--index", index, "--stemmer", "porter", file]).ok();
    assert_eq!(
        (info(&index)["documents"].as_u64(), info(&index)["tokens"].as_u64()),
        (Some(3), Some(16))
    );
    let bytes = std::fs::read(file).unwrap();
    let mut rest = Message(&bytes);
    let value = |fields: &[(u64, u64, &[u8])], of: u64| {
        fields.iter().find(|field| field.0 == of).map_or(0, |field| field.1) as f64
    };
    let head = rest.take().fields();
    let lists: Vec<_> = (0..value(&head, 2) as usize).map(|_| rest.take().fields()).collect();
    let documents: Vec<_> = (0..3).map(|_| rest.take().fields()).collect();
    let mean = documents.iter().map(|document| value(document, 3)).sum::<f64>() / 3.0;
    for list in lists {
        let term = std::str::from_utf8(list[0].2).unwrap();
        let idf = (1.0 + (3.0 - value(&list, 2) + 0.5) / (value(&list, 2) + 0.5)).ln();
        let mut docid = 0;
        let mut expected = Vec::new();
        for posting in list.iter().filter(|field| field.0 == 4) {
            let posting = Message(posting.2).fields();
            docid += value(&posting, 1) as usize;
            let tf = value(&posting, 2);
            let length = value(&documents[docid], 3);
            expected.push((docid, idf * 2.2 * tf / (tf + 1.2 * (0.25 + 0.75 * length / mean))));
        }
        let job = millrace(args!["query", "--quiet", "--format", "tsv", "--index", index]);
        // Terms are stems of themselves, except for `veri`.
        let word = if term == "veri" { "very" } else { term };
        let found = job.stdin(word).ok();
        let mut found: Vec<(usize, f64)> = found
            .text()
            .lines()
            .map(|line| {
                let columns: Vec<&str> = line.split('\t').collect();
                (columns[3].parse().unwrap(), columns[4].parse().unwrap())
            })
            .collect();
        found.sort_by_key(|hit| hit.0);
        assert_eq!(found.len(), expected.len(), "{term}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.0, "{term}");
            assert!((found.1 - expected.1).abs() < 1e-6, "{term}: {found:?}, not {expected:?}");
        }
    }
}

/// What jobs tell can be read by programs: one object, and nothing else, on standard output.
#[test]
fn what_jobs_tell_is_printed_as_json() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let line = |n| format!("{{\"id\": \"d{n}\", \"contents\": \"The mill race {n}\"}}\n");
    let input = scratch.write("c.jsonl", (0..20).map(line).collect::<String>());
    let queries = scratch.write("q.tsv", "1\tmill\n2\trace\n");
    let qrels = scratch.write("qrels", "1 0 d1 1\n2 0 d2 1\n");
    let run = scratch.write("run", "1 Q0 d1 1 1 t\n2 Q0 d3 1 1 t\n");
    for _ in 0..2 {
        build(&index, args![input]);
    }
    let object = |job: Job| {
        let mut lines = job.arg("--json").ok().json_lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].is_object(), "{lines:?}");
        lines.remove(0)
    };
    let of = |job: &str| millrace(args![job, "--index", index]);
    assert_eq!(object(of("info"))["documents"], 20);
    let shown = object(of("show").arg("d3"));
    assert_eq!([&shown["docid"], &shown["tokens"]], [3, 3]);
    let record: Value = serde_json::from_str(shown["record"].as_str().unwrap()).unwrap();
    assert_eq!((&shown["name"], &record["id"]), (&"d3".into(), &"d3".into()));
    assert_eq!(object(of("show").args(["--docid", "3"])), shown);
    let term = object(of("show").args(["--term", "mills"]));
    assert_eq!((&term["word"], &term["terms"][0]["term"]), (&"mills".into(), &"mill".into()));
    assert_eq!(term["terms"][0]["df"], 20);
    assert_eq!(term["terms"][0]["first"][2]["name"], "d2");
    let tokens = object(of("show").args(["--analyze", "The Mills"]))["tokens"].clone();
    assert_eq!(tokens[0], serde_json::json!({"token": "the", "term": null}));
    assert_eq!(tokens[1]["term"], "mill");
    assert_eq!(object(of("explain").args(["d1", "mill"]))["name"], "d1");
    assert_eq!(object(millrace(args!["evaluate", "--qrels", qrels, run]))["queries"], 2);
    let tuned = args!["tune", "--index", index, "--qrels", qrels, "--folds", "2", queries];
    assert_eq!(object(millrace(tuned))["queries"], 2);
    let cached = object(of("cache").args(["--memory", "1M"]).arg(&queries));
    assert_eq!((&cached["job"], &cached["queries"]), (&"cache".into(), &2.into()));
    let checked = object(of("check"));
    assert_eq!((&checked["problems"], &checked["documents"]), (&Value::Array(vec![]), &20.into()));
    let back = object(of("rollback"));
    assert_eq!([&back["from"], &back["to"]], [2, 1]);
    assert!(object(millrace(["devices"]))["devices"].is_array());
    assert!(millrace(["calibrate", "--help"]).ok().text().contains("--json"));
    // What is wrong is told as JSON too.
    std::fs::write(index.join("gen-000001/manifest.json"), "broken").unwrap();
    let told = of("check").arg("--json").run();
    assert_eq!(told.status, Some(1));
    let problems = told.json_lines()[0]["problems"].as_array().unwrap().clone();
    assert!(!problems.is_empty(), "{told:?}");
    // A text that is not kept is an error, and the row is told all the same.
    let piped = scratch.path("piped");
    millrace(args!["build", "--index", piped, "--format", "jsonl", "-"]).stdin(line(7)).ok();
    let shown = millrace(args!["show", "--index", piped, "--json", "d7"]).run();
    assert_eq!(shown.status, Some(1));
    assert_eq!(shown.json_lines()[0]["name"], "d7");
    assert_eq!(shown.json_lines()[0]["record"], Value::Null);
}

/// The rows wait for their reader until the progress has been drawn.
#[cfg(target_os = "linux")]
#[test]
fn a_dump_draws_its_progress_on_a_terminal() {
    use std::io::Read;
    let scratch = Scratch::new();
    let lines: String =
        (0..8000).map(|n| format!("{{\"id\":\"d{n}\",\"contents\":\"mill\"}}\n")).collect();
    let input = scratch.write("docs.jsonl", lines);
    let index = scratch.path("index");
    build(&index, args![input]);
    for quiet in [false, true] {
        let (mut main, side) = terminal();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.args(args!["dump", "--index", index, "documents"]).env("TERM", "xterm");
        command.args(quiet.then_some("--quiet")).stderr(side).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        std::thread::sleep(std::time::Duration::from_millis(500));
        let rows = drain(child.stdout.take().unwrap());
        let mut drawn = Vec::new();
        _ = main.read_to_end(&mut drawn);
        assert!(child.wait().unwrap().success());
        assert_eq!(rows.join().unwrap().split(|byte| *byte == b'\n').count(), 8001);
        let drawn = String::from_utf8(drawn).unwrap();
        assert_eq!(drawn.contains(" of 8,000 lines, "), !quiet, "{drawn}");
    }
}
