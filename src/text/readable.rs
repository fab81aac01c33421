//! Raw bytes, such as names, as text.

#![allow(unsafe_code)]

/// U+FFFD stands for what is not UTF-8; `scratch` then holds the text.
#[inline]
pub(crate) fn readable<'a>(raw: &'a [u8], scratch: &'a mut String) -> &'a str {
    if is_short_ascii(raw) {
        // SAFETY: ASCII is UTF-8.
        return unsafe { std::str::from_utf8_unchecked(raw) };
    }
    read_other(raw, scratch)
}

fn read_other<'a>(raw: &'a [u8], scratch: &'a mut String) -> &'a str {
    if let Ok(name) = std::str::from_utf8(raw) {
        return name;
    }
    scratch.clear();
    for chunk in raw.utf8_chunks() {
        scratch.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            scratch.push(char::REPLACEMENT_CHARACTER);
        }
    }
    scratch
}

/// Whether these are 8 to 32 bytes of ASCII, as most names are: by four words that may overlap, and
/// one branch. The library's loop depends on a name's address, which cannot be predicted.
#[inline]
fn is_short_ascii(bytes: &[u8]) -> bool {
    if !(8..=32).contains(&bytes.len()) {
        return false;
    }
    let last = bytes.len() - 8;
    let word = |at: usize| {
        u64::from_ne_bytes(*bytes[at.min(last)..].first_chunk().expect("the last word begins here"))
    };
    (word(0) | word(8) | word(16) | word(24)) & 0x8080_8080_8080_8080 == 0
}
