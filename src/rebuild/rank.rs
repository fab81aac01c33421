//! The PageRanks of the documents of a generation, where the job file asks for them: its static
//! scores, and `INDEX/rebuild/ranks.tsv`, a line for each document in the order of docids with its
//! name, its rank (all add up to 1), and the rank that the next computation begins with, which
//! needs few rounds for few changes.
//!
//! The first line says what the ranks are of; where that has not changed, nothing is computed. The
//! file is written when the generation is live: a job that is killed before computes again.
//!
//! Memory: 16 bytes a link and 80 bytes a document.

use super::links::FoundLinks;
use super::live::{Live, for_each_name};
use super::{Rebuild, RebuildError};
use crate::fault;
use crate::index::deletions::live_runs;
use crate::index::documents::name_hash;
use crate::index::generations::draft::Draft;
use crate::index::generations::manifest::RunEntry;
use crate::rebuild::history::{FOLDER, RankHistory};
use crate::rebuild::nodes::Nodes;
use crate::score::graph::Graph;
use crate::score::pagerank::{RankSettings, normalise, pagerank};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

#[derive(Default)]
pub(super) struct RankedPages {
    pub(super) counts: RankHistory,
    nodes: Nodes,
    /// Of each node, what the next computation begins with.
    raw: Vec<f64>,
}

pub(super) fn are_of(rebuild: &Rebuild<'_>, live: &Live, links: &FoundLinks) -> bool {
    let lines = File::open(path(rebuild)).map(|file| BufReader::new(file).lines());
    let first = lines.ok().and_then(|mut lines| lines.next()?.ok());
    first.is_some_and(|first| first == head(live, links))
}

pub(super) fn rank(
    rebuild: &Rebuild<'_>,
    draft: &mut Draft,
    links: &FoundLinks,
) -> Result<RankedPages, RebuildError> {
    let before = RankedPages::read(rebuild);
    let mut nodes = Nodes::default();
    let mut first = Vec::new();
    for_each_name(draft.folder(), &draft.live_runs(), |_, _, name| {
        let name = name_hash(name);
        // Links of a name lead to the first document of it.
        nodes.push(name);
        first.push(before.raw(name));
        Ok(())
    })?;
    drop(before);
    let threads = rebuild.workers();
    let (found, passed_over) = links.read(&nodes, threads)?;
    let graph = Graph::new(first.len() as u32, found, threads);
    let found = pagerank(&graph, links.asked, first, threads, || rebuild.control.stop().check())?;
    let documents = |run: &RunEntry| vec![0.0; run.documents as usize];
    let mut of_runs: Vec<Vec<f32>> = draft.runs().iter().map(documents).collect();
    let mut next = found.ranks.iter();
    for_each_name(draft.folder(), &draft.live_runs(), |run, docid, _| {
        let rank = *next.next().expect("there is a rank for each document");
        of_runs[run][docid as usize] = rank as f32;
        Ok(())
    })?;
    for (run, ranks) in of_runs.iter().enumerate() {
        draft.rank(run, ranks)?;
    }
    let documents = u64::from(graph.nodes());
    let rounds = found.rounds;
    let counts = RankHistory { documents, links: graph.links(), passed_over, rounds };
    Ok(RankedPages { counts, nodes, raw: found.raw })
}

fn path(rebuild: &Rebuild<'_>) -> PathBuf {
    rebuild.job.index.join(FOLDER).join("ranks.tsv")
}

fn head(live: &Live, links: &FoundLinks) -> String {
    let generation = live.manifest.generation;
    let created = &live.manifest.created;
    let RankSettings { damping, tolerance } = links.asked;
    let hash = &links.hash;
    format!(
        "# generation {generation} of {created}, links {hash}, damping {damping}, tolerance {tolerance}, Power"
    )
}

impl RankedPages {
    /// Reads the file, whose ranks to begin with may be any positive numbers.
    fn read(rebuild: &Rebuild<'_>) -> Self {
        let mut before = Self::default();
        let Ok(file) = File::open(path(rebuild)) else { return before };
        for line in BufReader::new(file).split(b'\n').map_while(Result::ok).skip(1) {
            let mut fields = line.rsplitn(3, |&byte| byte == b'\t');
            let raw = fields.next().and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
            let raw = raw.filter(|raw: &f64| raw.is_finite() && *raw > 0.0);
            if let (Some(raw), Some(_), Some(name)) = (raw, fields.next(), fields.next()) {
                before.nodes.push(name_hash(name));
                before.raw.push(raw);
            }
        }
        before
    }

    fn raw(&self, name: u128) -> f64 {
        self.nodes.get(name).map_or(1.0, |node| self.raw[node as usize])
    }

    pub(super) fn write(
        &self,
        rebuild: &Rebuild<'_>,
        live: &Live,
        links: &FoundLinks,
    ) -> Result<(), RebuildError> {
        let path = path(rebuild);
        let runs = &live_runs(&live.path, &live.manifest.runs)?;
        let next = path.with_extension("tmp");
        let error = RebuildError::io(&next);
        let mut ranks = Vec::with_capacity(self.raw.len());
        // Documents may stand in another order than when they were ranked.
        for_each_name(&live.path, runs, |_, _, name| {
            ranks.push(self.raw(name_hash(name)));
            Ok(())
        })?;
        normalise(&mut ranks);
        let mut ranks = ranks.into_iter();
        fault::storage().map_err(error)?;
        let mut file = BufWriter::with_capacity(1 << 18, File::create(&next).map_err(error)?);
        writeln!(file, "{}", head(live, links)).map_err(error)?;
        for_each_name(&live.path, runs, |_, _, name| {
            let rank = ranks.next().unwrap_or_default();
            let raw = self.raw(name_hash(name));
            file.write_all(&shown(name)).map_err(error)?;
            writeln!(file, "\t{rank}\t{raw}").map_err(error)
        })?;
        file.into_inner().map_err(|failed| error(failed.into_error()))?;
        let renamed = fault::storage().and_then(|_| fs::rename(&next, &path));
        renamed.map_err(RebuildError::io(&path))
    }
}

/// A name as a field of the file, without white space.
fn shown(name: &[u8]) -> Vec<u8> {
    let blank = |byte: &u8| if matches!(byte, b'\t' | b'\n' | b'\r') { b' ' } else { *byte };
    name.iter().map(blank).collect()
}
