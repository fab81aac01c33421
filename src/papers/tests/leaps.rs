//! A whole algorithm in one file, which CONTRIBUTING walks through: AND by leaps. All lists go to a
//! document; the first that has only a later one says where all go next.

use crate::index::list::ListError;
use crate::query::algorithms::handed::{RunSearcher, SearchAlgorithm};
use crate::query::cursor::RunSearch;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// What the table has: the name, which queries it is for, and how it begins.
pub(super) struct Leaps;

impl SearchAlgorithm for Leaps {
    fn name(&self) -> &'static str {
        "leaps"
    }

    fn finds_all(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn RunSearcher> {
        Box::<LeapSearcher>::default()
    }
}

/// Its memory, which it keeps from query to query: here the scores of a document.
#[derive(Default)]
struct LeapSearcher {
    scores: Vec<f32>,
}

impl RunSearcher for LeapSearcher {
    fn search(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let terms = run.terms.len();
        if terms == 0 || run.terms.iter().any(|term| term.list.is_none()) {
            return Ok(());
        }
        scratch.reset_cursors(terms);
        let cursors = &mut scratch.cursors[..terms];
        let mut docid = 0;
        'next: loop {
            self.scores.clear();
            for term in 0..terms {
                run.seek(cursors, term, docid)?;
                match cursors[term].next_docid() {
                    Some(found) if found == docid => {
                        self.scores.push(run.score(&mut cursors[term], term, docid)?);
                    }
                    Some(later) => {
                        docid = later;
                        continue 'next;
                    }
                    None => return Ok(()),
                }
            }
            // Added up in the order of the query, as everywhere.
            let sum = self.scores.iter().fold(run.norms.static_of(docid), |sum, score| sum + score);
            top.offer(run.first_docid + docid, sum);
            docid += 1;
        }
    }
}
