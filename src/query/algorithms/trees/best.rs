//! The best documents of a tree of one level, by a search for any of its terms: what that finds is
//! tested, and often enough of it matches.

use crate::index::list::ListError;
use crate::query::algorithms::auto;
use crate::query::algorithms::scored::MANY_TERMS;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::reading::syntax::Sign;
use crate::query::scratch::Scratch;
use crate::query::top_k::{Hit, TopK};
use crate::query::tree::{Group, QueryNode};

/// This many hits are asked for in place of one, and as many more.
const HITS_A_HIT: usize = 4;

/// More hits than this are found as soon by all that match.
const MOST_HITS: usize = 1000;

/// Fewer postings are.
const FEW_POSTINGS: u64 = 8192;

/// Whether a search for any of some terms pays, and has their scores.
pub(super) fn suits(run: &RunSearch<'_>, terms: &[RunTerm<'_>], top: &TopK) -> bool {
    let postings = terms.iter().map(|term| term.list.map_or(0, |list| u64::from(list.df())));
    top.k() <= MOST_HITS
        && terms.len() <= MANY_TERMS
        && run.norms.statics.is_empty()
        && postings.sum::<u64>() >= FEW_POSTINGS
}

/// Offers the best documents of a run to `top`, if this way finds them; tells whether it did. Each
/// document with a term scores what it scores in the tree, so that those of a search for any term
/// which match are the best that match, if they are enough.
pub(crate) fn search(
    run: &RunSearch<'_>,
    tree: &Group,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<bool, ListError> {
    let mut positive: Vec<RunTerm<'_>> = Vec::new();
    let mut tested = Vec::new();
    let mut required = 0;
    for (sign, node) in &tree.clauses {
        let QueryNode::Leaf(term) = *node else { return Ok(false) };
        required += usize::from(*sign == Sign::Required);
        if *sign != Sign::Excluded {
            positive.push(run.terms[term]);
        }
        if *sign != Sign::Optional {
            tested.push((*sign == Sign::Required, term));
        }
    }
    let tests_few = tree.at_least <= usize::from(required == 0) && required <= 1;
    if !tests_few || !suits(run, &positive, top) {
        return Ok(false);
    }
    let wanted = HITS_A_HIT * (top.k() + 1);
    let mut any = TopK::new();
    any.begin_as(top, wanted);
    auto::search(&RunSearch { terms: &positive, dense: &[], ..*run }, &mut any, scratch)?;
    let mut hits: Vec<Hit> = Vec::new();
    any.take(&mut hits);
    let are_all = hits.len() < wanted;
    hits.sort_unstable_by_key(|hit| hit.docid);
    scratch.reset_cursors(1);
    let cursor = &mut scratch.cursors[0];
    for (is_required, term) in tested {
        let Some(list) = &run.terms[term].list else {
            hits.retain(|_| !is_required);
            continue;
        };
        cursor.reset();
        let mut failed = Ok(());
        hits.retain(|hit| {
            let docid = hit.docid - run.first_docid;
            if let Err(error) = cursor.seek(list, run.documents, docid, run.level) {
                failed = Err(error);
            }
            (cursor.next_docid() == Some(docid)) == is_required
        });
        failed?;
    }
    if hits.len() < top.k() && !are_all {
        return Ok(false);
    }
    hits.iter().for_each(|hit| top.offer(hit.docid, hit.score));
    top.tighten();
    Ok(true)
}
