//! Which pieces go to a device as lines of JSON, whose names and texts it finds itself? Those whose first line has a [`LineShape`]. A line that has the same bytes
//! around a name and a text means the same, so that nobody has to look at keys, colons and commas: where another line is otherwise, the host reads all
//! of the piece.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What stands beside a name or a text has so many bytes, at most.
pub const MOST_AROUND: usize = 32;

/// A longer name is read by the host alone.
pub const LONGEST_NAME: usize = u8::MAX as usize;

/// A longer line is read by the host alone: 32 threads of a device share one, for which all others would wait.
pub const LONGEST_LINE: usize = 256 << 10;

/// A piece with more bytes is read by the host alone. It holds a long document.
pub const MOST_LINES_BYTES: usize = 16 << 20;

/// Words of a shape, as a device reads it.
pub const SHAPE_WORDS: usize = 4 + 3 * MOST_AROUND / 4;

/// The bytes around the name and the text of a line: before the name, between both, and behind the text up to the line feed, which is among
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineShape {
    lengths: [u8; 3],
    bytes: [[u8; MOST_AROUND]; 3],
}

impl LineShape {
    /// The shape with these bytes, unless they are none or too many, or the name is not read as far as what follows it says: one in quotes up to the next
    /// one, or a number of digits.
    pub fn of(arounds: [&[u8]; 3]) -> Option<Self> {
        let fits = arounds.iter().all(|around| (1..=MOST_AROUND).contains(&around.len()));
        if !fits || arounds[2].last() != Some(&b'\n') {
            return None;
        }
        let is_quoted = arounds[0].last() == Some(&b'"');
        // The byte behind a number ends it.
        if is_quoted != (arounds[1][0] == b'"') || arounds[1][0].is_ascii_digit() {
            return None;
        }
        let mut shape = Self { lengths: [0; 3], bytes: [[0; MOST_AROUND]; 3] };
        for (n, around) in arounds.into_iter().enumerate() {
            shape.lengths[n] = around.len() as u8;
            shape.bytes[n][..around.len()].copy_from_slice(around);
        }
        Some(shape)
    }

    /// The bytes before the name, between both, and behind the text.
    pub fn arounds(&self) -> [&[u8]; 3] {
        std::array::from_fn(|n| &self.bytes[n][..self.lengths[n].into()])
    }

    /// Whether names are numbers, and not in quotes.
    pub fn has_numbers(&self) -> bool {
        self.bytes[1][0] != b'"'
    }

    /// Bytes of the end of a line: a line feed, or a carriage return before it.
    pub fn end_bytes(&self) -> usize {
        let [.., behind] = self.arounds();
        1 + usize::from(behind.ends_with(b"\r\n"))
    }

    /// As a device reads it: the three lengths, whether names are numbers, and three times 32 bytes.
    pub fn words(&self) -> [u32; SHAPE_WORDS] {
        let mut words = [0; SHAPE_WORDS];
        let numbers = self.lengths.into_iter().chain([self.has_numbers().into()]);
        words.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.into());
        let (chunks, _) = self.bytes.as_flattened().as_chunks();
        for (word, chunk) in words[4..].iter_mut().zip(chunks) {
            *word = u32::from_le_bytes(*chunk);
        }
        words
    }
}

/// What is known of the lines of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// What the first of them has around its name and its text.
    pub shape: LineShape,
    /// A document with more bytes is left to the host.
    pub longest: u32,
    /// The number of their input.
    pub input: u32,
    /// Where the first one begins in its stream.
    pub offset: u64,
    /// The last one ends the stream without a line feed, and was given one.
    pub was_open: bool,
}

/// Whether pieces go to a device as lines. When it could not read some, the next ones do not, and each time twice as many.
#[derive(Debug, Default)]
pub struct AsLines {
    /// Pieces that do not.
    rest: AtomicU32,
    /// How many did not the last time.
    last: AtomicU32,
    /// The last piece did not, for whatever reason.
    is_unlikely: AtomicBool,
}

/// So many do not at first.
const FIRST_PAUSE: u32 = 64;

impl AsLines {
    /// Whether the next piece does.
    pub fn takes(&self) -> bool {
        self.rest.fetch_update(Relaxed, Relaxed, |rest| rest.checked_sub(1)).is_err()
    }

    /// A piece did, or it was parsed.
    pub fn went(&self, as_lines: bool) {
        self.is_unlikely.store(!as_lines, Relaxed);
    }

    /// Whether the next piece is likely to: whoever reads puts it where a device takes it from, which is out of the caches of who would parse it.
    pub fn is_likely(&self) -> bool {
        !self.is_unlikely.load(Relaxed)
    }

    /// A device could not read a piece. Others that went there before do not count.
    pub fn has_failed(&self) {
        if self.rest.load(Relaxed) == 0 {
            let pause = self.last.load(Relaxed).saturating_mul(2).max(FIRST_PAUSE);
            self.last.store(pause, Relaxed);
            self.rest.store(pause, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_bytes_on_all_sides_and_names_that_end_there() {
        let of = |before: &str, between: &str, behind: &str| {
            LineShape::of([before, between, behind].map(str::as_bytes))
        };
        let shape = of("{\"id\":\"", "\",\"text\":\"", "\"}\r\n").unwrap();
        assert_eq!(shape.arounds(), [&b"{\"id\":\""[..], b"\",\"text\":\"", b"\"}\r\n"]);
        assert!(!shape.has_numbers() && shape.end_bytes() == 2);
        let words = shape.words();
        assert_eq!(
            (words[..4].to_vec(), words[4]),
            (vec![7, 10, 4, 0], u32::from_le_bytes(*b"{\"id"))
        );
        assert_eq!(words[4 + MOST_AROUND / 4], u32::from_le_bytes(*b"\",\"t"));
        let numbered = of("{\"id\": ", ", \"text\": \"", "}\n").unwrap();
        assert!(numbered.has_numbers() && numbered.end_bytes() == 1 && numbered.words()[3] == 1);
        let long = "\"".repeat(MOST_AROUND + 1);
        for (before, between, behind) in [
            ("", "\"", "}\n"),
            ("\"", "", "}\n"),
            ("\"", "\"", ""),
            ("\"", "\"", "}"),
            ("\"", ",", "}\n"),
            (":", "\"", "}\n"),
            (":", "0", "}\n"),
            (&long, "\"", "}\n"),
            ("\"", &long, "}\n"),
        ] {
            assert_eq!(of(before, between, behind), None);
        }
    }

    #[test]
    fn each_failure_doubles_the_pause() {
        let lines = AsLines::default();
        for pause in [64, 128, 256] {
            assert!(lines.takes() && lines.takes());
            lines.has_failed();
            lines.has_failed();
            assert_eq!((0..).take_while(|_| !lines.takes()).count(), pause);
        }
        assert!(lines.is_likely());
        for went in [false, true] {
            lines.went(went);
            assert_eq!(lines.is_likely(), went);
        }
    }
}
