//! Finds the document of a docid or a name, and the generation or shard that has it, for tools that
//! look into an index.

use crate::index::columns::ColumnValue;
use crate::index::error::IndexError;
use crate::index::format::shard_name;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::sharded::ShardedManifest;
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
    /// The live generation, or a shard of it.
    pub generation: Generation,
    /// Docid of the generation's first document in the whole index.
    pub first_docid: u32,
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

/// Finds a document of the live generation; a name may need a look at all names. Shards that are
/// not on this disk are not looked into.
///
/// # Errors
/// `NoDocid`, `Deleted` or `NoName`, beside those of opening.
pub fn find_document(index: &Path, key: DocumentKey<'_>) -> Result<FoundDocument, IndexError> {
    let path = || index.to_path_buf();
    let Some(manifest) = ShardedManifest::live(index)? else {
        let generation = Generation::open(index)?;
        let docid = find_in(&generation, index, key)?;
        return Ok(FoundDocument { generation, first_docid: 0, docid });
    };
    let name = match key {
        DocumentKey::Docid(docid) => {
            let none =
                || IndexError::NoDocid { path: path(), docid, documents: manifest.documents() };
            let shard = manifest.shard_of(docid).ok_or_else(none)?;
            let generation = manifest.open(index, shard)?;
            let first_docid = manifest.shards[shard].first_docid;
            return Ok(FoundDocument { generation, first_docid, docid: docid - first_docid });
        }
        DocumentKey::Name(name) => name,
    };
    let mut elsewhere = Vec::new();
    for (shard, entry) in manifest.shards.iter().enumerate() {
        if !manifest.folder(index, shard).exists() {
            elsewhere.push(shard_name(shard));
            continue;
        }
        let generation = manifest.open(index, shard)?;
        if let Some(docid) = generation.find_name(name.as_bytes())? {
            return Ok(FoundDocument { generation, first_docid: entry.first_docid, docid });
        }
    }
    Err(IndexError::NoName { path: path(), name: name.to_string(), elsewhere })
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

/// Opens the live generation of an index for tools that know no shards (`HasShards`).
pub fn open_plain(index: &Path) -> Result<Generation, IndexError> {
    if let Some(manifest) = ShardedManifest::live(index)? {
        let shards = manifest.shards.len();
        return Err(IndexError::HasShards { path: index.to_path_buf(), shards });
    }
    Generation::open(index)
}

impl fmt::Display for DocumentRow {
    /// A row for each field but the docid, which in a shard is not that of the whole index.
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
            name: String::from_utf8_lossy(name).into_owned(),
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
            assert_eq!((found.first_docid, found.docid), (0, 17));
            let row = DocumentRow::of(&found.generation, 17).unwrap();
            assert_eq!((&*row.name, row.docid), ("doc-17", 17));
            assert_eq!(row.tokens, found.generation.documents().length(17).unwrap());
        }
        let error = find_document(folder.path(), DocumentKey::Docid(40)).unwrap_err();
        assert!(matches!(error, IndexError::NoDocid { documents: 40, .. }), "{error}");
        let error = find_document(folder.path(), DocumentKey::Name("nobody")).unwrap_err();
        assert!(error.to_string().ends_with("no document is named `nobody`"), "{error}");
        assert_eq!(open_plain(folder.path()).unwrap().documents().len(), 40);
    }
}
