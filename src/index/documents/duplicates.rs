//! Finds documents that share a name, exactly, from documents in order of the hashes of their names
//! ([`lookup`](super::lookup)): only names of equal hashes are looked at.

use super::lookup::LookupStream;
use crate::index::error::IndexError;
use crate::settings::names;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Which documents of a name are indexed, if there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameName {
    /// All of them.
    #[default]
    All,
    /// The first one, in the order of the input.
    First,
    Last,
    /// None: the build fails.
    Refuse,
}

names!(SameName { All = "all", First = "first", Last = "last", Refuse = "refuse" });

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duplicates {
    /// Documents whose name an earlier document has.
    pub count: u64,
    /// The first of these documents and the earlier one with its name.
    pub first: Option<(u32, u32)>,
    /// The documents that are not the one of their name that is wanted, if one is.
    pub unwanted: Vec<u32>,
}

impl Duplicates {
    /// Adds those among names of other hashes.
    pub(crate) fn unite(mut self, other: Self) -> Self {
        self.count += other.count;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.unwanted.extend(other.unwanted);
        self
    }
}

/// Neighbouring documents in order of the hashes of their names, and of docids.
pub(crate) trait HashedNames {
    type Error;

    /// The hash of the name of the next document; none at the end.
    fn hash(&self) -> Option<u32>;

    /// Whether the document behind the next has that hash too.
    fn repeats(&self) -> bool;

    /// The docid of the next document in all, and a longer hash of its name. Different names share
    /// one with a chance below 10^-20 for 4 billion documents.
    fn document(&mut self) -> Result<(u32, u128), Self::Error>;

    fn advance(&mut self) -> Result<(), Self::Error>;
}

impl HashedNames for LookupStream {
    type Error = IndexError;

    fn hash(&self) -> Option<u32> {
        self.next_hash()
    }

    fn repeats(&self) -> bool {
        self.hash_repeats()
    }

    fn document(&mut self) -> Result<(u32, u128), IndexError> {
        self.next_document()
    }

    fn advance(&mut self) -> Result<(), IndexError> {
        self.go_on()
    }
}

/// Finds the duplicates among documents whose docids rise from one source to the next.
///
/// Memory: 24 bytes for each different name of the most that share a hash, and 4 for each document
/// that is not wanted.
pub(crate) fn find_duplicates<S: HashedNames>(
    sources: &mut [S],
    wanted: SameName,
) -> Result<Duplicates, S::Error> {
    let mut found = Duplicates::default();
    let mut seen: HashMap<u128, u32> = HashMap::new();
    while let Some(hash) = sources.iter().filter_map(S::hash).min() {
        let mut same = sources.iter_mut().filter(|source| source.hash() == Some(hash));
        let first = same.next().expect("one has the least hash");
        if !first.repeats() && same.next().is_none() {
            first.advance()?;
            continue;
        }
        seen.clear();
        for source in &mut *sources {
            while source.hash() == Some(hash) {
                let (docid, name) = source.document()?;
                match seen.entry(name) {
                    Entry::Vacant(free) => _ = free.insert(docid),
                    Entry::Occupied(mut before) => {
                        found.count += 1;
                        let pair = Some((docid, *before.get()));
                        found.first = [found.first, pair].into_iter().flatten().min();
                        match wanted {
                            SameName::All | SameName::Refuse => {}
                            SameName::First => found.unwanted.push(docid),
                            SameName::Last => found.unwanted.push(before.insert(docid)),
                        }
                    }
                }
                source.advance()?;
            }
        }
    }
    Ok(found)
}
