//! A build by several processes: each builds a shard from its share of the input, and process 0
//! publishes when all have synced.
//!
//! ```text
//! process 0                               every other process
//! compare the settings          <------   settings
//! whether to build at all       ------>                                     (rebuilds alone)
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

use super::error::BuildError;
use super::generation::finish::accept_duplicates;
use super::generation::{Built, Which, build_generation};
use super::guards::{NewContent, statistics_of};
use super::names::{self, NamesPart};
use super::options::{BuildOptions, Peers};
use super::prepare::Ready;
use super::report::{BuildReport, WholeReport};
use crate::cluster::control_lines::PeerOutcome;
use crate::dataflow::together::{Cluster, Meeting, outcome_of};
use crate::dictionary::strings::hash::hash;
use crate::index::format::VERSION;
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::keep::kept;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::sharded::{ShardEntry, ShardedManifest};
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::shards::ShardLock;
use crate::settings::SettingError;
use crate::shown::chain;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Begin {
    generation: u32,
    /// Numbers of the live one and of those that are kept.
    keep: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct Synced {
    entry: ShardEntry,
    read_bytes: u64,
}

/// What process 0 wants when a shard is on disk.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Hashes of some names.
    Names(NamesPart),
    /// The new generation is live: remove all others but these, and say so.
    Clean { keep: Vec<u32> },
}

#[derive(Serialize, Deserialize)]
struct Cleaned;

fn meeting(peers: &Peers) -> Meeting {
    let Peers { hosts, wait, secret } = peers.clone();
    Meeting { hosts, wait, job: "build", data: false, secret }
}

/// Takes the share of this process; tells the others if it cannot take part.
pub(super) fn prepare(options: &mut BuildOptions, peers: &Peers) -> Result<Ready, BuildError> {
    share(options, peers).inspect_err(|error| {
        meeting(peers).refuse(&options.control, chain(error));
    })
}

fn share(options: &mut BuildOptions, peers: &Peers) -> Result<Ready, BuildError> {
    let mut input = Ready::new(options, false)?;
    if input.plan.reads_once() {
        let why = "standard input and documents in memory cannot be shared among processes: \
                   give files, or build in one process";
        return Err(SettingError::value("processes", why).into());
    }
    let words: Vec<_> = options.analysis.stop_words.words().collect();
    let stop_words = hash(words.join("\n").as_bytes());
    let format = options.format.map_or_else(|| "auto".into(), |format| format.to_string());
    let columns: Vec<_> = options.columns.iter().map(ToString::to_string).collect();
    let rows: [(&str, String); 21] = [
        ("an input with hash", format!("{:016x}", input.plan.digest())),
        ("the format", format),
        ("the indexer", options.indexer.name().to_string()),
        ("the tokenizer", options.analysis.tokenizer.name().to_string()),
        ("an analysis of version", options.analysis.tokenizer.version().to_string()),
        ("the folding of words", options.analysis.fold.to_string()),
        ("the stemmer", options.analysis.stemmer.name().to_string()),
        ("as stop words", format!("{} words with hash {stop_words:016x}", words.len())),
        ("the codec", options.form.name().to_string()),
        ("a block size of", options.form.block_len().to_string()),
        ("positions of terms", options.form.has_positions().to_string()),
        ("the fields", options.index_fields.names().join(", ")),
        ("as columns", columns.join(" ")),
        ("keeping of texts", options.store.to_string()),
        ("as stored fields", options.store_fields.join(", ")),
        ("a longest document of", options.max_document.to_string()),
        ("a factor of weights of", format!("{:?}", options.factor)),
        ("merging of runs", options.merge.to_string()),
        ("guards", format!("{:?}", options.guards)),
        ("strictness", options.strict.to_string()),
        ("documents of one name", options.duplicates.to_string()),
    ];
    input.settings = rows.map(|(name, value)| (name.to_string(), value)).into();
    input.plan = input.plan.share(peers.hosts.process(), peers.hosts.processes());
    Ok(input)
}

/// Builds the shard of this process, and publishes all if this is process 0. Returns none if a
/// rebuild's process 0 does not want to.
pub(super) fn run(
    options: BuildOptions,
    input: Ready,
    peers: &Peers,
    wants: Option<bool>,
) -> Result<Option<BuildReport>, BuildError> {
    let control = options.control.clone();
    let (cluster, _) = meeting(peers).join(&control)?;
    let done = work(options, input, &cluster, wants).map_err(|error| {
        // What the control knows comes before what followed from it.
        control.take_failure().map_or(error, BuildError::from)
    });
    let outcome = match &done {
        Ok(_) => PeerOutcome::Done,
        Err(error) => match error.job() {
            Some(job) => outcome_of(job, || chain(error)),
            None => PeerOutcome::Failed(chain(error)),
        },
    };
    cluster.finish(&outcome);
    done
}

fn work(
    mut options: BuildOptions,
    mut input: Ready,
    cluster: &Cluster,
    wants: Option<bool>,
) -> Result<Option<BuildReport>, BuildError> {
    let began = input.began;
    let job = if wants.is_some() { "rebuild" } else { "build" };
    input.settings.push(("the job".to_string(), job.to_string()));
    cluster.agree(&input.settings)?;
    if let Some(wants) = wants {
        let wanted = match cluster.process {
            0 => cluster.tell_others(&wants).map(|()| wants)?,
            _ => cluster.hear_first()?,
        };
        if !wanted {
            return Ok(None);
        }
    }
    let (built, whole) = if cluster.process == 0 {
        let (built, whole) = lead(&mut options, input, cluster)?;
        (built, Some(WholeReport::of(&whole)))
    } else {
        (follow(&mut options, input, cluster)?, None)
    };
    let shard = Some((cluster.process, cluster.processes));
    Ok(Some(BuildReport::new(&options, &built, shard, whole, began.elapsed())))
}

fn lead(
    options: &mut BuildOptions,
    input: Ready,
    cluster: &Cluster,
) -> Result<(Built, ShardedManifest), BuildError> {
    let lock = IndexLock::acquire(&options.index)?.keeping(options.guards.keep);
    lock.remove_debris()?;
    let before = current(&options.index)?;
    let result = lead_locked(options, input, cluster, &lock, before.as_deref());
    if result.is_err() {
        _ = lock.abandon(before.as_deref());
    }
    let done = result?;
    // The new generation is live, whatever happens to the others from now on.
    let mut keep = kept(&options.index).unwrap_or_default();
    keep.push(done.1.generation);
    if cluster.tell_others(&Order::Clean { keep }).is_ok() {
        _ = cluster.hear_others::<Cleaned>();
    }
    _ = lock.remove_debris();
    Ok(done)
}

fn lead_locked(
    options: &mut BuildOptions,
    input: Ready,
    cluster: &Cluster,
    lock: &IndexLock,
    before: Option<&Path>,
) -> Result<(Built, ShardedManifest), BuildError> {
    let (generation, _) = lock.next_folder()?;
    let mut keep = kept(&options.index)?;
    keep.extend(before.and_then(ShardedManifest::number_with_shards));
    cluster.tell_others(&Begin { generation, keep: keep.clone() })?;
    let shard = ShardLock::acquire(&options.index, 0)?;
    let directory = shard.begin(generation, &keep)?;
    let built = build_generation(options, input, generation, directory, Which::default())?;
    let first = synced(&shard, &built)?;
    let others = cluster.hear_others::<Synced>()?;
    let all: Vec<Synced> =
        std::iter::once(first).chain(others.into_iter().map(|(_, synced)| synced)).collect();
    let statistics = || all.iter().map(|shard| &shard.entry.statistics);
    let mut skipped = BTreeMap::new();
    for (reason, n) in statistics().flat_map(|shard| &shard.skipped) {
        *skipped.entry(reason.clone()).or_default() += n;
    }
    let new = NewContent {
        plan: &built.build.plan.input,
        read_bytes: all.iter().map(|shard| shard.read_bytes).sum(),
        documents: statistics().map(|shard| shard.documents).sum(),
        tokens: Some(statistics().map(|shard| shard.tokens).sum()),
        skipped: &skipped,
        first_skipped: &[],
    };
    options.guards.check(&new, || before.map(statistics_of).transpose())?;
    let mut whole = ShardedManifest {
        format: VERSION,
        generation,
        created: Manifest::now(),
        command: built.new.manifest.command.clone(),
        settings: built.new.manifest.settings.clone(),
        duplicate_names: 0,
        shards: all.into_iter().map(|synced| synced.entry).collect(),
    };
    whole.line_up(&options.index)?;
    let directory = &built.build.plan.directory;
    let ask = |process, part| match process {
        0 => names::piece(directory, part),
        _ => {
            cluster.tell(process, &Order::Names(part))?;
            Ok(cluster.hear_bytes(process)?)
        }
    };
    let duplicates = names::count(&whole.shards, ask)?;
    accept_duplicates(options.refuses_duplicates(), &duplicates)?;
    whole.duplicate_names = duplicates.count;
    if let Some(failure) = options.control.take_failure() {
        return Err(failure.into());
    }
    lock.publish_sharded(&whole)?;
    Ok((built, whole))
}

fn follow(
    options: &mut BuildOptions,
    input: Ready,
    cluster: &Cluster,
) -> Result<Built, BuildError> {
    let Begin { generation, keep } = cluster.hear_first()?;
    let shard = ShardLock::acquire(&options.index, cluster.process)?;
    let directory = shard.begin(generation, &keep)?;
    let built = build_generation(options, input, generation, directory, Which::default())
        .and_then(|built| Ok((synced(&shard, &built)?, built)));
    if built.is_err() {
        _ = shard.retain(&keep);
    }
    let (synced, built) = built?;
    cluster.tell(0, &synced)?;
    let keep = loop {
        match cluster.hear_first()? {
            Order::Names(part) => {
                cluster.tell_bytes(0, &names::piece(&built.build.plan.directory, part)?)?;
            }
            Order::Clean { keep } => break keep,
        }
    };
    // Process 0 may have gone.
    _ = shard.retain(&keep);
    _ = cluster.tell(0, &Cleaned);
    Ok(built)
}

/// Makes the shard last, and describes it.
fn synced(shard: &ShardLock, built: &Built) -> Result<Synced, BuildError> {
    let directory = &built.build.plan.directory;
    shard.sync(built.new.unsynced.clone())?;
    Ok(Synced { entry: Summary::read(directory)?.shard(), read_bytes: built.read_bytes })
}
