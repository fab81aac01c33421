//! Filters: which documents of an index pass, by the values of its columns.
//!
//! A filter is read ([`parse`]), and typed against the columns of an index, where every comparison
//! becomes a set of keys; a run then tells which of its documents pass, as a bitmap.

#![warn(missing_docs)]

pub(crate) mod parse;
#[cfg(test)]
mod tests;

use crate::index::columns::{Column, ColumnKind, KeySet, key_of};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use parse::{FilterSyntax, FilterTest};

/// A filter for an index.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// Documents with any value in the column of this number, or one of these.
    Has(usize, Option<KeySet>),
}

/// Documents that pass a filter.
#[derive(Debug)]
pub(crate) struct PassingDocuments {
    /// Of each run, a bit for each document.
    runs: Vec<Vec<u64>>,
    pub(crate) count: u32,
}

/// Why there is no answer under a filter.
#[derive(Debug)]
pub(crate) enum FilterError {
    /// It is not one for this index.
    Refused(String),
    /// A column cannot be read.
    Index(IndexError),
}

impl From<IndexError> for FilterError {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}

impl From<FilterError> for Box<dyn std::error::Error + Send + Sync> {
    fn from(error: FilterError) -> Self {
        match error {
            FilterError::Refused(why) => why.into(),
            FilterError::Index(error) => error.into(),
        }
    }
}

impl PassingDocuments {
    /// Finds those of a generation that a filter lets pass, also those that are deleted.
    pub(crate) fn of(generation: &Generation, filter: &str) -> Result<Self, FilterError> {
        let columns = &generation.manifest().settings.columns;
        let read = parse::read(filter).map_err(FilterError::Refused)?;
        let condition = typed(&read, columns).map_err(FilterError::Refused)?;
        let mut runs = Vec::new();
        let mut count = 0;
        for (number, run) in generation.runs().iter().enumerate() {
            let mut bits = condition.bits(generation, number)?;
            // A complement has bits behind the last document.
            if let Some(last) = bits.last_mut().filter(|_| !run.documents().is_multiple_of(64)) {
                *last &= (1 << (run.documents() % 64)) - 1;
            }
            count += bits.iter().map(|bits| bits.count_ones()).sum::<u32>();
            runs.push(bits);
        }
        Ok(Self { runs, count })
    }

    /// Whether a document of a run passes; docids count from the run's first.
    #[inline]
    pub(crate) fn has(&self, run: usize, docid: u32) -> bool {
        self.runs[run][docid as usize / 64] >> (docid % 64) & 1 == 1
    }
}

impl Condition {
    /// A bit for each document of a run.
    fn bits(&self, generation: &Generation, run: usize) -> Result<Vec<u64>, IndexError> {
        let words = (generation.runs()[run].documents() as usize).div_ceil(64);
        let join = |all: &[Self], start: u64, join: fn(u64, u64) -> u64| {
            let mut bits = vec![start; words];
            for one in all {
                let own = one.bits(generation, run)?;
                bits.iter_mut().zip(own).for_each(|(bits, own)| *bits = join(*bits, own));
            }
            Ok(bits)
        };
        match self {
            Self::All(all) => join(all, u64::MAX, |a, b| a & b),
            Self::Any(all) => join(all, 0, |a, b| a | b),
            Self::Not(one) => {
                let mut bits = one.bits(generation, run)?;
                bits.iter_mut().for_each(|bits| *bits = !*bits);
                Ok(bits)
            }
            Self::Has(column, set) => match (generation.columns(run)?, set) {
                (None, _) => Ok(vec![0; words]),
                (Some(columns), None) => columns.exists(*column),
                (Some(columns), Some(set)) => columns.select(*column, set),
            },
        }
    }
}

/// Checks a filter against the columns of an index.
///
/// # Errors
/// What is wrong with it.
pub fn check(filter: &str, columns: &[Column]) -> Result<(), String> {
    typed(&parse::read(filter)?, columns).map(drop)
}

fn typed(read: &FilterSyntax, columns: &[Column]) -> Result<Condition, String> {
    let all = |parts: &[FilterSyntax]| -> Result<Vec<Condition>, String> {
        parts.iter().map(|part| typed(part, columns)).collect()
    };
    Ok(match read {
        FilterSyntax::All(parts) => Condition::All(all(parts)?),
        FilterSyntax::Any(parts) => Condition::Any(all(parts)?),
        FilterSyntax::Not(part) => Condition::Not(Box::new(typed(part, columns)?)),
        FilterSyntax::Exists(name) => Condition::Has(column_of(name, columns)?, None),
        FilterSyntax::Compare(name, comparison, values) => {
            let number = column_of(name, columns)?;
            let kind = columns[number].kind;
            let set = set_of(kind, *comparison, values)
                .map_err(|value| format!("compares {name} with `{value}`, which is no {kind}"))?;
            let has = Condition::Has(number, Some(set));
            match comparison {
                // No value is other than this one where there is none.
                FilterTest::Other => Condition::All(vec![
                    Condition::Has(number, None),
                    Condition::Not(Box::new(has)),
                ]),
                _ => has,
            }
        }
    })
}

/// The number of a column; an error names those that there are, the nearest name first.
pub fn column_of(name: &str, columns: &[Column]) -> Result<usize, String> {
    if let Some(number) = columns.iter().position(|column| column.name == name) {
        return Ok(number);
    }
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    Err(match names.is_empty() {
        true => format!("names `{name}`, and the index was built without columns"),
        false => unknown_name(name, "no column of the index", names),
    })
}

/// The message that a name is not one of these, the nearest of which it has first.
pub(crate) fn unknown_name(name: &str, what: &str, mut names: Vec<&str>) -> String {
    /// Names that a message has.
    const NAMED: usize = 10;
    // Letters that both have in one place from the front or from the back.
    let alike = |other: &&str| {
        let lower = |text: &str| text.to_lowercase().into_bytes();
        let (a, b) = (lower(name), lower(other));
        let front = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        let back = a.iter().rev().zip(b.iter().rev()).filter(|(a, b)| a == b).count();
        std::cmp::Reverse(front.max(back))
    };
    names.sort_by_key(alike);
    let more = if names.len() > NAMED { ", ..." } else { "" };
    names.truncate(NAMED);
    let names = names.join(", ");
    format!("names `{name}`, which is {what}: there are {names}{more}")
}

/// The values that a comparison lets pass; the value that is none of the kind is an error.
fn set_of(kind: ColumnKind, comparison: FilterTest, values: &[String]) -> Result<KeySet, &String> {
    if kind == ColumnKind::Word {
        let range = |word: &String| {
            let at = |within| Some((word.clone(), within));
            match comparison {
                FilterTest::Equal | FilterTest::Other => [at(true), at(true)],
                FilterTest::Below { within } => [None, at(within)],
                FilterTest::Above { within } => [at(within), None],
            }
        };
        return Ok(KeySet::Words(values.iter().map(range).collect()));
    }
    let mut ranges = Vec::new();
    for value in values {
        let key = key_of(kind, value).ok_or(value)?;
        // No key is 0 or all ones but where nothing lies behind it.
        ranges.push(match comparison {
            FilterTest::Equal | FilterTest::Other => key..=key,
            FilterTest::Below { within } => 0..=key.saturating_sub(u64::from(!within)),
            FilterTest::Above { within: true } => key..=u64::MAX,
            FilterTest::Above { within: false } => match key.checked_add(1) {
                Some(next) => next..=u64::MAX,
                None => continue,
            },
        });
    }
    Ok(KeySet::Keys(ranges))
}
