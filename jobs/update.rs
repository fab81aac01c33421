//! `millrace update` and `millrace delete`.

use crate::build::{ReadingArgs, explain};
use crate::cli::args::{command, size};
use crate::cli::index_args::with_option;
use crate::cli::{progress, report, signals};
use millrace::inside::shown::number_of;
use millrace::{BuildError, BuildOptions, Update, Updated, give_back_large_buffers};
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    how: ChangeArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Accept compressed files that are damaged or end too early, and index what comes before.
    #[arg(long)]
    allow_cut: bool,
    /// Files, folders, or - for standard input.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    how: ChangeArgs,
    /// File of names, one on each line.
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    file: Option<PathBuf>,
    /// Delete all documents whose values pass, such as 'year < 1990', as --filter of queries.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["names", "file"])]
    filter: Option<String>,
    /// Names of documents, or - for standard input with one on each line.
    #[arg(required_unless_present_any = ["file", "filter"], value_name = "NAME")]
    names: Vec<String>,
}

#[derive(clap::Args, Clone, Debug)]
struct ChangeArgs {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Greatest memory of the job, such as 64M or 4G.
    #[arg(long, default_value = "1G", value_parser = size)]
    memory: u64,
    /// Wait until no other job writes to the index. Without it the job fails then.
    #[arg(id = "wait_for_index", long = "wait")]
    wait: bool,
    /// Make the new generation one to which `millrace rollback` goes back. Otherwise it goes back
    /// to the last build, or update with this option.
    #[arg(long)]
    keep_point: bool,
    /// Tell what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Publish even if more than half of the documents, or all of them, are gone.
    #[arg(long)]
    allow_shrink: bool,
    /// Number of worker threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<std::num::NonZeroUsize>,
}

impl ChangeArgs {
    fn of(&self, inputs: &[PathBuf]) -> anyhow::Result<Update> {
        let mut build = BuildOptions::of_paths(&self.index, inputs);
        build.memory = self.memory;
        if let Some(workers) = self.workers {
            build.workers = workers.get();
        }
        build.command = command();
        build.notes = Some(Arc::new(|note| tell!("millrace: {}", with_option(note))));
        build.progress = progress::of_build();
        give_back_large_buffers(self.memory);
        signals::watch(&build.control, None)?;
        let mut update = Update::new(build);
        (update.wait, update.keep_point) = (self.wait, self.keep_point);
        (update.dry_run, update.allow_shrink) = (self.dry_run, self.allow_shrink);
        Ok(update)
    }

    fn told(&self, job: &str, updated: Result<Updated, BuildError>) -> anyhow::Result<()> {
        let updated = updated.map_err(|error| match error {
            BuildError::Shrinks { .. } => anyhow::anyhow!("{error} (--allow-shrink)"),
            error => explain(error),
        })?;
        let Updated { added, replaced, deleted, absent, repeated, skipped, documents, .. } =
            updated;
        let mut said = Vec::new();
        for (count, what) in [
            (added, "added"),
            (replaced, "replaced"),
            (deleted - replaced.min(deleted), "deleted"),
            (absent, "not there"),
            (repeated, "left out, since a later one has the name"),
        ] {
            if count > 0 {
                said.push(format!("{} {what}", number_of(count, "document", "documents")));
            }
        }
        if skipped > 0 {
            said.push(format!("{} skipped", number_of(skipped, "record", "records")));
        }
        let said = if said.is_empty() { "nothing changed".to_string() } else { said.join(", ") };
        let index = self.index.display();
        match updated.generation {
            Some(generation) => {
                let seconds = updated.seconds;
                tell!(
                    "{index}: {said}; generation {generation} has {} in {seconds:.2} s",
                    number_of(documents, "document", "documents")
                );
            }
            None => tell!("{index}: {said}; nothing was published"),
        }
        let mut totals =
            json!({"job": job, "index": self.index.display().to_string(), "dry_run": self.dry_run});
        let fields = serde_json::to_value(&updated)?;
        let fields = fields.as_object().cloned().unwrap_or_default();
        totals.as_object_mut().expect("it was made as one").extend(fields);
        report::write_of(totals, updated.seconds, 1, &[])
    }
}

pub(crate) fn update(args: &UpdateArgs) -> anyhow::Result<()> {
    let mut update = args.how.of(&args.inputs)?;
    args.reading.fill(&mut update.build);
    update.build.guards.allow_cut = args.allow_cut;
    args.how.told("update", update.update())
}

pub(crate) fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    if let Some(filter) = &args.filter {
        return args.how.told("delete", args.how.of(&[])?.delete_passing(filter));
    }
    let names = match (&args.file, &args.names[..]) {
        (Some(file), _) => lines(
            BufReader::new(
                File::open(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?,
            ),
            file,
        )?,
        (None, [dash]) if dash == "-" => lines(std::io::stdin().lock(), Path::new("-"))?,
        (None, names) => names.iter().map(|name| name.clone().into_bytes()).collect(),
    };
    args.how.told("delete", args.how.of(&[])?.delete(&names))
}

/// The lines of a file, without their ends.
fn lines(from: impl BufRead, path: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    for line in from.split(b'\n') {
        let mut line = line.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    Ok(lines)
}
