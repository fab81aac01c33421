//! The index on a device, and the queries as its engine takes them.

use crate::query::Ranking;
use anyhow::{Context as _, bail};
use millrace::gpu::cache::ModuleCache;
use millrace::gpu::device::Device;
use millrace::gpu::discover::Discovery;
use millrace::gpu::modules::Toolchain;
use millrace::gpu::query::device::QueryDevice;
use millrace::gpu::query::list::{ListMaker, Placed};
use millrace::gpu::query::load::make_list;
use millrace::gpu::query::plan::PlacedTerm;
use millrace::gpu::query::residency::Ranges;
use millrace::index::generation::Generation;
use millrace::index::lexicon::TermEntry;
use millrace::query::output::Query;
use millrace::query::searcher::{Algorithm, Mode};
use millrace::score::bm25::{Bm25, IdfKind, idf};
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A device with the norms of an index.
pub(super) struct Opened {
    pub(super) query: QueryDevice,
    pub(super) norms: Vec<f32>,
    generation: Generation,
}

/// A term of a query: its lists, run by run.
#[derive(Clone, Debug)]
pub(super) struct PlannedTerm {
    entries: Vec<Option<TermEntry>>,
    df: u32,
    weight: f32,
}

/// A query that has terms of the index.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Its number among the queries.
    pub(super) number: usize,
    pub(super) terms: Vec<PlannedTerm>,
}

impl Planned {
    pub(super) fn postings(&self) -> u64 {
        self.terms.iter().map(|term| u64::from(term.df)).sum()
    }
}

/// Opens the first device that can be used, and plans the queries whose distinct terms are as many as
/// `terms` says and are all in the index.
pub(super) fn open(
    index: &Path,
    queries: &[Query],
    (least, most): (usize, usize),
    arena_bytes: Option<u64>,
) -> anyhow::Result<(Opened, Vec<Planned>)> {
    let discovery = Discovery::of_machine();
    let usable = discovery.usable();
    let (Some(info), Some(compiler), Some(driver)) =
        (usable.first(), discovery.compiler.clone(), discovery.driver)
    else {
        let reasons: Vec<String> = discovery.missing.iter().map(ToString::to_string).collect();
        bail!("no GPU can be used ({})", reasons.join("; "));
    };
    let toolchain = Toolchain { driver, compiler, cache: ModuleCache::of_user() };
    let shared = Ranking::plain(index, Mode::Or, Algorithm::Auto, 10).open()?;
    drop(shared);
    let generation = Generation::open(index, false)?;
    let documents = generation.documents().len();
    let tokens = generation.manifest().statistics.tokens;
    let mean = if documents == 0 { 0.0 } else { tokens as f64 / f64::from(documents) };
    let (bm25, mut norms) = (Bm25::default(), Vec::new());
    bm25.norms(generation.documents().lengths(), mean, &mut norms);
    let query = QueryDevice::open(Device::open(info, 1)?, &toolchain, &norms, arena_bytes)?;
    let mut planned = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        let terms = plan(&generation, query, &bm25)?;
        let fits = (least..=most).contains(&terms.len());
        if fits && terms.iter().all(|term| term.df > 0) {
            planned.push(Planned { number, terms });
        }
    }
    Ok((Opened { query, norms, generation }, planned))
}

fn plan(generation: &Generation, query: &Query, bm25: &Bm25) -> anyhow::Result<Vec<PlannedTerm>> {
    let analysis = generation.manifest().analysis(generation.path())?;
    let mut terms: Vec<(String, u32)> = Vec::new();
    analysis.terms(query.text.as_bytes(), |term| {
        match terms.iter_mut().find(|(old, _)| old == term) {
            Some((_, times)) => *times += 1,
            None => terms.push((term.to_owned(), 1)),
        }
    });
    let mut planned = Vec::new();
    for (term, times) in terms {
        let collection = trie_collection(&term);
        let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
        let entries = generation
            .runs()
            .iter()
            .map(|run| run.lexicon().find(collection, suffix))
            .collect::<Result<Vec<_>, _>>()?;
        let df = entries.iter().flatten().map(|entry| entry.df).sum();
        let weight = bm25.weight(idf(generation.documents().len(), df, IdfKind::Lucene), times);
        planned.push(PlannedTerm { entries, df, weight });
    }
    Ok(planned)
}

type Key = Vec<Option<u64>>;

fn key(term: &PlannedTerm) -> Key {
    term.entries.iter().map(|entry| entry.map(|entry| entry.offset)).collect()
}

/// All lists of the queries, in the arena.
pub(super) struct OnDevice {
    places: HashMap<Key, (u64, Placed)>,
    pub(super) lists: usize,
    pub(super) postings: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl OnDevice {
    /// Makes the lists on all threads and copies them.
    pub(super) fn load(opened: &Opened, planned: &[Planned]) -> anyhow::Result<Self> {
        let start = Instant::now();
        let mut lists: HashMap<Key, &PlannedTerm> = HashMap::new();
        for term in planned.iter().flat_map(|query| &query.terms) {
            lists.entry(key(term)).or_insert(term);
        }
        let mut lists: Vec<(Key, &PlannedTerm)> = lists.into_iter().collect();
        lists.sort_by_key(|(_, term)| std::cmp::Reverse(term.df));
        let arena = opened.query.arena();
        let ranges = Mutex::new(Ranges::new(arena.bytes()));
        let next = AtomicUsize::new(0);
        let worker = || -> anyhow::Result<Vec<(Key, u64, Placed, u64)>> {
            let (mut maker, mut bytes, mut made) = (ListMaker::default(), Vec::new(), Vec::new());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((key, term)) = lists.get(at) else { return Ok(made) };
                bytes.clear();
                let windows = opened.query.windows();
                let placed = make_list(
                    &opened.generation,
                    &term.entries,
                    windows,
                    &opened.norms,
                    &mut maker,
                    &mut bytes,
                )?;
                let mut ranges = ranges.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let place = ranges.take(bytes.len() as u64);
                drop(ranges);
                let place = place.context("the lists of the queries do not fit --gpu-memory")?;
                arena.write(place, &bytes)?;
                made.push((key.clone(), place, placed, bytes.len() as u64));
            }
        };
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..super::threads()).map(|_| scope.spawn(worker)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
        });
        let (mut places, mut bytes) = (HashMap::new(), 0);
        for part in made {
            for (key, place, placed, len) in part? {
                bytes += len;
                places.insert(key, (place, placed));
            }
        }
        let postings = lists.iter().map(|(_, term)| u64::from(term.df)).sum();
        let seconds = start.elapsed().as_secs_f64();
        Ok(Self { lists: places.len(), places, postings, bytes, seconds })
    }

    /// Where the list of a term is.
    pub(super) fn place(&self, term: &PlannedTerm) -> PlacedTerm {
        let (place, placed) = self.places[&key(term)];
        PlacedTerm { place, placed, df: term.df, weight: term.weight }
    }
}
