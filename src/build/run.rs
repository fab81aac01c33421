//! Runs a build, from its options to what is published.

use super::devices::on_cpu;
use super::error::BuildError;
use super::generation::{Built, Which, build_generation};
use super::guards::{NewContent, statistics_of};
use super::note::Note;
use super::options::{BuildOptions, OnProgress};
use super::prepare::{Ready, accept_index};
use super::report::BuildReport;
use super::shard;
use crate::index::documents::duplicates::SameName;
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::manifest::summary::Summary;
use crate::settings::SettingError;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A build whose options and input are good, and which has written nothing yet.
pub struct PreparedBuild {
    options: BuildOptions,
    input: Ready,
}

impl PreparedBuild {
    /// Checks the options, lists the input and finds devices. One that takes texts may still be
    /// looked for then, and be missed when the build runs.
    ///
    /// # Errors
    /// `Options`, `Input`, `Devices`, `Thread`. The other processes of the build are told.
    pub fn new(mut options: BuildOptions) -> Result<Self, BuildError> {
        let is_ordered = options.order.is_some() || options.ranks.is_some();
        let is_one = matches!(options.duplicates, SameName::First | SameName::Last);
        if is_one && options.peers.is_some() {
            let why = "the first or last document of a name is found by one process only: build \
                       with one, or take `refuse`";
            return Err(SettingError::value("duplicates", why).into());
        }
        if is_ordered && (options.peers.is_some() || !options.merge) {
            let why = "an order of documents and PageRanks are for an index of one run, built by one \
                       process: merge its runs, or leave them out";
            return Err(SettingError::value("order", why).into());
        }
        let input = match options.peers.clone() {
            None => {
                accept_index(&options)?;
                Ready::new(&mut options, true)?
            }
            Some(peers) => shard::prepare(&mut options, &peers)?,
        };
        Ok(Self { options, input })
    }

    /// Builds and publishes.
    ///
    /// # Errors
    /// See [`build`](super::build).
    pub fn run(self) -> Result<BuildReport, BuildError> {
        match self.options.peers.clone() {
            None => self.alone(),
            Some(peers) => {
                let report = shard::run(self.options, self.input, &peers, None)?;
                Ok(report.expect("nobody was asked whether to build"))
            }
        }
    }

    /// Builds and publishes with the other processes if process 0 `wants` to, whatever others say.
    ///
    /// # Panics
    /// If there are no other processes.
    pub(crate) fn run_if(self, wants: bool) -> Result<Option<BuildReport>, BuildError> {
        let peers = self.options.peers.clone().expect("a build of several processes");
        shard::run(self.options, self.input, &peers, Some(wants))
    }

    fn alone(self) -> Result<BuildReport, BuildError> {
        let Self { mut options, input } = self;
        let began = input.began;
        let is_new = !options.index.exists();
        let lock = IndexLock::acquire(&options.index)?.keeping(options.guards.keep);
        lock.remove_debris()?;
        let before = current(&options.index)?;
        // A build that begins again goes on telling.
        let progress = options.progress.take().map(|tell| Arc::new(Mutex::new(tell)));
        let build = |options: &mut BuildOptions, input| {
            options.progress = progress.clone().map(|tell| {
                let lend = move |snapshot: &_| {
                    tell.lock().unwrap_or_else(PoisonError::into_inner)(snapshot)
                };
                Box::new(lend) as OnProgress
            });
            let result = build_and_publish(options, input, &lock, before.as_deref());
            if result.is_err() {
                // What cannot be removed now is removed by the next build.
                _ = lock.abandon(before.as_deref());
            }
            // A build that is told to end also fails elsewhere; that it was told is the reason.
            result.map_err(|error| options.control.take_failure().map_or(error, BuildError::from))
        };
        let built = match build(&mut options, input) {
            Err(failure) => match on_cpu(&mut options, &failure)? {
                Some(input) => build(&mut options, input)?,
                None => {
                    if is_new && matches!(failure, BuildError::Devices(_)) {
                        // The input was read before anybody knew; nothing is to be seen of that.
                        _ = lock.remove_index();
                    }
                    return Err(failure);
                }
            },
            built => built?,
        };
        Ok(BuildReport::new(&options, &built, None, None, began.elapsed()))
    }
}

fn build_and_publish(
    options: &mut BuildOptions,
    input: Ready,
    lock: &IndexLock,
    before: Option<&Path>,
) -> Result<Built, BuildError> {
    if before.is_some_and(|live| Summary::read(live).is_ok_and(|live| live.is_commit)) {
        options.note(&Note::Anew("what came or went by call since the last build is left out"));
    }
    let (number, directory) = lock.next_generation()?;
    let mut built = build_generation(options, input, number, directory, Which::default())?;
    let statistics = &built.new.manifest.statistics;
    let new = NewContent {
        plan: &built.build.plan.input,
        read_bytes: built.read_bytes,
        documents: statistics.documents,
        tokens: Some(statistics.tokens),
        skipped: &statistics.skipped,
        first_skipped: &built.first_skipped,
    };
    options.guards.check(&new, || before.map(statistics_of).transpose())?;
    if let Some(accept) = options.accept.take() {
        accept(&built.new.manifest).map_err(BuildError::Refused)?;
    }
    lock.publish(number, std::mem::take(&mut built.new.unsynced))?;
    Ok(built)
}
