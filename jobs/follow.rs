//! A query job follows its index.

use crate::query::Ranking;
use crate::signals;
use millrace::build::chain;
use millrace::dataflow::follower::{Follower, Found};
use millrace::dataflow::service::Mover;
use millrace::index::generation::Generation;
use millrace::query::snapshot::Snapshot;
use std::sync::{Arc, Mutex, PoisonError};

/// Brings what was made for a generation over to another, from which queries are answered already.
pub(crate) type Renew = Box<dyn FnMut(&Arc<Snapshot>) + Send>;

/// Moves a service that answers from `snapshot` over to every generation that becomes the live one; SIGHUP
/// lets it look at once.
pub(crate) fn follow(
    ranking: &Ranking,
    quiet: bool,
    snapshot: &Snapshot,
    mover: Mover,
) -> anyhow::Result<()> {
    follow_with(ranking, quiet, snapshot, mover, Box::new(|_| {}))
}

/// The same; `renew` is called behind each move.
pub(crate) fn follow_with(
    ranking: &Ranking,
    quiet: bool,
    snapshot: &Snapshot,
    mover: Mover,
    mut renew: Renew,
) -> anyhow::Result<()> {
    let (index, docids, verify) = (ranking.index.clone(), ranking.docids.0.clone(), ranking.verify);
    let (name, scoring) = (index.display().to_string(), ranking.scoring()?);
    let path = index.clone();
    let opened = Arc::new(Mutex::new(None));
    let last_opened = opened.clone();
    let lock = |opened: &Mutex<Option<Arc<Snapshot>>>| {
        opened.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let open = move || {
        let generation = Generation::open(&path, verify)?;
        let snapshot = Snapshot::of_range(generation, scoring, docids.clone())?;
        *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.clone());
        Ok(snapshot)
    };
    let manifest = snapshot.generation().manifest();
    let mut last = manifest.generation;
    let tell = move |found| match found {
        Found::Moved(number) => {
            if !quiet {
                say!("{name}: generation {number} is live; the next queries are answered from it");
            }
            last = number;
            lock(&last_opened).iter().for_each(&mut renew);
        }
        Found::Failed(error) => {
            let error = chain(&error);
            say!("millrace: a new generation is not used, queries stay with {last}: {error}");
        }
    };
    let follower = Follower::start(&index, manifest, mover, Box::new(open), tell)?;
    signals::on_hangup(move || follower.look())
}

/// Says of every generation that becomes the live one that this job does not move over to it, because of
/// `which` queries it answers.
pub(crate) fn stay(
    ranking: &Ranking,
    quiet: bool,
    snapshot: &Snapshot,
    which: &'static str,
) -> anyhow::Result<()> {
    let manifest = snapshot.generation().manifest();
    let (name, number) = (ranking.index.display().to_string(), manifest.generation);
    let tell = move || {
        if !quiet {
            say!(
                "millrace: {name}: another generation is live; {which} stay with {number} until the job is started anew"
            );
        }
    };
    let follower = Follower::only_tell(&ranking.index, manifest, tell)?;
    signals::on_hangup(move || follower.look())
}
