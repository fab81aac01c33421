//! A build by several processes: each builds a shard from its share of the input, and process 0
//! publishes when all have synced.
//!
//! ```text
//! process 0                               every other process
//! compare the settings          <------   settings
//! number of the generation      ------>
//! build shard 0                           build its shard
//! wait for all                  <------   what the shard holds, synced
//! count duplicate names         <----->   hashes of names, as they are asked for
//! replace CURRENT, and say so   ------>
//! remove what is old            <------   remove what is old, and say so
//! ```
//!
//! A process that fails before its shard is synced removes it. Afterwards it cannot know whether
//! process 0 has published, and leaves the shard alone: the next build removes what is not live.

use super::{Args, Prepared, accept_duplicates, build_generation, names, prepare, reasons, totals};
use crate::args::{show_bytes, show_count};
use crate::cluster::{Cluster, Setting, refuse, together};
use crate::{Usage, signals};
use anyhow::bail;
use millrace::cluster::hosts::Hosts;
use millrace::dataflow::build::Build;
use millrace::dataflow::control::Control;
use millrace::dictionary::hash::hash;
use millrace::index::format::VERSION;
use millrace::index::manifest::Manifest;
use millrace::index::publish::{IndexLock, current};
use millrace::index::shards::{ShardEntry, ShardLock, ShardedManifest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Process 0 lets the others begin.
#[derive(Serialize, Deserialize)]
struct Begin {
    /// Number of the new generation.
    generation: u32,
    /// Number of the live one, if it has shards.
    live: Option<u32>,
}

/// A shard is on disk.
#[derive(Serialize, Deserialize)]
struct Synced {
    entry: ShardEntry,
    /// Bytes of input that were read for it.
    read_bytes: u64,
}

/// What process 0 wants when a shard is on disk.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Hashes of the names from this document on.
    Names {
        /// Its docid in the shard.
        from: u32,
    },
    /// The new generation is live: remove the one before, and say so.
    Clean,
}

/// What is not live was removed.
#[derive(Serialize, Deserialize)]
struct Cleaned;

/// Runs the job in this process.
pub(super) fn run(args: &Args, hosts: &Hosts, start: Instant) -> anyhow::Result<Manifest> {
    let control = Arc::new(Control::default());
    signals::watch(&control, None)?;
    let job = ("build", false);
    let (input, settings) = match prepare_share(args, hosts) {
        Ok(prepared) => prepared,
        Err(error) => return Err(refuse((hosts.clone(), &args.workers), job, &control, error)),
    };
    together((hosts.clone(), &args.workers), job, &control, |cluster, _| {
        cluster.agree(&settings)?;
        let (build, manifest) = if cluster.process == 0 {
            lead(args, input, cluster, &control, start)?
        } else {
            follow(args, input, cluster, &control)?
        };
        let shard = Some((cluster.process, cluster.processes));
        totals(args, &build, &manifest, shard, start)?;
        Ok(manifest)
    })
}

/// Checks the input, and takes the share of this process; also returns what all processes have to
/// have alike.
fn prepare_share(args: &Args, hosts: &Hosts) -> anyhow::Result<(Prepared, Vec<Setting>)> {
    let mut input = prepare(args, false)?;
    if input.plan.reads_stdin() {
        let message = "standard input (-) cannot be shared among processes: give files, or build in one process";
        return Err(Usage(message.into()).into());
    }
    let words: Vec<_> = input.analysis.stop_words.words().collect();
    let stop_words = hash(words.join("\n").as_bytes());
    let rows: [(&str, String); 10] = [
        ("an input with hash", format!("{:016x}", input.plan.digest())),
        ("--format", args.format.0.map_or_else(|| "auto".into(), |format| format.to_string())),
        ("--indexer", args.indexer.clone()),
        ("--stemmer", args.stemmer.name().to_string()),
        ("--stopwords", format!("{} words with hash {stop_words:016x}", words.len())),
        ("--codec", args.codec.name().to_string()),
        ("--block-size", args.block_size.to_string()),
        ("--max-document", args.max_document.to_string()),
        ("--no-merge", args.no_merge.to_string()),
        ("--strict", args.strict.to_string()),
    ];
    let settings = rows.map(|(name, value)| (name.to_string(), value)).into();
    input.plan = input.plan.share(hosts.process(), hosts.processes());
    Ok((input, settings))
}

/// Process 0: builds shard 0, and publishes.
fn lead(
    args: &Args,
    input: Prepared,
    cluster: &Cluster,
    control: &Arc<Control>,
    start: Instant,
) -> anyhow::Result<(Arc<Build>, Manifest)> {
    let lock = IndexLock::acquire(&args.index)?;
    lock.remove_debris()?;
    let before = current(&args.index)?;
    let result = lead_locked(args, input, (cluster, &lock), before.as_deref(), control);
    if result.is_err() {
        // What cannot be removed now is removed by the next job.
        _ = lock.abandon(before.as_deref());
    }
    let (build, manifest, whole) = result?;
    // The new generation is live, whatever happens to the others from now on.
    if cluster.tell_others(&Order::Clean).is_ok() {
        _ = cluster.hear_others::<Cleaned>();
    }
    _ = lock.remove_debris();
    if !args.workers.common.quiet {
        let duplicates = match whole.duplicate_names {
            0 => String::new(),
            n => format!("; {} duplicate names", show_count(n)),
        };
        say!(
            "{}: {} documents, {} postings in {} shards in {:.2} s; generation {}{duplicates}",
            args.index.display(),
            show_count(whole.documents()),
            show_count(whole.sum(|s| s.postings)),
            whole.shards.len(),
            start.elapsed().as_secs_f64(),
            whole.generation,
        );
    }
    Ok((build, manifest))
}

fn lead_locked(
    args: &Args,
    input: Prepared,
    (cluster, lock): (&Cluster, &IndexLock),
    before: Option<&Path>,
    control: &Arc<Control>,
) -> anyhow::Result<(Arc<Build>, Manifest, ShardedManifest)> {
    let (generation, _) = lock.next_folder()?;
    let live = before.and_then(ShardedManifest::number_with_shards);
    cluster.tell_others(&Begin { generation, live })?;
    let shard = ShardLock::acquire(&args.index, 0)?;
    let directory = shard.begin(generation, live)?;
    let (build, manifest) = build_generation(args, input, generation, directory, control)?;
    let first = synced(&shard, &build, &manifest)?;
    let others = cluster.hear_others::<Synced>()?;
    let all: Vec<Synced> =
        std::iter::once(first).chain(others.into_iter().map(|(_, synced)| synced)).collect();
    require_documents(&all)?;
    let mut whole = ShardedManifest {
        format: VERSION,
        generation,
        created: Manifest::now(),
        command: manifest.command.clone(),
        settings: manifest.settings.clone(),
        duplicate_names: 0,
        shards: all.into_iter().map(|synced| synced.entry).collect(),
    };
    whole.line_up(&args.index)?;
    let duplicates = names::count(cluster, &whole.shards, &build.directory, args.memory)?;
    accept_duplicates(args, &duplicates)?;
    whole.duplicate_names = duplicates.count;
    if let Some(failure) = control.take_failure() {
        return Err(failure.into());
    }
    lock.publish_sharded(&whole)?;
    Ok((build, manifest, whole))
}

/// Every other process: builds its shard.
fn follow(
    args: &Args,
    input: Prepared,
    cluster: &Cluster,
    control: &Arc<Control>,
) -> anyhow::Result<(Arc<Build>, Manifest)> {
    let Begin { generation, live } = cluster.hear_first()?;
    let shard = ShardLock::acquire(&args.index, cluster.process)?;
    let directory = shard.begin(generation, live)?;
    let built = build_generation(args, input, generation, directory, control)
        .and_then(|(build, manifest)| Ok((synced(&shard, &build, &manifest)?, build, manifest)));
    if built.is_err() {
        // What cannot be removed now is removed by the next job.
        _ = shard.retain(live);
    }
    let (synced, build, manifest) = built?;
    cluster.tell(0, &synced)?;
    while let Order::Names { from } = cluster.hear_first()? {
        cluster.tell_bytes(0, &names::piece(&build.directory, from)?)?;
    }
    // What cannot be removed now is removed by the next job, and process 0 may have gone.
    _ = shard.retain(Some(generation));
    _ = cluster.tell(0, &Cleaned);
    Ok((build, manifest))
}

/// Makes the shard last, and describes it.
fn synced(shard: &ShardLock, build: &Build, manifest: &Manifest) -> anyhow::Result<Synced> {
    shard.sync(&build.directory)?;
    let read_bytes = manifest.inputs.iter().map(|input| input.bytes).sum();
    Ok(Synced { entry: ShardEntry::of(&build.directory)?, read_bytes })
}

/// An input without a document is a failure, as in one process.
fn require_documents(all: &[Synced]) -> anyhow::Result<()> {
    let documents: u64 = all.iter().map(|shard| shard.entry.statistics.documents).sum();
    let read: u64 = all.iter().map(|shard| shard.read_bytes).sum();
    if documents > 0 || read == 0 {
        return Ok(());
    }
    let mut skipped = BTreeMap::new();
    for (reason, n) in all.iter().flat_map(|shard| &shard.entry.statistics.skipped) {
        *skipped.entry(reason.clone()).or_default() += n;
    }
    bail!("no document in {} of input: {}", show_bytes(read), reasons(&skipped));
}
