//! How does a new generation come about from the runs of the live one?
//!
//! Its runs are linked; documents that are gone or have changed are left out of them; what is new
//! becomes runs behind them. What cannot be as it was are the places of documents in files that
//! were written anew: then a run gets another file of places, and all else of it is linked. A run
//! gets one more input where one of its documents came in another file before.

use super::affected::affected;
use super::look::{Live, Looked, deletions};
use super::{Rebuild, RebuildError, guards};
use crate::build::{Input, build_part};
use crate::dataflow::rebuild::table::name_hash;
use crate::index::documents::{Documents, Location, RunDocuments};
use crate::index::error::IndexError;
use crate::index::files::storage::{self, Durability, FileEntry, StorageFile};
use crate::index::format::{Header, Kind, RUNS, run_file, run_name};
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::manifest::{InputEntry, Manifest, RunEntry};
use crate::index::merge::Merging;
use crate::index::scores::ranks_of;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Makes and publishes the generation; `work` is a scratch folder. Returns its manifest.
pub(super) fn add(
    rebuild: &Rebuild<'_>,
    looked: &Looked,
    work: &Path,
) -> Result<Manifest, RebuildError> {
    let live = looked.live.as_ref().ok_or(RebuildError::Replaced)?;
    let part = part(rebuild, looked, work)?;
    let lock = IndexLock::acquire(&rebuild.job.index)?.keeping(guards(rebuild.job).keep);
    lock.remove_debris()?;
    let before = current(&rebuild.job.index)?;
    if before.as_deref() != Some(&*live.path) {
        return Err(RebuildError::Replaced);
    }
    let published = publish(rebuild, looked, live, part, work, &lock);
    if published.is_err() {
        // What cannot be removed now is removed by the next job.
        _ = lock.abandon(before.as_deref());
    }
    published
}

/// The runs of the documents that are new or have changed, and their folder; `None` if there are
/// none.
///
/// What was indexed while the files were read is all of it, but where a document is there more
/// often than it was, or has no name of its own and lies in another line: then the files are read
/// once more.
fn part(
    rebuild: &Rebuild<'_>,
    looked: &Looked,
    work: &Path,
) -> Result<Option<(Manifest, PathBuf)>, RebuildError> {
    let Some((plan, wanted)) = looked.wanted()? else { return Ok(None) };
    if let Some((manifest, folder)) = &looked.part {
        if manifest.statistics.documents == looked.changes.wanted.len() {
            return Ok(Some((manifest.clone(), folder.clone())));
        }
        fs::remove_dir_all(folder).map_err(RebuildError::io(folder))?;
    }
    let folder = work.join("part");
    storage::create_dir(&folder)?;
    storage::create_dir(&folder.join(RUNS))?;
    let mut options = rebuild.options()?;
    options.input = Input::Plan(Box::new(plan));
    Ok(Some((build_part(options, wanted, folder.clone())?, folder)))
}

fn publish(
    rebuild: &Rebuild<'_>,
    looked: &Looked,
    live: &Live,
    part: Option<(Manifest, PathBuf)>,
    work: &Path,
    lock: &IndexLock,
) -> Result<Manifest, RebuildError> {
    let moved = Moved::new(live, looked, work)?;
    let deleted = |run: &RunEntry| {
        let (first, end) = (run.first_docid, run.first_docid + run.documents);
        let deleted =
            looked.changes.deleted.iter().filter(move |docid| (first..end).contains(docid));
        deleted.map(|docid| docid - first).collect::<Vec<u32>>()
    };
    let is_empty = |run: &RunEntry| {
        let before = run.deleted.map_or(0, |deleted| deleted.documents);
        before + deleted(run).len() as u32 == run.documents
    };
    // The inputs of the live generation come with the first run of it.
    let all_empty = moved.manifest.runs.iter().all(is_empty);
    let mut draft = Draft::begin(lock)?;
    for (number, run) in moved.manifest.runs.iter().enumerate() {
        if is_empty(run) && !all_empty {
            continue;
        }
        let place = draft.link(&live.path, &moved.manifest, number)?;
        if let Some(places) = moved.places.get(&number) {
            let name = run_file(&run_name(place as u32), Kind::Locations);
            storage::rename(places, &draft.folder().join(name))?;
        }
        let deleted = deleted(run);
        if !deleted.is_empty() {
            draft.delete(place, &deleted)?;
        }
    }
    let mut skipped = live.manifest.statistics.skipped.clone();
    match part {
        Some((manifest, folder)) => {
            let mut new = Vec::with_capacity(manifest.runs.len());
            for number in 0..manifest.runs.len() {
                new.push(draft.link(&folder, &manifest, number)?);
            }
            keep_ranks(rebuild, live, &mut draft, &new)?;
            for (reason, count) in manifest.statistics.skipped {
                *skipped.entry(reason).or_default() += count;
            }
        }
        // Files that were read are inputs even if no document of theirs is new.
        None => _ = draft.add_inputs(moved.read),
    }
    let mut settings = live.manifest.settings.clone();
    settings.memory_bytes = rebuild.job.build.memory;
    let (command, workers) = (rebuild.command.clone(), rebuild.workers() as u32);
    let form = settings.form().unwrap_or_default();
    let (memory_bytes, threads) = (rebuild.job.build.memory, rebuild.workers());
    let stop = rebuild.control.stop().clone();
    let merging = Merging { memory_bytes, threads, form, stop };
    let mut lost = false;
    // The last first, so that the places of those before it stay.
    for runs in affected(draft.runs(), &rebuild.job.merge).into_iter().rev() {
        lost |= draft.merge(runs, &merging)?;
    }
    if lost {
        rebuild.note_of_ranks(
            "PageRanks of runs that were merged are lost, since others had none: give all anew (merge --pagerank FILE)".into(),
        );
    }
    let description = Description { command, workers, settings, skipped };
    Ok(draft.publish(description, rebuild.job.build.memory / 4)?)
}

/// Gives the documents of `new` runs the PageRanks that documents of their names have in the live
/// generation, if it has any; those whose names it does not have get 0, as where a file of ranks
/// does not name them.
fn keep_ranks(
    rebuild: &Rebuild<'_>,
    live: &Live,
    draft: &mut Draft<'_>,
    new: &[usize],
) -> Result<(), RebuildError> {
    let ranks = match ranks_of(&live.path, &live.manifest) {
        Ok(Some(ranks)) => ranks,
        // Where only some runs have ranks there is nothing that could be kept whole.
        Ok(None) | Err(IndexError::Lacks { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut of_name: HashMap<u128, f32> = HashMap::new();
    let mut names = Vec::with_capacity(new.len());
    for &run in new {
        let documents = RunDocuments::open_unverified(draft.folder(), &draft.runs()[run])?;
        let hash = |docid| name_hash(documents.name(docid).unwrap_or_default());
        let hashes: Vec<u128> = (0..documents.len()).map(hash).collect();
        of_name.extend(hashes.iter().map(|&hash| (hash, f32::NAN)));
        names.push(hashes);
    }
    let documents = Documents::open(&live.path, &live.manifest)?;
    for (run, of_run) in live.manifest.runs.iter().zip(documents.runs()) {
        let deleted = deletions(live, run)?;
        for docid in (0..of_run.len()).filter(|&docid| !deleted.contains(docid)) {
            let name = name_hash(of_run.name(docid).unwrap_or_default());
            // The first document of a name counts.
            if let Some(rank) = of_name.get_mut(&name).filter(|rank| rank.is_nan()) {
                *rank = ranks[(run.first_docid + docid) as usize];
            }
        }
    }
    let mut unknown = 0u64;
    for (&run, names) in new.iter().zip(names) {
        let mut rank = |name: u128| {
            let rank = of_name[&name];
            unknown += u64::from(rank.is_nan());
            rank.max(0.0)
        };
        let ranks: Vec<f32> = names.into_iter().map(&mut rank).collect();
        draft.rank(run, &ranks)?;
    }
    if unknown > 0 && rebuild.job.pagerank.is_none() {
        rebuild.note_of_ranks(format!(
            "{unknown} new documents have PageRank 0: the job file has no [pagerank]"
        ));
    }
    Ok(())
}

/// The live generation as its files are now.
struct Moved {
    /// Its manifest, with the inputs of now.
    manifest: Manifest,
    /// New files of places, by the number of the run.
    places: BTreeMap<usize, PathBuf>,
    read: Vec<InputEntry>,
}

impl Moved {
    fn new(live: &Live, looked: &Looked, work: &Path) -> Result<Self, RebuildError> {
        let mut manifest = live.manifest.clone();
        let read = looked.read.clone();
        let now: HashMap<&str, &InputEntry> =
            read.iter().map(|input| (input.path.as_str(), input)).collect();
        for input in &mut manifest.inputs {
            if let Some(&now) = now.get(input.path.as_str()) {
                *input = now.clone();
            }
        }
        let mut moved = Self { manifest, places: BTreeMap::new(), read };
        if !looked.changes.kept.is_empty() {
            moved.find_places(live, looked, work)?;
        }
        Ok(moved)
    }

    /// Writes new files of places for the runs whose documents lie elsewhere now.
    fn find_places(
        &mut self,
        live: &Live,
        looked: &Looked,
        work: &Path,
    ) -> Result<(), RebuildError> {
        let documents = Documents::open(&live.path, &live.manifest)?;
        let mut new = looked.places()?;
        let mut kept = looked.changes.kept.clone();
        kept.sort_unstable();
        let (mut inputs, mut rest) = (Vec::new(), &kept[..]);
        for (number, run) in self.manifest.runs.iter_mut().enumerate() {
            let end = run.first_docid + run.documents;
            let (mine, behind) = rest.split_at(rest.partition_point(|&(docid, _)| docid < end));
            rest = behind;
            let own = run.first_input as usize..(run.first_input + run.inputs) as usize;
            let first_input = inputs.len() as u32;
            inputs.extend_from_slice(&self.manifest.inputs[own]);
            let mut at: HashMap<String, u32> = HashMap::new();
            for (place, input) in (0..).zip(&inputs[first_input as usize..]) {
                at.entry(input.path.clone()).or_insert(place);
            }
            // The input of the run that a file is which was read, once it is known.
            let mut of_read = vec![None; self.read.len()];
            let run_documents = documents.runs().nth(number);
            let old = run_documents.map(|documents| documents.locations()).unwrap_or_default();
            let mut places = old.to_vec();
            let mut other = false;
            for &(docid, place) in mine {
                let now = new.get(place)?;
                let input = *of_read[now.input as usize].get_or_insert_with(|| {
                    let entry = &self.read[now.input as usize];
                    *at.entry(entry.path.clone()).or_insert_with(|| {
                        inputs.push(entry.clone());
                        inputs.len() as u32 - 1 - first_input
                    })
                });
                let now = Location { input, ..now };
                let was = &mut places[(docid - run.first_docid) as usize];
                // The first input of a path is as good as the one that the run had.
                other |= *was != now;
                *was = now;
            }
            run.first_input = first_input;
            // The last of its inputs has a document of the run; files that have none any more lie
            // behind.
            run.inputs = places.iter().map(|place| place.input + 1).max().unwrap_or(0);
            if other {
                let entry = write_places(work, number, run, &places)?;
                let name = entry.name.clone();
                self.places.insert(number, work.join(&name));
                let wanted = run_file(&run.name, Kind::Locations);
                for file in &mut self.manifest.files {
                    if file.name == wanted {
                        *file = FileEntry { name: wanted.clone(), ..entry.clone() };
                    }
                }
            }
        }
        // Files without documents stay inputs, so that they are known.
        let seen: HashSet<String> = inputs.iter().map(|input| input.path.clone()).collect();
        let old = std::mem::replace(&mut self.manifest.inputs, inputs);
        let left = old.into_iter().filter(|input| !seen.contains(&input.path));
        self.manifest.inputs.extend(left);
        Ok(())
    }
}

/// Writes a file of places into the scratch folder.
fn write_places(
    work: &Path,
    number: usize,
    run: &RunEntry,
    places: &[Location],
) -> Result<FileEntry, IndexError> {
    let mut file = StorageFile::create(work, &format!("places-{number}"), Durability::Lasting)?;
    file.write(bytemuck::cast_slice(places))?;
    let values = [u64::from(run.documents), 0, 0, 0, 0];
    file.finish(Header { kind: Kind::Locations, values, last: 0 })
}
