//! An order in which documents with many terms in common stand together: recursive graph bisection
//! (Dhulipala and others, KDD 2016). Documents are cut into two halves, and those that fit the other
//! half better change places, by what this does to the bits of a gap in all lists; then each half is
//! cut in the same way. What comes out does not depend on the number of threads.

use crate::crew::{Crew, lock};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use std::sync::Mutex;

/// Documents that are not cut any more.
const LEAST: usize = 256;

/// Halves are improved so often, at most.
const ROUNDS: usize = 8;

/// Fewer documents than one in so many that change places in a round make it the last.
const FEW: usize = 500;

/// Documents that a thread takes at once.
const CHUNK: usize = 1 << 12;

/// Bytes for each document, beside its terms.
pub(super) const DOCUMENT_BYTES: u64 = 32;

/// Bytes of each thread for each term.
pub(super) const TERM_BYTES: u64 = 20;

/// The terms of all documents, by number.
pub(super) struct DocumentTerms {
    /// Where those of each document end.
    pub(super) ends: Vec<usize>,
    pub(super) terms: Vec<u32>,
    /// How many terms there are.
    pub(super) distinct: usize,
}

impl DocumentTerms {
    fn of(&self, docid: u32) -> &[u32] {
        let begin = if docid == 0 { 0 } else { self.ends[docid as usize - 1] };
        &self.terms[begin..self.ends[docid as usize]]
    }

    /// All docids, by topics; equals in the order in which they were.
    ///
    /// # Errors
    /// `Stopped`.
    pub(super) fn order(&self, threads: usize, stop: &Stop) -> Result<Vec<u32>, IndexError> {
        let mut docids: Vec<u32> = (0..self.ends.len() as u32).collect();
        let logs: Vec<f32> = (0..docids.len() + 2).map(|count| (count as f32).log2()).collect();
        let bisection = Bisection { documents: self, logs: &logs, stop };
        // All threads cut one part after the other, until there are some for each.
        let mut parts = vec![&mut docids[..]];
        let mut halves = Halves::new(self.distinct, threads);
        let levels = if threads == 1 { 0 } else { threads.ilog2() + 3 };
        for _ in 0..levels {
            let mut smaller = Vec::with_capacity(2 * parts.len());
            for part in parts {
                match bisection.cut(part, &mut halves)? {
                    (part, []) => smaller.push(part),
                    (left, right) => smaller.extend([left, right]),
                }
            }
            parts = smaller;
        }
        let Halves { mut crew, .. } = halves;
        let parts: Vec<Mutex<&mut [u32]>> = parts.into_iter().map(Mutex::new).collect();
        crew.in_order(threads, parts.len(), |halves: &mut Option<Halves>, part| {
            let halves = halves.get_or_insert_with(|| Halves::new(self.distinct, 1));
            bisection.cut_all(&mut lock(&parts[part]), halves)
        })?;
        Ok(docids)
    }
}

/// What a part is cut with.
struct Halves {
    /// By term: documents of each half that have it.
    counts: Vec<[u32; 2]>,
    /// By term: bits that are saved if one of the documents of a half changes places.
    saved: Vec<[f32; 2]>,
    /// Terms that any of the documents has.
    touched: Vec<u32>,
    /// Bits that are saved by each document of the part, and its place in its half.
    gains: Vec<(f32, u32)>,
    crew: Crew,
    threads: usize,
}

impl Halves {
    fn new(terms: usize, threads: usize) -> Self {
        Self {
            counts: vec![[0; 2]; terms],
            saved: vec![[0.0; 2]; terms],
            touched: Vec::new(),
            gains: Vec::new(),
            crew: Crew::new("order"),
            threads,
        }
    }
}

struct Bisection<'a> {
    documents: &'a DocumentTerms,
    /// Binary logarithms.
    logs: &'a [f32],
    stop: &'a Stop,
}

impl Bisection<'_> {
    fn cut_all(&self, docids: &mut [u32], halves: &mut Halves) -> Result<(), IndexError> {
        match self.cut(docids, halves)? {
            (_, []) => Ok(()),
            (left, right) => {
                self.cut_all(left, halves)?;
                self.cut_all(right, halves)
            }
        }
    }

    /// The halves of a part, of which the second is empty if the part is too small.
    fn cut<'d>(
        &self,
        docids: &'d mut [u32],
        halves: &mut Halves,
    ) -> Result<(&'d mut [u32], &'d mut [u32]), IndexError> {
        if docids.len() <= LEAST {
            docids.sort_unstable();
            return Ok((docids, &mut []));
        }
        let Halves { counts, saved, touched, gains, crew, threads } = halves;
        let (left, right) = docids.split_at_mut(docids.len() / 2);
        for (half, docids) in [&*left, &*right].into_iter().enumerate() {
            for &term in docids.iter().flat_map(|&docid| self.documents.of(docid)) {
                let count = &mut counts[term as usize];
                if *count == [0; 2] {
                    touched.push(term);
                }
                count[half] += 1;
            }
        }
        let logs = [left.len(), right.len()].map(|documents| self.logs[documents]);
        // Of the gaps of a term.
        let bits = |[a, b]: [u32; 2]| {
            let [of_a, of_b] = [a, b].map(|count| self.logs[count as usize + 1]);
            a as f32 * (logs[0] - of_a) + b as f32 * (logs[1] - of_b)
        };
        gains.resize(left.len() + right.len(), (0.0, 0));
        let (left_gains, right_gains) = gains.split_at_mut(left.len());
        for _ in 0..ROUNDS {
            self.stop.check()?;
            for &term in &*touched {
                let [a, b] = counts[term as usize];
                // Nobody asks what a document saves that is not there.
                let changed = [[a.saturating_sub(1), b + 1], [a + 1, b.saturating_sub(1)]];
                saved[term as usize] = changed.map(|changed| bits([a, b]) - bits(changed));
            }
            let sides = [(&*left, &mut *left_gains), (&*right, &mut *right_gains)];
            let pieces = sides.into_iter().enumerate().flat_map(|(half, (docids, gains))| {
                let docids = docids.chunks(CHUNK).zip(gains.chunks_mut(CHUNK));
                docids.enumerate().map(move |(chunk, of_chunk)| (half, chunk, of_chunk))
            });
            crew.share(*threads - 1, pieces.collect(), |(half, chunk, (docids, gains))| {
                for (place, (&docid, gain)) in docids.iter().zip(gains).enumerate() {
                    let terms = self.documents.of(docid).iter();
                    let sum = terms.map(|&term| saved[term as usize][half]).sum();
                    *gain = (sum, (chunk * CHUNK + place) as u32);
                }
            });
            crew.share(*threads - 1, vec![&mut *left_gains, &mut *right_gains], |gains| {
                gains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)))
            });
            let pairs = left_gains.iter().zip(&*right_gains);
            let mut changes = 0;
            for (&(_, a), &(_, b)) in pairs.take_while(|(a, b)| a.0 + b.0 > 0.0) {
                let [a, b] = [&mut left[a as usize], &mut right[b as usize]];
                for (&docid, from) in [(&*a, 0), (&*b, 1)] {
                    for &term in self.documents.of(docid) {
                        counts[term as usize][from] -= 1;
                        counts[term as usize][1 - from] += 1;
                    }
                }
                std::mem::swap(a, b);
                changes += 1;
            }
            if changes < (left.len() + right.len()) / FEW {
                break;
            }
        }
        touched.drain(..).for_each(|term| counts[term as usize] = [0; 2]);
        Ok((left, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms_of(documents: &[Vec<u32>], distinct: usize) -> DocumentTerms {
        let ends = documents.iter().scan(0, |end, terms| {
            *end += terms.len();
            Some(*end)
        });
        DocumentTerms { ends: ends.collect(), terms: documents.concat(), distinct }
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
        let order = terms_of(&documents, 720).order(2, &Stop::default()).unwrap();
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
            let terms = terms_of(&documents, 60);
            let order = terms.order(1, &Stop::default()).unwrap();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..documents.len() as u32));
            prop_assert_eq!(terms.order(threads, &Stop::default()).unwrap(), order);
        }
    }

    #[test]
    fn who_is_stopped_makes_no_order() {
        let stop = Stop::default();
        stop.set();
        let error = terms_of(&vec![vec![0]; 1000], 1).order(1, &stop).unwrap_err();
        assert!(matches!(error, IndexError::Stopped), "{error:?}");
    }
}
