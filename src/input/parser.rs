//! Parses pieces: finds their documents, with the terms that a [`Regroup`] makes of their texts, in
//! any format.

use super::document::{self, Content, Document, DocumentSink, Skip};
use super::piece::Piece;
use super::splits::InputPlan;
use super::turns::{Turn, Turns};
use super::wanted::{NextKnown, WantedInput};
use crate::crew::lock;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::index::columns::PieceColumns;
use crate::index::documents::Location;
use crate::index::documents::pieces::{DocumentsRoom, LargeDocument, PieceDocuments, Skipped};
use crate::index::texts::PieceTexts;
use crate::input::Format;
use crate::input::formats::json_values;
use crate::input::formats::noticed::{NotUtf8, SeenFields};
use crate::input::formats::parsers::Parsers;
use crate::input::formats::values::ValuesParser;
use crate::input::list::InputReading;
use crate::order::DOCUMENT_TIMES;
use crate::text::html::Page;
use crate::text::unspaced::LetterCounts;
use encoding_rs::Encoding;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The letters of this many texts of a piece that are indexed are counted, and this many bytes of
/// each.
const SAMPLED_TEXTS: usize = 16;
const SAMPLED_BYTES: usize = 1024;

pub(crate) struct PieceParser<R> {
    max_document: u64,
    regroup: R,
    /// Room for long pieces; the decoder of WARC bodies has a turn of its own.
    turn: Turn,
    parsers: Parsers,
    /// How the last piece's input was read.
    reading: InputReading,
    not_utf8: NotUtf8,
    /// Once a piece was parsed, if documents have values.
    values: Option<Option<Box<ValuesParser>>>,
    /// What the next piece may need: about as much as the last one.
    room: DocumentsRoom,
}

impl<R: Regroup> PieceParser<R> {
    /// A document of more than `max_document` bytes is passed over.
    pub(crate) fn new(mut regroup: R, max_document: u64, turns: Arc<Turns>) -> Self {
        regroup.hold(turns.document_bytes());
        let turn = Turn::new(turns.clone());
        let parsers = Parsers::new(max_document, Turn::new(turns));
        let (reading, not_utf8, values, room) = Default::default();
        Self { max_document, regroup, turn, parsers, reading, not_utf8, values, room }
    }

    /// Indexes the documents of a piece that are `wanted`, or all. What is left of the piece is its
    /// buffer.
    pub(crate) fn parse(
        &mut self,
        plan: &InputPlan,
        wanted: Option<&WantedInput>,
        piece: &mut Piece,
    ) -> (Vec<R::Group>, PieceDocuments) {
        let reading = plan.inputs.reading(piece.input as usize);
        if self.reading != *reading {
            self.parsers.read_as(reading);
            self.reading = reading.clone();
        }
        if let Some(factor) = plan.factor {
            self.parsers.weigh_by(factor);
        }
        self.parsers.find_fields(&plan.index_fields, plan.memory);
        self.turn.begin();
        // A WARC record is mostly passed over, or inflated, for which the decoder takes its turn.
        if piece.format != Format::Warc {
            self.turn.take(piece.bytes.len());
        }
        let mut batch = PieceDocuments::new(piece.input, std::mem::take(&mut piece.skipped));
        batch.reserve(self.room);
        let values = self.values.get_or_insert_with(|| {
            ValuesParser::new(plan.columns.clone(), plan.store_fields.clone(), plan.memory)
                .map(Box::new)
        });
        batch.columns = values.as_ref().map(|_| PieceColumns::new(plan.columns.len()));
        batch.texts = PieceTexts::of(usize::from(plan.store) + plan.store_fields.len());
        let mut sink = PieceSink {
            regroup: &mut self.regroup,
            batch: &mut batch,
            offset: piece.offset,
            max_document: self.max_document,
            wanted,
            next: NextKnown::default(),
            not_utf8: &mut self.not_utf8,
            letters: &plan.letters,
            unsampled: SAMPLED_TEXTS,
            store: plan.store,
            values: values.as_deref_mut().map(|parser| PieceValues {
                parser,
                format: piece.format,
                head: &piece.head,
                bytes: &[],
            }),
        };
        if piece.format == Format::Json {
            json_values::to_lines(&mut piece.bytes);
        }
        if piece.format.file_is_document() {
            sink.offset = 0;
            let mut start = 0;
            for &(input, end) in &piece.files {
                sink.batch.input = input;
                let name = &*plan.inputs.name(input as usize);
                let file = &piece.bytes[start..end];
                sink.values.iter_mut().for_each(|values| values.bytes = file);
                self.parsers.file(piece.format, name, file, &mut sink);
                start = end;
            }
        } else {
            let records =
                document::PieceView { bytes: &piece.bytes, offset: piece.offset, line: 1 };
            let head = &*piece.head;
            let ends = piece.ends_input;
            sink.values.iter_mut().for_each(|values| values.bytes = &piece.bytes);
            let lines = self.parsers.records(piece.format, records, head, ends, &mut sink);
            batch.lines = lines;
        }
        self.room = batch.room();
        let groups = self.regroup.finish();
        self.turn.give_back();
        self.parsers.give_back();
        self.turn.end();
        batch.counts = groups.first().map(PieceGroup::counts).unwrap_or_default();
        (groups, batch)
    }

    /// The documents that are not UTF-8 since it was last asked.
    pub(crate) fn take_not_utf8(&mut self) -> NotUtf8 {
        std::mem::take(&mut self.not_utf8)
    }

    /// What was seen of the fields of records since it was last asked.
    pub(crate) fn take_seen(&mut self) -> SeenFields {
        self.parsers.take_seen()
    }
}

/// Hands documents on to be regrouped and notes them for the documents' table.
struct PieceSink<'a, R> {
    regroup: &'a mut R,
    batch: &'a mut PieceDocuments,
    offset: u64,
    max_document: u64,
    /// The documents that are indexed; all of them if nothing is said.
    wanted: Option<&'a WantedInput>,
    /// Where the next document is among those that are known.
    next: NextKnown,
    not_utf8: &'a mut NotUtf8,
    letters: &'a Mutex<LetterCounts>,
    /// Texts that the sample may still have of this piece.
    unsampled: usize,
    /// Whether texts are kept.
    store: bool,
    /// Of documents that have values.
    values: Option<PieceValues<'a>>,
}

/// What reads the values of the documents of a piece, and where their records are.
struct PieceValues<'a> {
    parser: &'a mut ValuesParser,
    format: Format,
    head: &'a [u8],
    bytes: &'a [u8],
}

impl<R> PieceSink<'_, R> {
    #[cold]
    fn note_not_utf8(&mut self, offset: u64) {
        let first = BTreeSet::from([(self.batch.input, offset)]);
        self.not_utf8.add(NotUtf8 { documents: 1, first });
    }
}

impl<R: Regroup> DocumentSink for PieceSink<'_, R> {
    #[inline]
    fn page(&mut self, page: &Page<'_>) {
        self.regroup.page(self.batch.input, page);
    }

    #[inline]
    fn parts(&mut self, starts: &[usize]) {
        self.regroup.parts(starts);
    }

    #[inline]
    fn document(&mut self, document: Document<'_>) {
        if document.bytes as u64 > self.max_document {
            let bytes = document.bytes as u64;
            let offset = self.offset + document.offset as u64;
            let long = Skipped::too_long(self.batch.input, offset, bytes, self.max_document);
            let long = Skipped { line: document.line, ..long };
            self.batch.skipped.push(long.reason, || long);
            return;
        }
        let offset = self.offset + document.offset as u64;
        let location = Location { offset, bytes: document.bytes as u32, input: self.batch.input };
        let name = document.name.or_empty();
        if name.is_empty() && matches!(self.wanted, Some(WantedInput::Named)) {
            let nameless = Skipped::nameless(self.batch.input, offset);
            let nameless = Skipped { line: document.line, ..nameless };
            self.batch.skipped.push(nameless.reason, || nameless);
            return;
        }
        let records = self.values.as_ref().map(|values| values.bytes);
        let hash = || document.hash(records);
        // A device hashes texts alone.
        let hashes_later = self.regroup.hashes_later() && records.is_none();
        let content = match self.wanted {
            Some(WantedInput::At(places)) if !places.contains(location.input, offset) => return,
            None | Some(WantedInput::Named | WantedInput::At(_)) => (!hashes_later).then(hash),
            Some(WantedInput::None) => {
                self.batch.seen.push(name, document.line, location, hash());
                return;
            }
            Some(WantedInput::Unknown(known)) => {
                let named = known.look_for(&self.next, name.as_bytes());
                let content = hash();
                self.batch.seen.push(name, document.line, location, content);
                if known.contains(&mut self.next, named, content) {
                    return;
                }
                (!hashes_later).then_some(content)
            }
        };
        if let Content::Text(text) = document.content {
            if !text.is_ascii() && Encoding::utf8_valid_up_to(text) < text.len() {
                self.note_not_utf8(offset);
            }
            if self.unsampled > 0 {
                self.unsampled -= 1;
                lock(self.letters).add(&text[..text.len().min(SAMPLED_BYTES)]);
            }
        }
        let length = match document.content {
            Content::Text(text) => self.regroup.document_in_fields(text, document.fields),
            Content::Vector(vector) => self.regroup.vector(vector),
        };
        if let Some(takes) = self.regroup.over() {
            let bytes = document.bytes as u64;
            let name = name.to_string();
            let large = LargeDocument { input: self.batch.input, offset, bytes, takes, name };
            self.batch.skipped.refuse(large);
        }
        self.batch.push(name, document.line, location, content.map(|content| (length, content)));
        self.batch.push_fields(self.regroup.field_lengths());
        let PieceDocuments { columns, texts, .. } = &mut *self.batch;
        if let Some(texts) = texts.as_mut().filter(|_| self.store) {
            texts.push(document.content.bytes());
        }
        if let (Some(of), Some(values)) = (&mut self.values, columns) {
            let record = document.record(of.bytes);
            of.parser.read((of.format, of.head), record, &location, values, texts.as_mut());
        }
    }

    fn large(&mut self, offset: usize, bytes: u64, name: &str) {
        let offset = self.offset + offset as u64;
        let PieceDocuments { input, skipped, .. } = &mut *self.batch;
        let name = name.to_string();
        let takes = DOCUMENT_TIMES * bytes;
        skipped.refuse(LargeDocument { input: *input, offset, bytes, takes, name });
    }

    fn skipped(&mut self, offset: usize, line: u64, _bytes: usize, reason: Skip) {
        let PieceDocuments { input, skipped, .. } = &mut *self.batch;
        let kind = reason.reason();
        let described = || Skipped {
            input: *input,
            offset: self.offset + offset as u64,
            line,
            reason: kind,
            detail: reason.to_string(),
        };
        match reason {
            Skip::Fraction => skipped.end_with(described()),
            _ => skipped.push(kind, described),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::device::texts::TextGatherer;
    use crate::input::wanted::WantedDocuments;

    #[test]
    fn a_text_that_is_not_indexed_leaves_nothing_behind() {
        let lines = [
            r#"{"id":"a","text":"one\ttext"}"#,
            r#"{"id":"b","text":"not\twanted"}"#,
            r#"{"id":"c","text":"far too long, by some letters"}"#,
            r#"{"id":"d","text":"broken\"#,
            r#"{"id":"e"}"#,
            r#"{"id":"f","text":"other"}"#,
        ];
        let file = lines.join("\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, &file).unwrap();
        let plan = InputPlan::new(&[path], None).unwrap();
        let mut wanted = WantedDocuments::new(1);
        let mut offset = 0;
        for line in lines {
            if !line.contains("not") {
                wanted.push(0, offset);
            }
            offset += line.len() as u64 + 1;
        }
        let wanted = WantedInput::At(wanted);
        let most = lines[2].len() as u64 - 1;
        let texts = TextGatherer::new(Arc::default());
        let mut parser = PieceParser::new(texts, most, Arc::default());
        // The second piece has room from the first.
        for (wanted, expected, starts) in [
            (Some(&wanted), "one\ttext  other ", vec![0, 9, 10]),
            (None, "one\ttext not\twanted  other ", vec![0, 9, 20, 21]),
        ] {
            let mut piece = Piece {
                input: 0,
                format: Format::Jsonl,
                offset: 0,
                bytes: file.as_bytes().into(),
                files: Vec::new(),
                head: Arc::default(),
                ends_input: true,
                skipped: Default::default(),
            };
            let (groups, batch) = parser.parse(&plan, wanted, &mut piece);
            assert_eq!(
                (batch.documents() as usize, batch.skipped.first().len()),
                (starts.len(), 2)
            );
            assert_eq!(*groups[0].bytes, *expected.as_bytes());
            assert_eq!(groups[0].starts, starts);
        }
    }
}
