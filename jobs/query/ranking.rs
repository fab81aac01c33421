//! Options of jobs that rank documents: the index, the algorithm, and the number of hits.

use super::score::Scored;
use crate::Usage;
use crate::cluster::Cluster;
use crate::papers;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use millrace::inside::gpu::ChosenMethod;
use millrace::inside::index::Manifest;
use millrace::inside::query::{Docids, Shard};
use millrace::inside::score::Score;
use millrace::{Generation, IndexError, Mode, Scoring, Snapshot, Syntax, Wanted};
use std::path::PathBuf;
use std::sync::Arc;

/// How queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RankingArgs {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    pub(crate) index: PathBuf,
    /// Greatest number of hits for a query [default: 10; all, with --candidates].
    #[arg(short, value_name = "K", value_parser = parse_hits)]
    pub(crate) k: Option<usize>,
    /// Count all documents that match each query. -k 0 counts alone.
    #[arg(long)]
    pub(crate) count: bool,
    /// Which documents match. or: those with any term. and: those with all terms. and-or: as and,
    /// but as or if fewer than k documents have all terms.
    #[arg(long, default_value = "or", value_name = "or|and|and-or")]
    pub(crate) mode: Mode,
    /// How queries are read. words: as words, whatever stands between them. operators: as words,
    /// +needed, -excluded, AND, OR, NOT, (groups) and word^weight.
    #[arg(long, default_value = "words", value_name = "words|operators")]
    #[arg(value_parser = syntaxes(), hide_possible_values = true)]
    pub(crate) syntax: Syntax,
    #[arg(long, default_value = "auto", value_parser = parse_algorithm, value_name = "NAME")]
    #[arg(help = papers::help_of_algorithms())]
    pub(crate) algorithm: ChosenMethod,
    #[command(flatten)]
    pub(crate) scored: Scored,
    /// Verify the checksums of all postings before the first query.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Only search documents A to B-1, by docid. Either number may be left out. Scores do not
    /// change.
    #[arg(long, default_value = "..", hide_default_value = true, value_name = "A..B")]
    pub(crate) docids: Docids,
}

/// How a text may be read; trees are objects in JSON.
pub(crate) fn syntaxes() -> impl TypedValueParser<Value = Syntax> {
    PossibleValuesParser::new(["words", "operators"]).try_map(|name| name.parse::<Syntax>())
}

pub(crate) fn parse_k(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&k| k > 0).ok_or_else(|| "give a whole number from 1 on".into())
}

fn parse_hits(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "give a whole number from 1 on, or 0 with --count".into())
}

fn parse_algorithm(text: &str) -> Result<ChosenMethod, String> {
    let chosen = ChosenMethod::among(text, papers::ALGORITHMS, papers::METHODS);
    chosen.map_err(|names| format!("give {names}"))
}

impl RankingArgs {
    /// To be searched by the CPU.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<Snapshot>> {
        self.algorithm.without_devices().map_err(Usage::from)?;
        self.open_for_any()
    }

    /// Verifies all postings if that is asked for.
    pub(super) fn verified(&self, snapshot: Arc<Snapshot>) -> Result<Arc<Snapshot>, IndexError> {
        if self.verify {
            snapshot.generation().verify()?;
        }
        Ok(snapshot)
    }

    /// To be searched by any processor.
    pub(crate) fn open_for_any(&self) -> anyhow::Result<Arc<Snapshot>> {
        let scoring = self.scoring()?;
        let generation = Generation::open(&self.index)?;
        let snapshot = Snapshot::of_range(generation, scoring, self.docids.0.clone())?;
        let snapshot = self.verified(snapshot)?;
        if self.algorithm.on_cpu().is_for_global_order() {
            snapshot.check_global()?;
        }
        Ok(snapshot)
    }

    /// The greatest number of hits for a query that does not say it.
    pub(crate) fn k(&self) -> usize {
        self.k.unwrap_or(Wanted::default().k)
    }

    /// Defaults for what queries leave open.
    pub(crate) fn wanted(&self) -> Wanted {
        let algorithm = self.algorithm.on_cpu();
        let &Self { mode, syntax, count, .. } = self;
        Wanted { k: self.k(), mode, algorithm, syntax, count }
    }

    /// Fails if counts are asked for in a form of answers that has no room for them.
    pub(super) fn check_count(&self, format: Option<&str>) -> Result<(), Usage> {
        let has_room = matches!(format, Some("jsonl" | "tsv" | "text"));
        match self.count && !has_room {
            true => Err(Usage("--count goes with --format jsonl, tsv or text".into())),
            false => Ok(()),
        }
    }

    pub(crate) fn scoring(&self) -> anyhow::Result<Scoring> {
        let scoring = self.scored.scoring()?;
        if self.k == Some(0) && !self.count {
            return Err(Usage("-k is a number from 1 on, or 0 with --count".into()).into());
        }
        if self.algorithm.on_cpu().is_for_global_order()
            && (self.mode != Mode::And || !matches!(scoring.score, Score::Wang(_)))
        {
            let name = self.algorithm.name();
            let text = format!("--algorithm {name} goes with --mode and, and with --score wang");
            return Err(Usage(text).into());
        }
        Ok(scoring)
    }

    /// Process 0 says which generation is live.
    pub(super) fn open_shard(&self, cluster: &Cluster) -> anyhow::Result<(Arc<Snapshot>, Shard)> {
        let shard = Shard { process: cluster.process, processes: cluster.processes };
        let manifest = match cluster.process {
            0 => {
                let live = Manifest::live_for(&self.index, cluster.processes)?;
                cluster.tell_others(&live)?;
                live
            }
            _ => cluster.hear_first::<Manifest>()?,
        };
        let snapshot = shard.open(&self.index, &manifest, self.scoring()?, &self.docids.0)?;
        Ok((self.verified(snapshot)?, shard))
    }
}
