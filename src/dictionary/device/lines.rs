//! Pieces that go to a device as lines of JSON, whose names and texts it finds itself: those whose
//! first line has a [`LineShape`]. Lines with the same bytes around some values mean the same, so
//! keys, colons and commas are not parsed; if another line is different, the host reads the piece.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The most values of a line that differ in the next one.
pub(crate) const MOST_VALUES: usize = 16;

pub(crate) const MOST_AROUND: usize = 256;

/// The host alone reads a longer name.
pub(crate) const LONGEST_NAME: usize = u8::MAX as usize;

/// The host alone reads a longer number.
pub(crate) const LONGEST_NUMBER: usize = 31;

/// The host alone reads a longer line: 32 threads of a device share one, for which all others would
/// wait.
pub const LONGEST_LINE: usize = 256 << 10;

/// The host alone reads a larger piece: it holds a long document.
pub(crate) const MOST_LINES_BYTES: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueRole {
    Other,
    Name,
    /// A part of the document's text.
    Text,
}

/// Bits of a value, as a device reads it.
pub(crate) const NAME: u32 = 1;
pub(crate) const TEXT: u32 = 2;
pub(crate) const NUMBER: u32 = 4;

/// A value that may differ in the next line: a string, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineValue {
    pub role: ValueRole,
    pub is_number: bool,
}

impl LineValue {
    const NONE: Self = Self { role: ValueRole::Other, is_number: false };

    fn bits(self) -> u32 {
        let role = match self.role {
            ValueRole::Other => 0,
            ValueRole::Name => NAME,
            ValueRole::Text => TEXT,
        };
        if self.is_number { role | NUMBER } else { role }
    }
}

/// The bytes around the values of a line: before each of them, and behind the last one up to and
/// with the line feed. The quotes of a string are around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineShape {
    count: u8,
    values: [LineValue; MOST_VALUES],
    /// The end of the bytes before each value, and of those behind the last one.
    ends: [u16; MOST_VALUES + 1],
    around: [u8; MOST_AROUND],
}

/// A shape as a device reads it: the number of values, whether one is a name, the first and the
/// last text, the bits of each value, the ends of the bytes before each, and all bytes.
pub(crate) const SHAPE_WORDS: usize = 4 + MOST_VALUES + (MOST_VALUES + 1) + MOST_AROUND / 4;

impl LineShape {
    /// The shape with these values, each behind its bytes, and bytes behind all. None without a
    /// text, with two names, with too many values or bytes, or where what follows a value does not
    /// end it: a string ends at the next quote, and a number at its last possible byte.
    pub(crate) fn of(values: &[(&[u8], LineValue)], behind: &[u8]) -> Option<Self> {
        let arounds = || values.iter().map(|(before, _)| *before).chain([behind]);
        let bytes: usize = arounds().map(<[u8]>::len).sum();
        let count = |role| values.iter().filter(|(_, value)| value.role == role).count();
        if values.len() > MOST_VALUES || bytes > MOST_AROUND {
            return None;
        }
        if count(ValueRole::Name) > 1
            || count(ValueRole::Text) == 0
            || behind.last() != Some(&b'\n')
        {
            return None;
        }
        for (&(before, value), after) in values.iter().zip(arounds().skip(1)) {
            let quotes = [before.last(), after.first()].map(|byte| byte == Some(&b'"'));
            let ends = match value.is_number {
                true => after.first().is_some_and(|byte| !is_of_number(byte)),
                false => quotes[1],
            };
            if !ends
                || quotes[0] == value.is_number
                || value.is_number && value.role == ValueRole::Text
            {
                return None;
            }
        }
        let mut shape = Self {
            count: values.len() as u8,
            values: [LineValue::NONE; MOST_VALUES],
            ends: [0; MOST_VALUES + 1],
            around: [0; MOST_AROUND],
        };
        let mut end = 0;
        for (n, around) in arounds().enumerate() {
            shape.around[end..end + around.len()].copy_from_slice(around);
            end += around.len();
            shape.ends[n] = end as u16;
        }
        for (to, (_, value)) in shape.values.iter_mut().zip(values) {
            *to = *value;
        }
        Some(shape)
    }

    /// Of lines that are one string each, a text.
    pub(crate) fn of_strings() -> Self {
        let text = LineValue { role: ValueRole::Text, is_number: false };
        Self::of(&[(b"\"", text)], b"\"\n").expect("a string ends at its quote")
    }

    /// Each with the bytes before it.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = (&[u8], LineValue)> {
        (0..usize::from(self.count)).map(|n| (self.around(n), self.values[n]))
    }

    pub(crate) fn behind(&self) -> &[u8] {
        self.around(self.count.into())
    }

    fn around(&self, n: usize) -> &[u8] {
        let begin = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.around[begin.into()..self.ends[n].into()]
    }

    /// Bytes of the end of a line, with or without a carriage return.
    pub(crate) fn end_bytes(&self) -> usize {
        1 + usize::from(self.behind().ends_with(b"\r\n"))
    }

    pub(crate) fn words(&self) -> [u32; SHAPE_WORDS] {
        let is_text = |value: &LineValue| value.role == ValueRole::Text;
        let first = self.values.iter().position(is_text).unwrap_or(0) as u32;
        let last = self.values.iter().rposition(is_text).unwrap_or(0) as u32;
        let (chunks, _) = self.around.as_chunks();
        let is_named = self.values.iter().any(|value| value.role == ValueRole::Name);
        let numbers = [self.count.into(), is_named.into(), first, last].into_iter();
        let numbers =
            numbers.chain(self.values.map(LineValue::bits)).chain(self.ends.map(u32::from));
        let mut words = [0; SHAPE_WORDS];
        let all = numbers.chain(chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)));
        words.iter_mut().zip(all).for_each(|(word, number)| *word = number);
        words
    }
}

fn is_of_number(byte: &u8) -> bool {
    matches!(byte, b'-' | b'.' | b'0'..=b'9')
}

/// Bytes of the number at the beginning of `bytes`, if a device reads it: as in JSON, but without
/// an exponent.
pub(crate) fn number_bytes(bytes: &[u8]) -> Option<usize> {
    let length = bytes.iter().take_while(|byte| is_of_number(byte)).count();
    let number = &bytes[..length];
    let parts = number.strip_prefix(b"-").unwrap_or(number).splitn(2, |&byte| byte == b'.');
    let mut parts = parts;
    let are_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let whole = parts.next()?;
    let is_number =
        are_digits(whole) && (whole.len() == 1 || whole[0] != b'0') && parts.all(are_digits);
    (is_number && length <= LONGEST_NUMBER).then_some(length)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLines {
    /// The bytes around the values of the first line.
    pub shape: LineShape,
    /// The host reads a document with more bytes.
    pub longest: u32,
    pub input: u32,
    /// How it is read, by a number of the plan.
    pub reading: u16,
    /// The first byte of the lines in their stream.
    pub offset: u64,
    /// The last line ends the stream, and was given a line feed.
    pub was_open: bool,
}

/// Whether pieces go to a device as lines. When it could not read one, the next ones do not, and
/// each time twice as many.
#[derive(Debug, Default)]
pub(crate) struct AsLines {
    rest: AtomicU32,
    /// The length of the last pause.
    last: AtomicU32,
    /// The last piece did not, for whatever reason.
    is_unlikely: AtomicBool,
}

/// Pieces of the first pause.
const FIRST_PAUSE: u32 = 64;

impl AsLines {
    /// Whether the next piece goes as lines.
    pub(crate) fn takes(&self) -> bool {
        self.rest.fetch_update(Relaxed, Relaxed, |rest| rest.checked_sub(1)).is_err()
    }

    pub(crate) fn went(&self, as_lines: bool) {
        self.is_unlikely.store(!as_lines, Relaxed);
    }

    /// Whether the next piece is likely to go as lines: then the reader writes it to the device's
    /// buffer past the caches, where a parser would find it slowly.
    pub(crate) fn is_likely(&self) -> bool {
        !self.is_unlikely.load(Relaxed)
    }

    /// The device could not read a piece. Others that went there before do not count.
    pub(crate) fn has_failed(&self) {
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

    const NAMED: LineValue = LineValue { role: ValueRole::Name, is_number: false };
    const NUMBERED: LineValue = LineValue { role: ValueRole::Name, is_number: true };
    const TEXTUAL: LineValue = LineValue { role: ValueRole::Text, is_number: false };
    const YEAR: LineValue = LineValue { role: ValueRole::Other, is_number: true };

    #[test]
    fn a_shape_says_where_values_end() {
        let of = |values: &[(&str, LineValue)], behind: &str| {
            let values: Vec<_> = values.iter().map(|(before, v)| (before.as_bytes(), *v)).collect();
            LineShape::of(&values, behind.as_bytes())
        };
        let plain = of(&[("{\"id\":\"", NAMED), ("\",\"text\":\"", TEXTUAL)], "\"}\r\n").unwrap();
        let values: Vec<_> = plain.values().collect();
        assert_eq!(values, [(&b"{\"id\":\""[..], NAMED), (b"\",\"text\":\"", TEXTUAL)]);
        assert_eq!((plain.behind(), plain.end_bytes()), (&b"\"}\r\n"[..], 2));
        let words = plain.words();
        assert_eq!((&words[..4], &words[4..7]), (&[2, 1, 1, 1][..], &[NAME, TEXT, 0][..]));
        assert_eq!(words[4 + MOST_VALUES..][..4], [7, 17, 21, 0]);
        assert_eq!(words[SHAPE_WORDS - MOST_AROUND / 4], u32::from_le_bytes(*b"{\"id"));
        let texts =
            [("\"", TEXTUAL), ("\",", YEAR), (",\"", TEXTUAL), ("\":", NUMBERED), (",\"", TEXTUAL)];
        let rich = of(&texts, "\"}\n").unwrap();
        assert_eq!((&rich.words()[..4], rich.end_bytes()), (&[5, 1, 0, 4][..], 1));
        assert_eq!(rich.words()[4..10], [TEXT, NUMBER, TEXT, NAME | NUMBER, TEXT, 0]);

        let named = ("\"", NAMED);
        let text = ("\",\"", TEXTUAL);
        assert!(of(&[named, text], "\"}\n").is_some());
        assert_eq!(of(&[text], "\"\n").unwrap().words()[..4], [1, 0, 0, 0]);
        let many =
            |count| [vec![named, text], vec![("\",\"", LineValue::NONE); count - 2]].concat();
        assert!(of(&many(MOST_VALUES), "\"\n").is_some());
        assert!(of(&many(MOST_VALUES + 1), "\"\n").is_none());
        let long = format!("\"{}\n", "}".repeat(MOST_AROUND - 6));
        assert!(
            of(&[named, text], &long).is_some()
                && of(&[named, text], &format!("\"{long}")).is_none()
        );
        for (values, behind) in [
            (vec![named], "\"\n"),
            (vec![named, named, text], "\"\n"),
            (vec![named, text], "\""),
            (vec![named, text], "}\n"),
            (vec![("", NAMED), text], "\"\n"),
            (vec![named, (",", TEXTUAL)], "\"\n"),
            (vec![named, ("\",", TEXTUAL)], "\"\n"),
            (vec![("\"", NUMBERED), ("\",\"", TEXTUAL)], "\"\n"),
            (vec![(":", NUMBERED), ("0,\"", TEXTUAL)], "\"\n"),
            (vec![(":", NUMBERED), ("", TEXTUAL)], "\"\n"),
            (vec![named, ("\":", LineValue { role: ValueRole::Text, is_number: true })], "}\n"),
        ] {
            assert_eq!(of(&values, behind), None, "{values:?} {behind}");
        }
    }

    #[test]
    fn numbers_are_those_of_json_without_exponents() {
        let longest = "9".repeat(LONGEST_NUMBER);
        for number in ["0", "-0", "7", "-12", "0.5", "-10.250", "1900", &longest] {
            assert_eq!(number_bytes(format!("{number}, 8").as_bytes()), Some(number.len()));
            assert!(serde_json::from_str::<serde_json::Value>(number).is_ok(), "{number}");
        }
        for other in [
            "",
            "-",
            "x",
            "01",
            "-01",
            ".5",
            "5.",
            "1.2.3",
            "1-",
            "--1",
            "-.5",
            &format!("{longest}1"),
        ] {
            assert_eq!(number_bytes(format!("{other},").as_bytes()), None, "{other}");
        }
        assert_eq!(
            number_bytes(b"15e3"),
            Some(2),
            "what follows is around it, and other lines do not have it"
        );
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
