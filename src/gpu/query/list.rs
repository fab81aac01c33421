//! Layout of a postings list in the memory of a device.
//!
//! By windows of docids, by which queries are added up: of each posting 16 bits of its docid, an
//! *impact* of 8 bits, and its term frequency, 4 bytes in all (`kernels/query_list.cuh` has the
//! arrays). That is about four times what `bp128` takes, and is read some times faster: a device is
//! bound by the instructions of decoding long before its memory. The impact, 255 times the
//! posting's score by the most of the list, rounded up, bounds its share of a score, whatever the
//! factor of the term's weight; that of a saturation is `255 * tf / (tf + norm)`. Deleted
//! documents, whose norm is infinite, have impact 0.
//!
//! Lists are made on the host, from any codec, over all runs of a generation.

pub(crate) mod impacts;

use crate::gpu::floor::arrays::{ALIGNMENT, put};
use crate::score::weight::{LEAST, Weight};
use impacts::ImpactMaker;

pub(crate) const MOST_IMPACT: u32 = 255;

/// Term frequencies from this on stand apart.
pub(super) const EXCEPTION: u32 = 255;

/// Postings of a window begin at a multiple of this.
pub(super) const GROUP: usize = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Sums of upper bounds of scores, as here.
    #[default]
    Bounds,
    /// Sums of learned weights: [`impacts`].
    Impacts,
    /// The same, and bounds of blocks of documents.
    DocumentBlocks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub documents: u32,
    /// Binary logarithm of a window's documents, at most 16.
    pub bits: u32,
    pub layout: Layout,
}

impl Windows {
    /// At least one.
    pub(crate) fn len(self) -> usize {
        ((u64::from(self.documents) + (1 << self.bits) - 1) >> self.bits).max(1) as usize
    }

    /// Of the arrays that have a value for each window.
    fn table_bytes(self) -> usize {
        (4 * (self.len() + 1)).next_multiple_of(ALIGNMENT) + self.len().next_multiple_of(ALIGNMENT)
    }

    /// Bytes of a list of `df` postings, if hardly any has a great term frequency.
    pub(crate) fn about_bytes(self, df: u64) -> u64 {
        if self.layout != Layout::Bounds {
            return impacts::about_bytes(self, df);
        }
        let padding = (GROUP as u64 - 1) * (self.len() as u64).min(df) / 2;
        self.table_bytes() as u64 + 4 * (df + padding)
    }

    #[cfg(test)]
    pub(crate) fn most_bytes(self, df: u32) -> u64 {
        let padding = (GROUP as u64 - 1) * (self.len() as u64).min(u64::from(df)) + 15;
        // Exceptions take eight bytes more than others.
        self.table_bytes() as u64 + 4 * (u64::from(df) + padding) + 8 * u64::from(df)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacedList {
    /// Of learned weights: chunks of postings.
    pub postings: u32,
    /// Postings whose term frequency stands apart. Of learned weights: the greatest one.
    pub exceptions: u32,
    /// A weight of factor 1 scores no posting higher.
    pub most: f32,
}

/// By the share that the posting's score has of the most of its list. With that most times the
/// factor of a query as `weight`, the score is not above `weight * impact / 255`, except for the
/// rounding of f32, and not below that by more than `weight / 255`, likewise.
#[inline]
pub(crate) fn impact(share: f32) -> u8 {
    // Makes up for fourteen roundings of one part in 2^24, so that the bound holds.
    const UP: f32 = 255.0 * (1.0 + 8.0 * f32::EPSILON);
    let value = share * UP;
    // The conversion saturates.
    let floor = value as u8;
    floor.saturating_add(u8::from(f32::from(floor) < value))
}

#[derive(Debug, Default)]
pub(crate) struct ListMaker {
    weight: Weight,
    starts: Vec<u32>,
    docids: Vec<u16>,
    scores: Vec<f32>,
    tfs: Vec<u8>,
    exceptions: Vec<u32>,
    exceptional_tfs: Vec<u32>,
    of_impacts: ImpactMaker,
}

impl ListMaker {
    /// Begins a list of a term, by its weight in any query.
    pub(crate) fn begin(&mut self, weight: Weight) {
        self.weight = weight.of_factor_1();
        self.starts.clear();
        self.docids.clear();
        self.scores.clear();
        self.tfs.clear();
        self.exceptions.clear();
        self.exceptional_tfs.clear();
        self.of_impacts.begin();
    }

    /// Whether the list would take far too much memory, and is left to the CPU.
    pub(super) fn is_too_great(&self) -> bool {
        self.of_impacts.is_too_great()
    }

    /// Appends postings whose docids rise above all before; `norms` are those of all documents.
    ///
    /// # Panics
    /// If a docid is beyond the documents.
    pub(crate) fn push(&mut self, windows: Windows, docids: &[u32], tfs: &[u32], norms: &[f32]) {
        if windows.layout != Layout::Bounds {
            return self.of_impacts.push(windows, docids, tfs, norms);
        }
        let mut at = 0;
        while at < docids.len() {
            let window = docids[at] >> windows.bits;
            self.reach(window as usize);
            let end =
                at + docids[at..].iter().take_while(|&&d| d >> windows.bits == window).count();
            self.append(windows, &docids[at..end], &tfs[at..end], norms);
            at = end;
        }
    }

    /// Appends postings of the open window.
    fn append(&mut self, windows: Windows, docids: &[u32], tfs: &[u32], norms: &[f32]) {
        let mask = (1u32 << windows.bits) - 1;
        self.docids.extend(docids.iter().map(|&docid| (docid & mask) as u16));
        let before = self.scores.len();
        self.scores.extend(docids.iter().map(|&docid| norms[docid as usize]));
        self.weight.score_all(tfs, &mut self.scores[before..]);
        for (&tf, at) in tfs.iter().zip(before as u32..) {
            if tf >= EXCEPTION {
                self.exceptions.push(at);
                self.exceptional_tfs.push(tf);
            }
            self.tfs.push(tf.min(EXCEPTION) as u8);
        }
    }

    /// Windows up to `window` that have not begun yet begin here.
    fn reach(&mut self, window: usize) {
        if self.starts.len() <= window {
            self.pad(GROUP);
            self.starts.resize(window + 1, self.docids.len() as u32);
        }
    }

    /// Repeats the last docid, with score 0, up to a multiple of `group` postings.
    fn pad(&mut self, group: usize) {
        let last = self.docids.last().copied().unwrap_or(0);
        let len = self.docids.len().next_multiple_of(group);
        self.docids.resize(len, last);
        self.scores.resize(len, 0.0);
        self.tfs.resize(len, 0);
    }

    /// Appends the list to `out`, whose length is a multiple of [`ALIGNMENT`] before and after.
    pub(crate) fn finish(&mut self, windows: Windows, out: &mut Vec<u8>) -> PlacedList {
        if windows.layout != Layout::Bounds {
            return self.of_impacts.finish(windows, out);
        }
        self.reach(windows.len());
        self.pad(ALIGNMENT);
        let most = match self.weight.is_saturation() {
            true => 1.0,
            false => self.scores.iter().copied().fold(LEAST, f32::max),
        };
        let impacts: Vec<u8> = self.scores.iter().map(|score| impact(score / most)).collect();
        let most_of = |window: &[u32]| {
            impacts[window[0] as usize..window[1] as usize].iter().copied().max().unwrap_or(0)
        };
        let maxes: Vec<u8> = self.starts.windows(2).map(most_of).collect();
        put(out, bytemuck::cast_slice(&self.starts));
        put(out, &maxes);
        put(out, bytemuck::cast_slice(&self.docids));
        put(out, &impacts);
        put(out, &self.tfs);
        self.exceptions.extend_from_slice(&self.exceptional_tfs);
        put(out, bytemuck::cast_slice(&self.exceptions));
        PlacedList {
            postings: self.docids.len() as u32,
            exceptions: self.exceptional_tfs.len() as u32,
            most,
        }
    }
}

/// As kernels read it: for the twin and for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceList<'a> {
    starts: &'a [[u8; 4]],
    pub maxes: &'a [u8],
    docids: &'a [[u8; 2]],
    impacts: &'a [u8],
    tfs: &'a [u8],
    exceptions: &'a [[u8; 4]],
    exceptional_tfs: &'a [[u8; 4]],
}

#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DevicePosting {
    /// The docid less the first of the window.
    pub offset: u32,
    /// 0 of padding too.
    pub impact: u8,
    pub at: usize,
}

#[cfg(test)]
impl<'a> DeviceList<'a> {
    /// The list at the beginning of `bytes`.
    ///
    /// # Panics
    /// If the bytes are too few.
    pub(crate) fn new(windows: Windows, placed: PlacedList, mut bytes: &'a [u8]) -> Self {
        let mut take = |len: usize| {
            let (part, rest) = bytes.split_at(len.next_multiple_of(ALIGNMENT).min(bytes.len()));
            bytes = rest;
            &part[..len]
        };
        let postings = placed.postings as usize;
        let starts = take(4 * (windows.len() + 1));
        let maxes = take(windows.len());
        let docids = take(2 * postings);
        let impacts = take(postings);
        let tfs = take(postings);
        let exceptions = take(8 * placed.exceptions as usize).as_chunks().0;
        let (exceptions, exceptional_tfs) = exceptions.split_at(placed.exceptions as usize);
        let starts = starts.as_chunks().0;
        let docids = docids.as_chunks().0;
        Self { starts, maxes, docids, impacts, tfs, exceptions, exceptional_tfs }
    }

    /// With padding.
    pub(crate) fn window(&self, window: usize) -> impl Iterator<Item = DevicePosting> {
        let start = |window: usize| u32::from_le_bytes(self.starts[window]) as usize;
        (start(window)..start(window + 1)).map(|at| DevicePosting {
            offset: u16::from_le_bytes(self.docids[at]).into(),
            impact: self.impacts[at],
            at,
        })
    }

    pub(crate) fn tf(&self, at: usize) -> u32 {
        match self.tfs[at] {
            u8::MAX => {
                let places = self.exceptions.iter().map(|place| u32::from_le_bytes(*place));
                let found =
                    places.zip(self.exceptional_tfs).find(|(place, _)| *place as usize == at);
                found.map_or(EXCEPTION, |(_, tf)| u32::from_le_bytes(*tf))
            }
            tf => tf.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::twin::{FORMULAS, norm, weight};
    use super::*;
    use proptest::prelude::*;

    const WINDOWS: Windows = Windows { documents: 1000, bits: 6, layout: Layout::Bounds };

    fn made(postings: &[(u32, u32)], norms: &[f32], piece: usize) -> (Vec<u8>, PlacedList) {
        let mut maker = ListMaker::default();
        maker.begin(1.0.into());
        for part in postings.chunks(piece) {
            let (docids, tfs): (Vec<u32>, Vec<u32>) = part.iter().copied().unzip();
            maker.push(WINDOWS, &docids, &tfs, norms);
        }
        let mut bytes = Vec::new();
        let placed = maker.finish(WINDOWS, &mut bytes);
        (bytes, placed)
    }

    proptest! {
        #[test]
        fn law_a_list_gives_its_postings_back(
            chosen in prop::collection::btree_map(0..WINDOWS.documents, prop_oneof![1..4u32, 254..257u32, 1..u32::MAX], 0..300),
            piece in 1..200usize,
        ) {
            let postings: Vec<(u32, u32)> = chosen.into_iter().collect();
            let norms: Vec<f32> = (0..WINDOWS.documents).map(|d| (d % 7) as f32 * 0.3).collect();
            let (bytes, placed) = made(&postings, &norms, piece);
            prop_assert!(bytes.len().is_multiple_of(ALIGNMENT));
            prop_assert!(bytes.len() as u64 <= WINDOWS.most_bytes(postings.len() as u32));
            let list = DeviceList::new(WINDOWS, placed, &bytes);
            let mut found = Vec::new();
            for window in 0..WINDOWS.len() {
                let mut most = 0;
                for (i, posting) in list.window(window).enumerate() {
                    prop_assert!(i > 0 || posting.at.is_multiple_of(GROUP));
                    most = most.max(posting.impact);
                    if posting.impact > 0 {
                        found.push(((window as u32) << WINDOWS.bits | posting.offset, list.tf(posting.at)));
                    }
                }
                prop_assert_eq!(most, list.maxes[window]);
            }
            prop_assert_eq!(found, postings);
        }

        #[test]
        fn law_impacts_bound_scores_from_both_sides(
            formula in prop::sample::select(FORMULAS.to_vec()),
            postings in prop::collection::vec((
                prop_oneof![1..10u32, 1..=u32::MAX],
                prop_oneof![0.0..3.0f32, 0.0..1e9f32, Just(0.0f32), Just(f32::INFINITY)],
            ), 1..60),
            times in (1e-3..1e3f32, 1e-3..1e3f32),
            more in prop::sample::select(vec![0.0f32, 1e-6, 0.1, 3.0, 1e6]),
        ) {
            let (tfs, norms): (Vec<u32>, Vec<f32>) = postings.iter().copied().unzip();
            let norms: Vec<f32> = norms.into_iter().map(|of| norm(formula, of)).collect();
            let docids: Vec<u32> = (0..tfs.len() as u32).collect();
            let mut maker = ListMaker::default();
            maker.begin(weight(formula, times.0, more));
            maker.push(WINDOWS, &docids, &tfs, &norms);
            let mut bytes = Vec::new();
            let placed = maker.finish(WINDOWS, &mut bytes);
            let weight = weight(formula, times.1, more);
            let list = DeviceList::new(WINDOWS, placed, &bytes);
            for (posting, (&tf, &norm)) in list.window(0).zip(tfs.iter().zip(&norms)) {
                let most = f64::from(placed.most * weight.factor());
                let share = f64::from(weight.score(tf, norm)) / most * 255.0;
                let impact = f64::from(posting.impact);
                prop_assert_eq!(impact >= 1.0, norm.is_finite());
                // What the slack of a query allows for.
                prop_assert!(impact >= share * (1.0 - 1e-6), "{} {}", impact, share);
                prop_assert!(impact <= share * (1.0 + 2e-6) + 1.0, "{} {}", impact, share);
            }
        }
    }
}
