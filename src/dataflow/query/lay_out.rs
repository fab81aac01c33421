//! Lays answers out, on the worker that has them, so that only the order is left to the one that
//! writes.

#![warn(missing_docs)]

use super::batch::NumberedQuery;
use super::context::{AnswerLayout, Context};
use super::desk::{DeskOutcome, Request, TakenQuery};
use super::waiter::Outcome;
use crate::dataflow::control::Cause;
use crate::query::answers::output::write_json;
use crate::query::answers::returned::ReturnedValues;
use crate::query::answers::snippet::{self, Snippets};
use crate::query::engines::engine::Answer;
use crate::query::listing::facets::FoundFacets;
use crate::query::reading::lines::{Query, Refused};
use crate::query::snapshot::Snapshot;
use crate::query::top_k::{Hit, NamedHit};
use crate::shown::chain;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The answer to a query, as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer {
    /// The query.
    pub query: Query,
    /// The best documents, best first.
    pub hits: Vec<NamedHit>,
    /// Values of each, if the query asks for any.
    pub values: Vec<ReturnedValues>,
    /// How many documents match, if the query asks for that.
    pub found: Option<u64>,
    /// Facets of these, if the query asks for any.
    pub facets: FoundFacets,
    /// Whether any of its terms is in the index.
    pub known: bool,
    /// Whether it was left unanswered since it had waited too long.
    pub late: bool,
    /// From when a worker took the query to when its answer was there.
    pub took: Duration,
}

/// An answer on its way to the worker that writes.
#[derive(Debug)]
pub(crate) struct LaidOutAnswer {
    pub(crate) place: u32,
    pub(crate) out: AnswerOut,
    /// If process 0 has not counted it yet.
    pub(crate) counted: Option<Box<CountedAnswer>>,
}

/// What process 0 counts of an answer.
#[derive(Debug)]
pub(crate) struct CountedAnswer {
    pub(crate) number: u64,
    pub(crate) qid: String,
    pub(crate) text: String,
    pub(crate) took: Duration,
    pub(crate) hits: u64,
    pub(crate) known: bool,
}

#[derive(Debug)]
pub(crate) enum AnswerOut {
    /// Empty for a query without hits in some forms.
    Text(Vec<u8>),
    Value(Box<Result<QueryAnswer, Refused>>),
}

/// Lays an answer out, and tells it at once if it is waited for: an empty text goes on then.
pub(crate) fn tell(
    mut numbered: NumberedQuery,
    is_late: bool,
    lay_out: impl FnOnce(NumberedQuery) -> Result<LaidOutAnswer, Cause>,
) -> Result<LaidOutAnswer, Cause> {
    let Some(waiter) = numbered.waiter.take() else { return lay_out(numbered) };
    let place = numbered.place;
    let refused = numbered.query.as_ref().err().cloned();
    let out = lay_out(numbered);
    waiter.told(match (refused, out) {
        (Some(refused), _) => Outcome::Refused(refused),
        (_, Err(error)) => Outcome::Failed(chain(&*error)),
        (_, Ok(_)) if is_late => Outcome::Late,
        (_, Ok(LaidOutAnswer { out: AnswerOut::Text(text), .. })) => Outcome::Answer(text),
        (_, Ok(_)) => Outcome::Failed("answers are laid out as values".into()),
    });
    Ok(LaidOutAnswer { place, out: AnswerOut::Text(Vec::new()), counted: None })
}

/// Of a process that has all of the index.
pub(crate) fn answer(
    context: &Context,
    taken: TakenQuery<()>,
    answer: Option<Answer>,
) -> Result<DeskOutcome<(), LaidOutAnswer>, Cause> {
    let Some(Request::Text(numbered)) = taken.asked else {
        return Err("a query came without its text".into());
    };
    let is_late = answer.as_ref().is_some_and(|answer| answer.late);
    let out = tell(numbered, is_late, |numbered| laid_out(context, numbered, answer, taken.began));
    out.map(DeskOutcome::Out)
}

fn laid_out(
    context: &Context,
    numbered: NumberedQuery,
    answer: Option<Answer>,
    began: Instant,
) -> Result<LaidOutAnswer, Cause> {
    let Some(answer) = answer else { return Ok(context.lay_out_refused(numbered)) };
    if answer.late {
        return Ok(context.lay_out_late(numbered, began.elapsed()));
    }
    let NumberedQuery { place, number, query, snapshot, .. } = numbered;
    let documents = snapshot.generation().documents();
    let (names, failed) = <(OnceCell<_>, OnceCell<_>)>::default();
    let docids = |at| answer.hits.get(at).map(|hit: &Hit| hit.docid);
    let name = documents.names(docids, (&names, &failed));
    let took = began.elapsed();
    let docids = answer.hits.iter().map(|hit| hit.docid);
    let values = answer.listing.as_ref();
    let values = values.map(|listing| listing.values(snapshot.generation(), docids));
    let values = values.transpose()?.unwrap_or_default();
    let out = context.lay_out((place, number, query), &snapshot, &answer, &values, took, name);
    failed.into_inner().map_or(Ok(out), |error| Err(error.into()))
}

impl Context {
    /// Lays an answer out and counts it. The query has its place and its number before it. `values`
    /// are those of the hits, or none, and `name` gives the name of the hit at a place.
    pub(crate) fn lay_out<'a>(
        &self,
        (place, number, query): (u32, u64, Result<Query, Refused>),
        snapshot: &Arc<Snapshot>,
        answer: &Answer,
        values: &[ReturnedValues],
        took: Duration,
        name: impl Fn(usize) -> Cow<'a, str>,
    ) -> LaidOutAnswer {
        let Answer { hits, found, known, facets, .. } = answer;
        let (found, known) = (*found, *known);
        let kept = query.as_ref().ok().and_then(|query| self.without_others(query, hits, &name));
        let left: Option<Vec<Hit>> =
            kept.as_ref().map(|kept| kept.iter().map(|&at| hits[at]).collect());
        let hits = left.as_deref().unwrap_or(hits);
        let among = |at: usize| kept.as_ref().map_or(at, |kept| kept[at]);
        let name = |at: usize| name(among(at));
        let values = |at: usize| values.get(among(at));
        let count = hits.len() as u64;
        let mut counted = None;
        match &query {
            Ok(query) if self.shard.process > 0 => {
                let (qid, text) = (query.qid.clone(), query.text.clone());
                let of = CountedAnswer { number, qid, text, took, hits: count, known };
                counted = Some(Box::new(of));
            }
            Ok(query) => self.count(number, &query.qid, &query.text, took, count, known),
            Err(_) => {}
        }
        let out = match (query, self.layout) {
            (Err(refused), _) => return self.refused(place, refused),
            (Ok(query), AnswerLayout::Text(form)) if form.has_snippets(&query) => {
                let mut text = Vec::new();
                let wanted = query.wanted(&self.wanted);
                let snippets = Snippets::new(snapshot, wanted, &query.text, snippet::CHARACTERS);
                let snippet = |at: usize| snippets.of(hits[at].docid);
                write_json(&query, hits, found, facets, took, name, snippet, values, &mut text);
                AnswerOut::Text(text)
            }
            (Ok(query), AnswerLayout::Text(form)) => {
                let mut text = Vec::new();
                form.write_with(&query, hits, found, facets, took, name, values, &mut text);
                AnswerOut::Text(text)
            }
            (Ok(query), AnswerLayout::Values) => {
                let named = |(at, &hit)| NamedHit::new(hit, name(at).into_owned());
                let values = (0..hits.len()).filter_map(|at| values(at).cloned()).collect();
                let hits = hits.iter().enumerate().map(named).collect();
                AnswerOut::Value(Box::new(Ok(QueryAnswer {
                    query,
                    hits,
                    values,
                    found,
                    facets: facets.clone(),
                    known,
                    late: false,
                    took,
                })))
            }
        };
        LaidOutAnswer { place, out, counted }
    }

    /// Counts an answer, in process 0.
    pub(crate) fn count(
        &self,
        number: u64,
        qid: &str,
        text: &str,
        took: Duration,
        hits: u64,
        known: bool,
    ) {
        let tally = &self.tally;
        if let Some(latencies) = &tally.latencies {
            latencies.add(took, qid, text);
        }
        if let (false, None) = (known, tally.unspaced.get())
            && let Some(unspaced) = self.snapshot().unspaced(text)
        {
            _ = tally.unspaced.set((qid.to_string(), unspaced));
        }
        tally.queries.fetch_add(1, Ordering::Relaxed);
        tally.hits.fetch_add(hits, Ordering::Relaxed);
        if !known {
            tally.unknown.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(on_answer) = &self.hooks.on_answer {
            on_answer(number, took);
        }
    }

    /// The places of the hits without the document that has the query's name, if that is to be
    /// removed, and without the first ones, if these are left out.
    fn without_others<'a>(
        &self,
        query: &Query,
        hits: &[Hit],
        name: impl Fn(usize) -> Cow<'a, str>,
    ) -> Option<Vec<usize>> {
        let most = query.wanted(&self.wanted).k;
        let others = |&at: &usize| !self.remove_query || name(at) != query.qid;
        let places = || (0..hits.len()).filter(others).skip(query.offset).take(most).collect();
        (self.remove_query || query.offset > 0).then(places)
    }

    /// For a line that is no query.
    pub(crate) fn lay_out_refused(&self, numbered: NumberedQuery) -> LaidOutAnswer {
        let none = Answer { known: true, ..Answer::default() };
        let NumberedQuery { place, number, query, snapshot, .. } = numbered;
        let name = |_| Cow::Borrowed("");
        self.lay_out((place, number, query), &snapshot, &none, &[], Duration::ZERO, name)
    }

    /// For a query that has waited too long, which is counted.
    fn lay_out_late(&self, numbered: NumberedQuery, took: Duration) -> LaidOutAnswer {
        let NumberedQuery { place, number, query, .. } = numbered;
        let out = match (query, self.layout) {
            (Err(refused), _) => return self.refused(place, refused),
            (Ok(query), AnswerLayout::Text(form)) => {
                let mut text = Vec::new();
                form.write_late(&query, &mut text);
                AnswerOut::Text(text)
            }
            (Ok(query), AnswerLayout::Values) => {
                let (hits, values, found, facets) = Default::default();
                let (known, late) = (true, true);
                let late = QueryAnswer { query, hits, values, found, facets, known, late, took };
                AnswerOut::Value(Box::new(Ok(late)))
            }
        };
        self.tally.late.fetch_add(1, Ordering::Relaxed);
        if let Some(on_answer) = &self.hooks.on_answer {
            on_answer(number, took);
        }
        LaidOutAnswer { place, out, counted: None }
    }

    fn refused(&self, place: u32, refused: Refused) -> LaidOutAnswer {
        let out = match self.layout {
            AnswerLayout::Values => AnswerOut::Value(Box::new(Err(refused))),
            AnswerLayout::Text(form) => {
                let mut text = Vec::new();
                form.write_refused(&refused, &mut text);
                AnswerOut::Text(text)
            }
        };
        LaidOutAnswer { place, out, counted: None }
    }
}
