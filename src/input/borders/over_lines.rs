//! Finds where records end that may hold line ends: CSV with quoted fields, and JSON over several
//! lines.

use super::found::{FoundBorder, Gone};
use memchr::{memchr, memchr2};

/// What has to be known of the bytes before to tell where a record ends. The default stands at a
/// record's begin.
pub(crate) trait BorderMachine: Default {
    /// Reads on from a place in `bytes`. Returns the place behind the next record's end, or nothing
    /// if all bytes were read before it came; then the machine is to go on behind them.
    fn next(&mut self, bytes: &[u8], from: usize) -> Option<usize>;
}

#[derive(Default)]
pub(in crate::input) struct MachineBorders<M> {
    max_document: u64,
    machine: M,
    /// Bytes of the piece that the machine has read.
    read: usize,
    /// Where the record begins in which the machine stands.
    record: usize,
    dropping: M,
}

impl<M: BorderMachine> MachineBorders<M> {
    pub(in crate::input) fn new(max_document: u64) -> Self {
        Self { max_document, ..Self::default() }
    }

    pub(in crate::input) fn find(&mut self, bytes: &[u8], least: usize) -> FoundBorder {
        // Only the record that reaches beyond the piece can be too long to be kept.
        if bytes.len() < least {
            return FoundBorder::Nothing;
        }
        let long = |length: usize| length as u64 > self.max_document;
        while let Some(end) = self.machine.next(bytes, self.read) {
            self.read = end;
            if end >= least {
                return if long(end - self.record) {
                    FoundBorder::Long(self.record)
                } else {
                    FoundBorder::End(end)
                };
            }
            self.record = end;
        }
        self.read = bytes.len();
        if long(bytes.len() - self.record) {
            FoundBorder::Long(self.record)
        } else {
            FoundBorder::Nothing
        }
    }

    /// The next piece begins at a record's begin.
    pub(in crate::input) fn forget(&mut self) {
        (self.machine, self.read, self.record) = Default::default();
    }

    pub(in crate::input) fn drop_record(&mut self, bytes: &[u8]) -> Gone {
        match self.dropping.next(bytes, 0) {
            Some(end) => {
                self.dropping = M::default();
                Gone { bytes: end, end_bytes: 0, whole: true }
            }
            None => Gone { bytes: bytes.len(), end_bytes: 0, whole: false },
        }
    }
}

/// The state of a file of JSON values, of which only the nesting and the strings count. A record
/// ends behind the bracket that closes the outermost value; that of an array around all records
/// counts for nothing.
#[derive(Clone, Copy, Default)]
pub(in crate::input) struct Json {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Json {
    /// Reads one byte outside of strings. Tells whether an outermost value ends with it.
    pub(in crate::input) fn outside(&mut self, byte: u8) -> bool {
        match byte {
            b'"' => self.in_string = true,
            b'{' => self.depth += 1,
            // Brackets outside of objects are those of the array of all records.
            b'[' if self.depth > 0 => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    pub(in crate::input) fn between(&self) -> bool {
        self.depth == 0 && !self.in_string
    }

    /// Steps over what is left of a string that may end at a quote in `bytes`.
    pub(in crate::input) fn string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if std::mem::take(&mut self.escaped) {
                at += 1;
                continue;
            }
            match memchr2(b'"', b'\\', &bytes[at..]) {
                None => return bytes.len(),
                Some(n) => {
                    at += n + 1;
                    if bytes[at - 1] == b'"' {
                        self.in_string = false;
                        return at;
                    }
                    self.escaped = true;
                }
            }
        }
        at
    }

    pub(in crate::input) fn in_string(&self) -> bool {
        self.in_string
    }
}

impl BorderMachine for Json {
    fn next(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at < bytes.len() {
            if self.in_string {
                at = self.string(bytes, at);
                continue;
            }
            at += 1;
            if self.outside(bytes[at - 1]) {
                return Some(at);
            }
        }
        None
    }
}

/// The state of CSV (RFC 4180): a quote opens a field only at its begin, and ends it unless another
/// follows. Fields end with a comma, a semicolon or a tab, of which only one is the file's; a quote
/// behind another of these is taken for an opening one too, which real files do not have.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Csv {
    #[default]
    Begin,
    /// In a field without quotes, or behind them.
    Plain,
    Quoted,
    /// Behind a quote in a quoted field.
    Quote,
}

impl BorderMachine for Csv {
    fn next(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at < bytes.len() {
            if *self == Self::Quoted {
                match memchr(b'"', &bytes[at..]) {
                    None => return None,
                    Some(n) => at += n + 1,
                }
                *self = Self::Quote;
                continue;
            }
            let byte = bytes[at];
            at += 1;
            *self = match (*self, byte) {
                (_, b'\n') => {
                    *self = Self::Begin;
                    return Some(at);
                }
                (Self::Begin | Self::Quote, b'"') => Self::Quoted,
                (_, b',' | b';' | b'\t') => Self::Begin,
                _ => Self::Plain,
            };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends<M: BorderMachine>(bytes: &[u8]) -> Vec<usize> {
        let mut machine = M::default();
        let mut ends: Vec<usize> = Vec::new();
        while let Some(end) = machine.next(bytes, ends.last().copied().unwrap_or(0)) {
            ends.push(end);
        }
        ends
    }

    #[test]
    fn records_end_outside_of_quotes() {
        assert_eq!(ends::<Csv>(b"a,b\n\"x\ny\",\"\"\"\n\"\nu\"v\nw"), [4, 16, 20]);
        assert_eq!(ends::<Json>(b" [ {\"a\": \"}\\\"\"},\n{\"b\": [{}]}] {}\n{"), [15, 28, 32]);
    }

    proptest! {
        #[test]
        fn law_what_comes_in_parts_ends_at_the_same_places(
            bytes in proptest::collection::vec(proptest::sample::select(b"\"\\{}[],;\n a".to_vec()), 0..60),
            cut in 0usize..60,
        ) {
            fn parts<M: BorderMachine>(bytes: &[u8], cut: usize) -> Vec<usize> {
                let mut machine = M::default();
                let mut ends = Vec::new();
                let mut read = 0;
                for part in [&bytes[..cut], bytes] {
                    while let Some(end) = machine.next(part, read) {
                        ends.push(end);
                        read = end;
                    }
                    read = part.len();
                }
                ends
            }
            let cut = cut.min(bytes.len());
            prop_assert_eq!(parts::<Json>(&bytes, cut), ends::<Json>(&bytes));
            prop_assert_eq!(parts::<Csv>(&bytes, cut), ends::<Csv>(&bytes));
        }
    }
}
