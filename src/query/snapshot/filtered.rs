//! Snapshots under a filter: the same open runs and statistics, and infinite norms for documents
//! that do not pass, as for those that are deleted. So every engine answers under a filter, and
//! scores are those of the whole collection.

use super::Snapshot;
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::query::filter::{FilterError, PassingDocuments};
use crate::query::reading::asked::GivenDocids;
use std::sync::{Arc, Mutex, OnceLock};

/// Filters that a snapshot keeps, and bytes of what is made for them, except for the last.
const MOST_FILTERS: usize = 64;
const MOST_BYTES: usize = 1 << 30;

/// Of this many documents one passes at most where those are looked for one by one.
const FEW_PART: u32 = 100;

/// The filters of a snapshot, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct KnownFilters(Mutex<Vec<(Arc<str>, Arc<Snapshot>)>>);

/// What a snapshot under a filter is besides.
#[derive(Debug)]
pub(super) struct Filtered {
    /// The documents that pass, if they are few.
    few: Option<GivenDocids>,
}

impl Snapshot {
    /// This snapshot under a filter, if there is one.
    pub(crate) fn under(
        self: &Arc<Self>,
        filter: Option<&Arc<str>>,
    ) -> Result<Arc<Self>, FilterError> {
        filter.map_or_else(|| Ok(self.clone()), |filter| self.pass(filter))
    }

    /// Whether it is one under a filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filtered.is_some()
    }

    /// Whether some documents are no answers, being deleted or behind a filter.
    pub(crate) fn leaves_out(&self) -> bool {
        self.is_filtered() || self.generation.has_deletions()
    }

    /// The documents that pass, if there is a filter and they are few.
    pub(crate) fn few(&self) -> Option<&GivenDocids> {
        self.filtered.as_ref()?.few.as_ref()
    }

    /// Whether both are of the same open runs, one of them perhaps under a filter.
    pub(crate) fn is_of(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let is_filtered = || self.is_filtered() && Arc::ptr_eq(&self.generation, &other.generation);
        Arc::ptr_eq(self, other) || is_filtered()
    }

    /// This snapshot under a filter by the columns of the index, such as `year >= 2010`: documents
    /// that do not pass are no hits, and scores stay. What was made for the last filters is kept.
    ///
    /// # Errors
    /// `Query` if it is none for this index; `Damaged`.
    pub fn filtered(self: &Arc<Self>, filter: &str) -> Result<Arc<Self>, IndexError> {
        self.pass(&filter.into()).map_err(|error| match error {
            FilterError::Refused(why) => {
                IndexError::Query { why: format!("has a filter that {why}") }
            }
            FilterError::Index(error) => error,
        })
    }

    /// This snapshot under a filter. What was made for the last filters is kept.
    ///
    /// Memory: 4 bytes for each document, 8 with static parts; at most [`MOST_BYTES`] for all that
    /// are kept, beside the last.
    fn pass(self: &Arc<Self>, filter: &Arc<str>) -> Result<Arc<Self>, FilterError> {
        let mut known = lock(&self.filters.0);
        if let Some(at) = known.iter().position(|(text, _)| text == filter) {
            let found = known.remove(at);
            known.push(found);
            return Ok(known[known.len() - 1].1.clone());
        }
        let made = Arc::new(self.make(&PassingDocuments::of(&self.generation, filter)?));
        let bytes = size_of::<f32>() * (made.norms.len() + made.statics.len() + made.globals.len());
        let most = MOST_FILTERS.min(MOST_BYTES / bytes.max(1)).max(1);
        let over = (known.len() + 1).saturating_sub(most);
        known.drain(..over);
        known.push((filter.clone(), made.clone()));
        Ok(made)
    }

    fn make(&self, passing: &PassingDocuments) -> Self {
        let mut norms = self.norms.to_vec();
        let mut statics = self.statics.clone();
        let is_few = u64::from(passing.count) * u64::from(FEW_PART) < norms.len() as u64;
        let mut few = Vec::new();
        for (number, run) in self.generation.runs().iter().enumerate() {
            let first = run.first_docid();
            for docid in 0..run.documents() {
                let place = (first + docid) as usize;
                if !passing.has(number, docid) {
                    norms[place] = f32::INFINITY;
                    if let Some(part) = statics.get_mut(place) {
                        *part = f32::NEG_INFINITY;
                    }
                } else if is_few && norms[place].is_finite() {
                    few.push(first + docid);
                }
            }
        }
        let few = is_few.then(|| few.into());
        Self {
            generation: self.generation.clone(),
            whole: self.whole,
            analysis: self.analysis.clone(),
            scoring: self.scoring.clone(),
            share: self.share.clone(),
            docids: self.docids.clone(),
            norms: Arc::new(norms),
            bounds: self.bounds.clone(),
            fields: self.fields.clone(),
            field_norms: self.field_norms.iter().map(|_| OnceLock::new()).collect(),
            field_tokens: self.field_tokens.clone(),
            boosted: self.boosted.clone(),
            statics,
            globals: self.globals.clone(),
            has_ranks: self.has_ranks,
            filters: KnownFilters::default(),
            filtered: Some(Filtered { few }),
        }
    }
}
