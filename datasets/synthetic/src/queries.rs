//! Makes queries for a collection. Each takes most of its terms from one document and the others
//! from another, so that every term occurs, many queries have documents with all terms, and many do
//! not. Terms come as often as in the text, but for stop words, of which nine in ten are passed
//! over: a mix of frequent, middle and rare ones.

#![forbid(unsafe_code)]

use crate::documents::Documents;
use crate::random::{Purpose, Random};
use crate::real::pow;
use crate::words::STOP_WORDS;
use crate::{Format, Model};

/// Of 64 queries, how many have 2, 3, ... 10 terms.
const OF_LENGTH: [u32; 9] = [16, 16, 12, 8, 5, 3, 2, 1, 1];

/// Draws from the documents before a term is asked again that the query has.
const TRIES: u32 = 256;

/// Makes queries for a collection.
pub struct Queries<'m> {
    model: &'m Model,
    documents: Documents<'m>,
    /// Documents of all files up to each, itself among them.
    ends: Vec<u64>,
    interest: f64,
}

impl<'m> Queries<'m> {
    /// Takes the collection's format and how many documents each file has. None can be made for a
    /// collection without documents.
    pub fn new(model: &'m Model, format: Format, documents_of_files: &[u64]) -> Option<Self> {
        let ends: Vec<u64> = documents_of_files
            .iter()
            .scan(0, |sum, documents| {
                *sum += documents;
                Some(*sum)
            })
            .collect();
        let any = ends.last().is_some_and(|&all| all > 0);
        any.then(|| Self { model, documents: Documents::new(model, format), ends, interest: 0.0 })
    }

    /// Lets terms be asked for in proportion to x^`interest`, where x, from 0 to 1, is a random
    /// number of each term: 0, the default, asks for terms as the text has them.
    pub fn set_interest(&mut self, interest: f64) {
        self.interest = interest;
    }

    /// The terms of query `number`, 2 to 10 in small letters, joined by blanks. Takes the time of
    /// writing a few documents.
    pub fn query(&mut self, number: u64) -> String {
        let mut random = Random::new(self.model.recipe.seed, Purpose::Queries, number, 0);
        let mut left = random.below(64);
        let terms = OF_LENGTH.iter().position(|&n| {
            let here = left < n;
            left = left.saturating_sub(n);
            here
        });
        let terms = 2 + terms.unwrap_or(0);
        let sources = [self.document(&mut random), self.document(&mut random)];
        let mut chosen: Vec<u32> = Vec::new();
        let mut tries = 0;
        while chosen.len() < terms {
            let source = &sources[usize::from(random.below(8) == 0)];
            let rank = source[random.below(source.len() as u32) as usize];
            let passed_over = (rank as usize) < STOP_WORDS.len() && random.below(10) > 0
                || self.interest > 0.0 && self.bores(rank, &mut random);
            tries += 1;
            // A short document may not have enough.
            if tries > TRIES || !(passed_over || chosen.contains(&rank)) {
                chosen.push(rank);
            }
        }
        let terms: Vec<String> = chosen.iter().map(|&rank| self.model.term(rank)).collect();
        terms.join(" ")
    }

    /// Whether nobody asks for a term this time.
    fn bores(&self, rank: u32, random: &mut Random) -> bool {
        let mut of_term = Random::new(self.model.recipe.seed, Purpose::Log, u64::MAX, rank.into());
        random.fraction() > pow(of_term.fraction(), self.interest)
    }

    /// The ranks of a random document, of one token at least.
    fn document(&mut self, random: &mut Random) -> Vec<u32> {
        let all = self.ends.last().copied().unwrap_or(0);
        let place = (random.fraction() * all as f64) as u64;
        let file = self.ends.partition_point(|&end| end <= place);
        let before = file.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.documents.ranks_of(file as u32, place - before)
    }
}
