//! The parsers of all formats.

use super::csv::CsvParser;
use super::jsonl::JsonlParser;
use super::jsonl::vector::ImpactFactor;
use super::lines::{Between, LinesParser};
use super::mediawiki::MediawikiParser;
use super::noticed::SeenFields;
use super::trec::TrecParser;
use super::warc::WarcParser;
use crate::input::Format;
use crate::input::document::{DocumentSink, PieceView};
use crate::input::formats::{html, plain};
use crate::input::list::InputReading;
use crate::input::streams::encoded::TextEncoding;
use crate::input::turns::Turn;
use crate::text::fields::IndexFields;
use crate::text::html::HtmlText;

pub(crate) struct Parsers {
    jsonl: JsonlParser,
    vectors: JsonlParser,
    tsv: LinesParser,
    html: HtmlText,
    warc: WarcParser,
    trec: TrecParser,
    csv: CsvParser,
    plaintext: LinesParser,
    mediawiki: MediawikiParser,
    index_fields: IndexFields,
}

impl Parsers {
    /// Long bodies of WARC records, of at most `max_document` bytes, take their `turn`.
    pub(crate) fn new(max_document: u64, turn: Turn) -> Self {
        Self {
            jsonl: JsonlParser::new(),
            vectors: JsonlParser::of_vectors(ImpactFactor::OF_WHOLE),
            tsv: LinesParser::new(Between::Tab),
            html: HtmlText::new(),
            warc: WarcParser::taking_turns(max_document, turn),
            trec: TrecParser::default(),
            csv: CsvParser::default(),
            plaintext: LinesParser::new(Between::Space),
            mediawiki: MediawikiParser::default(),
            index_fields: IndexFields::default(),
        }
    }

    /// Gives all records to `sink`; returns how many lines they have, or how many they are where
    /// records take the place of lines. `head` is the first record of the input, where it says what
    /// the others mean; JSON has to be in lines.
    ///
    /// # Panics
    /// If a file of the format is a document.
    pub(crate) fn records<S: DocumentSink>(
        &mut self,
        format: Format,
        records: PieceView<'_>,
        head: &[u8],
        ends_input: bool,
        sink: &mut S,
    ) -> u64 {
        match format {
            Format::Jsonl | Format::Json => self.jsonl.parse(records, sink),
            Format::Vectors => self.vectors.parse(records, sink),
            Format::Tsv => self.tsv.parse(records, sink),
            Format::Plaintext => self.plaintext.parse(records, sink),
            Format::Csv => self.csv.parse(head, records, sink),
            Format::Mediawiki => self.mediawiki.parse(records, sink),
            Format::Warc => self.warc.parse(records, ends_input, sink),
            Format::Trec => {
                self.trec.parse(records, sink);
                0
            }
            Format::Text | Format::Html => unreachable!("a file of these is a document"),
        }
    }

    pub(crate) fn file<S: DocumentSink>(
        &mut self,
        format: Format,
        name: &str,
        file: &[u8],
        sink: &mut S,
    ) {
        match format {
            Format::Html => html::parse(&mut self.html, name, file, sink),
            _ => plain::parse(name, file, sink),
        }
    }

    pub(crate) fn read_as(&mut self, reading: &InputReading) {
        self.jsonl.take_fields(&reading.fields);
        self.vectors.take_fields(&reading.fields);
        self.csv.take_fields(&reading.fields);
        let otherwise = reading.encoding.and_then(TextEncoding::known);
        self.html.expect(otherwise);
        self.warc.html.expect(otherwise);
        self.trec.html.expect(otherwise);
    }

    /// Weights of vectors become impacts by this factor from now on.
    pub(crate) fn weigh_by(&mut self, factor: ImpactFactor) {
        self.vectors.weigh_by(factor);
    }

    /// Documents have the texts of these fields from now on, those in `memory` by other names.
    pub(crate) fn find_fields(&mut self, fields: &IndexFields, memory: bool) {
        if self.index_fields == *fields {
            return;
        }
        self.index_fields = fields.clone();
        let of_memory = memory.then(|| fields.of_memory());
        for html in [&mut self.html, &mut self.warc.html, &mut self.trec.html] {
            html.find_fields(fields);
        }
        self.jsonl.find_fields(of_memory.as_ref().unwrap_or(fields));
        self.csv.find_fields(fields);
        self.mediawiki.find_fields(fields);
    }

    /// What was seen of the fields of records since it was last asked.
    pub(crate) fn take_seen(&mut self) -> SeenFields {
        let mut seen = self.jsonl.take_seen();
        seen.add(self.csv.take_seen(), true);
        seen.add(self.vectors.take_seen(), true);
        seen.has_head = std::mem::take(&mut self.tsv.has_head);
        seen
    }

    /// Gives back the room that long bodies have taken: what came of them is parsed.
    pub(crate) fn give_back(&mut self) {
        self.warc.give_back();
    }
}
