//! What of the input is not a document: counts of each kind and the first few, so that any number
//! of broken records takes the same memory.

/// A part of the input that is not a document, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub input: u32,
    /// Its first byte in the uncompressed input.
    pub offset: u64,
    /// Its line in the piece, from 1, or 0 where lines do not count.
    pub line: u64,
    /// A few words, the same for all of its kind: `bad JSON`.
    pub reason: &'static str,
    pub detail: String,
}

impl Skipped {
    pub(crate) fn too_long(input: u32, offset: u64, bytes: u64, most: u64) -> Self {
        let detail = format!("a document of {bytes} bytes; the most is {most}");
        Self { input, offset, line: 0, reason: "document too long", detail }
    }
}

impl Skipped {
    /// A document that has to have a name.
    pub(crate) fn nameless(input: u32, offset: u64) -> Self {
        let detail = "a document that is added to an index has to have a name".to_string();
        Self { input, offset, line: 0, reason: "document without a name", detail }
    }
}

/// A document that the memory of the build cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeDocument {
    pub(crate) input: u32,
    pub(crate) offset: u64,
    /// Bytes of its record, or of what that is inflated to.
    pub(crate) bytes: u64,
    /// Bytes that it takes when it is parsed.
    pub(crate) takes: u64,
    /// Empty if it is not known.
    pub(crate) name: String,
}

/// Parts that were skipped, in the order of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedRecords {
    /// By reason, of which there are as many as the program has.
    counts: Vec<(&'static str, u64)>,
    /// The first of them, at most [`NAMED`](Self::NAMED).
    first: Vec<Skipped>,
    /// What ends the build.
    large: Option<Box<LargeDocument>>,
    /// What ends it when all before is known.
    last: Option<Box<Skipped>>,
}

impl SkippedRecords {
    /// Those that messages name.
    pub(crate) const NAMED: usize = 5;

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.large.is_none() && self.last.is_none()
    }

    /// Counts one more, of which only the first are `described`.
    pub(crate) fn push(&mut self, reason: &'static str, described: impl FnOnce() -> Skipped) {
        self.count(reason, 1);
        if self.first.len() < Self::NAMED {
            self.first.push(described());
        }
    }

    fn count(&mut self, reason: &'static str, more: u64) {
        match self.counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += more,
            None => self.counts.push((reason, more)),
        }
    }

    /// Adds those of what comes next in the input.
    pub(crate) fn append(&mut self, next: Self) {
        next.counts.into_iter().for_each(|(reason, more)| self.count(reason, more));
        let room = Self::NAMED - self.first.len();
        self.first.extend(next.first.into_iter().take(room));
        self.large = self.large.take().or(next.large);
        self.last = self.last.take().or(next.last);
    }

    /// Nothing is skipped for want of memory: this ends the build.
    pub(crate) fn refuse(&mut self, large: LargeDocument) {
        self.large.get_or_insert(Box::new(large));
    }

    /// This record ends the build.
    pub(crate) fn end_with(&mut self, last: Skipped) {
        self.last.get_or_insert(Box::new(last));
    }

    /// The records to name, and whether each of them ends the build.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Skipped, bool)> {
        let first = self.first.iter().map(|skipped| (skipped, false));
        self.last.iter().map(|last| (&**last, true)).chain(first)
    }

    /// The first document that is too large for the memory.
    pub(crate) fn large(&self) -> Option<&LargeDocument> {
        self.large.as_deref()
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn first(&self) -> &[Skipped] {
        &self.first
    }

    /// How many there are for each reason.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl FromIterator<Skipped> for SkippedRecords {
        fn from_iter<T: IntoIterator<Item = Skipped>>(skipped: T) -> Self {
            let mut all = Self::default();
            skipped.into_iter().for_each(|one| all.push(one.reason, || one));
            all
        }
    }

    fn some(from: u64, records: u64, reason: &'static str) -> SkippedRecords {
        let one = |offset| Skipped { input: 0, offset, line: 0, reason, detail: String::new() };
        (from..from + records).map(one).collect()
    }

    #[test]
    fn all_are_counted_and_the_first_are_kept_in_the_order_of_the_input() {
        let mut all = some(0, 3, "no tab");
        for piece in 0..1000 {
            all.append(some(100 * (piece + 1), 20_000, "bad JSON"));
            all.append(SkippedRecords::default());
        }
        let offsets: Vec<u64> = all.first().iter().map(|one| one.offset).collect();
        assert_eq!(offsets, [0, 1, 2, 100, 101]);
        let counts: Vec<_> = all.counts().collect();
        assert_eq!(counts, [("no tab", 3), ("bad JSON", 20_000_000)]);
        assert!(all.first.capacity() <= 8 && all.counts.capacity() <= 8, "no more memory");
    }
}
