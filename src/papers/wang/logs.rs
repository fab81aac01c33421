//! Plans the cache of the live generation by the query logs of the last days: where the job file
//! asks for it, a rebuild ends with a plan (`index::cache_plan`) in the generation's folder.
//!
//! ```text
//! logs -> queries of each, counted -> searched for: visits of each -> window of days -> plan
//! ```
//!
//! A log is read once, and its queries are searched for once; the result is stored in
//! `INDEX/rebuild/logs/`. Queries and visits are differential collections with the window of days
//! ([`frequencies`]). Visits of earlier days hold for unchanged runs; where too much of the index
//! is new to a log ([`Visits::fit`]) its known queries are searched for again.
//!
//! Memory: what is known of the logs of the window, and 4 bytes for each unit of their lists.

use super::counted_log::{CountedLog, Visit, Visits, run_key};
use super::demand::Demand;
use crate::crew::lock;
use crate::dataflow::rebuild::frequencies::{Change, Day, FrequencyKey, frequencies};
use crate::index::cache_plan::{CachePlan, PlanOf};
use crate::index::files::storage::Stop;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::rebuild::files::{self, Known, read_json, replace_json};
use crate::rebuild::handed::LogPlanner;
use crate::rebuild::history::{FOLDER, LogCounts};
use crate::rebuild::job_file::keys::LogKeys;
use crate::rebuild::live::Live;
use crate::rebuild::values::day_of;
use crate::rebuild::{Rebuild, RebuildError};
use jiff::civil::Date;
use jiff::{Span, Unit};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use twox_hash::XxHash3_64;

/// The folder of what is known of logs, in that of the history.
const LOGS: &str = "logs";

/// What the present plan was made of, in that folder.
const PLANNED: &str = "planned.json";

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct PlannedLogs {
    /// Of the files of the logs.
    known: Known,
    /// The generation's number and the checksum of its manifest.
    of: (u32, u32),
    how: String,
}

/// For rebuilds whose job files have logs.
#[derive(Debug)]
pub(in crate::papers) struct CachePlanner;

impl LogPlanner for CachePlanner {
    /// Unless the plan of the live generation is of the same logs already.
    fn plan(
        &self,
        rebuild: &Rebuild<'_>,
        live: &Live,
        keys: &LogKeys,
    ) -> Result<Option<LogCounts>, RebuildError> {
        let folder = rebuild.job.index.join(FOLDER).join(LOGS);
        fs::create_dir_all(&folder).map_err(RebuildError::io(&folder))?;
        let state = folder.join(PLANNED);
        let before: PlannedLogs = read_json(&state);
        let (logs, known) = logs(rebuild, keys, &folder, &before.known)?;
        let generation = Generation::open_folder(&live.path)?;
        let of = PlanOf::generation(&generation)?;
        let hashes: Vec<_> = logs.iter().map(|log| (&log.kept, &log.hash)).collect();
        let how = format!("{hashes:?} {} {:?} {}", keys.window, keys.cache, keys.lambda);
        let how = format!("{how} {} {}", keys.memory, keys.k);
        let planned = PlannedLogs { known, of: (of.generation, of.manifest_crc), how };
        let is_there = CachePlan::open(&generation).is_ok_and(|plan| plan.is_some());
        if is_there && (planned.of, &planned.how) == (before.of, &before.how) {
            return Ok(None);
        }
        let scoring = Scoring::of_order(&generation);
        let snapshot = Snapshot::new(generation, scoring)?;
        let mut counts = LogCounts { logs: logs.len() as u64, ..LogCounts::default() };
        let mut all = Vec::with_capacity(logs.len());
        for log in &logs {
            rebuild.control.stop().check()?;
            let counted = count(rebuild, &snapshot, keys, log, &mut counts)?;
            all.push((log.day, counted));
        }
        // Counted logs that have left the window leave the collections, too.
        let first = all.first().map(|(day, _)| *day).unwrap_or_default();
        let mut left = Vec::new();
        for entry in fs::read_dir(&folder).map_err(RebuildError::io(&folder))? {
            let path = entry.map_err(RebuildError::io(&folder))?.path();
            if path != state && !logs.iter().any(|log| log.kept == path) {
                left.push(path);
            }
        }
        let window = DayWindow::begin(keys, all.last().map(|(day, _)| *day).unwrap_or_default());
        for path in &left {
            let day = path.file_name().and_then(|name| day_of(&name.to_string_lossy()));
            let log = day.filter(|day| *day < window.first).and_then(|_| read_json(path));
            if let (Some(day), Some(log)) = (day, log) {
                all.push((day, log));
            }
        }
        all.sort_by_key(|(day, _)| *day);
        counts.days = [first, window.last].map(|day| day.to_string());
        for (_, log) in all.iter().filter(|(day, _)| *day >= window.first) {
            counts.without_answer += log.visits.without_answer;
        }
        let demand = window.demand(rebuild, &snapshot, all, &mut counts)?;
        let k = NonZeroU32::new(keys.k).unwrap_or(NonZeroU32::MIN);
        let plan = demand.plan(of, keys.cache, keys.lambda, k, keys.memory);
        plan.write(&live.path)?;
        counts.lists = plan.cached.lists().len() as u64;
        counts.cached_bytes = plan.cached_bytes;
        replace_json(&state, &planned)?;
        for path in left {
            // What cannot be removed now is removed by the next rebuild.
            _ = fs::remove_file(path);
        }
        Ok(Some(counts))
    }
}

struct DayLog {
    day: Date,
    path: PathBuf,
    hash: String,
    /// Where what is known of the log is stored.
    kept: PathBuf,
}

fn logs(
    rebuild: &Rebuild<'_>,
    keys: &LogKeys,
    folder: &Path,
    before: &Known,
) -> Result<(Vec<DayLog>, Known), RebuildError> {
    let mut found = rebuild.job.log_files()?;
    if let Some(&(last, _)) = found.last() {
        let first = DayWindow::begin(keys, last).first;
        found.retain(|(day, _)| *day >= first);
    }
    let paths: Vec<PathBuf> = found.iter().map(|(_, path)| path.clone()).collect();
    let known = files::look(&paths, rebuild.job.trust, before, |_, _| true, rebuild.workers())?;
    let log = |(day, path): (Date, PathBuf)| {
        let name = path.display().to_string();
        let hash = known.file(&name).map(|file| file.hash.clone()).ok_or(RebuildError::Replaced)?;
        let kept = folder.join(format!("{day}-{:016x}.json", XxHash3_64::oneshot(name.as_bytes())));
        Ok::<_, RebuildError>(DayLog { day, path, hash, kept })
    };
    let logs = found.into_iter().map(log).collect::<Result<Vec<_>, _>>()?;
    Ok((logs, known))
}

/// What is known of a log, found out as far as that does not hold.
fn count(
    rebuild: &Rebuild<'_>,
    snapshot: &Arc<Snapshot>,
    keys: &LogKeys,
    log: &DayLog,
    counts: &mut LogCounts,
) -> Result<CountedLog, RebuildError> {
    let before: Option<CountedLog> = read_json(&log.kept);
    let before = before.filter(|counted| counted.hash == log.hash);
    let mut counted = match before {
        Some(counted) => counted,
        None => {
            counts.read += 1;
            let counted = CountedLog::count(&log.path, log.day, log.hash.clone());
            let counted = counted.map_err(RebuildError::io(&log.path))?;
            counts.refused += counted.refused;
            counted
        }
    };
    let generation = snapshot.generation();
    let manifest = generation.manifest();
    let folder = generation.path();
    let run = |(place, run): (usize, &RunEntry)| (run_key(manifest, folder, place), run.documents);
    let runs: Vec<(u64, u32)> = manifest.runs.iter().enumerate().map(run).collect();
    if !counted.visits.fit(keys.k, &runs) {
        counts.searched += 1;
        let k = keys.k;
        let workers = rebuild.workers();
        let progress = Stop::default();
        let demand = Demand::of_log(snapshot, &counted.queries, k as usize, workers, &progress)?;
        let visits = demand.lists().flat_map(|list| {
            let key = runs[list.run as usize].0;
            let entry = list.entry;
            let blocks = list.blocks;
            list.by_units().map(move |(units, queries)| {
                ((key, entry.offset, entry.df, entry.bytes, blocks, units), queries)
            })
        });
        let mut visits: Vec<(Visit, u32)> = visits.collect();
        visits.sort_unstable();
        let queries = demand.queries;
        let without_answer = demand.without_answer;
        let runs = runs.iter().map(|(key, _)| *key).collect();
        counted.visits = Visits { k, runs, queries, without_answer, visits };
        replace_json(&log.kept, &counted)?;
    }
    Ok(counted)
}

struct DayWindow {
    first: Date,
    last: Date,
    days: u32,
}

impl DayWindow {
    fn begin(keys: &LogKeys, last: Date) -> Self {
        let back = Span::new().days(i64::from(keys.window.min(1_000_000)) - 1);
        let first = last.checked_sub(back).unwrap_or(Date::MIN);
        Self { first, last, days: keys.window }
    }

    fn demand(
        &self,
        rebuild: &Rebuild<'_>,
        snapshot: &Snapshot,
        logs: Vec<(Date, CountedLog)>,
        counts: &mut LogCounts,
    ) -> Result<Demand, RebuildError> {
        let mut queries = Vec::new();
        let mut visits = Vec::new();
        let mut answered = 0;
        for (day, log) in logs {
            answered += log.visits.queries * u64::from(day >= self.first);
            queries.push((day, log.queries));
            visits.push((day, log.visits.visits));
        }
        let asked = Arc::new(Mutex::new((0u64, 0u64, 0u64)));
        let told = asked.clone();
        self.slide(rebuild, queries, move |changes: Vec<Change<String>>| {
            let (all, distinct, changed) = &mut *lock(&told);
            *changed = changes.len() as u64;
            for change in changes {
                *all = *all + change.now - change.before;
                *distinct += u64::from(change.before == 0);
                *distinct -= u64::from(change.now == 0);
            }
        })?;
        (counts.queries, counts.distinct, counts.changed) = *lock(&asked);
        let visited = Arc::new(Mutex::new(HashMap::<Visit, u64>::new()));
        let told = visited.clone();
        self.slide(rebuild, visits, move |changes: Vec<Change<Visit>>| {
            let mut visited = lock(&told);
            for Change { key, now, .. } in changes {
                match now {
                    0 => _ = visited.remove(&key),
                    now => _ = visited.insert(key, now),
                }
            }
        })?;
        let generation = snapshot.generation();
        let manifest = generation.manifest();
        let folder = generation.path();
        let places: HashMap<u64, u32> = (0..manifest.runs.len())
            .map(|run| (run_key(manifest, folder, run), run as u32))
            .collect();
        let mut demand = Demand::new(manifest.settings.block_size as usize);
        demand.queries = answered;
        for (&visit, &queries) in &*lock(&visited) {
            let (key, offset, df, bytes, blocks, units) = visit;
            // The run is gone from the index.
            let Some(&run) = places.get(&key) else { continue };
            let entry = TermEntry { df, bytes, offset, ..TermEntry::default() };
            let queries = u32::try_from(queries).unwrap_or(u32::MAX);
            demand.add_units(run, entry, blocks as usize, units as usize, queries);
        }
        Ok(demand)
    }

    /// Slides the window over the counts of logs, sorted by day, to its last day; `tell` gets the
    /// changes of each day.
    fn slide<K: FrequencyKey + Send>(
        &self,
        rebuild: &Rebuild<'_>,
        logs: Vec<(Date, Day<K>)>,
        mut tell: impl FnMut(Vec<Change<K>>) + Send + 'static,
    ) -> Result<(), RebuildError> {
        let Some(&(start, _)) = logs.first() else { return Ok(()) };
        let number = |day: Date| {
            let days = start.until((Unit::Day, day)).map_or(0, |span| span.get_days());
            usize::try_from(days).unwrap_or(0)
        };
        let mut days = Vec::new();
        days.resize_with(number(self.last) + 1, Day::<K>::new);
        for (day, counts) in logs {
            days[number(day)].extend(counts);
        }
        let tell = Box::new(move |_, changes| tell(changes));
        Ok(frequencies(days, self.days, rebuild.workers(), &rebuild.control, tell)?)
    }
}
