//! Reads short raw bytes, such as names, as text.

/// Raw bytes as text, with U+FFFD for what is not UTF-8; `scratch` keeps it then.
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

/// Whether these are 8 to 32 bytes of ASCII, as most names are: told by four words, some of which
/// have bytes in common, and one branch. The library looks at aligned words, as many as follow from
/// where a name lies, which the processor cannot foresee.
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
