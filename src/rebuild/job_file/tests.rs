//! Tests of the job file: values, defaults, and errors with their place.

use super::*;
use crate::build::guards::limit::Limit;
use crate::index::cache_plan::CachePolicy;
use crate::input::Format;
use crate::input::list::InputFile;
use crate::input::splits::InputPlan;
use crate::rebuild::Rebuild;
use crate::rebuild::history::LogCounts;
use crate::rebuild::live::Live;
use std::fs;

/// Plans nothing, so that job files may have logs.
#[derive(Debug)]
struct NoPlans;

impl LogPlanner for NoPlans {
    fn plan(
        &self,
        _: &Rebuild<'_>,
        _: &Live,
        _: &LogKeys,
    ) -> Result<Option<LogCounts>, RebuildError> {
        Ok(None)
    }
}

const HANDED: HandedRebuild = HandedRebuild { indexers: &[], planner: Some(&NoPlans) };

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("docs")).unwrap();
    for name in ["docs/b.jsonl", "docs/a.jsonl", "docs/.hidden.jsonl", "docs/c.txt", "links.tsv"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    folder
}

fn parse(folder: &Path, text: &str) -> Result<JobFile, RebuildError> {
    JobFile::parse(&folder.join("job.toml"), text, HANDED)
}

/// What an input matches.
fn matched(job: &JobFile, input: usize) -> Vec<PathBuf> {
    job.sources(input).unwrap().into_iter().flat_map(|source| source.paths).collect()
}

const LEAST: &str = "index = \"idx\"\n[[input]]\npaths = [\"docs/*.jsonl\"]\n";

#[test]
fn what_is_left_out_has_the_documented_value() {
    let folder = folder();
    let job = parse(folder.path(), LEAST).unwrap();
    assert_eq!(job.index, folder.path().join("idx"));
    assert!(job.schedule.is_none() && job.links.is_none() && job.logs.is_none());
    assert_eq!(job.trust, Trust::Content);
    assert_eq!(job.guard.min_documents, Limit::Percent(90.0));
    assert_eq!(job.guard.min_tokens, Limit::Percent(50.0));
    assert_eq!(job.guard.max_skipped, Limit::Percent(1.0));
    assert_eq!(job.verify.every.as_secs(), 7 * 86_400);
    assert_eq!((job.keep.generations, job.retry.attempts), (2, 3));
    assert_eq!(job.build.memory, 1 << 30);
    let files = matched(&job, 0);
    assert_eq!(files, ["docs/a.jsonl", "docs/b.jsonl"].map(|name| folder.path().join(name)));
}

#[test]
fn every_key_is_read() {
    let folder = folder();
    let text = r#"
index = "/elsewhere/idx"
trust = "mtime"
[[input]]
paths = ["docs/c.txt", "docs/*.jsonl"]
format = "jsonl"
[[input]]
paths = ["docs"]
[build]
indexer = "gpu"
stemmer = "porter"
stopwords = "none"
codec = "newpfd"
block-size = 64
memory = "256M"
max-document = "1M"
no-merge = true
strict = true
gpus = "none"
workers = 2
[schedule]
cron = "0 3 * * *"
timezone = "Europe/Zurich"
[guard]
min_documents = 100
min_tokens = "0"
max_skipped = "0.5%"
allow_cut = true
allow_empty = true
[verify]
every = "12h"
[keep]
generations = 5
[retry]
attempts = 4
wait = "10s"
longest = "30s"
[merge]
deleted = "5%"
runs = 3
[notify]
on_success = ["true"]
on_failure = ["logger", "failed"]
[links]
from = "file"
file = "links.tsv"
[pagerank]
damping = 0.9
tolerance = 1e-9
method = "power"
[logs]
queries = ["docs/*.txt"]
window = "14d"
cache = "qtf"
memory = "4G"
[status]
prometheus = "millrace.prom"
html = "millrace.html"
"#;
    let job = parse(folder.path(), text).unwrap();
    assert_eq!(job.index, Path::new("/elsewhere/idx"));
    assert_eq!(job.trust, Trust::Mtime);
    assert_eq!(job.inputs[0].format, Some(Format::Jsonl));
    assert_eq!(matched(&job, 0).len(), 3);
    assert_eq!(matched(&job, 1), [folder.path().join("docs")]);
    assert_eq!(job.build.form.block_len(), 64);
    assert_eq!((job.build.memory, job.build.max_document), (256 << 20, Some(1 << 20)));
    assert_eq!((job.build.workers, job.build.strict, job.build.no_merge), (Some(2), true, true));
    assert!(job.schedule.is_some());
    assert_eq!(job.guard.min_documents, Limit::Count(100));
    assert_eq!(job.guard.min_tokens, Limit::Count(0));
    assert_eq!(job.verify.every.as_secs(), 43_200);
    assert_eq!((job.keep.generations, job.merge.runs), (5, 3));
    let waits: Vec<_> = (1..7).map(|n| job.retry.before(n).map(|wait| wait.as_secs())).collect();
    assert_eq!(waits, [None, Some(10), Some(20), Some(30), None, None]);
    assert_eq!(job.notify.on_failure, ["logger", "failed"]);
    let file = job.links.as_ref().unwrap().file.as_ref().unwrap();
    assert_eq!(file.get_ref(), &folder.path().join("links.tsv"));
    assert_eq!(job.ranks().unwrap().tolerance, 1e-9);
    let no_date = job.log_files().unwrap_err().to_string();
    assert!(no_date.contains("there is no date such as"), "{no_date}");
    let logs = job.logs.unwrap();
    assert_eq!((logs.window, logs.cache, logs.lambda), (14, CachePolicy::Qtf, 1.0));
    assert_eq!((logs.memory, logs.k), (4 << 30, 10));
    for (file, name) in [(job.status.prometheus, "prom"), (job.status.html, "html")] {
        assert_eq!(file.unwrap().into_inner(), folder.path().join(format!("millrace.{name}")));
    }
}

/// Files of the state that would take the place of the index or of a source.
#[test]
fn the_state_is_not_written_over_what_is_read_or_kept() {
    let made = folder();
    let folder = made.path();
    let all = "index = \"idx\"\n[[input]]\npaths = [\"docs/*.jsonl\", \"pages\", \"more/**/*\"]\n[status]\n";
    for name in ["idx/gen-000001", "pages/deep", "more"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for name in ["pages/a.html", "more/a.txt"] {
        fs::write(folder.join(name), "").unwrap();
    }
    std::os::unix::fs::symlink("idx", folder.join("way")).unwrap();
    std::os::unix::fs::symlink("docs", folder.join("papers")).unwrap();
    let index = "is in the folder of the index";
    let source = "is a source";
    for (file, why) in [
        ("idx/CURRENT", index),
        ("idx/gen-000001/manifest.json", index),
        ("idx/rebuild/history.jsonl", index),
        ("idx", index),
        ("docs/../idx/KEPT", index),
        ("way/HELD", index),
        ("docs/a.jsonl", source),
        ("docs/new.jsonl", source),
        ("papers/a.jsonl", source),
        ("./docs/b.jsonl", source),
        ("pages/a.html", source),
        ("pages/deep/state.html", source),
        ("more/state.prom", source),
        ("job.toml", source),
    ] {
        for key in ["prometheus", "html"] {
            let error = parse(folder, &format!("{all}{key} = \"{file}\"\n")).unwrap_err();
            let RebuildError::Wrong { line: 5, message, .. } = &error else { panic!("{error}") };
            assert!(message.contains(why), "{file}: {message}");
        }
    }
    for file in ["state.html", "pages/state.prom", "docs/state.html", "idx.html", "new/state.prom"]
    {
        parse(folder, &format!("{all}html = \"{file}\"\n")).unwrap();
    }
}

#[test]
fn whatever_is_wrong_is_told_with_its_place() {
    let folder = folder();
    for (more, place, message) in [
        ("[build]\nmemry = \"1G\"\n", "5:1", "unknown field `memry`"),
        ("[bild]\n", "4:2", "unknown field `bild`"),
        ("[build]\nmemory = \"1X\"\n", "5:10", "is not a size"),
        ("[build]\n  stemmer = \"klingon\"\n", "5:13", "is not a stemmer"),
        ("[build]\nstopwords = \"none.txt\"\n", "5:13", "neither english, none, nor a file"),
        ("[build]\ncodec = \"zip\"\n", "5:9", "the codecs are"),
        ("[build]\nblock-size = 100\n", "5:14", "blocks of bp128"),
        ("[build]\nworkers = 0\n", "5:11", "from 1 to 1024"),
        ("[schedule]\ncron = \"0 3 * *\"\n", "5:8", "is not a cron expression"),
        ("[schedule]\ncron = \"0 3 * * *\"\ntimezone = \"Mars\"\n", "6:12", "not a time zone"),
        ("[schedule]\ntimezone = \"UTC\"\n", "4:1", "missing field `cron`"),
        ("[guard]\nmin_documents = \"ninety\"\n", "5:17", "expected a number, or a share"),
        ("[verify]\nevery = \"often\"\n", "5:9", "is not a span of time"),
        ("[keep]\ngenerations = 0\n", "5:15", "from 1 to 1000"),
        ("[retry]\nwait = \"soon\"\n", "5:8", "is not a span of time"),
        ("[notify]\non_failure = []\n", "5:14", "a list of words"),
        ("[links]\nfrom = \"file\"\nfile = \"nowhere\"\n", "6:8", "there is no file"),
        ("[links]\nfrom = \"xml\"\n", "5:8", "expected `file` or `html`"),
        ("[links]\nfrom = \"html\"\nfile = \"docs/c.txt\"\n", "6:8", "are not in a file"),
        ("[pagerank]\n", "4:1", "needs [links]"),
        (
            "[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\ndamping = 1.0\n",
            "8:11",
            "below 1",
        ),
        (
            "[links]\nfrom = \"file\"\nfile = \"links.tsv\"\n[pagerank]\nmethod = \"differential\"\n",
            "8:10",
            "`differential` is not `power`",
        ),
        ("[logs]\nqueries = [\"docs/c.txt\"]\nwindow = \"12h\"\n", "6:10", "whole days"),
        (
            "[[input]]\npaths = [\n  \"docs/*.jsonl\",\n  \"dogs/*.jsonl\"]\n",
            "7:3",
            "matches no file",
        ),
        ("[[input]]\npaths = [\"docs/[\"]\n", "5:10", "is not a pattern"),
        ("[[input]]\npaths = [\"docs/[\"]\n", "5:10", "`[[]` a bracket"),
        ("[[input]]\npaths = [\"docs/{a,b}\"]\n", "5:10", "give a pattern for each"),
        ("[[input]]\npaths = ['docs\\a']\n", "5:10", "`[*]` is a star"),
        ("[[input]]\npaths = [\"docs\", \"\"]\n", "5:18", "this path is empty"),
        ("[[input]]\npaths = [\"docs\"]\nexclude = [\" \"]\n", "6:12", "this path is empty"),
        ("[[input]]\npaths = [\"docs\"]\nexclude = [\"[\"]\n", "6:12", "is not a pattern"),
        ("[status]\nhtml = \"\"\n", "5:8", "this path is empty"),
        ("[logs]\nqueries = [\"\"]\n", "5:12", "this path is empty"),
        ("[[input]]\npaths = []\n", "5:9", "no path is named"),
        ("[[input]]\npaths = [\"docs\"]\nformat = \"xls\"\n", "6:10", "xls"),
        ("[keep\n", "4:6", ""),
        ("# é\n[keep]\ngenerations = \"é\" x\n", "6:19", ""),
    ] {
        let job = parse(folder.path(), &format!("{LEAST}{more}"));
        let error = job.and_then(|job| job.check_paths()).unwrap_err().to_string();
        let path = folder.path().join("job.toml");
        let expected = format!("{}:{place}: ", path.display());
        assert!(error.starts_with(&expected), "{more}\n{error}\nexpected {place}");
        assert!(error.contains(message), "{more}\n{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let error = parse(folder.path(), "index = \"idx\"\n").unwrap_err().to_string();
    assert!(error.contains(":1:1: no [[input]] is named"), "{error}");
    let error = parse(folder.path(), "[[input]]\npaths = [\"docs\"]\n").unwrap_err().to_string();
    assert!(error.contains("missing field `index`"), "{error}");
    let error = parse(folder.path(), "# idx\nindex = \"\"\n").unwrap_err().to_string();
    assert!(error.contains(":2:9: this path is empty"), "{error}");
    let error = JobFile::read(&folder.path().join("missing.toml"), HANDED).unwrap_err();
    assert!(matches!(error, RebuildError::Io { .. }));
}

/// The files that a pattern of one input means, without those that are excluded.
fn means(folder: &Path, pattern: &str, exclude: &str) -> Result<Vec<String>, String> {
    let text =
        format!("index = \"idx\"\n[[input]]\npaths = [\"{pattern}\"]\nexclude = [{exclude}]\n");
    let sources = parse(folder, &text).and_then(|job| job.sources(0).map(|found| (job, found)));
    let (job, sources) = sources.map_err(|error| error.to_string())?;
    let plan = InputPlan::of_sources(sources.into_iter(), &job.index);
    let plan = plan.map_err(|error| error.to_string())?;
    let path = |input: InputFile| input.path.unwrap();
    let below = |path: PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
    Ok(plan.inputs.iter().map(path).map(below).collect())
}

#[test]
fn two_stars_are_all_that_is_below() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["s/a.txt", "s/sub/b.txt", "s/sub/deep/c.txt", "s/empty/.keep", "other/d.txt"] {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), "text").unwrap();
    }
    let all = ["s/a.txt", "s/sub/b.txt", "s/sub/deep/c.txt"];
    let of = |pattern, exclude| means(folder.path(), pattern, exclude);
    for pattern in ["s", "s/*", "s/**", "./s/**", "s/**/", "s/**/*", "s/**/*.txt"] {
        assert_eq!(of(pattern, "").unwrap(), all, "{pattern}");
        for (exclude, left) in [
            ("\"s/sub\"", &all[..1]),
            ("\"s/sub/**\"", &all[..1]),
            ("\"./s/sub/\"", &all[..1]),
            ("\"s/a.txt\", \"s/*/deep\"", &all[1..2]),
            ("\"**/c.txt\"", &all[..2]),
            ("\"nothing\"", &all[..]),
        ] {
            assert_eq!(of(pattern, exclude).unwrap(), left, "{pattern} without {exclude}");
        }
        let error = of(pattern, "\"s/**\", \"s\"").unwrap_err();
        let place = "job.toml:3:10: `";
        assert!(error.contains(place) && error.contains("but those of `exclude`"), "{error}");
    }
    assert_eq!(of("**", "").unwrap().len(), 4);
    assert_eq!(of("**/sub/**", "").unwrap(), all[1..]);
    for pattern in ["s/empty", "s/emp*"] {
        let error = of(pattern, "").unwrap_err();
        assert!(error.contains("s/empty: this folder has no files"), "{error}");
    }
}

#[test]
fn what_vanishes_later_is_told_with_its_place() {
    let folder = folder();
    let job = parse(folder.path(), LEAST).unwrap();
    fs::remove_dir_all(folder.path().join("docs")).unwrap();
    let error = job.sources(0).err().unwrap().to_string();
    assert!(error.contains(":3:10: `docs/*.jsonl` matches no file"), "{error}");
}

#[test]
fn a_folder_with_characters_of_patterns_is_taken_as_it_is() {
    let folder = folder();
    let odd = folder.path().join("a[b]*");
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("x.jsonl"), "").unwrap();
    let text = LEAST.replace("docs/", "");
    let job = JobFile::parse(&odd.join("job.toml"), &text, HANDED).unwrap();
    assert_eq!(matched(&job, 0), [odd.join("x.jsonl")]);
}

#[test]
fn the_example_is_a_job_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("datasets/rebuild.toml");
    let job = JobFile::read(&path, HANDED).unwrap();
    assert!(job.schedule.is_some());
    assert!(!matched(&job, 0).is_empty());
}
