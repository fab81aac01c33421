//! The help of a job beside its options: their groups, and two examples.

use clap::Command;
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
/// option), the heading, and the options.
const GROUPS: &str = include_str!("option_groups.txt");

fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.split("\n\n").filter_map(|of_job| of_job.split_once('\n'))
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

fn groups() -> Vec<OptionGroup> {
    let group = |line: &'static str| {
        let (job, rest) = line.split_once(" | ")?;
        let (heading, options) = rest.split_once(" | ")?;
        Some(OptionGroup { job, heading, options: options.split(' ').collect() })
    };
    GROUPS.lines().filter_map(group).collect()
}

pub(crate) fn complete(mut command: Command) -> Command {
    command = command.version(VERSION.as_str());
    let groups = groups();
    for (job, examples) in examples() {
        if command.find_subcommand(job).is_some() {
            let text = format!("Examples:\n{}\n", examples.trim_end());
            command = command.mut_subcommand(job, |job| grouped(job, &groups).after_help(text));
        }
    }
    command
}

fn grouped(job: Command, groups: &[OptionGroup]) -> Command {
    let name = job.get_name().to_string();
    job.mut_args(|option| {
        let id = option.get_id().as_str();
        let is_in = |group: &&OptionGroup| group.is_of(&name) && group.options.contains(&id);
        match groups.iter().find(is_in) {
            Some(group) if !option.is_positional() => option.help_heading(group.heading),
            _ => option,
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
        let groups = groups();
        assert_eq!(groups.len(), GROUPS.lines().count());
        for group in groups {
            for option in &group.options {
                let is_it = |found: &clap::Arg| {
                    found.get_id() == option && found.get_help_heading() == Some(group.heading)
                };
                let has =
                    |job: &Command| group.is_of(job.get_name()) && job.get_arguments().any(is_it);
                let OptionGroup { job, heading, .. } = group;
                assert!(command.get_subcommands().any(has), "{job} {heading}: {option}");
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
