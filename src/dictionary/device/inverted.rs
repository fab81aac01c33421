//! The lists that a device has made of a run, in the order of the lexicon. The device knows terms
//! by numbers, and gives the lists of each batch of pieces by these; a list goes on from batch to
//! batch, so its parts are joined end to end.

use super::forms::Terms;
use crate::codec::prefetch::prefetch;
use crate::dictionary::closed::{ClosedError, ClosedTerms, order_key};
use crate::dictionary::owners::Owners;
use crate::dictionary::strings::place::StringPlace;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct InvertedLists {
    /// The beginning of each term's list, by number, and the end of the last. Terms that came later
    /// have none.
    pub starts: Vec<u32>,
    /// Postings as in a run's tail ([`folded`](crate::codec::folded)); the first gap of a list is
    /// counted from the posting before, which an earlier batch has.
    pub bytes: Vec<u8>,
}

impl InvertedLists {
    fn of(&self, term: u32) -> &[u8] {
        match self.starts.get(term as usize..term as usize + 2) {
            Some(&[start, end]) => &self.bytes[start as usize..end as usize],
            _ => &[],
        }
    }
}

#[derive(Debug)]
pub(crate) struct InvertedRun {
    pub terms: Terms,
    /// In the order of their documents.
    pub batches: Vec<InvertedLists>,
}

pub(crate) struct InvertedTerms {
    run: Arc<InvertedRun>,
    owners: Arc<Owners>,
    owner: u32,
    /// In the order of the lexicon. Made when the first is asked for.
    order: Option<Vec<InvertedTerm>>,
    suffixes: Vec<u8>,
    given: usize,
}

#[derive(Clone, Copy, Debug)]
struct InvertedTerm {
    key: u64,
    number: u32,
    /// Among the suffixes of the owner.
    place: StringPlace,
}

/// Terms whose lists are prefetched.
const AHEAD: usize = 8;

impl InvertedTerms {
    pub(crate) fn new(run: Arc<InvertedRun>, owners: Arc<Owners>, owner: u32) -> Self {
        Self { run, owners, owner, order: None, suffixes: Vec::new(), given: 0 }
    }

    fn sort(&mut self) -> Vec<InvertedTerm> {
        let mut order = Vec::new();
        let suffixes = &mut self.suffixes;
        self.run.terms.for_each(|number, collection, suffix| {
            if self.owners.of(collection) == self.owner {
                let place = StringPlace::new(suffixes.len(), collection, suffix.len());
                suffixes.extend_from_slice(suffix);
                order.push(InvertedTerm { key: order_key(collection, suffix), number, place });
            }
        });
        let string = |term: &InvertedTerm| term.place.of(suffixes);
        order.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| string(a).cmp(string(b))));
        order
    }
}

impl ClosedTerms for InvertedTerms {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        if self.order.is_none() {
            self.order = Some(self.sort());
        }
        let order = self.order.as_ref().expect("it was made above");
        loop {
            let Some(term) = order.get(self.given) else { return Ok(false) };
            if let Some(ahead) = order.get(self.given + 2 * AHEAD) {
                for batch in &self.run.batches {
                    if let Some(start) = batch.starts.get(ahead.number as usize) {
                        prefetch(start);
                    }
                }
            }
            if let Some(ahead) = order.get(self.given + AHEAD) {
                for batch in &self.run.batches {
                    if let Some(byte) = batch.of(ahead.number).first() {
                        prefetch(byte);
                    }
                }
            }
            self.given += 1;
            postings.clear();
            for batch in &self.run.batches {
                postings.extend_from_slice(batch.of(term.number));
            }
            // A form that only pieces behind the run have may have made a term.
            if !postings.is_empty() {
                return Ok(true);
            }
        }
    }

    fn term(&self) -> (u16, &[u8]) {
        let order = self.order.as_ref().expect("a term was asked for");
        let place = order[self.given - 1].place;
        (place.collection(), place.of(&self.suffixes))
    }
}
