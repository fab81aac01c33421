//! WAND: OR, document at a time, that skips documents which cannot get in (Broder, Carmel,
//! Herscovici, Soffer and Zien: Efficient query evaluation using a two-level retrieval process,
//! 2003).
//!
//! The lists are sorted by the documents that they stand at. The first of them whose bounds
//! together exceed the threshold end at the *pivot*, the least document that may get in. Lists
//! before it go on to the pivot; when all stand at it, it is scored.
//!
//! Block-max WAND (Ding and Suel: Faster top-k document retrieval using block-max indexes, 2011,
//! algorithm 1), as `huang` uses it: before the pivot is scored, the bounds of the blocks that hold
//! it are added up, without decoding. If these do not reach the threshold, nothing gets in before
//! the first of these blocks ends or the next list begins, and lists go on to there.
//!
//! Different from the papers: bounds hold for any parameters, and sums of them are compared with
//! slack for rounding; a list that goes on to a document outside of its decoded block only notes
//! that it stands there *at least*, and is decoded when that document is looked at; while lists go
//! on to the pivot, each score replaces its bound, and the rest stays as soon as the sum does not
//! reach the threshold; a document is scored in the order of the query, so that its score equals
//! that of every other algorithm to the bit.

use crate::index::list::ListError;
use crate::query::algorithms::daat::{bar, list_most};
use crate::query::algorithms::handed::{RunSearcher, SearchAlgorithm};
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// WAND, by bounds of lists alone, or by bounds of their blocks too.
pub(in crate::papers) struct Wand {
    pub(in crate::papers) by_blocks: bool,
}

impl SearchAlgorithm for Wand {
    fn name(&self) -> &'static str {
        if self.by_blocks { "bmw" } else { "wand" }
    }

    fn finds_all(&self) -> bool {
        false
    }

    fn begin(&self) -> Box<dyn RunSearcher> {
        match self.by_blocks {
            true => Box::<WandSearcher<true>>::default(),
            false => Box::<WandSearcher<false>>::default(),
        }
    }
}

/// The place of a list.
#[derive(Clone, Copy, Debug, Default)]
struct Stand {
    /// The list has no wanted posting before this document.
    docid: u32,
    /// Whether its cursor stands at that document.
    is_there: bool,
    term: usize,
    /// The most that it adds to a score.
    most: f32,
    /// The most that it adds in the last block that was looked at, or in the whole list.
    block_most: f32,
    block: usize,
    block_last: u32,
}

#[derive(Default)]
struct WandSearcher<const BLOCK_MAX: bool> {
    stands: Vec<Stand>,
    /// A document's score in each list.
    worths: Vec<f32>,
}

impl<const BLOCK_MAX: bool> RunSearcher for WandSearcher<BLOCK_MAX> {
    /// Damage in a part that is skipped is not seen.
    fn search(
        &mut self,
        run: &RunSearch<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        go_through(self, run, top, scratch)
    }
}

fn go_through<const BLOCK_MAX: bool>(
    WandSearcher { stands, worths }: &mut WandSearcher<BLOCK_MAX>,
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    scratch.reset_cursors(run.terms.len());
    let cursors = &mut scratch.cursors[..run.terms.len()];
    worths.clear();
    worths.resize(run.terms.len(), 0.0);
    stands.clear();
    for (term, RunTerm { weight, list }) in run.terms.iter().enumerate() {
        let Some(list) = list else { continue };
        let most = list_most(list, *weight, &run.norms);
        let mut stand = Stand { term, most, block_most: most, ..Stand::default() };
        stand.go_to(run, cursors, list.wanted().start)?;
        if BLOCK_MAX {
            stand.set_block(run, 0);
        }
        stands.push(stand);
    }
    let mut bar = bar(top, run.terms.len());
    loop {
        sort(stands, run.documents);
        let Some(pivot) = find_pivot(stands, bar) else { return Ok(()) };
        let docid = stands[pivot].docid;
        let behind = pivot + stands[pivot..].iter().take_while(|s| s.docid == docid).count();
        let (here, others) = stands.split_at_mut(behind);
        let mut sum: f64 = 0.0;
        if BLOCK_MAX {
            let mut end = others.first().map_or(run.documents, |stand| stand.docid);
            for stand in here.iter_mut() {
                if stand.block_last < docid {
                    stand.set_block(run, docid);
                }
                sum += f64::from(stand.block_most);
                end = end.min(stand.block_last.saturating_add(1));
            }
            if sum <= bar {
                // No document before `end` gets in.
                here.iter_mut().for_each(|stand| stand.skip_to(run, cursors, end));
                continue;
            }
        } else {
            sum = here.iter().map(|stand| f64::from(stand.most)).sum();
        }
        if take(run, here, docid, cursors, worths, sum, bar)? {
            let sum = worths.iter().fold(0.0, |sum, worth| sum + worth);
            top.offer(run.first_docid + docid, sum);
            top.tighten();
            bar = self::bar(top, run.terms.len());
        }
        for stand in here {
            worths[stand.term] = 0.0;
            if BLOCK_MAX {
                stand.skip_to(run, cursors, docid + 1);
            } else if stand.docid <= docid {
                stand.go_to(run, cursors, docid + 1)?;
            }
        }
    }
}

/// Finds the scores of a document in the lists that may have it; `false` if none has it, or as soon
/// as it cannot get in. `sum` is that of their bounds.
fn take(
    run: &RunSearch<'_>,
    stands: &mut [Stand],
    docid: u32,
    cursors: &mut [Cursor],
    worths: &mut [f32],
    mut sum: f64,
    bar: f64,
) -> Result<bool, ListError> {
    let mut has_it = false;
    // Subtraction of bounds leaves an error of some parts in 2^53 of the whole.
    let bar = bar - sum * 2f64.powi(-44);
    // First the lists that stand there, which cost little; then those that must be decoded, of
    // which the last in the order reach the farthest.
    for is_there in [true, false] {
        for stand in stands.iter_mut().rev() {
            if (stand.is_there && stand.docid == docid) != is_there {
                continue;
            }
            if !is_there {
                stand.go_to(run, cursors, docid)?;
            }
            sum -= f64::from(stand.block_most);
            if stand.docid == docid {
                let worth = run.score(&mut cursors[stand.term], stand.term, docid)?;
                worths[stand.term] = worth;
                has_it = true;
                sum += f64::from(worth);
            }
            if sum <= bar {
                return Ok(false);
            }
        }
        if is_there && stands.iter().all(|stand| stand.is_there && stand.docid == docid) {
            break;
        }
    }
    Ok(has_it)
}

impl Stand {
    /// Moves the cursor to the first posting from `docid` on.
    fn go_to(
        &mut self,
        run: &RunSearch<'_>,
        cursors: &mut [Cursor],
        docid: u32,
    ) -> Result<(), ListError> {
        run.seek(cursors, self.term, docid)?;
        self.docid = cursors[self.term].next_docid().unwrap_or(run.documents);
        self.is_there = true;
        Ok(())
    }

    /// Goes on to `docid` if the list stands before it; to the posting if that is decoded.
    #[inline]
    fn skip_to(&mut self, run: &RunSearch<'_>, cursors: &mut [Cursor], docid: u32) {
        if self.docid >= docid {
            return;
        }
        let cursor = &mut cursors[self.term];
        self.docid = docid;
        self.is_there = false;
        if cursor.reaches(docid) {
            cursor.seek_in_block(docid, run.level);
            self.docid = cursor.docids[cursor.at];
            self.is_there = true;
        }
    }

    /// Looks at the bound of the block that holds the first posting from `docid` on.
    fn set_block(&mut self, run: &RunSearch<'_>, docid: u32) {
        let RunTerm { weight, list: Some(list) } = &run.terms[self.term] else { return };
        self.block = list.block_of(self.block.min(list.last_docids().len()), docid);
        self.block_most = match list.bounds().get(self.block) {
            Some(bound) => run.norms.bounds.most(*weight, bound).min(self.most),
            // A list that is a tail alone, or the end of one that has none.
            None if list.tail_len() > 0 => self.most,
            None => 0.0,
        };
        let last = list.last_docids().get(self.block);
        self.block_last = last.map_or(u32::MAX, |last| u32::from_le_bytes(*last));
    }
}

/// Sorts the lists by their documents and drops those that have ended. Most are in order already.
fn sort(stands: &mut Vec<Stand>, documents: u32) {
    for end in 1..stands.len() {
        let mut at = end;
        while at > 0 && stands[at].docid < stands[at - 1].docid {
            stands.swap(at, at - 1);
            at -= 1;
        }
    }
    while stands.last().is_some_and(|stand| stand.docid >= documents) {
        stands.pop();
    }
}

/// The first list with which the sum of bounds exceeds the bar.
fn find_pivot(stands: &[Stand], bar: f64) -> Option<usize> {
    let mut sum = 0.0;
    stands.iter().position(|stand| {
        sum += f64::from(stand.most);
        sum > bar
    })
}
