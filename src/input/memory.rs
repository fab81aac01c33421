//! Turns a program's documents into a pipe of JSON lines, so that the file readers read them, once.

#![warn(missing_docs)]
#[cfg(feature = "serve")]
pub(crate) mod one_line;

use super::Format;
use super::error::InputError;
use super::splits::{GIVEN, InputPlan};
use crate::input::streams::pipe::Pipe;
use crate::text::fields::IndexFields;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

/// Lines that are put together before any of them is read, in bytes.
const LINES_BYTES: usize = 64 << 10;

/// The member of a line that has the text.
const TEXT: &str = "contents";

/// A document that a program has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnedDocument {
    /// Its name; one without gets a name made of its place among all.
    #[serde(rename = "id", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its text, plain.
    #[serde(rename = "contents", skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Texts of fields of the index, by names that no member of a line has; and its text, if that
    /// has parts.
    #[serde(flatten)]
    fields: BTreeMap<String, Vec<String>>,
    /// Its values, by the names of columns and of fields that are kept; others are passed over.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub values: serde_json::Map<String, serde_json::Value>,
}

impl OwnedDocument {
    /// Makes a document.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), ..Self::default() }
    }

    /// Makes a document whose text has parts, over which no phrase goes.
    pub(crate) fn of_parts(name: &str, mut parts: Vec<String>) -> Self {
        match parts.len() {
            0 | 1 => Self::new(name, parts.pop().unwrap_or_default()),
            _ => Self { fields: BTreeMap::from([(TEXT.into(), parts)]), ..Self::new(name, "") },
        }
    }

    /// Its text, of all parts.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn whole(&self) -> String {
        self.fields.get(TEXT).map_or_else(|| self.text.clone(), |parts| parts.join("\n"))
    }

    /// Of all its texts.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.fields.values().flatten().map(String::len).sum::<usize>()
    }

    /// Adds a text of a field of the index. It is not added to the text of the document, which has
    /// that of all fields, as far as it is to be found without naming one.
    #[must_use]
    pub fn with_field(mut self, field: &str, text: impl Into<String>) -> Self {
        self.fields.entry(IndexFields::in_memory(field)).or_default().push(text.into());
        self
    }
}

/// Documents that a program has, which are read once, from first to last.
#[derive(Default)]
pub struct GivenDocuments {
    documents: Option<Box<dyn Iterator<Item = OwnedDocument> + Send>>,
    /// Some lines, and how much of them was read.
    lines: Vec<u8>,
    at: usize,
}

impl fmt::Debug for GivenDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").finish_non_exhaustive()
    }
}

impl GivenDocuments {
    /// The iterator is asked when its documents are wanted.
    pub(crate) fn new<I>(documents: I) -> Self
    where
        I: IntoIterator<Item = OwnedDocument>,
        I::IntoIter: Send + 'static,
    {
        Self { documents: Some(Box::new(documents.into_iter())), lines: Vec::new(), at: 0 }
    }
}

impl Read for GivenDocuments {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at == self.lines.len() {
            self.lines.clear();
            self.at = 0;
            while self.lines.len() < LINES_BYTES {
                let Some(document) = self.documents.as_mut().and_then(Iterator::next) else {
                    self.documents = None;
                    break;
                };
                serde_json::to_writer(&mut self.lines, &document)?;
                self.lines.push(b'\n');
            }
        }
        let n = (&self.lines[self.at..]).read(to)?;
        self.at += n;
        Ok(n)
    }
}

impl InputPlan {
    /// The iterator is asked by a thread of its own.
    pub(crate) fn of_documents(documents: GivenDocuments) -> Result<Self, InputError> {
        let pipe = Pipe::new(Vec::new(), || Ok(documents))
            .map_err(|source| InputError::Io { path: GIVEN.to_string(), source })?;
        Ok(Self::of_pipe("memory", Format::Jsonl, pipe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_lines_that_say_the_same() {
        let texts = ["plain", "two\nlines\tand \"quotes\" \\ \u{0}", "", "北京 é 😀"];
        let documents = texts.iter().enumerate().map(|(i, text)| {
            let name = if i == 1 { String::new() } else { format!("d\n{i}") };
            OwnedDocument::new(name, *text)
        });
        let mut written = String::new();
        GivenDocuments::new(documents.collect::<Vec<_>>()).read_to_string(&mut written).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), texts.len());
        for (i, (line, text)) in lines.into_iter().zip(texts).enumerate() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["contents"].as_str().unwrap_or_default(), text);
            let name = value["id"].as_str().map(str::to_string);
            assert_eq!(name, (i != 1).then(|| format!("d\n{i}")));
        }
    }

    #[test]
    fn small_reads_give_the_same_bytes() {
        let documents =
            || GivenDocuments::new((0..20).map(|i| OwnedDocument::new(format!("{i}"), "a b")));
        let mut whole = Vec::new();
        documents().read_to_end(&mut whole).unwrap();
        let mut small = Vec::new();
        let mut reader = documents();
        let mut part = [0; 3];
        loop {
            match reader.read(&mut part).unwrap() {
                0 => break,
                n => small.extend_from_slice(&part[..n]),
            }
        }
        assert_eq!(small, whole);
        assert_eq!(documents().read(&mut []).unwrap(), 0);
    }
}
