//! Notes what records of JSON and CSV have beside their names and texts, so that a build can say
//! which fields it did not take.
//!
//! Some records of a piece are looked at: the first ones, and every 64th.

use crate::shown::number_of;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenFields {
    /// The numbers of the fields that gave text to any record, a bit each.
    pub taken: u64,
    records: u64,
    unnamed: u64,
    /// Bytes of strings that were taken as text, and of those that were not.
    text_bytes: u64,
    other_bytes: u64,
    /// A record has learned weights of terms.
    pub has_vectors: bool,
    pub has_head: bool,
    /// Weights above 0 that are 0 when they are multiplied and rounded.
    pub lost_weights: u64,
    others: BTreeMap<String, OtherField>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct OtherField {
    bytes: u64,
    /// Values that could be names, and hashes of the first ones.
    names: u64,
    hashes: BTreeSet<u64>,
}

/// Fields of a file of which more is known than their bytes; a record may have any number.
const MOST_FIELDS: usize = 64;
/// Values by which a field is known to have different ones.
const MOST_VALUES: usize = 64;
const LONGEST_NAME: usize = 64;
/// Fields, or documents, that a message names.
const NAMED: usize = 5;

impl SeenFields {
    /// Whether the record with this number in its piece is looked at.
    pub fn is_looked_at(number: u64) -> bool {
        number < 32 || number.is_multiple_of(64)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn record(&mut self, is_named: bool) {
        self.records += 1;
        self.unnamed += u64::from(!is_named);
    }

    pub fn text(&mut self, bytes: usize) {
        self.text_bytes += bytes as u64;
    }

    /// What is known of a field; `None` if too many others are.
    fn field(&mut self, name: String) -> Option<&mut OtherField> {
        let is_new = self.others.len() == MOST_FIELDS && !self.others.contains_key(&name);
        (!is_new).then(|| self.others.entry(name).or_default())
    }

    /// A field that is neither name nor text has this many `bytes` of strings; `value` is its only
    /// one, or its number.
    /// A field is no text that is left out.
    pub(crate) fn forget(&mut self, field: &str) {
        let other = self.others.remove(field);
        self.other_bytes -= other.map_or(0, |other| other.bytes);
    }

    pub fn other(&mut self, field: &[u8], bytes: usize, value: Option<&[u8]>) {
        self.other_bytes += bytes as u64;
        let Some(other) = self.field(String::from_utf8_lossy(field).into_owned()) else { return };
        other.bytes += bytes as u64;
        let is_name = |value: &&[u8]| {
            (1..=LONGEST_NAME).contains(&value.len()) && !value.iter().any(u8::is_ascii_whitespace)
        };
        if let Some(value) = value.filter(is_name) {
            other.names += 1;
            if other.hashes.len() < MOST_VALUES {
                other.hashes.insert(twox_hash::XxHash3_64::oneshot(value));
            }
        }
    }

    /// Adds what another piece has; of the fields no more than is known, unless they are `wanted`.
    pub(crate) fn add(&mut self, piece: Self, wanted: bool) {
        self.taken |= piece.taken;
        self.records += piece.records;
        self.unnamed += piece.unnamed;
        self.text_bytes += piece.text_bytes;
        self.other_bytes += piece.other_bytes;
        self.has_vectors |= piece.has_vectors;
        self.has_head |= piece.has_head;
        self.lost_weights += piece.lost_weights;
        for (field, other) in piece.others.into_iter().filter(|_| wanted) {
            let Some(own) = self.field(field) else { continue };
            own.bytes += other.bytes;
            own.names += other.names;
            own.hashes.extend(other.hashes.into_iter().take(MOST_VALUES));
        }
    }

    pub(crate) fn is_mostly_unnamed(&self) -> bool {
        self.unnamed * 2 > self.records
    }

    /// The part of the bytes of strings that were not taken, in percent, if it is a fiftieth.
    pub(crate) fn not_taken(&self) -> Option<u64> {
        let all = self.text_bytes + self.other_bytes;
        (self.other_bytes * 50 >= all.max(1)).then(|| self.other_bytes * 100 / all)
    }

    /// The fields with the most bytes that were not taken.
    pub(crate) fn longest_others(&self) -> Vec<&str> {
        let mut fields: Vec<_> =
            self.others.iter().filter(|(_, other)| other.bytes * 20 > self.other_bytes).collect();
        fields.sort_by_key(|(_, other)| std::cmp::Reverse(other.bytes));
        fields.iter().take(NAMED).map(|(field, _)| field.as_str()).collect()
    }

    /// The fields that have another value in each record.
    pub(crate) fn could_be_names(&self) -> Vec<&str> {
        let most = self.records.min(MOST_VALUES as u64);
        let is = |(_, other): &(_, &OtherField)| {
            other.names == self.records && other.hashes.len() as u64 >= most
        };
        self.others.iter().filter(is).take(NAMED).map(|(field, _)| field.as_str()).collect()
    }
}

/// What a build says of the fields of all files, each with its path.
pub fn remarks(files: &[(String, &SeenFields)]) -> Vec<String> {
    let mut remarks = Vec::new();
    let unnamed: Vec<_> = files.iter().filter(|(_, seen)| seen.is_mostly_unnamed()).collect();
    if let [(path, seen), ..] = unnamed[..] {
        let fields = seen.could_be_names().join(", ");
        let others = match fields.is_empty() {
            true => String::new(),
            false => format!("; as id-field these fields could be names: {fields}"),
        };
        remarks.push(format!(
            "most documents of {} have no name, so that file and line are their names{others}",
            with_others(path, unnamed.len())
        ));
    }
    let heads: Vec<_> = files.iter().filter(|(_, seen)| seen.has_head).collect();
    if let [(path, _), ..] = heads[..] {
        let files = with_others(path, heads.len());
        remarks.push(format!("the first line of {files} names columns, and is no document"));
    }
    let lost: u64 = files.iter().map(|(_, seen)| seen.lost_weights).sum();
    if lost > 0 {
        let lost = number_of(lost, "weight is", "weights are");
        remarks.push(format!("{lost} 0 when multiplied and rounded, and left out"));
    }
    if let Some((path, _)) = files.iter().find(|(_, seen)| seen.has_vectors) {
        remarks.push(format!(
            "documents of {path} have learned vectors, which were left out: they are indexed in the place of texts if `vectors` is named as the format"
        ));
    }
    let not_taken: Vec<_> = files.iter().filter(|(_, seen)| seen.not_taken().is_some()).collect();
    if let [(path, seen), ..] = not_taken[..] {
        let mut known = BTreeSet::new();
        let fields = not_taken.iter().flat_map(|(_, seen)| seen.longest_others());
        let fields: Vec<_> = fields.filter(|field| known.insert(*field)).take(2 * NAMED).collect();
        remarks.push(format!(
            "{} % of the bytes of strings in {} are in fields that are not indexed: {}",
            seen.not_taken().unwrap_or_default(),
            with_others(path, not_taken.len()),
            fields.join(", ")
        ));
    }
    remarks
}

fn with_others(path: &str, files: usize) -> String {
    match files {
        1 => path.to_string(),
        2 => format!("{path} and 1 more file"),
        files => format!("{path} and {} more files", files - 1),
    }
}

/// Documents with bytes that are no UTF-8.
#[derive(Debug, Default)]
pub(crate) struct NotUtf8 {
    pub documents: u64,
    /// The first ones, by input and place.
    pub first: BTreeSet<(u32, u64)>,
}

impl NotUtf8 {
    pub(crate) fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.first.extend(other.first);
        while self.first.len() > NAMED {
            self.first.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::{KeptDocuments, PieceView};
    use crate::input::formats::jsonl::JsonlParser;

    fn seen(lines: &str) -> SeenFields {
        let mut parser = JsonlParser::new();
        parser.parse(PieceView::whole(lines.as_bytes()), &mut KeptDocuments::default());
        parser.take_seen()
    }

    #[test]
    fn strings_count_and_neither_keys_nor_names_nor_numbers() {
        let line = r#"{"id":"a name","text":["12","3"],"x":{"long key":"12345","y":[0.25,"6"]},"v":[1.5,2]}"#;
        let seen = seen(line);
        assert_eq!((seen.text_bytes, seen.other_bytes), (3, 6));
        assert_eq!(seen.not_taken(), Some(66));
        assert_eq!(seen.longest_others(), ["x"]);
        assert!(!seen.is_mostly_unnamed());
        let half = self::seen(r#"{"text":"12","contents":[{"a":"12"}]}"#);
        assert_eq!(
            (half.text_bytes, half.not_taken(), half.is_mostly_unnamed()),
            (2, Some(50), true)
        );
        let few = self::seen(&format!(r#"{{"text":"{}","x":"1"}}"#, "a".repeat(50)));
        assert_eq!((few.other_bytes, few.not_taken()), (1, None));
    }

    #[test]
    fn a_field_could_be_a_name_if_it_differs_in_all_records() {
        let line = |n: u32| {
            format!("{{\"key\":{n},\"lang\":\"en\",\"half\":{},\"two\":\"a {n}\"}}\n", n / 2)
        };
        let all: String = (0..1000).map(line).collect();
        assert_eq!(seen(&all).could_be_names(), ["key"]);
        assert_eq!(seen(&(all + "{\"text\":\"no key\"}\n").repeat(2)).could_be_names(), ["key"; 0]);
    }
}
