use super::*;
use proptest::prelude::*;

/// The twin of the vector instructions.
#[derive(Clone, Copy)]
struct Portable;

fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    (0..BLOCK).filter(|&i| is(block[i])).map(|i| 1 << i).sum()
}

impl Lanes for Portable {
    fn classes(self, block: &[u8; BLOCK]) -> Classes {
        Classes {
            open: bits(block, |byte| byte == b'<'),
            close: bits(block, |byte| byte == b'>'),
            quote: bits(block, |byte| byte == b'"'),
            apostrophe: bits(block, |byte| byte == b'\''),
            equals: bits(block, |byte| byte == b'='),
            ampersand: bits(block, |byte| byte == b'&'),
            parts: bits(block, |byte| b" \t\n\x0c\r/>".contains(&byte)),
            blank: bits(block, |byte| byte <= b' '),
        }
    }

    fn spaces(self, block: &[u8; BLOCK]) -> u64 {
        bits(block, |byte| b" \t\n\x0c\r".contains(&byte))
    }

    fn parity(self, bits: u64) -> u64 {
        (0..64).map(|i| u64::from((bits << (63 - i)).count_ones() & 1) << i).sum()
    }

    fn deposit(self, bits: u64, places: u64) -> u64 {
        let places = (0..64).filter(|i| places >> i & 1 == 1).enumerate();
        places.map(|(number, place)| (bits >> number & 1) << place).sum()
    }

    fn squeeze(self, block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>) {
        for (i, &byte) in block.iter().enumerate().filter(|(i, _)| keep >> i & 1 == 1) {
            out.push(if feeds >> i & 1 == 1 { b'\n' } else { byte });
        }
    }
}

pub(in crate::text) fn portable(page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> SweepStop {
    sweep(Portable, page, at, out)
}

#[test]
fn names_mean_the_same_as_elsewhere() {
    for (name, role) in ROLES {
        let short = name >> 56 == 0;
        assert_eq!(meaning(name.swap_bytes()), if short { 2 } else { 0 }, "{role:?}");
    }
    for name in INLINE {
        assert_eq!(meaning(tag(name.as_bytes()).swap_bytes()), 1, "{name}");
    }
    for name in ["td", "aa", "p", "script1", "h1"] {
        assert_eq!(meaning(tag(name.as_bytes()).swap_bytes()), 0, "{name}");
    }
}

proptest! {
    #[test]
    fn twin_vector_instructions(
        bytes in proptest::collection::vec(prop_oneof![
            proptest::sample::select(b"<>&='\" \t\n\x0c\r/\0\x1f!a\xff\xbc".to_vec()), any::<u8>(),
        ], BLOCK..=BLOCK),
        keep in any::<u64>(), feeds in any::<u64>(),
    ) {
        let Some(best) = best_lanes() else { return Ok(()) };
        let block = bytes.first_chunk().unwrap();
        let mut out = Vec::with_capacity(2 * BLOCK);
        let mut expected = Vec::new();
        best.squeeze(block, keep, feeds, &mut out);
        Portable.squeeze(block, keep, feeds, &mut expected);
        prop_assert_eq!(out, expected);
        prop_assert_eq!(best.parity(keep), Portable.parity(keep));
        prop_assert_eq!(best.deposit(keep, feeds), Portable.deposit(keep, feeds));
        prop_assert_eq!(best.spaces(block), Portable.spaces(block));
        prop_assert_eq!(best.classes(block), Portable.classes(block));
    }
}

#[cfg(target_arch = "x86_64")]
fn best_lanes() -> Option<impl Lanes> {
    best().map(|_| x86::Avx512(()))
}

#[cfg(not(target_arch = "x86_64"))]
fn best_lanes() -> Option<impl Lanes> {
    None::<Portable>
}
