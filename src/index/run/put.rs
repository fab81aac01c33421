//! How do lists that lie end to end get to their places in a file, where some begin at multiples of
//! 16 bytes?

#![forbid(unsafe_code)]

use super::lay::Stretch;
use crate::index::format::LIST_ALIGNMENT;

/// Neighbouring bytes of lists, and the zeros before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Padded {
    pub(crate) zeros: usize,
    pub(crate) bytes: usize,
}

impl Padded {
    /// What stands from byte `at` of the lists of a run on.
    pub(crate) fn of(stretches: &[Stretch], mut at: u64) -> impl Iterator<Item = Self> {
        stretches.iter().map(move |stretch| {
            let begin = if stretch.is_aligned { at.next_multiple_of(LIST_ALIGNMENT) } else { at };
            let zeros = (begin - at) as usize;
            at = begin + stretch.payload_bytes as u64;
            Self { zeros, bytes: stretch.payload_bytes }
        })
    }
}

/// Puts a payload to its place, step by step.
pub(crate) struct Putting<'a, I> {
    padded: I,
    /// What is left of those that have begun.
    zeros: usize,
    bytes: &'a [u8],
    /// What is left behind them.
    payload: &'a [u8],
}

impl<'a, I: Iterator<Item = Padded>> Putting<'a, I> {
    /// Of a payload, which `padded` has all of.
    pub(crate) fn new(padded: I, payload: &'a [u8]) -> Self {
        Self { padded, zeros: 0, bytes: &[], payload }
    }

    /// Puts the next bytes.
    ///
    /// # Panics
    /// If there are not so many.
    pub(crate) fn put(&mut self, mut to: &mut [u8]) {
        while !to.is_empty() {
            if self.zeros > 0 {
                let (here, rest) = to.split_at_mut(self.zeros.min(to.len()));
                here.fill(0);
                self.zeros -= here.len();
                to = rest;
            } else if self.bytes.is_empty() {
                let next = self.padded.next().expect("lists have as many bytes as their place");
                self.zeros = next.zeros;
                (self.bytes, self.payload) = self.payload.split_at(next.bytes);
            } else {
                let (here, rest) = to.split_at_mut(self.bytes.len().min(to.len()));
                let (bytes, behind) = self.bytes.split_at(here.len());
                here.copy_from_slice(bytes);
                (to, self.bytes) = (rest, behind);
            }
        }
    }
}
