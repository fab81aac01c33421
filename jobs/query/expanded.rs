//! Options of the expansion of queries.

use super::ranking::RankingArgs;
use anyhow::Context;
use millrace::Snapshot;
use millrace::inside::query::{Expanded, Expander, ReadQuery, Rm3};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What is added to queries.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Expansion {
    /// Add terms of the best documents to each query (RM3), such as 10,10,0.5. That is how many
    /// documents, how many terms, and the weight that the terms of the query keep. The texts are
    /// read again from the input files.
    #[arg(long, value_name = "DOCS,TERMS,WEIGHT")]
    rm3: Option<Rm3>,
}

impl Expansion {
    pub(crate) fn is_asked(&self) -> bool {
        self.rm3.is_some()
    }

    /// A stream of queries, expanded by `threads` if that is asked for.
    pub(crate) fn prepare(
        &self,
        ranking: &RankingArgs,
        snapshot: &Arc<Snapshot>,
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
        threads: usize,
    ) -> anyhow::Result<Box<dyn Iterator<Item = ReadQuery> + Send>> {
        let Some(rm3) = self.rm3 else { return Ok(Box::new(queries)) };
        let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        let queries = Expander::new(snapshot.clone(), rm3, ranking.wanted())
            .and_then(|expander| Expanded::new(queries, expander, threads))
            .with_context(|| format!("--rm3: {}", ranking.index.display()))?;
        Ok(Box::new(queries))
    }
}
