//! Makes a new generation from the runs of the live one, in one draft that is published whole.
//!
//! The runs of the live generation stay, less the documents that are gone or have changed; what is
//! new becomes runs behind them. Where files were written again, documents have other places
//! in them: their run gets another file of places, and one more input where a document came in
//! another file before. Where everything is built again no run stays. Then runs are merged,
//! documents get their PageRanks, and an order is made.

use super::links::FoundLinks;
use super::live::Live;
use super::look::{Looked, RebuildKind};
use super::rank::{self, RankedPages};
use super::{Rebuild, RebuildError, guards};
use crate::build::accept_duplicates;
use crate::index::deletions::live_runs;
use crate::index::documents::duplicates::Duplicates;
use crate::index::documents::moves::{Move, Relocated};
use crate::index::documents::{Location, RunDocuments};
use crate::index::format::generation_name;
use crate::index::generations::draft::{Description, Draft, LOST_RANKS};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::live_names::{LiveNames, MappedDocuments};
use crate::index::generations::manifest::{Manifest, RunEntry, Statistics};
use crate::index::inputs::InputEntry;
use crate::index::order::DocumentOrder;
use crate::rebuild::history::HistoryRecord;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Whether the documents of a generation are in an order already: then all are in one run.
pub(super) fn is_ordered(live: &Manifest, order: DocumentOrder) -> bool {
    let is_whole = matches!(&live.runs[..], [run] if run.deleted.is_none());
    let is_so = match (&live.order, order) {
        (None, _) => false,
        (Some(now), DocumentOrder::Global { wang, bm25 }) => {
            let parameters = now.global.as_ref().and_then(|global| global.parameters());
            parameters.is_some_and(|now| (now.wang, now.bm25) == (wang, bm25))
        }
        (Some(now), order) => now.name == order.name(),
    };
    is_whole && is_so
}

pub(super) struct Publishing<'a> {
    pub(super) rebuild: &'a Rebuild<'a>,
    pub(super) looked: &'a Looked,
    /// The links by which documents are ranked, if any.
    pub(super) links: Option<&'a FoundLinks>,
}

impl Publishing<'_> {
    /// Makes and publishes the generation, with the ranks that were computed.
    pub(super) fn publish(
        &self,
        record: &mut HistoryRecord,
    ) -> Result<(Live, Option<RankedPages>), RebuildError> {
        let job = self.rebuild.job;
        let mut lock = IndexLock::acquire(&job.index)?.keeping(guards(job).keep);
        lock.heals = self.rebuild.daemon.from_nothing;
        let before = lock.live()?;
        let cleaned = lock.remove_debris();
        if !lock.heals {
            cleaned?;
            if before.as_deref() != self.looked.live.as_ref().map(|live| &*live.path) {
                return Err(RebuildError::Replaced);
            }
        }
        let published = self.draft(&lock, record);
        if published.is_err() {
            // What cannot be removed now is removed by the next job.
            _ = lock.abandon(before.as_deref());
        }
        published
    }

    fn draft(
        &self,
        lock: &IndexLock,
        record: &mut HistoryRecord,
    ) -> Result<(Live, Option<RankedPages>), RebuildError> {
        let Self { rebuild, looked, .. } = self;
        let job = rebuild.job;
        let memory_bytes = job.build.memory;
        let mut draft = Draft::begin(lock)?;
        let mut description = self.runs(&mut draft)?;
        description.settings.memory_bytes = memory_bytes;
        let merging = rebuild.merging(&description.settings);
        let live = looked.live.as_ref().map(|live| &live.manifest);
        // With `strict` the first repeated name is an error.
        let is_counted = looked.planned.how == RebuildKind::Part && !job.build.strict;
        let before = live.filter(|_| is_counted);
        let counted = before.map(|before| draft.recount(before, memory_bytes / 4)).transpose()?;
        // Documents that stay keep their order, unless that rests on their ranks.
        let how = looked.planned.how;
        let kept = looked.live.as_ref().and_then(|live| live.manifest.order.clone());
        let kept = kept.filter(|order| how == RebuildKind::Nothing && order.global.is_none());
        let is_other =
            |order: &&DocumentOrder| kept.as_ref().is_none_or(|kept| kept.name != order.name());
        let order = job.build.order.as_ref().filter(is_other);
        let mut lost = false;
        if how == RebuildKind::Part && order.is_none() {
            record.time("merge", || {
                let most_deleted = |documents| job.merge.deleted.most(documents);
                lost = draft.merge_some(0, job.merge.runs as usize, most_deleted, &merging)?;
                Ok::<_, RebuildError>(())
            })?;
        }
        if let Some(before) = before {
            draft.recount_terms(before, memory_bytes / 4)?;
        }
        let mut rank = |links| record.time("rank", || rank::rank(rebuild, &mut draft, links));
        let ranked = self.links.map(&mut rank).transpose()?;
        match order {
            Some(order) => {
                let ranks = record.time("order", || {
                    draft.verify(0..draft.runs().len(), &merging)?;
                    draft.order(order, None, &merging)
                })?;
                ranks.remark().into_iter().for_each(|remark| rebuild.note_of_ranks(remark));
            }
            None => draft.keep_order(kept),
        }
        if lost {
            rebuild.note_of_ranks(LOST_RANKS.into());
        }
        let accept = |statistics: &Statistics, duplicates: &Duplicates| {
            if how == RebuildKind::Part {
                accept_duplicates(job.build.strict, duplicates)?;
            }
            looked.check(job, Some(statistics))
        };
        let manifest = record.time("publish", || {
            draft.publish_if(lock, description, memory_bytes / 4, counted.flatten(), accept)
        })?;
        let path = job.index.join(generation_name(manifest.generation));
        Ok((Live { path, manifest, inputs: Vec::new() }, ranked))
    }

    fn runs(&self, draft: &mut Draft) -> Result<Description, RebuildError> {
        let Self { rebuild, looked, .. } = self;
        let is_whole = matches!(looked.planned.how, RebuildKind::Whole(_));
        let live = looked.live.as_ref().filter(|_| !is_whole);
        let command = rebuild.daemon.command.clone();
        let workers = rebuild.workers() as u32;
        let mut description = Description { command, workers, ..Description::default() };
        if let Some(live) = live {
            description.settings = live.manifest.settings.clone();
            description.skipped = live.manifest.statistics.skipped.clone();
            self.link(live, draft)?;
        }
        let first = draft.runs().len();
        if let Some((part, folder)) = &looked.part {
            let first_input = draft.take_inputs(folder, part)?;
            for number in 0..part.runs.len() {
                draft.take(folder, part, number, first_input)?;
            }
            for (reason, count) in &part.statistics.skipped {
                *description.skipped.entry(reason.clone()).or_default() += count;
            }
            if let Some(live) = live {
                Self::give_way(live, draft, first..draft.runs().len())?;
            }
            match live {
                Some(live) if self.links.is_none() => {
                    let new = first..draft.runs().len();
                    let unknown = draft.keep_ranks(&live.path, &live.manifest, new)?;
                    if unknown > 0 {
                        rebuild.note_of_ranks(format!(
                            "{unknown} new documents have PageRank 0: the job file has no [pagerank]"
                        ));
                    }
                }
                Some(_) => {}
                None => description.settings = part.settings.clone(),
            }
        }
        if looked.part.is_none() {
            // Files that were read are inputs even if no document of theirs is new.
            draft.add_inputs(&looked.read)?;
        }
        Ok(description)
    }

    /// Leaves out those of the `new` runs' documents whose name one has that came by call.
    fn give_way(live: &Live, draft: &mut Draft, new: Range<usize>) -> Result<(), RebuildError> {
        if !live.inputs.iter().any(InputEntry::is_by_call) {
            return Ok(());
        }
        let runs = &live.manifest.runs;
        let names = live_runs(&live.path, runs)?;
        let names = LiveNames::open(&live.path, names, &mut MappedDocuments::new())?;
        let is_by_call = |(run, docid): (usize, u32)| {
            let place = names.runs()[run].1.location(docid);
            let input = place.map(|place| runs[run].first_input.saturating_add(place.input));
            input
                .and_then(|input| live.inputs.get(input as usize))
                .is_some_and(InputEntry::is_by_call)
        };
        for place in new {
            let documents = RunDocuments::open_mapped(draft.folder(), &draft.runs()[place])?;
            let mut docids = Vec::new();
            for docid in 0..documents.len() {
                if names.of(&documents.name(docid)?)?.into_iter().any(is_by_call) {
                    docids.push(docid);
                }
            }
            if !docids.is_empty() {
                draft.delete(place, &docids)?;
            }
        }
        Ok(())
    }

    fn link(&self, live: &Live, draft: &mut Draft) -> Result<(), RebuildError> {
        let looked = self.looked;
        let mut moved = Moved::new(live, looked)?;
        let deleted = |run: &RunEntry| {
            let docids = looked.changes.deleted.docids_from(run.first_docid);
            let docids = docids.map(|docid| docid - run.first_docid);
            docids.take_while(|docid| *docid < run.documents).collect::<Vec<u32>>()
        };
        let is_empty = |run: &RunEntry| {
            let before = run.deleted.map_or(0, |deleted| deleted.documents);
            before + deleted(run).len() as u32 == run.documents
        };
        let first_input = draft.add_inputs(&moved.inputs)?;
        // There is a run at least.
        let all_empty = moved.manifest.runs.iter().all(is_empty);
        for (number, run) in moved.manifest.runs.iter().enumerate() {
            if is_empty(run) && !all_empty {
                continue;
            }
            let place = draft.link(&live.path, &moved.manifest, number, first_input)?;
            if let Some((inputs, moves)) = moved.moves.remove(&number) {
                draft.relocate(place, inputs, &moves)?;
            }
            let deleted = deleted(run);
            if !deleted.is_empty() {
                draft.delete(place, &deleted)?;
            }
        }
        Ok(())
    }
}

/// The live generation with the inputs of now, and the places of its documents in them.
struct Moved {
    manifest: Manifest,
    inputs: Vec<InputEntry>,
    /// By the number of the run: in how many inputs its documents lie, and the moves of those that
    /// lie elsewhere than when it was written.
    moves: BTreeMap<usize, (u32, Vec<Move>)>,
}

impl Moved {
    fn new(live: &Live, looked: &Looked) -> Result<Self, RebuildError> {
        let manifest = live.manifest.clone();
        let mut inputs = live.inputs.clone();
        let now: HashMap<&Path, &InputEntry> =
            looked.read.iter().map(|input| (input.path.as_path(), input)).collect();
        let paths = (0..looked.plan.inputs.len()).filter_map(|n| looked.plan.inputs.path(n));
        let there: HashSet<PathBuf> = paths.collect();
        for input in &mut inputs {
            if input.is_by_call() {
                continue;
            } else if let Some(&now) = now.get(input.path.as_path()) {
                *input = now.clone();
            } else if !there.contains(&input.path) {
                // Its deleted documents lie in it, so that it stays, as one that is gone.
                input.hash.clear();
            }
        }
        let mut moved = Self { manifest, inputs, moves: BTreeMap::new() };
        if !looked.changes.kept.is_empty() || !looked.changes.moved.is_empty() {
            moved.find_places(live, looked)?;
        }
        Ok(moved)
    }

    /// Finds out which documents lie elsewhere. A run whose documents came into files that it had
    /// none in gets these as further inputs.
    fn find_places(&mut self, live: &Live, looked: &Looked) -> Result<(), RebuildError> {
        let mut seen = looked.seen()?;
        let mut inputs: Vec<InputEntry> = Vec::new();
        let (mut kept, mut moved) = (&looked.changes.kept[..], &looked.changes.moved[..]);
        for (number, run) in self.manifest.runs.iter_mut().enumerate() {
            let end = run.first_docid + run.documents;
            let kept = split_off(&mut kept, |(docid, _)| *docid < end);
            let moved = split_off(&mut moved, |moved| moved.docid() < end);
            let own = run.first_input as usize..(run.first_input + run.inputs) as usize;
            let first_input = inputs.len() as u32;
            inputs.extend_from_slice(&self.inputs[own]);
            run.first_input = first_input;
            if kept.is_empty() && moved.is_empty() {
                continue;
            }
            // The first input of a path is as good as the one that the run had.
            let mut at: HashMap<PathBuf, u32> = HashMap::new();
            for (place, input) in (0..).zip(&inputs[first_input as usize..]) {
                if !input.is_by_call() {
                    at.entry(input.path.clone()).or_insert(place);
                }
            }
            // The number that a file that was read has as an input of the run, once known.
            let mut of_read = vec![None; looked.read.len()];
            let mut input_of = |file: u32| {
                *of_read[file as usize].get_or_insert_with(|| {
                    let entry = &looked.read[file as usize];
                    *at.entry(entry.path.clone()).or_insert_with(|| {
                        inputs.push(entry.clone());
                        inputs.len() as u32 - 1 - first_input
                    })
                })
            };
            let documents = RunDocuments::open_mapped(&live.path, run)?;
            let here =
                |moved: &Relocated| moved.counted_from(run.first_docid, input_of(moved.input()));
            let mut now: Vec<Relocated> = moved.iter().map(here).collect();
            for &(docid, number) in kept {
                let place = seen.get(number)?.place;
                let place = Location { input: input_of(place.input), ..place };
                documents.relocated_to(docid - run.first_docid, place)?.add_to(&mut now);
            }
            now.sort_by_key(Relocated::docid);
            let moves = documents.moves().with(now);
            if moves != documents.moves().stretches() {
                self.moves.insert(number, (inputs.len() as u32 - first_input, moves));
            }
        }
        // Files without documents stay inputs, so that they are known.
        let seen: HashSet<PathBuf> = inputs.iter().map(|input| input.path.clone()).collect();
        let old = std::mem::replace(&mut self.inputs, inputs);
        let left = old.into_iter().filter(|input| !seen.contains(&input.path));
        self.inputs.extend(left);
        Ok(())
    }
}

/// Takes the elements at the beginning of a slice that are as is said.
fn split_off<'a, T>(rest: &mut &'a [T], is_first: impl Fn(&T) -> bool) -> &'a [T] {
    let (first, behind) = rest.split_at(rest.partition_point(is_first));
    *rest = behind;
    first
}
