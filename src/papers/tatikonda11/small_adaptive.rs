//! Small Adaptive: AND in which the list with the fewest postings left always goes first (Barbay,
//! López-Ortiz, Lu and Salinger: An experimental investigation of set intersection algorithms for
//! text searching, 2009), as `tatikonda11` intersects lists.
//!
//! The next document of the list with the fewest postings left is looked for in the others, those
//! with fewer left first, by galloping over the last docids of their blocks. The first list that
//! lacks it gives the least document that may be next, and the lists are sorted again.
//!
//! Unlike in the paper, galloping goes by blocks; only the one that may have it is decoded.

use crate::index::list::{ListError, ListView};
use crate::query::algorithms::handed::{RunSearcher, SearchAlgorithm};
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

pub(in crate::papers) struct SmallAdaptive;

impl SearchAlgorithm for SmallAdaptive {
    fn name(&self) -> &'static str {
        "small-adaptive"
    }

    fn finds_all(&self) -> bool {
        true
    }

    /// The number of lists matters little, since the first that is searched misses most. Measured
    /// on 2 million documents: 10 where hardly any is found, 20 to 35 where one in ten is.
    fn candidate_ns(&self) -> Option<f64> {
        Some(20.0)
    }

    fn begin(&self) -> Box<dyn RunSearcher> {
        Box::<AdaptiveSearcher>::default()
    }
}

#[derive(Default)]
struct AdaptiveSearcher {
    /// Numbers of the terms, the list with the fewest postings left first.
    order: Vec<usize>,
}

impl RunSearcher for AdaptiveSearcher {
    fn search(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let terms = run.terms;
        if terms.iter().any(|term| term.list.is_none()) {
            return Ok(());
        }
        let order = &mut self.order;
        scratch.reset_cursors(terms.len());
        let cursors = &mut scratch.cursors[..terms.len()];
        for term in 0..terms.len() {
            run.seek(cursors, term, 0)?;
        }
        order.clear();
        order.extend(0..terms.len());
        'next: loop {
            sort(order, cursors, terms);
            let Some(&smallest) = order.first() else { return Ok(()) };
            let Some(docid) = cursors[smallest].next_docid() else { return Ok(()) };
            for &term in &order[1..] {
                run.seek(cursors, term, docid)?;
                match cursors[term].next_docid() {
                    Some(found) if found == docid => {}
                    Some(least) => {
                        run.seek(cursors, smallest, least)?;
                        continue 'next;
                    }
                    None => return Ok(()),
                }
            }
            let mut sum = run.norms.static_of(docid);
            for (term, cursor) in cursors.iter_mut().enumerate() {
                sum += run.score(cursor, term, docid)?;
            }
            top.offer(run.first_docid + docid, sum);
            run.seek(cursors, smallest, docid + 1)?;
        }
    }
}

/// Sorts the terms by the postings left, counted by blocks. Most are in order already.
fn sort(order: &mut [usize], cursors: &[Cursor], terms: &[RunTerm<'_>]) {
    let left = |term: usize| {
        let of_list = |list: ListView<'_>| {
            (list.df() as usize).saturating_sub(cursors[term].block * list.block_len())
        };
        (terms[term].list.map_or(0, of_list), term)
    };
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 && left(order[at]) < left(order[at - 1]) {
            order.swap(at, at - 1);
            at -= 1;
        }
    }
}
