//! Numbers the terms of a run. The device has a table of their codes: of those of
//! [plain](terms::Plain) forms, which it makes itself, and of those that the host has made. A code
//! that is not there gets the next number, and the host takes the codes by number.

use super::find::FoundForms;
use super::learner::Learned;
use super::typed::{Typed, part};
use super::{Inverter, spent};
use crate::dictionary::device::forms::FormMeaning;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::InvertMachine;
use crate::gpu::invert::steps::terms::{self, ArrayTerms};
use crate::gpu::invert::steps::{self, COUNTERS, InvertArray, SUM};
use crate::pages;
use std::sync::Arc;
use std::time::Instant;

/// If there is room.
const LEAST_SLOTS: u32 = 1 << 10;
/// A run has far fewer terms.
const MOST_SLOTS: u32 = 1 << 31;

/// This many codes of new terms are read together with their number.
const LIKELY_TERMS: u64 = 1 << 16;

pub(super) const OF_TERMS: [InvertArray; 4] =
    [InvertArray::TermSlots, InvertArray::SlotTerms, InvertArray::TermCodes, InvertArray::Terms];

#[derive(Default)]
pub(super) struct Numbering {
    /// 0 without a table.
    slots: u32,
    /// Upper bound of the terms of the run.
    most: u32,
    pub(super) codes: Arc<Vec<u64>>,
}

impl<M: InvertMachine + ?Sized> Inverter<M> {
    /// Tells the device what the new forms of a batch and its odd tokens mean. Returns the terms of
    /// the run, and those of all tokens of the batch.
    pub(super) fn tell(
        &mut self,
        found: &FoundForms,
        learned: &Learned,
    ) -> Result<(u32, u32), GpuError> {
        let began = Instant::now();
        let Learned { foreign, odd, expansions, place, .. } = learned;
        let told = [foreign, odd, expansions].map(Vec::as_slice);
        let [foreign, odd, expansions] = told.map(|told| told.len() as u32);
        self.reserve::<FormMeaning>(InvertArray::Told, u64::from(foreign + odd + expansions))?;
        let parts = told.map(bytemuck::cast_slice);
        self.machine.write(InvertArray::Told, 0, &parts)?;
        self.reserve::<u64>(InvertArray::ForeignMeanings, foreign.into())?;
        self.reserve::<u64>(InvertArray::OddMeanings, odd.into())?;
        let place = *place as u64;
        let first = u64::from(found.first_form);
        self.lengthen(InvertArray::Expansions, place, expansions)?;
        self.lengthen(InvertArray::Meanings, first, found.new)?;
        let told = |first: u32, count, to, place| {
            let first = u64::from(first);
            ArrayTerms { from: InvertArray::Told, first, count, to, place }
        };
        let parts = [
            told(0, foreign, InvertArray::ForeignMeanings, 0),
            told(foreign, odd, InvertArray::OddMeanings, 0),
            told(foreign + odd, expansions, InvertArray::Expansions, place),
            ArrayTerms {
                from: InvertArray::CountedCoded,
                first: 0,
                count: found.new,
                to: InvertArray::Meanings,
                place: first,
            },
        ];
        self.reserve::<u32>(InvertArray::Counters, COUNTERS as u64)?;
        // A foreign form is one of the new ones, or its terms are among the expansions.
        let more = [odd, expansions, found.new];
        let numbered = self.number(parts, more, found.tokens);
        self.work.seconds.tell += spent(began);
        numbered
    }

    /// Numbers what stands in parts of arrays, at most the sum of `more` terms; returns the terms
    /// then, and those of `tokens`. The device is waited for once.
    fn number(
        &mut self,
        parts: [ArrayTerms; 4],
        more: [u32; 3],
        tokens: u32,
    ) -> Result<(u32, u32), GpuError> {
        let most = more.into_iter().map(u64::from).sum::<u64>() + u64::from(self.numbering.most);
        // Last, since a smaller table may do.
        self.grow_terms(most)?;
        for part in parts {
            if part.count > 0 {
                self.machine.run(&terms::number_terms(&part, self.numbering.slots))?;
            }
        }
        // Not before: a batch that is told again may have all of these once.
        self.numbering.most = most as u32;
        self.reserve_tiles(steps::tiles(tokens))?;
        self.machine.run(&steps::count_terms(tokens))?;
        let had = self.numbering.codes.len() as u64;
        let codes = Arc::make_mut(&mut self.numbering.codes);
        let likely = (most - had).min(LIKELY_TERMS) as usize;
        pages::reserve(codes, likely);
        codes.resize(had as usize + likely, 0);
        let mut sum = [0u32];
        let mut terms = [0u32];
        let told = self.machine.read(&mut [
            part(InvertArray::Counters, SUM as u64, &mut sum),
            part(InvertArray::Terms, 0, &mut terms),
            part(InvertArray::TermCodes, had, &mut codes[had as usize..]),
        ]);
        codes.truncate(if told.is_ok() { terms[0] as usize } else { had as usize });
        told?;
        self.numbering.most = terms[0];
        self.take_codes(terms[0])?;
        Ok((terms[0], sum[0]))
    }

    fn lengthen(&mut self, array: InvertArray, had: u64, more: u32) -> Result<(), GpuError> {
        self.machine.reserve(array, (8 * (had + u64::from(more))).max(16), 8 * had)
    }

    /// Makes room for `most` terms, in a table of twice as many slots or more; without memory for
    /// that, in one that is not full.
    fn grow_terms(&mut self, most: u64) -> Result<(), GpuError> {
        let slots = (2 * most).next_power_of_two().clamp(LEAST_SLOTS.into(), MOST_SLOTS.into());
        let slots = slots as u32;
        let grows = slots > self.numbering.slots;
        if grows {
            // The codes of the terms have all of it, so that memory need not hold both.
            self.free_table();
        }
        let had = u64::from(self.numbering.most);
        self.machine.reserve(InvertArray::TermCodes, (8 * most).max(16), 8 * had)?;
        if had == 0 {
            self.put(InvertArray::Terms, 0, &[0u32])?;
        }
        if !grows {
            return Ok(());
        }
        match self.make_table(slots) {
            Err(error) if error.is_out_of_memory() && most < u64::from(slots / 2) => {
                self.free_table();
                self.make_table(slots / 2)
            }
            made => made,
        }
    }

    /// For when no more terms get numbers.
    pub(super) fn free_terms(&mut self) {
        self.machine.places().free(&OF_TERMS);
        self.numbering.slots = 0;
    }

    fn free_table(&mut self) {
        self.machine.places().free(&[InvertArray::TermSlots, InvertArray::SlotTerms]);
        self.numbering.slots = 0;
    }

    fn make_table(&mut self, slots: u32) -> Result<(), GpuError> {
        self.reserve::<u64>(InvertArray::TermSlots, slots.into())?;
        self.reserve::<u32>(InvertArray::SlotTerms, slots.into())?;
        self.machine.run(&[steps::clear(InvertArray::TermSlots, 0, 2 * u64::from(slots))])?;
        if self.numbering.most > 0 {
            self.machine.run(&[terms::fill_table(self.numbering.most, slots)])?;
        }
        self.numbering.slots = slots;
        Ok(())
    }

    /// Reads the codes of terms below `terms` that are not known yet.
    fn take_codes(&mut self, terms: u32) -> Result<(), GpuError> {
        let had = self.numbering.codes.len();
        let new = (terms as usize).saturating_sub(had);
        if new == 0 {
            return Ok(());
        }
        let codes = Arc::make_mut(&mut self.numbering.codes);
        pages::reserve(codes, new);
        codes.resize(had + new, 0);
        let taken =
            self.machine.read(&mut [part(InvertArray::TermCodes, had as u64, &mut codes[had..])]);
        if taken.is_err() {
            codes.truncate(had);
        }
        taken
    }
}
