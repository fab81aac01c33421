//! The choice of who finds terms and postings.

#![warn(missing_docs)]

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
    /// B-trees take tokens, on CPU and GPU, as in the paper `wei11`.
    Wei11,
    /// A GPU takes texts, and finds, sorts and counts the words. It needs one.
    Gpu,
}

impl Indexer {
    /// Its name, as the manifest has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fast => "fast",
            Self::Wei11 => "wei11",
            Self::Gpu => "gpu",
        }
    }

    pub(crate) fn indexing(self) -> Indexing {
        match self {
            // A device is chosen before anybody is asked.
            Self::Auto | Self::Fast => Indexing::Postings,
            Self::Wei11 => Indexing::Tokens,
            Self::Gpu => Indexing::Texts,
        }
    }
}

impl fmt::Display for Indexer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Indexer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Auto, Self::Fast, Self::Wei11, Self::Gpu]
            .into_iter()
            .find(|indexer| indexer.name() == text)
            .ok_or("the indexers are auto, fast, wei11 and gpu")
    }
}
