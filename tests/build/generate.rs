//! The generator makes collections that the other jobs take.

use crate::support::assert_same_index;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn millrace(args: &[&str], folder: &Path) -> Output {
    let binary = env!("CARGO_BIN_EXE_millrace");
    Command::new(binary).args(args).current_dir(folder).output().unwrap()
}

fn json_of(args: &[&str], folder: &Path) -> serde_json::Value {
    let output = millrace(args, folder);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_index_of_a_collection_has_its_documents_and_tokens() {
    for (format, compress) in [("jsonl", "gzip"), ("tsv", "zstd")] {
        let folder = tempfile::tempdir().unwrap();
        let generate = [
            "bench",
            "generate",
            "--output",
            "c",
            "--documents",
            "1234",
            "--files",
            "3",
            "-w",
            "2",
            "--format",
            format,
            "--compress",
            compress,
            "--queries",
            "40",
        ];
        let made = json_of(&generate, folder.path());
        assert_eq!(made["documents"], 1234);
        let build = [
            "build",
            "--index",
            "i",
            "-w",
            "2",
            "--stopwords",
            "none",
            "--report",
            "r",
            "c/documents",
        ];
        let output = millrace(&build, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report = std::fs::read(folder.path().join("r")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["documents"], 1234);
        assert_eq!(report["tokens"], made["tokens"]);
        assert_eq!(report["uncompressed_bytes"], made["text_bytes"]);
        assert_eq!(
            (&report["duplicate_names"], &report["skipped"]),
            (&0.into(), &serde_json::json!({}))
        );

        let query = ["query", "--index", "i", "--format", "jsonl", "-k", "1", "c/queries.tsv"];
        let output = millrace(&query, folder.path());
        let answers: Vec<serde_json::Value> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), 40);
        assert!(answers.iter().all(|answer| answer["hits"][0]["score"].is_number()));
    }
}

#[test]
fn the_recipes_of_the_datasets_work() {
    let recipes = include_str!("../../datasets/synthetic.toml");
    let commands = recipes.lines().filter_map(|line| line.strip_prefix("command = \"millrace "));
    let mut count = 0;
    for command in commands {
        let folder = tempfile::tempdir().unwrap();
        // Only the amount is another.
        let mut args: Vec<&str> = command.trim_end_matches('"').split(' ').collect();
        let amount = args.iter().position(|arg| *arg == "--bytes").unwrap();
        args[amount + 1] = "1M";
        let files = args.iter().position(|arg| *arg == "--files").unwrap();
        args[files + 1] = "2";
        let made = json_of(&args, folder.path());
        let text_bytes = made["text_bytes"].as_f64().unwrap();
        assert!((text_bytes / (1 << 20) as f64 - 1.0).abs() < 0.1, "{made}");
        count += 1;
    }
    assert_eq!(count, recipes.matches("[[recipe]]").count());
}

#[test]
fn vectors_become_an_index_that_answers_their_queries() {
    let folder = tempfile::tempdir().unwrap();
    let line = "bench generate --vectors --output c --documents 800 --files 2 --compress zstd \
                --queries 30 --shuffle --most-weight 300 -w 2";
    let made = json_of(&line.split_whitespace().collect::<Vec<_>>(), folder.path());
    let files: Vec<String> =
        (0..2).map(|file| format!("c/documents/part-0000{file}.jsonl.zst")).collect();
    let import =
        ["import", "--index", "i", "--format", "vectors", "--report", "r", &files[0], &files[1]];
    let output = millrace(&import, folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = std::fs::read(folder.path().join("r")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!((&report["documents"], &report["postings"]), (&800.into(), &made["tokens"]));
    let query = "query --index i --score impact --query-format weights -k 3 c/queries.tsv";
    let output = millrace(&query.split(' ').collect::<Vec<_>>(), folder.path());
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), 90, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_stream_of_documents_makes_the_index_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (what, format) in [
        ("--vectors --documents 9000", "vectors"),
        ("--bytes 4M --format tsv --pagerank", "tsv"),
        ("--documents 900 --format warc --compress gzip", "warc"),
    ] {
        let line = format!("bench generate {what} --queries 9 --beside");
        let words: Vec<&str> = line.split(' ').collect();
        let of_file = [&words[..], &["q", "--output", "c", "-w", "1"]].concat();
        let made = json_of(&of_file, folder.path());
        let files: Vec<_> = std::fs::read_dir(at("c/documents")).unwrap().collect();
        let [Ok(file)] = &files[..] else { panic!("{files:?}") };
        let of_stream = [&words[..], &["r", "--output", "-", "-w", "3", "--report", "s"]].concat();
        let streamed = millrace(&of_stream, folder.path());
        let errors = String::from_utf8_lossy(&streamed.stderr);
        assert!(streamed.status.success(), "{errors}");
        assert!(streamed.stdout == std::fs::read(file.path()).unwrap(), "{what}");
        let report = std::fs::read(at("s")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        for field in ["documents", "tokens", "text_bytes", "file_bytes"] {
            assert_eq!(report[field], made[field], "{what}: {field}");
        }
        for entry in std::fs::read_dir(at("q")).unwrap() {
            let name = entry.unwrap().file_name();
            let same = |folder| std::fs::read(at(folder).join(&name)).unwrap();
            assert!(same("q") == same("r"), "{what}: {name:?}");
        }
        let build = ["build", "--memory", "64M", "--format", format, "--index"];
        let path = file.path().display().to_string();
        let built = millrace(&[&build[..], &["i", &path]].concat(), folder.path());
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let mut generate = Command::new(env!("CARGO_BIN_EXE_millrace"))
            .args(&of_stream)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let built = Command::new(env!("CARGO_BIN_EXE_millrace"))
            .args([&build[..], &["j", "-"]].concat())
            .current_dir(folder.path())
            .stdin(generate.stdout.take().unwrap())
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        assert!(generate.wait().unwrap().success());
        assert_same_index(&at("i"), &at("j"), &[]);
        for name in ["c", "q", "r", "i", "j"] {
            std::fs::remove_dir_all(at(name)).unwrap();
        }
    }
}

#[test]
fn a_reader_that_goes_ends_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let mut generate = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(["bench", "generate", "--bytes", "64G", "--output", "-", "--quiet", "-w", "2"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut head = [0; 1 << 16];
    generate.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let ended = generate.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && errors.is_empty(), "{errors}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn wrong_settings_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for (wrong, message) in [
        (&["--bytes", "1M", "--zipf", "9"][..], "--zipf is 9; it must be from 0.2 to 3"),
        (&["--bytes", "1M", "--documents", "2"], "--documents"),
        (&[], "--bytes"),
        (&["--bytes", "1M", "--level", "3"], "--level goes with"),
        (&["--bytes", "1M", "--compress", "gzip", "--level", "10"], "--level: the most is 9"),
        (&["--bytes", "1M", "--compress", "zstd", "--level", "0"], "--level 0"),
        (&["--bytes", "1M", "--vectors"], "--vectors"),
        (&["--documents", "9", "--topics", "3"], "--vectors"),
        (&["--documents", "9", "--vectors", "--zipf", "1"], "--zipf"),
        (&["--documents", "9", "--vectors", "--weights", "0"], "--weights is 0; it must be"),
        (&["--documents", "9", "--output", "-", "--files", "2"], "--output - is one file"),
        (&["--documents", "9", "--output", "-", "--queries", "2"], "give --beside DIR"),
        (&["--documents", "9", "--output", "-", "--pagerank"], "give --beside DIR"),
    ] {
        let output = if wrong.contains(&"--output") { &[][..] } else { &["--output", "c"] };
        let output = millrace(&[&["bench", "generate"], output, wrong].concat(), folder.path());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {errors}");
        assert!(errors.contains(message), "{wrong:?}: {errors}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_log_repeats_queries_and_every_document_has_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let line = "bench generate --output c --documents 300 --files 2 --clustering 0.4 --cluster 20 \
                --log 1001 --log-distinct 50 --lengths 3 --pagerank";
    json_of(&line.split_whitespace().collect::<Vec<_>>(), folder.path());
    let lines = |name: &str| -> Vec<(String, String)> {
        let text = std::fs::read_to_string(folder.path().join("c").join(name)).unwrap();
        let fields = text.lines().map(|line| line.split_once('\t').unwrap());
        fields.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    };
    let train = lines("log-train.tsv");
    let test = lines("log-test.tsv");
    assert_eq!((train.len(), test.len()), (501, 500));
    assert_eq!((&*train[0].0, &*test[0].0), ("1", "502"));
    let queries = |log: &[(String, String)]| -> std::collections::HashSet<String> {
        log.iter().map(|(_, query)| query.clone()).collect()
    };
    let of_train = queries(&train);
    let of_test = queries(&test);
    assert!((10..=50).contains(&of_train.len()), "{}", of_train.len());
    assert!(of_train.intersection(&of_test).count() * 2 > of_test.len());
    let terms = lines("lengths.tsv").into_iter().map(|(_, query)| query.split(' ').count());
    assert!(terms.eq((0..27).map(|number| 2 + number % 9)));
    let values = lines("pagerank.tsv");
    assert_eq!(values.len(), 300);
    assert!(values.iter().all(|(_, value)| value.parse::<f64>().unwrap() > 0.0));
}
