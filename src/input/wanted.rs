//! Which documents of an input are indexed, where only some of them are?

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The documents that are indexed.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Those at these places.
    At(WantedDocuments),
    /// Those that are not known; all others are noted too ([`PieceDocuments::see`](super::documents::PieceDocuments::see)).
    Unknown(KnownDocuments),
}

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

/// Documents that an index has, by name and hash of the content.
///
/// A document that is there is always found. One that is not may be found too: with a probability of n / 2^64 for n
/// documents, and where it has no name and some document whose name was made of file and line has its content.
#[derive(Clone, Debug, Default)]
pub struct KnownDocuments {
    keys: HashSet<u64, BuildHasherDefault<AsItIs>>,
}

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64")
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

impl KnownDocuments {
    /// Bytes of memory that so many documents take at most, if none of them has a name of its own.
    pub fn most_bytes(documents: u64) -> u64 {
        table_bytes(2 * documents)
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        table_bytes(self.keys.capacity() as u64)
    }

    /// Makes room for so many documents.
    pub fn with_capacity(documents: usize) -> Self {
        Self { keys: HashSet::with_capacity_and_hasher(documents, BuildHasherDefault::default()) }
    }

    /// Adds a document.
    pub fn insert(&mut self, name: &[u8], content: u64) {
        self.keys.insert(key(name, content));
        // The line of a document without a name is known when all before it are counted, which is later.
        let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && name[..name.len() - digits].ends_with(b":") {
            self.keys.insert(key(b"", content));
        }
    }

    /// Whether a document is there; an empty name is missing.
    pub fn contains(&self, name: &[u8], content: u64) -> bool {
        self.keys.contains(&key(name, content))
    }
}

/// Bytes of a table of so many keys, of which seven in eight places may be taken: a key and a byte for each place.
fn table_bytes(keys: u64) -> u64 {
    (keys.max(4) * 8).div_ceil(7).next_power_of_two() * 9
}

fn key(name: &[u8], content: u64) -> u64 {
    xxh3_64_with_seed(name, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_was_added_is_known() {
        let mut known = KnownDocuments::with_capacity(3);
        known.insert(b"a", 1);
        known.insert(b"b", 2);
        known.insert(b"docs/c.jsonl:17", 3);
        assert!(known.contains(b"a", 1) && known.contains(b"b", 2));
        assert!(known.contains(b"docs/c.jsonl:17", 3));
        assert!(!known.contains(b"a", 2) && !known.contains(b"c", 1) && !known.contains(b"", 1));
        // It may be that document: its line is not known yet.
        assert!(known.contains(b"", 3));
    }

    #[test]
    fn the_memory_of_known_documents_is_not_more_than_told() {
        for documents in [0, 1, 7, 8, 1000, 7 << 10, (7 << 10) + 1] {
            let mut known = KnownDocuments::with_capacity(documents);
            for n in 0..documents as u64 {
                known.insert(format!("file:{n}").as_bytes(), n);
            }
            let most = KnownDocuments::most_bytes(documents as u64);
            assert!(known.memory_bytes() <= most, "{documents}");
        }
    }
}
