//! Counts a batch: its forms are found, their terms told to the device, and then (term, document)
//! of all tokens are sorted: each run of equal pairs is a posting. What each piece counts goes to
//! the host; the lists of the batch stay on the device, or go there, too.

use super::find::FoundForms;
use super::typed::{Typed, part};
use super::{CountedBatch, Inverter, MOST_FOUND, OpenBatch, spent};
use crate::dictionary::device::inverted::InvertedLists;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::InvertMachine;
use crate::gpu::invert::steps::postings::{self, PostingColumns};
use crate::gpu::invert::steps::{self, InvertArray, encode};
use crate::order::{PieceCounts, Sketch};
use crate::pages;
use std::time::Instant;

/// Where the arrays of found tokens go.
const COUNTED_ARRAYS: [InvertArray; 4] = [
    InvertArray::CountedTokens,
    InvertArray::CountedForms,
    InvertArray::CountedCoded,
    InvertArray::DocumentStarts,
];

impl<M: InvertMachine + ?Sized> Inverter<M> {
    /// Tells the device what the forms of a batch mean. Returns the terms of the run, and (term,
    /// document) pairs of the batch.
    fn tell_found(&mut self, found: &mut FoundForms) -> Result<(u32, u32), GpuError> {
        if found.tokens == 0 {
            return Ok((0, 0));
        }
        let began = Instant::now();
        if self.learned.is_empty() {
            let learned = self.learner.wait();
            self.take_learned(learned);
        }
        self.work.seconds.terms += spent(began);
        let learned = self.learned.pop_front().expect("it was waited for");
        let mut old = Vec::new();
        for (array, memory) in
            COUNTED_ARRAYS.into_iter().zip(found.arrays.take().into_iter().flatten())
        {
            old.extend(self.machine.adopt(array, memory)?);
        }
        if let Ok(old) = old.try_into()
            && self.spare.len() < MOST_FOUND
        {
            self.spare.push(old);
        }
        self.tell(&*found, &learned)
    }

    /// `first`: the docid of the first document.
    pub(super) fn count_found(
        &mut self,
        mut found: FoundForms,
        first: u32,
    ) -> Result<Vec<CountedBatch>, GpuError> {
        let (terms, pairs) = self.tell_found(&mut found)?;
        let documents = found.layout.documents;
        let tokens = found.tokens;
        let piece_count = found.layout.piece_starts.len() as u32 - 1;
        let began = Instant::now();
        let words = u64::from(documents.max(1));
        self.put(InvertArray::PieceStarts, 0, &found.layout.piece_starts)?;
        self.reserve::<u32>(InvertArray::Lengths, words)?;
        let sketch_words = steps::sketch_words(piece_count);
        self.reserve::<u32>(InvertArray::Sketches, sketch_words)?;
        self.reserve::<u64>(InvertArray::PieceBytes, u64::from(piece_count))?;
        self.reserve::<u64>(InvertArray::PiecePostings, u64::from(piece_count))?;
        let mut clear = vec![steps::clear(InvertArray::Lengths, 0, words)];
        if piece_count > 0 {
            clear.push(steps::clear(InvertArray::Sketches, 0, sketch_words));
            clear.push(steps::clear(InvertArray::PieceBytes, 0, 2 * u64::from(piece_count)));
            clear.push(steps::clear(InvertArray::PiecePostings, 0, 2 * u64::from(piece_count)));
        }
        self.machine.run(&clear)?;
        self.work.seconds.tell += spent(began);
        let mut open = OpenBatch { first, postings: 0, terms, list_bytes: 0 };
        if tokens > 0 {
            let began = Instant::now();
            self.write_terms(tokens, pairs, documents, piece_count)?;
            if pairs > 0 {
                self.sort(pairs, terms)?;
                open.postings = self.write_postings(pairs)?;
                self.grow_lasts(terms)?;
                let columns = PostingColumns::counted(open.postings, first);
                self.machine.run(&postings::measure(columns, piece_count))?;
                // Errors for want of room are due now.
                if !self.keeps() {
                    open.list_bytes = self.sum()?;
                    self.reserve_lists(open.postings, open.list_bytes, open.terms)?;
                }
            }
            self.work.seconds.count += spent(began);
        }
        let began = Instant::now();
        if self.keeps() {
            self.reserve_kept(open.postings)?;
        }
        self.work.seconds.room += spent(began);
        let began = Instant::now();
        let counted = self.counted(found, piece_count)?;
        self.work.seconds.counted += spent(began);
        self.open = Some(open);
        Ok(counted)
    }

    /// The lists of the batch that was counted last, which is of the run as a whole; None if the
    /// device [retains](Self::keeps) them.
    ///
    /// # Errors
    /// Of the device; the inverter cannot go on.
    ///
    /// # Panics
    /// If no batch was counted, or its lists were taken.
    pub fn lists(&mut self) -> Result<Option<InvertedLists>, GpuError> {
        let open = self.open.take().expect("a batch was counted");
        let OpenBatch { first, postings, terms, list_bytes } = open;
        self.work.postings += u64::from(postings);
        let columns = PostingColumns::counted(postings, first);
        if self.keeps() {
            self.keep(columns, postings)?;
            return Ok(None);
        }
        if postings == 0 {
            return Ok(Some(InvertedLists::default()));
        }
        self.take_lists(columns, terms, list_bytes).map(Some)
    }

    pub(super) fn reserve_lists(
        &mut self,
        postings: u32,
        bytes: u32,
        terms: u32,
    ) -> Result<(), GpuError> {
        self.reserve::<u32>(InvertArray::ListPlaces, u64::from(postings) + 1)?;
        self.reserve::<u8>(InvertArray::Lists, bytes.into())?;
        self.reserve::<u32>(InvertArray::ListStarts, u64::from(terms) + 1)
    }

    pub(super) fn take_lists(
        &mut self,
        columns: PostingColumns,
        terms: u32,
        bytes: u32,
    ) -> Result<InvertedLists, GpuError> {
        self.machine.run(&postings::write_lists(columns, terms))?;
        Ok(InvertedLists {
            starts: self.get(InvertArray::ListStarts, 0, terms as usize + 1)?,
            bytes: self.get(InvertArray::Lists, 0, bytes as usize)?,
        })
    }

    fn write_terms(
        &mut self,
        tokens: u32,
        pairs: u32,
        documents: u32,
        pieces: u32,
    ) -> Result<(), GpuError> {
        for array in [
            InvertArray::Keys,
            InvertArray::Values,
            InvertArray::SortedKeys,
            InvertArray::SortedValues,
        ] {
            self.reserve::<u32>(array, pairs.into())?;
        }
        self.reserve::<u32>(InvertArray::TokenPlaces, u64::from(tokens) + 1)?;
        self.machine.run(&steps::write_terms(tokens, documents, pieces))
    }

    /// `terms` is above all their numbers.
    fn sort(&mut self, pairs: u32, terms: u32) -> Result<(), GpuError> {
        self.reserve_tiles(postings::sort_words(pairs))?;
        let bits = u32::BITS - terms.saturating_sub(1).leading_zeros();
        for (shift, bits) in postings::sort_digits(bits) {
            self.machine.run(&postings::sort_pass(pairs, shift, bits))?;
            self.machine.places().swap(InvertArray::Keys, InvertArray::SortedKeys);
            self.machine.places().swap(InvertArray::Values, InvertArray::SortedValues);
        }
        Ok(())
    }

    /// Makes postings of sorted pairs; returns their number.
    fn write_postings(&mut self, pairs: u32) -> Result<u32, GpuError> {
        self.reserve_tiles(steps::tiles(pairs))?;
        self.machine.run(&postings::count_postings(pairs))?;
        let postings = self.sum()?;
        self.reserve::<u32>(InvertArray::Postings, u64::from(postings) + 1)?;
        self.machine.run(&[postings::write_postings(pairs)])?;
        Ok(postings)
    }

    /// New terms have had no document, and no postings.
    pub(super) fn grow_lasts(&mut self, terms: u32) -> Result<(), GpuError> {
        if terms > self.lasts {
            let had = u64::from(self.lasts);
            let more = u64::from(terms - self.lasts);
            for array in [InvertArray::Lasts, InvertArray::Counts] {
                self.machine.reserve(array, 4 * u64::from(terms), 4 * had)?;
                self.machine.run(&[steps::clear(array, had, more)])?;
            }
            self.lasts = terms;
        }
        Ok(())
    }

    fn counted(
        &mut self,
        FoundForms { layout, contents, .. }: FoundForms,
        pieces: u32,
    ) -> Result<Vec<CountedBatch>, GpuError> {
        let documents = layout.documents;
        let mut lengths: Vec<u32> = pages::zeroed(documents as usize);
        let mut codes: Vec<u8> = pages::zeroed(documents as usize);
        let mut bytes = vec![0u64; pieces as usize];
        let mut postings = bytes.clone();
        let mut sketches: Vec<u32> = pages::zeroed(steps::sketch_words(pieces) as usize);
        self.reserve::<u8>(InvertArray::Codes, documents.into())?;
        if documents > 0 {
            self.machine.run(&[encode::codes(documents)])?;
        }
        self.machine.read(&mut [
            part(InvertArray::Lengths, 0, &mut lengths),
            part(InvertArray::Codes, 0, &mut codes),
            part(InvertArray::PieceBytes, 0, &mut bytes),
            part(InvertArray::PiecePostings, 0, &mut postings),
            part(InvertArray::Sketches, 0, &mut sketches),
        ])?;
        let (sketches, _) = sketches.as_chunks::<{ Sketch::REGISTERS }>();
        let starts = layout.piece_starts.windows(2);
        let pieces = starts.zip(sketches).zip(bytes.iter().zip(&postings));
        let counted = pieces.map(|((documents, sketch), (&list_bytes, &postings))| {
            let range = documents[0] as usize..documents[1] as usize;
            CountedBatch {
                counts: PieceCounts {
                    documents: range.len() as u32,
                    postings,
                    list_bytes,
                    forms: Sketch::of_registers(sketch.map(|rank| rank as u8)),
                },
                lengths: lengths[range.clone()].to_vec(),
                codes: codes[range.clone()].into(),
                contents: contents[range].to_vec(),
            }
        });
        Ok(counted.collect())
    }
}
