//! How do the terms of a run get their numbers? The device has a table of their codes: of those of [plain](Plain) forms, which it makes itself, and
//! of those that the host has made. A code that is not there gets the next number. The host takes the codes by number when it takes what a batch counts.

use super::find::Found;
use super::learner::Learned;
use super::typed::{Typed, part};
use super::{Inverter, spent};
use crate::dictionary::codes::{CODED_BYTES, code_of};
use crate::dictionary::forms::Meaning;
use crate::gpu::error::GpuError;
use crate::gpu::invert::machine::Machine;
use crate::gpu::invert::steps::terms::{self, Plain};
use crate::gpu::invert::steps::{self, Array, SUM};
use crate::pages;
use crate::text::analysis::Analysis;
use crate::text::scan::{KEY_BYTES, key_of};
use crate::text::stemmer::Stemmer;
use std::sync::Arc;
use std::time::Instant;

/// The smallest table, if there is room.
const LEAST_SLOTS: u32 = 1 << 10;
/// The largest one. A run has far fewer terms.
const MOST_SLOTS: u32 = 1 << 31;

/// Arrays of the terms of a run.
pub(super) const OF_TERMS: [Array; 4] =
    [Array::TermSlots, Array::SlotTerms, Array::TermCodes, Array::Terms];

/// Which forms the device makes terms of, and the codes of stop words.
pub fn plain(analysis: &Analysis) -> (Plain, Vec<u64>) {
    let words = || analysis.stop_words.words().map(str::as_bytes);
    let mut codes: Vec<u64> = words().filter_map(code_of).collect();
    codes.sort_unstable();
    let has_others = words().any(|word| code_of(word).is_none() && key_of(word).is_some());
    let longest = match analysis.stemmer {
        Stemmer::ENGLISH | Stemmer::NONE if has_others => CODED_BYTES,
        Stemmer::ENGLISH | Stemmer::NONE => KEY_BYTES,
        _ => 0,
    };
    let (stems, stop_words) = (analysis.stemmer == Stemmer::ENGLISH, codes.len() as u32);
    (Plain { longest: longest as u32, stems, stop_words }, codes)
}

/// The terms of the run.
#[derive(Default)]
pub(super) struct Numbering {
    /// Slots of the table; 0 if there is none.
    slots: u32,
    /// Terms of the run, at most.
    most: u32,
    /// Their codes by number, as far as batches were counted.
    pub(super) codes: Arc<Vec<u64>>,
}

impl<M: Machine> Inverter<M> {
    /// Tells the device what the new forms of a batch mean, and its odd tokens.
    pub(super) fn tell(&mut self, found: &Found, learned: &Learned) -> Result<(), GpuError> {
        let began = Instant::now();
        let Learned { foreign, odd, expansions, place, .. } = learned;
        let told = [foreign, odd, expansions].map(Vec::as_slice);
        let [foreign, odd, expansions] = told.map(|told| told.len() as u32);
        let all = foreign + odd + expansions;
        // A foreign form is one of the new ones, or its terms are among the expansions.
        let most = u64::from(self.terms.most)
            + u64::from(odd)
            + u64::from(expansions)
            + u64::from(found.new);
        self.reserve::<Meaning>(Array::Told, all.into())?;
        let parts = told.map(bytemuck::cast_slice);
        self.machine.write(Array::Told, 0, &parts)?;
        self.reserve::<u64>(Array::ForeignMeanings, foreign.into())?;
        self.reserve::<u64>(Array::OddMeanings, odd.into())?;
        let (place, first) = (*place as u64, u64::from(found.first_form));
        self.lengthen(Array::Expansions, place, expansions)?;
        self.lengthen(Array::Meanings, first, found.new)?;
        // At last, since a smaller table does, too.
        self.grow_terms(most)?;
        let told = |first: u32| (Array::Told, u64::from(first));
        for (from, count, to) in [
            (told(0), foreign, (Array::ForeignMeanings, 0)),
            (told(foreign), odd, (Array::OddMeanings, 0)),
            (told(foreign + odd), expansions, (Array::Expansions, place)),
            ((Array::CountedCoded, 0), found.new, (Array::Meanings, first)),
        ] {
            if count > 0 {
                self.machine.run(&terms::number_terms(from, count, self.terms.slots, to))?;
            }
        }
        // Not before: a batch that is told again may have all of these once.
        self.terms.most = most as u32;
        self.work.seconds.tell += spent(began);
        Ok(())
    }

    /// Makes room for meanings behind the first ones of an array.
    fn lengthen(&mut self, array: Array, had: u64, more: u32) -> Result<(), GpuError> {
        self.machine.reserve(array, (8 * (had + u64::from(more))).max(16), 8 * had)
    }

    /// Makes room for so many terms in all, in a table of twice as many slots or more; if a device has no room for that, in one that is not full.
    fn grow_terms(&mut self, most: u64) -> Result<(), GpuError> {
        let slots = (2 * most).next_power_of_two().clamp(LEAST_SLOTS.into(), MOST_SLOTS.into());
        let slots = slots as u32;
        let grows = slots > self.terms.slots;
        if grows {
            // The codes of the terms say all that it has, so that there need not be room for both.
            self.free_table();
        }
        let had = u64::from(self.terms.most);
        self.machine.reserve(Array::TermCodes, (8 * most).max(16), 8 * had)?;
        if had == 0 {
            self.put(Array::Terms, 0, &[0u32])?;
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

    fn free_table(&mut self) {
        self.machine.places().free(&[Array::TermSlots, Array::SlotTerms]);
        self.terms.slots = 0;
    }

    /// Makes a table of the terms that the run has.
    fn make_table(&mut self, slots: u32) -> Result<(), GpuError> {
        self.reserve::<u64>(Array::TermSlots, slots.into())?;
        self.reserve::<u32>(Array::SlotTerms, slots.into())?;
        self.machine.run(&[steps::clear(Array::TermSlots, 0, 2 * u64::from(slots))])?;
        if self.terms.most > 0 {
            self.machine.run(&[terms::fill_table(self.terms.most, slots)])?;
        }
        self.terms.slots = slots;
        Ok(())
    }

    /// The last sum of tiles, and how many terms the run has.
    pub(super) fn sum_and_terms(&mut self) -> Result<(u32, u32), GpuError> {
        let (mut sum, mut terms) = ([0u32], [0u32]);
        let sum_part = part(Array::Counters, SUM as u64, &mut sum);
        self.machine.read(&mut [sum_part, part(Array::Terms, 0, &mut terms)])?;
        self.terms.most = terms[0];
        Ok((sum[0], terms[0]))
    }

    /// Takes the codes of terms below number `terms` that are not known yet.
    pub(super) fn take_codes(&mut self, terms: u32) -> Result<(), GpuError> {
        let had = self.terms.codes.len();
        let new = (terms as usize).saturating_sub(had);
        if new == 0 {
            return Ok(());
        }
        let codes = Arc::make_mut(&mut self.terms.codes);
        pages::reserve(codes, new);
        codes.resize(had + new, 0);
        let taken = self.machine.read(&mut [part(Array::TermCodes, had as u64, &mut codes[had..])]);
        if taken.is_err() {
            codes.truncate(had);
        }
        taken
    }
}
