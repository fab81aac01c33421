//! Query jobs that follow their index.

use super::ranking::RankingArgs;
use crate::cli::signals;
use millrace::inside::dataflow::{Followed, Follower, Following, Mover};
use millrace::inside::index::Manifest;
use millrace::inside::query::Shard;
use millrace::inside::shown::chain;
use millrace::{QueryService, Snapshot};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Moves what was made for a generation to another, from which queries are answered already.
pub(crate) type Renew<T = Arc<Snapshot>> = Box<dyn FnMut(&T) + Send>;

/// Devices are filled again at once only if that was so long ago.
pub(crate) const QUIET: Duration = Duration::from_secs(10);

/// `renew` in a thread of its own: at once if the time before was `quiet`; else it `tell`s, and
/// renews for the last of what comes once nothing has come for so long.
pub(crate) fn when_quiet<T: Clone + Send + 'static>(
    quiet: Duration,
    mut renew: impl FnMut(&T) + Send + 'static,
    tell: impl Fn() + Send + 'static,
) -> std::io::Result<Renew<T>> {
    let (sender, came) = channel::<T>();
    let work = move || {
        let mut before: Option<Instant> = None;
        while let Ok(first) = came.recv() {
            // What came while devices were filled is passed over except for the last.
            let mut last = came.try_iter().last().unwrap_or(first);
            if before.is_some_and(|before| before.elapsed() < quiet) {
                tell();
                loop {
                    match came.recv_timeout(quiet) {
                        Ok(newer) => last = newer,
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            }
            renew(&last);
            before = Some(Instant::now());
        }
    };
    std::thread::Builder::new().name("renewer".into()).spawn(work)?;
    Ok(Box::new(move |next: &T| _ = sender.send(next.clone())))
}

/// Moves a service that answers from `snapshot` over to every generation that becomes live, and
/// calls `renew` behind each move; SIGHUP lets it look at once.
pub(crate) fn follow(
    ranking: &RankingArgs,
    snapshot: &Arc<Snapshot>,
    mover: Mover,
    renew: Renew,
) -> anyhow::Result<()> {
    let own = ranking.clone();
    let mut open = snapshot.clone();
    let open = move || {
        open = own.verified(open.follow(&own.index)?)?;
        Ok(open.clone())
    };
    let manifest = snapshot.generation().manifest();
    let tell = telling(ranking, manifest.generation, renew);
    let follower = Follower::start(&ranking.index, manifest, mover, Box::new(open), tell)?;
    signals::on_hangup(move || follower.look())
}

/// Says what has become of each generation, behind the `last` one, and calls `renew` for those that
/// queries are answered from.
fn telling(
    ranking: &RankingArgs,
    mut last: u32,
    mut renew: Renew,
) -> impl FnMut(Followed) + Send + 'static {
    let name = ranking.index.display().to_string();
    move |found| match found {
        Followed::Moved(snapshot) => {
            last = snapshot.generation().manifest().generation;
            tell!("{name}: generation {last} is live; the next queries are answered from it");
            renew(&snapshot);
        }
        Followed::Failed(error) => {
            let error = chain(&error);
            say!("millrace: a new generation is not used, queries stay with {last}: {error}");
        }
    }
}

/// Lets the service of a process follow the index together with those of others.
pub(crate) fn follow_together(
    ranking: &RankingArgs,
    snapshot: &Snapshot,
    shard: Shard,
    service: QueryService,
    renew: Renew,
) -> anyhow::Result<QueryService> {
    let (own, scoring) = (ranking.clone(), ranking.scoring()?);
    let open = move |manifest: &Manifest| {
        let opened = shard.open(&own.index, manifest, scoring.clone(), &own.docids.0)?;
        own.verified(opened)
    };
    let manifest = snapshot.generation().whole_manifest();
    let tell = telling(ranking, manifest.generation, renew);
    let (service, mover) = service.following(Following::new(open, tell));
    if shard.process == 0 {
        let processes = shard.processes;
        let follower = Follower::announce(&ranking.index, manifest, processes, mover)?;
        signals::on_hangup(move || follower.look())?;
    }
    Ok(service)
}

/// Reports every generation that becomes live, where the queries were made for one and stay there.
pub(crate) fn stay(ranking: &RankingArgs, snapshot: &Snapshot) -> anyhow::Result<()> {
    let manifest = snapshot.generation().manifest();
    let name = ranking.index.display().to_string();
    let number = manifest.generation;
    let tell = move || {
        tell!(
            "millrace: {name}: another generation is live; the queries stay with {number} until the job is started again"
        );
    };
    let follower = Follower::only_tell(&ranking.index, manifest, tell)?;
    signals::on_hangup(move || follower.look())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_filled_once_generations_have_stopped_to_come() {
        let quiet = Duration::from_millis(300);
        let (did, done) = channel();
        let told = did.clone();
        let renew = move |number: &u32| _ = did.send(*number);
        let mut renew = when_quiet(quiet, renew, move || _ = told.send(0)).unwrap();
        let next = || done.recv_timeout(Duration::from_secs(60)).unwrap();
        renew(&1);
        assert_eq!(next(), 1, "at once");
        let began = Instant::now();
        (2..12).for_each(|number| {
            renew(&number);
            std::thread::sleep(quiet / 10);
        });
        assert_eq!((next(), next()), (0, 11), "told, and the last alone");
        assert!(began.elapsed() >= quiet, "not before it was quiet");
        std::thread::sleep(2 * quiet);
        renew(&12);
        assert_eq!(next(), 12, "at once again");
    }
}
