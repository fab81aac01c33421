//! Shows numbers, and text from others, to people.

use jiff::Timestamp;
use std::any::Any;
use std::borrow::Cow;
use std::time::SystemTime;

/// With separators between its thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub fn number_of(n: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { more })
}

/// With four decimals, and no sign where all digits are 0.
pub(crate) fn decimals(value: f64) -> String {
    unsigned_zero(format!("{value:.4}"))
}

/// As [`decimals`], with a plus where it is not negative.
pub(crate) fn signed_decimals(value: f64) -> String {
    unsigned_zero(format!("{value:+.4}"))
}

fn unsigned_zero(text: String) -> String {
    let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if is_zero { text.trim_start_matches('-').to_string() } else { text }
}

/// A probability, which is never shown as none at all.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_string() } else { format!("{p:.4}") }
}

/// In the largest binary unit of which there is one at least.
pub fn bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(unit) = (bytes.max(1).ilog2() as usize / 10).checked_sub(1) else {
        return format!("{bytes} B");
    };
    format!("{:.2} {}", bytes as f64 / f64::powi(1024.0, unit as i32 + 1), units[unit])
}

/// Makes control characters visible: a name comes from the input, and must not steer a terminal.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // What changes the direction of the text around it misleads as well.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(character.escape_unicode());
            }
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// What the clock says, or the last time that can be shown if it is beyond that.
pub fn now() -> Timestamp {
    shown_time(SystemTime::now())
}

fn shown_time(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(Timestamp::MAX)
}

pub fn panicked(payload: &dyn Any) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// An error and its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |e| e.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A name as a run has it, whose fields are separated by spaces: `_` for white space and control
/// characters. What is no UTF-8 stays.
pub(crate) fn one_word(name: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(name).map(one_word_of) {
        Ok(Cow::Owned(word)) => word.into_bytes().into(),
        _ => name.into(),
    }
}

/// The same of text.
pub(crate) fn one_word_of(text: &str) -> Cow<'_, str> {
    // Most words need no change, which many bytes at a time tell.
    if text.bytes().fold(true, |is, byte| is & (byte > b' ') & (byte < 0x7f)) {
        return text.into();
    }
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable_and_names_harmless() {
        assert_eq!((count(1_234_567), bytes(3 << 20)), ("1,234,567".into(), "3.00 MiB".into()));
        assert_eq!([0, 999, 1000, 100_000].map(count), ["0", "999", "1,000", "100,000"]);
        let sizes = [0, 1023, 1024, (3 << 30) + (1 << 29), u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "1023 B", "1.00 KiB", "3.50 GiB", "16.00 EiB"]);
        let queries = |n| number_of(n, "query", "queries");
        assert_eq!(
            [queries(0), queries(1), queries(2000)],
            ["0 queries", "1 query", "2,000 queries"]
        );
        assert_eq!([-0.0, -0.00004, 0.25].map(decimals), ["0.0000", "0.0000", "0.2500"]);
        let signed = [0.0, -0.0, -0.00004, -0.0001, 0.5].map(signed_decimals);
        assert_eq!(signed, ["+0.0000", "0.0000", "0.0000", "-0.0001", "+0.5000"]);
        let p = [0.0, 0.000_099, 0.0001, 1.0].map(probability);
        assert_eq!(p, ["<0.0001", "<0.0001", "0.0001", "1.0000"]);
        assert_eq!(visible("a\u{1b}[31mé"), "a\\u{1b}[31mé");
        assert_eq!(visible("\u{202e}x"), "\\u{202e}x");
    }

    #[test]
    fn every_clock_has_a_time() {
        let at = |days: u64| {
            shown_time(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(86_400 * days))
        };
        assert_eq!(at(1).to_string(), "1970-01-02T00:00:00Z");
        for years in [8029, 8030, 9000, 200_000] {
            assert_eq!(at(366 * years), Timestamp::MAX);
        }
    }
}
