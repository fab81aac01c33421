//! The help of a job beside its options: which are shown by -h, their groups, two examples, and
//! exit statuses.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, value_parser};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::LazyLock;

/// With the commit that the program was built from, if `MILLRACE_COMMIT` named it then.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| version(COMMIT));

pub(crate) const COMMIT: Option<&str> = option_env!("MILLRACE_COMMIT");

fn version(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit.filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_string(),
    }
}

/// Two examples of each job: a line with the name of the job, what each example does and its
/// command line, and an empty line. Those of a job that is not built in are not used.
const EXAMPLES: &str = include_str!("examples.txt");

/// Groups of options: a line for each with the job that has them (`any` is all that have such an
/// option), the heading, and the options. The heading `-h` is those that -h shows; of a job without
/// such a line it shows all. `in any case` is those whose values are fixed words.
const GROUPS: &str = include_str!("option_groups.txt");

const STATUSES: &str = "\
Exit status:
  0        done
  1        failed
  2        wrong usage
  128 + n  ended by signal n, such as 130 by Ctrl-C";

fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.split("\n\n").filter_map(|of_job| of_job.split_once('\n'))
}

/// The heading of those that -h shows.
const BRIEF: &str = "-h";
const ANY_CASE: &str = "in any case";

pub(crate) fn is_in_any_case(option: &str) -> bool {
    TABLE.iter().any(|group| group.heading == ANY_CASE && group.options.contains(&option))
}

struct OptionGroup {
    job: &'static str,
    heading: &'static str,
    options: Vec<&'static str>,
}

impl OptionGroup {
    fn is_of(&self, job: &str) -> bool {
        self.job == "any" || self.job == job
    }
}

/// Of [`GROUPS`], a line each.
static TABLE: LazyLock<Vec<OptionGroup>> = LazyLock::new(|| {
    let group = |line: &'static str| {
        let (job, rest) = line.split_once(" | ")?;
        let (heading, options) = rest.split_once(" | ")?;
        Some(OptionGroup { job, heading, options: options.split(' ').collect() })
    };
    GROUPS.lines().filter_map(group).collect()
});

pub(crate) fn complete(mut command: Command) -> Command {
    command = command.version(VERSION.as_str()).after_long_help(STATUSES);
    for (job, examples) in examples() {
        if command.find_subcommand(job).is_some() {
            let examples = format!("Examples:\n{}\n", examples.trim_end());
            let long = format!("{examples}\n{STATUSES}");
            command = command
                .mut_subcommand(job, |job| grouped(job).after_help(examples).after_long_help(long));
        }
    }
    command
}

fn grouped(job: Command) -> Command {
    let name = job.get_name().to_string();
    let of_job = || TABLE.iter().filter(|group| group.is_of(&name));
    let brief = of_job().find(|group| group.heading == BRIEF);
    let job = with_common(job).allow_negative_numbers(true).mut_subcommands(grouped);
    job.mut_args(|option| {
        let id = option.get_id().as_str();
        let is_in = |group: &&OptionGroup| {
            ![BRIEF, ANY_CASE].contains(&group.heading) && group.options.contains(&id)
        };
        let heading = of_job().find(is_in).map(|group| group.heading);
        let has_values = option.get_action().takes_values();
        let is_shown = |brief: &OptionGroup| brief.options.contains(&id);
        let is_hidden = !option.is_positional() && brief.is_some_and(|brief| !is_shown(brief));
        let all = option.get_help().map(StyledStr::to_string).unwrap_or_default();
        let first = all.split_once(". ").map_or(&*all, |(first, _)| first).to_string();
        match heading {
            Some(heading) if !option.is_positional() => option.help_heading(heading),
            _ => option,
        }
        .hide_short_help(is_hidden)
        // Its name or its help has them.
        .hide_possible_values(has_values)
        .help(first)
        .long_help(all)
    })
}

/// Every job takes these options, so that a script can give them to all.
fn with_common(mut job: Command) -> Command {
    if !["completions", "man"].contains(&job.get_name()) {
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue);
        let report = Arg::new("report").long("report").value_name("FILE");
        let what = "Write a report of the job to FILE: a page with charts if the name ends in \
                    .html, otherwise JSON. See docs/operate.md";
        let log = Arg::new("log_form").long("log").value_parser(["text", "json"]);
        let how = "Form of messages: text, or json: an object on each line, also of each step";
        job = job
            .arg(quiet.global(true).help("Print only results and errors"))
            .arg(report.global(true).value_parser(value_parser!(PathBuf)).help(what));
        // `bench generate` writes logs.
        if !job.has_subcommands() && job.get_name() != "generate" {
            job = job.arg(log.value_name("text|json").default_value("text").help(how));
        }
    }
    let has = job.get_arguments().any(|option| option.get_id() == "workers");
    if has || job.has_subcommands() {
        return job;
    }
    let workers = Arg::new("workers").short('w').long("workers").value_name("N");
    let help = "Number of worker threads. This job has one, whatever N is";
    job.arg(workers.value_parser(value_parser!(NonZeroUsize)).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn every_job_has_two_examples_that_parse() {
        let command = cli();
        for job in command.get_subcommands().map(Command::get_name) {
            let (_, text) = examples().find(|(of, _)| *of == job).expect(job);
            let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
            assert_eq!(lines.len(), 4, "{job}");
            for example in lines.chunks(2) {
                let what = example[0];
                let line = example[1];
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
        assert_eq!(TABLE.len(), GROUPS.lines().count());
        for group in &*TABLE {
            for option in &group.options {
                let is_heading = ![BRIEF, ANY_CASE].contains(&group.heading);
                let is_it = |found: &Arg| {
                    let heading = found.get_help_heading();
                    let is_there = !is_heading || heading == Some(group.heading);
                    found.get_id() == option && is_there || *option == "help"
                };
                let has =
                    |job: &Command| group.is_of(job.get_name()) && job.get_arguments().any(is_it);
                let OptionGroup { job, heading, .. } = group;
                assert!(command.get_subcommands().any(has), "{job} {heading}: {option}");
            }
        }
        for job in command.get_subcommands() {
            let is_plain = |option: &&Arg| {
                !option.is_positional()
                    && !option.is_hide_set()
                    && option.get_help_heading().is_none()
            };
            let plain: Vec<_> = job.get_arguments().filter(is_plain).map(Arg::get_id).collect();
            assert!(plain.len() <= 8, "{}: {plain:?}", job.get_name());
        }
    }

    #[test]
    fn brief_help_is_a_screen_and_each_help_says_what_statuses_mean() {
        for (job, most) in [("query", 25), ("build", 20), ("tune", 25)] {
            let text = cli().find_subcommand_mut(job).unwrap().render_help().to_string();
            let options = text.lines().filter(|line| line.trim_start().starts_with('-'));
            assert!(options.count() <= most && text.lines().count() <= 60, "{text}");
        }
        for (job, options) in [
            ("query", &["--filter", "--return", "--boost", "--k1", "--b ", "--tag"][..]),
            ("build", &["--positions", "--field", "--column", "--store ", "--store-fields"]),
        ] {
            let text = cli().find_subcommand_mut(job).unwrap().render_help().to_string();
            assert!(options.iter().all(|option| text.contains(option)), "{text}");
        }
        for job in cli().get_subcommands_mut() {
            let text = job.render_long_help().to_string();
            assert!(text.contains("130 by Ctrl-C"), "{text}");
            assert!(!text.contains("(default") && !text.contains("[possible values"), "{text}");
        }
    }

    #[test]
    fn every_job_can_be_quiet_report_and_have_workers() {
        for job in cli().get_subcommands().filter(|job| !job.has_subcommands()) {
            if ["completions", "man", "help"].contains(&job.get_name()) {
                continue;
            }
            for option in ["quiet", "report", "workers"] {
                let has = job.get_arguments().any(|found| found.get_id() == option);
                assert!(has, "{} {option}", job.get_name());
            }
        }
    }

    #[test]
    fn the_version_names_the_commit_if_it_is_known() {
        assert_eq!(version(None), env!("CARGO_PKG_VERSION"));
        assert_eq!(version(Some("abc123")), format!("{} (abc123)", env!("CARGO_PKG_VERSION")));
        assert_eq!(version(Some("")), version(None));
    }
}
