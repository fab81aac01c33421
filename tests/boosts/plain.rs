//! A plain evaluation of queries of fields, document by document, in f64.

use crate::support::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Score {
    Bm25,
    Bm25F,
}

pub(super) struct Scored {
    pub(super) score: Score,
    /// Of words that name no field; `None` is all text.
    pub(super) fields: Vec<(Option<usize>, f64)>,
    pub(super) k1: f64,
    /// By field; that of all text is the last.
    pub(super) b: [f64; 4],
}

/// A word, or a phrase of several.
pub(super) struct Ask {
    pub(super) field: Option<usize>,
    pub(super) words: Vec<String>,
    pub(super) boost: f64,
}

pub(super) enum Asked {
    Words(Vec<String>),
    Tree { all: Vec<Ask>, any: Vec<Ask>, none: Vec<Ask> },
}

impl Asked {
    pub(super) fn json(&self, fields: &[&str]) -> Value {
        let one = |ask: &Ask| {
            let kind = if ask.words.len() > 1 { "phrase" } else { "text" };
            let mut one = json!({kind: ask.words.join(" "), "boost": ask.boost});
            if let Some(field) = ask.field {
                one["field"] = json!(fields[field]);
            }
            one
        };
        let list = |asks: &[Ask]| asks.iter().map(one).collect::<Value>();
        match self {
            Self::Words(words) => json!(words.join(" ")),
            Self::Tree { all, any, none } => {
                json!({"all": list(all), "any": list(any), "none": list(none)})
            }
        }
    }
}

type Fields = [Vec<String>; 3];

#[derive(Clone, Default)]
pub(super) struct Documents(Vec<(String, Fields)>);

impl Documents {
    pub(super) fn new(seed: u64, count: usize) -> Self {
        let mut random = Random::new(seed);
        let this = Self::default();
        let document = |number: usize| {
            let text = |random: &mut Random, most: usize| -> Vec<String> {
                (0..random.below(most)).map(|_| this.word(random)).collect()
            };
            let most = [12, 40][number % 2];
            let fields = [5, most, 8].map(|most| text(&mut random, most));
            (format!("d{seed}-{number}"), fields)
        };
        Self((0..count).map(document).collect())
    }

    pub(super) fn word(&self, random: &mut Random) -> String {
        match random.below(6) {
            0 => format!("r{}", random.below(150)),
            1..4 => format!("w{}", random.below(6)),
            _ => format!("v{}", random.below(30)),
        }
    }

    pub(super) fn jsonl(&self) -> String {
        let mut lines = String::new();
        for (name, fields) in &self.0 {
            let [title, text, notes] = fields.each_ref().map(|words| words.join(" "));
            let line = json!({"id": name, "title": title, "text": text, "notes": notes});
            writeln!(lines, "{line}").unwrap();
        }
        lines
    }

    /// Those whose numbers are not gone, and the names of the others.
    pub(super) fn without(&self, gone: impl Fn(usize) -> bool) -> (Self, Vec<String>) {
        let (left, out): (Vec<_>, Vec<_>) =
            self.0.iter().cloned().enumerate().partition(|(number, _)| !gone(*number));
        let left = left.into_iter().map(|(_, document)| document).collect();
        (Self(left), out.into_iter().map(|(_, document)| document.0).collect())
    }

    pub(super) fn replace(&mut self, new: Self) {
        self.0.retain(|(name, _)| new.0.iter().all(|(other, _)| other != name));
        self.0.extend(new.0);
    }

    /// How often a field, or all text, has words one behind the other.
    fn tf(fields: &Fields, field: Option<usize>, words: &[String]) -> f64 {
        let all = match field {
            Some(field) => &fields[field..=field],
            None => &fields[..],
        };
        let has = |text: &Vec<String>| text.windows(words.len()).filter(|at| *at == words).count();
        all.iter().map(has).sum::<usize>() as f64
    }

    fn length(fields: &Fields, field: Option<usize>) -> f64 {
        match field {
            Some(field) => fields[field].len() as f64,
            None => fields.iter().map(Vec::len).sum::<usize>() as f64,
        }
    }

    /// The documents that match, with their scores.
    pub(super) fn evaluate(
        &self,
        scored: &Scored,
        asked: &Asked,
        needs_all: bool,
    ) -> BTreeMap<String, f64> {
        let of_words = |words: &[String]| -> Vec<Ask> {
            let ask = |word: &String| Ask { field: None, words: vec![word.clone()], boost: 1.0 };
            words.iter().map(ask).collect()
        };
        let words;
        let nothing = Vec::new();
        let (all, any, none) = match asked {
            Asked::Words(text) => {
                words = of_words(text);
                if needs_all { (&words, &nothing, &nothing) } else { (&nothing, &words, &nothing) }
            }
            Asked::Tree { all, any, none } => (all, any, none),
        };
        let mut sums: Vec<Option<f64>> = vec![Some(0.0); self.0.len()];
        let mut matched = vec![false; self.0.len()];
        for (asks, is_all, is_none) in
            [(all, true, false), (any, false, false), (none, false, true)]
        {
            for ask in asks {
                let scores = self.scores(scored, ask);
                for ((sum, score), matched) in sums.iter_mut().zip(scores).zip(&mut matched) {
                    *sum = match (*sum, score) {
                        (Some(_), Some(_)) if is_none => None,
                        (Some(_), None) if is_all => None,
                        (Some(sum), Some(score)) => {
                            *matched = true;
                            Some(sum + score)
                        }
                        (sum, _) => sum,
                    };
                }
            }
        }
        let found = self.0.iter().zip(sums).zip(matched).filter(|(_, matched)| *matched);
        found.filter_map(|((document, sum), _)| Some((document.0.clone(), sum?))).collect()
    }

    /// What each document scores by a word or a phrase, if it has it.
    fn scores(&self, scored: &Scored, ask: &Ask) -> Vec<Option<f64>> {
        let one = ask.field.map(|field| {
            let known = scored.fields.iter().find(|of| of.0 == Some(field));
            [(Some(field), known.map_or(1.0, |of| of.1))]
        });
        let fields = one.as_ref().map_or(&scored.fields[..], |one| &one[..]);
        let n = self.0.len() as f64;
        let idf = |field: Option<usize>| -> f64 {
            let of = |word: &String| {
                let words = std::slice::from_ref(word);
                let has = self.0.iter().filter(|of| Self::tf(&of.1, field, words) > 0.0);
                let df = has.count() as f64;
                (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
            };
            ask.words.iter().map(of).sum()
        };
        let norms = |field: Option<usize>| -> Vec<f64> {
            let lengths: Vec<f64> = self.0.iter().map(|of| Self::length(&of.1, field)).collect();
            let mean = lengths.iter().sum::<f64>() / n;
            let b = scored.b[field.unwrap_or(3)];
            lengths.iter().map(|length| 1.0 - b + b * length / mean).collect()
        };
        let factor = ask.boost * (scored.k1 + 1.0);
        let mut sums: Vec<Option<f64>> = vec![None; self.0.len()];
        for &(field, weight) in fields {
            let (idf, norms) = (idf(field), norms(field));
            for ((sum, (_, of)), norm) in sums.iter_mut().zip(&self.0).zip(norms) {
                let tf = Self::tf(of, field, &ask.words);
                if tf > 0.0 {
                    let more = match scored.score {
                        Score::Bm25 => weight * factor * idf * tf / (tf + scored.k1 * norm),
                        Score::Bm25F => weight * tf / norm,
                    };
                    *sum = Some(sum.unwrap_or(0.0) + more);
                }
            }
        }
        if scored.score == Score::Bm25F {
            let factor = factor * idf(None);
            for frequency in sums.iter_mut().flatten() {
                *frequency = factor * *frequency / (*frequency + scored.k1);
            }
        }
        sums
    }
}
