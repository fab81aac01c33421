//! Reads the columns of a run in place. Blocks are verified as they are read, by their checksums.

use super::spec::{Column, ColumnKind};
use super::value::ColumnValue;
use super::{ColumnEntry, SEVERAL, width_of};
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::RunEntry;
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

const BODY: u64 = HEADER_BYTES as u64;

/// Numbers of one width, behind one another.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    start: u64,
    count: u64,
    width: u8,
}

impl Numbers {
    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.width.into())
    }

    /// Numbers behind `end`, which moves behind them and their padding.
    fn behind(end: &mut u64, count: u64, width: u8) -> Self {
        let numbers = Self { start: *end, count, width };
        let bytes = numbers.bytes();
        *end = end.saturating_add(bytes).saturating_add(padding(bytes));
        numbers
    }
}

#[derive(Debug)]
struct ColumnPlace {
    kind: ColumnKind,
    entry: ColumnEntry,
    /// Of columns of several values.
    ends: Numbers,
    codes: Numbers,
    word_ends: Numbers,
    /// Where the words begin.
    words: u64,
}

/// The columns of a run, mapped.
#[derive(Debug)]
pub(crate) struct RunColumns {
    map: Map,
    documents: u32,
    columns: Vec<ColumnPlace>,
}

/// Values that pass, as ranges of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySet {
    /// Of numbers, in order.
    Keys(Vec<RangeInclusive<u64>>),
    /// Words from one to another, both within; none is no bound.
    Words(Vec<[Option<(String, bool)>; 2]>),
}

fn read(bytes: &[u8], width: usize) -> u64 {
    let mut number = [0; 8];
    number[..width].copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

impl RunColumns {
    /// Maps the columns of a run, which are these, and reads the header and the table.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        columns: &[Column],
    ) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Columns))?;
        let header = FileHeader::parse(map.path(), FileKind::Columns, map.bytes())?;
        header.check_unused(map.path(), 3)?;
        let [documents, count, table, ..] = header.values;
        let wrong = |at, expected: String, found: String| {
            Err(IndexError::damaged(map.path(), at, expected, found))
        };
        for (at, expected, found) in
            [(16, u64::from(run.documents), documents), (24, columns.len() as u64, count)]
        {
            if found != expected {
                return wrong(at, expected.to_string(), found.to_string());
            }
        }
        let start = BODY.saturating_add(table);
        let entries: &[ColumnEntry] = map.checked_array(start, count)?;
        let (mut places, mut end) = (Vec::new(), BODY);
        for (number, (column, entry)) in columns.iter().zip(entries).enumerate() {
            let at = start + (number * size_of::<ColumnEntry>()) as u64;
            let several = if column.several { SEVERAL } else { 0 };
            let is_word = column.kind == ColumnKind::Word;
            let fits = entry.kind == column.kind as u8 | several
                && entry.zero == 0
                && entry.widths.iter().all(|width| matches!(width, 0 | 1 | 2 | 4 | 8))
                && (is_word || (entry.words, entry.word_bytes, entry.widths[2]) == (0, 0, 0))
                && (column.several || entry.widths[1] == 0)
                && entry.values <= u32::MAX.into()
                && entry.words <= entry.values.min(entry.word_bytes)
                && (!is_word || entry.least == 0);
            if !fits {
                return wrong(at, format!("the column {column}"), format!("{entry:?}"));
            }
            let [codes, ends, word_ends] = entry.widths;
            let ends = match column.several {
                true => Numbers::behind(&mut end, documents, ends),
                false => Numbers::default(),
            };
            let codes_of = if column.several { entry.values } else { documents };
            let codes = Numbers::behind(&mut end, codes_of, codes);
            let word_ends = match is_word {
                true => Numbers::behind(&mut end, entry.words, word_ends),
                false => Numbers::default(),
            };
            let words = end;
            end = end.saturating_add(entry.word_bytes).saturating_add(padding(entry.word_bytes));
            let (kind, entry) = (column.kind, *entry);
            places.push(ColumnPlace { kind, entry, ends, codes, word_ends, words });
        }
        if end != start {
            return wrong(32, format!("{} bytes before the table", end - BODY), table.to_string());
        }
        let table_bytes = count * size_of::<ColumnEntry>() as u64;
        check_length(map.path(), map.bytes().len() as u64, start.checked_add(table_bytes))?;
        Ok(Self { documents: run.documents, columns: places, map })
    }

    /// Verifies all of the file.
    pub(crate) fn verify(&self, bytes: u64, crc32: u32) -> Result<(), IndexError> {
        self.map.verify(bytes, crc32)
    }

    fn number(&self, of: &Numbers, at: u64) -> Result<u64, IndexError> {
        let width = u64::from(of.width);
        match width {
            0 => Ok(0),
            _ => Ok(read(self.map.checked(of.start + width * at, width)?, width as usize)),
        }
    }

    /// Where the values of a document of a column of several stand.
    fn several(&self, place: &ColumnPlace, docid: u32) -> Result<Range<u64>, IndexError> {
        let before = match docid {
            0 => 0,
            docid => self.number(&place.ends, u64::from(docid) - 1)?,
        };
        let end = self.number(&place.ends, docid.into())?;
        if before <= end && end <= place.entry.values {
            return Ok(before..end);
        }
        let at = place.ends.start + u64::from(place.ends.width) * u64::from(docid);
        let expected = format!("an end from {before} to {}", place.entry.values);
        Err(IndexError::damaged(self.map.path(), at, expected, end))
    }

    /// Gives `take` the keys of a document in a column, in the order of the record.
    pub(crate) fn keys(
        &self,
        column: usize,
        docid: u32,
        mut take: impl FnMut(u64) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let place = &self.columns[column];
        if place.entry.kind & SEVERAL == 0 {
            let code = self.number(&place.codes, docid.into())?;
            return match code.checked_sub(1) {
                None => Ok(()),
                Some(code) => take(self.key(place, code, docid.into())?),
            };
        }
        for at in self.several(place, docid)? {
            take(self.key(place, self.number(&place.codes, at)?, at)?)?;
        }
        Ok(())
    }

    fn key(&self, place: &ColumnPlace, code: u64, at: u64) -> Result<u64, IndexError> {
        let key = place.entry.least.checked_add(code);
        let is_word = place.kind == ColumnKind::Word;
        key.filter(|key| !is_word || *key < place.entry.words).ok_or_else(|| {
            let at = place.codes.start + u64::from(place.codes.width) * at;
            IndexError::damaged(self.map.path(), at, "the code of a value", code)
        })
    }

    /// How many words the dictionary of a column has.
    pub(crate) fn words(&self, column: usize) -> usize {
        self.columns[column].entry.words as usize
    }

    /// A word of a column by its place in the dictionary.
    pub(crate) fn word(&self, column: usize, number: u64) -> Result<&str, IndexError> {
        let place = &self.columns[column];
        let start = match number {
            0 => 0,
            number => self.number(&place.word_ends, number - 1)?,
        };
        let end = self.number(&place.word_ends, number)?;
        let damaged = |found: String| {
            let at = place.word_ends.start + u64::from(place.word_ends.width) * number;
            IndexError::damaged(self.map.path(), at, "the end of a word in UTF-8", found)
        };
        if start > end || end > place.entry.word_bytes {
            return Err(damaged(end.to_string()));
        }
        let bytes = self.map.checked(place.words + start, end - start)?;
        std::str::from_utf8(bytes).map_err(|error| damaged(error.to_string()))
    }

    /// The values of a document in a column, in the order of the record.
    pub(crate) fn values(&self, column: usize, docid: u32) -> Result<Vec<ColumnValue>, IndexError> {
        let mut values = Vec::new();
        let kind = self.columns[column].kind;
        self.keys(column, docid, |key| {
            values.push(match kind {
                ColumnKind::Word => ColumnValue::Word(self.word(column, key)?.to_string()),
                kind => ColumnValue::of(kind, key),
            });
            Ok(())
        })?;
        Ok(values)
    }

    /// The first word of a column's dictionary that is not before `word`, or not `behind` it.
    fn bound(&self, column: usize, word: &str, behind: bool) -> Result<u64, IndexError> {
        let (mut low, mut high) = (0, self.columns[column].entry.words);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_before = match self.word(column, middle)?.cmp(word) {
                Ordering::Less => true,
                Ordering::Equal => behind,
                Ordering::Greater => false,
            };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The ranges of keys of a set.
    fn ranges(&self, column: usize, set: &KeySet) -> Result<Vec<RangeInclusive<u64>>, IndexError> {
        let words = match set {
            KeySet::Keys(ranges) => return Ok(ranges.clone()),
            KeySet::Words(words) => words,
        };
        let mut ranges = Vec::new();
        for [from, to] in words {
            let start = match from {
                None => 0,
                Some((word, within)) => self.bound(column, word, !within)?,
            };
            let end = match to {
                None => self.columns[column].entry.words,
                Some((word, within)) => self.bound(column, word, *within)?,
            };
            if start < end {
                ranges.push(start..=end - 1);
            }
        }
        Ok(ranges)
    }

    /// Sets the bit of each document of the run that has a value in a set; a bitmap of words of 64
    /// documents.
    pub(crate) fn select(&self, column: usize, set: &KeySet) -> Result<Vec<u64>, IndexError> {
        let mut bits = vec![0u64; (self.documents as usize).div_ceil(64)];
        let ranges = self.ranges(column, set)?;
        let place = &self.columns[column];
        // As codes, so that nothing is added up for each value.
        let several = place.entry.kind & SEVERAL != 0;
        let more = u64::from(!several);
        let of_code = |range: &RangeInclusive<u64>| {
            let end = range.end().checked_sub(place.entry.least)?;
            let start = range.start().saturating_sub(place.entry.least);
            Some(start.checked_add(more)?..=end.saturating_add(more))
        };
        let ranges: Vec<_> = ranges.iter().filter_map(of_code).collect();
        let passes = |code: u64| match &ranges[..] {
            [one] => one.contains(&code),
            many => many.iter().any(|range| range.contains(&code)),
        };
        if several {
            // Only those that are read one by one are checked one by one.
            let ends = self.map.checked(place.ends.start, place.ends.bytes())?;
            let codes = self.map.checked(place.codes.start, place.codes.bytes())?;
            let (of_ends, of_codes) = (place.ends.width as usize, place.codes.width as usize);
            let mut start = 0;
            for docid in 0..self.documents {
                let end = match of_ends {
                    0 => 0,
                    width => read(&ends[width * docid as usize..][..width], width) as usize,
                };
                if start > end || end as u64 > place.entry.values {
                    self.several(place, docid)?;
                }
                let code = |at: usize| match of_codes {
                    0 => 0,
                    width => read(&codes[width * at..][..width], width),
                };
                let any = (start..end).any(|at| passes(code(at)));
                bits[docid as usize / 64] |= u64::from(any) << (docid % 64);
                start = end;
            }
            return Ok(bits);
        }
        let codes = self.map.checked(place.codes.start, place.codes.bytes())?;
        let width = usize::from(place.codes.width);
        if width > 0 {
            for (codes, bits) in codes.chunks(64 * width).zip(&mut bits) {
                for (at, code) in codes.chunks_exact(width).enumerate() {
                    *bits |= u64::from(passes(read(code, width))) << at;
                }
            }
        }
        Ok(bits)
    }

    /// Sets the bit of each document of the run that has any value.
    pub(crate) fn exists(&self, column: usize) -> Result<Vec<u64>, IndexError> {
        self.select(column, &KeySet::Keys(vec![0..=u64::MAX]))
    }

    /// Checks that the file is as this program writes it, byte for byte: codes and words are those
    /// of values, and words rise.
    pub(crate) fn check(&self) -> Result<(), IndexError> {
        for (column, place) in self.columns.iter().enumerate() {
            let ColumnEntry { widths, values, least, words, word_bytes, .. } = place.entry;
            let (mut count, mut greatest, mut smallest) = (0, None, u64::MAX);
            let mut is_used = vec![false; words as usize];
            for docid in 0..self.documents {
                self.keys(column, docid, |key| {
                    count += 1;
                    greatest = greatest.max(Some(key));
                    smallest = smallest.min(key);
                    is_used.get_mut(key as usize).into_iter().for_each(|is| *is = true);
                    Ok(())
                })?;
            }
            let mut before = None;
            for number in 0..words {
                let word = self.word(column, number)?;
                if before.is_some_and(|before| before >= word) {
                    return Err(self.wrong(place.words, "words that rise", word));
                }
                before = Some(word);
            }
            let least_of = if place.kind == ColumnKind::Word || count == 0 { 0 } else { smallest };
            let spread = greatest.map(|greatest| greatest.wrapping_sub(least_of));
            let codes = match place.entry.kind & SEVERAL {
                0 => width_of(spread.map_or(0, |spread| spread.saturating_add(1))),
                _ => width_of(spread.unwrap_or(0)),
            };
            let several = place.entry.kind & SEVERAL != 0;
            let ends = if several { width_of(count) } else { 0 };
            let of_words = width_of(word_bytes);
            let last_word = match words {
                0 => 0,
                words => self.number(&place.word_ends, words - 1)?,
            };
            let expected = ([codes, ends, of_words], count, least_of, word_bytes, true);
            let found = (widths, values, least, last_word, !is_used.contains(&false));
            if expected != found {
                return Err(self.wrong(
                    place.codes.start,
                    &format!("{expected:?}"),
                    &format!("{found:?}"),
                ));
            }
            for (start, bytes) in [&place.ends, &place.codes, &place.word_ends]
                .map(|numbers| (numbers.start, numbers.bytes()))
                .into_iter()
                .chain([(place.words, word_bytes)])
            {
                let zeros =
                    self.map.slice(start + bytes, if start > 0 { padding(bytes) } else { 0 })?;
                if zeros.iter().any(|byte| *byte != 0) {
                    return Err(self.wrong(start + bytes, "zero bytes", "others"));
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, at: u64, expected: &str, found: &str) -> IndexError {
        IndexError::damaged(self.map.path(), at, expected, found)
    }
}

impl KeySet {
    /// The set of one value that is written so; none if that is none of this kind.
    #[cfg(test)]
    pub(super) fn of(kind: ColumnKind, text: &str) -> Option<Self> {
        Some(match kind {
            ColumnKind::Word => {
                let word = Some((text.to_string(), true));
                Self::Words(vec![[word.clone(), word]])
            }
            kind => {
                let key = super::key_of(kind, text)?;
                Self::Keys(vec![key..=key])
            }
        })
    }
}
