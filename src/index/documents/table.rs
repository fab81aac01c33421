//! The documents of a generation: those of its runs, one run behind the other.

use super::{Location, RunDocuments};
use crate::index::error::IndexError;
use crate::index::generations::manifest::RunEntry;
use std::borrow::Cow;
use std::cell::OnceCell;

/// The documents of all runs.
#[derive(Debug)]
pub struct Documents {
    runs: Vec<PlacedRun>,
    documents: u32,
}

/// Names, one behind the other.
#[derive(Debug, Default)]
pub struct NameList {
    text: String,
    ends: Vec<usize>,
}

impl NameList {
    fn of(text: Vec<u8>, mut ends: Vec<usize>) -> Self {
        // Nearly all are UTF-8, and this looks at many bytes at a time.
        let text = String::from_utf8(text).unwrap_or_else(|error| {
            let (mut lossy, mut start) = (String::new(), 0);
            for end in &mut ends {
                let own = std::mem::replace(&mut start, *end)..*end;
                lossy += &String::from_utf8_lossy(&error.as_bytes()[own]);
                *end = lossy.len();
            }
            lossy
        });
        Self { text, ends }
    }

    /// The name at a place; empty if there is none.
    #[inline]
    fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
        let (Some(&start), Some(&end)) = (start, self.ends.get(at)) else { return "" };
        self.text.get(start..end).unwrap_or_default()
    }
}

#[derive(Debug)]
struct PlacedRun {
    first_docid: u32,
    first_input: u32,
    documents: RunDocuments,
}

impl Documents {
    /// Those of a generation, of each of its runs.
    pub(crate) fn of<'r>(runs: impl IntoIterator<Item = (&'r RunEntry, RunDocuments)>) -> Self {
        let place = |(run, documents): (&RunEntry, RunDocuments)| {
            let RunEntry { first_docid, first_input, .. } = *run;
            PlacedRun { first_docid, first_input, documents }
        };
        let runs: Vec<PlacedRun> = runs.into_iter().map(place).collect();
        // The manifest's reader has compared the runs with the docids.
        let documents = runs.iter().map(|run| run.documents.len()).sum();
        Self { runs, documents }
    }

    /// Documents, deleted ones too: docids are below this.
    pub fn len(&self) -> u32 {
        self.documents
    }

    pub(crate) fn runs(&self) -> impl ExactSizeIterator<Item = &RunDocuments> {
        self.runs.iter().map(|run| &run.documents)
    }

    fn place(&self, docid: u32) -> Option<(&PlacedRun, u32)> {
        if docid >= self.documents {
            return None;
        }
        // Runs without documents begin where the next one does.
        let after = self.runs.partition_point(|run| run.first_docid <= docid);
        let run = &self.runs[after.checked_sub(1)?];
        Some((run, docid - run.first_docid))
    }

    #[inline]
    pub(crate) fn length(&self, docid: u32) -> Option<u32> {
        let (run, docid) = self.place(docid)?;
        run.documents.lengths().get(docid as usize).copied()
    }

    /// The name of a document, in UTF-8; empty where there is no such document. All names that
    /// leave the index come from here.
    ///
    /// # Errors
    /// `Damaged`.
    pub fn name(&self, docid: u32) -> Result<Cow<'_, [u8]>, IndexError> {
        self.place(docid).map_or(Ok(Cow::Borrowed(&[])), |(run, docid)| run.documents.name(docid))
    }

    /// The names at the places of a list of docids, all made when the first is asked for, and kept
    /// in `names`; of one that is damaged since it was opened `failed` gets the error.
    pub fn names<'a>(
        &'a self,
        docids: impl Fn(usize) -> Option<u32> + 'a,
        (names, failed): (&'a OnceCell<NameList>, &'a OnceCell<IndexError>),
    ) -> impl Fn(usize) -> Cow<'a, str> {
        move |at| {
            let names = names.get_or_init(|| {
                self.list(&docids).unwrap_or_else(|error| {
                    // The first one is enough.
                    _ = failed.set(error);
                    NameList::default()
                })
            });
            Cow::Borrowed(names.get(at))
        }
    }

    /// A name is two memory accesses that wait for each other, so both are begun some names before.
    fn list(&self, docids: impl Fn(usize) -> Option<u32>) -> Result<NameList, IndexError> {
        const AHEAD: usize = 8;
        // Where names that were prefetched are, by their places.
        let mut prefetched = [None; AHEAD];
        let (mut text, mut ends) = (Vec::with_capacity(1 << 10), Vec::with_capacity(1 << 6));
        for at in 0.. {
            let Some(docid) = docids(at) else { break };
            let known = prefetched[at % AHEAD].take();
            if let Some((run, docid)) = docids(at + 2 * AHEAD).and_then(|docid| self.place(docid)) {
                run.documents.prefetch_end(docid);
            }
            if let Some((run, docid)) = docids(at + AHEAD).and_then(|docid| self.place(docid)) {
                let place = run.documents.prefetch_name(docid);
                prefetched[at % AHEAD] = place.map(|place| (run, docid, place));
            }
            let parts = match known {
                Some((run, docid, place)) => run.documents.name_at(docid, place)?,
                None => match self.place(docid) {
                    Some((run, docid)) => run.documents.name_parts(docid)?,
                    None => [&[][..]; 2],
                },
            };
            parts.iter().for_each(|part| text.extend_from_slice(part));
            ends.push(text.len());
        }
        Ok(NameList::of(text, ends))
    }

    /// The input is numbered in the manifest.
    pub(crate) fn location(&self, docid: u32) -> Option<Location> {
        let (run, docid) = self.place(docid)?;
        let location = run.documents.location(docid)?;
        Some(Location { input: location.input.saturating_add(run.first_input), ..location })
    }

    /// Of the text as it was indexed.
    pub(crate) fn hash(&self, docid: u32) -> Option<u64> {
        let (run, docid) = self.place(docid)?;
        run.documents.hashes().get(docid as usize).copied()
    }
}
