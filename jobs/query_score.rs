//! By which score are documents ranked?

use crate::Usage;
use millrace::query::snapshot::Snapshot;
use millrace::score::named::Score;
use millrace::score::wang::Wang;

/// What documents are worth.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Scored {
    /// bm25, or wang: BM25 and the PageRanks of the index (docs/query.md).
    #[arg(long, default_value = Score::NAMES[0], value_parser = Score::NAMES, value_name = "bm25|wang")]
    #[arg(hide_possible_values = true)]
    score: String,
    /// The share of PageRank in the score wang, from 0 to 1 (0.3 if left out).
    #[arg(long, value_name = "F")]
    alpha: Option<f64>,
}

impl Scored {
    /// The score.
    pub(crate) fn score(&self) -> Result<Score, Usage> {
        let score = match &*self.score {
            "wang" => Score::Wang(wang(self.alpha)?),
            _ if self.alpha.is_some() => {
                return Err(Usage("--alpha goes with --score wang".into()));
            }
            _ => Score::Bm25,
        };
        Ok(score)
    }

    /// Refuses a score that is not BM25 where nothing else can be answered.
    pub(crate) fn only_bm25(&self, with: &str) -> Result<(), Usage> {
        match self.score()? {
            Score::Bm25 => Ok(()),
            other => Err(Usage(format!("--score {} does not go with {with}", other.name()))),
        }
    }

    /// Says what the index lacks for the score.
    pub(crate) fn remark(&self, snapshot: &Snapshot) {
        let wants_ranks = matches!(self.score(), Ok(Score::Wang(_)));
        if wants_ranks && !snapshot.has_ranks() {
            let index = snapshot.generation().path().display();
            say!(
                "millrace: {index}: no PageRanks: all documents have the same (millrace merge --pagerank FILE)"
            );
        }
    }
}

/// The score `wang` with a share of PageRank that was given.
pub(crate) fn wang(alpha: Option<f64>) -> Result<Wang, Usage> {
    alpha.map_or(Ok(Wang::default()), Wang::new).map_err(|error| Usage(error.to_string()))
}
