//! An order in which documents with many terms in common stand together: recursive graph bisection
//! (Dhulipala and others, KDD 2016). Documents are cut into two halves, and those that fit the
//! other half better change places, by what this does to the bits of a gap in all lists; then each
//! half is cut in the same way. What comes out does not depend on the number of threads.

use crate::crew::Crew;
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use std::mem;

/// Documents that are not cut any more.
const LEAST: usize = 256;

/// Halves are improved so often, at most.
const ROUNDS: usize = 8;

/// Fewer documents than one in this many that change places in a round make it the last.
const FEW: usize = 500;

/// Documents that a thread takes at once.
const CHUNK: usize = 1 << 12;

/// Bytes for each document, beside its terms.
pub(super) const DOCUMENT_BYTES: u64 = 48;

/// Bytes of each thread for each term.
pub(super) const TERM_BYTES: u64 = 32;

pub(super) struct DocumentTerms {
    /// Where those of each document begin, and where the last ones end.
    pub(super) starts: Vec<usize>,
    pub(super) terms: Vec<u32>,
}

impl DocumentTerms {
    fn of(&self, docid: u32) -> &[u32] {
        &self.terms[self.starts[docid as usize]..self.starts[docid as usize + 1]]
    }

    /// All docids, by topics, if there are so many `distinct` terms; equals in the order in which
    /// they were.
    ///
    /// # Errors
    /// `Stopped`.
    pub(super) fn order(
        &self,
        distinct: usize,
        threads: usize,
        stop: &Stop,
    ) -> Result<Vec<u32>, IndexError> {
        let mut docids: Vec<u32> = (0..self.starts.len() as u32 - 1).collect();
        let logs: Vec<f32> = (0..docids.len() + 2).map(|count| (count as f32).log2()).collect();
        let bisection = Bisection { documents: self, logs: &logs, stop };
        bisection.cut_all(&mut docids, &mut Halves::new(distinct, threads))?;
        Ok(docids)
    }
}

/// What a part is cut with.
struct Halves {
    /// Of the documents of each half.
    counts: TermCounts,
    /// What each thread adds to the counts.
    added: Vec<TermCounts>,
    /// By term: bits that are saved if one of the documents of a half changes places.
    saved: Vec<[f32; 2]>,
    /// Bits that are saved by each document of the part, and its place in its half.
    gains: Vec<(f32, u32)>,
    crew: Crew,
}

/// Of two halves, by term; sums wrap around.
#[derive(Clone)]
struct TermCounts {
    counts: Vec<[u32; 2]>,
    /// Those that are not zero, and some that are again.
    terms: Vec<u32>,
}

impl TermCounts {
    fn new(terms: usize) -> Self {
        Self { counts: vec![[0; 2]; terms], terms: Vec::new() }
    }

    fn add(&mut self, term: u32, [left, right]: [u32; 2]) {
        let count = &mut self.counts[term as usize];
        if *count == [0; 2] {
            self.terms.push(term);
        }
        *count = [count[0].wrapping_add(left), count[1].wrapping_add(right)];
    }

    /// Gives all counts away.
    fn drain(&mut self) -> impl Iterator<Item = (u32, [u32; 2])> {
        let Self { counts, terms } = self;
        terms.drain(..).map(|term| (term, mem::take(&mut counts[term as usize])))
    }
}

impl Halves {
    fn new(terms: usize, threads: usize) -> Self {
        Self {
            counts: TermCounts::new(terms),
            added: vec![TermCounts::new(terms); threads],
            saved: vec![[0.0; 2]; terms],
            gains: Vec::new(),
            crew: Crew::new("order"),
        }
    }
}

struct Bisection<'a> {
    documents: &'a DocumentTerms,
    logs: &'a [f32],
    stop: &'a Stop,
}

impl Bisection<'_> {
    fn cut_all(&self, docids: &mut [u32], halves: &mut Halves) -> Result<(), IndexError> {
        if docids.len() <= LEAST {
            docids.sort_unstable();
            return Ok(());
        }
        self.cut(docids, halves)?;
        let (left, right) = docids.split_at_mut(docids.len() / 2);
        let others = halves.added.len() / 2;
        if others == 0 {
            self.cut_all(left, halves)?;
            return self.cut_all(right, halves);
        }
        halves.added.truncate(halves.added.len() - others);
        let mut of_others = Halves::new(halves.saved.len(), others);
        let parts = [(left, halves), (right, &mut of_others)];
        let work = parts.map(|(docids, halves)| move || self.cut_all(docids, halves));
        Crew::new("order").all(work.into()).into_iter().collect()
    }

    /// Lets documents of the two halves change places.
    fn cut(&self, docids: &mut [u32], halves: &mut Halves) -> Result<(), IndexError> {
        let Halves { counts, added, saved, gains, crew } = halves;
        let others = added.len() - 1;
        let all = docids.len();
        let (left, right) = docids.split_at_mut(all / 2);
        let logs = [left.len(), right.len()].map(|documents| self.logs[documents]);
        // Of the gaps of a term.
        let bits = |[a, b]: [u32; 2]| {
            let [of_a, of_b] = [a, b].map(|count| self.logs[count as usize + 1]);
            a as f32 * (logs[0] - of_a) + b as f32 * (logs[1] - of_b)
        };
        gains.resize(all, (0.0, 0));
        let (left_gains, right_gains) = gains.split_at_mut(left.len());
        // Documents that have come to a half, and what each adds to the counts.
        let mut came: Vec<(u32, u8)> = left.iter().map(|&docid| (docid, 0)).collect();
        came.extend(right.iter().map(|&docid| (docid, 1)));
        let mut adds = [[1, 0], [0, 1]];
        for _ in 0..ROUNDS {
            self.stop.check()?;
            let of_thread = came.len().div_ceil(added.len());
            let pieces = came.chunks(of_thread).zip(&mut *added).collect();
            crew.share(others, pieces, |(came, added): (&[(u32, u8)], &mut TermCounts)| {
                for &(docid, half) in came {
                    let adds = adds[usize::from(half)];
                    self.documents.of(docid).iter().for_each(|&term| added.add(term, adds));
                }
            });
            for (term, added) in added.iter_mut().flat_map(TermCounts::drain) {
                counts.add(term, added);
            }
            for &term in &counts.terms {
                let [a, b] = counts.counts[term as usize];
                // Nobody asks what a document saves that is not there.
                let changed = [[a.saturating_sub(1), b + 1], [a + 1, b.saturating_sub(1)]];
                saved[term as usize] = changed.map(|changed| bits([a, b]) - bits(changed));
            }
            let sides = [(&*left, &mut *left_gains), (&*right, &mut *right_gains)];
            let pieces = sides.into_iter().enumerate().flat_map(|(half, (docids, gains))| {
                let docids = docids.chunks(CHUNK).zip(gains.chunks_mut(CHUNK));
                docids.enumerate().map(move |(chunk, of_chunk)| (half, chunk, of_chunk))
            });
            crew.share(others, pieces.collect(), |(half, chunk, (docids, gains))| {
                for (place, (&docid, gain)) in docids.iter().zip(gains).enumerate() {
                    let terms = self.documents.of(docid).iter();
                    let sum = terms.map(|&term| saved[term as usize][half]).sum();
                    *gain = (sum, (chunk * CHUNK + place) as u32);
                }
            });
            crew.share(others, vec![&mut *left_gains, &mut *right_gains], |gains| {
                gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)))
            });
            came.clear();
            let pairs = left_gains.iter().zip(&*right_gains);
            for (&(_, a), &(_, b)) in pairs.take_while(|(a, b)| a.0 + b.0 > 0.0) {
                let [a, b] = [&mut left[a as usize], &mut right[b as usize]];
                mem::swap(a, b);
                came.extend([(*a, 0), (*b, 1)]);
            }
            adds = [[1, u32::MAX], [u32::MAX, 1]];
            if came.len() < 2 * all / FEW {
                break;
            }
        }
        counts.drain().for_each(drop);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms_of(documents: &[Vec<u32>]) -> DocumentTerms {
        let mut starts = vec![0];
        starts.extend(documents.iter().scan(0, |end, terms| {
            *end += terms.len();
            Some(*end)
        }));
        DocumentTerms { starts, terms: documents.concat() }
    }

    #[test]
    fn documents_of_a_topic_stand_together() {
        let hash = |a: u32, b: u32| {
            let mixed = (a ^ b.rotate_left(16)).wrapping_mul(0x9e37_79b1);
            (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) >> 8
        };
        let topics = 8;
        // Each document has one in four of the 40 terms of its topic, and one in 40 of 400 others.
        let documents: Vec<Vec<u32>> = (0..4096)
            .map(|docid| {
                let of_topic = 40 * (docid % topics)..40 * (docid % topics + 1);
                let of_topic = of_topic.filter(|&term| hash(docid, term) % 4 == 0);
                let others = (320..720).filter(|&term| hash(docid, term) % 40 == 0);
                of_topic.chain(others).collect()
            })
            .collect();
        let order = terms_of(&documents).order(720, 2, &Stop::default()).unwrap();
        let together = order.windows(2).filter(|two| two[0] % topics == two[1] % topics).count();
        assert!(together > 4096 * 9 / 10, "{together}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn law_an_order_has_each_document_once_for_any_number_of_threads(
            documents in prop::collection::vec(prop::collection::vec(0..60u32, 0..12), 0..3000),
            threads in 2..9usize,
        ) {
            let mut documents = documents;
            documents.iter_mut().for_each(|terms| {
                terms.sort_unstable();
                terms.dedup();
            });
            let terms = terms_of(&documents);
            let order = terms.order(60, 1, &Stop::default()).unwrap();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..documents.len() as u32));
            prop_assert_eq!(terms.order(60, threads, &Stop::default()).unwrap(), order);
        }
    }

    #[test]
    fn who_is_stopped_makes_no_order() {
        let stop = Stop::default();
        stop.set();
        let error = terms_of(&vec![vec![0]; 1000]).order(1, 1, &stop).unwrap_err();
        assert!(matches!(error, IndexError::Stopped), "{error:?}");
    }
}
