//! A set of documents of a run.

/// Memory: a bit for each document of the run and half of that, but nothing while it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocidSet {
    /// A bit for each document, the low bit of a word first.
    words: Vec<u64>,
    /// Documents of the set before each word.
    before: Vec<u32>,
    count: u32,
}

impl DocidSet {
    pub(crate) fn new(words: Vec<u64>) -> Self {
        let mut count = 0;
        let before = |word: &u64| {
            count += word.count_ones();
            count - word.count_ones()
        };
        let before = words.iter().map(before).collect();
        if count == 0 { Self::default() } else { Self { words, before, count } }
    }

    /// The set with more documents of the run, which has this many.
    pub(crate) fn with(&self, documents: u32, more: impl IntoIterator<Item = u32>) -> Self {
        let mut words = self.words.clone();
        words.resize(documents.div_ceil(64) as usize, 0);
        for docid in more {
            words[docid as usize / 64] |= 1 << (docid % 64);
        }
        Self::new(words)
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Empty if the set is.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn contains(&self, docid: u32) -> bool {
        self.word(docid as usize / 64) >> (docid % 64) & 1 == 1
    }

    /// Documents of the set before `docid`.
    #[inline]
    pub(crate) fn before(&self, docid: u32) -> u32 {
        let at = docid as usize / 64;
        match self.before.get(at) {
            Some(before) => before + (self.word(at) & !(u64::MAX << (docid % 64))).count_ones(),
            None => self.count,
        }
    }

    /// How many of some documents are in the set.
    #[inline]
    pub(crate) fn count(&self, docids: &[u32]) -> u32 {
        let is_in = |docid: &u32| self.word(*docid as usize / 64) >> (docid % 64) & 1;
        docids.iter().map(is_in).sum::<u64>() as u32
    }

    /// Rising.
    pub(crate) fn docids(&self) -> impl Iterator<Item = u32> {
        self.docids_from(0)
    }

    /// The documents from one on, rising.
    #[inline]
    pub(crate) fn docids_from(&self, first: u32) -> impl Iterator<Item = u32> {
        let start = first as usize / 64;
        let behind = move |at: usize| if at == start { u64::MAX << (first % 64) } else { u64::MAX };
        (start..self.words.len()).flat_map(move |at| ones(at, self.words[at] & behind(at)))
    }
}

/// The documents of word `at`, rising.
#[inline]
pub(crate) fn ones(at: usize, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let docid = 64 * at as u32 + word.trailing_zeros();
        (word != 0).then(|| {
            word &= word - 1;
            docid
        })
    })
}
