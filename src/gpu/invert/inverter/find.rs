//! Finds the forms of a batch. A thread of its own has the device look up each token, on a stream
//! of its own, while batches before are counted; the terms of new forms are coded there, and a
//! learner makes those of the others meanwhile.
//!
//! Batches are counted in the order in which they were found: a form of an earlier batch is known
//! to the later one, and its meaning is told with the earlier one.

use super::learner::{LearnerAsker, TellLearned, UnknownForms};
use super::spent;
use super::typed::{Typed, part};
use super::work::InverterWork;
use crate::crew::{Awaited, lock};
use crate::dictionary::device::forms::FormMeaning;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::InvertTuning;
use crate::gpu::invert::classes::CharacterClasses;
use crate::gpu::invert::machine::{DeviceMemory, InvertMachine};
use crate::gpu::invert::steps::terms::{Plain, code_forms};
use crate::gpu::invert::steps::{
    self, COUNTERS, FOREIGN_BYTES, FOREIGN_FORMS, InvertArray, InvertStep, NEW_BYTES, NEW_FORMS,
    ODD_TOKENS,
};
use crate::gpu::invert::text::{MOST_BYTES, MOST_PIECES, PieceText, TILE_BYTES, parts};
use crate::pages;
use crate::text::analysis::Analysis;
use crate::text::tokenizer::Tokenizer;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

const LEAST_SLOTS: u32 = 1 << 12;
const MOST_SLOTS: u32 = 1 << 30;
/// When forms take more bytes than this before a batch they are forgotten: places of bytes have 32
/// bits. The terms of a run take less, but there are forms without terms.
const MOST_ARENA_BYTES: u64 = (4 << 30) - MOST_BYTES as u64;
/// The same for numbers of forms, and meanings of expansions.
const MOST_FORMS: u32 = 1 << 30;
const MOST_EXPANSIONS: usize = 1 << 29;

/// The texts of a batch, end to end.
pub(super) struct BatchLayout {
    bytes: usize,
    padded: usize,
    pub(super) documents: u32,
    pub(super) piece_starts: Vec<u32>,
}

impl BatchLayout {
    /// Returns also where each document begins, and the end.
    fn of(pieces: &[PieceText]) -> (Self, Vec<u32>) {
        let mut bytes = 0;
        let mut documents = 0;
        let mut document_starts = Vec::new();
        let mut piece_starts = Vec::new();
        for piece in pieces {
            piece_starts.push(documents);
            document_starts.extend(piece.starts.iter().map(|s| bytes as u32 + s));
            bytes += piece.bytes.len();
            documents += piece.documents();
        }
        document_starts.push(bytes as u32);
        piece_starts.push(documents);
        let padded = bytes.next_multiple_of(TILE_BYTES);
        (Self { bytes, padded, documents, piece_starts }, document_starts)
    }
}

/// Where tokens begin, their forms, the codes of new forms, and where documents begin.
pub(super) type FoundTokens = [DeviceMemory; 4];

const FOUND_ARRAYS: [InvertArray; 4] =
    [InvertArray::Tokens, InvertArray::TokenForms, InvertArray::Coded, InvertArray::DocumentStarts];

pub(super) struct FoundForms {
    pub(super) layout: BatchLayout,
    /// By document.
    pub(super) contents: Vec<u64>,
    pub(super) tokens: u32,
    pub(super) first_form: u32,
    pub(super) new: u32,
    /// None if there are no tokens; nothing is asked then.
    pub(super) arrays: Option<FoundTokens>,
}

/// A device's table of forms.
pub(super) struct Finder {
    machine: Box<dyn InvertMachine>,
    tuning: InvertTuning,
    tokenizer: Tokenizer,
    plain: Plain,
    stop_words: Vec<u64>,
    /// Whether the device has the classes of characters and the stop words.
    has_classes: bool,
    asker: LearnerAsker,
    back: Back,
    /// The forms that the device knows, their bytes, and the slots of its table.
    known: u32,
    arena_bytes: u64,
    slots: u32,
    pub(super) work: InverterWork,
}

impl Typed for Finder {
    type On = dyn InvertMachine;

    fn on(&mut self) -> &mut Self::On {
        &mut *self.machine
    }
}

impl Finder {
    /// Finds the forms of pieces, codes the terms of new ones, and asks what foreign ones mean. If
    /// `text` has their texts, those of earlier ones go back; `to` is memory for tokens.
    ///
    /// # Panics
    /// If there are too many pieces, or too much text.
    pub(super) fn find(
        &mut self,
        pieces: &[PieceText],
        text: Option<DeviceMemory>,
        to: Option<FoundTokens>,
    ) -> Result<FoundForms, GpuError> {
        let found = self.try_find(pieces, text, to);
        if found.is_err() {
            // The table may have forms that are not stored, and arrays be longer than needed.
            self.free();
        }
        found
    }

    /// The device knows no forms afterwards.
    pub(super) fn free(&mut self) {
        self.machine.places().free_but(&[]);
        self.known = 0;
        self.arena_bytes = 0;
        self.slots = 0;
        self.has_classes = false;
    }

    /// The terms of the run stay known.
    pub(super) fn forget_forms(&mut self) {
        self.known = 0;
        self.arena_bytes = 0;
    }

    fn try_find(
        &mut self,
        pieces: &[PieceText],
        text: Option<DeviceMemory>,
        to: Option<FoundTokens>,
    ) -> Result<FoundForms, GpuError> {
        let (layout, document_starts) = BatchLayout::of(pieces);
        assert!(pieces.len() <= MOST_PIECES && layout.padded <= MOST_BYTES, "a batch is bounded");
        self.work.batches += 1;
        let has_too_many = self.arena_bytes > MOST_ARENA_BYTES
            || self.known > MOST_FORMS
            || self.asker.expansions() > MOST_EXPANSIONS;
        if has_too_many {
            self.work.forgotten += 1;
            self.forget_forms();
        }
        if let Some(arrays) = to {
            for (array, memory) in FOUND_ARRAYS.into_iter().zip(arrays) {
                self.machine.adopt(array, memory)?;
            }
        }
        self.bring(pieces, text)?;
        self.put(InvertArray::DocumentStarts, 0, &document_starts)?;
        self.work.bytes += layout.bytes as u64;
        let began = Instant::now();
        self.hash(layout.documents)?;
        let first_form = self.known;
        let tokens = self.find_tokens(&layout)?;
        let mut contents: Vec<u64> = pages::zeroed(layout.documents as usize);
        let arrays = match tokens {
            0 if contents.is_empty() => None,
            0 => {
                self.machine.read(&mut [part(InvertArray::Contents, 0, &mut contents)])?;
                None
            }
            _ => Some(self.find_forms(pieces, &mut contents, tokens)?),
        };
        self.work.seconds.find += spent(began);
        let new = self.known - first_form;
        Ok(FoundForms { layout, contents, tokens, first_form, new, arrays })
    }

    /// Has the texts on the device; if `text` has them, old ones go back.
    fn bring(&mut self, pieces: &[PieceText], text: Option<DeviceMemory>) -> Result<(), GpuError> {
        if let Some(text) = text {
            let unpinned = pieces.iter().filter(|piece| !piece.bytes.is_pinned());
            self.work.unpinned += unpinned.map(|piece| piece.bytes.len() as u64).sum::<u64>();
            let old = self.machine.adopt(InvertArray::Text, text)?;
            (self.back)(old);
            return Ok(());
        }
        let began = Instant::now();
        let parts = parts(pieces);
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > 0 {
            self.reserve::<u8>(InvertArray::Text, bytes as u64)?;
            self.machine.write(InvertArray::Text, 0, &parts)?;
        }
        self.work.seconds.upload += spent(began);
        Ok(())
    }

    fn hash(&mut self, documents: u32) -> Result<(), GpuError> {
        if documents == 0 {
            return Ok(());
        }
        self.reserve::<u64>(InvertArray::Contents, documents.into())?;
        self.machine.run(&[steps::hash_documents(documents)])
    }

    /// Finds where tokens begin; returns their number.
    fn find_tokens(&mut self, layout: &BatchLayout) -> Result<u32, GpuError> {
        if layout.bytes == 0 {
            return Ok(0);
        }
        if !self.has_classes {
            self.put(InvertArray::Classes, 0, CharacterClasses::of(self.tokenizer).words())?;
            let stop_words = self.stop_words.clone();
            self.put(InvertArray::StopWords, 0, &stop_words)?;
            self.has_classes = true;
        }
        let tiles = steps::text_tiles(layout.padded);
        self.reserve_tiles(tiles)?;
        self.put(InvertArray::Counters, 0, &[0u32; COUNTERS])?;
        self.machine.run(&steps::count_tokens(tiles))?;
        let tokens = self.sum()?;
        self.work.tokens += u64::from(tokens);
        self.reserve::<u32>(InvertArray::Tokens, u64::from(tokens))?;
        self.machine.run(&[steps::write_tokens(tiles)])?;
        Ok(tokens)
    }

    /// Finds the form of each token, codes the terms of new ones, and asks what foreign ones mean.
    /// What is to be read anyway is read where this waits for the device.
    fn find_forms(
        &mut self,
        pieces: &[PieceText],
        contents: &mut [u64],
        tokens: u32,
    ) -> Result<FoundTokens, GpuError> {
        use InvertArray::{NewLengths, NewPlaces, NewStarts, Odd, TokenForms};
        for array in [TokenForms, NewStarts, NewLengths, NewPlaces, Odd] {
            self.reserve::<u32>(array, u64::from(tokens))?;
        }
        self.grow_table(tokens)?;
        let known = self.known;
        self.machine.run(&[steps::find_forms(tokens, self.slots, known, self.tuning)])?;
        let counters = self.counters()?;
        let new = counters[NEW_FORMS];
        let new_bytes = counters[NEW_BYTES];
        let used = self.arena_bytes;
        let places = u64::from(known) + 1;
        self.machine.reserve(InvertArray::Arena, (used + u64::from(new_bytes)).max(16), used)?;
        let all = places + u64::from(new);
        self.machine.reserve(
            InvertArray::FormPlaces,
            4 * all,
            if known > 0 { 4 * places } else { 0 },
        )?;
        self.reserve::<FormMeaning>(InvertArray::Coded, new.into())?;
        if new > 0 {
            self.reserve::<u32>(InvertArray::Sums, steps::sum_words(new).into())?;
            self.reserve::<u8>(InvertArray::ForeignBytes, new_bytes.into())?;
            self.reserve::<u64>(InvertArray::ForeignPlaces, new.into())?;
            self.machine.run(&steps::scan(NewPlaces, new))?;
            self.machine.run(&[
                steps::keep_forms(new, known, used as u32),
                code_forms(known, new, self.plain),
            ])?;
        }
        self.machine.run(&[steps::check_forms(tokens)])?;
        let mut counters = [0u32; COUNTERS];
        self.machine.read(&mut [
            part(InvertArray::Counters, 0, &mut counters),
            part(InvertArray::Contents, 0, contents),
        ])?;
        let odd = counters[ODD_TOKENS];
        let foreign = counters[FOREIGN_FORMS];
        let mut unknown = UnknownForms { forgets: known == 0, ..UnknownForms::default() };
        let mut parts = Vec::new();
        let mut starts = vec![0u32; odd as usize];
        if foreign > 0 {
            unknown.bytes = pages::zeroed(counters[FOREIGN_BYTES] as usize);
            unknown.places = pages::zeroed(foreign as usize);
            parts.push(part(InvertArray::ForeignBytes, 0, &mut unknown.bytes));
            parts.push(part(InvertArray::ForeignPlaces, 0, &mut unknown.places));
        }
        if odd > 0 {
            parts.push(part(Odd, 0, &mut starts));
        }
        if !parts.is_empty() {
            self.machine.read(&mut parts)?;
        }
        unknown.odd = self.forms_at(pieces, &starts);
        let [token_starts, token_forms, coded, documents] =
            FOUND_ARRAYS.map(|array| self.machine.lend(array));
        let arrays = [token_starts?, token_forms?, coded?, documents?]
            .map(|memory| memory.expect("they are reserved above"));
        self.known += new;
        self.arena_bytes += u64::from(new_bytes);
        self.work.forms += u64::from(new);
        self.work.foreign += u64::from(foreign);
        self.work.odd += u64::from(odd);
        self.asker.ask(unknown);
        Ok(arrays)
    }

    fn forms_at(&self, pieces: &[PieceText], starts: &[u32]) -> Vec<Vec<u8>> {
        let classes = CharacterClasses::of(self.tokenizer);
        let places = pieces.iter().scan(0, |end, piece| {
            let begin = *end;
            *end += piece.bytes.len();
            Some(begin)
        });
        let places: Vec<usize> = places.collect();
        let form = |&start: &u32| {
            let piece = places.partition_point(|&place| place <= start as usize) - 1;
            classes.form_at(&pieces[piece].bytes, start as usize - places[piece]).to_vec()
        };
        starts.iter().map(form).collect()
    }

    /// Makes room for the forms of this many tokens, as if none of them were known.
    fn grow_table(&mut self, tokens: u32) -> Result<(), GpuError> {
        let wanted = 2 * u64::from(self.known) + u64::from(tokens);
        let slots = wanted.next_power_of_two().clamp(LEAST_SLOTS.into(), MOST_SLOTS.into()) as u32;
        if slots <= self.slots {
            // The table may have forms that were forgotten.
            return match self.known {
                0 => self.machine.run(&[clear(InvertArray::Slots, self.slots)]),
                _ => Ok(()),
            };
        }
        self.reserve::<u64>(InvertArray::NextSlots, slots.into())?;
        self.reserve::<u32>(InvertArray::NextSlotForms, slots.into())?;
        self.machine.run(&[clear(InvertArray::NextSlots, slots)])?;
        if self.known > 0 {
            self.machine.run(&[steps::rehash(self.slots, slots, self.tuning)])?;
        }
        self.machine.places().swap(InvertArray::Slots, InvertArray::NextSlots);
        self.machine.places().swap(InvertArray::SlotForms, InvertArray::NextSlotForms);
        self.slots = slots;
        Ok(())
    }
}

fn clear(table: InvertArray, slots: u32) -> InvertStep {
    steps::clear(table, 0, 2 * u64::from(slots))
}

/// Takes unneeded texts, or nothing, whenever uploaded texts of other pieces are used.
pub(crate) type Back = Arc<dyn Fn(Option<DeviceMemory>) + Send + Sync>;

struct FindJob {
    pieces: Arc<Vec<PieceText>>,
    text: Option<DeviceMemory>,
    to: Option<FoundTokens>,
}

/// A panic is one of finding forms.
type FindOutcome = thread::Result<Result<FoundForms, GpuError>>;

pub(super) struct FindThread {
    jobs: Sender<FindJob>,
    /// Dropped behind the sender, and waited for.
    _thread: Awaited<()>,
    finder: Arc<Mutex<Finder>>,
    outcomes: Receiver<FindOutcome>,
}

impl FindThread {
    /// `machine` has done nothing; `tell` is called whenever the forms of a batch are found.
    pub(super) fn start(
        machine: Box<dyn InvertMachine>,
        analysis: &Analysis,
        asker: LearnerAsker,
        back: Back,
        tell: TellLearned,
    ) -> std::io::Result<Self> {
        let tokenizer = analysis.tokenizer;
        let (plain, stop_words) = Plain::of(analysis);
        let finder = Finder {
            machine,
            tuning: InvertTuning::default(),
            tokenizer,
            plain,
            stop_words,
            has_classes: false,
            asker,
            back,
            known: 0,
            arena_bytes: 0,
            slots: 0,
            work: InverterWork::default(),
        };
        let finder = Arc::new(Mutex::new(finder));
        let (jobs, asked) = channel::<FindJob>();
        let (to, outcomes) = channel();
        let here = finder.clone();
        let find = move || {
            // Made before they are needed.
            CharacterClasses::of(tokenizer);
            for FindJob { pieces, text, to: tokens } in asked {
                let find = || lock(&here).find(&pieces, text, tokens);
                let outcome = catch_unwind(AssertUnwindSafe(find));
                drop(pieces);
                // If the receiver is gone nobody wants it.
                _ = to.send(outcome);
                tell();
            }
        };
        Ok(Self { jobs, _thread: Awaited::begin("finder", find)?, finder, outcomes })
    }

    /// Before anything is asked.
    #[cfg(test)]
    pub(super) fn tune(&mut self, tuning: InvertTuning) {
        self.finder().tuning = tuning;
    }

    /// Waits until nothing is under way.
    pub(super) fn finder(&self) -> MutexGuard<'_, Finder> {
        lock(&self.finder)
    }

    /// Asks for the forms of pieces, and goes on; answers come in order.
    pub(super) fn ask(
        &self,
        pieces: Arc<Vec<PieceText>>,
        text: Option<DeviceMemory>,
        to: Option<FoundTokens>,
    ) {
        _ = self.jobs.send(FindJob { pieces, text, to });
    }

    /// Of the next batches, as far as known.
    ///
    /// # Panics
    /// As the thread did.
    pub(super) fn outcomes(&self) -> impl Iterator<Item = Result<FoundForms, GpuError>> {
        self.outcomes.try_iter().map(|outcome| outcome.unwrap_or_else(|cause| resume_unwind(cause)))
    }

    /// Waits for the next batch.
    ///
    /// # Panics
    /// As the thread did.
    pub(super) fn wait(&self) -> Result<FoundForms, GpuError> {
        let outcome = self.outcomes.recv().expect("whatever is asked is answered");
        outcome.unwrap_or_else(|cause| resume_unwind(cause))
    }
}
