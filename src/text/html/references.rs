//! Character references: `&eacute;`, `&#233;`, `&#xe9;`.
//!
//! All 2,125 names of the HTML standard (section 13.5) are known; `entities.txt` has a line for
//! each, with its characters in hexadecimal, and a `+` after the names whose semicolon may be left
//! out. Numbers mean what the standard says (section 13.2.5.80), windows-1252 included.

use crate::text::characters::goes_on;
use std::sync::LazyLock;

static ENTITIES: &str = include_str!("entities.txt");

const LONGEST_NAME: usize = 31;
const LONGEST_LEGACY: usize = 6;

struct Entity {
    name: &'static [u8],
    characters: [Option<char>; 2],
    /// The semicolon may be left out.
    legacy: bool,
}

/// Sorted by name.
static TABLE: LazyLock<Box<[Entity]>> =
    LazyLock::new(|| ENTITIES.lines().filter_map(entity).collect());

fn entity(line: &'static str) -> Option<Entity> {
    let (name, characters) = line.split_once(' ')?;
    let mut characters =
        characters.split(' ').map(|hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?));
    let characters = [characters.next().flatten(), characters.next().flatten()];
    let legacy = name.strip_suffix('+');
    Some(Entity { name: legacy.unwrap_or(name).as_bytes(), characters, legacy: legacy.is_some() })
}

fn find(name: &[u8]) -> Option<&'static Entity> {
    let place = TABLE.binary_search_by(|entity| entity.name.cmp(name)).ok()?;
    TABLE.get(place)
}

/// Appends the characters of the reference whose `&` comes before `rest` and returns its bytes in
/// `rest`; 0 if it is no reference. `unknown_is_blank`: so is an unknown name with a semicolon.
pub(super) fn append(rest: &[u8], unknown_is_blank: bool, out: &mut Vec<u8>) -> usize {
    // The usual ones, without a search.
    let (length, byte) = match rest {
        [b'n', b'b', b's', b'p', b';', ..] => (5, b' '),
        [b'a', b'm', b'p', b';', ..] => (4, b'&'),
        [b'l', b't', b';', ..] => (3, b'<'),
        [b'g', b't', b';', ..] => (3, b'>'),
        [b'q', b'u', b'o', b't', b';', ..] => (5, b'"'),
        [b'#', ..] => return number(rest, out),
        _ => return named(rest, unknown_is_blank, out),
    };
    out.push(byte);
    length
}

/// Appends the value of an attribute. A name without its semicolon is no reference if `=`, a letter
/// or a digit follows, so that `?a=1&copy=2` stays what it is.
pub(super) fn of_attribute(value: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(n) = memchr::memchr(b'&', &value[at..]) {
        out.extend_from_slice(&value[at..at + n]);
        let rest = &value[at + n + 1..];
        let exact = |character: char, out: &mut Vec<u8>| {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        };
        let taken = match rest {
            [b'#', ..] => code(rest).map(|(character, taken)| {
                exact(character, out);
                taken
            }),
            _ => known(rest).and_then(|(entity, taken)| {
                let next = rest.get(taken);
                let goes_on = next.is_some_and(|b| *b == b'=' || b.is_ascii_alphanumeric());
                if rest[taken - 1] != b';' && goes_on {
                    return None;
                }
                entity.characters.into_iter().flatten().for_each(|c| exact(c, out));
                Some(taken)
            }),
        };
        if taken.is_none() {
            out.push(b'&');
        }
        at += n + 1 + taken.unwrap_or(0);
    }
    out.extend_from_slice(&value[at..]);
}

/// The entity that `rest` begins with, and its bytes.
fn known(rest: &[u8]) -> Option<(&'static Entity, usize)> {
    let head = &rest[..rest.len().min(LONGEST_NAME + 1)];
    let length = head.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(head.len());
    if rest.get(length) == Some(&b';')
        && let Some(entity) = find(&head[..length])
    {
        return Some((entity, length + 1));
    }
    let legacy = |length: usize| Some((find(&head[..length]).filter(|e| e.legacy)?, length));
    (2..=length.min(LONGEST_LEGACY)).rev().find_map(legacy)
}

fn named(rest: &[u8], unknown_is_blank: bool, out: &mut Vec<u8>) -> usize {
    if let Some((entity, taken)) = known(rest) {
        entity.characters.into_iter().flatten().for_each(|character| push(character, out));
        return taken;
    }
    let head = &rest[..rest.len().min(LONGEST_NAME + 1)];
    let length = head.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(head.len());
    let ended = length > 0 && rest.get(length) == Some(&b';');
    if ended && unknown_is_blank {
        out.push(b' ');
        return length + 1;
    }
    0
}

fn number(rest: &[u8], out: &mut Vec<u8>) -> usize {
    code(rest).map_or(0, |(character, taken)| {
        push(character, out);
        taken
    })
}

/// The character whose number `rest` begins with, and its bytes.
fn code(rest: &[u8]) -> Option<(char, usize)> {
    let hexadecimal = matches!(rest.get(1), Some(b'x' | b'X'));
    let (start, radix) = if hexadecimal { (2, 16) } else { (1, 10) };
    let mut at = start;
    let mut code = 0u32;
    while let Some(digit) = rest.get(at).and_then(|byte| char::from(*byte).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return None;
    }
    let character = match code {
        0 => None,
        0x80..=0x9f => char::from_u32(u32::from(WINDOWS_1252[code as usize - 0x80])),
        _ => char::from_u32(code),
    };
    let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((character, at + usize::from(rest.get(at) == Some(&b';'))))
}

/// A character that is neither ASCII nor part of a word only separates words: as a blank it leaves
/// the text ASCII, which the tokenizer reads faster.
fn push(character: char, out: &mut Vec<u8>) {
    if character.is_ascii() {
        out.push(character as u8);
    } else if goes_on(character) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        out.push(b' ');
    }
}

/// 0x80 to 0x9f in windows-1252, which many mistook for Unicode.
const WINDOWS_1252: [u16; 32] = [
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039,
    0x152, 0x8d, 0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc,
    0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reference: &str) -> (String, usize) {
        let mut out = Vec::new();
        let taken = append(reference.as_bytes(), false, &mut out);
        (String::from_utf8(out).unwrap(), taken)
    }

    #[test]
    fn the_table_is_whole_and_sorted() {
        assert_eq!(TABLE.len(), 2125);
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(TABLE.iter().map(|entity| entity.name.len()).max(), Some(LONGEST_NAME));
        let legacy = || TABLE.iter().filter(|entity| entity.legacy);
        assert_eq!(legacy().map(|entity| entity.name.len()).max(), Some(LONGEST_LEGACY));
        assert_eq!(legacy().count(), 106);
        assert!(TABLE.iter().all(|entity| entity.characters[0].is_some()));
    }

    #[test]
    fn names() {
        for (reference, expected, taken) in [
            ("amp;x", "&", 4),
            ("nbsp;", " ", 5),
            ("nbsp", " ", 4),
            ("eacute;t", "é", 7),
            ("eacutet", "é", 6),
            ("Zcaron;", "Ž", 7),
            ("Zcaron ", "", 0),
            ("notit;", " ", 3),
            ("notin;", " ", 6),
            ("mdash;", " ", 6),
            ("CounterClockwiseContourIntegral;", " ", 32),
            ("shy;", "\u{ad}", 4),
            ("shy", "\u{ad}", 3),
            ("zwnj;", "\u{200c}", 5),
            ("lrm;", "\u{200e}", 4),
            ("NoBreak;", "\u{2060}", 8),
            ("#x301;", "\u{301}", 6),
            ("#173;", "\u{ad}", 5),
            ("ZeroWidthSpace;", " ", 15),
            ("fjlig;", "fj", 6),
            ("Afr;", "𝔄", 4),
            ("bogus;", "", 0),
            ("Eacute", "É", 6),
            (";", "", 0),
            ("", "", 0),
            (" amp;", "", 0),
        ] {
            assert_eq!(text(reference), (expected.to_owned(), taken), "&{reference}");
        }
        let mut out = Vec::new();
        assert_eq!(append(b"hyph;en", true, &mut out), 5);
        assert_eq!(out, b" ");
        assert_eq!(append(b"hyph en", true, &mut out), 0);
    }

    #[test]
    fn numbers() {
        for (reference, expected, taken) in [
            ("#65;", "A", 4),
            ("#65B", "A", 3),
            ("#x41;", "A", 5),
            ("#XE9g", "é", 4),
            ("#138;", "Š", 5),
            ("#x9f", "Ÿ", 4),
            ("#0;", " ", 3),
            ("#xD800;", " ", 7),
            ("#99999999999999999999;", " ", 22),
            ("#0000000000000000000000000000065;", "A", 33),
            ("#;", "", 0),
            ("#x;", "", 0),
            ("#xg", "", 0),
            ("#", "", 0),
        ] {
            assert_eq!(text(reference), (expected.to_owned(), taken), "&{reference}");
        }
    }
}
