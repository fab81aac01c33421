//! Takes a target's decisions from its input: from the front, and zeros behind the end.

/// What is left of an input.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    /// The next `count` bytes, or as many as there are.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The next byte.
    pub(crate) fn u8(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// The next two bytes.
    pub(crate) fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    /// The next four bytes.
    pub(crate) fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    /// The next eight bytes.
    pub(crate) fn u64(&mut self) -> u64 {
        self.number(8)
    }

    /// A number of `bytes` bytes, little-endian.
    fn number(&mut self, bytes: usize) -> u64 {
        self.bytes(bytes).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Tells whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Gives bytes in parts, as a pipe may.
pub(crate) struct Dribble<'a> {
    bytes: &'a [u8],
    part: usize,
}

impl<'a> Dribble<'a> {
    pub(crate) fn new(bytes: &'a [u8], part: usize) -> Self {
        Self { bytes, part }
    }
}

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let part = self.part.min(into.len());
        self.bytes.read(&mut into[..part])
    }
}
