//! How much is each document worth by the links that lead to it? Where the job file asks for it, a
//! rebuild publishes the generation with the PageRanks of its documents as static scores, and
//! leaves them in `INDEX/rebuild/ranks.tsv` too: a line for each document in the order of docids,
//! with its name, its rank (all add up to 1), and the rank that the next computation begins with,
//! which makes few rounds of few changes.
//!
//! The first line says what the ranks are of; where that is what they would be of, nothing is
//! computed. It is written last: a job that is killed before computes again.
//!
//! Memory: 16 bytes a link; 60 bytes a document, and 8 for each worker.

use super::links::Found;
use super::look::{Live, deletions};
use super::{Rebuild, RebuildError};
use crate::dataflow::rebuild::table::name_hash;
use crate::fault;
use crate::index::documents::Documents;
use crate::index::format::generation_name;
use crate::index::generations::folder::{IndexLock, current};
use crate::index::rerank::publish_ranks;
use crate::rebuild::history::{FOLDER, RankHistory};
use crate::rebuild::job_file::PageRankKeys;
use crate::rebuild::nodes::Nodes;
use crate::score::graph::Graph;
use crate::score::pagerank::{RankSettings, Ranks, pagerank};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

/// The file of ranks, in the folder of the history.
const RANKS: &str = "ranks.tsv";

/// Computes the ranks of the documents of a generation by these `links`, if those that are there
/// are of something else, and publishes them. Returns the number of the generation that has them.
pub(super) fn rank(
    rebuild: &Rebuild<'_>,
    live: Live,
    links: &Found,
    keys: &PageRankKeys,
) -> Result<Option<(RankHistory, u32)>, RebuildError> {
    let path = rebuild.job.index.join(FOLDER).join(RANKS);
    let of = of(links, keys);
    let before = Before::read(&path);
    if before.head == head(&live, &of) {
        return Ok(None);
    }
    let documents = Documents::open(&live.path, &live.manifest)?;
    let (mut nodes, mut first) = (Nodes::default(), Vec::new());
    for_each(&live, &documents, |_, name| {
        let name = name_hash(name);
        // Links of a name lead to the first document of it.
        nodes.push(name);
        first.push(before.rank(name));
        Ok(())
    })?;
    drop(before);
    let workers = rebuild.workers();
    let (found, passed_over) = links.read(&nodes, workers)?;
    drop(nodes);
    let graph = Graph::new(first.len() as u32, found, workers);
    let asked = RankSettings { damping: keys.damping, tolerance: keys.tolerance };
    let ranks = pagerank(&graph, asked, first, workers, || rebuild.control.stop().check())?;
    let live = publish(rebuild, live, &documents, &ranks)?;
    let mut found = ranks.ranks.iter().copied().zip(ranks.raw.iter().copied());
    let next = |_: &[u8]| found.next().expect("there is a rank for each document");
    write(&path, &head(&live, &of), &live, &documents, next)?;
    let counts = RankHistory {
        documents: u64::from(graph.nodes()),
        links: graph.links(),
        passed_over,
        rounds: ranks.rounds,
    };
    Ok(Some((counts, live.manifest.generation)))
}

/// Publishes a generation once more, with ranks.
fn publish(
    rebuild: &Rebuild<'_>,
    live: Live,
    documents: &Documents,
    ranks: &Ranks,
) -> Result<Live, RebuildError> {
    let index = &rebuild.job.index;
    let mut all = vec![0.0; documents.len() as usize];
    let mut found = ranks.ranks.iter();
    for_each(&live, documents, |docid, _| {
        all[docid as usize] = *found.next().expect("there is a rank for each document") as f32;
        Ok(())
    })?;
    let lock = IndexLock::acquire(index)?;
    if current(index)?.as_deref() != Some(&*live.path) {
        return Err(RebuildError::Replaced);
    }
    let who = (&*rebuild.command, rebuild.workers() as u32);
    let published = publish_ranks(&lock, &live.path, &live.manifest, &all, who);
    if published.is_err() {
        // What cannot be removed now is removed by the next job.
        _ = lock.abandon(Some(&live.path));
    }
    let manifest = published?;
    Ok(Live { path: index.join(generation_name(manifest.generation)), manifest })
}

/// What ranks are of, and of which generation.
fn head(live: &Live, of: &str) -> String {
    let (generation, created) = (live.manifest.generation, live.manifest.created);
    format!("# generation {generation} of {created}, {of}")
}

/// What ranks are of, whatever the generation is.
fn of(links: &Found, keys: &PageRankKeys) -> String {
    let PageRankKeys { damping, tolerance } = keys;
    let hash = &links.hash;
    format!("links {hash}, damping {damping}, tolerance {tolerance}, Power")
}

#[derive(Default)]
struct Before {
    head: String,
    nodes: Nodes,
    /// Of each node.
    ranks: Vec<f64>,
}

impl Before {
    /// Reads the file. It may be anything: ranks to begin with may be any positive numbers.
    fn read(path: &Path) -> Self {
        let mut before = Self::default();
        let Ok(file) = File::open(path) else { return before };
        let mut lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        before.head = String::from_utf8_lossy(&lines.next().unwrap_or_default()).into_owned();
        for line in lines {
            let mut fields = line.rsplitn(3, |&byte| byte == b'\t');
            let raw = fields.next().and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
            let raw = raw.filter(|raw: &f64| raw.is_finite() && *raw > 0.0);
            if let (Some(raw), Some(_), Some(name)) = (raw, fields.next(), fields.next()) {
                before.nodes.push(name_hash(name));
                before.ranks.push(raw);
            }
        }
        before
    }

    /// What the computation begins with for a document of this name.
    fn rank(&self, name: u128) -> f64 {
        self.nodes.get(name).map_or(1.0, |node| self.ranks[node as usize])
    }
}

/// Calls `take` with docid and name of each document, in the order of docids, without deleted ones.
fn for_each(
    live: &Live,
    documents: &Documents,
    mut take: impl FnMut(u32, &[u8]) -> io::Result<()>,
) -> Result<(), RebuildError> {
    for (run, of_run) in live.manifest.runs.iter().zip(documents.runs()) {
        let deleted = deletions(live, run)?;
        for docid in (0..of_run.len()).filter(|&docid| !deleted.contains(docid)) {
            let name = of_run.name(docid).unwrap_or_default();
            take(run.first_docid + docid, name).map_err(RebuildError::io(&live.path))?;
        }
    }
    Ok(())
}

/// Brings the file of ranks, if there is one, into the order of a generation whose documents were
/// numbered anew since it was written; nothing else of them has changed.
pub(super) fn renumber(rebuild: &Rebuild<'_>, live: &Live) -> Result<(), RebuildError> {
    let path = rebuild.job.index.join(FOLDER).join(RANKS);
    let before = Before::read(&path);
    let Some((_, of)) = before.head.split_once(", ") else { return Ok(()) };
    let documents = Documents::open(&live.path, &live.manifest)?;
    let raw = |name: &[u8]| before.rank(name_hash(&shown(name)));
    let mut sum = 0.0;
    for_each(live, &documents, |_, name| {
        sum += raw(name);
        Ok(())
    })?;
    write(&path, &head(live, of), live, &documents, |name| (raw(name) / sum, raw(name)))
}

/// A name as the file has it: white space would look like the end of a field or a line.
fn shown(name: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| if matches!(byte, b'\t' | b'\n' | b'\r') { b' ' } else { *byte };
    name.iter().map(blank).collect()
}

/// Replaces the file of ranks; `of_name` gives the rank of each document, and what the next
/// computation begins with.
fn write(
    path: &Path,
    head: &str,
    live: &Live,
    documents: &Documents,
    mut of_name: impl FnMut(&[u8]) -> (f64, f64),
) -> Result<(), RebuildError> {
    let next = path.with_extension("tmp");
    let error = RebuildError::io(&next);
    fault::storage().map_err(error)?;
    let mut file = BufWriter::with_capacity(1 << 18, File::create(&next).map_err(error)?);
    writeln!(file, "{head}").map_err(error)?;
    for_each(live, documents, |_, name| {
        let (rank, raw) = of_name(name);
        file.write_all(&shown(name))?;
        writeln!(file, "\t{rank}\t{raw}")
    })?;
    file.into_inner().map_err(|error| error.into_error()).map_err(error)?;
    let renamed = fault::storage().and_then(|_| fs::rename(&next, path));
    renamed.map_err(RebuildError::io(path))
}
