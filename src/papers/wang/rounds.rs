//! AND, best documents first: the paper's algorithm (section 3, algorithm 1) on the CPU. Rounds of
//! 256 documents of the shortest list are each looked for in the other lists by hash
//! segmentation (Ao and others 2011), until no remaining document can be among the best k. One
//! thread does what a block of threads does in the paper.
//!
//! Documents are in global order (`score::wang`), so that the k-th score so far, compared with the
//! global score of the next document, says when to stop. In an index without this order for the
//! query's parameters no round is left out, and the answer is the same.
//!
//! Hash segmentation: h(x) = x >> s cuts the docids into buckets of equal width, about as many as
//! the list has blocks, and a table has the first block of each bucket.
//!
//! Different from the paper: buckets lead to blocks, since lists are packed, and not to postings.
//! Where lists are cut to prefixes, the printed stop test is unsafe: a round drops documents beyond
//! a prefix, and then compares with a later one. Here the first unfinished document counts: the
//! first of the next round, or the first beyond a prefix if that comes before.

use super::segments::Segments;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use crate::query::algorithms::handed::{RunSearcher, SearchAlgorithm};
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::kernels::{FoundDocids, SoughtDocids};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;
use crate::query::wanted::Algorithm;
use crate::score::wang::is_over;

/// Documents of a round, the threads of a block in the paper; more if a block of postings has more.
pub(super) const ROUND: usize = 256;

/// [`Cursor::find`] by the table.
fn find(
    segments: &Segments,
    cursor: &mut Cursor,
    list: &ListView<'_>,
    documents: u32,
    sought: SoughtDocids<'_>,
    into: FoundDocids<'_>,
) -> Result<usize, ListError> {
    let FoundDocids { docids, kept } = into;
    let mut found = 0;
    for (number, &docid) in (0..).zip(&sought.docids[..sought.count]) {
        let block = segments.block_of(list, docid);
        if block != cursor.block {
            cursor.load(list, block, documents)?;
        }
        if let Ok(at) = cursor.docids[..cursor.len].binary_search(&docid) {
            docids[found] = docid;
            kept[found] = number;
            cursor.positions[found] = (block * list.block_len() + at) as u32;
            found += 1;
        }
    }
    Ok(found)
}

/// The algorithm, for queries of AND.
pub(in crate::papers) struct Rounds;

pub const WANG: Algorithm = Algorithm::Handed(&Rounds);

impl SearchAlgorithm for Rounds {
    fn name(&self) -> &'static str {
        "wang"
    }

    fn finds_all(&self) -> bool {
        true
    }

    fn is_for_global_order(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn RunSearcher> {
        Box::new(WangSearcher::default())
    }
}

#[derive(Default)]
pub(super) struct WangSearcher {
    segments: Vec<Segments>,
}

impl RunSearcher for WangSearcher {
    fn search(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        self.rounds(run, WangCut::none(run.documents), top, scratch, &mut |_, _| ()).map(drop)
    }

    /// By galloping, since the table of a list takes longer than the few rounds that are left.
    fn search_rest(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let gallop = WangCut { by_table: false, ..WangCut::none(run.documents) };
        self.rounds(run, gallop, top, scratch, &mut |_, _| ()).map(drop)
    }
}

impl WangSearcher {
    /// A search that records how far each list was visited: the last docid in the list and in all
    /// shorter ones among those looked at before the search stopped (section 3.3.1). For the
    /// shortest list that is the last one looked at.
    pub(super) fn visits(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
        visited: &mut Vec<Option<u32>>,
    ) -> Result<(), ListError> {
        visited.clear();
        visited.resize(run.terms.len(), None);
        let note = &mut |term: usize, docid: u32| visited[term] = Some(docid);
        self.rounds(run, WangCut::none(run.documents), top, scratch, note).map(drop)
    }

    /// A search with only the first blocks of each list, as many as `prefixes` has. Returns the
    /// docid, relative to the run, from which the search must go on in the whole lists; `None` if
    /// the answer is complete.
    pub(super) fn search_prefixes(
        &mut self,
        run: &RunSearch<'_>,
        prefixes: &[usize],
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<Option<u32>, ListError> {
        self.prefixed(run, prefixes, top, scratch, Test::Safe)
    }

    /// Goes on where [`search_prefixes`](Self::search_prefixes) has ended, with the best so far in
    /// `top`.
    pub(super) fn go_on(
        &mut self,
        run: &RunSearch<'_>,
        from: u32,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        run.rest(from, top, |rest, top| self.search_rest(rest, top, scratch))
    }

    pub(super) fn prefixed(
        &mut self,
        run: &RunSearch<'_>,
        prefixes: &[usize],
        top: &mut TopK,
        scratch: &mut Scratch,
        test: Test,
    ) -> Result<Option<u32>, ListError> {
        let mut cut = WangCut { test, ..WangCut::none(run.documents) };
        let mut terms = run.terms.to_vec();
        for (term, &blocks) in terms.iter_mut().zip(prefixes) {
            let Some(list) = term.list.filter(|list| blocks < list.blocks()) else { continue };
            term.list = list.part(0..blocks, list.wanted());
            let end =
                blocks.checked_sub(1).map_or(0, |last| list.last_docid(last).saturating_add(1));
            cut.end = end.min(cut.end);
            if term.list.is_none() {
                return Ok(Some(0));
            }
        }
        let cut_run = RunSearch { terms: &terms, ..*run };
        let is_complete = self.rounds(&cut_run, cut, top, scratch, &mut |_, _| ())?;
        Ok((!is_complete && cut.end < run.documents).then_some(cut.end))
    }

    /// Goes round by round until nothing that is left can be among the best. Returns whether
    /// nothing can, beyond the end of lists that were cut neither. `note` is told of the last
    /// document in the list of a term and in all shorter ones, round by round.
    fn rounds(
        &mut self,
        run: &RunSearch<'_>,
        cut: WangCut,
        top: &mut TopK,
        scratch: &mut Scratch,
        note: &mut impl FnMut(usize, u32),
    ) -> Result<bool, ListError> {
        let RunSearch { terms, documents, level, .. } = *run;
        let segments = &mut self.segments;
        if terms.iter().any(|term| term.list.is_none()) {
            return Ok(true);
        }
        scratch.reset_cursors(terms.len());
        let Scratch { cursors, order, candidates, .. } = scratch;
        run.sort(order);
        let Some((&first, others)) = order.split_first() else { return Ok(true) };
        let Some(shortest) = terms[first].list else { return Ok(true) };
        if segments.len() < terms.len() {
            segments.resize_with(terms.len(), Segments::default);
        }
        for &term in others.iter().filter(|_| cut.by_table) {
            if let Some(list) = &terms[term].list {
                segments[term].fill(list, documents);
            }
        }
        let at_once = (ROUND / shortest.block_len()).max(1);
        let mut columns = SegmentColumns::default();
        for block in (0..shortest.blocks()).step_by(at_once) {
            let end = shortest.blocks().min(block + at_once);
            let count = run.take(&mut cursors[first], &shortest, block..end, candidates)?;
            if count == 0 {
                break;
            }
            note(first, candidates.docids[0][count - 1]);
            if others.is_empty() {
                (0..).zip(&mut candidates.kept).for_each(|(number, kept)| *kept = number);
                cursors[first].number_positions(block, &candidates.kept[..count]);
            }
            let find_in =
                |cursor: &mut Cursor,
                 term: usize,
                 list: &ListView<'_>,
                 sought: SoughtDocids<'_>,
                 FoundDocids { docids, kept }: FoundDocids<'_>| {
                    let into = FoundDocids { docids: &mut *docids, kept };
                    if !cut.by_table {
                        return cursor.find(list, documents, sought, into, level);
                    }
                    let found = find(&segments[term], cursor, list, documents, sought, into)?;
                    if let Some(last) = found.checked_sub(1) {
                        note(term, docids[last]);
                    }
                    Ok((found, true))
                };
            let (count, more) = run.thin_out(cursors, order, block, count, candidates, find_in)?;
            if count > 0 {
                run.offer(cursors, count, candidates, top)?;
            }
            if !more {
                break;
            }
            let next = next_docid(&shortest, end, documents, &mut columns)?;
            let unfinished = match cut.test {
                Test::Safe => next.min(cut.end),
                #[cfg(test)]
                Test::Printed => next,
            };
            if let Some(&global) = run.norms.globals.get(unfinished as usize)
                && is_over(top.least(), global, terms.len())
            {
                return Ok(true);
            }
            if next >= cut.end {
                return Ok(cut.end >= documents);
            }
        }
        // The shortest list has ended before any other was cut, or was cut itself.
        Ok(cut.end >= documents)
    }
}

/// The document that the k-th score is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Test {
    /// The first that is not finished.
    Safe,
    /// The first of the next round, as printed.
    #[cfg(test)]
    Printed,
}

#[derive(Clone, Copy)]
struct WangCut {
    /// The first docid that some list may lack because it was cut.
    end: u32,
    test: Test,
    /// Documents are found by hash segmentation, or else by galloping.
    by_table: bool,
}

impl WangCut {
    fn none(documents: u32) -> Self {
        Self { end: documents, test: Test::Safe, by_table: true }
    }
}

/// The first docid of a block, a lower bound in the tail, and `documents` behind the last block.
fn next_docid(
    list: &ListView<'_>,
    block: usize,
    documents: u32,
    columns: &mut SegmentColumns,
) -> Result<u32, ListError> {
    if block >= list.blocks() {
        return Ok(documents);
    }
    match block.checked_sub(1) {
        _ if block < list.full_blocks() => list.first_docid(block, columns),
        Some(before) => Ok(list.last_docid(before).saturating_add(1)),
        None => Ok(0),
    }
}

const _: () = assert!(ROUND <= MAX_BLOCK, "a round fits the room for candidates");
