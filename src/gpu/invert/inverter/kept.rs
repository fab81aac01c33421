//! The postings that stay on a device until their run ends: of each batch in an array of its own
//! that is set aside; and the number of postings of each term.
//!
//! If the device has no room for a run, what it has is taken to the host
//! ([`spill`](Inverter::spill)), where the lists of the run are encoded then.

use super::Inverter;
use super::terms::OF_TERMS;
use super::typed::Typed;
use crate::dictionary::device::inverted::InvertedLists;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::{Downloader, InvertMachine};
use crate::gpu::invert::steps::postings::{self, PostingColumns};
use crate::gpu::invert::steps::{self, InvertArray, encode};

#[derive(Default)]
pub(super) struct Keeping {
    /// Lists are encoded on the device, if it has room.
    pub(super) wanted: bool,
    /// It had none in this run.
    spilled: bool,
    /// The postings of each batch, in the order of their arrays.
    pub(super) batches: Vec<u32>,
    /// Takes encoded lists to the host, once made.
    pub(super) downloader: Option<Box<dyn Downloader>>,
}

impl Keeping {
    pub(super) fn postings(&self) -> u64 {
        self.batches.iter().map(|&postings| u64::from(postings)).sum()
    }

    pub(super) fn is_on(&self) -> bool {
        self.wanted && !self.spilled
    }
}

impl<M: InvertMachine + ?Sized> Inverter<M> {
    pub(super) fn reserve_kept(&mut self, postings: u32) -> Result<(), GpuError> {
        match postings {
            0 => Ok(()),
            _ => self.reserve::<u32>(InvertArray::Kept, encode::kept_words(postings)),
        }
    }

    /// Retains what was counted last.
    pub(super) fn keep(&mut self, counted: PostingColumns, postings: u32) -> Result<(), GpuError> {
        if postings > 0 {
            self.machine.run(&[encode::keep(counted)])?;
            self.machine.places().set_aside(InvertArray::Kept);
            self.keeping.batches.push(postings);
        }
        Ok(())
    }

    /// Whether the postings of the run stay on the device until it ends.
    pub(crate) fn keeps(&self) -> bool {
        self.keeping.is_on()
    }

    /// Whether there are postings on the device, as there are until all lists are gathered and
    /// there is room to encode them.
    pub(crate) fn can_spill(&self) -> bool {
        !self.keeping.batches.is_empty()
    }

    /// Takes the lists on the device to the host; those of later batches of the run go there, too.
    /// Nothing is counted afterwards, and the device knows no forms.
    ///
    /// # Errors
    /// Of the device; the inverter cannot go on.
    pub(crate) fn spill(&mut self) -> Result<Vec<InvertedLists>, GpuError> {
        self.keeping.spilled = true;
        self.work.spilled += 1;
        self.free_but_run();
        if self.lasts > 0 {
            self.machine.run(&[steps::clear(InvertArray::Lasts, 0, self.lasts.into())])?;
        }
        let terms = self.lasts;
        // No piece is measured here.
        self.put(InvertArray::PieceStarts, 0, &[0u32])?;
        self.reserve::<u64>(InvertArray::PieceBytes, 1)?;
        self.reserve::<u64>(InvertArray::PiecePostings, 1)?;
        self.put(InvertArray::Counters, 0, &[0u32; steps::COUNTERS])?;
        let mut lists = Vec::new();
        for (place, postings) in self.keeping.batches.clone().into_iter().enumerate() {
            self.machine.places().exchange(InvertArray::Kept, place);
            let columns = PostingColumns::kept(postings);
            self.reserve_tiles(steps::tiles(postings))?;
            self.machine.run(&postings::measure(columns, 0))?;
            let list_bytes = self.sum()?;
            self.reserve_lists(postings, list_bytes, terms)?;
            lists.push(self.take_lists(columns, terms, list_bytes)?);
        }
        let of_run = [InvertArray::Lasts, InvertArray::Counts];
        self.machine.places().free_but(&[&of_run[..], &OF_TERMS].concat());
        self.forget_kept();
        Ok(lists)
    }

    pub(super) fn forget_kept(&mut self) {
        self.keeping.batches.clear();
        self.machine.places().free_aside();
    }

    /// The run has ended: the next one's postings stay again.
    pub(super) fn keep_again(&mut self) {
        self.keeping.spilled = false;
        self.forget_kept();
    }
}
