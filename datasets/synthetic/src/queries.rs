//! Makes queries for a collection, with the shape of a real log: 10,000 queries of the TREC 2005
//! Terabyte efficiency task over 206,916 English documents (figures: `docs/inside/generate.md`).
//!
//! A query is about a document. A term comes from that document, from another one of its cluster,
//! or from any other, so that terms occur together more often than chance has it and many queries
//! find nothing. Nobody asks for stop words; of the other terms a frequent one is asked for less
//! often than the text has it, the less the fewer terms the query has, since long queries are
//! phrases of everyday words. And each term has an interest of its own, whatever its frequency.

#![forbid(unsafe_code)]

use crate::documents::Documents;
use crate::random::{Purpose, Random};
use crate::real::exp;
use crate::words::STOP_WORDS;
use crate::{Format, Model};

/// Of 1,000 queries, how many have 2, 3, ... 10 terms.
const OF_LENGTH: [u32; 9] = [408, 308, 170, 70, 29, 10, 3, 1, 1];

/// Of 100 terms, how many come from the query's document, and from it or its cluster.
const FROM_DOCUMENT: u32 = 35;
const FROM_CLUSTER: u32 = 65;

/// In a query of n terms, this over n^3 is the rank of a term that is asked for half as often, over
/// its share of the text, as one that is very rare.
const HALF_RANK: f64 = 10_000.0;

/// Draws from a document before another is taken, and from all before a term is asked for that is a
/// stop word or in the query already.
const TRIES_A_DOCUMENT: u32 = 64;
const TRIES: u32 = 4096;

/// Queries that are drawn before it is given up to find one with enough documents.
const MOST_DRAWN: u64 = 100_000;

/// Makes queries for a collection.
pub struct Queries<'m> {
    model: &'m Model,
    documents: Documents<'m>,
    /// Documents of all files up to each, itself among them.
    ends: Vec<u64>,
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
        any.then(|| Self { model, documents: Documents::new(model, format), ends })
    }

    /// The terms of query `number`, 2 to 10 in small letters, joined by blanks. Takes the time of
    /// writing a few documents.
    pub fn query(&mut self, number: u64) -> String {
        let ranks = self.draw(number);
        self.text(&ranks)
    }

    /// The same, but by chance at least this many documents have all its terms; none if few queries
    /// are like that. The first that is drawn is [`query`](Self::query).
    pub fn frequent_query(&mut self, number: u64, least: f64) -> Option<String> {
        let all = self.ends.last().copied().unwrap_or(0);
        let draws = if least > all as f64 { 0 } else { MOST_DRAWN };
        for attempt in 0..draws {
            let ranks = self.draw(number + (attempt << 40));
            if self.expected(&ranks) >= least {
                return Some(self.text(&ranks));
            }
        }
        None
    }

    /// Documents that have all of these terms, if terms are independent and documents alike.
    fn expected(&self, ranks: &[u32]) -> f64 {
        let all = self.ends.last().copied().unwrap_or(0) as f64;
        let tokens = self.model.recipe.mean_tokens;
        let has = |&rank: &u32| 1.0 - exp(-tokens * self.model.ranks.share(rank));
        ranks.iter().map(has).product::<f64>() * all
    }

    fn draw(&mut self, number: u64) -> Vec<u32> {
        let mut random = Random::new(self.model.recipe.seed, Purpose::Queries, number, 0);
        let mut left = random.below(OF_LENGTH.iter().sum());
        let terms = OF_LENGTH.iter().position(|&n| {
            let here = left < n;
            left = left.saturating_sub(n);
            here
        });
        self.ask(2 + terms.unwrap_or(0), random)
    }

    /// The same for a query of `terms` terms, which is none of those above.
    pub fn query_of(&mut self, terms: usize, number: u64) -> String {
        let seed = self.model.recipe.seed;
        let ranks = self.ask(terms, Random::new(seed, Purpose::Queries, number, terms as u64));
        self.text(&ranks)
    }

    fn ask(&mut self, terms: usize, mut random: Random) -> Vec<u32> {
        let place = self.place(&mut random);
        let own = self.documents.ranks_of(place.0, place.1);
        let half_rank = HALF_RANK / (terms * terms * terms) as f64;
        let mut chosen: Vec<u32> = Vec::new();
        let mut tries = 0;
        while chosen.len() < terms {
            let (file, number) = match random.below(100) {
                ..FROM_DOCUMENT => place,
                FROM_DOCUMENT..FROM_CLUSTER => self.neighbour(place, &mut random),
                _ => self.place(&mut random),
            };
            let other = (file, number) != place;
            let other = other.then(|| self.documents.ranks_of(file, number));
            let source = other.as_ref().unwrap_or(&own);
            for _ in 0..TRIES_A_DOCUMENT {
                let rank = source[random.below(source.len() as u32) as usize];
                tries += 1;
                let wanted =
                    !chosen.contains(&rank) && self.is_wanted(rank, half_rank, &mut random);
                if wanted || tries > TRIES {
                    chosen.push(rank);
                    break;
                }
            }
        }
        chosen
    }

    fn text(&self, ranks: &[u32]) -> String {
        let terms: Vec<String> = ranks.iter().map(|&rank| self.model.term(rank)).collect();
        terms.join(" ")
    }

    /// Whether somebody asks for a term this time.
    fn is_wanted(&self, rank: u32, half_rank: f64, random: &mut Random) -> bool {
        let mut of_term = Random::new(self.model.recipe.seed, Purpose::Log, u64::MAX, rank.into());
        let rarity = f64::from(rank) / (f64::from(rank) + half_rank);
        rank as usize >= STOP_WORDS.len() && random.fraction() < of_term.fraction() * rarity
    }

    /// A random document: its file, and its number there.
    fn place(&self, random: &mut Random) -> (u32, u64) {
        let all = self.ends.last().copied().unwrap_or(0);
        let place = (random.fraction() * all as f64) as u64;
        let file = self.ends.partition_point(|&end| end <= place);
        (file as u32, place - self.begin(file))
    }

    /// A random document of the same cluster.
    fn neighbour(&self, (file, number): (u32, u64), random: &mut Random) -> (u32, u64) {
        let cluster = self.model.recipe.cluster.get();
        let first = number - number % u64::from(cluster);
        let documents = self.ends[file as usize] - self.begin(file as usize);
        (file, (first + u64::from(random.below(cluster))).min(documents - 1))
    }

    /// The documents before a file.
    fn begin(&self, file: usize) -> u64 {
        file.checked_sub(1).map_or(0, |last| self.ends[last])
    }
}
