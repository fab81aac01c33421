//! In which order are the documents of an index numbered? As they came, unless a merge or the end of a
//! build renumbers them: documents that are alike or good side by side make lists shorter and searches
//! end earlier.

#![forbid(unsafe_code)]

use crate::index::documents::RunDocuments;
use crate::score::bm25::Bm25;
use crate::score::wang::{GlobalParameters, Wang};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// An order of documents. Equals stay in the order in which they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DocumentOrder {
    /// As they lie in the input.
    Input,
    /// By their names as addresses: by host, read from its end, then by the rest; names that are no
    /// addresses come first.
    Url,
    /// By their names, byte for byte.
    Name,
    /// By their tokens, those with few first.
    Length,
    /// By falling global score (`score::wang`) for queries with these parameters.
    Global {
        /// The share of PageRank.
        wang: Wang,
        /// a, which is k1, and b.
        bm25: Bm25,
    },
}

impl DocumentOrder {
    /// The names of all, as users write them.
    pub const NAMES: [&str; 5] = ["input", "url", "name", "length", Self::GLOBAL];
    /// The name of the global order.
    pub const GLOBAL: &str = "global";

    /// Its name.
    pub fn name(&self) -> &'static str {
        let at = match self {
            Self::Input => 0,
            Self::Url => 1,
            Self::Name => 2,
            Self::Length => 3,
            Self::Global { .. } => 4,
        };
        Self::NAMES[at]
    }

    /// Sorts the docids of a run's documents, which rise. A global order goes by `globals`, one for each.
    pub(in crate::index) fn sort(
        &self,
        docids: &mut [u32],
        documents: &RunDocuments,
        globals: &[f32],
    ) {
        let name = |docid: u32| documents.name(docid).unwrap_or_default();
        match self {
            Self::Input => docids.sort_by_key(|&docid| {
                let place = documents.locations()[docid as usize];
                (place.input, place.offset)
            }),
            Self::Url => docids.sort_by(|&a, &b| compare_addresses(name(a), name(b))),
            Self::Name => docids.sort_by(|&a, &b| name(a).cmp(name(b))),
            Self::Length => docids.sort_by_key(|&docid| documents.lengths()[docid as usize]),
            Self::Global { .. } => {
                docids.sort_by(|&a, &b| globals[b as usize].total_cmp(&globals[a as usize]))
            }
        }
    }
}

/// Compares addresses such as `http://www.example.org:80/page` by their hosts from the end, `org`,
/// `example`, `www`, and then by the rest.
fn compare_addresses(a: &[u8], b: &[u8]) -> Ordering {
    let ((host_a, rest_a), (host_b, rest_b)) = (cut(a), cut(b));
    let is_dot = |byte: &u8| *byte == b'.';
    let by_host = host_a.rsplit(is_dot).cmp(host_b.rsplit(is_dot));
    by_host.then_with(|| rest_a.cmp(rest_b)).then_with(|| a.cmp(b))
}

/// The host of an address, and what follows it; no host if it is none.
fn cut(address: &[u8]) -> (&[u8], &[u8]) {
    let Some(scheme) = address.windows(3).position(|three| three == b"://") else {
        return (&[], address);
    };
    let rest = &address[scheme + 3..];
    let end = rest.iter().position(|byte| b"/?#:".contains(byte)).unwrap_or(rest.len());
    rest.split_at(end)
}

/// What a manifest says of the order of its documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderEntry {
    /// Its name.
    pub name: String,
    /// On what a global order rests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalEntry>,
}

impl fmt::Display for OrderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.global {
            None => f.write_str(&self.name),
            Some(GlobalEntry { alpha, k1, b, .. }) => {
                write!(f, "{} (alpha {alpha}, k1 {k1}, b {b})", self.name)
            }
        }
    }
}

/// The parameters of a global order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalEntry {
    /// The share of PageRank.
    pub alpha: f64,
    /// k1 of BM25, the paper's a.
    pub k1: f64,
    /// b of BM25.
    pub b: f64,
    /// Documents.
    pub documents: u32,
    /// Their tokens.
    pub tokens: u64,
    /// Tokens of a document in the mean, for readers.
    pub mean_length: f64,
}

impl GlobalEntry {
    /// Describes parameters.
    pub fn new(parameters: &GlobalParameters) -> Self {
        let GlobalParameters { wang, bm25, documents, tokens } = *parameters;
        let (alpha, k1, b) = (wang.alpha(), bm25.k1(), bm25.b());
        Self { alpha, k1, b, documents, tokens, mean_length: parameters.mean() }
    }

    /// The parameters; none if they are outside of their ranges.
    pub fn parameters(&self) -> Option<GlobalParameters> {
        let (wang, bm25) = (Wang::new(self.alpha).ok()?, Bm25::new(self.k1, self.b).ok()?);
        let (documents, tokens) = (self.documents, self.tokens);
        Some(GlobalParameters { wang, bm25, documents, tokens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sorted_by_host() {
        let sorted = [
            "a name",
            "b",
            "ftp://a.example.com/",
            "http://a.example.com/",
            "https://a.example.com/x",
            "http://b.example.com",
            "http://b.example.com/a",
            "http://b.example.com:80/y",
            "http://example.org",
            "https://www.example.org?q",
        ];
        for (at, a) in sorted.iter().enumerate() {
            for (other, b) in sorted.iter().enumerate() {
                let found = compare_addresses(a.as_bytes(), b.as_bytes());
                assert_eq!(found, at.cmp(&other), "{a} {b}");
            }
        }
    }
}
