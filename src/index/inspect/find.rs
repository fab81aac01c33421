//! Finds the document of a docid or a name, for tools that look into an index.

use crate::index::columns::ColumnValue;
use crate::index::error::IndexError;
use crate::index::generations::generation::{Generation, with_live};
use crate::index::generations::manifest::held::WhichRuns;
use crate::index::texts::LastTexts;
use crate::shown::visible;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

#[derive(Clone, Copy, Debug)]
pub enum DocumentKey<'a> {
    /// In the whole index.
    Docid(u32),
    /// The first document of this name that is not deleted.
    Name(&'a str),
}

/// A document of an index, and the generation that has it open.
#[derive(Debug)]
pub struct FoundDocument {
    /// The live generation, or those of its runs that are on this disk.
    pub generation: Generation,
    /// In that.
    pub docid: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DocumentRow {
    /// In its generation.
    pub docid: u32,
    /// Bytes that are no UTF-8 are replaced.
    pub name: String,
    pub tokens: u32,
    /// The file that it was read from.
    pub input: String,
    /// Its first byte in that, uncompressed.
    pub offset: u64,
    pub bytes: u32,
    /// Of each column.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Vec<ColumnValue>>,
    /// Of each field that is kept, if it was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stored: BTreeMap<String, ColumnValue>,
}

/// Finds a document of the live generation; a name may need a look at all names. Runs that are not
/// on this disk are not looked into.
///
/// # Errors
/// `NoDocid`, `Deleted`, `Elsewhere` or `NoName`, beside those of opening.
pub fn find_document(index: &Path, key: DocumentKey<'_>) -> Result<FoundDocument, IndexError> {
    let generation = with_live(index, |folder| match Generation::open_folder(folder) {
        Err(IndexError::Elsewhere { .. }) => Generation::open_some(folder, WhichRuns::Here),
        opened => opened,
    })?;
    let whole = generation.whole_manifest();
    let key = match key {
        DocumentKey::Docid(docid) => {
            let after = whole.runs.partition_point(|run| run.first_docid <= docid);
            let run = after.checked_sub(1).map(|at| &whole.runs[at]);
            let has = run.filter(|run| docid - run.first_docid < run.documents);
            let (path, documents) = (index.to_path_buf(), whole.statistics.documents);
            let run = has.ok_or(IndexError::NoDocid { path, docid, documents })?;
            run.check_here(generation.path())?;
            DocumentKey::Docid(generation.own_docids(&(docid..docid)).start)
        }
        name => name,
    };
    let docid = find_in(&generation, index, key).map_err(|error| match error {
        IndexError::NoName { path, name, .. } => {
            let missing = whole.runs.iter().filter(|run| !run.is_here(generation.path()));
            let mut elsewhere: Vec<_> =
                missing.map(|run| format!("process {}", run.holder())).collect();
            elsewhere.dedup();
            IndexError::NoName { path, name, elsewhere }
        }
        error => error,
    })?;
    Ok(FoundDocument { generation, docid })
}

/// Finds a document of the generation of the index in the folder `index`, or `NoDocid`, `Deleted`,
/// `NoName`.
pub fn find_in(
    generation: &Generation,
    index: &Path,
    key: DocumentKey<'_>,
) -> Result<u32, IndexError> {
    let path = index.to_path_buf();
    let documents = generation.documents().len();
    match key {
        DocumentKey::Docid(docid) if generation.is_deleted(docid) => {
            Err(IndexError::Deleted { path, docid })
        }
        DocumentKey::Docid(docid) if docid < documents => Ok(docid),
        DocumentKey::Docid(docid) => {
            Err(IndexError::NoDocid { path, docid, documents: documents.into() })
        }
        DocumentKey::Name(name) => generation.find_name(name.as_bytes())?.ok_or_else(|| {
            IndexError::NoName { path, name: name.to_string(), elsewhere: Vec::new() }
        }),
    }
}

impl fmt::Display for DocumentRow {
    /// A row for each field but the docid, which may be another one in the whole index.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tokens, input, offset, bytes, values, stored, .. } = self;
        writeln!(f, "name      {}", visible(name))?;
        writeln!(f, "tokens    {tokens}")?;
        writeln!(f, "input     {}", visible(input))?;
        writeln!(f, "offset    {offset}")?;
        writeln!(f, "bytes     {bytes}")?;
        for (column, values) in values {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            writeln!(f, "value     {}: {}", visible(column), visible(&values.join(", ")))?;
        }
        for (field, value) in stored {
            writeln!(f, "stored    {}: {}", visible(field), visible(&value.to_string()))?;
        }
        Ok(())
    }
}

impl DocumentRow {
    /// The same with the values of fields that are kept.
    pub fn with_stored(mut self, generation: &Generation) -> Result<Self, IndexError> {
        let mut last = LastTexts::default();
        for (number, field) in generation.manifest().settings.stored.iter().enumerate() {
            let value = generation.stored_value(number, self.docid, &mut last)?;
            self.stored.extend(value.map(|value| (field.clone(), value)));
        }
        Ok(self)
    }

    /// `Damaged` if the generation has a part of the document missing.
    pub fn of(generation: &Generation, docid: u32) -> Result<Self, IndexError> {
        let documents = generation.documents();
        let lacks = |what: &str| {
            let found = format!("document {docid} without {what}");
            IndexError::damaged(generation.path(), 0, "documents of the manifest's inputs", found)
        };
        let name = documents.name(docid)?;
        let place = documents.location(docid).ok_or_else(|| lacks("a place"))?;
        let columns = generation.manifest().settings.columns.iter().enumerate();
        let values = columns
            .map(|(number, column)| Ok((column.name.clone(), generation.values(number, docid)?)));
        let values = values.collect::<Result<_, IndexError>>()?;
        Ok(Self {
            docid,
            name: String::from_utf8_lossy(&name).into_owned(),
            tokens: documents.length(docid).ok_or_else(|| lacks("a length"))?,
            input: generation.input_of(docid)?.path.display().to_string(),
            offset: place.offset,
            bytes: place.bytes,
            values,
            stored: BTreeMap::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection};

    #[test]
    fn documents_are_found_by_docid_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(8, 40, 20), &[10]);
        for key in [DocumentKey::Docid(17), DocumentKey::Name("doc-17")] {
            let found = find_document(folder.path(), key).unwrap();
            assert_eq!((found.generation.docid_in_whole(17), found.docid), (17, 17));
            let row = DocumentRow::of(&found.generation, 17).unwrap();
            assert_eq!((&*row.name, row.docid), ("doc-17", 17));
            assert_eq!(row.tokens, found.generation.documents().length(17).unwrap());
        }
        let error = find_document(folder.path(), DocumentKey::Docid(40)).unwrap_err();
        assert!(matches!(error, IndexError::NoDocid { documents: 40, .. }), "{error}");
        let error = find_document(folder.path(), DocumentKey::Name("nobody")).unwrap_err();
        assert!(error.to_string().ends_with("no document is named `nobody`"), "{error}");
    }
}
