//! Has the texts of a batch on the device: as they are, or as lines, in which the device finds
//! names and texts. The host parses a piece with lines that the device cannot read, and sends the
//! texts as lines that it can.

use super::{BatchLayout, Finder};
use crate::crew::lock;
use crate::dictionary::device::lines::DeviceLines;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::classes::CharacterClasses;
use crate::gpu::invert::inverter::spent;
use crate::gpu::invert::inverter::typed::{Typed, part};
use crate::gpu::invert::machine::{ArrayReading, DeviceMemory};
use crate::gpu::invert::steps::lines::{LinesOf, count_lines, end_lines, read_lines, write_lines};
use crate::gpu::invert::steps::{self, COUNTERS, InvertArray};
use crate::gpu::invert::text::{PieceText, TILE_BYTES, padding, parts};
use crate::index::documents::pieces::PieceDocuments;
use crate::index::documents::pieces::lines::{ColumnsToFill, LineColumns};
use std::sync::Mutex;
use std::time::Instant;

/// Bytes of text that are read for a form, at first; they hold most forms that a device lacks.
const WINDOW: usize = 1 << 10;
/// A form that ends so close (two characters) to the end of what is read may go on behind it.
const MARGIN: usize = 8;
/// With more odd tokens all of the text is read.
const MOST_WINDOWS: usize = 1 << 12;

/// The lines of a piece as they came, or as the host has made them, with their documents.
enum PieceLines<'a> {
    Given(&'a PieceText),
    Made(Box<(PieceText, PieceDocuments)>),
}

impl PieceLines<'_> {
    fn text(&self) -> &PieceText {
        match self {
            Self::Given(text) => text,
            Self::Made(made) => &made.0,
        }
    }

    fn of(&self) -> DeviceLines {
        self.text().lines.expect("a batch with lines is nothing but lines")
    }
}

/// What a device has found in the lines of a batch; read when there is something else to wait for.
pub(super) struct LinesRead<'a> {
    pieces: Vec<PieceLines<'a>>,
    piece_starts: Vec<u32>,
    columns: LineColumns,
}

pub(super) enum BroughtTexts<'a> {
    Host(&'a [PieceText]),
    Device(LinesRead<'a>),
}

pub(super) struct BroughtBatch<'a> {
    pub(super) layout: BatchLayout,
    pub(super) texts: BroughtTexts<'a>,
}

impl<'a> BroughtBatch<'a> {
    fn of_lines(pieces: Vec<PieceLines<'a>>, read: &LinesFound) -> Self {
        let lines = read.of.lines;
        let bytes = read.text_bytes as usize;
        let memory = &pieces[0].text().bytes;
        let columns = LineColumns::beside(memory, lines as usize, read.name_bytes as usize);
        let mut piece_starts = vec![0; pieces.len() + 1];
        piece_starts[pieces.len()] = lines;
        let padded = bytes.next_multiple_of(TILE_BYTES);
        let layout = BatchLayout { bytes, padded, documents: lines, piece_starts: Vec::new() };
        Self { layout, texts: BroughtTexts::Device(LinesRead { pieces, piece_starts, columns }) }
    }

    pub(super) fn readings(&mut self) -> Vec<ArrayReading<'_>> {
        let BroughtTexts::Device(LinesRead { piece_starts, columns, .. }) = &mut self.texts else {
            return Vec::new();
        };
        let pieces = piece_starts.len() - 1;
        let is_pinned = columns.is_pinned();
        let ColumnsToFill { ends, name_lengths, names } = columns.columns();
        vec![
            part(InvertArray::PieceStarts, 0, &mut piece_starts[..pieces]),
            ArrayReading { is_pinned, ..part(InvertArray::LineEnds, 0, ends) },
            ArrayReading { is_pinned, ..part(InvertArray::NameLengths, 0, name_lengths) },
            ArrayReading { is_pinned, ..part(InvertArray::Names, 0, names) },
        ]
    }

    /// With the documents of each piece, if they were not known before.
    pub(super) fn read(self) -> (BatchLayout, Vec<Option<PieceDocuments>>) {
        let Self { mut layout, texts } = self;
        match texts {
            BroughtTexts::Host(_) => (layout, Vec::new()),
            BroughtTexts::Device(LinesRead { pieces, mut piece_starts, columns }) => {
                for (n, lines) in pieces.iter().enumerate().rev() {
                    // The device says nothing of pieces without lines.
                    if lines.text().bytes.is_empty() {
                        piece_starts[n] = piece_starts[n + 1];
                    }
                }
                let of: Vec<DeviceLines> = pieces.iter().map(PieceLines::of).collect();
                let documents = PieceDocuments::of_batch(columns, &of, &piece_starts[..of.len()]);
                let documents = pieces.into_iter().zip(documents).map(|(lines, found)| {
                    Some(match lines {
                        PieceLines::Given(_) => found,
                        PieceLines::Made(made) => made.1,
                    })
                });
                layout.piece_starts = piece_starts;
                (layout, documents.collect())
            }
        }
    }
}

/// What a device says of lines: which pieces are odd, and if none is, the bytes of names and texts.
#[derive(Default)]
struct LinesFound {
    of: LinesOf,
    odd: Vec<u32>,
    name_bytes: u32,
    text_bytes: u32,
}

/// Where each piece begins among the bytes of all, and the end.
fn places<'a>(pieces: impl Iterator<Item = &'a PieceText>) -> Vec<u32> {
    let mut places = vec![0];
    places.extend(pieces.scan(0, |end, piece| {
        *end += piece.bytes.len() as u32;
        Some(*end)
    }));
    places
}

impl Finder {
    /// Has the texts and where documents begin on the device; if `text` has them, old ones go back.
    pub(super) fn bring<'a>(
        &mut self,
        pieces: &'a [PieceText],
        text: Option<DeviceMemory>,
    ) -> Result<BroughtBatch<'a>, GpuError> {
        let are_lines = pieces.iter().any(|piece| piece.lines.is_some());
        let array = if are_lines { InvertArray::Raw } else { InvertArray::Text };
        match text {
            Some(text) => {
                let unpinned = pieces.iter().filter(|piece| !piece.bytes.is_pinned());
                self.work.unpinned += unpinned.map(|piece| piece.bytes.len() as u64).sum::<u64>();
                let old = self.machine.adopt(array, text)?;
                (self.back)(old);
            }
            None => self.upload(array, pieces.iter())?,
        }
        if are_lines {
            return self.bring_lines(pieces);
        }
        let (layout, starts) = BatchLayout::of(pieces.iter());
        self.put(InvertArray::DocumentStarts, 0, &starts)?;
        Ok(BroughtBatch { layout, texts: BroughtTexts::Host(pieces) })
    }

    /// The same of lines, which are on the device.
    fn bring_lines<'a>(&mut self, pieces: &'a [PieceText]) -> Result<BroughtBatch<'a>, GpuError> {
        let began = Instant::now();
        let mut lines: Vec<PieceLines<'a>> = pieces.iter().map(PieceLines::Given).collect();
        // It is the same in all of them.
        let longest = lines.iter().map(|lines| lines.of().longest).min().unwrap_or(0);
        let mut read = self.read_lines(&lines, longest)?;
        if read.odd.iter().any(|&odd| odd != 0) {
            self.parse(&mut lines, &read.odd);
            if lines.iter().all(|lines| lines.text().bytes.is_empty()) {
                // None of them is a document.
                return Ok(BroughtBatch::of_lines(lines, &LinesFound::default()));
            }
            self.upload(InvertArray::Raw, lines.iter().map(PieceLines::text))?;
            // Those left are no longer than `longest`, and those that were made are right.
            read = self.read_lines(&lines, u32::MAX)?;
            assert!(read.odd.iter().all(|&odd| odd == 0), "the host makes lines of one shape");
        }
        self.write_lines(&read)?;
        self.work.seconds.lines += spent(began);
        Ok(BroughtBatch::of_lines(lines, &read))
    }

    fn upload<'a>(
        &mut self,
        array: InvertArray,
        pieces: impl Iterator<Item = &'a PieceText>,
    ) -> Result<(), GpuError> {
        let began = Instant::now();
        let parts = parts(pieces);
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > 0 {
            self.reserve::<u8>(array, bytes as u64)?;
            self.machine.write(array, 0, &parts)?;
        }
        self.work.seconds.upload += spent(began);
        Ok(())
    }

    /// Parses odd pieces on the host, by several threads.
    fn parse(&mut self, lines: &mut [PieceLines<'_>], odd: &[u32]) {
        let odd = lines.iter_mut().zip(odd).filter(|(_, odd)| **odd != 0);
        let odd: Vec<_> = odd.map(|(lines, _)| Mutex::new(lines)).collect();
        self.work.parsed_again += odd.len() as u64;
        let parse = self.parse.clone();
        let work = |n: usize| {
            let mut lines = lock(&odd[n]);
            let of = lines.of();
            let (text, documents) = parse(lines.text(), &of);
            **lines = PieceLines::Made(Box::new((text.as_lines(&of), documents)));
        };
        self.crew.share(self.threads - 1, (0..odd.len()).collect(), work);
    }

    fn read_lines(
        &mut self,
        pieces: &[PieceLines<'_>],
        longest: u32,
    ) -> Result<LinesFound, GpuError> {
        let places = places(pieces.iter().map(PieceLines::text));
        let bytes = places[pieces.len()] as usize;
        let of: Vec<DeviceLines> = pieces.iter().map(PieceLines::of).collect();
        let shapes: Vec<u32> = of.iter().flat_map(|lines| lines.shape.words()).collect();
        let mut odd = vec![0u32; pieces.len()];
        self.put(InvertArray::PiecePlaces, 0, &places)?;
        self.put(InvertArray::Shapes, 0, &shapes)?;
        self.put(InvertArray::OddPieces, 0, &odd)?;
        self.put(InvertArray::Counters, 0, &[0u32; COUNTERS])?;
        let are_alike = of.iter().all(|lines| lines.shape == of[0].shape);
        let tiles = steps::text_tiles(bytes.next_multiple_of(TILE_BYTES));
        self.reserve_tiles(tiles)?;
        self.machine.run(&count_lines(tiles))?;
        let lines = self.sum()?;
        let count = u64::from(lines);
        for array in [InvertArray::LineEnds, InvertArray::LineTexts, InvertArray::LineNames] {
            self.reserve::<u32>(array, count)?;
        }
        for array in [InvertArray::NamePlaces, InvertArray::DocumentStarts] {
            self.reserve::<u32>(array, count + 1)?;
        }
        self.reserve::<u8>(InvertArray::NameLengths, count)?;
        self.reserve::<u32>(InvertArray::PieceStarts, of.len() as u64)?;
        self.reserve::<u32>(InvertArray::Sums, steps::sum_words(lines + 1).into())?;
        let of = LinesOf { lines, pieces: of.len() as u32, are_alike, longest };
        self.machine.run(&[end_lines(tiles)])?;
        self.machine.run(&read_lines(of))?;
        let mut name_bytes = [0u32];
        let mut text_bytes = [0u32];
        self.machine.read(&mut [
            part(InvertArray::OddPieces, 0, &mut odd),
            part(InvertArray::NamePlaces, count, &mut name_bytes),
            part(InvertArray::DocumentStarts, count, &mut text_bytes),
        ])?;
        let [name_bytes] = name_bytes;
        let [text_bytes] = text_bytes;
        Ok(LinesFound { of, odd, name_bytes, text_bytes })
    }

    fn write_lines(&mut self, read: &LinesFound) -> Result<(), GpuError> {
        let bytes = read.text_bytes as usize;
        self.reserve::<u8>(InvertArray::Text, bytes.next_multiple_of(TILE_BYTES) as u64)?;
        self.reserve::<u8>(InvertArray::Names, read.name_bytes.into())?;
        self.machine.run(&[write_lines(read.of)])?;
        self.machine.write(InvertArray::Text, bytes as u64, &[padding(bytes)])?;
        self.work.lines += u64::from(read.of.lines);
        Ok(())
    }

    pub(super) fn forms_at(
        &mut self,
        batch: &BroughtBatch<'_>,
        starts: &[u32],
    ) -> Result<Vec<Vec<u8>>, GpuError> {
        let classes = CharacterClasses::of(self.tokenizer);
        let bytes = batch.layout.bytes;
        match &batch.texts {
            BroughtTexts::Host(pieces) => {
                let places = places(pieces.iter());
                let form = |&start: &u32| {
                    let piece = places.partition_point(|&place| place <= start) - 1;
                    let at = (start - places[piece]) as usize;
                    classes.form_at(&pieces[piece].bytes, at).to_vec()
                };
                Ok(starts.iter().map(form).collect())
            }
            BroughtTexts::Device(_) if starts.len() > MOST_WINDOWS => {
                let text: Vec<u8> = self.get(InvertArray::Text, 0, bytes)?;
                let form = |&start: &u32| classes.form_at(&text, start as usize).to_vec();
                Ok(starts.iter().map(form).collect())
            }
            BroughtTexts::Device(_) => starts
                .iter()
                .map(|&start| {
                    let at = start as usize;
                    let mut window = WINDOW;
                    loop {
                        let here = window.min(bytes - at);
                        let text: Vec<u8> = self.get(InvertArray::Text, u64::from(start), here)?;
                        let form = classes.form_at(&text, 0);
                        if here < window || form.len() + MARGIN <= here {
                            return Ok(form.to_vec());
                        }
                        window *= 8;
                    }
                })
                .collect(),
        }
    }
}
