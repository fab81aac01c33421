//! A build whose words a device finds makes the index of `fast`, to the byte. The device is
//! emulated, so that all but the driver is as it is with one.

use super::machine::{Emulated, compiled};
use crate::inside_tests::emulation::Emulator;
use crate::inside_tests::util::*;
use crate::settings::SettingError;
use millrace::gpu::floor::error::GpuError;
use millrace::input::formats::fields::Fields;
use millrace::settings::Gpus;
use millrace::text::analysis::Analysis;
use millrace::text::stemmer::Stemmer;
use millrace::text::tokenizer::Tokenizer;
use millrace::{BuildError, BuildOptions, Indexer, build};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Small inputs of several formats: each ends a piece.
fn inputs(scratch: &Scratch) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for seed in 0..7 {
        let jsonl = Collection::new(seed, 12, 30).unname(5).jsonl();
        paths.push(scratch.write(format!("{seed}.jsonl"), jsonl));
    }
    let texts = "caf\u{e9} \u{2014} na\u{ef}ve\tna\u{ef}vet\u{e9}s, \u{5317}\u{4eac}\u{3002}\u{5927}\u{5b66}-x";
    paths.push(scratch.write("8.txt", texts.repeat(9)));
    let texts = "\u{6771}\u{4eac}\u{306e}\u{30e9}\u{30fc}\u{30e1}\u{30f3}\u{5c4b}\u{3001}\u{ff8a}\u{ff9f}\u{ff98}\u{3000}don\u{2019}t\u{2014}\u{201c}no\u{201d}\u{a0}2026\u{5e74}";
    paths.push(scratch.write("b.txt", [texts.as_bytes(), b"\xe2\x80 \xff"].concat().repeat(7)));
    paths
        .push(scratch.write("9.html", format!("<p>Mills<b>of</b>{}&eacute;</p>", "x".repeat(700))));
    // Marks, and what is not seen, also between letters that make pairs; composed and not.
    let texts = "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} cafe\u{301} caf\u{e9} Wort\u{ad}trennung \u{301}x \u{5317}\u{e0100}\u{4eac} \u{304b}\u{3099}\u{5317}\u{301} \u{ac00}\u{11a8}\u{ac00} a\u{200b}b ISPARTA I\u{307}s \u{130}S KIZ kiz H\u{2082}O 2\u{bd} Stra\u{df}e \u{fb01}n\u{e9} a\u{b2}b \u{2460}\u{5317}\u{ff21}\u{4eac} \u{ac00}\u{3133} \u{5e9}\u{5c1}\u{5de} \u{2122}x\n";
    paths.push(scratch.write("c.txt", texts.repeat(9)));
    let line = "{\"id\": \"c\", \"text\": \"cafe\\u0301 Wort\\u00adtrennung \\u0939\\u093f\\u0928\\u094d KIZ \\u5317\\udb40\\udd00\\u4eac a\\u200bb\"}\n";
    paths.push(scratch.write("d.jsonl", line.repeat(9)));
    paths.push(scratch.write("a.tsv", "t1\tthe running runs\nt2\t\nt3\tof the\n"));
    paths
}

/// What the test says when it runs itself again, with runs that end early.
const LIMIT: &str = "MILLRACE_RUN_LIMIT";

fn options(index: &Path, inputs: &[PathBuf], workers: usize) -> BuildOptions {
    let mut options = BuildOptions::of_paths(index, inputs);
    (options.workers, options.merge) = (workers, false);
    options
}

/// The build of `options` on an emulated device, which is made with a seed and changed.
fn on_device(
    options: BuildOptions,
    emulator: &Arc<Emulator>,
    seed: u64,
    change: impl Fn(&mut Emulated) + Send + Sync + 'static,
) -> BuildOptions {
    let mut options = options;
    let emulator = emulator.clone();
    options.indexer = Indexer::Gpu;
    options.pipeline.texts_at_once = 4000;
    let machine = move || {
        let mut machine = Emulated::new(emulator.clone(), seed);
        change(&mut machine);
        Ok(Box::new(machine) as _)
    };
    options.pipeline.make_machine = Some(Arc::new(machine));
    options
}

#[test]
fn builds_on_an_emulated_device_are_those_of_fast() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let inputs = inputs(&scratch);
    let fast = scratch.path("fast");
    let inverted = scratch.path("gpu");
    let expected = build(options(&fast, &inputs, 1)).unwrap();
    let options = options(&inverted, &inputs, 3);
    let report = build(on_device(options, &emulator, 11, |_| ())).unwrap();
    assert_same_index(&fast, &inverted, &[]);
    let work = report.inverter.unwrap();
    assert_eq!((work.spilled, work.unpinned), (0, 0));
    assert_eq!((work.postings, report.tokens), (expected.postings, expected.tokens));
    if std::env::var_os(LIMIT).is_some() {
        assert!(
            report.runs >= 4 && work.batches > report.runs as u64,
            "{work:?}, {} runs",
            report.runs
        );
        return;
    }
    assert_eq!(report.runs, 1);
    bigrams_on_a_device_are_those_of_fast(&scratch, &inputs, &emulator);
    a_full_device_gives_the_index_of_fast(&scratch, &inputs, &fast, &emulator);
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "inside_tests::invert::builds::builds_on_an_emulated_device_are_those_of_fast",
        ])
        .env(LIMIT, "40000")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}

/// The reader of a document that is far longer than a piece waits until all before it is counted;
/// that is far less than a batch.
#[test]
fn a_long_document_is_not_waited_for() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let short = Collection::new(5, 3300, 30).jsonl();
    let long = "the mill stands at the river ".repeat(120_000);
    // More than a stretch, and less than what a device takes at once.
    assert!((1_150_000..1_400_000).contains(&short.len()), "{}", short.len());
    let long = format!("{{\"id\": \"long\", \"contents\": \"{long}\"}}\n");
    let inputs =
        [scratch.write("c.jsonl", [&*short, long.as_bytes(), b"{\"id\": \"last\"}\n"].concat())];
    let fast = scratch.path("fast");
    let inverted = scratch.path("gpu");
    let of = |index: &Path| {
        let mut options = options(index, &inputs, 2);
        options.memory = 128 << 20;
        options
    };
    build(of(&fast)).unwrap();
    build(on_device(of(&inverted), &emulator, 3, |_| ())).unwrap();
    assert_same_index(&fast, &inverted, &[]);
}

/// Lines with escapes, marks, numbers, titles and no names, among which some are no documents, or
/// too long ones.
#[test]
fn lines_on_a_device_are_those_of_fast() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let lines = |seed: u32, before: &str, between: &str, end: &str| {
        let texts = [
            "the mills of \\u5317\\u4eac \\ud83d\\ude00",
            "",
            "na\u{ef}ve \\\"mill\\\"\\n\\ttables",
            "r\\u00e9sum\\u00e9 \\ud83d x",
        ];
        let line = |n: u32| {
            let name = 100 + n * seed;
            let text = texts[(n + seed) as usize % 4];
            format!("{before}{name}{between}{text} w{n} run{seed}\"{end}")
        };
        (0..40).map(line).collect::<String>()
    };
    let check = |name: &str, fields: &Fields, texts: &[&str]| {
        let index = scratch.path(format!("index-{name}"));
        let texts = texts.iter().enumerate();
        let inputs =
            Vec::from_iter(texts.map(|(n, text)| scratch.write(format!("{name}-{n}.jsonl"), text)));
        let fast = scratch.path(format!("fast-{name}"));
        let of = |index: &Path| {
            let mut options = options(index, &inputs, 2);
            (options.max_document, options.pipeline.texts_at_once) = (3000, 4000);
            options.fields = fields.clone();
            options
        };
        let expected = build(of(&fast)).unwrap();
        let report = build(on_device(of(&index), &emulator, 4, |_| ())).unwrap();
        assert_same_index(&fast, &index, &[]);
        assert_eq!((&report.skipped, report.documents), (&expected.skipped, expected.documents));
        report.skipped.values().sum::<u64>()
    };
    let quoted = ("{\"id\": \"n\u{e9}", "\", \"contents\": \"");
    let usual = lines(1, quoted.0, quoted.1, "}\n");
    let numbered = lines(2, "{\"id\":", ",\"text\":\"", ",\"more\":[1]}\r\n");
    let marked = format!("\u{feff}{}", lines(3, quoted.0, quoted.1, "}\n"));
    let open = lines(4, quoted.0, quoted.1, "}\n").trim_end().to_owned();
    let title = "{\"title\": \"A mill \\u00e9 \", \"year\": -7.5, \"id\": \"";
    let titled = lines(5, title, "\", \"text\": \"", "}\n");
    let nameless = lines(7, "{\"lang\": \"", "\", \"text\": \"", "}\n");
    let long = format!("{}{}\"}}\n", quoted.0, "x ".repeat(1600));
    let name = "x".repeat(300);
    let others = [
        "{\"id\": 5}\n",
        "{\"id\": \"a\\u0062\", \"contents\": \"text\"}\n",
        "{\"text\": \"one\", \"id\": 1e5, \"body\": \"two\"}\n{\"docno\": \"c\", \"url\": null}\n",
        "\n\u{feff}{\"id\": \"a\", \"contents\": \"marked\"}\n",
        "{\"id\": \"a\", \"contents\": \"broken\\\"}\nno JSON\n",
        &long,
        &format!("{{\"id\": \"{name}\", \"contents\": \"a long name\"}}\n"),
        "{\"contents\": \"text\"}",
    ];
    let mixed = format!("{usual}{}", others.concat());
    let plain = Fields::default();
    let all = [&*usual, &numbered, &marked, &open, &titled, &nameless, &mixed];
    assert_eq!(check("all", &plain, &all), 3);
    assert_eq!(check("few", &plain, &["no JSON\n{\"text\": \"mill\"}"]), 1);
    let fields = Fields { names: vec!["key".into()], texts: vec!["name".into(), "words".into()] };
    let keyed = "{\"id\":\"x\",\"name\": \"Mills\", \"key\": \"";
    let keyed = lines(6, keyed, "\", \"words\": \"", "}\n");
    assert_eq!(check("asked", &fields, &[&keyed, &format!("{keyed}{{\"key\": 3\n")]), 1);
}

/// The device hashes texts; hashes of documents with values are of their records too.
#[test]
fn values_of_a_build_on_a_device_are_those_of_fast() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let line = |n: u32| {
        let year = 1900 + n * 7 % 90;
        format!("{{\"id\": {n}, \"text\": \"mills of {}\", \"year\": {year}}}\n", n % 5)
    };
    let inputs = [scratch.write("a.jsonl", (0..60).map(line).collect::<String>())];
    let of = |name: &str| {
        let mut options = options(&scratch.path(name), &inputs, 2);
        options.columns = vec!["year:int".parse().unwrap()];
        options.store_fields = vec!["year".into()];
        options
    };
    build(of("fast")).unwrap();
    build(on_device(of("gpu"), &emulator, 6, |_| ())).unwrap();
    assert_same_index(&scratch.path("fast"), &scratch.path("gpu"), &[]);
}

/// A device that is full takes smaller batches, or what it has to the host.
#[test]
fn full_devices_give_the_index_of_fast() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let inputs = Vec::from_iter((0..12).map(|seed| {
        scratch.write(format!("{seed:02}.jsonl"), Collection::new(seed, 40, 40).jsonl())
    }));
    let fast = scratch.path("fast");
    build(options(&fast, &inputs, 2)).unwrap();
    let on = |seed, most_bytes| {
        let index = scratch.path(format!("{seed}-{most_bytes}"));
        let of = options(&index, &inputs, 2);
        let of = on_device(of, &emulator, seed, move |m| m.most_bytes = most_bytes);
        let work = build(of).ok()?.inverter.unwrap();
        assert!(work.batches >= 4, "{work:?}");
        assert_same_index(&fast, &index, &[]);
        Some(work)
    };
    assert_eq!(on(1, u64::MAX).unwrap().spilled, 0);
    // Too little for a batch, or for all batches.
    let works = Vec::from_iter((1..7).map(|n| on(2, n * 100_000)));
    let refused = works.iter().filter(|work| work.is_none()).count();
    let spilled = works.iter().flatten().filter(|work| work.spilled > 0).count();
    assert!(refused > 0 && spilled > 0 && refused + spilled < works.len(), "{works:?}");
    assert!(works[refused..].iter().all(Option::is_some), "{works:?}");
}

/// Pairs of Chinese and Japanese letters, most of which are forms by themselves; words that are
/// lower-cased in another way, and folded ones.
fn bigrams_on_a_device_are_those_of_fast(
    scratch: &Scratch,
    inputs: &[PathBuf],
    emulator: &Arc<Emulator>,
) {
    // The device makes none of the terms.
    let turkish = "turkish".parse().unwrap();
    for (n, (tokenizer, fold, stemmer)) in [
        (Tokenizer::CjkBigram, false, Stemmer::PORTER),
        (Tokenizer::CjkBigram, true, Stemmer::ENGLISH),
        (Tokenizer::Words, false, turkish),
        (Tokenizer::Words, true, turkish),
        (Tokenizer::Words, true, Stemmer::ENGLISH),
        (Tokenizer::FirstWords, false, turkish),
        (Tokenizer::Whitespace, false, Stemmer::NONE),
    ]
    .into_iter()
    .enumerate()
    {
        let fast = scratch.path(format!("fast-bigrams-{n}"));
        let inverted = scratch.path(format!("bigrams-{n}"));
        let of = |index: &Path| {
            let mut options = options(index, inputs, 2);
            options.analysis = Analysis { tokenizer, fold, stemmer, ..Analysis::default() };
            options
        };
        build(of(&fast)).unwrap();
        build(on_device(of(&inverted), emulator, 7, |_| ())).unwrap();
        assert_same_index(&fast, &inverted, &[]);
    }
}

/// A device that has room for a batch or two, and not for all postings of the run.
fn a_full_device_gives_the_index_of_fast(
    scratch: &Scratch,
    inputs: &[PathBuf],
    fast: &Path,
    emulator: &Arc<Emulator>,
) {
    // Which texts come together depends on time, and what comes in small parts may fit.
    let is_spilled = (0..8).any(|attempt| {
        let full = scratch.path(format!("full-{attempt}"));
        let options = options(&full, inputs, 2);
        let mut options = on_device(options, emulator, 5, |machine| machine.most_bytes = 200_000);
        options.pipeline.texts_at_once = 1 << 20;
        let work = build(options).unwrap().inverter.unwrap();
        assert_same_index(fast, &full, &[]);
        work.spilled == 1
    });
    assert!(is_spilled, "nothing was taken to the host");
}

/// A device that is lost before, within and at the end of a run; the third says that nothing is
/// lost without need.
#[test]
fn a_build_whose_device_is_lost_begins_again_on_the_cpu() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let inputs = [scratch.write("a.jsonl", Collection::new(3, 20, 9).jsonl())];
    let fast = scratch.path("fast");
    build(options(&fast, &inputs, 1)).unwrap();
    for (launches, is_lost) in [(0, true), (20, true), (10_000, false)] {
        let index = scratch.path(format!("lost-{launches}"));
        let lose = move |machine: &mut Emulated| machine.launches_left = launches;
        let mut options = on_device(options(&index, &inputs, 2), &emulator, 1, lose);
        let notes = Arc::new(Mutex::new(Vec::new()));
        let heard = notes.clone();
        options.notes = Some(Arc::new(move |note| heard.lock().unwrap().push(note.to_string())));
        let report = build(options).unwrap();
        assert_same_index(&fast, &index, &[]);
        assert_eq!((report.inverter.is_none(), report.documents), (is_lost, 20));
        let notes = notes.lock().unwrap();
        let says = notes.iter().any(|note| note.starts_with("the build begins again on the CPU: "));
        assert_eq!(says, is_lost, "{notes:?}");
    }
}

/// Where no indexer is named a device is taken if there is enough input; if it fails, whatever it
/// is, the CPU is.
#[test]
fn a_device_is_chosen_where_it_pays() {
    let Some(emulator) = compiled() else { return };
    let scratch = Scratch::new();
    let inputs = [scratch.write("a.jsonl", Collection::new(3, 20, 9).jsonl())];
    let bytes = std::fs::metadata(&inputs[0]).unwrap().len();
    let fast = scratch.path("fast");
    build(options(&fast, &inputs, 1)).unwrap();
    let with = |name: &str, change: &dyn Fn(&mut BuildOptions)| {
        let index = scratch.path(name);
        let mut options = options(&index, &inputs, 2);
        let emulator = emulator.clone();
        let machine = move || Ok(Box::new(Emulated::new(emulator.clone(), 1)) as _);
        options.pipeline.make_machine = Some(Arc::new(machine));
        options.pipeline.gpu_from = bytes / 2;
        let notes = Arc::new(Mutex::new(Vec::new()));
        let heard = notes.clone();
        options.notes = Some(Arc::new(move |note| heard.lock().unwrap().push(note.to_string())));
        change(&mut options);
        let report = build(options).unwrap();
        assert_same_index(&fast, &index, &[]);
        let notes = notes.lock().unwrap().join("\n");
        assert_eq!(
            notes.contains("GB on a device; the indexer fast"),
            name.starts_with("gpu"),
            "{notes}"
        );
        (report.inverter.is_some(), notes)
    };
    assert!(with("gpu", &|_| ()).0);
    for (name, change) in [
        ("small", (|options| options.pipeline.gpu_from *= 2) as fn(&mut BuildOptions)),
        ("named", |options| options.indexer = Indexer::Fast),
        ("none", |options| options.gpus = Gpus::None),
        ("long", |options| options.max_document = 1 << 30),
    ] {
        assert!(!with(name, &change).0, "{name}");
    }
    let (is_gpu, notes) = with("gpu-full", &|options| {
        let full = || {
            let device = "a device".to_owned();
            let what = "arrays";
            Err(GpuError::Budget { device, what, bytes: 2, left: 1, limit: 1 }.into())
        };
        options.pipeline.make_machine = Some(Arc::new(full));
    });
    assert!(!is_gpu && notes.contains("the build begins again on the CPU: "), "{notes}");
}

/// Builds shared files twice, whatever is broken in them, and compares.
fn compare_shared(folder: &str) {
    let (Some(emulator), Some(input)) = (compiled(), shared(folder)) else { return };
    let scratch = Scratch::new();
    let fast = scratch.path("fast");
    let inverted = scratch.path("gpu");
    let of = |index: &Path| {
        let mut options = options(index, std::slice::from_ref(&input), 2);
        (options.guards.allow_cut, options.guards.allow_empty) = (true, true);
        options
    };
    build(of(&fast)).unwrap();
    let options = on_device(of(&inverted), &emulator, 12, |_| ());
    let work = build(options).unwrap().inverter.unwrap();
    assert_same_index(&fast, &inverted, &[]);
    eprintln!("{folder}: {work:?}");
}

#[test]
fn shared_files_on_an_emulated_device_are_those_of_fast() {
    compare_shared("formats/warc");
    compare_shared("formats/trec-small");
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_all_shared_files_on_an_emulated_device_are_those_of_fast() {
    for folder in [
        "collections/cacm",
        "collections/cisi",
        "collections/cranfield",
        "formats/mediawiki",
        "formats/trec-vaswani",
    ] {
        compare_shared(folder);
    }
}

/// Reading begins before a device is found. If there is none the build says what it would have said
/// before, and leaves nothing.
#[test]
fn a_build_that_finds_late_that_there_is_no_gpu_leaves_nothing() {
    let scratch = Scratch::new();
    let inputs = [scratch.write("a.jsonl", Collection::new(3, 20, 9).jsonl())];
    let index = scratch.path("index");
    let fail = || {
        let mut options = options(&index, &inputs, 2);
        options.indexer = Indexer::Gpu;
        let none = || {
            let why = "the indexer gpu needs a GPU, and none can be used (a reason)";
            Err(BuildError::Devices(SettingError::value("indexer", why)).into())
        };
        options.pipeline.make_machine = Some(Arc::new(none));
        build(options).unwrap_err().to_string()
    };
    let expected = "indexer: the indexer gpu needs a GPU, and none can be used (a reason)";
    assert_eq!(fail(), expected);
    assert!(!index.exists());
    build(options(&index, &inputs, 1)).unwrap();
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&index).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    assert_eq!(fail(), expected);
    assert_eq!(files(), before);
}

/// What the test says when it runs itself again, with a fault in what it writes.
const FOLDER: &str = "MILLRACE_TEST_FOLDER";

#[test]
fn a_build_on_a_device_may_fail_at_any_operation() {
    let Some(emulator) = compiled() else { return };
    if let Some(folder) = std::env::var_os(FOLDER) {
        let input = [Path::new(&folder).join("a.jsonl")];
        let mut options = options(&Path::new(&folder).join("index"), &input, 2);
        options.indexer = Indexer::Gpu;
        let machine = move || Ok(Box::new(Emulated::new(emulator.clone(), 3)) as _);
        options.pipeline.make_machine = Some(Arc::new(machine));
        match build(options) {
            Ok(_) => println!("it is built"),
            Err(error) => println!("it failed: {}", millrace::shown::chain(&error)),
        }
        return millrace::fault::report();
    }
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    let input = [folder.path().join("a.jsonl")];
    std::fs::write(&input[0], Collection::new(8, 40, 60).jsonl()).unwrap();
    let again = |fault: &str| {
        let name = "inside_tests::invert::builds::a_build_on_a_device_may_fail_at_any_operation";
        let test = std::env::current_exe().unwrap();
        let mut child = Command::new(test);
        child.args(["--exact", name, "--nocapture"]).env(FOLDER, folder.path());
        let output = child.env("MILLRACE_FAULT", fault).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
    };
    let live = || std::fs::read_to_string(index.join("CURRENT")).unwrap();
    let generations = || {
        let entries = std::fs::read_dir(&index).unwrap().map(|e| e.unwrap().file_name());
        entries.filter(|name| name.to_string_lossy().starts_with("gen-")).count()
    };
    let counted = again("count");
    let count = counted.rsplit_once("storage operations: ").expect(&counted).1;
    let count: usize = count.lines().next().unwrap().trim().parse().unwrap();
    let before = live();
    for n in (0..count).step_by(count / 8) {
        let text = again(&format!("{}@{n}", ["fail", "short"][n % 2]));
        if live() != before {
            break;
        }
        assert!(text.contains("it failed: ") && text.contains("No space left"), "{text}");
        assert_eq!(generations(), 1, "{n}: {text}");
    }
    build(options(&folder.path().join("fast"), &input, 1)).unwrap();
    assert!(again("fail@1000000").contains("it is built"));
    assert_same_index(&folder.path().join("fast"), &index, &[]);
}
