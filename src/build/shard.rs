//! A build by several processes: each builds a part from its share of the input, and process 0
//! publishes all of them as one generation when all have synced.
//!
//! ```text
//! process 0                               every other process
//! compare the settings          <------   settings
//! whether to build at all       ------>                                     (rebuilds alone)
//! number of the generation      ------>
//! build a part                            build a part
//! wait for all                  <------   the manifest of the part
//! count what parts have alike   <----->   hashes of names and terms, as they are asked for
//! write inputs and manifest     ------>   move the runs to their names, write copies where this
//! the same                                is another disk, and sync
//! wait for all                  <------   synced
//! replace CURRENT, and say so   ------>
//! remove what is old            <------   remove what is old, and say so
//! ```
//!
//! A process that fails before its part is synced removes it. Afterwards it cannot know whether
//! process 0 has published, and leaves all alone: the next build removes what is not live.

use super::alike::{self, Ask};
use super::error::BuildError;
use super::generation::finish::{CutInputs, accept_duplicates};
use super::generation::{Built, Which, build_generation};
use super::guards::{NewContent, statistics_of};
use super::options::{BuildOptions, Peers};
use super::prepare::{Ready, accept_index};
use super::report::{BuildReport, WholeReport};
use crate::cluster::control_lines::PeerOutcome;
use crate::dataflow::together::{Cluster, Meeting, outcome_of};
use crate::dictionary::strings::hash::hash;
use crate::index::error::IndexError;
use crate::index::files::plain;
use crate::index::files::storage::FileEntry;
use crate::index::format::{INPUTS, MANIFEST};
use crate::index::generations::folder::{IndexLock, current, number_of};
use crate::index::generations::keep::kept;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::parts::{BegunGeneration, PartPlace, whole_of};
use crate::index::inputs::{InputEntry, InputsFile, InputsWriter, received, sent};
use crate::input::hash::{InputHash, NAME};
use crate::settings::SettingError;
use crate::shown::chain;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a process has built.
#[derive(Serialize, Deserialize)]
struct Part {
    manifest: Manifest,
    /// The number of its first input in all.
    first_input: u32,
    cut: CutInputs,
    /// The first number that no run on its disk has.
    next_run: u32,
    needs_copies: bool,
}

/// What process 0 wants when a part is built.
#[derive(Serialize, Deserialize)]
enum Order {
    /// The inputs, as they are sent.
    Inputs,
    Alike(Ask),
    /// Runs get the names that the manifest of this text has. The file of the inputs follows if
    /// copies are needed.
    Settle {
        manifest: String,
    },
    /// The new generation is live: remove all others but these, and say so.
    Clean {
        keep: Vec<u32>,
    },
}

#[derive(Serialize, Deserialize)]
struct Synced;

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
    accept_index(options)?;
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
    input.plan = input.plan.share(peers.hosts.process(), peers.hosts.processes())?;
    Ok(input)
}

/// Builds the part of this process, and publishes all if this is process 0. Returns none if a
/// rebuild's process 0 does not want to.
pub(super) fn run(
    options: BuildOptions,
    input: Ready,
    peers: &Peers,
    wants: Option<bool>,
) -> Result<Option<BuildReport>, BuildError> {
    let control = options.control.clone();
    let (cluster, _) = meeting(peers).join(&control)?;
    let mut held = None;
    let done = work(options, input, &cluster, wants, &mut held).map_err(|error| {
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
    // The others have heard of it before anything of theirs is removed.
    if let (Err(_), Some(held)) = (&done, held) {
        held.abandon();
    }
    done
}

fn work(
    mut options: BuildOptions,
    mut input: Ready,
    cluster: &Cluster,
    wants: Option<bool>,
    held: &mut Option<HeldIndex>,
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
        let (built, whole) = lead(&mut options, input, cluster, held)?;
        (built, Some(WholeReport::of(&whole, cluster.processes)))
    } else {
        (follow(&mut options, input, cluster)?, None)
    };
    let shard = Some((cluster.process, cluster.processes));
    Ok(Some(BuildReport::new(&options, &built, shard, whole, began.elapsed())))
}

/// The index that process 0 writes.
struct HeldIndex {
    lock: IndexLock,
    before: Option<PathBuf>,
}

impl HeldIndex {
    fn abandon(&self) {
        _ = self.lock.abandon(self.before.as_deref());
    }
}

fn lead(
    options: &mut BuildOptions,
    input: Ready,
    cluster: &Cluster,
    held: &mut Option<HeldIndex>,
) -> Result<(Built, Manifest), BuildError> {
    let lock = IndexLock::acquire(&options.index)?.keeping(options.guards.keep);
    lock.remove_debris()?;
    let before = current(&options.index)?;
    let HeldIndex { lock, before } = held.insert(HeldIndex { lock, before });
    let (number, folder) = lock.next_generation()?;
    let mut keep = kept(&options.index)?;
    keep.extend(before.as_deref().and_then(number_of));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let build = since.as_nanos() as u64 ^ u64::from(std::process::id());
    let begun = BegunGeneration { number, build, keep };
    begun.make_room(&options.index)?;
    cluster.tell_others(&begun)?;
    let place = PartPlace::begin(&options.index, &begun, 0)?;
    let mut built = built_part(options, input, number, &place)?;
    let own = part_of(&built, &place)?;
    let others = cluster.hear_others::<Part>()?.into_iter().map(|(_, part)| part);
    let parts: Vec<Part> = std::iter::once(own).chain(others).collect();
    let whole = join(options, cluster, &built, &parts, before.as_deref(), &folder)?;
    let text = whole.encode();
    for (process, part) in parts.iter().enumerate().skip(1) {
        cluster.tell(process, &Order::Settle { manifest: text.clone() })?;
        if part.needs_copies {
            cluster.tell_bytes(process, &plain::read(&folder.join(INPUTS))?)?;
        }
    }
    built.new.manifest.files = place.settle(&built.new.manifest, &text, None)?;
    cluster.hear_others::<Synced>()?;
    place.clear()?;
    if let Some(failure) = options.control.take_failure() {
        return Err(failure.into());
    }
    lock.publish(number, vec![folder.join(INPUTS), folder.join(MANIFEST), folder])?;
    // It is live, whatever happens to the others from now on.
    let mut keep = kept(&options.index).unwrap_or_default();
    keep.push(number);
    if cluster.tell_others(&Order::Clean { keep }).is_ok() {
        _ = cluster.hear_others::<Cleaned>();
    }
    _ = lock.remove_debris();
    Ok((built, whole))
}

/// Writes inputs and manifest of all parts, if nothing is wrong with what they hold together.
fn join(
    options: &BuildOptions,
    cluster: &Cluster,
    built: &Built,
    parts: &[Part],
    before: Option<&Path>,
    folder: &Path,
) -> Result<Manifest, BuildError> {
    let next_run = parts.iter().map(|part| part.next_run).max().unwrap_or_default();
    let numbered: Vec<_> =
        parts.iter().map(|part| (part.manifest.clone(), part.first_input)).collect();
    let mut whole = whole_of(&options.index, &numbered, next_run)?;
    let directory = &built.build.plan.directory;
    let inputs = joined_inputs(cluster, directory, parts)?;
    let new = NewContent {
        plan: &built.build.plan.input,
        read_bytes: inputs.iter().map(|input| input.bytes).sum(),
        documents: whole.statistics.documents,
        tokens: Some(whole.statistics.tokens),
        skipped: &whole.statistics.skipped,
        first_skipped: &built.first_skipped,
    };
    options.guards.check(&new, || before.map(statistics_of).transpose())?;
    let ask = |ask: Ask| {
        cluster.tell_others(&Order::Alike(ask.clone()))?;
        let own = alike::answer(directory, &parts[0].manifest, &ask)?;
        let others = cluster.hear_bytes_of_others()?.into_iter().map(|(_, bytes)| bytes);
        Ok(std::iter::once(own).chain(others).collect())
    };
    let manifests: Vec<Manifest> = numbered.into_iter().map(|(manifest, _)| manifest).collect();
    let (duplicates, terms) = alike::count(&manifests, options.memory, ask)?;
    accept_duplicates(options.refuses_duplicates(), &duplicates)?;
    (whole.statistics.duplicate_names, whole.statistics.terms) = (duplicates.count, terms);
    let mut writer = InputsWriter::create(folder)?;
    writer.extend(inputs)?;
    whole.inputs = writer.next().into();
    whole.files.push(writer.finish()?);
    whole.files.sort_by(|a, b| a.name.cmp(&b.name));
    whole.write(folder)?;
    Ok(whole)
}

/// The inputs of all parts. One that some processes have read together has the hash of all chunks.
fn joined_inputs(
    cluster: &Cluster,
    directory: &Path,
    parts: &[Part],
) -> Result<Vec<InputEntry>, BuildError> {
    let mut inputs: Vec<InputEntry> = Vec::new();
    let mut cut = CutInputs::new();
    for (process, part) in parts.iter().enumerate() {
        let own = match process {
            0 => inputs_of(directory, &part.manifest)?,
            _ => {
                cluster.tell(process, &Order::Inputs)?;
                let bytes = cluster.hear_bytes(process)?;
                received(&bytes).ok_or(BuildError::Sent { process, bytes: bytes.len() })?
            }
        };
        for (number, input) in (part.first_input..).zip(own) {
            match inputs.get_mut(number as usize) {
                Some(known) => {
                    let known = &mut known.taken_fields;
                    let more = input.taken_fields.into_iter();
                    known.extend(more.filter(|field| !known.contains(field)).collect::<Vec<_>>());
                }
                None => inputs.push(input),
            }
        }
        for (number, chunks) in &part.cut {
            cut.entry(part.first_input + number).or_default().extend(chunks);
        }
    }
    for (number, chunks) in cut {
        let input = &mut inputs[number as usize];
        input.hash = format!("{NAME}:{:016x}", InputHash::of_chunks(&chunks));
    }
    Ok(inputs)
}

fn inputs_of(folder: &Path, manifest: &Manifest) -> Result<Vec<InputEntry>, IndexError> {
    InputsFile::open_unverified(folder, manifest)?.all()
}

fn built_part(
    options: &mut BuildOptions,
    input: Ready,
    generation: u32,
    place: &PartPlace,
) -> Result<Built, BuildError> {
    build_generation(options, input, generation, place.folder().to_path_buf(), Which::default())
}

fn part_of(built: &Built, place: &PartPlace) -> Result<Part, IndexError> {
    Ok(Part {
        manifest: built.new.manifest.clone(),
        first_input: built.build.plan.input.first_input,
        cut: built.cut.clone(),
        next_run: place.next_run()?,
        needs_copies: place.needs_copies(),
    })
}

fn follow(
    options: &mut BuildOptions,
    input: Ready,
    cluster: &Cluster,
) -> Result<Built, BuildError> {
    let begun: BegunGeneration = cluster.hear_first()?;
    let place = PartPlace::begin(&options.index, &begun, cluster.process)?;
    let built = built_part(options, input, begun.number, &place)
        .and_then(|built| settled(built, cluster, &place));
    if built.is_err() {
        place.abandon();
    }
    let built = built?;
    cluster.tell(0, &Synced)?;
    // Process 0 may have gone.
    if let Order::Clean { keep } = cluster.hear_first()? {
        place.clean(&keep);
        _ = cluster.tell(0, &Cleaned);
    }
    Ok(built)
}

/// Answers what process 0 asks until the runs have their names, and are synced.
fn settled(mut built: Built, cluster: &Cluster, place: &PartPlace) -> Result<Built, BuildError> {
    let part = part_of(&built, place)?;
    cluster.tell(0, &part)?;
    let Part { manifest, needs_copies, .. } = part;
    loop {
        match cluster.hear_first()? {
            Order::Inputs => {
                let inputs = inputs_of(place.folder(), &manifest)?;
                cluster.tell_bytes(0, &sent(&inputs))?;
            }
            Order::Alike(ask) => {
                cluster.tell_bytes(0, &alike::answer(place.folder(), &manifest, &ask)?)?;
            }
            Order::Settle { manifest: text } => {
                let inputs = needs_copies.then(|| cluster.hear_bytes(0)).transpose()?;
                let files: Vec<FileEntry> = place.settle(&manifest, &text, inputs.as_deref())?;
                built.new.manifest.files = files;
                return Ok(built);
            }
            Order::Clean { .. } => {}
        }
    }
}
