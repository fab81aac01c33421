//! Which documents have all terms of a query, and which k of them have the highest scores?
//!
//! The shortest list drives: each of its blocks of 128 gives candidates, which the other lists thin
//! out, shorter before longer. A list skips to the block that may hold the next candidate by its
//! last docids and decodes no other. Term frequencies are read last, of full matches alone, and
//! added up in the order of the query.

use super::cursor::{Cursor, RunTerm, Scratch, check_run};
use super::exhaustive::search_one;
use super::kernels::{Matches, NO_DOCID, Room, add_scores, offer_block};
use super::top_k::TopK;
use crate::codec::level::Level;
use crate::index::list::{BLOCK, ListError};

/// Offers to `top` all documents of a run that have every term. `norms` are those of the run's
/// documents; docids offered begin with `first_docid`.
///
/// # Errors
///
/// If a list is damaged. Some documents may have been offered.
///
/// # Panics
///
/// If there are fewer norms than `documents`, or the docids do not fit 32 bits.
pub fn search(
    terms: &[RunTerm<'_>],
    first_docid: u32,
    documents: u32,
    norms: &[f32],
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    check_run(first_docid, documents, norms);
    if terms.iter().any(|term| term.list.is_none()) {
        return Ok(());
    }
    match terms {
        [] => Ok(()),
        [term] => search_one(term, first_docid, documents, norms, top, scratch),
        _ => intersect(terms, first_docid, documents, norms, top, scratch),
    }
}

fn intersect(
    terms: &[RunTerm<'_>],
    first_docid: u32,
    documents: u32,
    norms: &[f32],
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    scratch.reset_cursors(terms.len());
    let Scratch { level, cursors, order, matches, .. } = scratch;
    let level = *level;
    order.clear();
    order.extend(0..terms.len());
    order.sort_unstable_by_key(|&term| (terms[term].list.map_or(0, |list| list.df()), term));
    let driver = order[0];
    let Some(list) = terms[driver].list else { return Ok(()) };

    let mut candidates: Room = [NO_DOCID; BLOCK + 16];
    let mut ended = false;
    for block in 0..list.full_blocks() + usize::from(list.tail_len() > 0) {
        cursors[driver].load_positions(&list, block, documents)?;
        let mut count = cursors[driver].len;
        candidates[..BLOCK].copy_from_slice(&cursors[driver].docids);
        for (number, &term) in order.iter().enumerate().skip(1) {
            let Some(list) = terms[term].list else { return Ok(()) };
            let wanted = (&candidates, count);
            ended |= !cursors[term].find(level, &list, documents, wanted, matches)?;
            keep(&mut candidates, matches);
            for &earlier in &order[..number] {
                keep(&mut cursors[earlier].positions, matches);
            }
            count = matches.found;
            candidates[count..count + 16].fill(NO_DOCID);
            if count == 0 {
                break;
            }
            cursors[term].positions[..BLOCK].copy_from_slice(&matches.positions[..BLOCK]);
        }
        if count > 0 {
            score(terms, cursors, level, (&candidates, count), norms, first_docid, top)?;
        }
        if ended {
            break;
        }
    }
    Ok(())
}

/// Keeps of some numbers, one for each candidate, those of the candidates that were found.
#[inline]
fn keep(numbers: &mut Room, matches: &Matches) {
    for (to, &from) in matches.kept[..matches.found].iter().enumerate() {
        // A candidate moves forwards or stays, so none is overwritten before it is read.
        numbers[to] = numbers[from as usize];
    }
}

/// Offers full matches with their scores.
fn score(
    terms: &[RunTerm<'_>],
    cursors: &mut [Cursor],
    level: Level,
    (documents, count): (&Room, usize),
    norms: &[f32],
    first_docid: u32,
    top: &mut TopK,
) -> Result<(), ListError> {
    let (mut of_documents, mut sums) = ([0.0; BLOCK], [0.0; BLOCK]);
    let mut tfs = [1; BLOCK];
    for (norm, &docid) in of_documents.iter_mut().zip(&documents[..count]) {
        *norm = norms[docid as usize];
    }
    for (term, cursor) in terms.iter().zip(cursors) {
        let Some(list) = term.list else { continue };
        cursor.tfs_of_positions(&list, count, &mut tfs)?;
        add_scores(level, term.weight, &tfs, &of_documents, count, &mut sums);
    }
    offer_block(level, (documents, &sums), count, first_docid, top);
    Ok(())
}
