//! Damages files so that the damage goes past their checksums. An input is a list of edits;
//! checksums are put right afterwards where a target asks for it, as a faulty program would.

use super::take::Take;

/// The longest file that edits make, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Makes one edit of `bytes`, as the input says.
pub(crate) fn edit(bytes: &mut Vec<u8>, take: &mut Take<'_>) {
    let kind = take.u8() % 8;
    // Places count from the end in one of two.
    let place = take.u16() as usize % (bytes.len() + 1);
    let at = if take.u8().is_multiple_of(2) { place } else { bytes.len() - place };
    match kind {
        0 => {
            let mask = take.u8();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
        1 => overwrite(bytes, at, &[take.u8()]),
        2 => overwrite(bytes, at, &take.u32().to_le_bytes()),
        3 => overwrite(bytes, at, &take.u64().to_le_bytes()),
        4 => bytes.truncate(at),
        5 => {
            let count = usize::from(take.u8());
            let more = take.bytes(count);
            if bytes.len() + more.len() <= MOST_BYTES {
                bytes.splice(at..at, more.iter().copied());
            }
        }
        6 => {
            let end = bytes.len().min(at + usize::from(take.u8()));
            bytes.drain(at..end);
        }
        _ => {
            let number = take.u64() >> (take.u8() % 64);
            replace_decimal(bytes, at, number);
        }
    }
}

/// One of the numbers a to e of a header gets another value.
pub(crate) fn edit_header(bytes: &mut [u8], take: &mut Take<'_>) {
    let at = 16 + 8 * usize::from(take.u8() % 5);
    let number = take.u64() >> (take.u8() % 64);
    overwrite(bytes, at, &number.to_le_bytes());
}

/// The end of a manifest whose text before it is `text`.
pub(crate) fn manifest_tail(text: &[u8]) -> String {
    format!("\"checksum\": \"{:08x}\"\n}}\n", crc32fast::hash(text))
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(with) {
        *to = *from;
    }
}

/// Replaces the first decimal number at or behind `at`.
fn replace_decimal(bytes: &mut Vec<u8>, at: usize, number: u64) {
    if let Some(start) = bytes.iter().skip(at).position(u8::is_ascii_digit) {
        let start = at + start;
        let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        bytes.splice(start..start + digits, number.to_string().into_bytes());
    }
}
