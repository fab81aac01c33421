//! The norms of documents by their lengths, of all text or of a field, and what a snapshot knows of
//! the fields of its index.

use super::Snapshot;
use crate::crew::{Crew, cores};
use crate::index::documents::fields::FieldLengths;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::pages;
use crate::query::norms::Norms;
use crate::score::bounds::BoundNorms;
use crate::score::fields::{ALL_TEXT, divided};
use crate::score::named::Score;
use crate::score::scoring::{NormsByLength, Scoring, WholeCollection};
use crate::text::fields::IndexFields;
use std::ops::Range;

/// Documents whose norms a thread makes at a time: 1 MiB.
const NORMS_PART: usize = 1 << 18;

#[derive(Debug)]
pub(super) struct FieldNorms {
    norms: Vec<f32>,
    bounds: BoundNorms,
}

impl Snapshot {
    /// The fields of the index.
    pub(crate) fn fields(&self) -> &IndexFields {
        &self.fields
    }

    /// The fields that words are looked for in if the query names none, by number, with their
    /// weights; 0 is all text.
    pub(crate) fn boosted(&self) -> &[(u8, f64)] {
        &self.boosted
    }

    /// Tokens of the whole collection in a field, or in all text.
    pub(crate) fn tokens_of(&self, field: u8) -> u64 {
        match usize::from(field).checked_sub(1) {
            None => self.whole.tokens,
            Some(at) => self.field_tokens.get(at).copied().unwrap_or_default(),
        }
    }

    /// Makes the norms of a field, unless they are there. Takes 4 bytes of memory a document.
    pub(crate) fn load_field(&self, field: u8) -> Result<(), IndexError> {
        let place = usize::from(field).checked_sub(1);
        let Some(room) = place.and_then(|at| self.field_norms.get(at)) else { return Ok(()) };
        if room.get().is_none() {
            // Another thread may have been faster.
            _ = room.set(self.norms_in(field)?);
        }
        Ok(())
    }

    fn norms_in(&self, field: u8) -> Result<FieldNorms, IndexError> {
        let name = self.fields.name(field).unwrap_or_default();
        let generation = &self.generation;
        let mut lengths = Vec::new();
        for run in &generation.manifest().runs {
            let of_run = FieldLengths::open(generation.path(), run)?;
            let lacks = || IndexError::lacks(generation.path(), "runs without lengths of fields");
            lengths.push(of_run.ok_or_else(lacks)?.of(field)?);
        }
        let mean = WholeCollection { tokens: self.tokens_of(field), ..self.whole }.mean();
        let lengths = lengths.iter().map(|of_run| &of_run[..]);
        let mut norms = norms_of(generation, &self.scoring, name, mean, lengths);
        // No document that a filter leaves out is found by a field.
        let left_out = self.norms.iter().map(|norm| norm.is_infinite());
        let left_out = norms.iter_mut().zip(left_out).filter(|(_, is_out)| *is_out);
        left_out.for_each(|(norm, _)| *norm = f32::INFINITY);
        let scoring = self.scoring.of_field(name);
        let divisor = scoring.divisor(name);
        // Lists of a field have bounds by its lengths.
        let bounds = BoundNorms::with(|length| {
            let norm = scoring.norm(length, mean);
            divisor.map_or(norm, |divisor| divided(norm, divisor))
        });
        Ok(FieldNorms { norms, bounds })
    }

    /// What a search of some documents knows of a field that was loaded; of all text if it was not.
    pub(crate) fn norms_for(&self, field: u8, docids: &Range<u32>) -> Norms<'_> {
        let place = usize::from(field).checked_sub(1);
        let of_field = place.and_then(|at| self.field_norms.get(at)?.get());
        Norms {
            documents: part(of_field.map_or(&self.norms, |of| &of.norms), docids),
            bounds: of_field.map_or(&self.bounds, |of| &of.bounds),
            statics: part(&self.statics, docids),
            globals: part(&self.globals, docids),
        }
    }
}

/// What belongs to some documents; nothing if there is nothing for any document.
fn part<'p>(all: &'p [f32], docids: &Range<u32>) -> &'p [f32] {
    if all.is_empty() { &[] } else { &all[docids.start as usize..docids.end as usize] }
}

/// The norms of all documents in a field, or in all text, by their lengths in it, run by run; by
/// all cores: the mean length moves with every document.
pub(super) fn norms_of<'l>(
    generation: &Generation,
    scoring: &Scoring,
    field: &str,
    mean: f64,
    lengths: impl Iterator<Item = &'l [u32]>,
) -> Vec<f32> {
    let of_field = scoring.of_field(field);
    let divisor = scoring.divisor(field);
    let norms_by_length = NormsByLength::new(&of_field, mean, generation.documents().len());
    let mut norms = pages::zeroed(generation.documents().len() as usize);
    let mut left = &mut norms[..];
    let mut parts = Vec::new();
    for (run, lengths) in generation.runs().iter().zip(lengths) {
        let own = left.split_off_mut(..run.documents() as usize).expect("each has one");
        let lengths = lengths.chunks(NORMS_PART);
        parts.extend((0..).zip(lengths).zip(own.chunks_mut(NORMS_PART)).map(|of| (run, of)));
    }
    Crew::new("norms").share(cores() - 1, parts, |(run, ((number, lengths), norms))| {
        norms_by_length.put(lengths, norms);
        if let Some(divisor) = divisor {
            norms.iter_mut().for_each(|norm| *norm = divided(*norm, divisor));
        }
        // Each of its postings scores 0, and no other posting does.
        let first = number * NORMS_PART as u32;
        for docid in run.deletions().docids_in(first..first + norms.len() as u32) {
            norms[(docid - first) as usize] = f32::INFINITY;
        }
    });
    norms
}

/// The fields that words are looked for in; all text, if nothing else is said.
pub(super) fn boosted(
    generation: &Generation,
    scoring: &Scoring,
    fields: &IndexFields,
) -> Result<Vec<(u8, f64)>, IndexError> {
    let lacks = |reason: String| Err(IndexError::lacks(generation.path(), reason));
    let of = &scoring.fields;
    let blends = scoring.score == Score::Bm25F;
    if fields.is_empty() && (blends || of.names().next().is_some()) {
        return lacks("scores of fields need an index that was built with fields".into());
    }
    let number = |name: &str| if name == ALL_TEXT { Some(0) } else { fields.number(name) };
    if let Some(name) = of.names().find(|name| number(name).is_none()) {
        return lacks(format!("no field `{name}`: there is {}", fields.names().join(", ")));
    }
    let mut boosted: Vec<(u8, f64)> = match &of.boost[..] {
        [] if blends => (1..).zip(fields.names()).map(|(field, _)| (field, 1.0)).collect(),
        [] => vec![(0, 1.0)],
        boost => boost.iter().filter_map(|(name, of)| Some((number(name)?, *of))).collect(),
    };
    boosted.sort_by_key(|of| of.0);
    Ok(boosted)
}
