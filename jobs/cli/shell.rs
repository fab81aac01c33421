//! `millrace completions` and `millrace man`.

use anyhow::Context;
use clap::Command;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `completions`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Man {
    /// Folder for the manual pages of all jobs, made if it does not exist [default: print the page
    /// of the program].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<()> {
    // At once, and not through the generator, which panics if a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli(), "millrace", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

pub(crate) fn man(args: &Man) -> anyhow::Result<()> {
    let mut command = crate::cli().disable_help_subcommand(true);
    command.build();
    let command = with_usages(command);
    let Some(folder) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return Ok(std::io::stdout().write_all(&page)?);
    };
    let named = || format!("writing manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(named)?;
    clap_mangen::generate_to(command, folder).with_context(named)
}

/// Sets the synopsis of each page to the usage of help: the generator's own lists all options,
/// without their values.
fn with_usages(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_string()).collect();
    for name in below {
        command = command.mut_subcommand(name, with_usages);
    }
    let usage = usage.trim_start_matches("Usage: ").to_string();
    command.override_usage(usage)
}
