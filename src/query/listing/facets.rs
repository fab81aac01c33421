//! Facets: what all documents that match have in a column.

#![warn(missing_docs)]

use crate::index::columns::{Column, ColumnKind, ColumnValue, RunColumns};
use crate::index::error::IndexError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// This many times smaller values are added up, so that their sum is finite: there are less than
/// 2^33 of them. A power of two, so that only numbers below 1e-282 lose bits.
const SCALE: f64 = 1.0 / (1u64 << 34) as f64;

/// What documents have in a column, of all of them or a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facet {
    pub(crate) column: Column,
    /// The most words that are listed.
    pub(crate) most: usize,
    pub(crate) found: FacetValues,
}

/// Before the most frequent words are chosen, so that parts can be added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FacetValues {
    /// In how many documents each word is.
    Words(BTreeMap<String, u64>),
    Numbers(NumberFacet),
}

/// Numbers of documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NumberFacet {
    /// Those that have any.
    pub(crate) documents: u64,
    pub(crate) values: u64,
    /// Keys.
    pub(crate) least: u64,
    pub(crate) greatest: u64,
    /// Numbers without common bits, whose sum is that of all values, exactly (Shewchuk 1997): so no
    /// mean depends on the order in which values come.
    pub(crate) parts: Vec<f64>,
}

impl NumberFacet {
    fn add_part(&mut self, mut number: f64) {
        let mut kept = 0;
        for at in 0..self.parts.len() {
            let mut part = self.parts[at];
            if number.abs() < part.abs() {
                (number, part) = (part, number);
            }
            let sum = number + part;
            let rest = part - (sum - number);
            if rest != 0.0 {
                self.parts[kept] = rest;
                kept += 1;
            }
            number = sum;
        }
        self.parts.truncate(kept);
        self.parts.push(number);
    }

    pub(super) fn add_key(&mut self, kind: ColumnKind, key: u64) {
        match ColumnValue::of(kind, key) {
            ColumnValue::Float(number) => self.add_part(number * SCALE),
            ColumnValue::Int(number) | ColumnValue::Date(number) => {
                // Both halves are whole numbers that a float has exactly.
                self.add_part((number >> 32 << 32) as f64 * SCALE);
                self.add_part((number & 0xffff_ffff) as f64 * SCALE);
            }
            ColumnValue::Word(_) | ColumnValue::Json(_) => {}
        }
        self.least = if self.values == 0 { key } else { self.least.min(key) };
        self.greatest = self.greatest.max(key);
        self.values += 1;
    }

    fn add(&mut self, other: &Self) {
        if other.values == 0 {
            return;
        }
        self.least = if self.values == 0 { other.least } else { self.least.min(other.least) };
        self.greatest = self.greatest.max(other.greatest);
        self.values += other.values;
        self.documents += other.documents;
        other.parts.iter().for_each(|part| self.add_part(*part));
    }

    /// Of at least one value: the sum is rounded once, as that of Python's `fsum`.
    fn mean(&self) -> f64 {
        let (mut sum, mut rest) = (0.0, 0.0);
        let mut parts = self.parts.iter().rev();
        for part in parts.by_ref() {
            let before = sum;
            sum += part;
            rest = part - (sum - before);
            if rest != 0.0 {
                break;
            }
        }
        // Half of the last bit is left: what is below decides.
        if parts.next().is_some_and(|below| (*below < 0.0) == (rest < 0.0)) {
            let up = sum + 2.0 * rest;
            if 2.0 * rest == up - sum {
                sum = up;
            }
        }
        sum / self.values as f64 / SCALE
    }
}

impl Facet {
    pub(crate) fn new(column: Column, most: usize) -> Self {
        let found = match column.kind {
            ColumnKind::Word => FacetValues::Words(BTreeMap::new()),
            _ => FacetValues::Numbers(NumberFacet::default()),
        };
        Self { column, most, found }
    }

    /// Adds documents of a run, whose column it is by number; a word counts once in each.
    ///
    /// Memory: 4 bytes for each word of the run, and the words that are found.
    pub(crate) fn add_run(
        &mut self,
        columns: &RunColumns,
        number: usize,
        docids: impl Iterator<Item = u32>,
    ) -> Result<(), IndexError> {
        let kind = self.column.kind;
        match &mut self.found {
            FacetValues::Numbers(of) => {
                for docid in docids {
                    let before = of.values;
                    columns.keys(number, docid, |key| {
                        of.add_key(kind, key);
                        Ok(())
                    })?;
                    of.documents += u64::from(of.values > before);
                }
            }
            FacetValues::Words(words) => {
                let mut counts = vec![0u32; columns.words(number)];
                let mut of_document = Vec::new();
                for docid in docids {
                    of_document.clear();
                    columns.keys(number, docid, |key| {
                        of_document.push(key);
                        Ok(())
                    })?;
                    of_document.sort_unstable();
                    of_document.dedup();
                    of_document.iter().for_each(|&word| counts[word as usize] += 1);
                }
                for (word, count) in counts.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                    let word = columns.word(number, word as u64)?;
                    match words.get_mut(word) {
                        Some(sum) => *sum += u64::from(count),
                        None => _ = words.insert(word.to_string(), count.into()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the same facet of another part.
    fn add(&mut self, other: Self) {
        match (&mut self.found, other.found) {
            (FacetValues::Words(words), FacetValues::Words(others)) => {
                for (word, count) in others {
                    let sum = words.entry(word).or_default();
                    *sum = sum.saturating_add(count);
                }
            }
            (FacetValues::Numbers(of), FacetValues::Numbers(other)) => of.add(&other),
            _ => {}
        }
    }
}

impl Serialize for Facet {
    /// The most frequent words, those of one count in their order; of numbers the least, the
    /// greatest and the mean.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let kind = self.column.kind;
        match &self.found {
            FacetValues::Words(words) => {
                let mut counted: Vec<_> = words.iter().collect();
                // They rise, which a stable sort keeps.
                counted.sort_by_key(|(_, count)| Reverse(**count));
                let counted = counted.into_iter().take(self.most);
                to.collect_seq(
                    counted.map(|(value, count)| json!({"value": value, "count": count})),
                )
            }
            FacetValues::Numbers(of) => {
                let any = (of.values > 0).then_some(of);
                let value = |key| ColumnValue::of(kind, key);
                let mean = any.map(|of| match kind {
                    ColumnKind::Date => ColumnValue::Date(of.mean().round() as i64),
                    _ => ColumnValue::Float(of.mean()),
                });
                let count = of.documents;
                let [least, greatest] =
                    [any.map(|of| value(of.least)), any.map(|of| value(of.greatest))];
                json!({"count": count, "least": least, "greatest": greatest, "mean": mean})
                    .serialize(to)
            }
        }
    }
}

/// The facets of a query, in the order in which it asks for them: an object by the names of columns
/// in JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundFacets(pub(crate) Vec<Facet>);

impl FoundFacets {
    /// Whether none is asked for.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds those of another part of what matches.
    pub(crate) fn add(&mut self, other: Self) {
        match self.is_none() {
            true => *self = other,
            false => self.0.iter_mut().zip(other.0).for_each(|(facet, other)| facet.add(other)),
        }
    }
}

impl Serialize for FoundFacets {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for facet in &self.0 {
            map.serialize_entry(&facet.column.name, facet)?;
        }
        map.end()
    }
}
