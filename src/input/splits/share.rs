//! The share of the input that one of several processes reads: neighbours, of about as many bytes
//! for each. A file that workers read together is cut between processes too, so that docids follow
//! the input; any other is read by one process.

use super::{InputPlan, Split};
use crate::input::Format;
use crate::input::borders::marks::Mark;
use crate::input::error::InputError;
use crate::input::folder::Passed;
use crate::input::formats::mediawiki::PAGE;
use crate::order::PIECE_BYTES;
use std::fs::File;
use std::io::{self, Read};

/// A file is cut at multiples of this many bytes. A stretch of it begins there, whatever memory a
/// process has.
pub(crate) const CUT_BYTES: u64 = 2 << 20;

/// Bytes that are read at a time to count lines.
const READ_BYTES: usize = 1 << 20;

impl InputPlan {
    /// Of a split, or of the part of it that is read.
    pub(super) fn bytes_of(&self, split: &Split) -> u64 {
        let bytes = |input| self.inputs.bytes(input as usize);
        let all: u64 = split.inputs.clone().map(bytes).sum();
        split.part.as_ref().map_or(all, |part| part.end.min(all).saturating_sub(part.start))
    }

    /// A split without bytes, such as a pipe, counts too.
    fn weight(&self, split: &Split) -> u128 {
        1 + u128::from(self.bytes_of(split))
    }

    /// The border of this many processes in front of one of them: a split, and the byte of it where
    /// that begins. It depends on the files alone.
    fn border(&self, process: usize, processes: usize) -> Result<(usize, u64), InputError> {
        let total: u128 = self.splits.iter().map(|split| self.weight(split)).sum();
        let place = total * process as u128 / processes as u128;
        let mut before = 0;
        for (at, split) in self.splits.iter().enumerate() {
            let weight = self.weight(split);
            if place < before + weight {
                let cut = ((place - before) as u64 + CUT_BYTES / 2) / CUT_BYTES * CUT_BYTES;
                let is_inside = cut > 0 && cut < self.bytes_of(split);
                if is_inside && self.open_shared(split, PIECE_BYTES)?.is_some() {
                    return Ok((at, cut));
                }
                // Whoever has its middle has all of it.
                let middle = 2 * before + weight;
                let is_behind = middle * processes as u128 >= 2 * total * process as u128;
                return Ok((if is_behind { at } else { at + 1 }, 0));
            }
            before += weight;
        }
        Ok((self.splits.len(), 0))
    }

    /// Keeps the splits of one of several processes. Which those are depends on the files and the
    /// number of processes alone; inputs are numbered again. Files that were ignored count for
    /// process 0.
    pub(crate) fn share(mut self, process: usize, processes: usize) -> Result<Self, InputError> {
        let (first, from) = self.border(process, processes)?;
        let (end, until) = self.border(process + 1, processes)?;
        let is_empty = (first, from) == (end, until);
        let end = if is_empty { first } else { end + usize::from(until > 0) };
        self.splits.truncate(end);
        self.splits.drain(..first.min(end));
        if let Some(split) = self.splits.first_mut().filter(|_| from > 0) {
            split.part = Some(from..u64::MAX);
        }
        if let Some(split) = self.splits.last_mut().filter(|_| until > 0) {
            split.part = Some(split.part.as_ref().map_or(0, |part| part.start)..until);
        }
        let start = self.splits.first().map_or(0, |split| split.inputs.start);
        let end = self.splits.last().map_or(0, |split| split.inputs.end);
        self.inputs = self.inputs.range(start as usize..end as usize);
        for split in &mut self.splits {
            split.inputs = split.inputs.start - start..split.inputs.end - start;
        }
        let pipes = self.pipes.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let own =
            std::mem::take(pipes).into_iter().filter(|(input, _)| (start..end).contains(input));
        *pipes = own.map(|(input, pipe)| (input - start, pipe)).collect();
        if process > 0 {
            self.ignored = 0;
            self.passed = Passed::default();
        }
        self.first_input = start;
        Ok(self)
    }

    /// Whether the first file begins in the share of another process.
    pub(crate) fn begins_within(&self) -> bool {
        let part = self.splits.first().and_then(|split| split.part.as_ref());
        part.is_some_and(|part| part.start > 0)
    }

    /// Counts the lines, or pages, of the first file that are in the shares of others before. Reads
    /// all of those, which is seldom needed: documents without a name are called by their lines.
    pub(crate) fn lines_before(&self) -> Result<u64, InputError> {
        let first = self.splits.first().filter(|_| self.begins_within());
        let Some((split, part)) = first.and_then(|first| Some((first, first.part.as_ref()?)))
        else {
            return Ok(0);
        };
        let needle: &[u8] = match split.format {
            Format::Mediawiki => PAGE,
            // Records of these have no numbers.
            Format::Trec => return Ok(0),
            _ => b"\n",
        };
        let input = split.inputs.start;
        let Some((path, mark)) = self.inputs.path(input as usize).zip(Mark::of(split.format))
        else {
            return Ok(0);
        };
        let count = || -> io::Result<u64> {
            let begin = part.start - mark.bytes as u64;
            let mut file = File::open(path)?;
            let (mut room, mut held, mut gone, mut lines) = (Vec::new(), 0, 0u64, 0);
            loop {
                room.resize(held + READ_BYTES, 0);
                let read = file.read(&mut room[held..])?;
                let bytes = &room[..held + read];
                // The first record begins behind the first mark from `begin` on.
                let from = begin.saturating_sub(gone);
                let first = (from <= bytes.len() as u64)
                    .then(|| (mark.first)(bytes, from as usize))
                    .flatten();
                let end = first.unwrap_or(bytes.len());
                lines += memchr::memmem::find_iter(&bytes[..end], needle).count() as u64;
                if first.is_some() || read == 0 {
                    return Ok(lines);
                }
                // Of a needle or a mark that may go on.
                let keep = (needle.len().max(mark.bytes) - 1).min(end);
                let over = &bytes[end - keep..end];
                lines -= memchr::memmem::find_iter(over, needle).count() as u64;
                gone += (end - keep) as u64;
                room.copy_within(end - keep..end, 0);
                held = keep;
            }
        };
        count().map_err(|e| self.read_error(input, e))
    }
}
