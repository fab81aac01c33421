//! Names of tags and their roles.

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// A tag's name of up to eight bytes, in lower case; 0 for a longer one.
pub(in crate::text) type TagName = u64;

pub(in crate::text) const fn tag(name: &[u8]) -> TagName {
    let mut packed = 0;
    let mut i = 0;
    while i < name.len() {
        packed = packed << 8 | name[i] as TagName;
        i += 1;
    }
    packed
}

pub(super) const SCRIPT: TagName = tag(b"script");
pub(super) const STYLE: TagName = tag(b"style");
pub(super) const IFRAME: TagName = tag(b"iframe");
pub(super) const TITLE: TagName = tag(b"title");
pub(super) const TEXTAREA: TagName = tag(b"textarea");
pub(super) const XMP: TagName = tag(b"xmp");
pub(super) const TEMPLATE: TagName = tag(b"template");

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(in crate::text) enum TagRole {
    Block,
    /// It formats a part of a line, so that words go on after it.
    Inline,
    Script,
    Style,
    Iframe,
    Title,
    Textarea,
    Xmp,
    Template,
}

pub(in crate::text) const ROLES: &[(TagName, TagRole)] = &[
    (SCRIPT, TagRole::Script),
    (STYLE, TagRole::Style),
    (IFRAME, TagRole::Iframe),
    (TITLE, TagRole::Title),
    (TEXTAREA, TagRole::Textarea),
    (XMP, TagRole::Xmp),
    (TEMPLATE, TagRole::Template),
];

pub(in crate::text) const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del",
    "dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];

pub(in crate::text) const SLOTS: usize = 128;

#[inline(always)]
pub(in crate::text) const fn slot(name: TagName, factor: u64) -> usize {
    (name.wrapping_mul(factor) >> (64 - SLOTS.ilog2())) as usize
}

/// Perfect hashing: each name has a slot of its own.
const fn slots(factor: u64) -> Option<[(TagName, TagRole); SLOTS]> {
    let mut slots = [(0, TagRole::Block); SLOTS];
    let mut i = 0;
    while i < ROLES.len() + INLINE.len() {
        let entry = if i < ROLES.len() {
            ROLES[i]
        } else {
            (tag(INLINE[i - ROLES.len()].as_bytes()), TagRole::Inline)
        };
        let slot = slot(entry.0, factor);
        if slots[slot].0 != 0 {
            return None;
        }
        slots[slot] = entry;
        i += 1;
    }
    Some(slots)
}

/// Found by trial.
const FACTOR: u64 = 0xab3920349eba8775;

static SLOT: [(TagName, TagRole); SLOTS] = slots(FACTOR).expect("the factor parts all names");

#[inline(always)]
pub(in crate::text) fn role_of(name: TagName) -> TagRole {
    let (known, role) = SLOT[slot(name, FACTOR)];
    if known == name { role } else { TagRole::Block }
}

/// 0 for bytes that end a name, else the byte in lower case.
pub(super) const NAME_BYTE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        // A NUL, which no name that matters has, must not look like an end.
        table[byte] = if b == 0 { 1 } else { b.to_ascii_lowercase() };
        byte += 1;
    }
    let ends = b"\t\n\x0c\r />";
    let mut i = 0;
    while i < ends.len() {
        table[ends[i] as usize] = 0;
        i += 1;
    }
    table
};

#[inline(always)]
pub(in crate::text) const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The name of the tag that begins at `start`, and its end.
#[inline(always)]
pub(in crate::text) fn name_at(page: &[u8], start: usize) -> (TagName, usize) {
    let Some(bytes) = page.get(start..).and_then(<[u8]>::first_chunk) else {
        return any_name_at(page, start);
    };
    let bytes = u64::from_le_bytes(*bytes);
    // A bit for each byte that is `>` or below `0`, of which the first is right.
    let ends = bytes.wrapping_sub(each(b'0')) & !bytes;
    let is_angle = bytes ^ each(b'>');
    let ends = (ends | is_angle.wrapping_sub(each(1)) & !is_angle) & each(0x80);
    let length = ends.trailing_zeros() as usize / 8;
    if length == 8 || NAME_BYTE[usize::from(page[start + length])] != 0 {
        return any_name_at(page, start);
    }
    // Only letters become letters, since no control characters are among them.
    let lower = (bytes | each(b' ')).swap_bytes();
    (lower.checked_shr(64 - 8 * length as u32).unwrap_or(0), start + length)
}

/// The general form of [`name_at`].
pub(super) fn any_name_at(page: &[u8], start: usize) -> (TagName, usize) {
    let mut name = 0;
    let mut at = start;
    while let Some(byte) = page.get(at).map(|byte| NAME_BYTE[usize::from(*byte)])
        && byte != 0
    {
        name = name << 8 | TagName::from(byte);
        at += 1;
    }
    (if at - start <= 8 { name } else { 0 }, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_roles_in_any_case() {
        for (name, role) in ROLES {
            assert!(role_of(*name) == *role);
        }
        for name in INLINE {
            for name in [name.to_string(), name.to_uppercase()] {
                let page = format!("{name}>        ");
                let (found, end) = name_at(page.as_bytes(), 0);
                assert!(role_of(found) == TagRole::Inline && end == name.len(), "{name}");
            }
        }
        assert!(role_of(0) == TagRole::Block && role_of(tag(b"td")) == TagRole::Block);
    }
}
