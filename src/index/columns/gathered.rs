//! The values of some neighbouring documents, gathered until a file has them.

use super::spec::{Column, ColumnKind};
use super::value::key_of;
use crate::index::documents::Location;
use std::collections::{BTreeMap, HashMap};

/// The values of a column. Memory: 4 bytes for each document, 8 for each value, and each different
/// word once.
#[derive(Debug, Default)]
pub(crate) struct ColumnValues {
    /// Where the values of each document end.
    pub(super) ends: Vec<u32>,
    /// Of words, their numbers.
    pub(super) keys: Vec<u64>,
    /// By their numbers.
    pub(super) words: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl ColumnValues {
    /// Adds a value of the document that is next.
    pub(super) fn push(&mut self, key: u64) {
        self.keys.push(key);
    }

    /// The number of a word.
    pub(super) fn word(&mut self, word: &str) -> u64 {
        if let Some(&number) = self.numbers.get(word) {
            return number.into();
        }
        let number = self.words.len() as u32;
        self.numbers.insert(word.into(), number);
        self.words.push(word.into());
        number.into()
    }

    /// Ends the values of a document.
    pub(super) fn end(&mut self) {
        self.ends.push(self.keys.len() as u32);
    }

    fn bytes(&self) -> usize {
        let words = self.words.iter().map(|word| 2 * word.len() + 64).sum::<usize>();
        4 * self.ends.capacity() + 8 * self.keys.capacity() + words
    }

    /// Adds the values of the documents that follow.
    fn append(&mut self, next: &Self) {
        let numbers: Vec<u64> = next.words.iter().map(|word| self.word(word)).collect();
        let before = self.keys.len() as u32;
        let renumbered = |&key: &u64| numbers.get(key as usize).copied().unwrap_or(key);
        self.keys.extend(next.keys.iter().map(renumbered));
        self.ends.extend(next.ends.iter().map(|end| before + end));
    }
}

/// A value that its column cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MisfitValue {
    pub input: u32,
    /// Where its record begins, in bytes of the uncompressed input.
    pub offset: u64,
    pub detail: String,
}

/// The values of the documents of a piece, column by column.
#[derive(Debug, Default)]
pub(crate) struct PieceColumns {
    columns: Vec<ColumnValues>,
    /// Values that do not fit, and the first of them.
    pub(crate) misfits: u64,
    pub(crate) first_misfits: Vec<MisfitValue>,
}

impl PieceColumns {
    /// Values that do not fit of which messages tell.
    pub(crate) const NAMED: usize = 3;
    /// Characters of a value that a message shows.
    const SHOWN: usize = 60;

    pub(crate) fn new(columns: usize) -> Self {
        let columns = (0..columns).map(|_| ColumnValues::default()).collect();
        Self { columns, ..Self::default() }
    }

    /// Whether each column has a value.
    pub(crate) fn filled(&self) -> impl Iterator<Item = bool> {
        self.columns.iter().map(|column| !column.keys.is_empty())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnValues::bytes).sum()
    }

    /// Adds a value of the document that is next and lies at this place, if it fits.
    pub(crate) fn push(
        &mut self,
        number: usize,
        column: &Column,
        location: &Location,
        value: &str,
    ) {
        let values = &mut self.columns[number];
        let begun = values.ends.last().map_or(0, |&end| end as usize) < values.keys.len();
        let key = match column.kind {
            ColumnKind::Word if value.is_empty() => return,
            ColumnKind::Word => Some(values.word(value)),
            kind => key_of(kind, value),
        };
        match key {
            Some(key) if column.several || !begun => values.push(key),
            _ => self.misfit(column, location, value, key.is_some()),
        }
    }

    /// Counts a value that does not fit.
    #[cold]
    pub(crate) fn misfit(
        &mut self,
        column: &Column,
        location: &Location,
        value: &str,
        is_more: bool,
    ) {
        self.misfits += 1;
        if self.first_misfits.len() < Self::NAMED {
            let value: String = value.chars().take(Self::SHOWN).collect();
            let why = if is_more { ", which has one value already" } else { "" };
            let detail = format!("`{}` is no value of {column}{why}", value.escape_debug());
            let Location { input, offset, .. } = *location;
            self.first_misfits.push(MisfitValue { input, offset, detail });
        }
    }

    /// The values of the only document of each column, parted by commas.
    #[cfg(test)]
    pub(crate) fn shown(&self, columns: &[Column]) -> Vec<String> {
        let shown = |(values, column): (&ColumnValues, &Column)| {
            let one = |&key: &u64| match column.kind {
                ColumnKind::Word => values.words[key as usize].to_string(),
                kind => super::ColumnValue::of(kind, key).to_string(),
            };
            assert_eq!(values.ends, [values.keys.len() as u32]);
            values.keys.iter().map(one).collect::<Vec<_>>().join(",")
        };
        self.columns.iter().zip(columns).map(shown).collect()
    }

    /// Ends the values of a document.
    pub(crate) fn end(&mut self) {
        self.columns.iter_mut().for_each(ColumnValues::end);
    }
}

/// The values of the documents of a run, in parts that come in any order.
#[derive(Debug, Default)]
pub(crate) struct ColumnParts {
    /// By the first document.
    parts: BTreeMap<u32, PieceColumns>,
}

impl ColumnParts {
    pub(crate) fn put(&mut self, first: u32, part: PieceColumns) {
        self.parts.insert(first, part);
    }

    /// Takes the values of a column out of all parts.
    pub(super) fn take(&mut self, number: usize) -> ColumnValues {
        let mut all = ColumnValues::default();
        for part in self.parts.values_mut() {
            all.append(&std::mem::take(&mut part.columns[number]));
        }
        all
    }
}
