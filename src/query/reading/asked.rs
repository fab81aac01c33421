//! A query as it was asked.

#![warn(missing_docs)]

use super::refusals::Refused;
use crate::index::generations::manifest::Settings;
use crate::query::listing::{FacetBy, Listing, SortBy};
use crate::query::wanted::{Algorithm, Mode, Syntax, Wanted};
use std::sync::Arc;

/// The docids of some documents, rising.
pub type GivenDocids = Arc<[u32]>;

/// A query as read.
#[derive(Clone, Debug, Default, Eq)]
pub struct Query {
    /// Its number or name.
    pub qid: String,
    /// Its text.
    pub text: String,
    /// The most hits, if the query says it.
    pub k: Option<usize>,
    /// Its mode, if the query says it.
    pub mode: Option<Mode>,
    /// Its algorithm, if the query says it.
    pub algorithm: Option<Algorithm>,
    /// How its text is read, if the query says it.
    pub syntax: Option<Syntax>,
    /// Whether what matches is counted, if the query says it.
    pub count: Option<bool>,
    /// Which documents may be answers, if not all.
    pub filter: Option<Arc<str>>,
    /// The order of its hits, if it is not that of scores.
    pub sort: Option<Arc<SortBy>>,
    /// What of all that matches is counted.
    pub facets: Option<Arc<[FacetBy]>>,
    /// Columns whose values come with hits.
    pub returned: Option<Arc<[String]>>,
    /// This many of the first hits are left out; k hits follow.
    pub offset: usize,
    /// Whether a part of the text comes with each hit, if the query says it; in answers as JSON.
    pub snippets: Option<bool>,
    /// The documents that are ranked, if not all.
    pub candidates: Option<GivenDocids>,
    /// Its line, from 1, and its offset in the stream, if it was read.
    #[doc(hidden)]
    pub at: (u64, u64),
}

/// Wherever it stands, it is the same query.
impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        let wishes =
            |query: &Self| (query.k, query.mode, query.algorithm, query.syntax, query.count);
        fn listed(of: &Query) -> impl PartialEq {
            (&of.filter, &of.sort, &of.facets, &of.returned, of.offset, of.snippets)
        }
        let is_same = self.qid == other.qid && self.text == other.text;
        is_same
            && wishes(self) == wishes(other)
            && listed(self) == listed(other)
            && self.candidates == other.candidates
    }
}

impl Query {
    /// A query with the default wishes.
    pub fn new(qid: impl Into<String>, text: impl Into<String>) -> Self {
        Self { qid: qid.into(), text: text.into(), ..Self::default() }
    }

    /// Whether it does not ask to be read as anything else than words.
    #[doc(hidden)]
    pub fn has_words(&self) -> bool {
        self.syntax.is_none_or(|syntax| syntax == Syntax::Words)
    }

    /// Bytes that it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let filter = self.filter.as_ref().map_or(0, |filter| filter.len());
        size_of::<Self>() + self.qid.len() + self.text.len() + filter
    }

    /// What shards need of it, without its wishes.
    pub(crate) fn for_shards(&self) -> Self {
        let Self { text, filter, sort, facets, returned, .. } = self.clone();
        Self { text, filter, sort, facets, returned, ..Self::default() }
    }

    /// How its hits are listed, if it asks for that, in an index that has these columns.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(crate) fn listing(&self, settings: &Settings) -> Result<Option<Arc<Listing>>, String> {
        let facets = self.facets.as_deref().unwrap_or_default();
        Listing::of(self.sort.as_deref(), facets, self.returned.as_ref(), settings)
    }

    /// The refusal of this query, which has this number in the stream, from 1.
    pub(crate) fn refused(&self, number: u64, why: &str) -> Refused {
        self.refused_for(number, format!("the query {} {why}", self.qid))
    }

    /// The refusal of this query where each has to have a name of its own.
    pub(super) fn repeated(&self, number: u64) -> Refused {
        let qid = &self.qid;
        let why =
            format!("two queries have the name {qid}, so that their answers cannot be told apart");
        self.refused_for(number, why)
    }

    fn refused_for(&self, number: u64, why: String) -> Refused {
        let (line, offset) = self.at;
        // A query that was not read is known by its number.
        let line = if line == 0 { number } else { line };
        Refused { line, offset, number, why: why.into() }
    }

    /// What it asks for; `usual` has the defaults.
    pub fn wanted(&self, usual: &Wanted) -> Wanted {
        Wanted {
            k: self.k.unwrap_or(usual.k),
            mode: self.mode.unwrap_or(usual.mode),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
            syntax: self.syntax.unwrap_or(usual.syntax),
            count: self.count.unwrap_or(usual.count),
        }
    }
}

/// A line with its end has fewer bytes.
pub(crate) const MOST_LINE_BYTES: usize = 1 << 20;

/// The name in a line, or its number.
pub(super) fn named(qid: &str, number: u64) -> String {
    let qid = qid.trim();
    if qid.is_empty() { number.to_string() } else { qid.to_string() }
}
