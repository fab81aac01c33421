//! PForDelta with one width a column, whose exceptions are coded again: ding09, section 6.2.
//!
//! Every value keeps its low b bits in a slot of b bits; the high bits and places of exceptions are
//! two arrays for the whole column, which are coded by PForDelta in turn ([`nested`]), 0 to 4
//! levels deep. The place of a slot is computed, so that a value is read alone.
//!
//! - Head: 0.
//! - Body: the low b bits of each value, as [`bits`] writes them.
//! - Shared:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | levels, 0 to 4 |
//! | 1 | b, 0 to 32 |
//! | [`vbyte`] | e: how many values have more than b bits |
//! | the rest, if e > 0 | [exceptions](nested) at `levels` |
//!
//! An encoder holds the exceptions, 8 bytes each, until the column ends; b is chosen from the
//! widths of all values such that about one in ten is an exception where they are spread evenly.
//!
//! [`vbyte`]: super::vbyte

pub(crate) mod nested;

use super::{
    Codec, CodecError, CodedBlock, Encoder, List, OpenedColumn, Survey, bits, check_values,
    checked_block_len, vbyte,
};
use nested::{
    Exceptions, MAX_LEVELS, choose_width, each_exception, read_exceptions, read_head,
    write_exceptions,
};

#[derive(Clone, Copy, Debug)]
pub struct Pfor {
    levels: u8,
}

impl Pfor {
    /// As in the paper.
    pub const DEFAULT: Self = Self { levels: 1 };

    /// # Panics
    /// If `levels` is above [`MAX_LEVELS`].
    pub const fn new(levels: u8) -> Self {
        assert!(levels <= MAX_LEVELS);
        Self { levels }
    }

    pub const fn levels(&self) -> u8 {
        self.levels
    }
}

#[derive(Debug, Default)]
struct PforWriter {
    levels: u8,
    block_len: usize,
    survey: Survey,
    /// Chosen before the first block of a column.
    width: Option<u8>,
    /// Overflows plus 1, and the number of values between each exception and the one before.
    highs: Vec<u32>,
    gaps: Vec<u32>,
    /// Values since the last exception.
    since: u32,
}

impl Encoder for PforWriter {
    fn survey(&mut self, values: &[u32]) {
        self.survey.add(values);
    }

    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let Self { levels, survey, highs, gaps, since, .. } = self;
        let width = *self.width.get_or_insert_with(|| choose_width(&survey.widths, *levels));
        let mut next = 0;
        each_exception(values, width, |place, high| {
            highs.push(high);
            gaps.push(*since + (place - next) as u32);
            next = place + 1;
            *since = 0;
        });
        *since += (values.len() - next) as u32;
        bits::pack(values, width, out);
        0
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.levels, self.width.take().unwrap_or(0)]);
        vbyte::put(self.highs.len() as u64, out);
        if !self.highs.is_empty() {
            write_exceptions(&self.highs, &self.gaps, self.levels, out);
        }
        self.highs.clear();
        self.gaps.clear();
        self.since = 0;
        self.survey = Survey::default();
    }
}

impl Codec for Pfor {
    fn block_lens(&self) -> &'static [usize] {
        &[128, 512, 64]
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        Box::new(PforWriter {
            levels: self.levels,
            block_len: checked_block_len(self, block_len),
            ..PforWriter::default()
        })
    }

    fn open(
        &self,
        shared: &[u8],
        count: usize,
        block_len: usize,
        opened: &mut OpenedColumn,
    ) -> Result<(), CodecError> {
        let Some(&levels) = shared.first() else { return CodecError::need(1, 0) };
        CodecError::at_most("levels", MAX_LEVELS.into(), levels.into())?;
        let shift = checked_block_len(self, block_len).ilog2();
        let mut at = 1;
        let (width, exceptions) = read_head(shared, &mut at)?;
        let OpenedColumn { places, highs, firsts, .. } = opened;
        places.clear();
        highs.clear();
        if exceptions > 0 {
            let of = Exceptions { count: exceptions, values: count, width };
            read_exceptions(shared, &mut at, &of, levels, places, highs)?;
        }
        if at < shared.len() {
            return Err(CodecError::Rest { expected: at as u64, found: shared.len() as u64 });
        }
        opened.width = width;
        opened.block_len = block_len;
        firsts.clear();
        for (i, &place) in (0..).zip(&*places) {
            let block = (place >> shift) as usize;
            while firsts.len() <= block {
                firsts.push(i);
            }
        }
        firsts.resize(count.div_ceil(block_len) + 1, places.len() as u32);
        Ok(())
    }

    #[inline]
    fn values(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let OpenedColumn { width, ref places, ref highs, .. } = *list.opened;
        let bytes = bits::bytes(out.len(), width);
        CodecError::need(bytes, block.body.len())?;
        bits::unpack(block.body, width, out);
        let exceptions = exceptions_of(list.opened, block.index)?;
        let least = block.index * list.opened.block_len;
        for (&place, &high) in places[exceptions.clone()].iter().zip(&highs[exceptions]) {
            // Only a block that is read short has exceptions behind its end.
            if let Some(value) = out.get_mut(place as usize - least) {
                *value |= high << width;
            }
        }
        Ok(bytes)
    }
}

#[inline]
fn exceptions_of(
    opened: &OpenedColumn,
    block: usize,
) -> Result<std::ops::Range<usize>, CodecError> {
    match opened.firsts.get(block..block + 2) {
        Some(&[first, end]) => Ok(first as usize..end as usize),
        _ => {
            let most = opened.firsts.len().saturating_sub(1) as u64;
            Err(CodecError::Number { what: "a block", most, found: block as u64 })
        }
    }
}
