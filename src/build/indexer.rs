//! The choice of who finds terms and postings.

#![warn(missing_docs)]

use super::handed::{HandedIndexer, HandedIndexers, TokensIndexer};
use crate::dictionary::indexer::Indexing;
use std::fmt;
use std::str::FromStr;

/// Who finds terms and postings. The index is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexer {
    /// [`Gpu`](Self::Gpu) where there is one and there is enough input for it to pay, or else
    /// [`Fast`](Self::Fast); a note says which device.
    #[default]
    Auto,
    /// Parsers count each piece, and hash tables take postings: the fastest without a GPU.
    Fast,
    /// A GPU takes texts, and finds, sorts and counts the words. It needs one.
    Gpu,
    /// One that the program has handed in, which takes tokens.
    #[doc(hidden)]
    Handed(HandedIndexer),
}

impl Indexer {
    /// Its name, as the manifest has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fast => "fast",
            Self::Gpu => "gpu",
            Self::Handed(indexer) => indexer.name(),
        }
    }

    pub(crate) fn indexing(self) -> Indexing {
        match self {
            // A device is chosen before anybody is asked.
            Self::Auto | Self::Fast => Indexing::Postings,
            Self::Handed(_) => Indexing::Tokens,
            Self::Gpu => Indexing::Texts,
        }
    }

    pub(crate) fn handed(self) -> Option<&'static dyn TokensIndexer> {
        if let Self::Handed(indexer) = self { Some(indexer.0) } else { None }
    }

    /// Times its bytes, what a parser needs besides for a piece in the worst case, where no word
    /// that is short occurs twice.
    pub(crate) fn parser_times(self) -> u64 {
        self.handed().map_or(26, TokensIndexer::parser_times)
    }

    /// The one of this name among all and those that are handed in.
    ///
    /// # Errors
    /// If none has the name: the names that there are.
    #[doc(hidden)]
    pub fn among(name: &str, handed: HandedIndexers) -> Result<Self, String> {
        let first = [Self::Auto, Self::Fast].into_iter();
        let all = || first.clone().chain(handed.iter().map(|&one| Self::Handed(one)));
        let names = || all().map(Self::name).collect::<Vec<_>>().join(", ");
        let mut known = all().chain([Self::Gpu]);
        let found = known.find(|indexer| indexer.name() == name);
        found.ok_or_else(|| format!("the indexers are {} and {}", names(), Self::Gpu))
    }
}

impl fmt::Display for Indexer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Indexer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::among(text, &[])
    }
}
