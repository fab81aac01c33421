//! Plans: owned queries that any engine can answer. A [`Plan`] has the terms with their weights,
//! the list of every term in every run, and what is wanted, and holds its snapshot.

mod fields;
mod listed;
mod shared;

pub(crate) use self::fields::FieldSpan;
use self::listed::Listed;
pub(crate) use self::listed::is_all;
use super::phrase::Phrase;
use super::reading::asked::GivenDocids;
use super::reading::syntax::Sign;
use super::reading::{syntax, trees};
use super::snapshot::Snapshot;
use super::tree::{Builder, Group, Leaves, QueryNode};
use super::wanted::{Mode, Stage, Syntax, Wanted};
use crate::codec::prefetch::prefetch;
use crate::index::error::IndexError;
use crate::index::lexicon::{TermEntry, TermPlace};
use crate::query::reading::weighted::{self, terms_of_query, unmarked};
use crate::score::named::Score;
use crate::score::scoring::TermCounts;
use crate::score::weight::{Formula, Weight};
use crate::text::fields::collection_of;
use crate::text::trie_collection::implied_prefix_len;
use std::collections::HashMap;
use std::sync::Arc;

/// Different terms of a query, at most: each takes memory in every run.
pub(crate) const MOST_TERMS: usize = 1 << 16;

/// This many terms are compared with a new one faster than a table finds it.
const FEW_TERMS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanTerm {
    /// Occurrences in the query, or the weight that the query gives it; 0 if it is excluded.
    pub times: f64,
    /// Documents with it in the whole collection.
    pub df: u32,
    /// Occurrences in the whole collection, if the score needs them; else 0.
    pub cf: u64,
    pub weight: Weight,
    /// The end of its bytes in the plan's strings.
    end: usize,
    /// The number of its field; 0 for all text.
    field: u8,
    /// The number of the term whose df its idf is made of, if that is not its own.
    idf_of: Option<usize>,
}

impl PlanTerm {
    fn new(times: f64, end: usize) -> Self {
        Self { times, df: 0, cf: 0, weight: Weight::default(), end, field: 0, idf_of: None }
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    snapshot: Arc<Snapshot>,
    wanted: Wanted,
    strings: String,
    terms: Vec<PlanTerm>,
    lists: Vec<Option<TermEntry>>,
    given: Option<GivenDocids>,
    listed: Listed,
    /// `None` if the mode says all.
    tree: Option<Arc<Group>>,
    /// What is asked for in the second stage, or of given documents, if words of several fields
    /// are needed in the first one and any of their terms would not do.
    any: Option<Arc<Group>>,
    /// By the numbers that the trees have.
    phrases: Vec<Phrase>,
    /// Which fields its terms are of.
    span: FieldSpan,
}

impl Plan {
    /// A plan without terms, as room for plans of queries of a snapshot.
    pub(crate) fn empty(snapshot: Arc<Snapshot>) -> Self {
        let wanted = Wanted::default();
        let strings = String::new();
        let terms = Vec::new();
        let lists = Vec::new();
        let (given, listed, tree, any, phrases, span) = Default::default();
        Self { snapshot, wanted, strings, terms, lists, given, listed, tree, any, phrases, span }
    }

    /// A plan of a text's terms alone, without their lists, as the text has them; fails as
    /// [`check`].
    pub(crate) fn of_text(
        snapshot: &Arc<Snapshot>,
        wanted: Wanted,
        text: &str,
    ) -> Result<Self, String> {
        let mut plan = Self::empty(snapshot.clone());
        plan.wanted = wanted;
        plan.analyze(text)?;
        Ok(plan)
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Lets only the given documents be ranked, whatever the mode, if there are any given.
    pub(crate) fn give(&mut self, given: Option<GivenDocids>) {
        self.given = given;
    }

    pub(crate) fn given(&self) -> Option<&[u32]> {
        self.given.as_deref()
    }

    /// What is asked for, if that is more than the mode says: then this is no matter.
    pub(crate) fn tree(&self) -> Option<&Group> {
        self.tree.as_deref()
    }

    /// The phrases of the tree.
    pub(crate) fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }

    /// A plan of one of the phrases alone, for which a document scores how often it has it.
    pub(crate) fn of_phrase(&self, number: usize) -> Self {
        let mut plan = self.clone();
        plan.phrases[number].weight = Weight::new(Formula::Linear, 1.0, 0.0);
        let clauses = vec![(Sign::Required, QueryNode::Phrase(number))];
        plan.tree = Some(Arc::new(Group { clauses, at_least: 0 }));
        plan
    }

    /// Whether the hits of parts of it, or of a device, are no answer: it has a tree or terms of
    /// fields, counts, or lists all that matches.
    pub(crate) fn is_whole(&self) -> bool {
        let is_more = self.tree.is_some() || self.wanted.count || self.is_of_all();
        is_more || self.span != FieldSpan::AllText || self.listing_of_all().is_some()
    }

    /// Turns a plan of AND+OR into that of its first stage, for callers that decide on the second
    /// one themselves, and returns the old one; any other plan has one stage and stays.
    pub(crate) fn split_stages(&mut self) -> Option<Self> {
        let wanted = self.wanted;
        (wanted.mode == Mode::AndOr).then(|| {
            let whole = self.clone();
            self.want(Wanted { mode: Mode::And, ..wanted });
            whole
        })
    }

    /// By first appearance: the order in which scores are added up.
    pub fn terms(&self) -> &[PlanTerm] {
        &self.terms
    }

    /// In the order of the terms; `None` if no document of the run has it.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn lists_of(&self, run: usize) -> &[Option<TermEntry>] {
        &self.lists[run * self.terms.len()..][..self.terms.len()]
    }

    /// Run by run and term by term.
    pub fn lists(&self) -> &[Option<TermEntry>] {
        &self.lists
    }

    /// The trie collection and the suffix of each term.
    pub(crate) fn split_terms(&self) -> impl Iterator<Item = (u16, &[u8])> {
        split_terms(self.snapshot.fields().len(), &self.strings, &self.terms)
    }

    pub(crate) fn term_strings(&self) -> impl Iterator<Item = &str> {
        strings_of(&self.strings, &self.terms)
    }

    /// The terms that are not excluded, with their weights.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (&str, f64)> {
        let all = self.term_strings().zip(&self.terms).map(|(term, of)| (term, of.times));
        all.filter(|(_, times)| *times > 0.0)
    }

    /// Brings terms and lists to the cache of this core.
    pub(crate) fn prefetch(&self) {
        self.terms.iter().for_each(prefetch);
        self.lists.iter().for_each(prefetch);
    }

    /// Whether the index has any of the terms that are not excluded.
    pub fn known(&self) -> bool {
        self.is_of_all() || self.terms.iter().any(|term| term.df > 0 && term.times > 0.0)
    }

    /// Whether a stage may find anything, by the dfs alone.
    pub(crate) fn may_find(&self, stage: Stage) -> bool {
        match stage {
            _ if self.tree.is_some() => self.known(),
            Stage::Any => self.known(),
            Stage::All => !self.terms.is_empty() && self.terms.iter().all(|term| term.df > 0),
        }
    }

    /// Replaces the dfs of the terms and weighs these again: where the generation is a shard, its
    /// own dfs are not those of the collection. Missing dfs are 0.
    pub(crate) fn weigh(&mut self, dfs: impl IntoIterator<Item = u32>) {
        let dfs = dfs.into_iter().chain(std::iter::repeat(0));
        for (term, df) in self.terms.iter_mut().zip(dfs) {
            term.df = df;
        }
        weigh(&self.snapshot, &mut self.terms, self.span);
        weigh_phrases(&mut self.phrases, &self.terms);
    }

    /// Finds the terms of a text, by first appearance; fails as [`check`].
    fn analyze(&mut self, text: &str) -> Result<(), String> {
        self.strings.clear();
        self.terms.clear();
        self.tree = None;
        self.any = None;
        self.span = FieldSpan::AllText;
        self.phrases.clear();
        self.listed.is_of_all = is_all(text);
        match self.wanted.syntax {
            _ if self.is_of_all() => Ok(()),
            Syntax::Operators if unmarked(text).is_none() => {
                let snapshot = self.snapshot.clone();
                self.plant(&syntax::read(text, snapshot.fields())?)
            }
            Syntax::Tree => {
                let read = trees::read(text, self.snapshot.fields())?;
                self.plant(&[read])
            }
            _ => self.analyze_words(text),
        }
    }

    /// Takes the terms and the tree of a query that was read.
    fn plant(&mut self, read: &[syntax::Clause<'_>]) -> Result<(), String> {
        if self.snapshot.has_given_terms() {
            return Err(
                "has operators, and the index has learned vectors: give terms with weights".into(),
            );
        }
        let mode = self.wanted.mode;
        let analysis = self.snapshot.analysis();
        let tokens_of = |text: &str, each: &mut dyn FnMut(Option<&str>)| {
            analysis.places(text.as_bytes(), each);
        };
        let strings = std::mem::take(&mut self.strings);
        let leaves = Leaves { strings, ..Leaves::default() };
        let mut builder = Builder { mode, tokens_of: &tokens_of, leaves };
        let root = builder.tree(read);
        let Leaves { strings, terms, phrases, wrong } = builder.leaves;
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        if !phrases.is_empty() {
            self.accept_phrases()?;
        }
        self.phrases = phrases;
        if terms.len() > MOST_TERMS {
            return Err(too_many_terms());
        }
        self.strings = strings;
        self.terms.extend(terms.into_iter().map(|(end, times)| PlanTerm::new(times, end)));
        match root.mode() {
            // Words alone follow the mode, whichever it is.
            Some(Mode::Or) if mode == Mode::AndOr => {}
            _ if mode == Mode::AndOr => {
                return Err("has operators, which do not go together with the mode and-or".into());
            }
            Some(flat) => self.wanted.mode = flat,
            None => self.tree = Some(Arc::new(root)),
        }
        Ok(())
    }

    /// Refuses phrases where they cannot be found, or scored.
    fn accept_phrases(&self) -> Result<(), String> {
        if !self.snapshot.generation().manifest().settings.positions {
            return Err("has a phrase, and the index was built without positions of words".into());
        }
        let score = &self.snapshot.scoring().score;
        match score.has_cf() {
            true => Err(format!("has a phrase, which the score {} does not weigh", score.name())),
            false => Ok(()),
        }
    }

    /// Finds the distinct terms of a text of words.
    fn analyze_words(&mut self, text: &str) -> Result<(), String> {
        let Self { snapshot, strings, terms, .. } = self;
        let mut numbers = HashMap::new();
        let mut too_many = false;
        let add = |term: &str, times: f64| {
            let known = match terms.len() <= FEW_TERMS {
                true => {
                    strings_of(strings, terms).inspect(looked_at).position(|known| known == term)
                }
                false => {
                    if numbers.is_empty() {
                        let known = strings_of(strings, terms).map(str::to_string);
                        numbers = known.zip(0..).collect();
                    }
                    numbers.get(term).copied()
                }
            };
            if let Some(number) = known {
                terms[number].times += times;
                return;
            }
            if terms.len() == MOST_TERMS {
                too_many = true;
                return;
            }
            if !numbers.is_empty() {
                numbers.insert(term.to_string(), terms.len());
            }
            strings.push_str(term);
            terms.push(PlanTerm::new(times, strings.len()));
        };
        terms_of_query(snapshot, text, add)?;
        match too_many {
            true => Err(too_many_terms()),
            false => Ok(()),
        }
    }
}

fn too_many_terms() -> String {
    format!("has more than {MOST_TERMS} different terms")
}

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts the terms that tests look at.
fn looked_at(_: &&str) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// Refuses a text that is no query: of more terms than there may be, each of a byte at least, with
/// a wrong weight, or with wrong operators. One that `was_read` was checked there for weights of
/// words, and is not looked at here: it may be in the memory of another core.
pub(crate) fn check(
    snapshot: &Arc<Snapshot>,
    wanted: Wanted,
    text: &str,
    was_read: bool,
) -> Result<(), String> {
    match text.len() > MOST_TERMS || wanted.syntax != Syntax::Words {
        true => Plan::of_text(snapshot, wanted, text).map(|_| ()),
        false if was_read && !snapshot.has_given_terms() => Ok(()),
        false => weighted::check(text, snapshot.has_given_terms()),
    }
}

fn strings_of<'a>(strings: &'a str, terms: &'a [PlanTerm]) -> impl Iterator<Item = &'a str> {
    let mut start = 0;
    terms.iter().map(move |term| &strings[std::mem::replace(&mut start, term.end)..term.end])
}

fn split_terms<'a>(
    fields: usize,
    strings: &'a str,
    terms: &'a [PlanTerm],
) -> impl Iterator<Item = (u16, &'a [u8])> {
    strings_of(strings, terms).map(move |term| {
        let collection = collection_of(fields, term);
        (collection, &term.as_bytes()[implied_prefix_len(collection)..])
    })
}

#[derive(Debug, Default)]
pub struct Planner {
    /// The block of the lexicon of each term in one run.
    places: Vec<Option<TermPlace>>,
}

impl Planner {
    /// Damage in the index is found here, except for postings where no document is deleted.
    pub fn plan(
        &mut self,
        snapshot: &Arc<Snapshot>,
        wanted: Wanted,
        text: &str,
    ) -> Result<Plan, IndexError> {
        let mut plan = Plan::empty(snapshot.clone());
        self.plan_anew(&mut plan, wanted, text)?;
        Ok(plan)
    }

    /// Plans another query of the same snapshot in the buffers of `plan`, without allocation once
    /// they have grown.
    pub(crate) fn plan_anew(
        &mut self,
        plan: &mut Plan,
        wanted: Wanted,
        text: &str,
    ) -> Result<(), IndexError> {
        plan.wanted = wanted;
        plan.given = None;
        plan.listed = Listed::default();
        let refused = |why| IndexError::Query { why };
        plan.analyze(text).map_err(refused)?;
        let fields = plan.snapshot.fields().len();
        if fields > 0 {
            plan.spread().map_err(refused)?;
            plan.terms.iter().try_for_each(|term| plan.snapshot.load_field(term.field))?;
        }
        let Plan { snapshot, strings, terms, lists, phrases, span, .. } = plan;
        let generation = snapshot.generation();
        // A damaged index may claim more postings than there are documents.
        let most = generation.documents().len();
        lists.clear();
        for run in generation.runs() {
            // Each step prefetches what the next one reads, for all terms before it is read for
            // one.
            self.places.clear();
            for (collection, suffix) in split_terms(fields, strings, terms) {
                self.places.push(run.lexicon().locate(collection, suffix)?);
            }
            let before = lists.len();
            for (place, (_, suffix)) in self.places.iter().zip(split_terms(fields, strings, terms))
            {
                let list = place.map(|place| run.lexicon().scan(place, suffix)).transpose()?;
                lists.push(list.flatten().inspect(|list| run.prefetch(list)));
            }
            for (term, list) in terms.iter_mut().zip(&lists[before..]) {
                let df = list.map_or(Ok(0), |list| run.live_df(&list))?;
                term.df = term.df.saturating_add(df).min(most);
            }
        }
        if snapshot.scoring().score.has_cf() {
            let count = terms.len();
            for (number, term) in terms.iter_mut().enumerate() {
                term.cf = snapshot.cf(lists.iter().skip(number).step_by(count))?;
            }
        }
        weigh(snapshot, terms, *span);
        weigh_phrases(phrases, terms);
        Ok(())
    }
}

/// The idf of a phrase is the sum of those of its words.
fn weigh_phrases(phrases: &mut [Phrase], terms: &[PlanTerm]) {
    for Phrase { words, weight, .. } in phrases {
        let weights = words.iter().map(|word| terms[word.1].weight);
        *weight = weights.reduce(Weight::plus).unwrap_or_default();
    }
}

fn weigh(snapshot: &Snapshot, terms: &mut [PlanTerm], span: FieldSpan) {
    let scoring = snapshot.scoring();
    let whole = snapshot.whole();
    let counts = |term: &PlanTerm| TermCounts { times: term.times, df: term.df, cf: term.cf };
    if let Score::Wang(wang) = scoring.score {
        let part = |term: &PlanTerm| scoring.wang_part(whole.documents, &counts(term));
        let sum = terms.iter().map(part).sum();
        for term in terms {
            term.weight = wang.weight(part(term), sum).into();
        }
        return;
    }
    let is_whole = !snapshot.leaves_out();
    for at in 0..terms.len() {
        let term = &terms[at];
        let mut counts = counts(term);
        let mut whole = whole;
        if span != FieldSpan::AllText {
            counts.df = terms[term.idf_of.unwrap_or(at)].df;
            whole.tokens = snapshot.tokens_of(term.field);
        }
        let weight = scoring.weight(whole, &counts);
        let weight = if is_whole { weight.of_whole() } else { weight };
        let in_field = span == FieldSpan::Several;
        terms[at].weight = if in_field { weight.in_field(term.field) } else { weight };
    }
}

#[cfg(test)]
mod tests;
