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
    /// Documents below this score are not looked for.
    floor: Option<f32>,
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

    /// Looks for no document below a score, since others that are known have such scores.
    pub(crate) fn raise(&mut self, floor: f32) {
        self.listed.floor = Some(floor);
    }

    /// The least score that is looked for.
    pub(crate) fn floor(&self) -> f32 {
        self.listed.floor.unwrap_or(f32::NEG_INFINITY)
    }

    /// How many of the best documents are looked for.
    pub(crate) fn depth(&self) -> usize {
        let all = || self.snapshot.generation().documents().len() as usize;
        self.listing_of_all().map_or(self.wanted.k, |_| all())
    }
}
