//! Texts of documents, which are read again from the indexed files and checked against the index.

use crate::index::error::IndexError;
use crate::index::format::{IMPORTED, VECTORS};
use crate::index::generations::generation::Generation;
use crate::index::inspect::find::DocumentRow;
use crate::input::formats::fields::Fields;
use crate::input::record::{self, fetch};
use crate::input::splits::{MEMORY, STDIN};
use crate::query::error::QueryError;
use crate::text::analysis::Analysis;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const IMPORTED_TEXTS: &str = "the index was imported, without the texts of its documents";

/// The record of a document.
///
/// # Errors
/// `NoText`; `Io` if the file has changed.
pub fn record_of(generation: &Generation, row: &DocumentRow) -> Result<Vec<u8>, QueryError> {
    let settings = &generation.manifest().settings;
    if settings.indexer == IMPORTED && settings.format != VECTORS {
        return Err(QueryError::NoText(IMPORTED_TEXTS.into()));
    }
    fetch(file_of(&row.input)?, row.offset, row.bytes).map_err(|source| unread(row, source))
}

fn file_of(input: &str) -> Result<&Path, QueryError> {
    let whence = match input {
        STDIN => "standard input",
        MEMORY => "the memory of a program",
        path => return Ok(Path::new(path)),
    };
    Err(QueryError::NoText(format!("the text came from {whence} and is not kept")))
}

fn unread(row: &DocumentRow, source: io::Error) -> QueryError {
    QueryError::io(format!("fetching the text of `{}` from {}", row.name, row.input))(source)
}

pub(crate) struct Reread {
    analysis: Analysis,
    texts: record::DocumentTexts,
}

impl Reread {
    /// For a generation all of whose texts can be had, as far as it tells.
    ///
    /// # Errors
    /// `NoText`; `Index` if its analysis is not known.
    pub(crate) fn new(generation: &Generation) -> Result<Self, QueryError> {
        let manifest = generation.manifest();
        let settings = &manifest.settings;
        if settings.format == VECTORS {
            let why = "the index has learned vectors, and no texts";
            return Err(QueryError::NoText(why.into()));
        }
        if settings.indexer == IMPORTED {
            return Err(QueryError::NoText(IMPORTED_TEXTS.into()));
        }
        for input in &manifest.inputs {
            file_of(&input.path)?;
        }
        let fields = Fields { texts: settings.text_fields.clone(), ..Fields::default() };
        let analysis = manifest.analysis(generation.path())?;
        Ok(Self {
            analysis,
            texts: record::DocumentTexts::new(settings.max_document_bytes, &fields),
        })
    }

    /// The terms of a document and their tfs. A compressed file is inflated up to the document.
    ///
    /// # Errors
    /// `Io`; `NoText` if there are not as many terms as were indexed; `Index` if it is damaged.
    pub(crate) fn terms(
        &mut self,
        generation: &Generation,
        docid: u32,
    ) -> Result<BTreeMap<String, u32>, QueryError> {
        let row = DocumentRow::of(generation, docid)?;
        let place = generation.documents().location(docid);
        let input = place.and_then(|place| generation.manifest().inputs.get(place.input as usize));
        let format = input.and_then(|input| input.format.parse().ok()).ok_or_else(|| {
            let found = format!("the input {}", row.input);
            IndexError::damaged(generation.path(), 0, "an input of a known format", found)
        })?;
        let text = self.texts.of(Path::new(&row.input), format, row.offset, row.bytes);
        let text = text.map_err(|source| unread(&row, source))?;
        let mut terms = BTreeMap::new();
        let mut found = 0;
        self.analysis.terms(&text, |term| {
            found += 1;
            match terms.get_mut(term) {
                Some(times) => *times += 1,
                None => _ = terms.insert(term.to_string(), 1),
            }
        });
        if found != row.tokens {
            let DocumentRow { name, input: path, offset, tokens: expected, .. } = row;
            return Err(QueryError::NoText(format!(
                "{path}: byte {offset}: expected the {expected} terms of `{name}`, found {found}: \
                 the file has changed since"
            )));
        }
        Ok(terms)
    }
}
