//! Finds the documents of a CSV file (RFC 4180), whose first record names the columns.
//!
//! - Fields are parted by commas, semicolons or tabs, whichever the head has most of; they may
//!   stand in quotes and hold line ends then.
//! - The name is that of the best column that [`Fields`] knows as a name; the text is that of all
//!   columns that it knows as text, in the order of the columns, with one newline between them;
//!   spare ones are taken if the head has none that makes them needless. Without case, unless the
//!   columns were asked for.
//! - An empty line is ignored. A record with fewer fields than the head has lacks the last ones;
//!   one with more is no document, for a quote or a separator is wrong then.
//!
//! Records count in the place of lines; the head is the first.

use super::KEPT_BUFFER_BYTES;
use super::fields::Fields;
use super::noticed::SeenFields;
use crate::input::borders::over_lines::{BorderMachine, Csv};
use crate::input::document::{
    BYTE_ORDER_MARK, Content, Document, DocumentSink, Name, PieceView, Skip,
};
use crate::text::fields::{FieldTexts, IndexFields};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// It keeps nothing from piece to piece but its buffers.
#[derive(Debug, Default)]
pub(crate) struct CsvParser {
    fields: Fields,
    index_fields: IndexFields,
    field_texts: FieldTexts,
    seen: SeenFields,
    /// That for a delimiter: its automaton is made once.
    reader: Option<(u8, Reader)>,
    /// The fields of a record without their quotes, and where each ends.
    values: Vec<u8>,
    ends: Vec<usize>,
    text: Vec<u8>,
    /// Where the values in it begin, except for the first.
    parts: Vec<usize>,
    /// A name that was made valid.
    name: String,
}

/// The first record of what is in a file, with its line end: the head.
pub(crate) fn first_record(file: &[u8]) -> &[u8] {
    &file[..Csv::default().next(file, 0).unwrap_or(file.len())]
}

/// The field of a column in the values of a record, each of which ends there.
fn field<'a>(values: &'a [u8], ends: &[usize], column: usize) -> Option<&'a [u8]> {
    let start = if column == 0 { 0 } else { *ends.get(column - 1)? };
    Some(&values[start..*ends.get(column)?])
}

#[derive(Default)]
pub(super) struct CsvHead {
    pub(super) delimiter: u8,
    count: usize,
    name: Option<usize>,
    texts: Vec<usize>,
    /// The fields of these, a bit each.
    taken: u64,
    /// The columns that are fields of the index, in any case, and their numbers.
    of_fields: Vec<(usize, u8)>,
    pub(super) heads: Vec<Vec<u8>>,
}

impl CsvParser {
    /// What was seen since it was last asked.
    pub(super) fn take_seen(&mut self) -> SeenFields {
        std::mem::take(&mut self.seen)
    }

    pub(crate) fn take_fields(&mut self, fields: &Fields) {
        self.fields = fields.clone();
    }

    /// Columns of these names are fields of the index.
    pub(super) fn find_fields(&mut self, fields: &IndexFields) {
        self.index_fields.clone_from(fields);
    }

    /// Gives all records but the head, the first of the file, to `sink`, in order, in linear time.
    pub(crate) fn parse<S: DocumentSink>(
        &mut self,
        head: &[u8],
        piece: PieceView<'_>,
        sink: &mut S,
    ) -> u64 {
        let mut columns = self.columns(head);
        if columns.texts.is_empty() {
            columns.count = 0;
        }
        let mut offset = piece.first_record();
        let mut record = 0;
        let mut machine = Csv::default();
        while offset < piece.bytes.len() {
            let end = machine.next(piece.bytes, offset).unwrap_or(piece.bytes.len());
            let bytes = piece.bytes[offset..end].trim_ascii_end().len();
            let line = piece.line + record;
            record += 1;
            // The head stands where the file begins.
            if piece.offset > 0 || record > 1 {
                self.record(&piece.bytes[offset..end], &columns, offset, bytes, line, sink);
            }
            offset = end;
        }
        for buffer in [&mut self.values, &mut self.text] {
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
        self.field_texts.shrink(KEPT_BUFFER_BYTES);
        self.name.shrink_to(1 << 10);
        record
    }

    fn record<S: DocumentSink>(
        &mut self,
        raw: &[u8],
        columns: &CsvHead,
        offset: usize,
        bytes: usize,
        line: u64,
        sink: &mut S,
    ) {
        if bytes == 0 {
            return;
        }
        if columns.texts.is_empty() {
            return sink.skipped(offset, line, bytes, Skip::NoTextColumn);
        }
        // Files with a mark each may have been joined.
        let raw = raw.strip_prefix(BYTE_ORDER_MARK).unwrap_or(raw);
        self.read(raw, columns.delimiter);
        if self.ends.len() > columns.count {
            let expected = columns.count;
            let found = self.ends.len();
            return sink.skipped(offset, line, bytes, Skip::TooManyFields { expected, found });
        }
        self.text.clear();
        self.parts.clear();
        let (values, ends) = (&self.values, &self.ends);
        let value = |column: usize| field(values, ends, column);
        for text in columns.texts.iter().filter_map(|&column| value(column)) {
            if !self.text.is_empty() {
                self.text.push(b'\n');
                self.parts.push(self.text.len());
            }
            self.text.extend_from_slice(text);
        }
        self.field_texts.clear();
        for &(column, field) in &columns.of_fields {
            self.field_texts.add(field, value(column).unwrap_or_default());
        }
        let name = columns.name.and_then(value).unwrap_or_default().trim_ascii();
        self.seen.taken |= columns.taken;
        if SeenFields::is_looked_at(line) {
            self.seen.record(!name.is_empty());
            self.seen.text(self.text.len());
            for (column, field) in columns.heads.iter().enumerate() {
                let is_field = columns.of_fields.iter().any(|(of_field, _)| *of_field == column);
                let is_text = is_field || columns.texts.contains(&column);
                let is_other = Some(column) != columns.name && !is_text;
                if let Some(value) = value(column).filter(|_| is_other) {
                    self.seen.other(field, value.len(), Some(value));
                }
            }
        }
        sink.parts(&self.parts);
        let name = Name::from_raw(name, &mut self.name);
        let (content, fields) = (Content::Text(&self.text), &self.field_texts);
        sink.document(Document { name, content, fields, offset, bytes, line });
    }

    /// A field of the record that was read last.
    pub(super) fn value(&self, column: usize) -> Option<&[u8]> {
        field(&self.values, &self.ends, column)
    }

    pub(super) fn read(&mut self, mut raw: &[u8], delimiter: u8) {
        if self.reader.as_ref().is_none_or(|(of, _)| *of != delimiter) {
            let mut reader = ReaderBuilder::new();
            reader.delimiter(delimiter).terminator(Terminator::Any(b'\n'));
            self.reader = Some((delimiter, reader.build()));
        }
        let Some((_, reader)) = &mut self.reader else { return };
        reader.reset();
        // No more is written than is read, and no record has more fields than bytes.
        self.values.clear();
        self.values.resize(raw.len() + 1, 0);
        self.ends.clear();
        self.ends.resize(16, 0);
        let mut values = 0;
        let mut ends = 0;
        loop {
            let (result, read, written, ended) =
                reader.read_record(raw, &mut self.values[values..], &mut self.ends[ends..]);
            raw = &raw[read..];
            values += written;
            ends += ended;
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => break,
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::OutputFull => self.values.resize(self.values.len() * 2, 0),
                // With nothing more to read the next call ends the record.
                ReadRecordResult::InputEmpty => {}
            }
        }
        self.ends.truncate(ends);
        self.values.truncate(values);
        if self.values.ends_with(b"\r") {
            self.values.pop();
            let values = self.values.len();
            self.ends.iter_mut().for_each(|end| *end = (*end).min(values));
        }
    }

    pub(super) fn columns(&mut self, head: &[u8]) -> CsvHead {
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let count = |byte: u8| head.iter().filter(|&&other| other == byte).count();
        // Of equal counts the last is the greatest.
        let delimiter = [b'\t', b';', b','].into_iter().max_by_key(|&byte| count(byte));
        let delimiter = delimiter.unwrap_or(b',');
        self.read(head, delimiter);
        let mut columns =
            CsvHead { delimiter, count: self.ends.len(), name: None, ..CsvHead::default() };
        let mut texts = Vec::new();
        let mut start = 0;
        let mut best = usize::MAX;
        for (column, &end) in self.ends.iter().enumerate() {
            let given = self.values[start..end].trim_ascii();
            let lower = given.to_ascii_lowercase();
            columns.heads.push(given.to_vec());
            let field = self.index_fields.number_of(given, false);
            columns.of_fields.extend(field.map(|field| (column, field)));
            let known = |asked: bool| if asked { given } else { &lower[..] };
            if let Some(rank) = self.fields.name_rank(known(!self.fields.names.is_empty()))
                && rank < best
            {
                best = rank;
                columns.name = Some(column);
            }
            let number = self.fields.text_number(known(!self.fields.texts.is_empty()));
            texts.extend(number.map(|number| (column, number)));
            start = end;
        }
        let is_whole = self.fields.is_whole(texts.iter().map(|&(_, number)| number));
        texts.retain(|&(_, number)| !(is_whole && self.fields.is_spare(number)));
        columns.taken = texts.iter().fold(0, |taken, &(_, number)| taken | 1 << number.min(63));
        columns.texts = texts.into_iter().map(|(column, _)| column).collect();
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;

    fn parse(fields: Fields, text: &str) -> KeptDocuments {
        let mut kept = KeptDocuments::default();
        let head = Csv::default().next(text.as_bytes(), 0).unwrap_or(text.len());
        CsvParser { fields, ..CsvParser::default() }.parse(
            &text.as_bytes()[..head],
            PieceView::whole(text.as_bytes()),
            &mut kept,
        );
        kept
    }

    fn rows(kept: &KeptDocuments) -> Vec<(&str, &str)> {
        let text = |text| std::str::from_utf8(text).unwrap();
        kept.documents.iter().map(|d| (d.0.as_deref().unwrap_or(""), text(&d.1))).collect()
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "\u{feff}Title,ID,year,\"Text\"\r\nOne,a,1999,\"x, \"\"y\"\"\nz\"\r\n\r\n,b,2000,5\" wide\r\nshort,c\n";
        let kept = parse(Fields::default(), text);
        assert_eq!(rows(&kept), [("a", "One\nx, \"y\"\nz"), ("b", "5\" wide"), ("c", "short")]);
        assert_eq!((kept.documents[1].2, kept.documents[1].4), (52, 4));
        assert!(kept.skipped.is_empty());
        let kept = parse(Fields::default(), "id;text\n1;a,b,c\n2;x;y\n");
        assert_eq!(rows(&kept), [("1", "a,b,c")]);
        let wrong = Skip::TooManyFields { expected: 2, found: 3 };
        assert_eq!(kept.skipped, [(16, 3, 5, wrong)]);
    }

    #[test]
    fn columns_may_be_asked_for() {
        let fields = Fields { names: vec!["Key".into()], texts: vec!["b".into(), "a".into()] };
        assert_eq!(rows(&parse(fields, "a,id,b,Key\n1,2,3,4\n")), [("4", "1\n3")]);
        let kept = parse(Fields::default(), "x,y\n1,2\n3,4\n");
        assert!(kept.documents.is_empty());
        assert_eq!(kept.skipped.iter().map(|s| s.3).collect::<Vec<_>>(), [Skip::NoTextColumn; 2]);
    }

    #[test]
    fn other_columns_are_taken_where_no_usual_one_is() {
        let kept = parse(Fields::default(), "Doc_ID,abstract,x,title\n1,a,b,c\n");
        assert_eq!(rows(&kept), [("1", "a\nc")]);
        let kept = parse(Fields::default(), "uid,abstract,docno,body\n1,a,2,c\n");
        assert_eq!(rows(&kept), [("2", "c")]);
    }

    #[test]
    fn a_piece_that_is_not_the_first_has_no_head() {
        let mut kept = KeptDocuments::default();
        let piece = PieceView { bytes: b"7,seven\n", offset: 100, line: 1 };
        CsvParser::default().parse(b"id,text\n", piece, &mut kept);
        assert_eq!(rows(&kept), [("7", "seven")]);
    }
}
