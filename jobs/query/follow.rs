//! Query jobs that follow their index.

use super::ranking::RankingArgs;
use crate::cli::signals;
use millrace::Snapshot;
use millrace::inside::dataflow::{Followed, Follower, Mover};
use millrace::inside::shown::chain;
use std::sync::Arc;

/// Moves what was made for a generation to another, from which queries are answered already.
pub(crate) type Renew = Box<dyn FnMut(&Arc<Snapshot>) + Send>;

/// Moves a service that answers from `snapshot` over to every generation that becomes live, and
/// calls `renew` behind each move; SIGHUP lets it look at once.
pub(crate) fn follow(
    ranking: &RankingArgs,
    snapshot: &Arc<Snapshot>,
    mover: Mover,
    mut renew: Renew,
) -> anyhow::Result<()> {
    let name = ranking.index.display().to_string();
    let own = ranking.clone();
    let mut open = snapshot.clone();
    let open = move || {
        open = own.verified(open.follow(&own.index)?)?;
        Ok(open.clone())
    };
    let manifest = snapshot.generation().manifest();
    let mut last = manifest.generation;
    let tell = move |found| match found {
        Followed::Moved(snapshot) => {
            last = snapshot.generation().manifest().generation;
            tell!("{name}: generation {last} is live; the next queries are answered from it");
            renew(&snapshot);
        }
        Followed::Failed(error) => {
            let error = chain(&error);
            say!("millrace: a new generation is not used, queries stay with {last}: {error}");
        }
    };
    let follower = Follower::start(&ranking.index, manifest, mover, Box::new(open), tell)?;
    signals::on_hangup(move || follower.look())
}

/// Reports every generation that becomes live, where the queries were made for one and stay there.
pub(crate) fn stay(ranking: &RankingArgs, snapshot: &Snapshot) -> anyhow::Result<()> {
    let manifest = snapshot.generation().manifest();
    let name = ranking.index.display().to_string();
    let number = manifest.generation;
    let tell = move || {
        tell!(
            "millrace: {name}: another generation is live; the queries stay with {number} until the job is started anew"
        );
    };
    let follower = Follower::only_tell(&ranking.index, manifest, tell)?;
    signals::on_hangup(move || follower.look())
}
