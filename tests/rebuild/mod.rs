//! Rebuilds: an index follows its sources, and stays what it is when they are not sound.

mod changes;
// Only debug builds have what makes jobs fail.
#[cfg(debug_assertions)]
mod guarded;
mod held;
mod killed;
mod links;
mod logs;
mod memory;
mod notified;
mod storage;
mod swap;
mod vectors;
mod versions;

use crate::support::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A folder with sources and a job file.
pub(crate) struct Place {
    pub(crate) scratch: Scratch,
    pub(crate) job: PathBuf,
}

impl Place {
    pub(crate) fn new(more: &str) -> Self {
        let scratch = Scratch::new();
        let keys = "index = \"idx\"\n[[input]]\npaths = [\"docs/*\"]\n[build]\nmemory = \"64M\"\nworkers = 2\ngpus = \"none\"\n";
        let job = scratch.write("job.toml", format!("{keys}{more}"));
        let place = Self { scratch, job };
        place.write("a.jsonl", 0..30);
        place.write("b.jsonl", 30..40);
        place
    }

    /// Writes documents of some numbers into a source.
    fn write(&self, name: &str, documents: std::ops::Range<u32>) {
        let line = |n| format!("{{\"id\": \"d{n}\", \"contents\": \"mill {n} race {}\"}}\n", n % 7);
        self.scratch.write(format!("docs/{name}"), documents.map(line).collect::<String>());
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.scratch.path("idx")
    }

    fn run(&self, option: &str) -> Outcome {
        millrace(args!["rebuild", &self.job, option]).run()
    }

    pub(crate) fn once(&self) -> Value {
        let outcome = self.run("--once");
        assert_eq!(outcome.status, Some(0), "{outcome:?}");
        self.status()["last"].clone()
    }

    /// A rebuild that fails, and leaves the live generation as it is; returns what it says.
    fn fails(&self, live: u64) -> String {
        let before = snapshot(&self.index());
        let outcome = self.run("--once");
        assert_eq!(outcome.status, Some(1), "{outcome:?}");
        assert_eq!(snapshot(&self.index()), before);
        assert_eq!(self.documents(), live);
        let status = self.status();
        assert_eq!(status["last"]["outcome"], "failed");
        let reason = status["last"]["reason"].as_str().unwrap();
        assert!(outcome.stderr.contains(reason), "{reason}\n{}", outcome.stderr);
        outcome.stderr
    }

    fn status(&self) -> Value {
        let outcome = self.run("--status");
        let status: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let failed = status["last"]["outcome"] == "failed";
        assert_eq!(outcome.status, Some(i32::from(failed)), "{outcome:?}");
        status
    }

    fn plan(&self) -> Value {
        let outcome = self.run("--dry-run");
        assert_eq!(outcome.status, Some(0), "{outcome:?}");
        serde_json::from_slice(&outcome.stdout).unwrap()
    }

    pub(crate) fn documents(&self) -> u64 {
        let info = millrace(args!["info", "--json", "--index", self.index()]).ok();
        serde_json::from_slice::<Value>(&info.stdout).unwrap()["documents"].as_u64().unwrap()
    }
}

/// Every file of the generations of an index, with its bytes.
fn snapshot(index: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![index.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // The history grows.
                if path.file_name().unwrap() != "rebuild" {
                    folders.push(path);
                }
            } else if path.file_name().unwrap() != "LOCK" {
                // A lock names the process that had it last.
                files.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn an_index_follows_its_sources() {
    let place = Place::new("");
    let plan = place.plan();
    assert_eq!(
        (&plan["how"]["whole"], &plan["inputs"]["added"]),
        (&"there is no index".into(), &2.into())
    );
    assert!(plan["documents"].is_null() && plan["read_bytes"].as_u64() > Some(1000), "{plan}");
    place.run("--dry-run").says("from 2 files of ").says("known when they are read");
    assert!(!place.index().exists(), "a plan writes nothing");

    let first = place.once();
    assert_eq!((&first["outcome"], &first["documents"]["live"]), (&"published".into(), &40.into()));
    assert_eq!(place.plan()["how"], "nothing");
    let before = snapshot(&place.index());
    let second = place.once();
    assert_eq!((&second["outcome"], &second["generation"]), (&"unchanged".into(), &1.into()));
    assert_eq!(snapshot(&place.index()), before);

    place.write("b.jsonl", 30..45);
    place.write("c.jsonl", 45..50);
    let third = place.once();
    assert_eq!((&third["outcome"], &third["documents"]["live"]), (&"published".into(), &50.into()));
    let inputs = &third["inputs"];
    assert_eq!((&inputs["unchanged"], &inputs["changed"]), (&1.into(), &1.into()));
    assert_eq!((&inputs["added"], &inputs["removed"]), (&1.into(), &0.into()));
    let hits = millrace(args!["query", "--index", place.index(), "-k", "1"]).stdin("d\t47\n").ok();
    assert!(hits.text().contains(" d47 "), "{hits:?}");

    std::fs::remove_file(place.scratch.path("docs/c.jsonl")).unwrap();
    let fourth = place.once();
    assert_eq!(
        (&fourth["documents"]["live"], &fourth["inputs"]["removed"]),
        (&45.into(), &1.into())
    );
    let history = std::fs::read_to_string(place.index().join("rebuild/history.jsonl")).unwrap();
    assert_eq!(history.lines().count(), 4);
    let shown = millrace(args!["info", "--history", "--index", place.index()]).ok();
    assert!(shown.text().lines().nth(1).unwrap().contains("unchanged  generation 1  40 documents"));
    let shown = millrace(args!["info", "--history", "--json", "--index", place.index()]).ok();
    assert_eq!(serde_json::from_slice::<Value>(&shown.stdout).unwrap()[3], fourth);
    millrace(args!["check", "--index", place.index()]).ok();
}

/// This many generations stay as the job file says, and one of them can become live again; what is
/// published after that is made from it.
#[test]
fn older_generations_stay_and_come_back() {
    let place = Place::new("[keep]\ngenerations = 3\n[merge]\nruns = 1\n");
    place.once();
    for end in 31..35 {
        place.write("a.jsonl", 0..end);
        assert_eq!(place.once()["incremental"], true);
    }
    let generations = || -> Vec<String> {
        let entries = std::fs::read_dir(place.index()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("gen-")).collect();
        names.sort();
        names
    };
    assert_eq!(generations(), ["gen-000003", "gen-000004", "gen-000005"]);
    let runs = || millrace::Generation::open(&place.index()).unwrap().runs().len();
    assert_eq!(runs(), 1, "each rebuild has merged what it published");
    let same = millrace(args!["rollback", "--index", place.index(), "--to", "5"]).fails(1);
    same.says("generation 5 is live already; kept are");
    millrace(args!["rollback", "--index", place.index()]).ok();
    assert_eq!(place.documents(), 43);
    assert_eq!(place.once()["documents"]["live"], 43, "a rollback holds");
    millrace(args!["rollback", "--index", place.index(), "--release"]).ok();
    assert_eq!(place.once()["documents"]["live"], 44);
    assert_eq!(place.documents(), 44);
    millrace(args!["check", "--index", place.index()]).ok();
}

/// A rebuild of everything, because there is no index or its settings are others, publishes the
/// bytes of `build`.
#[test]
fn oracle_a_build_of_the_same_files() {
    let place = Place::new("");
    place.once();
    let bytes = |index: &Path, generation: &str| -> Vec<_> {
        let folder = index.join(generation);
        let files = snapshot(&folder).into_iter();
        let files = files.filter(|(path, _)| path.file_name().unwrap() != "manifest.json");
        files.map(|(path, bytes)| (path.strip_prefix(&folder).unwrap().to_owned(), bytes)).collect()
    };
    let built = |stemmer: &str, order: &str| {
        let other = place.scratch.path(format!("{stemmer}-{order}"));
        let index = place.index();
        let docs = place.scratch.path("docs");
        let of_build = args![
            "build",
            "--index",
            &other,
            "--memory",
            "64M",
            "-w",
            "2",
            "--stemmer",
            stemmer,
            "--order",
            order
        ];
        millrace(of_build.into_iter().chain(args![docs])).ok();
        let live = generation(&index);
        let number = live.file_name().unwrap().to_str().unwrap();
        assert!(
            bytes(&index, number) == bytes(&other, "gen-000001"),
            "{number}, {stemmer}, {order}"
        );
    };
    built("english", "input");
    place.write("a.jsonl", 5..35);
    let job = std::fs::read_to_string(&place.job).unwrap();
    place.scratch.write("job.toml", format!("{job}stemmer = \"porter\"\n"));
    assert_eq!(place.plan()["how"]["whole"], "the stemmer is another one");
    assert_eq!(place.once()["incremental"], false);
    built("porter", "input");
    // Nothing but the order is another one.
    place.scratch.write("job.toml", format!("{job}stemmer = \"porter\"\norder = \"length\"\n"));
    assert_eq!(place.once()["outcome"], "published");
    built("porter", "length");
}

#[test]
fn words_that_are_to_be_folded_are_read_again() {
    let place = Place::new("");
    place.once();
    let job = std::fs::read_to_string(&place.job).unwrap();
    for (more, reason) in
        [("fold = true\n", true), ("fold = true\n", false), ("fold = false\n", true)]
    {
        place.scratch.write("job.toml", format!("{job}{more}"));
        let planned = place.plan()["how"].clone();
        let expected = match reason {
            true => serde_json::json!({"whole": "words are to be folded, or no longer"}),
            false => "nothing".into(),
        };
        assert_eq!(planned, expected, "{more}");
        place.once();
    }
    let live = &info(&place.index())["settings"];
    assert_eq!(live["fold"], Value::Null);
    place.scratch.write("job.toml", format!("{job}fold = true\ntokenizer = \"whitespace\"\n"));
    assert!(place.fails(40).contains("fold does not go with tokenizer whitespace"));
}

#[test]
fn sources_that_are_not_sound_leave_the_live_generation() {
    let place = Place::new("");
    place.once();
    place.write("a.jsonl", 0..25);
    assert!(place.fails(40).contains("35 documents, fewer than 36 (90% of the 40 before)"));
    place.write("a.jsonl", 0..0);
    assert!(place.fails(40).contains("docs/a.jsonl: this input is empty"));
    place.write("a.jsonl", 0..30);
    place.scratch.write("docs/c.jsonl", "{\"id\": \"x\", \"contents\": \"y\"}\n{\n");
    assert!(place.fails(40).contains("1 of 42 records are broken, more than 1%"));
    std::fs::remove_dir_all(place.scratch.path("docs")).unwrap();
    assert!(place.fails(40).contains("job.toml:3:10: `docs/*` matches no file"));
    let status = place.status();
    assert_eq!((&status["failures"], &status["last_good"]["generation"]), (&4.into(), &1.into()));
}

/// A plan that a guard would refuse is printed all the same; a copy of the job file passes it.
#[test]
fn a_guard_that_refuses_a_plan_is_passed_once() {
    let place = Place::new("");
    place.once();
    place.write("a.jsonl", 0..25);
    let refused = place.run("--dry-run").expect_status(1).says("35 documents, fewer than 36");
    let plan: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(plan["documents"]["live"], 35, "{plan}");
    let job = std::fs::read_to_string(&place.job).unwrap();
    let copy = place.scratch.write("copy.toml", job + "[guard]\nmin_documents = \"50%\"\n");
    millrace(args!["rebuild", copy, "--once"]).ok();
    assert_eq!((place.documents(), &place.plan()["how"]), (35, &"nothing".into()));
}

#[test]
fn a_compressed_file_that_is_cut_short_leaves_the_live_generation() {
    use std::io::Write;
    let place = Place::new("[guard]\nmax_skipped = \"50%\"\n");
    place.once();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for n in 0..2000 {
        writeln!(gzip, "{{\"id\": \"z{n}\", \"contents\": \"water {}\"}}", n * 7919).unwrap();
    }
    let whole = gzip.finish().unwrap();
    place.scratch.write("docs/z.jsonl.gz", &whole[..whole.len() / 2]);
    assert!(place.fails(40).contains("z.jsonl.gz: compressed stream cut short"));
    place.scratch.write("docs/z.jsonl.gz", &whole);
    assert_eq!(place.once()["documents"]["live"], 2040);
}

/// The index, with its history of JSON lines, lies where the patterns match.
#[test]
fn an_index_is_no_source_of_itself() {
    let place = Place::new("");
    let job = "index = \"docs/idx\"\n[[input]]\npaths = [\"docs/*\", \"docs/**/*.jsonl\"]\n[build]\nmemory = \"64M\"\nworkers = 1\ngpus = \"none\"\n";
    place.scratch.write("job.toml", job);
    let generation = |outcome: &str| {
        assert_eq!(place.run("--once").status, Some(0));
        let last = place.status()["last"].clone();
        assert_eq!((&last["outcome"], &last["documents"]["live"]), (&outcome.into(), &40.into()));
    };
    generation("published");
    generation("unchanged");
    generation("unchanged");
}

#[test]
fn two_rebuilds_at_once_and_one_beside_a_build() {
    let place = Place::new("");
    place.once();
    place.write("a.jsonl", 1..31);
    let lock = std::fs::File::open(place.index().join("rebuild/LOCK")).unwrap();
    lock.lock().unwrap();
    let outcome = place.run("--once");
    assert_eq!(outcome.status, Some(1));
    assert!(outcome.stderr.contains("another rebuild is under way"), "{outcome:?}");
    assert_eq!(place.status()["running"], true);
    drop(lock);
    let lock = std::fs::File::open(place.index().join("LOCK")).unwrap();
    lock.lock().unwrap();
    place.fails(40);
    drop(lock);
    assert_eq!(place.once()["documents"]["live"], 40);
}

#[test]
fn commands_and_metrics_tell_how_it_went() {
    let more = "[notify]\non_success = [\"sh\", \"-c\", \"echo $MILLRACE_GENERATION >> good\"]\non_failure = [\"sh\", \"-c\", \"echo $MILLRACE_REASON >> bad\"]\n[status]\nprometheus = \"metrics.prom\"\nhtml = \"page.html\"\n";
    let place = Place::new(more);
    place.once();
    place.once();
    place.write("a.jsonl", 0..1);
    place.fails(40);
    let read = |name| std::fs::read_to_string(place.scratch.path(name)).unwrap();
    assert_eq!(read("good"), "1\n");
    assert!(read("bad").contains("fewer than"));
    assert!(read("metrics.prom").contains("millrace_rebuild_failures_total{"));
    let page = read("page.html");
    assert!(page.contains("\"outcome\":\"published\"") && page.contains("fewer than"), "{page}");
}

/// A monitor looks at the exit status alone; the state is printed whatever it is.
#[test]
fn the_exit_status_tells_how_an_index_stands() {
    let place = Place::new("");
    let status = |more: &[&str], status: i32, says: &str| -> Value {
        let told = millrace(args!["rebuild", &place.job, "--status"]).args(more).run();
        assert_eq!(told.status, Some(status), "{told:?}");
        assert!(told.stderr.contains(says), "{told:?}");
        assert_eq!(told.stderr.is_empty(), status == 0, "{told:?}");
        serde_json::from_slice(&told.stdout).unwrap()
    };
    status(&["--max-age", "2d"], 1, "there is no generation yet");
    assert_eq!(status(&[], 0, "")["last"], Value::Null);
    place.once();
    let told = status(&["--max-age", "36h"], 0, "");
    assert!(told["generation_made"].as_str().is_some_and(|made| made.ends_with('Z')), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    status(&["--max-age", "1s"], 1, "old, more than 1s");
    for wrong in ["2", "-1d", "0s", "soon", "1mo"] {
        let job = millrace(args!["rebuild", &place.job, "--status"]);
        job.arg(format!("--max-age={wrong}")).fails(2).says("is not an age; write 36h or 2d");
    }
    millrace(args!["rebuild", &place.job, "--once", "--max-age", "2d"]).fails(2);
    place.write("a.jsonl", 0..1);
    place.fails(40);
    let told = status(&["--max-age", "36h"], 1, "the last rebuild failed: ");
    assert!(told["last"]["reason"].is_string());
}

/// A terminal gets the state as a form, and a pipe as JSON.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_the_state_as_a_form() {
    use std::io::Read;
    let place = Place::new("");
    place.once();
    let (mut main, side) = terminal();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(args!["rebuild", &place.job, "--status"])
        .stdout(side)
        .status()
        .unwrap();
    assert!(status.success());
    let mut form = Vec::new();
    // Behind the last byte this is an error: nobody has the other end any more.
    _ = main.read_to_end(&mut form);
    let form = String::from_utf8(form).unwrap().replace('\r', "");
    let index = place.index();
    for row in [
        &*format!("index           {}\n", index.display()),
        "live generation 1, made ",
        "running         no\n",
        "next            no service runs\n",
        "failures since  0\n",
    ] {
        assert!(form.contains(row), "{row}\n{form}");
    }
    assert_eq!(form.lines().count(), 8, "{form}");
}

#[test]
fn wrong_job_files_and_options_are_wrong_usage() {
    let place = Place::new("memry = \"1G\"\n");
    let outcome = place.run("--once");
    assert_eq!(outcome.status, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("job.toml:8:1: unknown field `memry`"), "{outcome:?}");
    millrace(args!["rebuild", &place.job, "--once", "--status"]).fails(2);
    let place = Place::new("");
    let outcome = millrace(args!["rebuild", &place.job]).fails(2);
    assert!(outcome.stderr.contains("no [schedule]: give --once"), "{outcome:?}");
    millrace(args!["rebuild", place.scratch.path("missing.toml"), "--once"]).fails(1);
}

/// The schedule is every minute, so that a test cannot wait for it; it can see that it waits, and
/// ends.
#[cfg(unix)]
#[test]
fn a_job_on_a_schedule_waits_and_ends_with_a_signal() {
    let place = Place::new("[schedule]\ncron = \"0 0 1 1 *\"\n");
    assert_eq!(place.status()["next"], Value::Null, "no service runs");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(args!["rebuild", &place.job])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    assert!(
        line.contains("the next rebuild is due") && line.contains("-01-01 00:00:00 UTC"),
        "{line}"
    );
    assert!(place.status()["next"].is_string(), "the service follows the schedule");
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().unwrap().success());
    assert_eq!(wait(&mut child, "rebuild on a schedule"), Some(143));
    assert_eq!(place.status()["next"], Value::Null);
    assert!(!place.index().exists());
}
