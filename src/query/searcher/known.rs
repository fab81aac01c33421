//! What a search of a run knows besides its lists.

use crate::index::error::IndexError;
use crate::index::positions::ListPositions;
use crate::index::run::Run;
use crate::query::cursor::Norms;
use crate::query::plan::{FieldSpan, Plan};
use std::ops::Range;

/// Where the words of phrases stand in the documents of a run.
pub(super) fn positions_of<'r>(
    plan: &Plan,
    number: usize,
    run: &'r Run,
) -> Result<Vec<Option<ListPositions<'r>>>, IndexError> {
    let mut positions = Vec::new();
    for &(_, term) in plan.phrases().iter().flat_map(|phrase| &phrase.words) {
        positions.resize(plan.terms().len(), None);
        if let Some(entry) = &plan.lists_of(number)[term] {
            positions[term] = run.positions(entry)?;
        }
    }
    Ok(positions)
}

/// What a search knows of some documents.
pub(super) fn norms_of<'p>(plan: &'p Plan, docids: &Range<u32>) -> Norms<'p> {
    let field = if let FieldSpan::One(field) = plan.span() { field } else { 0 };
    plan.snapshot().norms_for(field, docids)
}

/// The same in each field, by number, where terms are of several.
pub(super) fn fields_of<'p>(plan: &'p Plan, docids: &Range<u32>) -> Vec<Norms<'p>> {
    let snapshot = plan.snapshot();
    let fields = 0..=snapshot.fields().len() as u8;
    let several = plan.span() == FieldSpan::Several;
    fields.filter(|_| several).map(|field| snapshot.norms_for(field, docids)).collect()
}
