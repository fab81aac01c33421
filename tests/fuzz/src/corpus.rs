//! Runs every target over its seeds and over inputs made from them for a second, as a test of the
//! library. The inputs come in the same order each time; those that a target's coverage asks
//! for are libFuzzer's to find.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a target runs, at least once over each seed.
const TIME: Duration = Duration::from_secs(1);

thread_local! {
    static FOLDERS: RefCell<Vec<TempDir>> = const { RefCell::new(Vec::new()) };
}

/// Removes the folder as this thread ends.
pub(super) fn keep(folder: TempDir) -> PathBuf {
    let path = folder.path().to_path_buf();
    FOLDERS.with_borrow_mut(|folders| folders.push(folder));
    path
}

/// A change of an input, at a place.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// This many bytes of an input go behind the place.
    Splice(Index, Index, Index, usize),
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    // Bytes that mean something to one reader or another.
    let bytes = prop_oneof![
        vec(any::<u8>(), 1..6),
        vec(prop::sample::select(&b" \t\r\n\0\"\\{}[]<>/&;:,#=-01\xff\xef\xbb\xbf\x80"[..]), 1..6),
    ];
    prop_oneof![
        (at(), 1u8..=255).prop_map(|(at, bits)| Change::Flip(at, bits)),
        (at(), bytes).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), 1usize..20).prop_map(|(at, count)| Change::Remove(at, count)),
        (at(), at(), at(), 1usize..80).prop_map(|(to, of, at, n)| Change::Splice(to, of, at, n)),
        at().prop_map(Change::Cut),
    ]
}

fn changed(seeds: &[Vec<u8>], seed: Index, changes: &[Change]) -> Vec<u8> {
    let mut input = seed.get(seeds).clone();
    for change in changes {
        let place = |at: &Index| at.index(input.len() + 1);
        match change {
            Change::Flip(at, bits) => {
                let at = place(at);
                input.get_mut(at).into_iter().for_each(|byte| *byte ^= bits);
            }
            Change::Insert(at, bytes) => _ = input.splice(place(at)..place(at), bytes.clone()),
            Change::Remove(at, count) => {
                let at = place(at);
                input.drain(at..input.len().min(at + count));
            }
            Change::Splice(to, of, at, count) => {
                let of = of.get(seeds);
                let at = at.index(of.len() + 1);
                let part = of[at..of.len().min(at + count)].to_vec();
                input.splice(place(to)..place(to), part);
            }
            Change::Cut(at) => input.truncate(place(at)),
        }
    }
    input
}

fn run(name: &str, target: fn(&[u8])) {
    let began = Instant::now();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(name);
    let files = folder.read_dir().expect("a target has seeds");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("it is read").path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> =
        files.iter().map(|file| std::fs::read(file).expect("it is a file")).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for (file, seed) in files.iter().zip(&seeds) {
        eprintln!("{}", file.display());
        target(seed);
    }
    target(b"");
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config { cases: 10, failure_persistence: None, ..Config::default() };
    let inputs = (any::<Index>(), vec(change(), 1..6))
        .prop_map(|(seed, changes)| changed(&seeds, seed, &changes));
    let mut runner = TestRunner::new_with_rng(config, rng);
    let mut tried = 0;
    while began.elapsed() < TIME {
        let ran = runner.run(&inputs, |input| {
            target(&input);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{name}: {error}"));
        tried += 10;
    }
    eprintln!("{name}: {tried} inputs");
}

macro_rules! targets {
    ($($target:ident,)*) => {
        $(
            #[test]
            fn $target() {
                run(stringify!($target), super::$target);
            }
        )*

        #[test]
        fn every_target_is_run_here_and_built_for_libfuzzer() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
            let names = [$(stringify!($target)),*];
            let bins = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            for name in names {
                assert!(bins.contains(&format!("name = \"{name}\"\n")), "{name}");
                let main = folder.join("fuzz_targets").join(name).with_extension("rs");
                let main = std::fs::read_to_string(main).unwrap();
                assert!(main.contains(&format!("millrace::fuzzing::{name}(data)")), "{name}");
            }
            assert_eq!(folder.join("fuzz_targets").read_dir().unwrap().count(), names.len());
        }
    };
}

targets! {
    cache_plan,
    ciff,
    codec,
    cutter,
    decode,
    documents,
    generation,
    hello,
    job_file,
    jsonl,
    judged,
    lexicon,
    list,
    manifest,
    queries,
    query_line,
    records,
    stop_words,
    tokenizer,
    tsv,
}
