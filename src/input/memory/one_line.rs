//! A line of JSON becomes a document that a program has, as if it stood in a file of JSON lines.

use super::OwnedDocument;
use crate::input::document::{Content, Document, DocumentSink, Name, PieceView, Skip};
use crate::input::formats::fields::Fields;
use crate::input::formats::jsonl::JsonlParser;
use crate::text::fields::IndexFields;
use serde_json::{Map, Value};

/// Reads documents for an index.
pub(crate) struct LineReader {
    parser: JsonlParser,
    /// The fields that are looked for as names.
    named: Vec<String>,
    fields: IndexFields,
    /// The columns and the fields that are kept.
    kept: Vec<String>,
}

/// Keeps the document of a line, or why it is none.
#[derive(Default)]
struct Kept<'f> {
    named: &'f [String],
    fields: &'f [String],
    starts: Vec<usize>,
    found: Option<Result<OwnedDocument, String>>,
}

impl DocumentSink for Kept<'_> {
    fn parts(&mut self, starts: &[usize]) {
        self.starts = starts.to_vec();
    }

    fn document(&mut self, document: Document<'_>) {
        let Name::Given(name) = document.name else {
            let why = match self.named {
                [] => "it has no name, such as id".to_string(),
                named => format!("it has no name: {}", named.join(", ")),
            };
            return self.found = Some(Err(why));
        };
        let Content::Text(text) = document.content else { return };
        let ends = self.starts.iter().copied().chain([text.len()]);
        let mut begin = 0;
        let mut parts = Vec::new();
        for end in ends {
            let part = &text[begin..end];
            // One line feed parts it from the next.
            let part =
                if end < text.len() { part.strip_suffix(b"\n").unwrap_or(part) } else { part };
            parts.push(String::from_utf8_lossy(part).into_owned());
            begin = end;
        }
        let mut owned = OwnedDocument::of_parts(name, parts);
        for (field, text) in document.fields.by_field() {
            let name = &self.fields[usize::from(field) - 1];
            owned = owned.with_field(name, String::from_utf8_lossy(text));
        }
        self.found = Some(Ok(owned));
    }

    fn skipped(&mut self, _offset: usize, _line: u64, _bytes: usize, reason: Skip) {
        self.found = Some(Err(reason.to_string()));
    }
}

impl LineReader {
    /// For an index that has these fields, keeps values of these names, and was made of records
    /// whose names and texts are in the fields that `asked` says.
    pub(crate) fn new(asked: &Fields, fields: IndexFields, kept: Vec<String>) -> Self {
        let mut parser = JsonlParser::new();
        parser.take_fields(asked);
        parser.find_fields(&fields);
        Self { parser, named: asked.names.clone(), fields, kept }
    }

    /// The document of a line, which has no line feed; none if it is blank. Fails with the reason
    /// for which it is none, and if it has no name: it could be neither replaced nor deleted.
    pub(crate) fn read(&mut self, line: &[u8]) -> Option<Result<OwnedDocument, String>> {
        let (named, fields) = (&self.named, self.fields.names());
        let mut kept = Kept { named, fields, ..Kept::default() };
        self.parser.parse(PieceView::whole(line), &mut kept);
        let found = kept.found?;
        Some(found.map(|mut document| {
            if !self.kept.is_empty() {
                let members: Map<String, Value> = serde_json::from_slice(line).unwrap_or_default();
                let kept = members.into_iter().filter(|(name, _)| self.kept.contains(name));
                document.values = kept.collect();
            }
            document
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::memory::GivenDocuments;
    use std::io::Read;

    #[test]
    fn a_line_says_the_same_as_in_a_file() {
        let fields = IndexFields::new(["title"]).unwrap();
        let mut reader = LineReader::new(&Fields::default(), fields, Vec::new());
        let line = br#"{"id":"a","title":"Mill","contents":"water\nwheel","year":7}"#;
        let document = reader.read(line).unwrap().unwrap();
        let mut written = String::new();
        GivenDocuments::new([document]).read_to_string(&mut written).unwrap();
        let value: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(value["contents"], serde_json::json!(["Mill", "water\nwheel"]));
        assert_eq!((&value["id"], &value[" title"][0]), (&"a".into(), &"Mill".into()));
        assert!(reader.read(b"  ").is_none());
        let why = |reader: &mut LineReader, line: &[u8]| reader.read(line).unwrap().unwrap_err();
        assert!(why(&mut reader, b"{\"contents\":\"x\"}").contains("no name"));
        assert!(why(&mut reader, b"{\"id\":\"x\",").contains("bad JSON"));
        assert!(why(&mut reader, b"[1]").len() > 3);
        let asked = Fields { names: vec!["sku".into()], texts: vec!["blurb".into()] };
        let kept = vec!["year".into(), "blurb".into()];
        let mut reader = LineReader::new(&asked, IndexFields::default(), kept);
        let line = br#"{"id":"a","sku":"b","blurb":"gryphon","text":"x","year":7}"#;
        let document = reader.read(line).unwrap().unwrap();
        assert_eq!((&*document.name, &*document.text), ("b", "gryphon"));
        assert_eq!(document.values.len(), 2);
        assert_eq!(why(&mut reader, b"{\"id\":\"x\"}"), "it has no name: sku");
    }
}
