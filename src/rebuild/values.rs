//! What do the values of a job file mean: sizes and spans of time?

use std::time::Duration;

/// Reads a span of time: a number of seconds, or numbers with s, m, h or d, as in `90s`, `7d` or
/// `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a span of time; write it as in 30s, 15m, 12h or 7d");
    let (mut seconds, mut number) = (0u64, None::<u64>);
    let digits = text.trim();
    for c in digits.chars() {
        if let Some(digit) = c.to_digit(10) {
            let more = number.unwrap_or(0).checked_mul(10);
            let more = more.and_then(|n| n.checked_add(u64::from(digit)));
            number = Some(more.ok_or_else(wrong)?);
            continue;
        }
        let unit = match c {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        let part = number.take().and_then(|n| n.checked_mul(unit));
        seconds = part.and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
    }
    match number {
        // A number without a unit stands alone.
        Some(n) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Duration::from_secs(n)),
        None if !digits.is_empty() => Ok(Duration::from_secs(seconds)),
        _ => Err(wrong()),
    }
}

/// Reads a size: a number of bytes, or one with K, M, G or T (powers of 1024), as in `64M`.
///
/// # Errors
/// The message for the one who wrote it.
pub fn size(text: &str) -> Result<u64, String> {
    let upper = text.trim().to_ascii_uppercase();
    let upper = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, shift) = match upper.char_indices().next_back() {
        Some((at, 'K')) => (&upper[..at], 10),
        Some((at, 'M')) => (&upper[..at], 20),
        Some((at, 'G')) => (&upper[..at], 30),
        Some((at, 'T')) => (&upper[..at], 40),
        _ => (upper, 0),
    };
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| {
        format!("`{text}` is not a size; write bytes, or a number with K, M, G or T")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        for (text, seconds) in
            [("0", 0), ("45", 45), ("45s", 45), ("15m", 900), ("7d", 604_800), ("1h30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "d", "7 d", "1h30", "-1s", "1w", "99999999999999999999d", "1.5h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1g"), Ok(1 << 30));
        assert_eq!(size("2KiB"), Ok(2048));
        assert_eq!(size("17"), Ok(17));
        for bad in ["", "M", "-1", "1.5G", "64X", "99999999999T", "\u{e9}"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
