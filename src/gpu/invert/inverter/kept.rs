//! What stays of batches on a device until their run ends? Of each its postings, in an array of its
//! own that is set aside, and of each term how many there are. Those of all lanes are brought
//! together before the lists are encoded: arrays go from one to the other, also from another
//! device, as memory.
//!
//! If the device has no room for the postings of a run, what it has is taken to the host
//! ([`spill`](Counter::spill)), and the run goes on as one whose lists are encoded there.

use super::Counter;
use super::typed::Typed;
use crate::dictionary::device::inverted::Lists;
use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::{Downloader, Machine};
use crate::gpu::invert::steps::postings::{self, Columns};
use crate::gpu::invert::steps::{self, InvertArray, encode};

#[derive(Clone, Copy)]
pub(super) struct Kept {
    /// The docid of its first document, from the run's first.
    first: u32,
    pub(super) postings: u32,
    /// Its number among the arrays that are set aside.
    pub(super) place: usize,
}

/// What becomes of the lists of a run.
#[derive(Default)]
pub(super) struct Keeping {
    /// Lists are encoded on the device, if it has room.
    pub(super) wanted: bool,
    /// It had none in this run.
    spilled: bool,
    batches: Vec<Kept>,
    /// Takes encoded lists to the host, if it is there already.
    pub(super) downloader: Option<Box<dyn Downloader>>,
}

impl Keeping {
    pub(super) fn postings(&self) -> u64 {
        self.batches.iter().map(|kept| u64::from(kept.postings)).sum()
    }

    /// Whether the postings of the run stay on the device.
    pub(super) fn is_on(&self) -> bool {
        self.wanted && !self.spilled
    }
}

impl<M: Machine> Counter<M> {
    /// Makes room for what stays of a batch.
    pub(super) fn reserve_kept(&mut self, postings: u32) -> Result<(), GpuError> {
        match postings {
            0 => Ok(()),
            _ => self.reserve::<u32>(InvertArray::Kept, encode::kept_words(postings)),
        }
    }

    /// Keeps what was counted last, of which the first document has docid `first` of the run.
    pub(super) fn keep(
        &mut self,
        counted: Columns,
        postings: u32,
        first: u32,
    ) -> Result<(), GpuError> {
        if postings > 0 {
            self.machine.run(&[encode::keep(counted)])?;
            self.set_aside(postings, first);
        }
        Ok(())
    }

    fn set_aside(&mut self, postings: u32, first: u32) {
        self.machine.places().set_aside(InvertArray::Kept);
        let batches = &mut self.keeping.batches;
        batches.push(Kept { first, postings, place: batches.len() });
    }

    /// Takes the batches that another one keeps, which has what it has counted of them no more, and
    /// knows no forms.
    pub(super) fn take_batches(&mut self, other: &mut Self) -> Result<(), GpuError> {
        let terms = other.lasts;
        other.free_but_run();
        self.grow_lasts(terms)?;
        if !other.keeping.batches.is_empty() {
            if let Some(counts) = other.machine.lend(InvertArray::Counts)? {
                self.machine.adopt(InvertArray::OthersCounts, counts)?;
                self.machine.run(&[encode::add_counts(terms)])?;
            }
            for Kept { first, postings, place } in std::mem::take(&mut other.keeping.batches) {
                other.machine.places().exchange(InvertArray::Kept, place);
                if let Some(kept) = other.machine.lend(InvertArray::Kept)? {
                    self.machine.adopt(InvertArray::Kept, kept)?;
                    self.set_aside(postings, first);
                }
            }
            self.machine.places().free(&[InvertArray::OthersCounts]);
        }
        other.forget_run()?;
        other.free_all();
        Ok(())
    }

    /// Whether the lists of the run stay on the device until it ends.
    pub(super) fn keeps(&self) -> bool {
        self.keeping.is_on()
    }

    /// Whether the postings of the run stay on the device, as they do until all lists are gathered
    /// and there is room to encode them.
    pub(super) fn can_spill(&self) -> bool {
        !self.keeping.batches.is_empty()
    }

    /// Takes the lists that stay on the device to the host, and those of later batches of the run
    /// as well. Nothing is counted then, and the device knows no forms.
    ///
    /// # Errors
    /// Of the device. The inverter cannot go on then.
    pub(super) fn spill(&mut self) -> Result<Vec<Lists>, GpuError> {
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
        for Kept { postings, place, .. } in self.in_order() {
            self.machine.places().exchange(InvertArray::Kept, place);
            let columns = Columns::kept(postings);
            self.reserve_tiles(steps::tiles(postings))?;
            self.machine.run(&postings::measure(columns, 0))?;
            let list_bytes = self.sum()?;
            self.reserve_lists(postings, list_bytes, terms)?;
            lists.push(self.take_lists(columns, terms, list_bytes)?);
        }
        self.machine.places().free_but(&[InvertArray::Lasts, InvertArray::Counts]);
        self.forget_kept();
        Ok(lists)
    }

    /// The batches that stay, in the order of their documents.
    pub(super) fn in_order(&self) -> Vec<Kept> {
        let mut batches = self.keeping.batches.clone();
        batches.sort_unstable_by_key(|kept| kept.first);
        batches
    }

    /// The postings of the run are of no use any more.
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
