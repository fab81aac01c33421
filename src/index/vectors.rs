//! Imports a collection of learned sparse vectors as an index. Anserini's JsonVectorCollection has
//! an object a line:
//!
//! ```text
//! {"id": "d1", "contents": "as people read it", "vector": {"mill": 1.37, "##race": 0.52}}
//! ```
//!
//! Models such as SPLADE, DeepImpact and uniCOIL have learned the weight of each term in each
//! document. The terms are the model's own vocabulary and stay as they are. A weight times a
//! factor, rounded to the nearest whole number, takes the place of the term frequency (its
//! *impact*), and the sum of these that of the length; what rounds to 0 is left out. The factor is
//! recorded. Scores by `impact` are the sums of the query's weights times these numbers.
//!
//! All postings are held in memory, 8 bytes each, until the last document is read: only then is it
//! known whether the weights are whole numbers.

use super::ciff::import::{Import, publish};
use super::documents::{DocumentsEntry, DocumentsWriter, Location};
use super::error::IndexError;
use super::format::VECTORS;
use super::list::ListEncoder;
use super::run::{CHUNK_BYTES, ListChunks, NewRun, RunWriter, WrittenRun};
use crate::index::generations::manifest::{InputEntry, Manifest, Settings};
use crate::score::bounds::code_below;
use crate::text::analysis::MAX_TERM_BYTES;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::marker::PhantomData;
use std::path::Path;
use twox_hash::XxHash3_64;

/// The factor where weights are no whole numbers and none is given, as in Anserini.
pub(crate) const USUAL_FACTOR: f64 = 100.0;

/// An uncompressed file of vectors.
pub struct VectorFile<'a> {
    pub lines: Box<dyn Read + Send + 'a>,
    /// With its path, length and hash.
    pub entry: InputEntry,
}

/// A line, whose other members are ignored.
#[derive(Deserialize)]
struct VectorLine {
    #[serde(alias = "_id", alias = "docid")]
    id: Id,
    #[serde(deserialize_with = "pairs")]
    vector: Vec<(String, f64)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

/// The members of an object in a list, so that repeated ones are seen, and their order.
pub(crate) fn pairs<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    from: D,
) -> Result<Vec<(String, V)>, D::Error> {
    struct Pairs<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(pair) = map.next_entry()? {
                found.push(pair);
            }
            Ok(found)
        }
    }
    from.deserialize_map(Pairs(PhantomData))
}

#[derive(Default)]
struct Collected {
    numbers: HashMap<Box<str>, u32>,
    /// By number of the term: docid and weight.
    lists: Vec<Vec<(u32, f32)>>,
    /// Names and records.
    documents: Vec<(Box<str>, Location)>,
    /// A weight is no whole number.
    has_fractions: bool,
}

/// Makes the vectors of some files the next generation of the index in the folder `index`; without
/// a `factor` the weights choose it.
///
/// # Errors
/// `Damaged`, with file and byte, if a line is no such object, a weight is negative or no number, a
/// term is repeated in a document or has more bytes than a term may have, or an impact does not fit
/// 32 bits; as `ciff::import` for the rest. The live generation stays then.
pub fn import<'a>(
    files: impl IntoIterator<Item = VectorFile<'a>>,
    index: &Path,
    factor: Option<f64>,
    what: Import,
) -> Result<Manifest, IndexError> {
    let mut collected = Collected::default();
    let mut inputs = Vec::new();
    for file in files {
        let number = inputs.len() as u32;
        collected.read(file.lines, Path::new(&file.entry.path), number)?;
        inputs.push(file.entry);
    }
    let usual = if collected.has_fractions { USUAL_FACTOR } else { 1.0 };
    let factor = factor.unwrap_or(usual);
    let impact_factor = Some(factor.to_string());
    let settings = Settings { format: VECTORS.into(), impact_factor, ..what.settings };
    let what = Import { settings, ..what };
    publish(index, what, inputs, |run| write(collected, factor, index, run))
}

impl Collected {
    fn read(&mut self, lines: impl Read, path: &Path, input: u32) -> Result<(), IndexError> {
        let mut lines = BufReader::with_capacity(1 << 18, lines);
        let mut line = Vec::new();
        let mut at = 0u64;
        loop {
            line.clear();
            let offset = at;
            let read = lines.read_until(b'\n', &mut line);
            let bytes = read.map_err(IndexError::storage("read", path))?;
            if bytes == 0 {
                return Ok(());
            }
            at += bytes as u64;
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let wrong = |expected: &str, found: String| {
                Err(IndexError::damaged(path, offset, expected, found))
            };
            let record: VectorLine = match serde_json::from_slice(text) {
                Ok(record) => record,
                Err(error) => {
                    let expected = "an object with \"id\" and \"vector\", a line each";
                    return wrong(expected, error.to_string());
                }
            };
            let name = match record.id {
                Id::Text(name) => name,
                Id::Number(number) => number.to_string(),
            };
            let docid = self.documents.len() as u32;
            if docid == u32::MAX {
                return wrong("fewer than 2^32 - 1 documents", "another one".into());
            }
            for (term, weight) in record.vector {
                if !(1..=MAX_TERM_BYTES).contains(&term.len()) {
                    let expected = format!("terms of 1 to {MAX_TERM_BYTES} bytes");
                    return wrong(&expected, format!("{} bytes", term.len()));
                }
                if !(0.0..=f64::from(f32::MAX)).contains(&weight) {
                    return wrong("weights of 0 or more", format!("{weight} of `{term}`"));
                }
                self.has_fractions |= weight.fract() != 0.0;
                let next = self.lists.len() as u32;
                let number = *self.numbers.entry(term.as_str().into()).or_insert(next);
                if number == next {
                    self.lists.push(Vec::new());
                }
                let list = &mut self.lists[number as usize];
                if list.last().is_some_and(|last| last.0 == docid) {
                    return wrong("each term once in a document", format!("`{term}` again"));
                }
                list.push((docid, weight as f32));
            }
            let location = Location { offset, bytes: text.len() as u32, input };
            self.documents.push((name.into(), location));
        }
    }
}

fn write(
    collected: Collected,
    factor: f64,
    index: &Path,
    run: NewRun<'_>,
) -> Result<(WrittenRun, DocumentsEntry), IndexError> {
    let NewRun { folder, number, form, durability, .. } = run;
    let Collected { numbers, lists, documents, .. } = collected;
    let mut lengths = vec![0u32; documents.len()];
    for &(docid, weight) in lists.iter().flatten() {
        let length = &mut lengths[docid as usize];
        let sum = impact(weight, factor).and_then(|tf| length.checked_add(tf));
        *length = sum.ok_or_else(|| {
            let name = &documents[docid as usize].0;
            let why =
                format!("the impacts of {name} are not below 2^32: a smaller factor is needed");
            IndexError::refused(index, why)
        })?;
    }
    let mut table = DocumentsWriter::create(folder, number, durability, 0)?;
    for ((name, location), &length) in documents.iter().zip(&lengths) {
        table.push(name, length, *location, XxHash3_64::oneshot(name.as_bytes()))?;
    }
    let mut terms: Vec<(u16, Box<str>, u32)> =
        numbers.into_iter().map(|(term, list)| (trie_collection(&term), term, list)).collect();
    terms.sort_unstable();
    let mut run = RunWriter::create(run, vec![0])?;
    let mut chunks = ListChunks::new(form, folder, CHUNK_BYTES, |chunk| run.put(chunk));
    let mut encoder = ListEncoder::of_form(form);
    for (collection, term, list) in &terms {
        for &(docid, weight) in &lists[*list as usize] {
            let Some(tf) = impact(weight, factor).filter(|&tf| tf > 0) else { continue };
            encoder.push(docid, tf, code_below(lengths[docid as usize]));
            chunks.go_on(*collection, encoder.payload())?;
        }
        if encoder.df() == 0 {
            continue;
        }
        let (df, bytes) = encoder.finish();
        let suffix = &term.as_bytes()[implied_prefix_len(*collection)..];
        chunks.end((*collection, suffix), df, bytes, encoder.payload())?;
    }
    chunks.finish(encoder.payload())?;
    Ok((run.finish(0, documents.len() as u32)?, table.finish()?))
}

fn impact(weight: f32, factor: f64) -> Option<u32> {
    let impact = (f64::from(weight) * factor).round();
    (impact <= f64::from(u32::MAX)).then_some(impact as u32)
}
