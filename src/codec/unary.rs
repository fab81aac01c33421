//! Unary codes of small integers: value q is q ones and a zero, in a little-endian stream of bits,
//! as the quotients of Rice codes are (ding09, section 6.1).

#[derive(Debug, Default)]
pub(crate) struct UnaryWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a word yet, and their number.
    held: u64,
    filled: u32,
}

impl UnaryWriter {
    pub(crate) fn bits(&self) -> u64 {
        self.bytes.len() as u64 * 8 + u64::from(self.filled)
    }

    #[inline]
    pub(crate) fn put(&mut self, mut q: u32) {
        while q >= 32 {
            self.push(u64::from(u32::MAX), 32);
            q -= 32;
        }
        self.push((1 << q) - 1, q + 1);
    }

    /// Appends the low `count` bits, 32 at most.
    #[inline]
    fn push(&mut self, bits: u64, count: u32) {
        self.held |= bits << self.filled;
        self.filled += count;
        if self.filled >= 32 {
            self.bytes.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.filled -= 32;
        }
    }

    /// Moves the stream, filled up to a whole byte with ones, which are no value, to the end of
    /// `out`.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let last = self.held | u64::MAX << self.filled;
        out.append(&mut self.bytes);
        out.extend_from_slice(&last.to_le_bytes()[..self.filled.div_ceil(8) as usize]);
        self.held = 0;
        self.filled = 0;
    }
}

/// Reads values from bit `from` on and returns the bit behind; `None` if the stream ends before.
#[inline]
pub(crate) fn read(stream: &[u8], from: u64, out: &mut [u32]) -> Option<u64> {
    let first = window(stream, from / 64).unwrap_or(0);
    let mut start = from;
    let mut zeros = first & u64::MAX << (from % 64);
    let mut word = from / 64;
    for value in out {
        while zeros == 0 {
            word += 1;
            zeros = window(stream, word)?;
        }
        let end = word * 64 + u64::from(zeros.trailing_zeros());
        zeros &= zeros - 1;
        *value = (end - start) as u32;
        start = end + 1;
    }
    Some(start)
}

/// The bit behind this many values from the beginning of the stream; `None` if it ends before.
#[inline]
pub(crate) fn skip(stream: &[u8], values: usize) -> Option<u64> {
    let mut left = values;
    let mut word = 0;
    while left > 0 {
        let mut zeros = window(stream, word)?;
        let here = zeros.count_ones() as usize;
        if here >= left {
            (1..left).for_each(|_| zeros &= zeros - 1);
            return Some(word * 64 + u64::from(zeros.trailing_zeros()) + 1);
        }
        left -= here;
        word += 1;
    }
    Some(word * 64)
}

/// The zeros of 64 bits of the stream, as ones; `None` behind its end.
#[inline]
pub(crate) fn window(stream: &[u8], word: u64) -> Option<u64> {
    let rest = stream.get(usize::try_from(word).ok()?.checked_mul(8)?..)?;
    match rest.first_chunk::<8>() {
        Some(bytes) => Some(!u64::from_le_bytes(*bytes)),
        None if rest.is_empty() => None,
        None => {
            let mut bytes = [0xff; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            Some(!u64::from_le_bytes(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_are_as_specified() {
        let mut writer = UnaryWriter::default();
        for q in [0, 1, 3, 0] {
            writer.put(q);
        }
        assert_eq!(writer.bits(), 8);
        let mut out = vec![9];
        writer.finish(&mut out);
        assert_eq!(out, [9, 0b0011_1010]);
        writer.put(1);
        writer.finish(&mut out);
        assert_eq!(out[2..], [0b1111_1101]);
    }

    proptest! {
        #[test]
        fn law_values_come_back_from_every_place(
            values in prop::collection::vec(prop_oneof![0..4u32, 0..300u32], 1..200),
            cut in 0..100usize,
        ) {
            let mut writer = UnaryWriter::default();
            let begins: Vec<u64> = values
                .iter()
                .map(|&q| {
                    let begin = writer.bits();
                    writer.put(q);
                    begin
                })
                .collect();
            let end = writer.bits();
            let mut stream = Vec::new();
            writer.finish(&mut stream);
            prop_assert_eq!(stream.len() as u64, end.div_ceil(8));
            for (i, &begin) in begins.iter().enumerate() {
                let mut back = vec![0; values.len() - i];
                prop_assert_eq!(read(&stream, begin, &mut back), Some(end));
                prop_assert_eq!(&back[..], &values[i..]);
            }
            stream.truncate(stream.len().saturating_sub(1 + cut));
            prop_assert_eq!(read(&stream, 0, &mut vec![0; values.len()]), None);
        }
    }
}
