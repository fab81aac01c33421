//! The command line: usage, exit status, and which job runs.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage, 128 + n ended by signal n.

// `say!` does not panic when standard error is closed.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use millrace::SettingError;
use millrace::inside::shown::panicked;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

#[macro_use]
mod cli;

mod bench;
mod build;
mod check;
mod cluster;
mod demo;
mod devices;
mod dump;
mod evaluate;
mod exchange;
mod explain;
mod fuse;
mod info;
mod merge;
mod papers;
mod query;
mod rebuild;
mod rollback;
#[cfg(feature = "serve")]
mod serve;
mod show;
mod tune;
mod update;

/// Builds inverted indexes from very large text collections and answers batches of ranked queries.
#[derive(Parser)]
#[command(name = "millrace", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Build an index, or replace an index by a new generation.
    Build(Box<build::Args>),
    /// Answer ranked queries from a file or from standard input.
    Query(Box<query::Args>),
    /// Index a small collection, or your own files, and answer a few queries.
    Demo(demo::Args),
    /// Measure runs by relevance judgements, and compare them.
    Evaluate(evaluate::Args),
    /// Find the best parameters of a score by relevance judgements, with cross-validation.
    Tune(tune::Args),
    /// Combine several runs into one.
    Fuse(fuse::Args),
    /// Answer queries, and take documents, over HTTP.
    #[cfg(feature = "serve")]
    Serve(Box<serve::Args>),
    /// Keep an index up to date with its sources, once or on a schedule.
    Rebuild(rebuild::Args),
    /// Add documents to an index, or replace those of the same names.
    Update(update::UpdateArgs),
    /// Delete documents from an index, by their names.
    Delete(update::DeleteArgs),
    /// Merge the runs of an index into one.
    Merge(merge::Args),
    /// Verify every byte and every invariant of an index.
    Check(check::Args),
    /// Make an older generation of an index live again.
    Rollback(rollback::Args),
    /// Print what an index holds and how it was made.
    Info(info::Args),
    /// Print a document, a term with its postings, or the terms of a text.
    Show(show::Args),
    /// Explain the score and the rank of a document for a query.
    Explain(explain::Args),
    /// Print all terms, postings or documents of an index.
    Dump(dump::Args),
    /// Write an index in a format that other search engines read.
    Export(exchange::export::Args),
    /// Measure what queries cost on the CPU and the GPUs of this machine, for `query --device
    /// hybrid`.
    #[cfg(feature = "papers")]
    Calibrate(papers::calibrate::Args),
    /// Plan which postings lists to keep in the memory of a GPU, from a log of queries.
    #[cfg(feature = "papers")]
    Cache(papers::cache::Args),
    /// Make an index from a file of another search engine, or from learned vectors.
    Import(exchange::import::Args),
    /// Print which GPUs can be used, or why there are none.
    Devices(devices::Args),
    /// Measure how fast an index answers, and write collections of any size.
    Bench(bench::Args),
    /// Print a script that completes the command line in a shell.
    Completions(cli::shell::Completions),
    /// Print the manual page, or write a manual page for each job.
    Man(cli::shell::Man),
}

/// Wrong usage that clap cannot see.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

impl From<SettingError> for Usage {
    fn from(error: SettingError) -> Self {
        Self(error.on_command_line())
    }
}

pub(crate) fn cli() -> clap::Command {
    cli::help::complete(Cli::command())
}

fn main() -> ExitCode {
    cli::signals::refuse_no_file_size();
    cli::signals::name_cut_files();
    millrace::inside::dataflow::keep_panic_messages();
    let mut command = cli();
    let words = cli::words::in_lower_case(&command, std::env::args_os().collect());
    let matches = command.try_get_matches_from_mut(&words);
    let suggest = |error| cli::words::suggest(&command, &words, error).exit();
    let matches = matches.unwrap_or_else(suggest);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (job_name, job_matches) = job_of("", &matches);
    cli::report::begin(job_matches.try_get_one("report").ok().flatten().cloned());
    let is_quiet = job_matches.try_get_one("quiet").is_ok_and(|quiet| quiet == Some(&true));
    if is_quiet {
        cli::progress::be_quiet();
    }
    let log = job_matches.try_get_one::<String>("log_form").ok().flatten();
    let logs = millrace::inside::log::start(log.is_some_and(|log| log == "json"), is_quiet);
    let result = logs.map_err(|why| Usage(why).into()).and_then(|()| {
        let job = || match cli.job {
            Job::Build(args) => build::run(&args),
            Job::Query(args) => query::run(&args),
            Job::Demo(args) => demo::run(&args),
            Job::Evaluate(args) => evaluate::run(&args),
            Job::Tune(args) => tune::run(&args),
            Job::Fuse(args) => fuse::run(&args),
            #[cfg(feature = "serve")]
            Job::Serve(args) => serve::run(&args),
            Job::Rebuild(args) => rebuild::run(&args),
            Job::Update(args) => update::update(&args),
            Job::Delete(args) => update::delete(&args),
            Job::Merge(args) => merge::run(&args),
            Job::Check(args) => check::run(&args),
            Job::Rollback(args) => rollback::run(&args),
            Job::Info(args) => info::run(&args),
            Job::Show(args) => show::run(&args),
            Job::Explain(args) => explain::run(&args),
            Job::Export(args) => exchange::export::run(&args),
            Job::Import(args) => exchange::import::run(&args),
            Job::Dump(args) => dump::run(&args),
            #[cfg(feature = "papers")]
            Job::Cache(args) => papers::cache::run(&args),
            #[cfg(feature = "papers")]
            Job::Calibrate(args) => papers::calibrate::run(&args),
            Job::Devices(args) => devices::run(&args),
            Job::Bench(args) => bench::run(&args),
            Job::Completions(args) => cli::shell::completions(&args),
            Job::Man(args) => cli::shell::man(&args),
        };
        catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|cause| {
            Err(anyhow::anyhow!("the job stopped because of a bug: {}", panicked(&*cause)))
        })
    });
    millrace::inside::fault::report();
    let Err(error) = result else { return ExitCode::SUCCESS };
    if is_closed_output(&error) {
        return ExitCode::SUCCESS;
    }
    // A job that publishes a generation ends by a signal only before it does.
    let publishes =
        matches!(matches.subcommand_name(), Some("build" | "merge" | "update" | "delete"));
    let kept = if publishes && cli::signals::of(&error).is_some() {
        "; the index is unchanged"
    } else {
        ""
    };
    cli::say::line("error", format_args!("millrace: {error:#}{kept}"));
    cli::report::failed(&job_name, &error);
    match cli::signals::of(&error) {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None if error.is::<Usage>() || has_repeated_name(&error) => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
}

/// The name of the innermost job, and what it was given.
fn job_of<'a>(name: &str, matches: &'a ArgMatches) -> (String, &'a ArgMatches) {
    match matches.subcommand() {
        Some((below, matches)) => job_of(&format!("{name} {below}"), matches),
        None => (name.trim_start().to_string(), matches),
    }
}

/// Two queries of a run that is measured have one name.
fn has_repeated_name(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<millrace::inside::query::Refused>())
    })
}

/// The reader of standard output has gone: nothing is left to do, and nothing went wrong.
fn is_closed_output(error: &anyhow::Error) -> bool {
    use millrace::JobError;
    matches!(error.downcast_ref(), Some(JobError::OutputClosed))
        || error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
        })
}
