//! Texts of documents, which are read again from the indexed files and checked against the index.

use crate::index::error::IndexError;
use crate::index::format::IMPORTED;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::LISTS_VERSION;
use crate::index::inputs::InputEntry;
use crate::index::inspect::find::DocumentRow;
use crate::index::texts::LastTexts;
use crate::input::Format;
use crate::input::formats::fields::Fields;
use crate::input::list::InputReading;
use crate::input::record::{self, IndexedFile, fetch};
use crate::input::splits::{MEMORY, STDIN};
use crate::input::streams::encoded::TextEncoding;
use crate::text::analysis::Analysis;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const IMPORTED_TEXTS: &str = "the index was imported, without the texts of its documents";

/// The record of a document, whose text is compared with what was indexed.
///
/// # Errors
/// `NoText`; `Io`, both also if the file has changed.
pub fn record_of(generation: &Generation, row: &DocumentRow) -> Result<Vec<u8>, IndexError> {
    if let Some(text) = generation.text(row.docid, &mut LastTexts::default())? {
        return Ok(text.to_vec());
    }
    let settings = &generation.manifest().settings;
    if settings.indexer == IMPORTED && !settings.has_impacts() {
        return Err(IndexError::NoText(IMPORTED_TEXTS.into()));
    }
    let record = fetched(generation, row)?;
    // Earlier programs may have read other fields.
    if settings.lists == Some(LISTS_VERSION) && !settings.has_impacts() {
        let (_, hash) = Reread::of(generation)?.parsed(generation, row, record.clone())?;
        if generation.documents().hash(row.docid) != Some(hash) {
            let changed = "another text was indexed: the file has changed since";
            return Err(unread(row, io::Error::other(changed)));
        }
    }
    // A document of TREC is decoded by itself.
    let input = generation.input_of(row.docid)?;
    let asked = InputReading::of(&input).encoding.and_then(|asked| asked.known());
    let asked = asked.filter(|_| encoding_of(&input).is_none());
    match asked.filter(|_| std::str::from_utf8(&record).is_err()) {
        Some(asked) => Ok(asked.decode_without_bom_handling(&record).0.into_owned().into_bytes()),
        None => Ok(record),
    }
}

fn fetched(generation: &Generation, row: &DocumentRow) -> Result<Vec<u8>, IndexError> {
    let input = generation.input_of(row.docid)?;
    let record = fetch(file_of(&input.path)?, encoding_of(&input), row.offset, row.bytes);
    record.map_err(|source| unread(row, source))
}

fn file_of(input: &Path) -> Result<&Path, IndexError> {
    let whence = match input.to_str() {
        Some(STDIN) => "standard input",
        Some(MEMORY) => "the memory of a program",
        _ => return Ok(input),
    };
    Err(IndexError::NoText(format!("the text came from {whence}, which is not kept")))
}

fn encoding_of(input: &InputEntry) -> Option<TextEncoding> {
    input.encoding.as_ref()?.parse().ok()
}

/// How an input of this format was read.
fn indexed_as(input: &InputEntry, format: Format) -> IndexedFile<'_> {
    let fields = Fields { texts: input.text_fields.clone(), ..Fields::default() };
    let reading = InputReading { fields, ..InputReading::of(input) };
    let encoding = encoding_of(input);
    IndexedFile { path: &input.path, format, reading, encoding }
}

fn unread(row: &DocumentRow, source: io::Error) -> IndexError {
    let DocumentRow { name, input, .. } = row;
    let link = std::fs::read_link(input).map(|to| format!(", a link to {}", to.display()));
    let link = link.unwrap_or_default();
    IndexError::io(format!("fetching the text of `{name}` from {input}{link}"))(source)
}

pub struct Reread {
    /// Its documents are lines of JSON with texts that were not indexed.
    has_vectors: bool,
    analysis: Analysis,
    texts: record::DocumentTexts,
    stored: LastTexts,
}

impl Reread {
    /// For a generation all of whose texts can be had, as far as it tells.
    ///
    /// # Errors
    /// `NoText`; `Index` if its analysis is not known.
    pub(crate) fn new(generation: &Generation) -> Result<Self, IndexError> {
        let manifest = generation.manifest();
        if manifest.settings.has_impacts() {
            let why = "the index has learned vectors, and no texts";
            return Err(IndexError::NoText(why.into()));
        }
        let is_read = |_: &_| !manifest.settings.texts;
        for input in generation.inputs()?.iter().filter(is_read) {
            file_of(&input?.path)?;
        }
        Self::of(generation)
    }

    /// For a generation some of whose texts may be lost, or which has vectors beside them.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(generation: &Generation) -> Result<Self, IndexError> {
        let manifest = generation.manifest();
        let settings = &manifest.settings;
        let has_vectors = settings.has_impacts();
        if settings.indexer == IMPORTED && !has_vectors {
            return Err(IndexError::NoText(IMPORTED_TEXTS.into()));
        }
        let analysis = manifest.analysis(generation.path())?;
        let longest = if has_vectors { u64::MAX } else { settings.max_document_bytes };
        let fields = settings.index_fields();
        let texts = record::DocumentTexts::new(longest, &fields, settings.has_values());
        Ok(Self { has_vectors, analysis, texts, stored: LastTexts::default() })
    }

    /// The terms of a document and their tfs. A compressed file is inflated up to the document.
    ///
    /// # Errors
    /// `Io`; `NoText` if there are not as many terms as were indexed; `Index` if it is damaged.
    pub(crate) fn terms(
        &mut self,
        generation: &Generation,
        docid: u32,
    ) -> Result<BTreeMap<String, u32>, IndexError> {
        let row = DocumentRow::of(generation, docid)?;
        let text = self.whole(generation, &row)?;
        let mut terms = BTreeMap::new();
        self.check(&row, &text, |term| match terms.get_mut(term) {
            Some(times) => *times += 1,
            None => _ = terms.insert(term.to_string(), 1),
        })?;
        Ok(terms)
    }

    /// The text of a document as it was indexed, from the index if that keeps it.
    ///
    /// # Errors
    /// As [`terms`](Self::terms).
    pub fn text(&mut self, generation: &Generation, docid: u32) -> Result<Vec<u8>, IndexError> {
        if let Some(text) = generation.text(docid, &mut self.stored)? {
            return Ok(text.to_vec());
        }
        let row = DocumentRow::of(generation, docid)?;
        let (text, _) = self.parsed(generation, &row, fetched(generation, &row)?)?;
        if !self.has_vectors {
            self.check(&row, &text, |_| {})?;
        }
        Ok(text)
    }

    /// The text of a document, from the index if that keeps it.
    fn whole(&mut self, generation: &Generation, row: &DocumentRow) -> Result<Vec<u8>, IndexError> {
        match generation.text(row.docid, &mut self.stored)? {
            Some(text) => Ok(text.to_vec()),
            None => Ok(self.parsed(generation, row, fetched(generation, row)?)?.0),
        }
    }

    /// The text in a document's record, and the document's hash.
    fn parsed(
        &mut self,
        generation: &Generation,
        row: &DocumentRow,
        record: Vec<u8>,
    ) -> Result<(Vec<u8>, u64), IndexError> {
        let input = generation.input_of(row.docid)?;
        let format = if self.has_vectors { Some(Format::Jsonl) } else { input.format.parse().ok() };
        let format = format.ok_or_else(|| {
            let found = format!("the input {}", row.input);
            IndexError::damaged(generation.path(), 0, "an input of a known format", found)
        })?;
        let file = indexed_as(&input, format);
        let text = self.texts.of(&file, row.offset, record);
        text.map_err(|source| unread(row, source))
    }

    /// Calls `f` with each term, whose number has to be that of the index.
    fn check(
        &self,
        row: &DocumentRow,
        text: &[u8],
        mut f: impl FnMut(&str),
    ) -> Result<(), IndexError> {
        let mut found = 0;
        self.analysis.terms(text, |term| {
            found += 1;
            f(term);
        });
        if found != row.tokens {
            let DocumentRow { name, input: path, offset, tokens: expected, .. } = row;
            return Err(IndexError::NoText(format!(
                "{path}: byte {offset}: expected the {expected} terms of `{name}`, found {found}: \
                 the file has changed since"
            )));
        }
        Ok(())
    }
}
