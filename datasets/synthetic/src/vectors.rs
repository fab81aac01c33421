//! Makes learned sparse vectors, and queries for them, as models such as SPLADE give them: some
//! hundred weighted terms of a vocabulary of word pieces, and neither words nor text. Three draws
//! in four are of the document's topic, which has few terms and prefers some of them by far; they
//! count twice. The others are of all terms, by their popularity. A term that is drawn again weighs
//! more. The same recipe makes the same vectors, on any machine.

#![forbid(unsafe_code)]

use crate::collection::Collection;
use crate::documents::WriteRecords;
use crate::permutation::permutation;
use crate::random::{Purpose, Random};
use crate::real::{ln, pow};
use crate::{Format, LEAST_VOCABULARY, RecipeError};
use std::sync::OnceLock;

/// What the vectors of a collection depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorRecipe {
    /// Another seed makes other vectors.
    pub seed: u64,
    /// Vectors, fewer than 2^32.
    pub documents: u64,
    /// Distinct terms at most, from [`LEAST_VOCABULARY`].
    pub vocabulary: u32,
    /// Weights of a vector in the mean, about; from 1 to 2000.
    pub weights: f64,
    /// Weights of a query in the mean, about; from 1 to 2000.
    pub query_weights: f64,
    /// The greatest weight, to which the others are in proportion.
    pub most_weight: u32,
    /// What vectors are about; with 0 their terms are independent of each other.
    pub topics: u32,
    /// The vectors of a topic do not stand together but anywhere.
    pub shuffled: bool,
}

impl Default for VectorRecipe {
    /// Like SPLADE's vectors of passages.
    fn default() -> Self {
        Self {
            seed: 1,
            documents: 0,
            vocabulary: 30_522,
            weights: 144.0,
            query_weights: 63.0,
            most_weight: 255,
            topics: 0,
            shuffled: false,
        }
    }
}

/// Documents of a topic in the mean, where nobody says how many topics there are.
const OF_TOPIC: u64 = 400;
const LEAST_TOPICS: u64 = 50;
/// Terms of a topic at most.
const TOPIC_TERMS: u32 = 400;
/// What shares of a topic's terms are drawn by: the less, the fewer terms have most of it.
const CONCENTRATION: f64 = 0.3;
/// The mean of a single draw's weight where the greatest is 255.
const MEAN_WEIGHT: f64 = 40.0;

/// How many topics make vectors like real ones.
pub fn usual_topics(documents: u64) -> u32 {
    (documents / OF_TOPIC).max(LEAST_TOPICS).min(u32::MAX.into()) as u32
}

/// Shares up to each of some things, its own among them, in 2^32nds.
struct Shares(Vec<u32>);

impl Shares {
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let sums = weights.map(|weight| {
            sum += weight;
            sum
        });
        let sums: Vec<f64> = sums.collect();
        let all = sums.last().copied().unwrap_or(1.0);
        Self(sums.iter().map(|sum| (sum / all * f64::from(u32::MAX)) as u32).collect())
    }

    /// The thing at a place.
    fn at(&self, place: u32) -> u32 {
        let before = self.0.partition_point(|&end| end <= place);
        before.min(self.0.len() - 1) as u32
    }

    fn draw(&self, random: &mut Random) -> u32 {
        self.at((random.bits() >> 32) as u32)
    }
}

struct Topic {
    terms: Vec<u32>,
    shares: Shares,
}

/// The vectors of a recipe. Topics take some 3 KB each, and are made when they are first met.
pub struct Vectors {
    recipe: VectorRecipe,
    /// Draws that give a vector and a query their weights, in the mean.
    draws: f64,
    query_draws: f64,
    popularity: Shares,
    /// How many vectors each topic has.
    sizes: Shares,
    topics: Vec<OnceLock<Topic>>,
    /// Where each vector stands in the order of topics; in this order, if empty.
    places: Vec<u32>,
}

impl Vectors {
    /// Makes the tables.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(recipe: VectorRecipe) -> Result<Self, RecipeError> {
        for (setting, found, least, most) in [
            ("vocabulary", recipe.vocabulary.into(), LEAST_VOCABULARY.into(), 1e7),
            ("weights", recipe.weights, 1.0, 2000.0),
            ("query-weights", recipe.query_weights, 1.0, 2000.0),
            ("most-weight", recipe.most_weight.into(), 1.0, 1e6),
            ("documents", recipe.documents as f64, 0.0, f64::from(u32::MAX - 1)),
            ("topics", recipe.topics.into(), 0.0, 1e6),
        ] {
            if !(least..=most).contains(&found) {
                return Err(RecipeError { setting, found, least, most });
            }
        }
        let falling = |n: u32, from: f64, exponent: f64| {
            Shares::new((0..n).map(move |rank| pow(f64::from(rank) + from, -exponent)))
        };
        let places = match recipe.shuffled {
            true => permutation(recipe.seed, recipe.documents as u32),
            false => Vec::new(),
        };
        Ok(Self {
            recipe,
            draws: draws_for(recipe.weights, recipe.topics),
            query_draws: draws_for(recipe.query_weights, recipe.topics),
            popularity: falling(recipe.vocabulary, 30.0, 0.8),
            sizes: falling(recipe.topics, 5.0, 0.6),
            topics: (0..recipe.topics).map(|_| OnceLock::new()).collect(),
            places,
        })
    }

    fn topic(&self, number: u32) -> &Topic {
        self.topics[number as usize].get_or_init(|| {
            let mut random = Random::new(self.recipe.seed, Purpose::Clusters, number.into(), 1);
            let count = TOPIC_TERMS.min(self.recipe.vocabulary / 2) as usize;
            let mut terms = Vec::with_capacity(count);
            while terms.len() < count {
                let term = self.popularity.draw(&mut random);
                if !terms.contains(&term) {
                    terms.push(term);
                }
            }
            let shares = Shares::new((0..count).map(|_| gamma(CONCENTRATION, &mut random)));
            Topic { terms, shares }
        })
    }

    /// Puts the terms of a vector and their weights into `found`, in their order; `mean` is how
    /// many draws vectors have.
    fn draw(&self, topic: Option<&Topic>, mean: f64, random: &mut Random, found: &mut Found) {
        let draws = (mean * (1.0 + 0.24 * random.normal()).max(0.13)).round().max(1.0) as u32;
        let of_topic = topic.map_or(0, |_| draws * 3 / 4);
        found.drawn.clear();
        if let Some(topic) = topic {
            let terms = (0..2 * of_topic).map(|_| topic.terms[topic.shares.draw(random) as usize]);
            found.drawn.extend(terms);
        }
        found.drawn.extend((of_topic..draws).map(|_| self.popularity.draw(random)));
        found.drawn.sort_unstable();
        found.weights.clear();
        let most = f64::from(self.recipe.most_weight);
        let scale = MEAN_WEIGHT / 255.0 * most;
        for same in found.drawn.chunk_by(|a, b| a == b) {
            let exponential = -ln(1.0 - random.fraction());
            let weight = (exponential * scale * (same.len() as f64).sqrt()).floor() + 1.0;
            found.weights.push((same[0], weight.min(most) as u32));
        }
    }

    /// Query `number` as `term^weight`, with blanks between them.
    pub fn query(&self, number: u64) -> String {
        let mut random = Random::new(self.recipe.seed, Purpose::Queries, number, 1);
        let topic = (self.recipe.topics > 0).then(|| self.topic(self.sizes.draw(&mut random)));
        let mut found = Found::default();
        self.draw(topic, self.query_draws, &mut random, &mut found);
        let terms = found.weights.iter().map(|(term, weight)| format!("t{term}^{weight}"));
        terms.collect::<Vec<_>>().join(" ")
    }
}

/// How many draws give this many distinct terms in the mean: those of a topic come again and again.
fn draws_for(terms: f64, topics: u32) -> f64 {
    if topics == 0 {
        return terms;
    }
    let of_topic = f64::from(TOPIC_TERMS);
    let distinct = |draws: f64| {
        // A term's share has a beta distribution, by which the chance of no draw is this.
        let none = pow(1.0 + 1.5 * draws / (of_topic * CONCENTRATION), -CONCENTRATION);
        draws / 4.0 + of_topic * (1.0 - none)
    };
    let mut between = (0.0, 4.0 * terms);
    for _ in 0..50 {
        let middle = (between.0 + between.1) / 2.0;
        if distinct(middle) < terms { between.0 = middle } else { between.1 = middle }
    }
    between.1
}

/// A number of the gamma distribution with a shape below 1, by Marsaglia and Tsang's method.
fn gamma(shape: f64, random: &mut Random) -> f64 {
    let d = shape + 1.0 - 1.0 / 3.0;
    loop {
        let x = random.normal();
        let v = 1.0 + x / (9.0 * d).sqrt();
        if v > 0.0 {
            let v = v * v * v;
            let least = x * x / 2.0 + d - d * v + d * ln(v);
            if ln(1.0 - random.fraction()) < least {
                return d * v * pow(1.0 - random.fraction(), 1.0 / shape);
            }
        }
    }
}

#[derive(Default)]
struct Found {
    drawn: Vec<u32>,
    weights: Vec<(u32, u32)>,
}

impl Collection for Vectors {
    fn document_bytes(&self, _format: Format) -> f64 {
        30.0 + 11.0 * self.recipe.weights
    }

    fn writer(&self, _format: Format, files: u32) -> Box<dyn WriteRecords + '_> {
        Box::new(VectorWriter {
            vectors: self,
            files,
            written: Vec::new(),
            found: Found::default(),
        })
    }
}

struct VectorWriter<'v> {
    vectors: &'v Vectors,
    files: u32,
    written: Vec<u8>,
    found: Found,
}

impl WriteRecords for VectorWriter<'_> {
    fn written(&self) -> &[u8] {
        &self.written
    }

    fn clear(&mut self) {
        self.written.clear();
    }

    /// Vectors have their number in the whole collection as name, however many files there are.
    fn write(&mut self, file: u32, number: u64) -> u32 {
        let Self { vectors, found, written, .. } = self;
        let VectorRecipe { seed, documents, topics, .. } = vectors.recipe;
        let first = crate::collection::first_of_share(documents, self.files.into(), file.into());
        let number = first + number;
        let place = vectors.places.get(number as usize).map_or(number, |&place| place.into());
        let topic = (topics > 0).then(|| {
            let middle = (2 * place + 1) as f64 / (2 * documents) as f64;
            vectors.topic(vectors.sizes.at((middle * f64::from(u32::MAX)) as u32))
        });
        let mut random = Random::new(seed, Purpose::Documents, u64::MAX, place);
        vectors.draw(topic, vectors.draws, &mut random, found);
        let mut digits = itoa::Buffer::new();
        written.extend_from_slice(b"{\"id\":\"");
        written.extend_from_slice(digits.format(number).as_bytes());
        written.extend_from_slice(b"\",\"vector\":{");
        for (i, &(term, weight)) in found.weights.iter().enumerate() {
            written.extend_from_slice(if i == 0 { b"\"t" } else { b",\"t" });
            written.extend_from_slice(digits.format(term).as_bytes());
            written.extend_from_slice(b"\":");
            written.extend_from_slice(digits.format(weight).as_bytes());
        }
        written.extend_from_slice(b"}}\n");
        found.weights.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::{Amount, Compression, Layout, write};
    use std::collections::{BTreeMap, BTreeSet};
    use std::num::NonZeroU32;

    /// Vectors by their terms, in the order of their files.
    type Read = Vec<BTreeMap<u32, u32>>;

    fn lines(recipe: VectorRecipe, files: u32, threads: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            folder: folder.path().join("documents"),
            stream: None,
            amount: Amount::Documents(recipe.documents),
            files: NonZeroU32::new(files).unwrap(),
            format: Format::Jsonl,
            compression: Compression::None,
        };
        write(&Vectors::new(recipe).unwrap(), &layout, threads, &|_| false).unwrap();
        (0..files).map(|file| std::fs::read_to_string(layout.path(file)).unwrap()).collect()
    }

    fn read(lines: &str) -> Read {
        let vector = |(number, line): (usize, &str)| {
            let inside =
                line.strip_prefix(&format!("{{\"id\":\"{number}\",\"vector\":{{")).unwrap();
            let pairs = inside.strip_suffix("}}").unwrap().split(',').map(|pair| {
                let (term, weight) = pair.strip_prefix("\"t").unwrap().split_once("\":").unwrap();
                (term.parse().unwrap(), weight.parse().unwrap())
            });
            pairs.collect()
        };
        lines.lines().enumerate().map(vector).collect()
    }

    fn in_common(vectors: &Read) -> f64 {
        let common = |pair: &[BTreeMap<u32, u32>]| {
            pair[0].keys().filter(|term| pair[1].contains_key(term)).count()
        };
        vectors.windows(2).map(common).sum::<usize>() as f64 / (vectors.len() - 1) as f64
    }

    fn topics(recipe: VectorRecipe) -> VectorRecipe {
        VectorRecipe { topics: usual_topics(recipe.documents), ..recipe }
    }

    #[test]
    fn law_files_and_threads_do_not_matter() {
        let recipe = VectorRecipe { documents: 3001, ..VectorRecipe::default() };
        for recipe in [recipe, topics(recipe), VectorRecipe { shuffled: true, ..topics(recipe) }] {
            let one = lines(recipe, 1, 1);
            for (files, threads) in [(1, 3), (4, 2), (7, 5)] {
                assert!(one == lines(recipe, files, threads), "{recipe:?} {files} {threads}");
            }
        }
    }

    #[test]
    fn vectors_are_those_of_other_machines() {
        // Checked once; a change of it changes every collection that was ever made.
        let recipe = topics(VectorRecipe { documents: 2000, ..VectorRecipe::default() });
        let found = twox_hash::XxHash3_64::oneshot(lines(recipe, 1, 2).as_bytes());
        assert_eq!(found, 0x2898_a839_977b_d8b7, "{found:#x}");
    }

    #[test]
    fn vectors_are_like_those_of_models() {
        let recipe = topics(VectorRecipe { documents: 3000, ..VectorRecipe::default() });
        let by_topic = read(&lines(recipe, 2, 2));
        let weights: Vec<u32> =
            by_topic.iter().flat_map(|vector| vector.values().copied()).collect();
        let mean = weights.len() as f64 / 3000.0;
        assert!((mean / 144.0 - 1.0).abs() < 0.05, "{mean}");
        assert_eq!((weights.iter().min(), weights.iter().max()), (Some(&1), Some(&255)));
        let shuffled = read(&lines(VectorRecipe { shuffled: true, ..recipe }, 2, 2));
        // The same vectors, of which neighbours are no longer alike.
        let all: BTreeSet<_> = by_topic.iter().collect();
        assert!(all == shuffled.iter().collect());
        let independent = read(&lines(VectorRecipe { topics: 0, ..recipe }, 2, 2));
        let alike = [&by_topic, &shuffled, &independent].map(in_common);
        assert!(alike[0] > 50.0 && alike[1] < 10.0 && alike[2] < 10.0, "{alike:?}");
    }

    #[test]
    fn a_recipe_says_how_large_weights_and_queries_are() {
        let recipe = VectorRecipe { documents: 500, most_weight: 350, ..VectorRecipe::default() };
        let recipe = topics(VectorRecipe { weights: 30.0, query_weights: 8.0, ..recipe });
        let found = read(&lines(recipe, 1, 1));
        assert_eq!(found.iter().flat_map(|vector| vector.values()).max(), Some(&350));
        let vectors = Vectors::new(recipe).unwrap();
        let queries: Vec<String> = (0..500).map(|number| vectors.query(number)).collect();
        let terms: usize = queries.iter().map(|query| query.split(' ').count()).sum();
        assert!((3400..=4500).contains(&terms), "{terms}");
        assert!(queries.iter().flat_map(|query| query.split(' ')).all(|term| {
            let (term, weight) = term.strip_prefix('t').unwrap().split_once('^').unwrap();
            term.parse::<u32>().unwrap() < recipe.vocabulary
                && (1..=350).contains(&weight.parse::<u32>().unwrap())
        }));
        for wrong in [
            VectorRecipe { vocabulary: 3, ..recipe },
            VectorRecipe { weights: f64::NAN, ..recipe },
            VectorRecipe { most_weight: 0, ..recipe },
            VectorRecipe { documents: 1 << 32, ..recipe },
        ] {
            assert!(Vectors::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
