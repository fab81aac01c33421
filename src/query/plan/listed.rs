//! What a plan knows of how its hits are listed.

use super::Plan;
use crate::query::listing::Listing;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// How hits are listed, if not by score alone.
    listing: Option<Arc<Listing>>,
    /// Whether all documents match, with score 0.
    pub(super) is_of_all: bool,
}

/// Whether all documents match a text.
pub(crate) fn is_all(text: &str) -> bool {
    text.trim() == "*"
}

impl Plan {
    /// Lists hits in this way.
    pub(crate) fn list(&mut self, listing: Option<Arc<Listing>>) {
        self.listed.listing = listing;
    }

    pub(crate) fn listing(&self) -> Option<&Arc<Listing>> {
        self.listed.listing.as_ref()
    }

    /// The listing that needs all that matches, if there is one.
    pub(crate) fn listing_of_all(&self) -> Option<&Listing> {
        self.listed.listing.as_deref().filter(|listing| listing.is_of_all())
    }

    /// Whether all documents match, with score 0.
    pub(crate) fn is_of_all(&self) -> bool {
        self.listed.is_of_all
    }

    /// How many of the best documents are looked for.
    pub(crate) fn depth(&self) -> usize {
        let all = || self.snapshot.generation().documents().len() as usize;
        self.listing_of_all().map_or(self.wanted.k, |_| all())
    }
}
