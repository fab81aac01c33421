//! An index depends on nothing but its input and settings: the same bytes in every file but the
//! manifest, for any number of workers, any way in which the input comes, and, merged, any budget.

use crate::support::*;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Where the records lie; depends on how the input was cut into files.
const LOCATIONS: &str = "runs/000000.locations";
/// Names; those that are made from a file's name depend on it.
const NAMES: [&str; 3] = ["runs/000000.names", "runs/000000.ends", "runs/000000.lookup"];

fn runs(index: &Path) -> u64 {
    info(index)["runs"].as_u64().unwrap()
}

/// A collection of some pieces, with documents that have no name.
fn collection() -> Vec<u8> {
    Collection::new(1, 6000, 80).unname(7).jsonl()
}

/// Builds an index whose runs end after about every `limit` bytes of cost.
fn build_runs(index: &Path, limit: u64, more: &[std::ffi::OsString]) {
    let job = millrace(args!["build", "--quiet", "--index", index]).args(more);
    job.env("MILLRACE_RUN_LIMIT", limit.to_string()).ok();
}

#[test]
fn any_number_of_workers() {
    let scratch = Scratch::new();
    let bytes = collection();
    assert!(bytes.len() > 3 << 20, "{} bytes are too few pieces", bytes.len());
    let input = scratch.write("c.jsonl", bytes);
    let first = scratch.path("w1");
    build(&first, args!["-w", "1", input]);
    assert_eq!(runs(&first), 1);
    for workers in ["2", "3", "5", "16"] {
        let index = scratch.path(format!("w{workers}"));
        build(&index, args!["-w", workers, input]);
        assert_same_index(&first, &index, &[]);
    }
    // The default, and the same command once more.
    for again in ["all", "w5"] {
        build(&scratch.path(again), args![input]);
        assert_same_index(&first, &scratch.path(again), &[]);
    }
}

#[test]
fn any_number_of_workers_though_one_owns_all_terms() {
    let scratch = Scratch::new();
    // All of one trie collection, with lists of some shares.
    let term = |number: u32| format!(" t{}", number.wrapping_mul(2_654_435_761) >> 20);
    let words = |document: u32| -> String { (0..90).map(|at| term(90 * document + at)).collect() };
    let lines = (0..8000).map(|document| format!("{{\"text\":\"{}\"}}\n", words(document)));
    let input = scratch.write("c.jsonl", lines.collect::<String>());
    let first = scratch.path("w1");
    build(&first, args!["-w", "1", "--positions", input]);
    for workers in ["2", "7"] {
        let index = scratch.path(format!("w{workers}"));
        build(&index, args!["-w", workers, "--positions", input]);
        assert_same_index(&first, &index, &[]);
    }
}

#[test]
fn any_way_in_which_the_input_comes() {
    let scratch = Scratch::new();
    let bytes = collection();
    let raw = scratch.write("c.jsonl", &bytes);
    let reference = scratch.path("reference");
    build(&reference, args![raw]);

    // Compressed: offsets are those of the uncompressed stream, and names leave .gz out.
    let gz = scratch.write("gz/c.jsonl.gz", gzip(&bytes, 5));
    let zst = scratch.write("zst/c.jsonl.zst", zstd(&bytes, 3));
    // Content decides the compression, the name only the format.
    let lying = scratch.write("lying/c.jsonl", gzip(&bytes, 1));
    for (name, input) in [("gz", &gz), ("zst", &zst), ("lying", &lying)] {
        let index = scratch.path(format!("index-{name}"));
        build(&index, args!["-w", "3", input]);
        assert_same_index(&reference, &index, &[]);
    }

    // Standard input has no name but is one stream too.
    for (name, bytes) in [("raw", bytes.clone()), ("gz", gzip(&bytes, 2))] {
        let index = scratch.path(format!("stdin-{name}"));
        millrace(args!["build", "--quiet", "--index", index, "-"]).stdin(bytes).ok();
        assert_same_index(&reference, &index, &NAMES);
    }

    // Several files, each raw or compressed, and the folder that they are in.
    let mut parts = Vec::new();
    for (number, part) in cut_lines(&bytes, 7).into_iter().enumerate() {
        parts.push(match number % 3 {
            0 => scratch.write(format!("parts/{number}.jsonl"), part),
            1 => scratch.write(format!("parts/{number}.jsonl.gz"), gzip(part, 2)),
            _ => scratch.write(format!("parts/{number}.jsonl.zst"), zstd(part, 1)),
        });
    }
    let several = scratch.path("several");
    let folder = scratch.path("folder");
    build(&several, args!["-w", "2"].into_iter().chain(parts.iter().map(Into::into)));
    assert_same_index(&reference, &several, &[NAMES[0], NAMES[1], NAMES[2], LOCATIONS]);
    build(&folder, args!["-w", "4", scratch.path("parts")]);
    assert_same_index(&several, &folder, &[]);
}

#[test]
fn names_and_order_do_not_depend_on_files_when_documents_have_names() {
    let scratch = Scratch::new();
    let bytes = Collection::new(2, 800, 40).jsonl();
    let parts = cut_lines(&bytes, 3);
    let one = scratch.path("one");
    let three = scratch.path("three");
    let back = scratch.path("back");
    build(&one, args![scratch.write("c.jsonl", &bytes)]);
    let paths: Vec<PathBuf> = parts
        .iter()
        .zip("abc".chars())
        .map(|(p, c)| scratch.write(format!("{c}.jsonl"), p))
        .collect();
    build(&three, &paths);
    assert_same_index(&one, &three, &[LOCATIONS]);
    // Docids follow the arguments.
    build(&back, paths.iter().rev());
    let swapped: Vec<u8> = parts.into_iter().rev().flatten().copied().collect();
    build(&one, args![scratch.write("swapped.jsonl", swapped)]);
    assert_same_index(&one, &back, &[LOCATIONS]);
}

#[test]
fn formats_of_the_same_documents() {
    let scratch = Scratch::new();
    let mut docs = Collection::new(3, 500, 40).docs;
    docs.iter_mut().for_each(|doc| doc.text = doc.text.replace(['\n', '\t'], " "));
    let json = scratch.path("json");
    let tabs = scratch.path("tabs");
    let text = scratch.path("text");
    build(&json, args![scratch.write("c.jsonl", jsonl(&docs))]);
    build(&tabs, args![scratch.write("c.tsv", tsv(&docs))]);
    assert_same_index(&json, &tabs, &[LOCATIONS]);
    // A file each: sorted by name, and named so.
    for (number, doc) in docs.iter_mut().enumerate() {
        let name = format!("{}/{number:04}.txt", number / 100);
        scratch.write(format!("texts/{name}"), &doc.text);
        doc.name = Some(name);
    }
    build(&json, args![scratch.write("c.jsonl", jsonl(&docs))]);
    build(&text, args!["-w", "3", scratch.path("texts")]);
    assert_same_index(&json, &text, &[LOCATIONS]);
}

/// Records of which some have no name or never end, with text between; one is longer than all
/// workers read at a time, and one longer than any may be.
fn damaged(begin: &str, name: &str, end: &str) -> Vec<u8> {
    let mut file = String::new();
    for (number, doc) in Collection::new(7, 5000, 80).docs.iter().enumerate() {
        file += begin;
        if number % 89 != 5 {
            file += &name.replace("NAME", &number.to_string());
        }
        file += "<text>";
        file += &doc.text;
        match number {
            1700 => file += &"long ".repeat(500_000),
            3100 => file += &"too long ".repeat(400_000),
            _ => {}
        }
        file += "</text>";
        if number % 97 != 8 {
            file += end;
        }
        file += ["\n", "\r\n", "", " between \n"][number % 4];
    }
    file.into_bytes()
}

/// Builds with one reader and with many, and compares the indexes and what is said.
fn compare_readers(name: &str, bytes: &[u8]) -> Vec<String> {
    let scratch = Scratch::new();
    let plain = scratch.write(name, bytes);
    let packed = format!("{name}.gz");
    let packed = scratch.write(packed, gzip(bytes, 3));
    let build = |index: &Path, more: &[std::ffi::OsString]| {
        let job = millrace(args!["build", "--max-document", "3M", "--gpus", "none"]);
        let outcome = job.args(args!["--index", index]).args(more).ok();
        let said = outcome.stderr.lines().filter(|line| line.starts_with("millrace: "));
        said.map(str::to_string).collect::<Vec<_>>()
    };
    let one = scratch.path("one");
    let said = build(&one, &args!["-w", "2", "--readers", "1", plain]);
    for workers in ["1", "2", "3", "5"] {
        let index = scratch.path(workers);
        assert_eq!(build(&index, &args!["-w", workers, plain]), said, "{name}, {workers} workers");
        assert_same_index(&one, &index, &[]);
    }
    let index = scratch.path("packed");
    build(&index, &args![packed]);
    assert_same_index(&one, &index, &[]);
    said
}

#[test]
fn records_that_end_with_marks_are_those_that_one_reader_finds() {
    let trec = damaged("<DOC>\n", "<DOCNO>NAME</DOCNO>", "</DOC>");
    let pages = damaged("<page>\n", "<title>NAME</title>", "</page>");
    let wiki = [b"<mediawiki><siteinfo>page</siteinfo>\n", &pages[..], b"</mediawiki>\n"].concat();
    for (name, bytes) in [("c.trec", trec), ("c.xml", wiki)] {
        let said = compare_readers(name, &bytes);
        assert!(said.iter().any(|line| line.contains(": byte ")), "{said:?}");
    }
}

#[test]
fn real_records_that_end_with_marks_are_those_that_one_reader_finds() {
    if let Some(path) = shared("formats/trec-vaswani/doc-text.trec") {
        compare_readers("vaswani.trec", &std::fs::read(path).unwrap());
    }
    if let Some(path) = shared("formats/mediawiki/enwiki-pages-articles-shortened.xml.bz2") {
        let mut dump = Vec::new();
        bzip2::read::MultiBzDecoder::new(std::fs::File::open(path).unwrap())
            .read_to_end(&mut dump)
            .unwrap();
        compare_readers("enwiki.xml", &dump);
    }
}

#[test]
fn budgets_that_give_one_run() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", collection());
    let first = scratch.path("64M");
    build(&first, args!["--memory", "64M", "-w", "4", input]);
    assert_eq!(runs(&first), 1);
    for memory in ["100M", "1G", "8G"] {
        let index = scratch.path(memory);
        build(&index, args!["--memory", memory, "-w", "2", input]);
        assert_same_index(&first, &index, &[]);
    }
}

#[test]
fn many_runs_for_any_number_of_workers() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(4, 14_000, 100).unname(9).jsonl());
    let first = scratch.path("w1");
    build_runs(&first, 1, &args!["--no-merge", "-w", "1", input]);
    assert!(runs(&first) >= 9, "{} runs", runs(&first));
    for workers in ["2", "3", "5"] {
        let index = scratch.path(format!("w{workers}"));
        build_runs(&index, 1, &args!["--no-merge", "-w", workers, input]);
        assert_same_index(&first, &index, &[]);
    }
}

#[test]
fn merged_runs_are_one_run() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", Collection::new(5, 14_000, 100).unname(9).jsonl());
    let one = scratch.path("one");
    build(&one, args![input]);
    assert_eq!(runs(&one), 1);
    let mut seen = Vec::new();
    for limit in [1, 1_500_000, 3_000_000] {
        let apart = scratch.path(format!("apart-{limit}"));
        build_runs(&apart, limit, &args!["--no-merge", "-w", "2", input]);
        seen.push(runs(&apart));
        millrace(args!["check", "--index", apart]).ok().says("sound");
        // By the build itself.
        let merged = scratch.path(format!("merged-{limit}"));
        build_runs(&merged, limit, &args!["-w", "3", input]);
        assert_same_index(&one, &merged, &[]);
        assert_eq!(info(&merged)["terms"], info(&one)["terms"]);
        assert_eq!(info(&apart)["terms"], info(&one)["terms"], "terms of {limit}");
        assert_eq!(info(&apart)["postings"], info(&one)["postings"]);
        // And afterwards, with little memory.
        millrace(args!["merge", "--index", apart, "--memory", "64M"]).ok().says("merged into one");
        assert_same_index(&one, &apart, &[]);
        millrace(args!["check", "--index", apart]).ok().says("sound");
        assert_eq!(info(&apart)["runs"], 1);
        millrace(args!["check", "--index", merged]).ok().says("sound");
        // Once more there is nothing to do.
        let before = generation(&apart);
        millrace(args!["merge", "--index", apart]).ok().says("nothing to merge");
        assert_eq!(generation(&apart), before);
    }
    assert!(seen[0] > seen[1] && seen[1] > seen[2] && seen[2] > 1, "runs: {seen:?}");
}

#[test]
fn many_runs_answer_as_one() {
    let scratch = Scratch::new();
    let collection = Collection::new(6, 14_000, 90);
    let input = scratch.write("c.jsonl", collection.jsonl());
    let one = scratch.path("one");
    let many = scratch.path("many");
    build(&one, args![input]);
    build_runs(&many, 1, &args!["--no-merge", input]);
    assert!(runs(&many) >= 9, "{} runs", runs(&many));
    let mut random = Random::new(60);
    let queries: String = (0..300)
        .map(|_| {
            let count = 1 + random.below(5);
            collection.words.phrase(&mut random, count) + "\n"
        })
        .collect();
    let queries = scratch.write("queries", queries);
    let answers = |index: &Path, more: &[&str]| {
        let job = millrace(args!["query", "--quiet", "--index", index, queries]);
        job.args(more).ok().text().to_string()
    };
    for mode in ["or", "and", "and-or"] {
        for k in ["1", "10", "1000"] {
            for format in ["trec", "tsv"] {
                let more = ["--mode", mode, "-k", k, "--format", format];
                let answer = answers(&one, &more);
                assert!(answer.lines().count() > 100, "{more:?}");
                assert_eq!(answer, answers(&many, &more), "{more:?}");
            }
        }
    }
    let more = ["--idf", "robertson", "--k1", "0.9", "--b", "0.4", "--format", "tsv", "-w", "3"];
    assert_eq!(answers(&one, &more), answers(&many, &more));
    let json = |index: &Path| {
        let job =
            millrace(args!["query", "--quiet", "--index", index, "--format", "jsonl", queries]);
        let mut lines = job.ok().json_lines();
        lines.iter_mut().for_each(|line| line["us"] = 0.into());
        lines
    };
    assert_eq!(json(&one), json(&many));
}

#[test]
fn documents_longer_than_a_piece() {
    let scratch = Scratch::new();
    let mut collection = Collection::new(7, 3000, 60).unname(5);
    let mut random = Random::new(70);
    // 1.5 MB, 5 MB, and a last one without a line end.
    for (place, words) in [(1000, 200_000), (1001, 700_000), (2999, 150_000)] {
        collection.docs[place].text = collection.words.phrase(&mut random, words);
    }
    let mut bytes = collection.jsonl();
    assert_eq!(bytes.pop(), Some(b'\n'));
    let input = scratch.write("c.jsonl", &bytes);
    let first = scratch.path("w1");
    build(&first, args!["-w", "1", input]);
    assert_eq!(info(&first)["documents"], 3000);
    let zst = scratch.write("z/c.jsonl.zst", zstd(&bytes, 1));
    for (workers, input) in [("2", &input), ("3", &zst)] {
        let index = scratch.path(format!("w{workers}"));
        build(&index, args!["-w", workers, input]);
        assert_same_index(&first, &index, &[]);
    }
    let many = scratch.path("many");
    build_runs(&many, 1, &args!["-w", "2", input]);
    assert_same_index(&first, &many, &[]);
}

#[test]
fn documents_that_are_too_long_are_skipped_for_any_number_of_workers() {
    let scratch = Scratch::new();
    let mut collection = Collection::new(8, 2000, 60);
    let mut random = Random::new(80);
    for (place, words) in [(0, 300_000), (700, 250_000), (701, 250_000), (1999, 200_000)] {
        collection.docs[place].text = collection.words.phrase(&mut random, words);
    }
    let input = scratch.write("c.jsonl", collection.jsonl());
    let first = scratch.path("w1");
    let outcome =
        millrace(args!["build", "--index", first, "--max-document", "1M", "-w", "1", input]);
    outcome.ok().says("4 skipped").says("the most is 1048576").says("c.jsonl: byte 0:");
    let found = info(&first);
    assert_eq!(
        (&found["documents"], &found["skipped"]["document too long"]),
        (&1996.into(), &4.into())
    );
    for workers in ["2", "5"] {
        let index = scratch.path(format!("w{workers}"));
        build(&index, args!["--max-document", "1M", "-w", workers, input]);
        assert_same_index(&first, &index, &[]);
    }
    // The same as if they were not there.
    for place in [1999, 701, 700, 0] {
        collection.docs.remove(place);
    }
    let without = scratch.path("without");
    build(&without, args![scratch.write("without.jsonl", collection.jsonl())]);
    assert_same_index(&first, &without, &[LOCATIONS]);
}

#[test]
fn many_small_files_and_a_large_one() {
    let scratch = Scratch::new();
    let collection = Collection::new(9, 900, 30);
    let mut random = Random::new(90);
    let large = collection.words.phrase(&mut random, 400_000);
    for (number, doc) in collection.docs.iter().enumerate() {
        let text = if number == 450 { &large } else { &doc.text };
        match number % 5 {
            0 => scratch.write(format!("in/{number:04}.txt.gz"), gzip(text.as_bytes(), 1)),
            _ => scratch.write(format!("in/{number:04}.txt"), text),
        };
    }
    let first = scratch.path("w1");
    build(&first, args!["-w", "1", scratch.path("in")]);
    assert_eq!(info(&first)["documents"], 900);
    for workers in ["2", "5"] {
        let index = scratch.path(format!("w{workers}"));
        build(&index, args!["-w", workers, scratch.path("in")]);
        assert_same_index(&first, &index, &[]);
    }
}
