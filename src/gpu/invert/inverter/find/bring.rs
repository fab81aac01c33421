//! How do the texts of a batch get to where their forms are found? As they are, or as lines, in
//! which the device finds names and texts. If there are lines that it cannot read and the host
//! cannot [mend](super::super::mend), or only some of the pieces are lines, the host makes texts of
//! them.

use super::{Finder, Layout};
use crate::crew::lock;
use crate::dictionary::device::lines::{DeviceLines, MOST_MENDED};
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::classes::Classes;
use crate::gpu::invert::inverter::spent;
use crate::gpu::invert::inverter::typed::{Typed, part};
use crate::gpu::invert::machine::{DeviceMemory, Reading};
use crate::gpu::invert::steps::Step;
use crate::gpu::invert::steps::lines::{LinesOf, count_lines, end_lines, read_lines, write_lines};
use crate::gpu::invert::steps::{self, COUNTERS, IRREGULAR_LINES, InvertArray};
use crate::gpu::invert::text::{PieceText, TILE_BYTES, padding, parts};
use crate::index::documents::pieces::PieceDocuments;
use crate::index::documents::pieces::lines::LineColumns;
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Instant;

/// Bytes of a text that are looked at where one form begins, at first. They hold most forms that a
/// device does not take.
const WINDOW: usize = 1 << 10;
/// A form that ends so close to the end of what is looked at may go on behind it: two characters.
const MARGIN: usize = 8;
/// Where there are more odd tokens all of the text is looked at.
const MOST_WINDOWS: usize = 1 << 12;

/// A piece as it came, or what the host has made of it.
pub(super) enum Whose<'a> {
    Given(&'a PieceText),
    Made(Box<PieceText>),
}

impl Deref for Whose<'_> {
    type Target = PieceText;

    fn deref(&self) -> &PieceText {
        match self {
            Self::Given(piece) => piece,
            Self::Made(piece) => piece,
        }
    }
}

/// What a device says of the lines of a batch, which is read when there is something else to wait
/// for.
pub(super) struct LinesRead {
    of: Vec<DeviceLines>,
    piece_starts: Vec<u32>,
    columns: LineColumns,
}

/// Where the texts of a batch are: on the host too, or on the device alone.
pub(super) enum Texts<'a> {
    Host(Vec<Whose<'a>>),
    Device(LinesRead),
}

pub(super) struct Batch<'a> {
    pub(super) layout: Layout,
    pub(super) texts: Texts<'a>,
    /// Of each piece, where they were not known before.
    pub(super) documents: Vec<Option<PieceDocuments>>,
}

impl Batch<'_> {
    /// What is left to be read.
    pub(super) fn readings(&mut self) -> Vec<Reading<'_>> {
        let Texts::Device(LinesRead { piece_starts, columns, .. }) = &mut self.texts else {
            return Vec::new();
        };
        let (pieces, is_pinned) = (piece_starts.len() - 1, columns.is_pinned());
        let (ends, name_lengths, names) = columns.columns();
        vec![
            part(InvertArray::PieceStarts, 0, &mut piece_starts[..pieces]),
            Reading { is_pinned, ..part(InvertArray::LineEnds, 0, ends) },
            Reading { is_pinned, ..part(InvertArray::NameLengths, 0, name_lengths) },
            Reading { is_pinned, ..part(InvertArray::Names, 0, names) },
        ]
    }

    pub(super) fn read(self) -> (Layout, Vec<Option<PieceDocuments>>) {
        let Self { mut layout, texts, documents } = self;
        match texts {
            Texts::Host(_) => (layout, documents),
            Texts::Device(LinesRead { of, piece_starts, columns }) => {
                let firsts = &piece_starts[..of.len()];
                let documents = PieceDocuments::of_batch(columns, &of, firsts);
                layout.piece_starts = piece_starts;
                (layout, documents.into_iter().map(Some).collect())
            }
        }
    }
}

struct Read {
    irregular: u32,
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
    /// Has the texts on the device, and where documents begin. If they were brought they are used,
    /// and those of earlier ones go back.
    pub(super) fn bring<'a>(
        &mut self,
        pieces: &'a [PieceText],
        text: Option<DeviceMemory>,
    ) -> Result<Batch<'a>, GpuError> {
        let has_lines = pieces.iter().any(|piece| piece.lines.is_some());
        let array = if has_lines { InvertArray::Raw } else { InvertArray::Text };
        let was_brought = text.is_some();
        if let Some(text) = text {
            let unpinned = pieces.iter().filter(|piece| !piece.bytes.is_pinned());
            self.work.unpinned += unpinned.map(|piece| piece.bytes.len() as u64).sum::<u64>();
            let old = self.machine.adopt(array, text)?;
            (self.back)(old);
        }
        let all: Option<Vec<DeviceLines>> = pieces.iter().map(|piece| piece.lines).collect();
        if let Some(lines) = all.filter(|_| has_lines) {
            if !was_brought {
                self.upload(InvertArray::Raw, pieces.iter())?;
            }
            let began = Instant::now();
            let read = self.read_lines(pieces, lines)?;
            self.work.seconds.lines += spent(began);
            if let Some(batch) = read {
                return Ok(batch);
            }
        }
        let (texts, documents) = match has_lines {
            true => self.parse(pieces),
            false => (pieces.iter().map(Whose::Given).collect(), Vec::new()),
        };
        let (layout, starts) = Layout::of(texts.iter().map(|piece| &**piece));
        if has_lines || !was_brought {
            self.upload(InvertArray::Text, texts.iter().map(|piece| &**piece))?;
        }
        self.put(InvertArray::DocumentStarts, 0, &starts)?;
        Ok(Batch { layout, texts: Texts::Host(texts), documents })
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

    /// Makes texts of the lines among some pieces, by several threads.
    fn parse<'a>(
        &mut self,
        pieces: &'a [PieceText],
    ) -> (Vec<Whose<'a>>, Vec<Option<PieceDocuments>>) {
        self.work.parsed_again +=
            pieces.iter().filter(|piece| piece.lines.is_some()).count() as u64;
        let made: Vec<Mutex<(Whose<'a>, Option<PieceDocuments>)>> =
            pieces.iter().map(|piece| Mutex::new((Whose::Given(piece), None))).collect();
        let parse = self.parse.clone();
        let work = |n: usize| {
            if let Some(lines) = &pieces[n].lines {
                let (text, documents) = parse(&pieces[n], lines);
                *lock(&made[n]) = (Whose::Made(Box::new(text)), Some(documents));
            }
        };
        self.crew.share(self.threads - 1, (0..pieces.len()).collect(), work);
        let made = made.into_iter();
        made.map(|made| made.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())).unzip()
    }

    /// Has the device read the lines of all pieces; nothing if some of them are irregular.
    fn read_lines<'a>(
        &mut self,
        pieces: &[PieceText],
        of: Vec<DeviceLines>,
    ) -> Result<Option<Batch<'a>>, GpuError> {
        let places = places(pieces.iter());
        let bytes = places[pieces.len()] as usize;
        let shapes: Vec<u32> = of.iter().flat_map(|lines| lines.shape.words()).collect();
        // It is the same in all of them.
        let longest = of.iter().map(|lines| lines.longest).min().unwrap_or(0);
        self.put(InvertArray::PiecePlaces, 0, &places)?;
        self.put(InvertArray::Shapes, 0, &shapes)?;
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
        self.reserve::<u32>(InvertArray::Irregular, MOST_MENDED as u64)?;
        let batch = LinesOf { lines, pieces: of.len() as u32, are_alike, longest };
        self.machine.run(&[end_lines(tiles)])?;
        let (mut read, mut mended) = (self.lines_read(count, &read_lines(batch, 0))?, 0);
        if read.irregular > 0 {
            if !self.mend(pieces, &of, &places, (lines, read.irregular))? {
                return Ok(None);
            }
            mended = read.irregular;
            self.put(InvertArray::Counters, 0, &[0u32; COUNTERS])?;
            read = self.lines_read(count, &read_lines(batch, mended))?;
        }
        let Read { name_bytes, text_bytes, .. } = read;
        let bytes = text_bytes as usize;
        let padded = bytes.next_multiple_of(TILE_BYTES);
        self.reserve::<u8>(InvertArray::Text, padded as u64)?;
        self.reserve::<u8>(InvertArray::Names, name_bytes.into())?;
        self.machine.run(&write_lines(batch, mended))?;
        self.machine.write(InvertArray::Text, bytes as u64, &[padding(bytes)])?;
        self.work.lines += count;
        self.work.mended += u64::from(mended);
        let memory = &pieces[0].bytes;
        let columns = LineColumns::beside(memory, lines as usize, name_bytes as usize);
        let mut piece_starts = vec![0; of.len() + 1];
        piece_starts[of.len()] = lines;
        let texts = Texts::Device(LinesRead { of, piece_starts, columns });
        let layout = Layout { bytes, padded, documents: lines, piece_starts: Vec::new() };
        Ok(Some(Batch { layout, texts, documents: Vec::new() }))
    }

    /// Has so many lines read, and says what came of it.
    fn lines_read(&mut self, lines: u64, steps: &[Step]) -> Result<Read, GpuError> {
        self.machine.run(steps)?;
        let (mut counters, mut name_bytes, mut text_bytes) = ([0u32; COUNTERS], [0u32], [0u32]);
        self.machine.read(&mut [
            part(InvertArray::Counters, 0, &mut counters),
            part(InvertArray::NamePlaces, lines, &mut name_bytes),
            part(InvertArray::DocumentStarts, lines, &mut text_bytes),
        ])?;
        let ([name_bytes], [text_bytes]) = (name_bytes, text_bytes);
        Ok(Read { irregular: counters[IRREGULAR_LINES], name_bytes, text_bytes })
    }

    /// The forms that begin at some places of the text.
    pub(super) fn forms_at(
        &mut self,
        batch: &Batch<'_>,
        starts: &[u32],
    ) -> Result<Vec<Vec<u8>>, GpuError> {
        let classes = Classes::of(self.tokenizer);
        let bytes = batch.layout.bytes;
        match &batch.texts {
            Texts::Host(pieces) => {
                let places = places(pieces.iter().map(|piece| &**piece));
                let form = |&start: &u32| {
                    let piece = places.partition_point(|&place| place <= start) - 1;
                    let at = (start - places[piece]) as usize;
                    classes.form_at(&pieces[piece].bytes, at).to_vec()
                };
                Ok(starts.iter().map(form).collect())
            }
            Texts::Device(_) if starts.len() > MOST_WINDOWS => {
                let text: Vec<u8> = self.get(InvertArray::Text, 0, bytes)?;
                let form = |&start: &u32| classes.form_at(&text, start as usize).to_vec();
                Ok(starts.iter().map(form).collect())
            }
            Texts::Device(_) => starts
                .iter()
                .map(|&start| {
                    let (at, mut window) = (start as usize, WINDOW);
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
