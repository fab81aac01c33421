//! Commands refuse an index that somebody has changed, who has made all checksums good again, or
//! answer from it; they never panic, take much memory, or hang: a job that takes minutes is killed.

use super::part;
use crate::support::sealed::{Manifest, seal_file};
use crate::support::sound::OldAndNew;
use crate::support::{Random, args, copy_folder, generation, millrace};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Changes of an index of each of five codecs: 10,000 in all.
const MUTATIONS: usize = 2000;
/// Address space of a command, in KiB; the indexes have less than 1 MB.
const MOST_KIB: u64 = 4 << 20;
/// The commands that read an index, and those that write one, which get a copy.
const COMMANDS: [&str; 16] = [
    "check",
    "info",
    "query",
    "query --verify",
    "query bmw",
    "query wand",
    "query and",
    "show --docid",
    "show --term",
    "explain",
    "dump terms",
    "dump postings",
    "dump documents",
    "export",
    "merge",
    "build",
];

fn arguments(command: &str, index: &Path, (word, input): (&str, &Path)) -> Vec<OsString> {
    let with = |words: &str| {
        let words = words.split(' ').map(OsString::from);
        words.chain(args!["--quiet", "--index", index]).collect::<Vec<_>>()
    };
    let and = |words: &str, more: &[&str]| {
        let mut all = with(words);
        all.extend(more.iter().map(OsString::from));
        all
    };
    match command {
        "info" => with("info --json"),
        "query bmw" => with("query --algorithm bmw -w 2"),
        "query wand" => with("query --algorithm wand"),
        "query and" => with("query --mode and"),
        "show --docid" => with("show --docid 7"),
        "show --term" => and("show", &["--term", word]),
        "explain" => and("explain", &["--docid", "7", word]),
        "export" => and("export", &["-"]),
        "merge" => with("merge --memory 64M"),
        "build" => {
            let mut all = with("build --memory 64M -w 1 --min-documents 1%");
            all.push(input.into());
            all
        }
        other => with(other),
    }
}

/// Changes some bytes of a file of the index, or numbers of its manifest, and makes all checksums
/// good.
fn change(folder: &Path, manifest: &Manifest, random: &mut Random) -> String {
    let mut sealed = manifest.clone();
    let number = random.pick(&[0, 1, 7, u64::from(u32::MAX), 1 << 40, u64::MAX - 7]);
    let files = manifest.files();
    let which = random.below(files.len() + 1);
    let what = match files.get(which) {
        None => change_manifest(&mut sealed, number, random),
        Some(name) => {
            let path = folder.join(name);
            let mut bytes = fs::read(&path).unwrap();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] ^= random.pick(&[0xff, 0x80, 1, 2, 0x10]);
            }
            if random.below(6) == 0 {
                let start = (random.below(bytes.len()) & !7).min(bytes.len() - 8);
                bytes[start..start + 8].copy_from_slice(&number.to_le_bytes());
            }
            seal_file(name, &mut bytes);
            fs::write(&path, &bytes).unwrap();
            sealed.seal(which, &bytes);
            name.clone()
        }
    };
    fs::write(folder.join("manifest.json"), sealed.encode()).unwrap();
    what
}

fn change_manifest(manifest: &mut Manifest, number: u64, random: &mut Random) -> String {
    let Manifest(all) = manifest;
    let run = random.below(all["runs"].as_array().unwrap().len());
    let (member, number) = match random.below(10) {
        0 => (&mut all["statistics"]["documents"], number),
        1 => (&mut all["statistics"]["tokens"], number),
        2 => (&mut all["statistics"]["postings"], number),
        3 => (&mut all["statistics"]["terms"], number),
        4 => (&mut all["runs"][run]["documents"], number as u32 as u64),
        5 => (&mut all["runs"][run]["first_docid"], number as u32 as u64),
        6 => (&mut all["runs"][run]["terms"], number),
        7 => (&mut all["runs"][run]["postings"], number),
        8 => (&mut all["settings"]["block_size"], number as u32 as u64),
        _ => {
            let file = random.below(all["files"].as_array().unwrap().len());
            (&mut all["files"][file]["bytes"], number)
        }
    };
    assert!(member.is_u64(), "a number is there: {member}");
    *member = number.into();
    "manifest.json".to_string()
}

/// For each command, mutations and those of them that it refused.
type Figures = [(u64, u64); COMMANDS.len()];

fn with_form((codec, block_size): (&str, &str)) -> Figures {
    let mut random = Random::new(23);
    let mut figures = Figures::default();
    let set = OldAndNew::new(360, 16, 2);
    let job = set.build(&set.old).args(["--codec", codec, "--block-size", block_size]);
    job.env("MILLRACE_RUN_LIMIT", "1").arg("--no-merge").ok();
    let small =
        set.scratch.write("small.jsonl", "{\"id\":\"a\",\"text\":\"one two\"}\n".repeat(20));
    let queries = set.queries.join("\n") + "\n";
    let word = set.queries[0].split(' ').next().unwrap();
    let folder = generation(&set.index());
    let manifest = Manifest::read(&folder);
    let whole = set.scratch.path("whole");
    let copy = set.scratch.path("copy");
    copy_folder(&set.index(), &whole);
    for mutation in 0..MUTATIONS / part() {
        let number = mutation % COMMANDS.len();
        let command = COMMANDS[number];
        let changed = change(&folder, &manifest, &mut random);
        let writes = ["merge", "build"].contains(&command);
        if writes {
            _ = fs::remove_dir_all(&copy);
            copy_folder(&set.index(), &copy);
        }
        let index = if writes { copy.clone() } else { set.index() };
        let job = millrace(arguments(command, &index, (word, &small))).limited(MOST_KIB);
        let outcome = job.stdin(queries.clone()).run();
        let what = || {
            let outcome = format!("{outcome:?}");
            format!("{codec}, mutation {mutation} of {changed}: {outcome:.3000}")
        };
        assert!(matches!(outcome.status, Some(0 | 1)), "{}", what());
        let refused = outcome.status == Some(1);
        assert!(!refused || !outcome.stderr.trim().is_empty() || command == "check", "{}", what());
        assert!(!outcome.stderr.contains("report it"), "{}", what());
        figures[number].0 += 1;
        figures[number].1 += u64::from(refused);
        for name in [changed.as_str(), "manifest.json"] {
            let inside = folder.file_name().unwrap();
            fs::copy(whole.join(inside).join(name), folder.join(name)).unwrap();
        }
    }
    set.assert_tidy(codec);
    figures
}

/// Tries one form and prints what came of it.
fn campaign(codec: &str, block_size: &str) {
    let figures = with_form((codec, block_size));
    for (name, (mutations, refused)) in COMMANDS.iter().zip(figures) {
        println!("{codec}, {name}: {mutations} mutations, {refused} refused");
    }
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_mutations_of_bp128() {
    campaign("bp128", "128");
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_mutations_of_newpfd() {
    campaign("newpfd", "64");
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_mutations_of_pfor() {
    campaign("pfor", "64");
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_mutations_of_rice() {
    campaign("rice", "64");
}

#[test]
#[ignore = "takes long: make campaign"]
fn campaign_mutations_of_vbyte() {
    campaign("vbyte", "128");
}
