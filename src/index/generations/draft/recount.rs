//! Counts names that repeat, documents without a token and different terms from those of the
//! generation before, so that it costs what the change does.

use super::Draft;
use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::format::FileKind;
use crate::index::generations::manifest::{Manifest, RunEntry};
use crate::index::lexicon::Lexicon;
use crate::index::merge::count_distinct_terms;
use std::collections::HashMap;
use twox_hash::XxHash3_128;

/// Memory of a name that comes or goes.
const NAME_BYTES: u64 = 96;

/// A name that comes or goes.
#[derive(Default)]
struct TouchedName {
    added: u64,
    deleted: u64,
    /// A document of that name: the place of its run, and its docid there.
    example: (usize, u32),
}

impl Draft {
    /// Documents without a token, and those whose name an earlier one has, when the draft has all
    /// runs of a generation, less what was deleted since, and new ones; before any are merged. Also
    /// notes how many terms there are. None if it has not, or the names that come and go do not fit
    /// so much memory, about: then all are better counted.
    pub(crate) fn recount(
        &mut self,
        before: &Manifest,
        memory_bytes: u64,
    ) -> Result<Option<(u64, u64)>, IndexError> {
        if before.runs.iter().any(|run| !self.shared.contains(&run.name)) {
            return Ok(None);
        }
        self.terms = self.recount_terms(before, memory_bytes)?;
        let before = &before.statistics;
        let is_new = |run: &&RunEntry| !self.shared.contains(&run.name);
        let new: u64 = self.runs.iter().filter(is_new).map(|run| u64::from(run.documents)).sum();
        let deleted = self.deleted.values().map(Vec::len).sum::<usize>() as u64;
        if (new + deleted).saturating_mul(NAME_BYTES) > memory_bytes {
            return Ok(None);
        }
        let open = |run| RunDocuments::open_mapped(&self.folder, run);
        let runs = self.runs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut touched: HashMap<u128, TouchedName> = HashMap::new();
        let [mut more_empty, mut less_empty] = [0, 0];
        for (at, (run, documents)) in self.runs.iter().zip(&runs).enumerate() {
            let name = |docid| documents.name(docid).unwrap_or_default();
            let is_empty =
                |docid: u32| Ok::<_, IndexError>(u64::from(documents.length(docid)? == 0));
            let mut touch = |docid, added, deleted| {
                let name = touched.entry(XxHash3_128::oneshot(name(docid))).or_default();
                name.added += added;
                name.deleted += deleted;
                name.example = (at, docid);
            };
            if is_new(&run) {
                (0..run.documents).for_each(|docid| touch(docid, 1, 0));
                for docid in 0..run.documents {
                    more_empty += is_empty(docid)?;
                }
            }
            for &docid in self.deleted.get(&run.name).into_iter().flatten() {
                touch(docid, 0, 1);
                less_empty += is_empty(docid)?;
            }
        }
        let mut duplicates = before.duplicate_names;
        for TouchedName { added, deleted, example: (at, docid) } in touched.values() {
            let name = runs[*at].name(*docid).unwrap_or_default();
            let of_run = runs.iter().zip(&self.deletions).map(|(documents, deletions)| {
                let is_it = |docid: &u32| {
                    documents.name(*docid) == Some(name) && !deletions.contains(*docid)
                };
                documents.candidates(name).filter(is_it).count() as u64
            });
            let now: u64 = of_run.sum();
            let was = (now + deleted).saturating_sub(*added);
            duplicates = (duplicates + now.saturating_sub(1)).saturating_sub(was.saturating_sub(1));
        }
        let empty = (before.empty_documents + more_empty).saturating_sub(less_empty);
        Ok(Some((empty, duplicates)))
    }

    /// Different terms, as of the deleted documents that are counted; none if more are counted than
    /// before.
    fn recount_terms(
        &self,
        before: &Manifest,
        memory_bytes: u64,
    ) -> Result<Option<u64>, IndexError> {
        let of_before = |run: &RunEntry| before.runs.iter().find(|old| old.name == run.name);
        let (old, new): (Vec<_>, Vec<_>) =
            self.live_runs().into_iter().partition(|live| self.shared.contains(&live.run.name));
        let is_as_before = |live: &LiveRun<'_>| {
            of_before(live.run).is_some_and(|old| old.counted() == live.run.counted())
        };
        if !old.iter().all(is_as_before) {
            return Ok(None);
        }
        let open = |live: &LiveRun<'_>| {
            let lexicon = live.run.path(&self.folder, FileKind::Lexicon);
            Ok((Lexicon::open_unverified(&lexicon)?, live.deletions.clone()))
        };
        let old = old.iter().map(open).collect::<Result<Vec<_>, IndexError>>()?;
        let new: Vec<_> = new.into_iter().map(|live| (&*self.folder, live)).collect();
        let is_unknown = |(collection, suffix): (u16, &[u8])| {
            for (lexicon, deletions) in &old {
                let found = lexicon.find(collection, suffix)?;
                if found.is_some_and(|list| list.df > deletions.counted_in(&list)) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let more = count_distinct_terms(&new, memory_bytes, is_unknown)?;
        Ok(Some(before.statistics.terms + more))
    }
}
