//! Listings: the hits of a query in the order of a column, with facets of all that match and values
//! of each. They are made of all documents that match, so that nothing is skipped by score.
//!
//! [`SortBy`] and [`FacetBy`] are what a query asks for, by names; a [`Listing`] is that for the
//! columns of an index. Parts of an index, such as runs and shards, give their best hits with
//! their values, and [`best`] merges them.

#![warn(missing_docs)]

pub(crate) mod facets;
#[cfg(test)]
mod tests;

use self::facets::{Facet, FoundFacets};
use super::answers::returned::{ReturnedValues, check_returned};
use super::filter::column_of;
use super::top_k::Hit;
use crate::index::columns::{Column, ColumnValue};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Settings;
use std::cmp::Ordering;
use std::str::FromStr;
use std::sync::Arc;

/// The order of hits: by the values of a column, then by score, then by docid. Documents without a
/// value are last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortBy {
    /// Its name; it has one value for a document.
    pub column: String,
    /// Whether the greatest value is first.
    pub falls: bool,
}

impl FromStr for SortBy {
    type Err = std::convert::Infallible;

    /// Reads a name, and behind a colon `asc`, which is the default, or `desc`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (column, falls) = match text.rsplit_once(':') {
            Some((column, "desc")) => (column, true),
            Some((column, "asc")) => (column, false),
            _ => (text, false),
        };
        Ok(Self { column: column.to_string(), falls })
    }
}

/// A column of which all that matches is counted: its most frequent words, or the least, the
/// greatest and the mean of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetBy {
    /// Its name.
    pub column: String,
    /// The most words, at least 1.
    pub most: usize,
}

impl FromStr for FacetBy {
    type Err = String;

    /// Reads a name, and behind a colon a number, 10 if it is left out.
    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            text.rsplit_once(':').and_then(|(name, most)| Some((name, most.parse().ok()?)));
        let (column, most) = number.unwrap_or((text, 10));
        match most {
            0 => Err(format!("`{text}` counts 0 values: give a number from 1 on")),
            _ => Ok(Self { column: column.to_string(), most }),
        }
    }
}

/// How the hits of a query are listed, by the columns of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// The number of the column, and whether its values fall.
    sort: Option<(usize, bool)>,
    /// The numbers of columns, and the most words.
    facets: Vec<(usize, usize)>,
    returned: Arc<[String]>,
}

impl Listing {
    /// What is asked for, if anything is, where an index has these `settings`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(
        sort: Option<&SortBy>,
        facets: &[FacetBy],
        returned: Option<&Arc<[String]>>,
        settings: &Settings,
    ) -> Result<Option<Arc<Self>>, String> {
        let columns = &settings.columns;
        if sort.is_none() && facets.is_empty() && returned.is_none() {
            return Ok(None);
        }
        let sort = sort.map(|sort| Ok::<_, String>((sort_column(sort, columns)?, sort.falls)));
        let mut of_facets: Vec<(usize, usize)> = Vec::new();
        for FacetBy { column, most } in facets {
            let number = column_of(column, columns)?;
            // An object has each name once.
            if of_facets.iter().all(|(other, _)| *other != number) {
                of_facets.push((number, *most));
            }
        }
        let returned = returned.cloned().unwrap_or_default();
        for name in &*returned {
            check_returned(name, settings)?;
        }
        Ok(Some(Arc::new(Self { sort: sort.transpose()?, facets: of_facets, returned })))
    }

    /// Whether it is made of all that matches.
    pub(crate) fn is_of_all(&self) -> bool {
        self.sort.is_some() || !self.facets.is_empty()
    }

    /// Whether values fall by which hits are sorted, if they are.
    pub(crate) fn falls(&self) -> Option<bool> {
        self.sort.map(|(_, falls)| falls)
    }

    /// Facets of all that matches, and the first `k` of it, in order, as hits.
    ///
    /// Memory: 24 bytes for each hit.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn arrange(
        &self,
        generation: &Generation,
        hits: &mut Vec<Hit>,
        k: usize,
    ) -> Result<FoundFacets, IndexError> {
        hits.sort_unstable_by_key(|hit| hit.docid);
        let facets = self.facets(generation, hits)?;
        let mut keyed = Vec::new();
        for (number, run) in generation.runs().iter().enumerate() {
            let first = run.first_docid();
            let mut of_run = Vec::new();
            for hit in of_docids(hits, first..first + run.documents()) {
                let mut code = None;
                if let (Some((column, _)), Some(of)) = (self.sort, generation.columns(number)?) {
                    of.keys(column, hit.docid - first, |found| {
                        code = Some(found);
                        Ok(())
                    })?;
                }
                of_run.push((code, *hit, ()));
            }
            // Words have codes of their own in every run.
            best(self.falls(), &mut of_run, k);
            for (_, hit, ()) in of_run {
                keyed.push((self.key(generation, hit.docid)?, hit, ()));
            }
        }
        best(self.falls(), &mut keyed, k);
        hits.clear();
        hits.extend(keyed.into_iter().map(|(_, hit, ())| hit));
        Ok(facets)
    }

    /// The value of a document by which hits are sorted, if they are and it has one.
    ///
    /// # Errors
    /// `Damaged`.
    pub(crate) fn key(
        &self,
        generation: &Generation,
        docid: u32,
    ) -> Result<Option<ColumnValue>, IndexError> {
        let values = self.sort.map(|(column, _)| generation.values(column, docid));
        Ok(values.transpose()?.and_then(|mut values| values.pop()))
    }

    /// The values of documents that are asked for; of none if none are.
    ///
    /// # Errors
    /// As [`ReturnedValues::of`].
    pub(crate) fn values(
        &self,
        generation: &Generation,
        docids: impl Iterator<Item = u32>,
    ) -> Result<Vec<ReturnedValues>, IndexError> {
        let docids = docids.filter(|_| !self.returned.is_empty());
        ReturnedValues::of(generation, &self.returned, docids)
    }

    /// Facets of hits, which rise by docid.
    fn facets(&self, generation: &Generation, hits: &[Hit]) -> Result<FoundFacets, IndexError> {
        let mut facets = Vec::new();
        for &(number, most) in &self.facets {
            let column = generation.manifest().settings.columns[number].clone();
            let mut facet = Facet::new(column, most);
            for (at, run) in generation.runs().iter().enumerate() {
                let first = run.first_docid();
                let hits = of_docids(hits, first..first + run.documents());
                if let Some(columns) = generation.columns(at)? {
                    facet.add_run(columns, number, hits.iter().map(|hit| hit.docid - first))?;
                }
            }
            facets.push(facet);
        }
        Ok(FoundFacets(facets))
    }
}

/// The number of a column that hits may be sorted by.
///
/// # Errors
/// Why there is none of this name: those that there are.
pub fn sort_column(sort: &SortBy, columns: &[Column]) -> Result<usize, String> {
    let number = column_of(&sort.column, columns)?;
    if !columns[number].several {
        return Ok(number);
    }
    let single = columns.iter().filter(|column| !column.several).map(|column| &*column.name);
    let may = match single.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "no column of the index has one value alone".to_string(),
        names => format!("hits may be sorted by {names}"),
    };
    let column = &columns[number];
    Err(format!("sorts by {column}, of which a document may have several values: {may}"))
}

/// Of hits that rise by docid, those of some docids.
fn of_docids(hits: &[Hit], docids: std::ops::Range<u32>) -> &[Hit] {
    let place = |docid| hits.partition_point(|hit| hit.docid < docid);
    &hits[place(docids.start)..place(docids.end)]
}

/// Leaves the first `k` of some hits with their keys and what goes along, in order: by the keys if
/// that is asked for, and those without one last; then by score, then by docid.
pub(crate) fn best<K: Ord, T>(falls: Option<bool>, hits: &mut Vec<(Option<K>, Hit, T)>, k: usize) {
    let order = |(a, hit, _): &(Option<K>, Hit, T), (b, other, _): &(Option<K>, Hit, T)| {
        let of_keys = match (falls, a, b) {
            (None, ..) | (_, None, None) => Ordering::Equal,
            (_, None, _) => Ordering::Greater,
            (_, _, None) => Ordering::Less,
            (Some(true), a, b) => b.cmp(a),
            (Some(false), a, b) => a.cmp(b),
        };
        let of_scores = || other.score.total_cmp(&hit.score).then(hit.docid.cmp(&other.docid));
        of_keys.then_with(of_scores)
    };
    if k < hits.len() {
        hits.select_nth_unstable_by(k, order);
        hits.truncate(k);
    }
    hits.sort_unstable_by(order);
}
