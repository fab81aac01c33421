//! Judges what is in the input by a small part of it (wei11, section III.E: 1 MB of every 1 GB).
//!
//! The sample is taken in equal parts from places evenly spread over all inputs, before the
//! dataflow begins and by as many threads as workers will be: nothing else happens meanwhile. A
//! compressed file is sampled at its beginning, since the rest cannot be read without it; its text
//! is taken to be [`SWELL`] times its bytes. Standard input and pipes, which are read once, give no
//! sample. A place in the middle of a file begins in the middle of a record, which the parsers pass
//! over. What is wrong with the input, the job itself will find.

use super::cutter::Cutter;
use super::parser::PieceParser;
use super::splits::InputPlan;
use super::{Compression, MARK_BYTES};
use crate::crew::Crew;
use crate::dictionary::group::TermGroup;
use crate::dictionary::owners::{CollectionWeights, Owners};
use crate::dictionary::parsed::Regroup;
use crate::dictionary::tally::Tally;
use crate::input::piece::Piece;
use crate::input::streams::split_stream::{FileBlock, SplitStream};
use crate::text::analysis::Analysis;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Bytes of text in a byte of a compressed file, about.
pub(crate) const SWELL: u64 = 4;
/// Bytes that are read at one place, about.
const PLACE_BYTES: u64 = 128 << 10;
/// The sample of a gigabyte when nothing else is asked for.
pub const SAMPLE_BYTES: u64 = 1 << 20;
/// A larger sample tells nothing more.
const MOST_BYTES: u64 = 64 << 20;
/// The sample is at most this part of the input, so that it costs little where there is little.
const PART: u64 = 64;
/// What the memo of the sample's parser may take, in bytes.
pub(crate) const MEMO_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The work that each trie collection makes: tokens, or, where postings are indexed, units of
    /// an appended posting.
    pub weights: CollectionWeights,
    /// Of uncompressed input.
    pub bytes: u64,
    pub places: usize,
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SamplePlace {
    input: u32,
    /// Where it begins in the file, in bytes.
    offset: u64,
    /// Bytes of uncompressed input.
    bytes: u64,
}

/// Finds what the trie collections of one piece after the other weigh.
pub(crate) trait WeighPieces {
    fn weigh(&mut self, plan: &InputPlan, piece: &mut Piece, weights: &mut CollectionWeights);
}

/// The same by the groups that a parser makes.
pub(crate) struct GroupWeigher<R: Regroup> {
    parser: PieceParser<R>,
    weigh: fn(&R::Group, &mut CollectionWeights),
}

impl<R: Regroup> GroupWeigher<R> {
    pub(crate) fn new(
        regroup: R,
        max_document: u64,
        weigh: fn(&R::Group, &mut CollectionWeights),
    ) -> Self {
        Self { parser: PieceParser::new(regroup, max_document, Arc::default()), weigh }
    }
}

impl GroupWeigher<Tally> {
    pub(crate) fn of_postings(analysis: Analysis, max_document: u64) -> Self {
        let tally = Tally::new(analysis, Arc::new(Owners::in_turn(1)), MEMO_BYTES);
        Self::new(tally, max_document, weigh_postings)
    }
}

impl<R: Regroup> WeighPieces for GroupWeigher<R> {
    fn weigh(&mut self, plan: &InputPlan, piece: &mut Piece, weights: &mut CollectionWeights) {
        let (groups, _) = self.parser.parse(plan, None, piece);
        groups.iter().for_each(|group| (self.weigh)(group, weights));
    }
}

/// Takes a sample of `per_gigabyte` bytes of each gigabyte of uncompressed input, with at most so
/// many `threads`, each of which weighs by what `weigher` makes. `None` when nothing can be read
/// twice.
pub(crate) fn sample(
    plan: &InputPlan,
    max_document: u64,
    per_gigabyte: u64,
    threads: usize,
    weigher: &(dyn Fn() -> Box<dyn WeighPieces> + Sync),
) -> Option<Sample> {
    let start = Instant::now();
    let places = places(plan, per_gigabyte);
    let next = AtomicUsize::new(0);
    let take = || {
        let places = || places.get(next.fetch_add(1, Ordering::Relaxed)).copied();
        take(plan, places, max_document, &mut *weigher())
    };
    let taken = Crew::new("sample").all(vec![&take; threads.clamp(1, places.len().max(1))]);
    let mut sample = taken.into_iter().reduce(Sample::and).expect("there is a thread");
    sample.seconds = start.elapsed().as_secs_f64();
    (sample.bytes > 0).then_some(sample)
}

impl Sample {
    fn and(mut self, other: Self) -> Self {
        self.weights.add_all(&other.weights);
        self.bytes += other.bytes;
        self.places += other.places;
        self
    }
}

/// A term of a piece costs its owner a look-up that misses the cache, and most terms are encoded as
/// lists of their own: as much as this many postings.
const TERM_WEIGHT: u64 = 12;

fn weigh_postings(group: &TermGroup, weights: &mut CollectionWeights) {
    for term in &group.terms {
        let weight = TERM_WEIGHT + u64::from(term.postings);
        weights.add_term(term.suffix.collection, term.suffix.of(&group.suffixes), weight);
    }
}

fn take(
    plan: &InputPlan,
    places: impl FnMut() -> Option<SamplePlace>,
    max_document: u64,
    weigher: &mut dyn WeighPieces,
) -> Sample {
    let weights = CollectionWeights::default();
    let mut sample = Sample { weights, bytes: 0, places: 0, seconds: 0.0 };
    for place in std::iter::from_fn(places) {
        let Some(block) = read(plan, place) else { continue };
        let format = plan.inputs.format(place.input as usize);
        let mut stream = SplitStream::new(Cutter::new(format, max_document), 23);
        loop {
            let Ok((piece, done)) = stream.step(&block) else { break };
            if let Some(mut piece) = piece {
                sample.bytes += piece.bytes.len() as u64;
                weigher.weigh(plan, &mut piece, &mut sample.weights);
            }
            // A large window is met by the job itself.
            if done || stream.wanted_window().is_some() {
                break;
            }
        }
        sample.places += 1;
    }
    sample
}

/// Reads a place as a block that ends its split; `None` if that is not possible.
fn read(plan: &InputPlan, place: SamplePlace) -> Option<FileBlock> {
    let read = |offset, bytes| plan.peek(place.input, offset, bytes).ok();
    let mut head = read(0, MARK_BYTES as u64)?;
    let compression = Compression::by_content(&head);
    let bytes = match compression {
        Compression::None => read(place.offset, place.bytes)?,
        _ => {
            let from = head.len() as u64;
            head.extend(plan.peek(place.input, from, place.bytes / SWELL).ok()?);
            head
        }
    };
    let input = place.input;
    let encoding = plan.stream_encoding(input, plan.inputs.format(input as usize));
    Some(FileBlock { input, compression, encoding, bytes, ends_input: true, ends_split: true })
}

fn places(plan: &InputPlan, per_gigabyte: u64) -> Vec<SamplePlace> {
    let text = |bytes: u64, compressed: bool| if compressed { bytes * SWELL } else { bytes };
    let sizes: Vec<(u64, bool)> = (0..plan.inputs.len())
        .map(|i| {
            let path = plan.inputs.path(i);
            let ending = path.as_ref().and_then(|path| path.extension());
            let compressed = ending.is_some_and(|e| e == "gz" || e == "zst" || e == "zstd");
            (text(plan.inputs.bytes(i), compressed), compressed)
        })
        .collect();
    let total: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
    let wanted = ((u128::from(total) * u128::from(per_gigabyte)) >> 30) as u64;
    let bytes = wanted.max(per_gigabyte).min(total / PART).min(MOST_BYTES);
    let number = bytes.div_ceil(PLACE_BYTES);
    let mut places: Vec<SamplePlace> = Vec::new();
    let mut input = 0;
    let mut before = 0;
    for i in 0..number {
        let at = (u128::from(total) * u128::from(2 * i + 1) / u128::from(2 * number)) as u64;
        while before + sizes[input].0 <= at {
            before += sizes[input].0;
            input += 1;
        }
        let place = SamplePlace { input: input as u32, offset: at - before, bytes: bytes / number };
        match places.last_mut() {
            // A compressed file has one place, its beginning.
            Some(last) if last.input == place.input && sizes[input].1 => last.bytes += place.bytes,
            _ => places.push(place),
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::trie_collection::trie_collection;

    /// Documents with a word twice, another once, and a number that does not compress well.
    fn lines(n: u32, word: &str) -> String {
        let number = |i: u32| i.wrapping_mul(2_654_435_761);
        (0..n).map(|i| format!("{{\"text\": \"{word} common {word} {}\"}}\n", number(i))).collect()
    }

    fn gzip(text: &str) -> Vec<u8> {
        use std::io::Write as _;
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn places_are_spread_over_all_inputs() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "b.jsonl", "c.jsonl.gz"] {
            std::fs::write(dir.path().join(name), lines(100_000, "mill")).unwrap();
        }
        let plan = InputPlan::new(&[dir.path().to_path_buf()], None).unwrap();
        let found = places(&plan, SAMPLE_BYTES);
        let total: u64 = plan.bytes() * 2;
        let bytes: u64 = found.iter().map(|place| place.bytes).sum();
        assert!(bytes <= total / PART && bytes + 10 > total / PART, "{bytes} of {total}");
        let mut inputs: Vec<u32> = found.iter().map(|place| place.input).collect();
        inputs.dedup();
        // The file that says that it is compressed weighs four times.
        assert!(inputs.len() > 1 && inputs.last() == Some(&2), "{found:?}");
        assert!(places(&InputPlan::new(&[], None).unwrap(), SAMPLE_BYTES).is_empty());
    }

    #[test]
    fn weighs_collections_of_raw_and_compressed_files() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a.jsonl"), lines(50_000, "miller")).unwrap();
        std::fs::write(at("b.jsonl.gz"), gzip(&lines(90_000, "miller"))).unwrap();
        for name in ["a.jsonl", "b.jsonl.gz"] {
            let plan = InputPlan::new(&[at(name)], None).unwrap();
            let weigher = || {
                let weigher = GroupWeigher::of_postings(Analysis::default(), 1 << 20);
                Box::new(weigher) as Box<dyn WeighPieces>
            };
            let take = |threads| sample(&plan, 1 << 20, SAMPLE_BYTES, threads, &weigher).unwrap();
            let one = take(1);
            let threads = take(3);
            assert_eq!((one.bytes, &one.weights), (threads.bytes, &threads.weights));
            let weight = |term| one.weights.all[usize::from(trie_collection(term))];
            // Twice in a document is one posting.
            assert!(weight("common") > 100, "{name}");
            assert_eq!(weight("miller"), weight("common"), "{name}");
        }
    }
}
