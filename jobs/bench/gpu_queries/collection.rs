//! The index on a device, and the queries as its engine takes them.

use anyhow::{bail, ensure};
use millrace::gpu::floor::cache::ModuleCache;
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::query::bring::{Bringer, Brought, Decoding, ListRequest};
use millrace::gpu::query::device::QueryDevice;
use millrace::gpu::query::list::Placed;
use millrace::gpu::query::plan::PlacedTerm;
use millrace::gpu::query::residency::Ranges;
use millrace::index::lexicon::TermEntry;
use millrace::query::plan::{Plan, Planner};
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use millrace::query::snapshot::Snapshot;
use millrace::query::top_k::Hit;
use millrace::query::wanted::{Algorithm, Mode, Wanted};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A device with the norms of an index.
pub(super) struct Opened {
    pub(super) query: QueryDevice,
    pub(super) snapshot: Arc<Snapshot>,
}

/// A term of a query: its lists, run by run.
#[derive(Clone, Debug)]
pub(super) struct PlannedTerm {
    pub(super) entries: Vec<Option<TermEntry>>,
    pub(super) df: u32,
    pub(super) weight: f32,
}

/// A query that has terms of the index.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// Its number among the queries.
    pub(super) number: usize,
    pub(super) terms: Vec<PlannedTerm>,
}

impl Planned {
    fn new(number: usize, plan: &Plan) -> Self {
        let len = plan.terms().len();
        let terms = plan.terms().iter().enumerate().map(|(t, term)| PlannedTerm {
            entries: plan.lists().iter().skip(t).step_by(len).copied().collect(),
            df: term.df,
            weight: term.weight.factor(),
        });
        Self { number, terms: terms.collect() }
    }

    pub(super) fn postings(&self) -> u64 {
        self.terms.iter().map(|term| u64::from(term.df)).sum()
    }
}

/// Opens the first device that can be used, and plans the queries whose distinct terms are as many as
/// `terms` says and are all in the index.
pub(super) fn open(
    snapshot: Arc<Snapshot>,
    queries: &[Query],
    (least, most): (usize, usize),
    arena_bytes: Option<u64>,
) -> anyhow::Result<(Opened, Vec<Planned>)> {
    let (devices, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
    let device = Device::open(&devices[0], 1)?;
    let query = QueryDevice::open(device, &toolchain, snapshot.norms(), arena_bytes)?;
    let planned = plan(&snapshot, queries, (least, most))?;
    Ok((Opened { query, snapshot }, planned))
}

/// Plans the queries whose distinct terms are as many as is said and are all in the index.
pub(super) fn plan(
    snapshot: &Arc<Snapshot>,
    queries: &[Query],
    (least, most): (usize, usize),
) -> anyhow::Result<Vec<Planned>> {
    let (mut planner, mut planned) = (Planner::default(), Vec::new());
    for (number, query) in queries.iter().enumerate() {
        let plan = planner.plan(snapshot, Wanted::default(), &query.text)?;
        let fits = (least..=most).contains(&plan.terms().len());
        if fits && plan.terms().iter().all(|term| term.df > 0) {
            planned.push(Planned::new(number, &plan));
        }
    }
    Ok(planned)
}

/// The lists of all terms, each once, the longest first.
pub(super) fn distinct(planned: &[Planned]) -> Vec<(Key, &PlannedTerm)> {
    let mut lists: HashMap<Key, &PlannedTerm> = HashMap::new();
    for term in planned.iter().flat_map(|query| &query.terms) {
        lists.entry(key(term)).or_insert(term);
    }
    let mut lists: Vec<(Key, &PlannedTerm)> = lists.into_iter().collect();
    lists.sort_by_key(|(_, term)| std::cmp::Reverse(term.df));
    lists
}

/// What a function gives on all threads together.
pub(super) fn on_all_threads<T: Send>(
    work: impl Fn() -> anyhow::Result<Vec<T>> + Sync,
) -> anyhow::Result<Vec<T>> {
    let parts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..super::threads()).map(|_| scope.spawn(&work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    let mut all = Vec::new();
    for part in parts {
        all.append(&mut part?);
    }
    Ok(all)
}

/// The answers of the CPU's exhaustive search to a sample of queries, by all its threads.
pub(super) fn expected(
    snapshot: &Arc<Snapshot>,
    sample: &[&Planned],
    (mode, k): (Mode, u32),
    queries: &[Query],
) -> anyhow::Result<Vec<Vec<Hit>>> {
    let wanted = Wanted { k: k as usize, mode, algorithm: Algorithm::Exhaustive };
    let next = AtomicUsize::new(0);
    let worker = || -> anyhow::Result<Vec<(usize, Vec<Hit>)>> {
        let (mut searcher, mut found) = (Searcher::new(), Vec::new());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(planned) = sample.get(at) else { return Ok(found) };
            let text = &queries[planned.number].text;
            let (hits, _) = searcher.search(snapshot, &wanted, text)?;
            found.push((at, hits.to_vec()));
        }
    };
    let mut all = vec![Vec::new(); sample.len()];
    for (at, hits) in on_all_threads(worker)? {
        all[at] = hits;
    }
    Ok(all)
}

pub(super) type Key = Vec<Option<u64>>;

pub(super) fn key(term: &PlannedTerm) -> Key {
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
    /// Brings the lists, by all threads.
    pub(super) fn load(opened: &Opened, planned: &[Planned]) -> anyhow::Result<Self> {
        let start = Instant::now();
        let lists = distinct(planned);
        let arena = opened.query.arena();
        let ranges = Mutex::new(Ranges::new(arena.bytes()));
        let next = AtomicUsize::new(0);
        let worker = || -> anyhow::Result<Vec<(Key, u64, Placed, u64)>> {
            let documents = opened.query.windows().documents;
            let mut bringer = Bringer::new(&opened.query, &opened.snapshot, &(0..documents))?;
            let mut made: Vec<(Key, u64, Placed, u64)> = Vec::new();
            loop {
                // Few at a time, so that all threads have some.
                let from = next.fetch_add(16, Ordering::Relaxed);
                let Some(some) = lists.get(from..lists.len().min(from + 16)) else {
                    return Ok(made);
                };
                let mut lens = [0; 16];
                let asked = (0..)
                    .zip(some)
                    .map(|(id, (_, term))| ListRequest { id, entries: &term.entries });
                let room = |id: usize, bytes| {
                    lens[id] = bytes;
                    ranges.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take(bytes)
                };
                let mut came = Vec::new();
                bringer.bring(asked, room, |id, brought| came.push((id, brought)));
                for (id, brought) in came {
                    match brought {
                        Brought::Here(place, placed) => {
                            made.push((some[id].0.clone(), place, placed, lens[id]));
                        }
                        Brought::NoRoom => {
                            bail!("the lists of the queries do not fit --gpu-memory")
                        }
                        Brought::Damaged(_) => {
                            bail!("the index is damaged; `millrace check` says where")
                        }
                        Brought::Lost(_) => bail!("the device took no copy of a list"),
                    }
                }
            }
        };
        let (mut places, mut bytes) = (HashMap::new(), 0);
        for (key, place, placed, len) in on_all_threads(worker)? {
            bytes += len;
            places.insert(key, (place, placed));
        }
        let postings = lists.iter().map(|(_, term)| u64::from(term.df)).sum();
        let seconds = start.elapsed().as_secs_f64();
        Ok(Self { lists: places.len(), places, postings, bytes, seconds })
    }

    /// Decodes lists of `bp128` again and again on the device, as far as a parcel of 256 MiB has room.
    pub(super) fn decode(&self, opened: &Opened, planned: &[Planned]) -> anyhow::Result<Decoding> {
        let documents = opened.query.windows().documents;
        let (query, snapshot) = (&opened.query, &opened.snapshot);
        let mut bringer = Bringer::<()>::with_parcels(query, snapshot, &(0..documents), 256 << 20)?;
        let lists = distinct(planned);
        let placed = lists.iter().map(|(key, term)| (&term.entries[..], self.places[key].0));
        let decoding = bringer.measure(query.device(), placed, 10)?;
        ensure!(decoding.equal, "the device decoded other docids or tfs than the CPU");
        Ok(decoding)
    }

    /// Where the list of a term is.
    pub(super) fn place(&self, term: &PlannedTerm) -> PlacedTerm {
        let (place, placed) = self.places[&key(term)];
        PlacedTerm { place, placed, df: term.df, weight: term.weight }
    }
}
