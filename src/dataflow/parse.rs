//! Parses pieces: finds documents, tokens and terms, and regroups them, as postings or as tokens, by
//! owner and trie collection.
//!
//! - In: pieces, each at the worker that it was assigned to. Out: one group for each owner, for
//!   its index operator, and the piece's documents; both at the piece's position, at once.
//! - Memory: the memo's bound, and scratch in the size of a piece; of long documents a few at a time
//!   ([`turns`](crate::input::turns)).
//! - Work per activation: one piece.

use super::build_context::{Build, Progress};
use super::control::Guard;
use super::decompress::Assigned;
use super::local::Local;
use crate::dictionary::hash::hash;
use crate::dictionary::owners::Owners;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::index::documents::Location;
use crate::input::csv::CsvParser;
use crate::input::document::{self, Document, Name, Sink, Skip};
use crate::input::documents::Batch;
use crate::input::fields::Fields;
use crate::input::html::HtmlParser;
use crate::input::jsonl::JsonlParser;
use crate::input::mediawiki::MediawikiParser;
use crate::input::piece::{Piece, Skipped};
use crate::input::plaintext::PlaintextParser;
use crate::input::splits::Plan;
use crate::input::trec::TrecParser;
use crate::input::tsv::TsvParser;
use crate::input::turns::{Turn, Turns};
use crate::input::warc::WarcParser;
use crate::input::{Format, json_values, plain};
use crate::rebuild::wanted::Wanted;
use crate::text::analysis::Analysis;
use std::collections::VecDeque;
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// Groups by owner, and batches of documents.
pub type Parsed<'scope, G> =
    (StreamVec<'scope, u64, Local<G>>, StreamVec<'scope, u64, Local<Batch>>);

/// See the [module](self).
pub trait Parse<'scope> {
    /// Parses; groups are as `R` makes them.
    fn parse<R: Regroup + 'static>(self, build: &Arc<Build>) -> Parsed<'scope, R::Group>;
}

impl<'scope> Parse<'scope> for StreamVec<'scope, u64, Assigned> {
    fn parse<R: Regroup + 'static>(self, build: &Arc<Build>) -> Parsed<'scope, R::Group> {
        let build = build.clone();
        let scope = self.scope();
        let worker = scope.index();
        let mut builder = OperatorBuilder::new("Parse".to_owned(), scope);
        let to_parser = Exchange::new(|Local((parser, _)): &Assigned| *parser as u64);
        let mut input = builder.new_input(self, to_parser);
        let (groups_out, groups) = builder.new_output();
        let (batches_out, batches) = builder.new_output();
        let mut groups_out = OutputBuilder::from(groups_out);
        let mut batches_out = OutputBuilder::from(batches_out);
        let activator = scope.activator_for(builder.operator_info().address);
        builder.build(move |_| {
            let guard = Guard::new(&build.control, "Parse", worker);
            let mut waiting = VecDeque::new();
            let mut parser = {
                let memo_bytes = build.budget.memo() as usize;
                let analysis = build.analysis.clone();
                let fields = &build.plan.fields;
                let owners = build.owners.clone();
                let turns = build.wiring.turns.clone();
                Parser::<R>::new(analysis, owners, memo_bytes, (build.max_document, fields), turns)
            };
            move |_frontiers| {
                input.for_each(|cap, data| {
                    for Local((_, piece)) in data.drain(..) {
                        waiting.push_back((cap.retain(0), cap.retain(1), piece));
                    }
                });
                let Some((groups_cap, batches_cap, piece)) = waiting.pop_front() else { return };
                let bytes = piece.bytes.len();
                let parsed =
                    guard.work(|| Ok(parser.parse(&build.plan, build.wanted.as_ref(), piece)));
                let Some((groups, batch)) = parsed else { return };
                let parsed =
                    groups.iter().map(PieceGroup::memory_bytes).sum::<usize>() + batch.bytes();
                build.wiring.flow.parsed(worker, bytes, parsed);
                Progress::add(&build.progress.parsed_bytes, bytes as u64);
                Progress::add(&build.progress.documents, u64::from(batch.documents()));
                let mut output = groups_out.activate();
                output.session(&groups_cap).give_iterator(groups.into_iter().map(Local));
                let mut output = batches_out.activate();
                output.session(&batches_cap).give(Local(batch));
                if !waiting.is_empty() {
                    activator.activate();
                }
            }
        });
        (groups, batches)
    }
}

/// What one worker needs to parse pieces of any format.
pub(super) struct Parser<R> {
    max_document: u64,
    regroup: R,
    /// Room for long pieces; the decoder of WARC bodies has a turn of its own.
    turn: Turn,
    jsonl: JsonlParser,
    tsv: TsvParser,
    html: HtmlParser,
    warc: WarcParser,
    trec: TrecParser,
    csv: CsvParser,
    plaintext: PlaintextParser,
    mediawiki: MediawikiParser,
}

impl<R: Regroup> Parser<R> {
    pub(super) fn new(
        analysis: Analysis,
        owners: Arc<Owners>,
        memo_bytes: usize,
        (max_document, fields): (u64, &Fields),
        turns: Arc<Turns>,
    ) -> Self {
        Self {
            max_document,
            turn: Turn::new(turns.clone()),
            regroup: R::new(analysis, owners, memo_bytes),
            jsonl: JsonlParser::with_fields(fields.clone()),
            tsv: TsvParser::new(),
            html: HtmlParser::new(),
            warc: WarcParser::taking_turns(max_document, Turn::new(turns)),
            trec: TrecParser::new(),
            csv: CsvParser::new(fields.clone()),
            plaintext: PlaintextParser::new(),
            mediawiki: MediawikiParser::new(),
        }
    }

    /// Indexes the documents of a piece that are `wanted`, or all.
    pub(super) fn parse(
        &mut self,
        plan: &Plan,
        wanted: Option<&Wanted>,
        mut piece: Piece,
    ) -> (Vec<R::Group>, Batch) {
        // A WARC record is mostly passed over, or inflated, for which the decoder takes its turn.
        if piece.format != Format::Warc {
            self.turn.take(piece.bytes.len());
        }
        let mut batch = Batch::new(piece.input, piece.skipped);
        let mut sink = PieceSink {
            regroup: &mut self.regroup,
            batch: &mut batch,
            offset: piece.offset,
            max_document: self.max_document,
            wanted,
        };
        if piece.format == Format::Json {
            json_values::to_lines(&mut piece.bytes);
        }
        let records = document::Piece { bytes: &piece.bytes, offset: piece.offset, line: 1 };
        let lines = || memchr::memchr_iter(b'\n', &piece.bytes).count() as u64;
        match piece.format {
            Format::Jsonl | Format::Json => {
                self.jsonl.parse(records, &mut sink);
                batch.lines = lines();
            }
            Format::Tsv => {
                self.tsv.parse(records, &mut sink);
                batch.lines = lines();
            }
            Format::Plaintext => {
                self.plaintext.parse(records, &mut sink);
                batch.lines = lines();
            }
            Format::Csv => batch.lines = self.csv.parse(&piece.head, records, &mut sink),
            Format::Mediawiki => batch.lines = self.mediawiki.parse(records, &mut sink),
            // Records take the place of lines.
            Format::Warc => batch.lines = self.warc.parse(records, piece.ends_input, &mut sink),
            Format::Trec => self.trec.parse(records, &mut sink),
            Format::Text | Format::Html => {
                sink.offset = 0;
                let mut start = 0;
                for &(input, end) in &piece.files {
                    sink.batch.input = input;
                    let name = &plan.inputs[input as usize].name;
                    let file = &piece.bytes[start..end];
                    match piece.format {
                        Format::Html => self.html.parse(name, file, &mut sink),
                        _ => plain::parse(name, file, &mut sink),
                    }
                    start = end;
                }
            }
        }
        let groups = self.regroup.finish();
        self.turn.give_back();
        self.warc.give_back();
        batch.counts = groups.first().map(|group| group.counts().clone()).unwrap_or_default();
        (groups, batch)
    }
}

/// Hands documents on to be regrouped and notes them for the documents' table.
struct PieceSink<'a, R> {
    regroup: &'a mut R,
    batch: &'a mut Batch,
    offset: u64,
    max_document: u64,
    /// The documents that are indexed; all of them if nothing is said.
    wanted: Option<&'a Wanted>,
}

impl<R: Regroup> Sink for PieceSink<'_, R> {
    #[inline]
    fn document(&mut self, document: Document<'_>) {
        if document.bytes as u64 > self.max_document {
            self.batch.skipped.push(Skipped {
                line: document.line,
                ..Skipped::too_long(
                    self.batch.input,
                    self.offset + document.offset as u64,
                    document.bytes as u64,
                    self.max_document,
                )
            });
            return;
        }
        let offset = self.offset + document.offset as u64;
        if self.wanted.is_some_and(|wanted| !wanted.contains(self.batch.input, offset)) {
            return;
        }
        let length = self.regroup.document(document.text);
        let content = hash(document.text);
        let location = Location { offset, bytes: document.bytes as u32, input: self.batch.input };
        let name = match document.name {
            Name::Given(name) => name,
            Name::Missing => "",
        };
        self.batch.push(name, document.line, length, location, content);
    }

    fn skipped(&mut self, offset: usize, line: u64, _bytes: usize, reason: Skip) {
        self.batch.skipped.push(Skipped {
            input: self.batch.input,
            offset: self.offset + offset as u64,
            line,
            reason: reason.reason(),
            detail: reason.to_string(),
        });
    }
}
