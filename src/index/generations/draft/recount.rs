//! Counts names that repeat, documents without a token and different terms from those of the
//! generation before, so that it costs what the change does.

use super::Draft;
use crate::crew::{Crew, cores};
use crate::index::deletions::LiveRun;
use crate::index::documents::name_hash;
use crate::index::error::IndexError;
use crate::index::format::FileKind;
use crate::index::generations::live_names::LiveNames;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::lexicon::Lexicon;
use crate::index::merge::count_distinct_terms;
use std::collections::HashMap;

/// Memory of a name that comes or goes.
const NAME_BYTES: u64 = 96;

/// Names that a thread looks up at a time.
const PART_NAMES: usize = 1 << 9;

/// To look a term up takes as long as to read this many in order, about; so few are always looked
/// up.
const LOOK_UP: u64 = 16;
const FEW_TERMS: u64 = 1 << 12;

/// A name that comes or goes.
#[derive(Default)]
struct TouchedName {
    added: u64,
    deleted: u64,
    /// A document of that name: the place of its run, and its docid there.
    example: (usize, u32),
}

impl Draft {
    /// Documents without a token, and those whose name an earlier one has, when the draft has runs
    /// of the generation before, less what was deleted since, and new ones; before any are merged.
    /// None if the names that come and go do not fit so much
    /// memory, about: then all are better counted.
    pub(crate) fn recount(
        &mut self,
        before: &Manifest,
        memory_bytes: u64,
    ) -> Result<Option<(u64, u64)>, IndexError> {
        let mut known = std::mem::take(&mut self.known);
        let Some(gone) = self.gone(before) else { return Ok(None) };
        let before = &before.statistics;
        let is_new = |run: &RunEntry| !self.shared.contains(&run.name);
        let new = self.runs.iter().filter(|run| is_new(run));
        let new: u64 = new.map(|run| u64::from(run.documents)).sum();
        let deleted = self.deleted.values().map(Vec::len).sum::<usize>() as u64;
        let deleted =
            deleted + gone.iter().map(|gone| u64::from(gone.run.live_documents())).sum::<u64>();
        if (new + deleted).saturating_mul(NAME_BYTES) > memory_bytes {
            return Ok(None);
        }
        let all = self.live_runs().into_iter().chain(gone.iter().cloned());
        let all = LiveNames::open(&self.folder, all.collect(), &mut known)?;
        let mut touched: HashMap<u128, TouchedName> = HashMap::new();
        let [mut more_empty, mut less_empty] = [0, 0];
        for (at, (LiveRun { run, deletions }, documents)) in all.runs().iter().enumerate() {
            let mut touch = |docid, is_added: bool| {
                let name = touched.entry(name_hash(&documents.name(docid)?)).or_default();
                name.example = (at, docid);
                let is_empty = u64::from(documents.length(docid)? == 0);
                let (count, empty) = match is_added {
                    true => (&mut name.added, &mut more_empty),
                    false => (&mut name.deleted, &mut less_empty),
                };
                *count += 1;
                *empty += is_empty;
                Ok::<_, IndexError>(())
            };
            if at >= self.runs.len() {
                let mut docids = (0..run.documents).filter(|docid| !deletions.contains(*docid));
                docids.try_for_each(|docid| touch(docid, false))?;
                continue;
            }
            if is_new(run) {
                (0..run.documents).try_for_each(|docid| touch(docid, true))?;
            }
            let mut deleted = self.deleted.get(&run.name).into_iter().flatten();
            deleted.try_for_each(|&docid| touch(docid, false))?;
        }
        all.expect(touched.len())?;
        let touched: Vec<TouchedName> = touched.into_values().collect();
        let count = |(): &mut (), part: usize| {
            let [mut more, mut less] = [0, 0];
            let names = touched.iter().skip(part * PART_NAMES).take(PART_NAMES);
            for TouchedName { added, deleted, example: (at, docid) } in names {
                let now = all.of(&all.runs()[*at].1.name(*docid)?)?;
                let now = now.iter().filter(|(run, _)| *run < self.runs.len()).count() as u64;
                let was = (now + deleted).saturating_sub(*added);
                more += now.saturating_sub(1);
                less += was.saturating_sub(1);
            }
            Ok::<_, IndexError>([more, less])
        };
        let parts = touched.len().div_ceil(PART_NAMES);
        let counted = Crew::new("names").in_order(cores(), parts, count)?;
        let [more, less] = [0, 1].map(|of| counted.iter().map(|part| part[of]).sum::<u64>());
        let duplicates = (before.duplicate_names + more).saturating_sub(less);
        let empty = (before.empty_documents + more_empty).saturating_sub(less_empty);
        Ok(Some((empty, duplicates)))
    }

    /// The runs of the generation before that this one does not have; none if it has no run of
    /// that.
    fn gone<'a>(&self, before: &'a Manifest) -> Option<Vec<LiveRun<'a>>> {
        let (_, deletions) = self.linked_from.as_ref()?;
        let all = before.runs.iter().zip(deletions);
        let gone = all.filter(|(run, _)| !self.shared.contains(&run.name));
        Some(gone.map(|(run, gone)| LiveRun { run, deletions: gone.clone() }).collect())
    }

    /// Notes how many different terms there are, as of the deleted documents that are counted, when
    /// all runs are as they will be published; but not if so much came or went that counting all
    /// takes no longer.
    pub(crate) fn recount_terms(
        &mut self,
        before: &Manifest,
        memory_bytes: u64,
    ) -> Result<(), IndexError> {
        let Some((_, deletions)) = &self.linked_from else { return Ok(()) };
        // A run of which more are counted now goes as it was, and comes as it is.
        let is_in = |run: &RunEntry, others: &[RunEntry]| {
            let other = others.iter().find(|other| other.name == run.name);
            other.is_some_and(|other| other.counted() == run.counted())
        };
        let all = before.runs.iter().zip(deletions);
        let gone = all.filter(|(run, _)| !is_in(run, &self.runs));
        let gone = gone.map(|(run, deletions)| LiveRun { run, deletions: deletions.clone() });
        let gone: Vec<_> = gone.collect();
        let (old, new): (Vec<_>, Vec<_>) =
            self.live_runs().into_iter().partition(|live| is_in(live.run, &before.runs));
        let changed: u64 = new.iter().chain(&gone).map(|live| live.run.terms).sum();
        let terms = before.statistics.terms;
        if changed > FEW_TERMS && changed.saturating_mul(LOOK_UP) > terms {
            return Ok(());
        }
        // All = old and gone + new without those - gone without old and new.
        // Nearly all terms of a merged run are in those of which it came: they are looked at first.
        let more = self.terms_beside(&new, &[&gone, &old], memory_bytes)?;
        let less = self.terms_beside(&gone, &[&new, &old], memory_bytes)?;
        self.terms = Some((terms + more).saturating_sub(less));
        Ok(())
    }

    /// Different terms of some runs that no others have.
    fn terms_beside(
        &self,
        runs: &[LiveRun<'_>],
        others: &[&[LiveRun<'_>]],
        memory_bytes: u64,
    ) -> Result<u64, IndexError> {
        let open = |live: &LiveRun<'_>| {
            let lexicon = live.run.path(&self.folder, FileKind::Lexicon);
            Ok((Lexicon::open_unverified(&lexicon)?, live.deletions.clone()))
        };
        let others = others.iter().copied().flatten();
        let others = others.map(open).collect::<Result<Vec<_>, IndexError>>()?;
        let is_unknown = |(collection, suffix): (u16, &[u8])| {
            for (lexicon, deletions) in &others {
                let found = lexicon.find(collection, suffix)?;
                if found.is_some_and(|list| list.df > deletions.counted_in(&list)) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let runs: Vec<_> = runs.iter().map(|live| (&*self.folder, live.clone())).collect();
        count_distinct_terms(&runs, memory_bytes, is_unknown)
    }
}
