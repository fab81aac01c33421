//! Reads the documents of a run in place.

use super::Location;
use super::fields::FieldLengths;
use super::lookup::{NameLookup, partition, short_hash};
use super::moves::{Move, Moves, Relocated};
use super::ramps::{NamePlace, RampMap};
use crate::codec::prefetch::prefetch_at;
use crate::codec::ramp::BLOCK;
use crate::crew::{Crew, cores};
use crate::index::error::IndexError;
use crate::index::files::map::{Map, verify_all};
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length, padding};
use crate::index::generations::manifest::{RunEntry, find_file};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) const BODY: u64 = HEADER_BYTES as u64;

/// Names that a thread looks at, at least.
const LEAST_LOOKED_UP: u32 = 1 << 16;

/// The documents of one run, mapped, with docids and inputs from the run's first; clones share what
/// is open. Memory: 4 bytes a document, beside what is mapped.
#[derive(Clone, Debug)]
pub(crate) struct RunDocuments {
    lengths: Arc<Vec<u32>>,
    lengths_file: Arc<FieldLengths>,
    names: Arc<Map>,
    ends: Arc<RampMap>,
    locations: Arc<RampMap>,
    /// Inputs of places never fall from document to document.
    inputs_rise: bool,
    moves: Arc<Moves>,
    hashes: Arc<Map>,
    lookup: Arc<NameLookup>,
    documents: u32,
    tokens: u64,
    name_bytes: u64,
}

impl RunDocuments {
    /// Maps the documents of a run, and verifies the checksums of all their files.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        files: &[FileEntry],
    ) -> Result<Self, IndexError> {
        let documents = Self::open_mapped(generation, run)?;
        let maps: [(&Map, _); 6] = [
            (documents.lengths_file.map(), FileKind::Lengths),
            (&documents.names, FileKind::Names),
            (documents.ends.map(), FileKind::Ends),
            (documents.locations.map(), FileKind::Locations),
            (&documents.hashes, FileKind::Hashes),
            (documents.lookup.map(), FileKind::Lookup),
        ];
        let moves = documents.moves.map().map(|map| (map, FileKind::Moves));
        let expected = |(map, kind)| {
            let entry = find_file(files, generation, &run.file(kind))?;
            Ok((map, entry.bytes, entry.crc32))
        };
        let all = maps.into_iter().chain(moves).map(expected);
        verify_all(cores(), &all.collect::<Result<Vec<_>, IndexError>>()?)?;
        Ok(Self { lengths: Arc::new(documents.lengths_file.column(0)?), ..documents })
    }

    /// As [`open`](Self::open), but reads no more than the headers and the lengths.
    pub(crate) fn open_unverified(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let documents = Self::open_mapped(generation, run)?;
        Ok(Self { lengths: Arc::new(documents.lengths_file.column(0)?), ..documents })
    }

    /// The documents where some lie elsewhere now; what says so is verified.
    pub(crate) fn relocated(
        &self,
        generation: &Path,
        run: &RunEntry,
        files: &[FileEntry],
    ) -> Result<Self, IndexError> {
        let moves = Moves::open(generation, run)?;
        if let Some(map) = moves.map() {
            let entry = find_file(files, generation, &run.file(FileKind::Moves))?;
            map.verify(entry.bytes, entry.crc32)?;
        }
        Ok(Self { moves: Arc::new(moves), ..self.clone() })
    }

    /// As [`open_unverified`](Self::open_unverified), but has no [`lengths`](Self::lengths).
    pub(crate) fn open_mapped(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let open = |kind, used| {
            let map = Map::open(&run.path(generation, kind))?;
            let header = FileHeader::parse(map.path(), kind, map.bytes())?;
            header.check_unused(map.path(), used)?;
            Ok((Arc::new(map), header.values))
        };
        let lengths = FieldLengths::of_text(generation, run)?;
        let (count, tokens) = (u64::from(run.documents), run.tokens);
        let (names, [names_count, name_bytes, ..]) = open(FileKind::Names, 2)?;
        let (hashes, [hashes_count, ..]) = open(FileKind::Hashes, 1)?;
        let ramps = |kind| RampMap::open(&run.path(generation, kind), kind, run.documents);
        let (ends, ends_bytes) = ramps(FileKind::Ends)?;
        let (locations, rise) = ramps(FileKind::Locations)?;
        for (map, at, expected, found) in [
            (&*names, 16, count, names_count),
            (ends.map(), 24, name_bytes, ends_bytes),
            (&hashes, 16, count, hashes_count),
        ] {
            if expected != found {
                return Err(IndexError::damaged(map.path(), at, expected, found));
            }
        }
        check_length(hashes.path(), hashes.bytes().len() as u64, Some(BODY + 8 * count))?;
        let expected = name_bytes.checked_add(BODY + padding(name_bytes));
        check_length(names.path(), names.bytes().len() as u64, expected)?;
        let documents = run.documents;
        let lookup = Arc::new(NameLookup::open_unverified(generation, run)?);
        Ok(Self {
            lengths: Arc::default(),
            lengths_file: Arc::new(lengths),
            names,
            ends: Arc::new(ends),
            locations: Arc::new(locations),
            inputs_rise: rise == 1,
            moves: Arc::new(Moves::open(generation, run)?),
            hashes,
            lookup,
            documents,
            tokens,
            name_bytes,
        })
    }

    /// Checks that the ends of the names never fall and stay among the names.
    pub(crate) fn check_ends(&self) -> Result<(), IndexError> {
        let mut before = 0;
        for docid in 0..self.documents {
            let place = self.ends.name(docid)?;
            let begins = if docid.is_multiple_of(BLOCK as u32) { place.front } else { place.start };
            if begins != before || place.end > self.name_bytes {
                return Err(self.wrong_end(docid, before, place.end));
            }
            before = place.end;
        }
        if before != self.name_bytes {
            let last = self.documents.saturating_sub(1);
            return Err(self.wrong_end(last, self.name_bytes, before));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> u32 {
        self.documents
    }

    /// By the header.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The length of one document, from the file.
    pub(crate) fn length(&self, docid: u32) -> Result<u32, IndexError> {
        Ok(self.lengths_file.of_document(docid)?[0])
    }

    #[inline]
    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The name of a document, in UTF-8, by blocks that are verified.
    pub(crate) fn name(&self, docid: u32) -> Result<Cow<'_, [u8]>, IndexError> {
        Ok(match self.name_parts(docid)? {
            [[], name] | [name, []] => Cow::Borrowed(name),
            parts => Cow::Owned(parts.concat()),
        })
    }

    /// The same as what it shares with its neighbours, and its rest.
    #[inline]
    pub(crate) fn name_parts(&self, docid: u32) -> Result<[&[u8]; 2], IndexError> {
        let place = self.ends.name(docid)?;
        self.name_at(docid, place)
    }

    /// The parts of the name of a document that are there.
    #[inline]
    pub(super) fn name_at(&self, docid: u32, place: NamePlace) -> Result<[&[u8]; 2], IndexError> {
        let NamePlace { front, front_end, start, end } = place;
        if end > self.name_bytes {
            return Err(self.wrong_end(docid, start, end));
        }
        let name = self.names.checked(BODY + front, end - front)?;
        Ok([&name[..(front_end - front) as usize], &name[(start - front) as usize..]])
    }

    #[cold]
    fn wrong_end(&self, docid: u32, start: u64, end: u64) -> IndexError {
        let expected = format!("an end from {start} to {}", self.name_bytes);
        IndexError::damaged(self.ends.map().path(), self.ends.at(docid), expected, end)
    }

    /// Prefetches what gives the place of a document's name.
    #[inline]
    pub(super) fn prefetch_end(&self, docid: u32) {
        self.ends.prefetch(docid);
    }

    /// Prefetches a name, and tells where it is.
    #[inline]
    pub(super) fn prefetch_name(&self, docid: u32) -> Option<NamePlace> {
        let place = self.ends.name(docid).ok()?;
        prefetch_at(self.names.from(BODY.saturating_add(place.front)), 0);
        let rest = self.names.from(BODY.saturating_add(place.start));
        // Most are in one cache line, or two.
        prefetch_at(rest, 0);
        prefetch_at(rest, (place.end - place.start).saturating_sub(1) as usize);
        Some(place)
    }

    /// Whether inputs never fall from document to document, where the run was written.
    pub(crate) fn inputs_rise(&self) -> bool {
        self.inputs_rise
    }

    pub(crate) fn moves(&self) -> &Arc<Moves> {
        &self.moves
    }

    /// None if there is no such document, or it is damaged.
    pub(crate) fn location(&self, docid: u32) -> Option<Location> {
        let was = self.first_location(docid).ok()?;
        Some(self.moves.of(docid, was))
    }

    /// The moves of the documents, if some lie elsewhere now: by rising docid.
    #[cfg(test)]
    pub(crate) fn moved(
        &self,
        now: impl IntoIterator<Item = (u32, Location)>,
    ) -> Result<Vec<Move>, IndexError> {
        let now = now.into_iter().map(|(docid, now)| self.relocated_to(docid, now));
        Ok(self.moves.with(now.collect::<Result<Vec<_>, _>>()?))
    }

    /// That a document lies there now.
    pub(crate) fn relocated_to(&self, docid: u32, now: Location) -> Result<Relocated, IndexError> {
        Ok(Relocated::new(docid, self.first_location(docid)?, now))
    }

    /// Where a document lay when the run was written, by a block that is verified.
    pub(crate) fn first_location(&self, docid: u32) -> Result<Location, IndexError> {
        self.locations.location(docid)
    }

    /// Where in its file that is said.
    pub(crate) fn place_of_location(&self, docid: u32) -> u64 {
        self.locations.at(docid)
    }

    /// The documents that lie in some inputs of the run, those that `file_of` gives a file, as
    /// rising ranges of docids of one file each. Costs no more than the inputs and the moves if
    /// inputs never fall from document to document, as they do but where documents are in another
    /// order; else all places are looked at.
    pub(crate) fn of_inputs(
        &self,
        file_of: impl Fn(u32) -> Option<u32>,
    ) -> Result<Vec<(Range<u32>, u32)>, IndexError> {
        let mut found = Vec::new();
        let mut next = 0;
        while next < self.documents {
            let location = self.first_location(next)?;
            let is_before = |docid| Ok(self.first_location(docid as u32)?.input <= location.input);
            let end = match self.inputs_rise {
                true => partition(next as usize..self.documents as usize, is_before)? as u32,
                false => next + 1,
            };
            if let Some(file) = file_of(location.input) {
                extend(&mut found, (next..end, file));
            }
            next = end.max(next + 1);
        }
        let stretches = self.moves.stretches();
        if stretches.is_empty() {
            return Ok(found);
        }
        let mut all: Vec<(Range<u32>, u32)> = Vec::new();
        for (Range { mut start, end }, file) in found {
            let first = stretches.partition_point(|stretch| stretch.docids().end <= start);
            for moved in stretches[first..].iter().map(Move::docids) {
                if moved.start >= end {
                    break;
                }
                all.push((start..moved.start.max(start), file));
                start = moved.end.min(end);
            }
            all.push((start..end, file));
        }
        let moved = |stretch: &Move| Some((stretch.docids(), file_of(stretch.input)?));
        all.extend(stretches.iter().filter_map(moved));
        all.retain(|(docids, _)| !docids.is_empty());
        all.sort_unstable_by_key(|(docids, _)| docids.start);
        let mut joined = Vec::new();
        all.into_iter().for_each(|stretch| extend(&mut joined, stretch));
        Ok(joined)
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        self.hashes.array(BODY, self.documents.into()).unwrap_or(&[])
    }

    /// Takes the hashes of names in a range, and the docids, in the order of both.
    pub(crate) fn hashed_names(
        &self,
        hashes: Range<u64>,
        mut take: impl FnMut([u32; 2]) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        self.lookup.each(hashes, |_, pair| take(pair))
    }

    /// The documents of this name, rising.
    pub(crate) fn of_name(&self, name: &[u8]) -> Result<Vec<u32>, IndexError> {
        let mut found = Vec::new();
        for docid in self.lookup.of(name)? {
            let [front, rest] = self.name_parts(docid)?;
            if name.strip_prefix(front) == Some(rest) {
                found.push(docid);
            }
        }
        Ok(found)
    }

    /// This many names will be looked up, of which this run may have none.
    pub(crate) fn expect(&self, names: u64) -> Result<(), IndexError> {
        self.lookup.map().expect(names)
    }

    /// Checks that the look-up has all documents in order of their names' hashes.
    pub(crate) fn check_lookup(&self) -> Result<(), IndexError> {
        let damaged = |at, expected: &str, found: String| {
            Err(IndexError::damaged(self.lookup.map().path(), at, expected, found))
        };
        let threads = cores().min((self.documents / LEAST_LOOKED_UP) as usize + 1);
        let parts = 8 * threads as u64;
        let check = |name: &mut Vec<u8>, part: usize| {
            let border = |part| (part << 32) / parts;
            let (mut before, mut pairs) = (None, 0);
            self.lookup.each(border(part as u64)..border(part as u64 + 1), |at, pair| {
                let [hash, docid] = pair;
                name.clear();
                if docid < self.documents {
                    self.name_parts(docid)?.iter().for_each(|part| name.extend_from_slice(part));
                }
                let is_right = docid < self.documents && short_hash(name) == hash;
                // As many rising pairs as documents name each of these once.
                if !is_right || before.is_some_and(|before| before >= pair) {
                    let expected = "a document with the hash of its name, behind those before";
                    let found = format!("document {docid} with {hash:08x}");
                    return damaged(self.lookup.place_of(at), expected, found);
                }
                before = Some(pair);
                pairs += 1;
                Ok(())
            })?;
            Ok(pairs)
        };
        let pairs: Vec<u32> = Crew::new("names").in_order(threads, parts as usize, check)?;
        let pairs = pairs.into_iter().map(u64::from).sum::<u64>();
        match pairs == u64::from(self.documents) {
            true => Ok(()),
            false => damaged(BODY, "buckets of all documents", format!("{pairs} of them")),
        }
    }

    /// Of all names in their file.
    pub(crate) fn name_bytes(&self) -> u64 {
        self.name_bytes
    }

    /// Where the own rest of a name begins in the file.
    pub(crate) fn place_of_name(&self, docid: u32) -> u64 {
        self.ends.name(docid).map_or(BODY, |place| BODY + place.start)
    }
}

/// Adds a range of a file behind others, or to the last if it begins where that ends, in that file.
fn extend(ranges: &mut Vec<(Range<u32>, u32)>, (range, file): (Range<u32>, u32)) {
    match ranges.last_mut().filter(|(last, of)| last.end == range.start && *of == file) {
        Some((last, _)) => last.end = range.end,
        None => ranges.push((range, file)),
    }
}
