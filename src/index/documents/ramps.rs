//! Files of numbers of documents as columns of [ramps](Ramp): the rests, then the ramps of each
//! block of 128 documents, one for each column, and one that ends them.

use super::Location;
use crate::codec::prefetch::prefetch_at;
use crate::codec::ramp::{self, BLOCK, MAX_WIDTH, Ramp, UNIT};
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::{FileEntry, StorageFile};
use crate::index::files::window::FileWindow;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length};
use crate::index::generations::manifest::RunEntry;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const BODY: u64 = HEADER_BYTES as u64;
const RAMP_BYTES: u64 = size_of::<Ramp>() as u64;

/// What a file of ramps has, by its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct RampLayout {
    documents: u32,
    columns: u32,
    /// Of rests, in all.
    units: u32,
}

/// Where the two parts of a name are among the bytes of all: the front that all names of its block
/// share, and its own rest. Neither ends before it begins, nor does the front end behind the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamePlace {
    pub front: u64,
    pub front_end: u64,
    pub start: u64,
    pub end: u64,
}

impl NamePlace {
    pub(crate) fn parts(&self) -> [Range<u64>; 2] {
        [self.front..self.front_end, self.start..self.end]
    }
}

/// Where the bytes come from.
trait RampSource {
    fn path(&self) -> &Path;

    /// The ramp at a place, and the one behind it.
    fn ramps(&mut self, at: u64) -> Result<[Ramp; 2], IndexError>;

    fn rests(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError>;
}

impl RampLayout {
    /// Of a file of the run with this many documents; returns what else its header says.
    fn of(
        path: &Path,
        kind: FileKind,
        documents: u32,
        header: &[u8],
    ) -> Result<(Self, u64), IndexError> {
        let header = FileHeader::parse(path, kind, header)?;
        header.check_unused(path, 3)?;
        let [count, other, units, ..] = header.values;
        if count != u64::from(documents) {
            return Err(IndexError::damaged(path, 16, documents, count));
        }
        let columns = if kind == FileKind::Locations { 3 } else { 2 };
        let most = |_| IndexError::damaged(path, 32, "at most 2^32 - 1 units", units);
        Ok((Self { documents, columns, units: units.try_into().map_err(most)? }, other))
    }

    fn ramps(&self) -> u64 {
        u64::from(self.documents).div_ceil(BLOCK as u64) * u64::from(self.columns) + 1
    }

    fn bytes(&self) -> u64 {
        BODY + UNIT * u64::from(self.units) + RAMP_BYTES * self.ramps()
    }

    /// Where the ramp of a document begins.
    fn at(&self, column: u32, docid: u32) -> u64 {
        let ramp = u64::from(docid) / BLOCK as u64 * u64::from(self.columns) + u64::from(column);
        BODY + UNIT * u64::from(self.units) + RAMP_BYTES * ramp
    }

    /// The ramp of a document in a column, and the one behind it.
    #[inline(always)]
    fn ramp(
        &self,
        source: &mut impl RampSource,
        column: u32,
        docid: u32,
    ) -> Result<[Ramp; 2], IndexError> {
        if docid >= self.documents {
            let expected = format!("more than {docid} documents");
            return Err(IndexError::damaged(source.path(), 16, expected, self.documents));
        }
        source.ramps(self.at(column, docid))
    }

    /// The rests of neighbouring documents of a block, if their ramp has any; 0 otherwise.
    #[inline(always)]
    fn rests<const N: usize>(
        &self,
        source: &mut impl RampSource,
        column: u32,
        first: u32,
        [ramp, next]: [Ramp; 2],
    ) -> Result<[u64; N], IndexError> {
        if ramp.place == next.place {
            return Ok([0; N]);
        }
        let width = next.place.wrapping_sub(ramp.place);
        if width > MAX_WIDTH || next.place > self.units {
            return Err(self.wrong(source.path(), self.at(column, first), next.place));
        }
        let first = first as usize % BLOCK;
        let start = ramp::words(first, width).start;
        let end = ramp::words(first + N - 1, width).end;
        let at = BODY + UNIT * u64::from(ramp.place) + 8 * start as u64;
        let bytes = source.rests(at, 8 * (end - start))?;
        Ok(std::array::from_fn(|n| {
            let words = ramp::words(first + n, width);
            let word = |at: usize| {
                let bytes = bytes.get(8 * (at - start)..).and_then(<[u8]>::first_chunk);
                bytes.map_or(0, |word| u64::from_le_bytes(*word))
            };
            let high = if words.len() > 1 { word(words.start + 1) } else { 0 };
            ramp::rest([word(words.start), high], first + n, width)
        }))
    }

    /// The number of a document in a column.
    #[inline(always)]
    fn number(
        &self,
        source: &mut impl RampSource,
        column: u32,
        docid: u32,
        step: u64,
    ) -> Result<u64, IndexError> {
        let ramps = self.ramp(source, column, docid)?;
        let [rest] = self.rests(source, column, docid, ramps)?;
        Ok(ramps[0].number(step, rest))
    }

    #[cold]
    fn wrong(&self, path: &Path, at: u64, found: u32) -> IndexError {
        let expected = format!("rests of at most {MAX_WIDTH} bits among {} units", self.units);
        IndexError::damaged(path, at, expected, format_args!("an end at unit {found}"))
    }

    /// The number of a document in a column whose steps are places in the block.
    #[inline(always)]
    fn even(
        &self,
        source: &mut impl RampSource,
        column: u32,
        docid: u32,
    ) -> Result<u64, IndexError> {
        self.number(source, column, docid, u64::from(docid) % BLOCK as u64)
    }

    /// Where a name is, of a file of their ends.
    #[inline(always)]
    fn name(&self, source: &mut impl RampSource, docid: u32) -> Result<NamePlace, IndexError> {
        let ramps = self.ramp(source, 0, docid)?;
        let step = u64::from(docid) % BLOCK as u64;
        // The next ramp is that of the second column.
        let [front, front_end] = [0, 1].map(|step| ramps[1].number(step, 0));
        let (start, end) = match step.checked_sub(1) {
            None => {
                let [rest] = self.rests(source, 0, docid, ramps)?;
                (front_end, ramps[0].number(step, rest))
            }
            Some(before) => {
                let rests: [u64; 2] = self.rests(source, 0, docid - 1, ramps)?;
                (ramps[0].number(before, rests[0]), ramps[0].number(step, rests[1]))
            }
        };
        if front <= front_end && front_end <= start && start <= end {
            return Ok(NamePlace { front, front_end, start, end });
        }
        let expected = format!("a name from {front} to {front_end} and from {start} on");
        let at = self.at(0, docid);
        Err(IndexError::damaged(source.path(), at, expected, format_args!("its end at {end}")))
    }

    /// The place of a document, of a file of these.
    fn location(&self, source: &mut impl RampSource, docid: u32) -> Result<Location, IndexError> {
        let end = self.even(source, 0, docid)?;
        let before = if docid == 0 { 0 } else { self.even(source, 0, docid - 1)? };
        let bytes = self.number(source, 1, docid, end.wrapping_sub(before))?;
        let input = self.even(source, 2, docid)?;
        let (Ok(short), Ok(input)) = (u32::try_from(bytes), u32::try_from(input)) else {
            let found = format!("{bytes} of input {input}");
            let at = self.at(0, docid);
            return Err(IndexError::damaged(source.path(), at, "bytes of a document", found));
        };
        Ok(Location { offset: end.wrapping_sub(bytes), bytes: short, input })
    }
}

/// A file of ramps, mapped. What is read of it is verified: all ramps when one is first read, and
/// of the rests the block that is read.
#[derive(Debug)]
pub(super) struct RampMap {
    map: Map,
    layout: RampLayout,
    is_verified: AtomicBool,
}

impl RampSource for &RampMap {
    fn path(&self) -> &Path {
        self.map.path()
    }

    #[inline(always)]
    fn ramps(&mut self, at: u64) -> Result<[Ramp; 2], IndexError> {
        if !self.is_verified.load(Ordering::Relaxed) {
            self.verify_ramps()?;
        }
        self.map.slice(at, 2 * RAMP_BYTES).map(two)
    }

    #[inline(always)]
    fn rests(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        self.map.checked(at, bytes as u64)
    }
}

impl RampMap {
    /// Reads no more than the header, and returns what it says beside the ramps.
    pub(super) fn open(
        path: &Path,
        kind: FileKind,
        documents: u32,
    ) -> Result<(Self, u64), IndexError> {
        let map = Map::open(path)?;
        let (layout, other) = RampLayout::of(path, kind, documents, map.bytes())?;
        check_length(path, map.bytes().len() as u64, Some(layout.bytes()))?;
        Ok((Self { map, layout, is_verified: AtomicBool::new(false) }, other))
    }

    #[cold]
    #[inline(never)]
    fn verify_ramps(&self) -> Result<(), IndexError> {
        self.map.checked(self.layout.at(0, 0), RAMP_BYTES * self.layout.ramps())?;
        self.is_verified.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Where in the file the ramp of a document is.
    pub(super) fn at(&self, docid: u32) -> u64 {
        self.layout.at(0, docid)
    }

    #[inline(always)]
    pub(super) fn name(&self, docid: u32) -> Result<NamePlace, IndexError> {
        self.layout.name(&mut &*self, docid)
    }

    pub(super) fn location(&self, docid: u32) -> Result<Location, IndexError> {
        self.layout.location(&mut &*self, docid)
    }

    /// Prefetches the rest of a document in the first column.
    #[inline]
    pub(super) fn prefetch(&self, docid: u32) {
        let Some(bytes) = self.map.from(self.layout.at(0, docid)).get(..2 * RAMP_BYTES as usize)
        else {
            return;
        };
        let [ramp, next] = two(bytes);
        let width = next.place.wrapping_sub(ramp.place);
        if (1..=MAX_WIDTH).contains(&width) {
            let word = ramp::words(docid as usize % BLOCK, width).start;
            prefetch_at(self.map.from(BODY + UNIT * u64::from(ramp.place)), 8 * word);
        }
    }
}

#[inline(always)]
fn two(bytes: &[u8]) -> [Ramp; 2] {
    bytemuck::pod_read_unaligned(bytes)
}

/// A file of ramps where memory counts. Memory: two windows.
pub(crate) struct RampWindow {
    windows: RampWindows,
    layout: RampLayout,
}

struct RampWindows {
    ramps: FileWindow,
    /// None if both are read by way of one.
    rests: Option<FileWindow>,
}

impl RampSource for RampWindows {
    fn path(&self) -> &Path {
        self.ramps.path()
    }

    fn ramps(&mut self, at: u64) -> Result<[Ramp; 2], IndexError> {
        self.ramps.read(at, 2 * RAMP_BYTES as usize).map(two)
    }

    fn rests(&mut self, at: u64, bytes: usize) -> Result<&[u8], IndexError> {
        self.rests.as_mut().unwrap_or(&mut self.ramps).read(at, bytes)
    }
}

impl RampWindow {
    /// A file of the documents of a run, through windows of this many bytes. `open` is
    /// [`FileWindow::open`] or [`FileWindow::checked`].
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        kind: FileKind,
        bytes: usize,
        open: impl Fn(&Path, usize) -> Result<FileWindow, IndexError>,
    ) -> Result<Self, IndexError> {
        let open = || open(&run.path(generation, kind), bytes);
        Self::of(run, kind, open()?, Some(open()?))
    }

    /// The same, read here and there; it stays open.
    pub(crate) fn open_for_good(
        generation: &Path,
        run: &RunEntry,
        kind: FileKind,
    ) -> Result<Self, IndexError> {
        let path = run.path(generation, kind);
        Self::of(run, kind, FileWindow::open_for_good(&path, HEADER_BYTES)?, None)
    }

    fn of(
        run: &RunEntry,
        kind: FileKind,
        mut ramps: FileWindow,
        rests: Option<FileWindow>,
    ) -> Result<Self, IndexError> {
        let header = ramps.read(0, ramps.length().min(BODY) as usize)?.to_vec();
        let (layout, _) = RampLayout::of(ramps.path(), kind, run.documents, &header)?;
        check_length(ramps.path(), ramps.length(), Some(layout.bytes()))?;
        Ok(Self { windows: RampWindows { ramps, rests }, layout })
    }

    pub(crate) fn name(&mut self, docid: u32) -> Result<NamePlace, IndexError> {
        self.layout.name(&mut self.windows, docid)
    }

    /// The place of a document.
    pub(crate) fn location(&mut self, docid: u32) -> Result<Location, IndexError> {
        self.layout.location(&mut self.windows, docid)
    }
}

/// What is written of some blocks.
#[derive(Debug, Default)]
pub(super) struct RampPart {
    ramps: Vec<Ramp>,
    rests: Vec<u8>,
}

impl RampPart {
    /// Adds a block of a column, whose steps are places.
    pub(super) fn even(&mut self, numbers: &[u64]) {
        let steps: [u64; BLOCK] = std::array::from_fn(|i| i as u64);
        self.put(numbers, &steps[..numbers.len()], [Ramp::slope(numbers), 0]);
    }

    /// Adds a block of a column without rests.
    pub(super) fn line(&mut self, base: u64, slope: u32) {
        self.ramps.push(Ramp::line(base, slope).behind(self.units()));
    }

    fn put(&mut self, numbers: &[u64], steps: &[u64], slopes: [u32; 2]) {
        let place = self.units();
        let ramp = Ramp::of(numbers, steps, slopes, &mut self.rests);
        self.ramps.push(ramp.behind(place));
    }

    /// A part has at most 2^32 - 1 documents, of three columns of 64 bits each.
    fn units(&self) -> u32 {
        (self.rests.len() as u64 / UNIT) as u32
    }

    /// Adds a block of places, of which the one before ends at `before`.
    pub(super) fn locations(&mut self, locations: &[Location], before: u64) {
        let [mut ends, mut bytes, mut steps, mut inputs] = [[0; BLOCK]; 4];
        let mut before = before;
        for (i, location) in locations.iter().enumerate() {
            ends[i] = end_of(location);
            bytes[i] = location.bytes.into();
            steps[i] = ends[i].wrapping_sub(before);
            inputs[i] = location.input.into();
            before = ends[i];
        }
        let count = locations.len();
        self.even(&ends[..count]);
        self.put(&bytes[..count], &steps[..count], [0, 1]);
        self.even(&inputs[..count]);
    }
}

/// Where a document ends.
pub(super) fn end_of(location: &Location) -> u64 {
    location.offset.wrapping_add(location.bytes.into())
}

/// What is known of a file of ramps while the rests of its parts are written. Memory: 16 bytes for
/// each block of a column.
#[derive(Debug, Default)]
pub(super) struct RampList {
    ramps: Vec<Ramp>,
    units: u32,
}

impl RampList {
    /// Of all rests.
    pub(super) fn bytes(&self) -> u64 {
        UNIT * u64::from(self.units)
    }

    /// Adds a part of numbers that are greater by so much, and returns its rests, which lie behind
    /// those before.
    ///
    /// # Errors
    /// `Refused` if there are too many.
    pub(super) fn put(
        &mut self,
        part: RampPart,
        by: u64,
        path: &Path,
    ) -> Result<Vec<u8>, IndexError> {
        let Some(end) = self.units.checked_add(part.units()) else {
            return Err(IndexError::refused(path, "there are too many documents"));
        };
        self.ramps.extend(part.ramps.iter().map(|ramp| ramp.raised(by).behind(self.units)));
        self.units = end;
        Ok(part.rests)
    }

    /// Ends the file, which has the rests, with what its header says beside the ramps.
    pub(super) fn finish(
        mut self,
        mut file: StorageFile,
        kind: FileKind,
        documents: u32,
        other: u64,
    ) -> Result<FileEntry, IndexError> {
        self.ramps.push(Ramp::default().behind(self.units));
        file.write(bytemuck::cast_slice(&self.ramps))?;
        let values = [documents.into(), other, self.units.into(), 0, 0];
        file.finish(FileHeader { kind, values, last: 0 })
    }
}
