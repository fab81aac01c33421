//! The places in a page of the bytes that mean something in markup. Those of a few KiB are found at
//! once and then stepped through: tags and the text between them are short, and a search for each
//! costs more than what it passes over.

use super::scan::bits_of;

/// Bytes searched at a time.
const WINDOW: usize = 2048;

/// The end of the places.
const NO_PLACE: u16 = u16::MAX;

pub(super) struct PageMarks<'a> {
    page: &'a [u8],
    /// The range whose places are known.
    base: usize,
    end: usize,
    places: [u16; WINDOW + 64],
    next: usize,
}

impl<'a> PageMarks<'a> {
    pub(super) fn new(page: &'a [u8]) -> Self {
        Self { page, base: 0, end: 0, places: [NO_PLACE; WINDOW + 64], next: 0 }
    }

    /// Steps to the first `<` or `&` from `from` on that was not passed, or to the page's end.
    #[inline(always)]
    pub(super) fn text_end(&mut self, from: usize) -> usize {
        self.step(from, |byte| matches!(byte, b'<' | b'&'))
    }

    /// The same past the first `>`, `=`, `"` or `'`; returns its place, or the page's end.
    #[inline(always)]
    pub(super) fn in_tag(&mut self, from: usize) -> usize {
        let place = self.step(from, |byte| !matches!(byte, b'<' | b'&'));
        // There is none to step past at the page's end.
        self.next += usize::from(place < self.page.len());
        place
    }

    #[inline(always)]
    fn step(&mut self, from: usize, is_sought: impl Fn(u8) -> bool) -> usize {
        loop {
            let place = self.places[self.next];
            if place == NO_PLACE {
                let start = from.max(self.end);
                if start >= self.page.len() {
                    return self.page.len();
                }
                self.fill(start);
                continue;
            }
            let place = self.base + usize::from(place);
            if place >= from && is_sought(self.page[place]) {
                return place;
            }
            self.next += 1;
        }
    }

    /// Finds the places of the range around `from`.
    #[inline(never)]
    fn fill(&mut self, from: usize) {
        self.base = from - from % 64;
        self.end = self.base + WINDOW;
        self.next = 0;
        let part = &self.page[self.base..self.page.len().min(self.base + WINDOW)];
        let found = find(part, &mut self.places);
        self.places[found] = NO_PLACE;
    }
}

/// Writes the places in `part` to `places`, 64 bytes at a time; returns their number.
fn find(part: &[u8], places: &mut [u16; WINDOW + 64]) -> usize {
    let mut found = 0;
    let mut push = |at: usize, step: &[u8; 64]| {
        let mut marks = bits_of(step, |byte| {
            // Branch-free.
            let is = |found: u8| u8::from(byte == found);
            is(b'<') | is(b'&') | is(b'>') | is(b'=') | is(b'"') | is(b'\'')
        });
        let all = found + marks.count_ones() as usize;
        // Four at a time, without a look at how many there are.
        while marks != 0 {
            let to: &mut [u16] = &mut places[found..found + 4];
            for place in to {
                *place = (at + marks.trailing_zeros() as usize) as u16;
                marks &= marks.wrapping_sub(1);
            }
            found += 4;
        }
        found = all;
    };
    let (steps, rest) = part.as_chunks::<64>();
    for (i, step) in steps.iter().enumerate() {
        push(i * 64, step);
    }
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    push(steps.len() * 64, &last);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each step of `steps` first skips this many bytes, and is one in a tag or not.
    fn check(page: &[u8], steps: &[(usize, bool)]) {
        let mut marks = PageMarks::new(page);
        let mut at = 0;
        for &(skipped, in_tag) in steps {
            let from = (at + skipped).min(page.len());
            let set = if in_tag { &b">=\"'"[..] } else { b"<&" };
            let found = page[from..].iter().position(|byte| set.contains(byte));
            let expected = found.map_or(page.len(), |n| from + n);
            let place = if in_tag { marks.in_tag(from) } else { marks.text_end(from) };
            assert_eq!(place, expected);
            at = (place + usize::from(in_tag)).min(page.len());
        }
    }

    #[test]
    fn every_byte_is_marked_or_not() {
        let page: Vec<u8> = (0..=u8::MAX).collect();
        for from in 0..=page.len() {
            for in_tag in [false, true] {
                check(&page, &[(from, in_tag), (0, in_tag), (1, !in_tag)]);
            }
        }
        check(b"", &[(0, true), (0, false)]);
    }

    proptest! {
        #[test]
        fn oracle_marks_are_where_the_bytes_are(
            pieces in proptest::collection::vec((any::<u8>(), 0usize..9), 0..2000),
            gap in 0usize..5000,
            steps in proptest::collection::vec((prop_oneof![9 => 0usize..30, 1 => 0usize..6000], any::<bool>()), 0..300),
        ) {
            let set = b"<&>=\"'";
            let mut page = Vec::new();
            for (i, (byte, blanks)) in pieces.iter().enumerate() {
                page.push(*set.get(usize::from(*byte % 16)).unwrap_or(byte));
                page.extend(std::iter::repeat_n(b' ', if i == 1000 { gap } else { *blanks }));
            }
            check(&page, &steps);
        }
    }
}
