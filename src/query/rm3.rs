//! RM3, the expansion of queries by the terms that their best documents have most of: relevance
//! model 3 of Abdul-Jaleel and others (UMass at TREC 2004), over the relevance model 1 of Lavrenko
//! and Croft (SIGIR 2001).
//!
//! ```text
//! p(t)      = sum over the best documents d of  score(d) * tf(t, d) / length(d)
//! weight(t) = w * n(t) / n + (1 - w) * p(t) / sum of p over the chosen terms
//! ```
//!
//! n(t) is how often the query has the term and n how many terms it has; chosen are the terms with
//! the greatest p, of equal ones those that come first by their bytes. As in Anserini, score(d) is
//! the score of the first search, whichever score that is. Unlike there, all terms of a document
//! count, also frequent ones.

use super::searcher::Searcher;
use super::snapshot::Snapshot;
use super::tree::sign_of;
use super::wanted::{Mode, Syntax, Wanted};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::query::answers::texts::Reread;
use crate::query::plan::{Plan, is_all};
use crate::query::reading::lines::Query;
use crate::query::reading::syntax::{Clause, Part, Sign};
use crate::query::reading::weighted::{LEAST_WEIGHT, QueryVector, marked, text_of};
use crate::query::reading::{syntax, trees};
use crate::text::fields::IndexFields;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rm3 {
    /// The number of best documents.
    pub documents: usize,
    pub terms: usize,
    /// The share of the query's own terms in the weight, from 0 to 1.
    pub weight: f64,
}

/// The most documents, and the most terms.
const MOST: usize = 1000;

impl Rm3 {
    /// # Errors
    /// If one is out of its range; the message has the ranges.
    pub fn new(documents: usize, terms: usize, weight: f64) -> Result<Self, String> {
        let counts = [documents, terms].iter().all(|n| (1..=MOST).contains(n));
        match counts && (0.0..=1.0).contains(&weight) {
            true => Ok(Self { documents, terms, weight }),
            false => Err(allowed()),
        }
    }
}

fn allowed() -> String {
    format!(
        "give documents,terms,weight, such as 10,10,0.5: two numbers from 1 to {MOST}, and one from 0 to 1"
    )
}

impl FromStr for Rm3 {
    type Err = String;

    /// As `documents,terms,weight`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let &[documents, terms, weight] = &parts[..] else { return Err(allowed()) };
        match (documents.parse(), terms.parse(), weight.parse()) {
            (Ok(documents), Ok(terms), Ok(weight)) => Self::new(documents, terms, weight),
            _ => Err(allowed()),
        }
    }
}

const KEPT_DOCUMENTS: usize = 10_000;

/// Terms with their frequencies, by document.
type KeptTerms = HashMap<u32, Arc<BTreeMap<String, u32>>>;

pub struct Expander {
    snapshot: Arc<Snapshot>,
    rm3: Rm3,
    wanted: Wanted,
    searcher: Searcher,
    reread: Reread,
    /// Documents that were read, for later queries.
    kept: Arc<Mutex<KeptTerms>>,
}

impl Expander {
    /// Expands by what a snapshot finds for queries, in the mode of `wanted` unless they say
    /// another.
    ///
    /// # Errors
    /// If texts of the index cannot be had.
    pub fn new(snapshot: Arc<Snapshot>, rm3: Rm3, wanted: Wanted) -> Result<Self, IndexError> {
        let reread = Reread::new(snapshot.generation())?;
        let searcher = Searcher::new();
        let kept = Arc::default();
        Ok(Self { snapshot, rm3, wanted, searcher, reread, kept })
    }

    /// Another one for another thread, which shares the documents that were read.
    pub(crate) fn another(&self) -> Result<Self, IndexError> {
        let kept = self.kept.clone();
        Ok(Self { kept, ..Self::new(self.snapshot.clone(), self.rm3, self.wanted)? })
    }

    /// The query with terms and weights for a text, own terms first. A document has any of them,
    /// and nothing that the query excludes as a whole.
    pub(crate) fn expand(&mut self, query: &Query) -> Result<Query, IndexError> {
        let wanted = Wanted { k: self.rm3.documents, ..query.wanted(&self.wanted) };
        // A filter that is refused is reported where the query is answered.
        let Ok(snapshot) = self.snapshot.under(query.filter.as_ref()) else {
            return Ok(query.clone());
        };
        if is_all(&query.text) {
            return Ok(query.clone());
        }
        let (hits, _) = self.searcher.search(&snapshot, &wanted, &query.text)?;
        let hits = hits.to_vec();
        let mut model: HashMap<String, f64> = HashMap::new();
        for hit in hits {
            let terms = self.terms_of(hit.docid)?;
            let length: u32 = terms.values().sum();
            let part = f64::from(hit.score) / f64::from(length.max(1));
            for (term, &tf) in &*terms {
                let p = part * f64::from(tf);
                match model.get_mut(term) {
                    Some(sum) => *sum += p,
                    None => _ = model.insert(term.clone(), p),
                }
            }
        }
        let mut own = QueryVector::default();
        let refused = |why| IndexError::Query { why };
        let plan = Plan::of_text(&self.snapshot, wanted, &query.text).map_err(refused)?;
        for (term, weight) in plan.asked() {
            *own.entry(term.to_string()).or_default() += weight;
        }
        let mixed = mix(own, model, &self.rm3);
        let terms = mixed.iter().map(|(term, weight)| (&**term, *weight));
        let text = match wanted.syntax {
            Syntax::Words => {
                let text = text_of(terms);
                marked(&text.expect("terms have no white space, and weights are from 1e-9 to 1"))
            }
            syntax => {
                let fields = self.snapshot.fields();
                let excluded = excluded(&query.text, syntax, fields).map_err(refused)?;
                trees::of_terms(terms, &excluded, sign_of(wanted.mode), fields)
            }
        };
        let Wanted { mode, syntax, .. } = expanded(&wanted);
        Ok(Query { text, mode: Some(mode), syntax: Some(syntax), ..query.clone() })
    }

    fn terms_of(&mut self, docid: u32) -> Result<Arc<BTreeMap<String, u32>>, IndexError> {
        if let Some(terms) = lock(&self.kept).get(&docid) {
            return Ok(terms.clone());
        }
        let terms = Arc::new(self.reread.terms(self.snapshot.generation(), docid)?);
        let mut kept = lock(&self.kept);
        if kept.len() >= KEPT_DOCUMENTS {
            kept.clear();
        }
        kept.insert(docid, terms.clone());
        Ok(terms)
    }
}

/// What an expanded query asks for, whose terms are all optional.
pub fn expanded(wanted: &Wanted) -> Wanted {
    match wanted.syntax {
        Syntax::Words => Wanted { mode: Mode::Or, ..*wanted },
        // What is excluded may have words that follow the mode.
        _ if wanted.mode == Mode::And => Wanted { syntax: Syntax::Tree, ..*wanted },
        _ => Wanted { syntax: Syntax::Tree, mode: Mode::Or, ..*wanted },
    }
}

/// What a query excludes, beside all else.
fn excluded<'q>(
    text: &'q str,
    syntax: Syntax,
    fields: &IndexFields,
) -> Result<Vec<Clause<'q>>, String> {
    let mut clauses = match syntax {
        Syntax::Words => Vec::new(),
        Syntax::Operators => syntax::read(text, fields)?,
        Syntax::Tree => match trees::read(text, fields)?.part {
            Part::Group { clauses, .. } => clauses,
            _ => Vec::new(),
        },
    };
    clauses.retain(|clause| clause.sign == Some(Sign::Excluded));
    Ok(clauses)
}

/// Mixes the query's own terms and their counts with the best terms of the model.
fn mix(mut own: QueryVector, model: HashMap<String, f64>, rm3: &Rm3) -> QueryVector {
    let mut model: Vec<(String, f64)> = model.into_iter().collect();
    model.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    model.truncate(rm3.terms);
    let n: f64 = own.values().sum();
    // If a query finds nothing, its own terms have all the weight.
    let weight = if model.is_empty() { 1.0 } else { rm3.weight };
    own.values_mut().for_each(|times| *times *= weight / n);
    let sum: f64 = model.iter().map(|(_, p)| p).sum();
    for (term, p) in model {
        *own.entry(term).or_default() += (1.0 - weight) * p / sum;
    }
    own.retain(|_, weight| *weight >= LEAST_WEIGHT);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_checked() {
        let rm3 = Rm3 { documents: 10, terms: 20, weight: 0.5 };
        assert_eq!("10,20,0.5".parse(), Ok(rm3));
        for wrong in
            ["", "10", "10,20", "0,1,0.5", "1,0,0.5", "1,1,1.5", "1,1,NaN", "1,1,1,1", "1,1001,1"]
        {
            wrong.parse::<Rm3>().expect_err(wrong);
        }
    }

    #[test]
    fn weights_are_those_of_the_formula() {
        let terms = |terms: &[(&str, f64)]| -> QueryVector {
            terms.iter().map(|(term, weight)| (term.to_string(), *weight)).collect()
        };
        let own = terms(&[("mill", 2.0), ("river", 1.0), ("x", 1.0)]);
        let model = terms(&[("a", 1.0), ("mill", 3.0), ("b", 1.0), ("c", 0.5)]);
        let mixed = |rm3: Rm3| mix(own.clone(), model.clone().into_iter().collect(), &rm3);
        let rm3 = Rm3 { documents: 1, terms: 2, weight: 0.5 };
        // Of a and b, which are equal, a comes first.
        let expected = [("mill", 0.625), ("river", 0.125), ("x", 0.125), ("a", 0.125)];
        assert_eq!(mixed(rm3), terms(&expected));
        let alone = [("mill", 0.5), ("river", 0.25), ("x", 0.25)];
        assert_eq!(mixed(Rm3 { weight: 1.0, ..rm3 }), terms(&alone));
        assert_eq!(mixed(Rm3 { weight: 0.0, ..rm3 }), terms(&[("mill", 0.75), ("a", 0.25)]));
        assert_eq!(mix(own, HashMap::new(), &rm3), terms(&alone));
        assert_eq!(mix(QueryVector::default(), HashMap::new(), &rm3), terms(&[]));
    }
}
