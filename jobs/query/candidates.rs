//! The option that says which documents are ranked.

use super::ranking::RankingArgs;
use millrace::inside::query::{CandidatesByQuery, ReadQuery};
use millrace::{Rankings, Snapshot};
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CandidateArgs {
    /// Rank the documents that this run has for each query, and no others. Those with a term of the
    /// query come by score, then the others with score 0. All of them, if -k is left out. The CPU
    /// does it.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["mode", "algorithm", "count"])]
    candidates: Option<PathBuf>,
}

impl CandidateArgs {
    pub(crate) fn is_asked(&self) -> bool {
        self.candidates.is_some()
    }

    /// The queries with their candidates, if there are any.
    pub(crate) fn prepare(
        &self,
        ranking: &RankingArgs,
        snapshot: &Snapshot,
        queries: Box<dyn Iterator<Item = ReadQuery> + Send>,
    ) -> anyhow::Result<Box<dyn Iterator<Item = ReadQuery> + Send>> {
        let Some(path) = &self.candidates else { return Ok(queries) };
        let run = Rankings::open(path)?;
        let candidates = CandidatesByQuery::new(snapshot, run.documents())?;
        if let Some(remark) = candidates.remark() {
            say!("{}: {remark}", path.display());
        }
        let k = ranking.k;
        let give = move |mut read: ReadQuery| {
            if let Ok(Ok(query)) = &mut read {
                candidates.give(query, k);
            }
            read
        };
        Ok(Box::new(queries.map(give)))
    }
}
