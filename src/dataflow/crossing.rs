//! Records that cross from one process to another, as one array of u64, laid out by the record and
//! written by abomonation. All else that timely exchanges stays in its process. In a process a
//! [`Crossing`] moves as it is; between processes it becomes the number of words that follow, and
//! those words:
//!
//! ```text
//! u64 words | u64 | u64 | ...
//! ```
//!
//! abomonation (RUSTSEC-2021-0120) casts bytes to a type unchecked. Here that is sound: the only
//! type is u64, of which every bit pattern is a value and which has neither padding nor pointers;
//! length and alignment are checked before anything is decoded; and the bytes come from a process
//! that runs the same executable (`cluster::hello`), never from a file or a user. What does not fit
//! becomes a record that says so, and fails the job.

#![allow(unsafe_code)]

use abomonation::Abomonation;
use std::cell::OnceCell;
use std::io::Write;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::container::CapacityContainerBuilder;
use timely::container::{DrainContainer, PushInto, SizableContainer};
use timely::dataflow::channels::ContainerBytes;
use timely::dataflow::channels::pact::ExchangeCore;

pub(crate) trait CrossingRecord: Sized {
    /// Appends its words.
    fn write(&self, to: &mut Vec<u64>);

    /// Reads what [`write`](Self::write) laid out; none if the words are no record.
    fn read(words: &mut Words<'_>) -> Option<Self>;
}

/// Records that may go to workers of other processes, or what is wrong with those that came.
#[derive(Clone)]
pub(crate) struct Crossing<R>(pub(super) Vec<Result<R, String>>, Written);

/// The words of the records, from when timely asks for their length to when it takes them.
type Written = OnceCell<Vec<u64>>;

const WORD: usize = size_of::<u64>();

type CrossingExchange<R, F> = ExchangeCore<CapacityContainerBuilder<Crossing<R>>, F>;

/// Exchanges records to the workers that they name; what is damaged, which fails the job, to worker
/// 0.
pub(crate) fn to_worker<R: 'static>(
    worker: impl Fn(&R) -> u32 + 'static,
) -> CrossingExchange<R, impl FnMut(&Result<R, String>) -> u64> {
    ExchangeCore::new(move |record: &Result<R, String>| record.as_ref().map_or(0, &worker).into())
}

impl<R> Default for Crossing<R> {
    fn default() -> Self {
        Self(Vec::new(), Written::new())
    }
}

impl<R> Accountable for Crossing<R> {
    fn record_count(&self) -> i64 {
        self.0.record_count()
    }
}

impl<R> DrainContainer for Crossing<R> {
    type Item<'a>
        = Result<R, String>
    where
        R: 'a;
    type DrainIter<'a>
        = std::vec::Drain<'a, Result<R, String>>
    where
        R: 'a;

    fn drain(&mut self) -> Self::DrainIter<'_> {
        self.0.drain(..)
    }
}

impl<R> SizableContainer for Crossing<R> {
    fn at_capacity(&self) -> bool {
        self.0.at_capacity()
    }

    fn ensure_capacity(&mut self, stash: &mut Option<Self>) {
        let mut inner = stash.take().map(|stash| stash.0);
        self.0.ensure_capacity(&mut inner);
        *stash = inner.map(|inner| Self(inner, Written::new()));
    }
}

impl<R> PushInto<R> for Crossing<R> {
    fn push_into(&mut self, record: R) {
        self.0.push(Ok(record));
    }
}

impl<R> PushInto<Result<R, String>> for Crossing<R> {
    fn push_into(&mut self, record: Result<R, String>) {
        self.0.push(record);
    }
}

impl<R: CrossingRecord> Crossing<R> {
    /// A damaged record, which no operator passes on, is left out.
    fn words(&self) -> &[u64] {
        self.1.get_or_init(|| {
            let mut words = Vec::new();
            self.0.iter().flatten().for_each(|record| record.write(&mut words));
            words
        })
    }

    fn read(mut words: Words<'_>) -> Result<Vec<Result<R, String>>, String> {
        let all = words.left();
        let wrong =
            || format!("a message of {all} words from another process is not a list of records");
        let mut records = Vec::new();
        while words.left() > 0 {
            records.push(Ok(R::read(&mut words).ok_or_else(wrong)?));
        }
        Ok(records)
    }
}

impl<R: CrossingRecord> ContainerBytes for Crossing<R> {
    fn from_bytes(bytes: Bytes) -> Self {
        // abomonation wants bytes that it may write to, and alignment, which this gives.
        let mut room = vec![0u64; bytes.len() / WORD];
        let records = match announced(&bytes) {
            Ok(()) => {
                bytemuck::cast_slice_mut(&mut room).copy_from_slice(&bytes);
                Self::read(Words::new(&mut room[1..]))
            }
            Err(error) => Err(error),
        };
        Self(records.unwrap_or_else(|error| vec![Err(error)]), Written::new())
    }

    fn length_in_bytes(&self) -> usize {
        WORD * (1 + self.words().len())
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        encode(self.words(), writer);
    }
}

/// Writes the number of words and the words.
fn encode(words: &[u64], writer: &mut impl Write) {
    put_whole(&(words.len() as u64), writer);
    let (rows, rest) = words.as_chunks::<32>();
    rows.iter().for_each(|row| put_whole(row, writer));
    rest.iter().for_each(|word| put_whole(word, writer));
}

/// Writes a u64 or an array of them.
fn put_whole<T: Abomonation + bytemuck::NoUninit>(words: &T, writer: &mut impl Write) {
    // SAFETY: the bound says that it has no padding, so each of its bytes may be read.
    let written = unsafe { abomonation::encode(words, writer) };
    written.expect("timely makes room for length_in_bytes");
}

/// Checks that a message has as many words as it says.
fn announced(bytes: &[u8]) -> Result<(), String> {
    let words = bytes.first_chunk().map_or(0, |head| u64::from_ne_bytes(*head));
    // Nothing overflows: it is the length that is divided.
    if bytes.len().is_multiple_of(WORD)
        && (bytes.len() / WORD).checked_sub(1) == words.try_into().ok()
    {
        return Ok(());
    }
    let bytes = bytes.len();
    Err(format!(
        "a message from another process has {bytes} bytes and says that it has {words} words"
    ))
}

/// Words of a message that are not read yet.
pub(crate) struct Words<'a> {
    /// A multiple of 8 bytes at an aligned place: made of a slice of u64 and shortened by whole
    /// ones.
    rest: &'a mut [u8],
}

impl<'a> Words<'a> {
    fn new(words: &'a mut [u64]) -> Self {
        Self { rest: bytemuck::cast_slice_mut(words) }
    }

    fn left(&self) -> usize {
        self.rest.len() / WORD
    }

    pub(crate) fn word(&mut self) -> Option<u64> {
        let rest = std::mem::take(&mut self.rest);
        // SAFETY: `rest` is aligned for u64 by the invariant of the field, and any eight bytes are
        // one; abomonation itself checks that there are as many.
        let (&word, rest) = unsafe { abomonation::decode::<u64>(rest) }?;
        self.rest = rest;
        Some(word)
    }

    /// The next word, which is 0 or 1.
    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A count of things of `bytes_each` bytes, which has to fit the words that are left.
    fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = usize::try_from(self.word()?).ok()?;
        (count.div_ceil(WORD / bytes_each) <= self.left()).then_some(count)
    }

    /// The next word, which fits 32 bits.
    pub(crate) fn small(&mut self) -> Option<u32> {
        self.word()?.try_into().ok()
    }

    /// The next words, which there are.
    fn take(&mut self, words: usize) -> &'a [u8] {
        let rest = std::mem::take(&mut self.rest);
        let (taken, rest) = rest.split_at_mut(words * WORD);
        self.rest = rest;
        taken
    }

    pub(crate) fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = self.count(WORD)?;
        Some(bytemuck::cast_slice(self.take(count)).to_vec())
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = self.count(1)?;
        Some(self.take(count.div_ceil(WORD))[..count].to_vec())
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }
}

/// Their number, and each.
pub(crate) fn put_numbers(numbers: &[u64], to: &mut Vec<u64>) {
    to.push(numbers.len() as u64);
    to.extend_from_slice(numbers);
}

pub(crate) fn put_text(text: &str, to: &mut Vec<u64>) {
    put_bytes(text.as_bytes(), to);
}

/// Their number, and eight a word.
pub(crate) fn put_bytes(bytes: &[u8], to: &mut Vec<u64>) {
    to.push(bytes.len() as u64);
    let from = to.len();
    to.resize(from + bytes.len().div_ceil(WORD), 0);
    bytemuck::cast_slice_mut(&mut to[from..])[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use timely::bytes::arc::BytesMut;

    #[derive(Clone, Debug, PartialEq)]
    struct Sample(u32, Vec<u64>, String);

    impl CrossingRecord for Sample {
        fn write(&self, to: &mut Vec<u64>) {
            to.push(self.0.into());
            put_numbers(&self.1, to);
            put_text(&self.2, to);
        }

        fn read(words: &mut Words<'_>) -> Option<Self> {
            Some(Self(words.small()?, words.numbers()?, words.text()?))
        }
    }

    fn bytes_of(records: &[Sample]) -> Vec<u8> {
        let mut container = Crossing::default();
        records.iter().for_each(|record| container.push_into(record.clone()));
        assert_eq!(container.record_count(), records.len() as i64);
        let mut bytes = Vec::new();
        container.into_bytes(&mut bytes);
        assert_eq!(bytes.len(), container.length_in_bytes());
        bytes
    }

    /// Reads bytes that begin `shift` bytes behind an aligned place.
    fn read(bytes: &[u8], shift: usize) -> Vec<Result<Sample, String>> {
        let mut room = vec![0; 64 + bytes.len()];
        let aligned = room.as_ptr().align_offset(WORD);
        room[aligned + shift..][..bytes.len()].copy_from_slice(bytes);
        let mut room = BytesMut::from(room);
        drop(room.extract_to(aligned + shift));
        Crossing::from_bytes(room.extract_to(bytes.len())).0
    }

    fn sample() -> impl Strategy<Value = Sample> {
        let numbers = prop::collection::vec(any::<u64>(), 0..5);
        (any::<u32>(), numbers, "\\PC{0,20}").prop_map(|(a, b, c)| Sample(a, b, c))
    }

    proptest! {
        #[test]
        fn law_what_is_read_is_what_was_written(
            records in prop::collection::vec(sample(), 0..8),
            shift in 0..WORD,
        ) {
            let read: Result<Vec<_>, _> = read(&bytes_of(&records), shift).into_iter().collect();
            prop_assert_eq!(read, Ok(records));
        }

        #[test]
        fn law_no_message_is_believed(
            words in prop::collection::vec(prop_oneof![0..9u64, any::<u64>()], 0..20),
            cut in 0..16usize,
            shift in 0..WORD,
        ) {
            let mut bytes = Vec::new();
            encode(&words, &mut bytes);
            bytes.truncate(bytes.len().saturating_sub(cut));
            let count = read(&bytes, shift).iter().filter(|record| record.is_err()).count();
            prop_assert!(count <= 1 && (cut == 0 || count == 1));
        }
    }

    #[test]
    fn a_message_that_lies_about_its_length_is_refused() {
        let bytes = bytes_of(&[Sample(1, vec![2], "three".into())]);
        assert!(matches!(read(&bytes, 0)[..], [Ok(_)]));
        for words in [0, 1, 4, 6, u64::MAX, u64::MAX / 8] {
            let mut bytes = bytes.clone();
            bytes[..WORD].copy_from_slice(&words.to_ne_bytes());
            let says = format!("{} bytes and says that it has {words} words", bytes.len());
            let found = read(&bytes, 0);
            let [Err(wrong)] = &found[..] else { panic!("{found:?}") };
            assert!(wrong.contains(&says), "{wrong}");
        }
        assert!(matches!(read(&[], 0)[..], [Err(_)]));
    }
}
