//! Query jobs of several processes, each with a shard of the index.

use super::follow::{Renew, follow_together};
use super::input::{has_words, telling};
use super::{BATCH, QueryJob, totals};
use crate::cli::signals;
use crate::cluster::{meeting, refuse, together};
use millrace::inside::cluster::Hosts;
use millrace::inside::dataflow::AnsweredBy;
use millrace::inside::index::Manifest;
use millrace::{Asker, QueryService, Sink, Snapshot};
use std::sync::Arc;
use std::time::Duration;

/// What a file of queries renews.
fn nothing() -> Renew {
    Box::new(|_| {})
}

impl QueryJob<'_> {
    /// Together with other processes, each with a shard.
    pub(super) fn in_processes(&self, hosts: &Hosts) -> anyhow::Result<()> {
        let args = self.args;
        signals::watch(&self.control, Some(Duration::from_secs(3)))?;
        let answers = args.answers(self.measured.as_ref());
        let ask = |queries, snapshot: &Arc<Snapshot>, asker: Asker| {
            let queries = telling(queries, has_words(snapshot.generation()));
            asker.ask_in_background(args.columns.give(queries))?;
            Ok(((), nothing()))
        };
        self.in_shards(hosts, "query", || args.open_queries(), ask, answers)
    }

    /// Runs a service together with those of other processes, each with a shard. The first process
    /// opens what it `begins` with before it meets the others, keeps what comes of that until the
    /// end, and renews it for each generation.
    pub(crate) fn in_shards<Q, G>(
        &self,
        hosts: &Hosts,
        name: &'static str,
        open: impl FnOnce() -> anyhow::Result<Q>,
        begin: impl FnOnce(Q, &Arc<Snapshot>, Asker) -> anyhow::Result<(G, Renew)>,
        answers: Sink,
    ) -> anyhow::Result<()> {
        let Self { args, control, workers, model, .. } = self;
        // Fails if some are asked for.
        self.devices()?;
        let early = || -> anyhow::Result<_> {
            if hosts.process() > 0 {
                return Ok(None);
            }
            // An error here need not wait for the others.
            Manifest::live_for(&args.ranking.index, hosts.processes())?;
            Ok(Some(open()?))
        };
        let meeting = meeting(hosts.clone(), &args.workers.together, name, true);
        let opened = match early() {
            Ok(opened) => opened,
            Err(error) => return Err(refuse(meeting, control, error)),
        };
        let measured = self.measured.as_ref();
        together(meeting?, control, |cluster, sockets| {
            cluster.agree(&args.alike(*workers))?;
            let (snapshot, shard) = args.ranking.open_shard(cluster)?;
            // Messages cost less if more go together.
            let batch = BATCH.saturating_mul(hosts.processes().try_into()?);
            let options = args.options(*workers, *model, &self.refused, batch);
            args.columns.check(&snapshot)?;
            let (service, asker) = QueryService::of_shard(snapshot.clone(), shard, options);
            let begun = opened.map(|opened| begin(opened, &snapshot, asker)).transpose()?;
            let (begun, renew) = begun.unzip();
            let renew = renew.unwrap_or_else(nothing);
            let service = follow_together(&args.ranking, &snapshot, shard, service, renew)?;
            drop(snapshot);
            let service = service.with_control(control.clone());
            let sockets = std::mem::take(sockets);
            let report = service.run_with_others(answers, hosts, sockets)?;
            drop(begun);
            totals(args, &report, AnsweredBy::default(), measured)
        })
    }
}
