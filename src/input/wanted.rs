//! Which documents of an input are indexed, where only some of them are?

/// The places of documents that are wanted, by input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedDocuments {
    offsets: Vec<Vec<u64>>,
}

impl WantedDocuments {
    /// Wants nothing of so many inputs.
    pub fn new(inputs: usize) -> Self {
        Self { offsets: vec![Vec::new(); inputs] }
    }

    /// Wants a document, behind those of this input that are wanted already: its `offset` is that of
    /// its location.
    ///
    /// # Panics
    /// When there is no such input, or the document is not behind the others.
    pub fn push(&mut self, input: u32, offset: u64) {
        let offsets = &mut self.offsets[input as usize];
        assert!(offsets.last().is_none_or(|&last| last < offset), "documents come in order");
        offsets.push(offset);
    }

    /// Whether a document is wanted.
    pub fn contains(&self, input: u32, offset: u64) -> bool {
        let offsets = self.offsets.get(input as usize);
        offsets.is_some_and(|offsets| offsets.binary_search(&offset).is_ok())
    }
}
