//! Searches of an index: for one query, and for many with several threads.

use crate::answers::Answers;
use crate::error::{of_index, warn};
use crate::evaluate::run;
use crate::hits::{Found, Hits};
use crate::options::Listed;
use crate::progress::Told;
use crate::queries::{Reading, expand};
use millrace::inside::query::{CandidatesByQuery, GivenDocids, ask_many, expanded, rank_many};
use millrace::{IndexError, Query, Searcher, Snapshot, Wanted, search_many};
use pyo3::prelude::*;
use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Documents, terms and weight.
type Rm3 = (usize, usize, f64);

/// Those that no search is using.
#[derive(Default)]
pub(crate) struct Searchers(Mutex<Vec<Searcher>>);

impl Searchers {
    /// None if another thread is using it. Nobody waits for that: a process may be forked in such
    /// a moment, and in the child that thread is not there to give it free.
    fn pool(&self) -> Option<MutexGuard<'_, Vec<Searcher>>> {
        match self.0.try_lock() {
            Ok(searchers) => Some(searchers),
            // A searcher is put there when a search is done, whole.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

pub(crate) fn search_one(
    py: Python<'_>,
    snapshot: &Arc<Snapshot>,
    searchers: &Searchers,
    query: &Bound<'_, PyAny>,
    mut wanted: Wanted,
    rm3: Option<Rm3>,
    listed: &Listed,
) -> PyResult<Hits> {
    let usual = Reading::of(snapshot);
    let asked = Reading { syntax: wanted.syntax, ..usual }.one(query)?;
    let syntax = wanted.syntax;
    let mut text = asked.clone();
    if let Some(rm3) = rm3 {
        let queries = vec![("1".to_string(), text)];
        let told = Told::default();
        let one = NonZeroUsize::MIN;
        let expand = || expand(snapshot, queries, rm3, &wanted, one, &told.stop);
        let queries = told.counted(py, "queries", expand)?;
        wanted = expanded(&wanted);
        text = queries.into_iter().next().map(|query| query.1).unwrap_or_default();
    }
    let found = py.detach(|| {
        let kept = searchers.pool().and_then(|mut searchers| searchers.pop());
        let mut searcher = kept.unwrap_or_default();
        let (_, known) = searcher.ask(snapshot, &wanted, &listed.query(&text))?;
        let hits = Hits::new(snapshot.clone(), syntax, &asked, &mut searcher);
        if let Some(mut searchers) = searchers.pool() {
            searchers.push(searcher);
        }
        Ok::<_, IndexError>((hits, known))
    });
    let (hits, known) = found.map_err(|error| of_index(&error))?;
    if !known {
        warn_of_letters(py, snapshot, [("1", &*asked)])?;
    }
    Ok(hits)
}

/// How many queries are answered.
pub(crate) struct Many<'a, 'py> {
    pub(crate) wanted: Wanted,
    pub(crate) threads: NonZeroUsize,
    pub(crate) rm3: Option<Rm3>,
    pub(crate) remove_query: bool,
    pub(crate) candidates: Option<&'a Bound<'py, PyAny>>,
    /// Of a file of queries.
    pub(crate) form: Option<&'a str>,
    pub(crate) listed: Listed,
}

impl Many<'_, '_> {
    pub(crate) fn search(
        self,
        py: Python<'_>,
        snapshot: Arc<Snapshot>,
        queries: &Bound<'_, PyAny>,
        told: &Told,
    ) -> PyResult<Answers> {
        let Self { mut wanted, threads, rm3, remove_query, candidates, form, listed } = self;
        let k = wanted.k;
        wanted.k = k.saturating_add(usize::from(remove_query));
        let syntax = wanted.syntax;
        let reading = Reading { form, syntax, ..Reading::of(&snapshot) };
        let queries = reading.read(queries)?;
        told.stop.expect((queries.len() * (1 + usize::from(rm3.is_some()))) as u64);
        let run = candidates.map(|candidates| run(candidates, "candidates")).transpose()?;
        let given = run.map(|run| CandidatesByQuery::new(&snapshot, run.documents()));
        let given = given.transpose().map_err(|error| of_index(&error))?;
        if let Some(remark) = given.as_ref().and_then(CandidatesByQuery::remark) {
            warn(py, &remark)?;
        }
        let given: Option<Vec<GivenDocids>> =
            given.map(|given| queries.iter().map(|(qid, _)| given.of(qid)).collect());
        let mut found = told.counted(py, "queries", || {
            let mut more = None;
            if let Some(rm3) = rm3 {
                let queries = queries.clone();
                more = Some(expand(&snapshot, queries, rm3, &wanted, threads, &told.stop)?);
                wanted = expanded(&wanted);
            }
            let asked = more.as_ref().unwrap_or(&queries);
            let texts: Vec<&str> = asked.iter().map(|(_, text)| &**text).collect();
            let found = match &given {
                None if listed.is_asked() => {
                    let queries: Vec<Query> = texts.iter().map(|text| listed.query(text)).collect();
                    ask_many(&snapshot, &wanted, &queries, threads, &told.stop)
                }
                None => search_many(&snapshot, &wanted, &texts, threads, &told.stop),
                Some(given) => rank_many(&snapshot, &wanted, &texts, given, threads, &told.stop),
            };
            found.map_err(|error| of_index(&error))
        })?;
        for (refused, why) in &found.refused {
            let qid = &queries[*refused].0;
            warn(py, &format!("the query {qid} {why}: it is not answered"))?;
        }
        if found.unknown > 0 {
            let hits = found.offsets.windows(2).map(|of| of[1] - of[0]);
            let without = queries.iter().zip(hits).filter(|&(_, hits)| hits == 0);
            warn_of_letters(py, &snapshot, without.map(|((qid, text), _)| (&**qid, &**text)))?;
        }
        if remove_query {
            let documents = snapshot.generation().documents();
            let failed = OnceCell::new();
            let is_other = |query: usize, docid: u32| {
                let name = documents.name(docid).map_err(|error| _ = failed.set(error));
                name.as_deref() != Ok(queries[query].0.as_bytes())
            };
            found.keep(k, is_other);
            failed.into_inner().map_or(Ok(()), |error| Err(of_index(&error)))?;
        }
        Ok(Answers::new(Found { snapshot, hits: found, syntax }, queries, k))
    }
}

/// Warns of the first query without hits whose letters the index does not cut.
fn warn_of_letters<'a>(
    py: Python<'_>,
    snapshot: &Snapshot,
    without: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> PyResult<()> {
    let of = |(qid, text)| Some((qid, snapshot.unspaced(text)?));
    without.into_iter().find_map(of).map_or(Ok(()), |(qid, letters)| {
        warn(py, &format!("query {qid} has no hits; its letters are mostly {letters}"))
    })
}
