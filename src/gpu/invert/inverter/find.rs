//! How are the forms of a batch found? The device looks up each token, and a learner makes terms of the new forms meanwhile; a batch may be
//! found while the one before is not counted.

use super::learner::{Learned, Unknown};
use super::{Inverter, part, spent};
use crate::gpu::error::GpuError;
use crate::gpu::invert::machine::Machine;
use crate::gpu::invert::steps::{self, Array, COUNTERS, NEW_BYTES, NEW_FORMS, ODD_TOKENS};
use crate::gpu::invert::text::{MOST_BYTES, MOST_PIECES, PieceText, TILE_BYTES, form_at, parts};
use crate::pages;
use std::time::Instant;

/// The smallest table.
const LEAST_SLOTS: u32 = 1 << 12;
/// The largest one.
const MOST_SLOTS: u32 = 1 << 30;
/// When forms take more bytes than this before a batch they are forgotten: places of bytes are numbers of 32 bits. The terms
/// of a run take less, but there are forms without terms.
const MOST_ARENA_BYTES: u64 = (4 << 30) - MOST_BYTES as u64;
/// The same for numbers of forms, and words of expansions.
const MOST_FORMS: u32 = 1 << 30;
const MOST_EXPANSIONS: usize = 1 << 30;
/// Batches that are found and not counted: of one more there are no arrays.
pub const MOST_FOUND: usize = 2;

/// The texts of a batch as one.
pub(super) struct Layout {
    pub(super) bytes: usize,
    /// Bytes up to the end of the last tile.
    pub(super) padded: usize,
    /// Where each piece begins.
    piece_bytes: Vec<usize>,
    pub(super) document_starts: Vec<u32>,
    pub(super) piece_starts: Vec<u32>,
}

impl Layout {
    pub(super) fn of(pieces: &[PieceText]) -> Self {
        let (mut bytes, mut documents) = (0, 0);
        let (mut piece_bytes, mut document_starts, mut piece_starts) = Default::default();
        for piece in pieces {
            Vec::push(&mut piece_bytes, bytes);
            Vec::push(&mut piece_starts, documents);
            Vec::extend(&mut document_starts, piece.starts.iter().map(|s| bytes as u32 + s));
            bytes += piece.bytes.len();
            documents += piece.documents();
        }
        document_starts.push(bytes as u32);
        piece_starts.push(documents);
        let padded = bytes.next_multiple_of(TILE_BYTES);
        Self { bytes, padded, piece_bytes, document_starts, piece_starts }
    }

    pub(super) fn documents(&self) -> u32 {
        self.document_starts.len() as u32 - 1
    }

    /// The form that begins at a place of the batch.
    fn form<'a>(&self, pieces: &'a [PieceText], start: u32) -> &'a [u8] {
        let piece = self.piece_bytes.partition_point(|&first| first <= start as usize) - 1;
        form_at(&pieces[piece].bytes, start as usize - self.piece_bytes[piece])
    }
}

/// Which pieces: where they lie in the host's memory, and how many.
pub(super) type Which = (usize, usize);

pub(super) fn which(pieces: &[PieceText]) -> Which {
    (pieces.as_ptr().addr(), pieces.len())
}

/// A batch whose forms are found.
pub(super) struct Found {
    pub(super) of: Which,
    pub(super) layout: Layout,
    pub(super) tokens: u32,
    /// The number of its first new form.
    first_form: u32,
    /// What its new forms mean, once that is known; nothing is asked if there are no tokens.
    learned: Option<Learned>,
}

impl<M: Machine> Inverter<M> {
    /// Finds the forms of pieces that are [counted](Self::count) later, behind all that are found already; the host makes terms of them
    /// meanwhile. Nothing happens if the device has to forget forms before.
    ///
    /// # Errors
    /// Of the device. Nothing is found then, of earlier batches either.
    ///
    /// # Panics
    /// There are too many pieces, too much text, or there [was no room](Self::has_room).
    pub fn find(&mut self, pieces: &[PieceText]) -> Result<(), GpuError> {
        assert!(self.has_room(), "a batch is counted before");
        if self.has_too_many_forms() && !self.found.is_empty() {
            return Ok(());
        }
        let found = self.try_find(pieces);
        if found.is_err() {
            // The table may have forms that are not kept, and arrays be longer than smaller batches need.
            self.free_but_run();
        }
        found
    }

    /// Whether one more batch can be found before the next is counted.
    pub fn has_room(&self) -> bool {
        self.found.len() < MOST_FOUND
    }

    /// Batches that are found and not counted.
    pub fn found(&self) -> usize {
        self.found.len()
    }

    /// Whether counting the next batch would not wait for the host's terms.
    pub fn is_ready(&mut self) -> bool {
        while let Some(learned) = self.learner.answer() {
            self.learned(learned);
        }
        self.found.front().is_none_or(|found| found.tokens == 0 || found.learned.is_some())
    }

    pub(super) fn has_too_many_forms(&self) -> bool {
        self.arena_bytes > MOST_ARENA_BYTES
            || self.known > MOST_FORMS
            || self.expansions > MOST_EXPANSIONS
    }

    pub(super) fn try_find(&mut self, pieces: &[PieceText]) -> Result<(), GpuError> {
        let layout = Layout::of(pieces);
        assert!(pieces.len() <= MOST_PIECES && layout.padded <= MOST_BYTES, "a batch is bounded");
        self.work.batches += 1;
        self.work.bytes += layout.bytes as u64;
        if self.has_too_many_forms() {
            self.work.forgotten += 1;
            self.forget_forms()?;
        }
        let began = Instant::now();
        let (first_form, tokens) = (self.known, self.find_tokens(pieces, &layout)?);
        if tokens > 0 {
            self.find_forms(pieces, &layout, tokens)?;
        }
        self.work.seconds.find += spent(began);
        if self.found.is_empty() {
            self.turn();
        }
        let of = which(pieces);
        self.found.push_back(Found { of, layout, tokens, first_form, learned: None });
        Ok(())
    }

    /// Makes the batch that was found last the one that is counted next, or the other way round.
    pub(super) fn turn(&mut self) {
        self.machine.places().swap(Array::Tokens, Array::CountedTokens);
        self.machine.places().swap(Array::TokenForms, Array::CountedForms);
    }

    /// Notes what was learned of the first batch of which it was not known.
    fn learned(&mut self, learned: Learned) {
        self.work.seconds.learn += learned.seconds;
        let asked = self.found.iter_mut().find(|found| found.tokens > 0 && found.learned.is_none());
        asked.expect("a batch was found").learned = Some(learned);
    }

    /// Takes the batch that was found first, and tells the device what its forms mean; its terms have numbers below the second value.
    pub(super) fn take_found(&mut self) -> Result<(Found, u32), GpuError> {
        let began = Instant::now();
        while !self.is_ready() {
            let learned = self.learner.wait();
            self.learned(learned);
        }
        self.work.seconds.terms += spent(began);
        let mut found = self.found.pop_front().expect("a batch was found");
        let began = Instant::now();
        let numbers = match found.learned.take() {
            Some(learned) => self.know(found.first_form, learned)?,
            None => 0,
        };
        self.work.seconds.tell += spent(began);
        Ok((found, numbers))
    }

    /// Lets go of all that was found and not counted; the forms stay.
    pub(super) fn let_go(&mut self) -> Result<(), GpuError> {
        while !self.found.is_empty() {
            self.take_found()?;
        }
        Ok(())
    }

    /// Finds where tokens begin; their number.
    fn find_tokens(&mut self, pieces: &[PieceText], layout: &Layout) -> Result<u32, GpuError> {
        // Later pieces may lie where these do.
        let brought = self.brought.take();
        if layout.bytes == 0 {
            return Ok(0);
        }
        if brought != Some(which(pieces)) {
            let began = Instant::now();
            self.reserve::<u8>(Array::Text, layout.padded as u64)?;
            self.machine.write(Array::Text, 0, &parts(pieces))?;
            let took = spent(began);
            self.work.seconds.upload += took;
            // Its caller counts all.
            self.work.seconds.find -= took;
        }
        let tiles = steps::text_tiles(layout.padded);
        self.reserve_tiles(tiles)?;
        self.put(Array::Counters, 0, &[0u32; COUNTERS])?;
        self.machine.run(&steps::count_tokens(tiles))?;
        let tokens = self.sum()?;
        self.work.tokens += u64::from(tokens);
        self.reserve::<u32>(Array::Tokens, u64::from(tokens))?;
        self.machine.run(&[steps::write_tokens(tiles)])?;
        Ok(tokens)
    }

    /// Finds the form of each token, and asks what new forms mean.
    fn find_forms(
        &mut self,
        pieces: &[PieceText],
        layout: &Layout,
        tokens: u32,
    ) -> Result<(), GpuError> {
        use Array::{NewLengths, NewPlaces, NewStarts, Odd, TokenForms};
        for array in [TokenForms, NewStarts, NewLengths, NewPlaces, Odd] {
            self.reserve::<u32>(array, u64::from(tokens))?;
        }
        self.grow_table(tokens)?;
        let known = self.known;
        self.machine.run(&[steps::find_forms(tokens, self.slots, known, self.tuning)])?;
        let counters = self.counters()?;
        let (new, new_bytes) = (counters[NEW_FORMS], counters[NEW_BYTES]);
        let (used, places) = (self.arena_bytes, u64::from(known) + 1);
        self.machine.reserve(Array::Arena, (used + u64::from(new_bytes)).max(16), used)?;
        let all = places + u64::from(new);
        self.machine.reserve(Array::FormPlaces, 4 * all, if known > 0 { 4 * places } else { 0 })?;
        self.machine.reserve(Array::Meanings, 8 * all, 8 * u64::from(known))?;
        if new > 0 {
            self.reserve::<u32>(Array::Sums, steps::sum_words(new).into())?;
            self.machine.run(&steps::scan(NewPlaces, new))?;
            self.machine.run(&[steps::keep_forms(new, known, used as u32)])?;
        }
        self.machine.run(&[steps::check_forms(tokens)])?;
        let mut unknown = Unknown::default();
        let mut counters = [0u32; COUNTERS];
        let mut parts = vec![part(Array::Counters, 0, &mut counters)];
        if new > 0 {
            unknown.bytes = pages::zeroed(new_bytes as usize);
            unknown.places = pages::zeroed(new as usize + 1);
            parts.push(part(Array::Arena, used, &mut unknown.bytes));
            parts.push(part(Array::FormPlaces, known.into(), &mut unknown.places));
        }
        self.machine.read(&mut parts)?;
        let odd = counters[ODD_TOKENS];
        if odd > 0 {
            let starts: Vec<u32> = self.get(Odd, 0, odd as usize)?;
            unknown.odd = starts.iter().map(|&at| layout.form(pieces, at).to_vec()).collect();
        }
        self.learner.ask(unknown).map_err(|source| {
            let device = "the indexer gpu".to_owned();
            GpuError::Thread { device, source }
        })?;
        self.known += new;
        self.arena_bytes += u64::from(new_bytes);
        self.work.forms += u64::from(new);
        self.work.odd += u64::from(odd);
        Ok(())
    }

    /// Tells the device what was learned of a batch whose new forms begin with number `first`; the numbers of its terms are below the result.
    fn know(&mut self, first: u32, learned: Learned) -> Result<u32, GpuError> {
        let Learned { meanings, odd_meanings, expansions, place, kept, numbers, .. } = learned;
        self.put(Array::Meanings, first.into(), &meanings)?;
        self.put(Array::OddMeanings, 0, &odd_meanings)?;
        self.put(Array::Expansions, place as u64, &expansions)?;
        self.expansions = kept;
        Ok(numbers)
    }

    /// Makes room for the forms of so many tokens, if none of them is known.
    fn grow_table(&mut self, tokens: u32) -> Result<(), GpuError> {
        let wanted = 2 * u64::from(self.known) + u64::from(tokens);
        let slots = wanted.next_power_of_two().clamp(LEAST_SLOTS.into(), MOST_SLOTS.into()) as u32;
        if slots <= self.slots {
            return Ok(());
        }
        self.reserve::<u64>(Array::NextSlots, slots.into())?;
        self.reserve::<u32>(Array::NextSlotForms, slots.into())?;
        self.machine.run(&[steps::clear(Array::NextSlots, 0, 2 * u64::from(slots))])?;
        if self.known > 0 {
            self.machine.run(&[steps::rehash(self.slots, slots, self.tuning)])?;
        }
        self.machine.places().swap(Array::Slots, Array::NextSlots);
        self.machine.places().swap(Array::SlotForms, Array::NextSlotForms);
        self.slots = slots;
        Ok(())
    }

    /// Empties the table of forms. The host knows their terms still.
    pub(super) fn forget_forms(&mut self) -> Result<(), GpuError> {
        (self.known, self.arena_bytes, self.expansions) = (0, 0, 0);
        self.learner.forget_expansions();
        if self.slots > 0 {
            self.machine.run(&[steps::clear(Array::Slots, 0, 2 * u64::from(self.slots))])?;
        }
        Ok(())
    }
}
