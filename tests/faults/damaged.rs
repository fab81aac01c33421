//! An index whose bytes change or go is refused or answers rightly. Everything runs in this
//! process: a panic, a wild allocation or an endless loop would show.

use crate::query::deletions::delete_those;
use crate::support::sealed::{Manifest, seal_file};
use crate::support::sound::{Answers, OldAndNew, ask, check};
use crate::support::{Random, file_path, today};
use millrace::IndexError;
use millrace::inside::codec::ListCodec;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How much is damaged.
#[derive(Clone, Copy)]
struct Extent {
    /// Bytes of a file that are damaged one by one; of a longer one, these at both ends and a
    /// sample.
    whole: u64,
    /// Places in the rest of a longer file.
    sample: u64,
}

type Form = (&'static str, &'static str);
/// Blocks that stand alone, and two codecs whose blocks share something.
const BP128: Form = ("bp128", "128");
const RICE: Form = ("rice", "64");
const PFOR: Form = ("pfor", "64");

/// Some seconds; other places each day.
const SOME: Extent = Extent { whole: 48, sample: 24 };
/// Fewer.
const FEW: Extent = Extent { whole: 16, sample: 12 };
/// Some minutes.
const ALL: Extent = Extent { whole: u64::MAX, sample: 0 };

/// Whatever was damaged, one look at the index takes no longer.
const HANG: Duration = Duration::from_secs(20);
/// Address space that no damage makes the process take, in KiB: all of these files are below 1 MB.
const WILD_KIB: u64 = 1 << 20;

/// An index with two runs, some lists with packed blocks, some documents that are deleted, of which
/// one is not counted yet, and its files.
struct Victim {
    set: OldAndNew,
    answers: Answers,
    files: Vec<PathBuf>,
}

impl Victim {
    /// `form` is a codec and a block size.
    fn new((codec, block_size): Form) -> Self {
        let set = OldAndNew::new(360, 16, 2);
        let job = set.build(&set.old).args(["--codec", codec, "--block-size", block_size]);
        let more = [
            "--no-merge",
            "--positions",
            "--field",
            "text",
            "--column",
            "id",
            "--store",
            "--store-fields",
            "id",
        ];
        job.env("MILLRACE_RUN_LIMIT", "1").args(more).ok();
        assert_eq!(delete_those(&set.index(), |run, docid| docid % 60 == run as u32).len(), 7);
        assert_eq!(delete_those(&set.index(), |run, docid| run == 0 && docid == 7).len(), 1);
        let answers = set.answers();
        assert!(answers.iter().any(|hits| hits.len() == 20));
        let generation = crate::support::generation(&set.index());
        let names = crate::support::files(&set.index()).into_keys();
        let mut files: Vec<_> = names.map(|name| file_path(&generation, &name)).collect();
        assert_eq!(files.len(), 25, "{files:?}");
        files.extend([generation.join("manifest.json"), set.index().join("CURRENT")]);
        Self { set, answers, files }
    }

    /// Opens and searches; a panic is an error of the test that names `what`.
    fn ask(&self, verify: bool, what: &str) -> Result<Answers, IndexError> {
        let asked = || ask(&self.set.index(), verify, &self.set.queries);
        catch_unwind(AssertUnwindSafe(asked)).unwrap_or_else(|_| panic!("panic: {what}"))
    }

    fn check(&self, what: &str) -> Result<(), Vec<IndexError>> {
        let checked = || check(&self.set.index());
        catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|_| panic!("panic: {what}"))
    }

    /// A file was damaged without any checksum being made good.
    fn assert_found(&self, path: &Path, what: &str) {
        let problems = self.check(what).expect_err(what);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!problems.is_empty() && !problems[0].to_string().is_empty(), "{what}");
        // Without --verify only these are not looked at whole, but what is read of them is.
        let asked = self.ask(false, what);
        let read_in_part = [".postings", ".positions", ".fields", ".columns", ".texts"];
        let error = match read_in_part.iter().any(|kind| name.ends_with(kind)) {
            true => {
                assert!(asked.is_err() || asked.is_ok_and(|found| found == self.answers), "{what}");
                self.ask(true, what).expect_err(what)
            }
            false => asked.expect_err(what),
        };
        assert!(names_a_file(&error), "{what}: {error}");
    }

    fn assert_whole(&self) {
        self.check("whole").unwrap();
        assert!(self.ask(true, "whole").unwrap() == self.answers);
    }
}

/// Which files an error speaks of is up to what refers to the damaged one, but it does name one.
fn names_a_file(error: &IndexError) -> bool {
    let text = error.to_string();
    ["runs/", "deletions", "manifest.json", "CURRENT", "index:"].iter().any(|n| text.contains(n))
}

/// The places in a file of `length` bytes that are damaged.
fn places(extent: Extent, length: u64, random: &mut Random) -> Vec<u64> {
    if length <= extent.whole {
        return (0..length).collect();
    }
    let ends = (0..extent.whole / 2).chain(length - extent.whole / 2..length);
    let mut places: Vec<u64> = ends.collect();
    places.extend((0..extent.sample).map(|_| random.next() % length));
    places.sort_unstable();
    places.dedup();
    places
}

/// Runs a test on a thread of its own and fails when it takes too long between two steps, or when
/// the process has taken wild amounts of memory.
fn watched(test: impl FnOnce(&dyn Fn(&str)) + Send + 'static) {
    let (sender, receiver): (Sender<String>, _) = channel();
    let before = address_space();
    let worker = std::thread::spawn(move || {
        test(&|step: &str| sender.send(step.to_string()).expect("the watcher lives"));
    });
    let mut last = String::new();
    loop {
        match receiver.recv_timeout(HANG) {
            Ok(step) => last = step,
            Err(RecvTimeoutError::Timeout) => panic!("hangs at {last}"),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let grown = address_space().saturating_sub(before);
        assert!(grown < WILD_KIB, "{grown} KiB more at {last}");
    }
    if let Err(panic) = worker.join() {
        std::panic::resume_unwind(panic);
    }
}

/// The most address space that this process has had, in KiB.
fn address_space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn flipped_bytes_are_found() {
    flip_bytes(BP128, SOME);
    flip_bytes(PFOR, FEW);
}

#[test]
fn cuts_are_found() {
    cut(BP128, FEW);
    cut(RICE, SOME);
}

#[test]
fn no_damaged_byte_of_postings_changes_an_answer() {
    damage_postings(5);
}

/// Whatever byte of the postings is damaged: an error, or the right answers, and never others. One
/// of this many, each day another one.
fn damage_postings(one_of: usize) {
    let forms = [BP128, RICE, PFOR, ("newpfd", "64"), ("vbyte", "64"), ("bp128", "64")];
    for codec in ListCodec::ALL.map(ListCodec::name) {
        assert!(forms.iter().any(|form| form.0 == codec), "{codec} is not damaged");
    }
    watched(move |step| {
        for form in forms {
            let victim = Victim::new(form);
            let is_wanted = |path: &&PathBuf| path.ends_with("000000.postings");
            let path = victim.files.iter().find(is_wanted).unwrap();
            let bytes = fs::read(path).unwrap();
            let mut silent = 0u64;
            let file = File::options().write(true).open(path).unwrap();
            let first = today() as usize % one_of;
            for (at, &old) in (0..).zip(&bytes).skip(first).step_by(one_of) {
                let what = format!("{form:?}: byte {at}");
                if at % 256 < one_of as u64 {
                    step(&what);
                }
                file.write_all_at(&[old ^ 1 << (at % 8)], at).unwrap();
                match victim.ask(false, &what) {
                    Ok(answers) => {
                        assert!(answers == victim.answers, "{what}");
                        silent += 1;
                    }
                    Err(error) => assert!(names_a_file(&error), "{what}: {error}"),
                }
                file.write_all_at(&[old], at).unwrap();
            }
            // Padding, and lists that no query asks for and that lie in no page of one that is.
            let tried = bytes.len() / one_of;
            assert!(silent < tried as u64 / 2, "{form:?}: {silent} of {tried}");
        }
    });
}

#[test]
fn sealed_damage_makes_no_panic() {
    seal_damage(BP128, FEW);
    seal_damage(PFOR, Extent { whole: SOME.whole / 3, ..SOME });
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_damage() {
    damage_postings(1);
    for form in [BP128, RICE, PFOR] {
        flip_bytes(form, ALL);
        cut(form, ALL);
        seal_damage(form, ALL);
    }
}

fn flip_bytes(form: Form, extent: Extent) {
    watched(move |step| {
        let victim = Victim::new(form);
        let mut random = Random::new(1 + today());
        let mut count = 0;
        for path in &victim.files {
            let bytes = fs::read(path).unwrap();
            let file = File::options().write(true).open(path).unwrap();
            for at in places(extent, bytes.len() as u64, &mut random) {
                let old = bytes[at as usize];
                // All bits of some, one bit of the others.
                let flip = if random.below(4) == 0 { 0xff } else { 1 << random.below(8) };
                let what = format!("{}: byte {at} {old:02x} ^ {flip:02x}", path.display());
                if count % 256 == 0 {
                    step(&what);
                }
                count += 1;
                file.write_all_at(&[old ^ flip], at).unwrap();
                // Another generation that is there is live then, as after a rollback.
                let named = fs::read_to_string(path).unwrap_or_default();
                let named = victim.set.index().join(named.trim_end());
                if !(path.ends_with("CURRENT") && named.join("manifest.json").exists()) {
                    victim.assert_found(path, &what);
                }
                file.write_all_at(&[old], at).unwrap();
            }
            victim.assert_whole();
        }
        println!("{count} bytes flipped");
    });
}

fn cut(form: Form, extent: Extent) {
    watched(move |step| {
        let victim = Victim::new(form);
        let mut random = Random::new(2 + today());
        let mut count = 0;
        for path in &victim.files {
            let bytes = fs::read(path).unwrap();
            let file = File::options().write(true).open(path).unwrap();
            let mut lengths = places(extent, bytes.len() as u64, &mut random);
            // Too long is as bad as too short.
            lengths.extend([1, 8, 64].map(|more| bytes.len() as u64 + more));
            for length in lengths.into_iter().rev() {
                let what = format!("{}: cut to {length} bytes", path.display());
                if count % 256 == 0 {
                    step(&what);
                }
                count += 1;
                file.set_len(length).unwrap();
                victim.assert_found(path, &what);
            }
            file.write_all_at(&bytes, 0).unwrap();
            victim.assert_whole();

            fs::rename(path, path.with_extension("away")).unwrap();
            let what = format!("{} is not there", path.display());
            victim.check(&what).expect_err(&what);
            victim.ask(false, &what).expect_err(&what);
            fs::create_dir(path).unwrap();
            let what = format!("{} is a folder", path.display());
            victim.check(&what).expect_err(&what);
            victim.ask(false, &what).expect_err(&what);
            fs::remove_dir(path).unwrap();
            fs::rename(path.with_extension("away"), path).unwrap();
            victim.assert_whole();
        }
        println!("{count} lengths");
    });
}

/// Damage by somebody who makes all checksums good again: there is nothing to find by them, and the
/// numbers may say anything.
fn seal_damage(form: Form, extent: Extent) {
    watched(move |step| {
        let victim = Victim::new(form);
        let generation = crate::support::generation(&victim.set.index());
        let manifest = Manifest::read(&generation);
        let whole = fs::read(generation.join("manifest.json")).unwrap();
        let mut random = Random::new(3 + today());
        let mut count = 0;
        let mut unnoticed = 0;
        for (number, name) in manifest.files().into_iter().enumerate() {
            let path = file_path(&generation, &name);
            let bytes = fs::read(&path).unwrap();
            for at in places(extent, bytes.len() as u64, &mut random) {
                let mut damaged = bytes.clone();
                let flip = random.pick(&[0xff, 0x80, 1, 2, 0x10]);
                damaged[at as usize] ^= flip;
                if random.below(8) == 0 {
                    // A number of eight bytes that is near the end of all numbers.
                    let start = (at as usize & !7).min(damaged.len() - 8);
                    damaged[start..start + 8].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
                }
                let what = format!("{}: byte {at} ^ {flip:02x}, sealed", path.display());
                if count % 64 == 0 {
                    step(&what);
                }
                count += 1;
                seal_file(&name, &mut damaged);
                fs::write(&path, &damaged).unwrap();
                let mut sealed = manifest.clone();
                sealed.seal(number, &damaged);
                fs::write(generation.join("manifest.json"), sealed.encode()).unwrap();
                unnoticed += u32::from(victim.check(&what).is_ok());
                _ = victim.ask(false, &what);
            }
            fs::write(&path, &bytes).unwrap();
        }
        fs::write(generation.join("manifest.json"), &whole).unwrap();
        victim.assert_whole();
        println!("{count} bytes changed and sealed, {unnoticed} of them unnoticed");
        // What stays unnoticed: bytes of names and places, and term frequencies with their sums.
    });
}
