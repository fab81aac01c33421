//! What stands in the help of a job beside its options: their groups, and two examples.

use clap::Command;
use std::sync::LazyLock;

/// The version, with the commit that the program was built from, if `MILLRACE_COMMIT` named it then.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| version(COMMIT));

/// The commit, if it is known.
pub(crate) const COMMIT: Option<&str> = option_env!("MILLRACE_COMMIT");

fn version(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit.filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_string(),
    }
}

/// What queries ask for, and who answers them.
const FOUND: &[&str] = &["k", "mode", "algorithm", "docids", "verify"];
const GPUS: &[&str] = &[
    "device",
    "schedule",
    "deadline_ms",
    "gpus",
    "gpu_partition",
    "gpu_memory",
    "merge_levels",
    "query_threads",
    "traversal",
    "threshold",
];

/// Groups of options: of one job, or of all that have them, the heading, and the options.
const GROUPS: [(&str, &str, &[&str]); 14] = [
    ("build", "Documents", &["format", "id_fields", "text_fields", "max_document"]),
    ("", "Text", &["tokenizer", "stemmer", "stopwords"]),
    ("", "Lists", &["codec", "block_size", "no_merge"]),
    (
        "build",
        "What is refused, and what is kept",
        &["strict", "allow_empty", "allow_cut", "max_skipped", "min_documents", "keep"],
    ),
    (
        "build",
        "Sharing out the work",
        &[
            "indexer",
            "parsers",
            "cpu_indexers",
            "gpu_indexers",
            "gpus",
            "parse_block",
            "readers",
            "sample",
            "rates",
        ],
    ),
    ("", "Score", &["score", "alpha", "k1", "b", "idf"]),
    ("query", "What is found", FOUND),
    ("calibrate", "What is found", FOUND),
    (
        "query",
        "Queries and answers",
        &["topic_fields", "format", "tag", "batch", "delay_ms", "qrels"],
    ),
    ("query", "Spreading over workers", &["parallelism", "delta", "cut_us", "spin_us", "barrier"]),
    ("query", "GPUs", GPUS),
    ("calibrate", "GPUs", GPUS),
    (
        "",
        "Threads and processes",
        &["workers", "processes", "process", "hostfile", "wait", "secret"],
    ),
    ("", "Messages", &["quiet", "report"]),
];

/// What a command does, and the command.
type Example = (&'static str, &'static str);

/// Two examples of each job; those of a job that is not built in are not used.
const EXAMPLES: [(&str, [Example; 2]); 22] = [
    (
        "build",
        [
            (
                "Index a folder, whatever formats its files have:",
                "millrace build --index idx docs/",
            ),
            (
                "Chinese web pages in little memory, at most 1 % of them broken:",
                "millrace build --index idx --tokenizer cjk-bigram --memory 256M --max-skipped 1% crawl.warc.gz",
            ),
        ],
    ),
    (
        "query",
        [
            (
                "The best 1000 documents of each topic as a TREC run, measured by judgements:",
                "millrace query --index idx -k 1000 --tag mine --qrels qrels.txt topics.txt",
            ),
            (
                "Answer each query as it comes in, as JSON lines:",
                "millrace query --index idx --mode and-or --format jsonl --delay-ms 0",
            ),
        ],
    ),
    (
        "demo",
        [
            ("Index a small collection that is in the program, and ask it:", "millrace demo"),
            ("The same with your own files:", "millrace demo ~/notes"),
        ],
    ),
    (
        "evaluate",
        [
            ("Measure a run:", "millrace evaluate --qrels qrels.txt run.txt"),
            (
                "Compare two runs with a third by two measures, query by query:",
                "millrace evaluate --qrels qrels.txt -m nDCG@10 -m AP --per-query base.txt a.txt b.txt",
            ),
        ],
    ),
    (
        "tune",
        [
            ("Try the usual values:", "millrace tune --index idx --qrels qrels.txt topics.txt"),
            (
                "A grid of one's own for another measure, everything as JSON:",
                "millrace tune --index idx --qrels qrels.txt -m AP --k1 0.9,1.2,1.5 --b 0.3,0.5,0.7 --json topics.txt",
            ),
        ],
    ),
    (
        "fuse",
        [
            ("By the ranks of the documents:", "millrace fuse a.txt b.txt"),
            (
                "By their scores, 100 for each query:",
                "millrace fuse --method combsum -k 100 a.txt b.txt",
            ),
        ],
    ),
    (
        "rebuild",
        [
            (
                "Rebuild on the schedule of the job file, until a signal comes:",
                "millrace rebuild job.toml",
            ),
            ("Tell what a rebuild would do now:", "millrace rebuild job.toml --dry-run"),
        ],
    ),
    (
        "merge",
        [
            (
                "One run of all, without the documents that are deleted:",
                "millrace merge --index idx",
            ),
            (
                "Code the lists in less space:",
                "millrace merge --index idx --codec newpfd --memory 4G",
            ),
        ],
    ),
    (
        "check",
        [
            ("Verify the live generation:", "millrace check --index idx"),
            ("Only the exit status:", "millrace check --quiet --index idx"),
        ],
    ),
    (
        "rollback",
        [
            ("Back to the generation before:", "millrace rollback --index idx"),
            ("To one of those that are kept:", "millrace rollback --index idx --to 3"),
        ],
    ),
    (
        "info",
        [
            ("In words:", "millrace info --index idx"),
            ("For programs:", "millrace info --index idx --json"),
        ],
    ),
    (
        "show",
        [
            ("A document, by its name:", "millrace show --index idx doc-17"),
            ("What the index has of a word:", "millrace show --index idx --term mill"),
        ],
    ),
    (
        "explain",
        [
            ("Why a document has its score:", "millrace explain --index idx doc-17 mill"),
            (
                "By docid, with other parameters:",
                "millrace explain --index idx --docid 17 --k1 0.9 --b 0.4 mill",
            ),
        ],
    ),
    (
        "dump",
        [
            ("Terms with df, cf and bytes, as JSON lines:", "millrace dump --index idx terms"),
            ("A posting a line:", "millrace dump --index idx --format tsv postings"),
        ],
    ),
    (
        "export",
        [
            ("For PISA, Terrier and others:", "millrace export --index idx idx.ciff"),
            ("To standard output:", "millrace export --index idx -"),
        ],
    ),
    (
        "import",
        [
            (
                "An index that Anserini has exported:",
                "millrace import --index idx --stemmer porter anserini.ciff",
            ),
            (
                "One without stemming and stop words:",
                "millrace import --index idx --stemmer none --stopwords none other.ciff",
            ),
        ],
    ),
    (
        "devices",
        [("What there is:", "millrace devices"), ("For programs:", "millrace devices --json")],
    ),
    (
        "cache",
        [
            (
                "What of the lists 4 GB are best filled with, by a log of queries:",
                "millrace cache --index idx --memory 4G --lambda 0.95 log-train.tsv",
            ),
            (
                "Whole lists of the terms that queries have most often:",
                "millrace cache --index idx --memory 4G --cache qtf log-train.tsv",
            ),
        ],
    ),
    (
        "calibrate",
        [
            (
                "Measure what queries cost on this machine:",
                "millrace calibrate --index idx queries.tsv",
            ),
            (
                "Few of them, with the cost of each:",
                "millrace calibrate --index idx --sample 500 --costs costs.jsonl queries.tsv",
            ),
        ],
    ),
    (
        "bench",
        [
            (
                "Latency on one worker, each query alone:",
                "millrace bench queries --index idx -k 10 queries.tsv",
            ),
            ("Size and speed of the codecs:", "millrace bench codecs --help"),
        ],
    ),
    (
        "completions",
        [
            ("For bash, in this session: eval this:", "millrace completions bash"),
            ("For fish, a script for its folder of completions:", "millrace completions fish"),
        ],
    ),
    (
        "man",
        [
            ("The page of the program:", "millrace man"),
            ("A page for each job:", "millrace man --dir man1"),
        ],
    ),
];

/// Adds the version, groups and examples to the command line.
pub(crate) fn complete(mut command: Command) -> Command {
    command = command.version(VERSION.as_str());
    for (job, examples) in EXAMPLES {
        if command.find_subcommand(job).is_some() {
            command = command.mut_subcommand(job, |job| grouped(job).after_help(text(&examples)));
        }
    }
    command
}

fn text(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(what, line)| format!("  {what}\n      {line}\n"));
    format!("Examples:\n{}", lines.collect::<String>())
}

fn grouped(job: Command) -> Command {
    let name = job.get_name().to_string();
    job.mut_args(|option| {
        let is_in = |group: &&(&str, &str, &[&str])| {
            (group.0.is_empty() || group.0 == name)
                && group.2.contains(&option.get_id().as_str())
                && !option.is_positional()
        };
        match GROUPS.iter().find(is_in) {
            Some((_, heading, _)) => option.help_heading(*heading),
            None => option,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn every_job_has_two_examples_that_parse() {
        let command = cli();
        for job in command.get_subcommands().map(Command::get_name) {
            let (_, examples) = EXAMPLES.iter().find(|(of, _)| *of == job).expect(job);
            for (what, line) in examples {
                let words: Vec<&str> = line.split(' ').collect();
                assert_eq!(words[..2], ["millrace", job]);
                assert!(what.ends_with(':') && line.len() < 110, "{line}");
                match cli().try_get_matches_from(words) {
                    Ok(_) => {}
                    Err(error) if line.ends_with("--help") => assert_eq!(error.exit_code(), 0),
                    Err(error) => panic!("{line}: {error}"),
                }
            }
        }
    }

    #[test]
    fn every_group_has_options_and_few_are_in_none() {
        let command = cli();
        for (of, heading, options) in GROUPS {
            for option in options {
                let has = |job: &Command| {
                    (of.is_empty() || job.get_name() == of)
                        && job.get_arguments().any(|found| {
                            found.get_id() == option && found.get_help_heading() == Some(heading)
                        })
                };
                assert!(command.get_subcommands().any(has), "{of} {heading}: {option}");
            }
        }
        for job in command.get_subcommands() {
            let is_plain = |option: &&clap::Arg| {
                !option.is_positional()
                    && !option.is_hide_set()
                    && option.get_help_heading().is_none()
            };
            let plain: Vec<_> =
                job.get_arguments().filter(is_plain).map(clap::Arg::get_id).collect();
            assert!(plain.len() <= 8, "{}: {plain:?}", job.get_name());
        }
    }

    #[test]
    fn the_version_names_the_commit_if_it_is_known() {
        assert_eq!(version(None), env!("CARGO_PKG_VERSION"));
        assert_eq!(version(Some("abc123")), format!("{} (abc123)", env!("CARGO_PKG_VERSION")));
        assert_eq!(version(Some("")), version(None));
    }
}
