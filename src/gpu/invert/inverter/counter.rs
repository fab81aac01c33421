//! How is a batch counted? Its forms are found, their terms told to the device, and then terms and
//! documents of all tokens are sorted: each run of equal pairs is a posting. What each piece counts
//! goes to the host; the lists of the batch stay on the device, or go there, too.

use super::find::{Finding, Found, Tokens, which};
use super::kept::Keeping;
use super::learner::{Learned, Learner};
use super::terms::Numbering;
use super::typed::{Typed, part};
use super::work::InverterWork;
use super::{Counted, MOST_FOUND, spent};
use crate::crew::lock;
use crate::dictionary::device::forms::{Forms, Terms};
use crate::dictionary::device::inverted::Lists;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::Tuning;
use crate::gpu::invert::machine::{DeviceMemory, Machine};
use crate::gpu::invert::steps::postings::{self, Columns};
use crate::gpu::invert::steps::{self, InvertArray, encode};
use crate::gpu::invert::text::PieceText;
use crate::order::{PieceCounts, Sketch};
use crate::pages;
use std::collections::VecDeque;
use std::iter::repeat_with;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The batch that was counted last.
#[derive(Clone, Copy, Debug)]
struct Open {
    postings: u32,
    terms: u32,
    list_bytes: u32,
}

/// Who counts batches on one device, one after the other.
pub(super) struct Counter<M> {
    pub(super) machine: M,
    pub(super) tuning: Tuning,
    /// Stands before the learner, which ends when this is dropped.
    pub(super) finding: Finding,
    pub(super) learner: Learner,
    /// The pieces whose forms are found, or being found, which are counted next, in their order.
    coming: VecDeque<Arc<Vec<PieceText>>>,
    found: VecDeque<Found>,
    /// What the forms of these mean, as far as that is known.
    learned: VecDeque<Learned>,
    /// Arrays of tokens of batches that were counted.
    pub(super) spare: Vec<Tokens>,
    /// Why forms could not be found.
    failed: Option<GpuError>,
    pub(super) numbering: Arc<Mutex<Numbering>>,
    /// Terms whose last docid the device has, and how many postings of theirs stay.
    pub(super) lasts: u32,
    pub(super) keeping: Keeping,
    open: Option<Open>,
    pub(super) work: InverterWork,
}

impl<M: Machine> Typed for Counter<M> {
    fn on(&mut self) -> &mut dyn Machine {
        &mut self.machine
    }
}

impl<M: Machine> Counter<M> {
    /// One on a machine that has done nothing; forms are found by somebody else on another machine
    /// of the same device.
    pub(super) fn new(
        machine: M,
        finding: Finding,
        learner: Learner,
        numbering: Arc<Mutex<Numbering>>,
    ) -> Self {
        Self {
            machine,
            tuning: Tuning::default(),
            finding,
            learner,
            coming: VecDeque::new(),
            found: VecDeque::new(),
            learned: VecDeque::new(),
            spare: Vec::new(),
            failed: None,
            numbering,
            lasts: 0,
            keeping: Keeping::default(),
            open: None,
            work: InverterWork::default(),
        }
    }

    /// Has the forms of pieces found, behind all that are found already, and the host makes terms
    /// of them meanwhile. If their texts were brought they are used, and those of earlier ones go
    /// back.
    pub(super) fn find(&mut self, pieces: Arc<Vec<PieceText>>, text: Option<DeviceMemory>) {
        let to = self.spare.pop();
        self.coming.push_back(pieces.clone());
        self.finding.ask(pieces, text, to);
    }

    /// The pieces that are counted next, if that would not wait for their forms or the host's
    /// terms.
    pub(super) fn ready(&mut self) -> Option<Arc<Vec<PieceText>>> {
        while let Some(outcome) = self.finding.outcome() {
            self.take_outcome(outcome);
        }
        while let Some(learned) = self.learner.answer() {
            self.take_learned(learned);
        }
        let pieces = self.coming.front()?;
        let is_ready = match self.found.front() {
            Some(found) => found.tokens == 0 || !self.learned.is_empty(),
            // They are not found any more: counting says why, or finds them again.
            None => self.finding.under_way() == 0,
        };
        is_ready.then(|| pieces.clone())
    }

    fn take_outcome(&mut self, outcome: Result<Found, GpuError>) {
        match outcome {
            Ok(found) => self.found.push_back(found),
            // Whoever counts makes room.
            Err(error) if error.is_out_of_memory() => {}
            Err(error) => _ = self.failed.get_or_insert(error),
        }
    }

    fn take_learned(&mut self, learned: Learned) {
        self.work.seconds.learn += learned.seconds;
        self.learned.push_back(learned);
    }

    /// Waits until nothing is being found.
    fn settle(&mut self) {
        for outcome in self.finding.outcomes() {
            self.take_outcome(outcome);
        }
    }

    /// Takes the batch that was found first, and tells the device what its forms mean; how many
    /// terms the run has then, and how many those of the tokens of the batch are, if it is
    /// `counted`.
    fn take_found(&mut self, counted: bool) -> Result<(Found, u32, u32), GpuError> {
        let mut found = self.found.pop_front().expect("a batch was found");
        if found.tokens == 0 {
            return Ok((found, 0, 0));
        }
        let began = Instant::now();
        if self.learned.is_empty() {
            let learned = self.learner.wait();
            self.take_learned(learned);
        }
        self.work.seconds.terms += spent(began);
        let learned = self.learned.pop_front().expect("it was waited for");
        if let Some([tokens, forms, coded, documents]) = found.arrays.take() {
            let tokens = self.machine.adopt(InvertArray::CountedTokens, tokens)?;
            let forms = self.machine.adopt(InvertArray::CountedForms, forms)?;
            let coded = self.machine.adopt(InvertArray::CountedCoded, coded)?;
            let documents = self.machine.adopt(InvertArray::DocumentStarts, documents)?;
            let all = tokens.zip(forms).zip(coded.zip(documents));
            let all =
                all.map(|((tokens, forms), (coded, documents))| [tokens, forms, coded, documents]);
            self.spare.extend(all.filter(|_| self.spare.len() < MOST_FOUND));
        }
        let (terms, pairs) = self.tell((&found, &learned), counted)?;
        Ok((found, terms, pairs))
    }

    /// Lets go of all that was found or counted and does not stay; the forms stay.
    pub(super) fn let_go(&mut self) -> Result<(), GpuError> {
        self.coming.clear();
        self.open = None;
        self.tell_found()
    }

    fn tell_found(&mut self) -> Result<(), GpuError> {
        self.settle();
        while !self.found.is_empty() {
            self.take_found(false)?;
        }
        Ok(())
    }

    /// The same where the forms go too, so that nobody has to say what they mean.
    pub(super) fn discard(&mut self) {
        self.coming.clear();
        self.open = None;
        self.settle();
        let asked = self.found.iter().filter(|found| found.tokens > 0).count();
        for _ in self.learned.len()..asked {
            self.learner.wait();
        }
        self.found.clear();
        self.learned.clear();
    }

    /// Frees what is not of the run; the device knows no forms then.
    pub(super) fn free_but_run(&mut self) {
        self.discard();
        self.spare.clear();
        self.machine.places().free_but(&[
            InvertArray::Lasts,
            InvertArray::Counts,
            InvertArray::Codes,
        ]);
        self.finding.free();
    }

    /// Frees all; there is no run.
    pub(super) fn free_all(&mut self) {
        self.free_but_run();
        self.machine.places().free_but(&[]);
    }

    /// Counts the next pieces; the first document has docid `first`, counted from the run's first,
    /// which does not matter where lists [stay](Self::keeps). If other pieces were found first, all
    /// that was found is let go.
    ///
    /// # Errors
    /// Of the device. What was found is let go, and all is freed that is not of the run.
    pub(super) fn count(
        &mut self,
        pieces: &[PieceText],
        first: u32,
    ) -> Result<Vec<Counted>, GpuError> {
        self.open = None;
        if self.coming.front().is_some_and(|coming| which(coming) == which(pieces)) {
            self.coming.pop_front();
        }
        let counted = self.try_count(pieces, first);
        if counted.is_err() {
            self.free_but_run();
        }
        counted
    }

    fn try_count(&mut self, pieces: &[PieceText], first: u32) -> Result<Vec<Counted>, GpuError> {
        if self.found.is_empty() {
            self.settle();
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.found.front().is_none_or(|found| found.of != which(pieces)) {
            self.tell_found()?;
            let to = self.spare.pop();
            let found = self.finding.now(pieces, to)?;
            self.found.push_back(found);
        }
        let (found, terms, pairs) = self.take_found(true)?;
        let (documents, tokens) = (found.layout.documents, found.tokens);
        let piece_count = pieces.len() as u32;
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
        let mut open = Open { postings: 0, terms, list_bytes: 0 };
        if tokens > 0 {
            let began = Instant::now();
            self.write_terms((tokens, pairs), documents, piece_count)?;
            if pairs > 0 {
                self.sort(pairs, terms)?;
                open.postings = self.write_postings(pairs)?;
                self.grow_lasts(terms)?;
                let columns = Columns::counted(open.postings, first);
                self.machine.run(&postings::measure(columns, piece_count))?;
                // If there is no room for the lists, that is to be known now.
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

    /// The lists of the batch that was counted last, or nothing if the device [keeps](Self::keeps)
    /// them; it belongs to the run as a whole, in which its first document has docid `first`.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    ///
    /// # Panics
    /// No batch was counted, or its lists were given.
    pub(super) fn lists(&mut self, first: u32) -> Result<Option<Lists>, GpuError> {
        let open = self.open.take().expect("a batch was counted");
        let Open { postings, terms, list_bytes } = open;
        self.work.postings += u64::from(postings);
        let columns = Columns::counted(postings, first);
        if self.keeps() {
            self.keep(columns, postings, first)?;
            return Ok(None);
        }
        if postings == 0 {
            return Ok(Some(Lists::default()));
        }
        self.take_lists(columns, terms, list_bytes).map(Some)
    }

    /// Whether lists are to be asked for, of a batch that was counted.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
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
        columns: Columns,
        terms: u32,
        bytes: u32,
    ) -> Result<Lists, GpuError> {
        self.machine.run(&postings::write_lists(columns, terms))?;
        Ok(Lists {
            starts: self.get(InvertArray::ListStarts, 0, terms as usize + 1)?,
            bytes: self.get(InvertArray::Lists, 0, bytes as usize)?,
        })
    }

    pub(super) fn forget_run(&mut self) -> Result<(), GpuError> {
        self.lasts = 0;
        self.discard();
        self.keep_again();
        self.finding.forget_forms()
    }

    /// Ends the run: its terms. The next batch begins another one.
    pub(super) fn end_run(&mut self) -> Result<Terms, GpuError> {
        let began = Instant::now();
        self.forget_run()?;
        let Numbering { codes, .. } = std::mem::take(&mut *lock(&self.numbering));
        let terms = self.learner.with(|forms: &mut Forms| forms.take(codes));
        self.work.seconds.close += spent(began);
        Ok(terms)
    }

    /// Writes terms and documents of all tokens, which are counted.
    fn write_terms(
        &mut self,
        (tokens, pairs): (u32, u32),
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

    /// Sorts pairs by terms, whose numbers are below `terms`.
    fn sort(&mut self, pairs: u32, terms: u32) -> Result<(), GpuError> {
        self.reserve_tiles(postings::sort_words(pairs))?;
        let bits = u32::BITS - terms.saturating_sub(1).leading_zeros();
        for digit in postings::sort_digits(bits) {
            self.machine.run(&postings::sort_pass(pairs, digit))?;
            self.machine.places().swap(InvertArray::Keys, InvertArray::SortedKeys);
            self.machine.places().swap(InvertArray::Values, InvertArray::SortedValues);
        }
        Ok(())
    }

    /// Makes postings of sorted pairs; their number.
    fn write_postings(&mut self, pairs: u32) -> Result<u32, GpuError> {
        self.reserve_tiles(steps::tiles(pairs))?;
        self.machine.run(&postings::count_postings(pairs))?;
        let postings = self.sum()?;
        self.reserve::<u32>(InvertArray::Postings, u64::from(postings) + 1)?;
        self.machine.run(&[postings::write_postings(pairs)])?;
        Ok(postings)
    }

    /// Terms that the run has not had before have had no document, and no postings.
    pub(super) fn grow_lasts(&mut self, terms: u32) -> Result<(), GpuError> {
        if terms > self.lasts {
            let (had, more) = (u64::from(self.lasts), u64::from(terms - self.lasts));
            for array in [InvertArray::Lasts, InvertArray::Counts] {
                self.machine.reserve(array, 4 * u64::from(terms), 4 * had)?;
                self.machine.run(&[steps::clear(array, had, more)])?;
            }
            self.lasts = terms;
        }
        Ok(())
    }

    /// What the pieces count, with the hashes of all documents.
    fn counted(
        &mut self,
        Found { layout, contents, documents: of_pieces, .. }: Found,
        pieces: u32,
    ) -> Result<Vec<Counted>, GpuError> {
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
        let of_pieces = of_pieces.into_iter().chain(repeat_with(|| None));
        let pieces = starts.zip(sketches).zip(bytes.iter().zip(&postings)).zip(of_pieces);
        let counted = pieces.map(|(((documents, sketch), (&list_bytes, &postings)), of_piece)| {
            let range = documents[0] as usize..documents[1] as usize;
            Counted {
                counts: PieceCounts {
                    documents: range.len() as u32,
                    postings,
                    list_bytes,
                    forms: Sketch::of_registers(sketch.map(|rank| rank as u8)),
                },
                lengths: lengths[range.clone()].to_vec(),
                codes: codes[range.clone()].into(),
                contents: contents[range].to_vec(),
                documents: of_piece,
            }
        });
        Ok(counted.collect())
    }
}
