//! What do jobs over several processes have in common: coming together, agreeing on settings, and
//! ending together.

use crate::args::Workers;
use anyhow::{Context, bail};
use millrace::cluster::connect::{Call, connect};
use millrace::cluster::hosts::Hosts;
use millrace::cluster::line::SealedLine;
use millrace::cluster::links::{Links, Outcome};
use millrace::cluster::seal::Secret;
use millrace::dataflow::control::{Control, JobError};
use millrace::index::format::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The other processes of this job.
pub(crate) struct Cluster {
    links: Links,
    control: Arc<Control>,
    /// The number of this process.
    pub(crate) process: usize,
    /// Processes of the job.
    pub(crate) processes: usize,
}

/// A setting that all processes have to have alike: an option, and its value.
pub(crate) type Setting = (String, String);

/// Comes together with the other processes, does `work`, and tells them how it ended. `work` is also
/// given the data lines, if the job asked for them.
pub(crate) fn together<T>(
    (hosts, workers): (Hosts, &Workers),
    (job, data): (&'static str, bool),
    control: &Arc<Control>,
    work: impl FnOnce(&Cluster, Vec<Option<SealedLine>>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let waiting = (workers.wait(), workers.secret()?);
    come_together(hosts, waiting, (job, data), control, work)
}

/// Tells the other processes, as far as they come soon, that this one cannot take part; returns why.
pub(crate) fn refuse(
    (hosts, workers): (Hosts, &Workers),
    (job, data): (&'static str, bool),
    control: &Arc<Control>,
    error: anyhow::Error,
) -> anyhow::Error {
    let Ok(secret) = workers.secret() else { return error };
    let waiting = (workers.wait().min(REFUSAL), secret);
    let text = format!("{error:#}");
    // Whoever does not come learns it when nobody answers.
    _ = come_together(hosts, waiting, (job, data), control, |_, _| -> anyhow::Result<()> {
        bail!(text)
    });
    error
}

/// How long a process that cannot take part waits to tell it.
const REFUSAL: Duration = Duration::from_secs(3);

fn come_together<T>(
    hosts: Hosts,
    (wait, secret): (Duration, Secret),
    (job, data): (&'static str, bool),
    control: &Arc<Control>,
    work: impl FnOnce(&Cluster, Vec<Option<SealedLine>>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let call = Call { hosts: hosts.clone(), job, format: VERSION, data, wait, secret };
    let lines =
        connect(&call, || control.stopped()).map_err(|error| reason(control, error.into()))?;
    let ending = control.clone();
    let links = Links::start(hosts.clone(), lines.control, move |why| {
        ending.fail(why.map_or(JobError::OutputClosed, JobError::Peer));
        millrace::index::storage::stop();
    })
    .context("preparing the connections to the other processes")?;
    let (process, processes) = (hosts.process(), hosts.processes());
    let cluster = Cluster { links, control: control.clone(), process, processes };
    let done = work(&cluster, lines.data).map_err(|error| reason(control, error));
    let outcome = match &done {
        Ok(_) => Outcome::Done,
        Err(error) => match error.downcast_ref() {
            Some(JobError::OutputClosed) => Outcome::Closed,
            Some(JobError::Peer(peer)) => Outcome::Peer(peer.clone()),
            _ => Outcome::Failed(format!("{error:#}")),
        },
    };
    cluster.links.finish(&outcome);
    done
}

/// What made the job end: what `control` knows comes before what followed from it.
fn reason(control: &Control, error: anyhow::Error) -> anyhow::Error {
    control.take_failure().map_or(error, anyhow::Error::from)
}

impl Cluster {
    /// Checks that all processes have the same settings: process 0 compares.
    pub(crate) fn agree(&self, ours: &[Setting]) -> anyhow::Result<()> {
        if self.process > 0 {
            return self.tell(0, &ours);
        }
        for (process, theirs) in self.hear_others::<Vec<Setting>>()? {
            let other = self.links.hosts().name(process);
            let names = |settings: &[Setting]| -> Vec<String> {
                settings.iter().map(|(name, _)| name.clone()).collect()
            };
            let (here, there) = (names(ours), names(&theirs));
            if here != there {
                bail!(
                    "{other} has the settings {}, process 0 {}: install the same build of millrace everywhere",
                    there.join(" "),
                    here.join(" ")
                );
            }
            for ((name, here), (_, there)) in ours.iter().zip(&theirs) {
                if here != there {
                    bail!(
                        "{other} has {name} {there}, process 0 {here}: start all processes of a job alike"
                    );
                }
            }
        }
        Ok(())
    }

    /// Tells another process something.
    pub(crate) fn tell(&self, process: usize, what: &impl Serialize) -> anyhow::Result<()> {
        self.tell_bytes(process, &serde_json::to_vec(what)?)
    }

    /// Tells all other processes something; only process 0 can.
    pub(crate) fn tell_others(&self, what: &impl Serialize) -> anyhow::Result<()> {
        (1..self.processes).try_for_each(|process| self.tell(process, what))
    }

    /// Waits for what process 0 tells.
    pub(crate) fn hear_first<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        let (process, message) = self.next()?;
        self.parse(process, &message)
    }

    /// Waits until every other process has told something; in their order.
    pub(crate) fn hear_others<T: DeserializeOwned>(&self) -> anyhow::Result<Vec<(usize, T)>> {
        let mut told = Vec::new();
        while told.len() + 1 < self.processes {
            let (process, message) = self.next()?;
            if told.iter().any(|&(earlier, _)| earlier == process) {
                bail!("{} says two things at once", self.links.hosts().name(process));
            }
            told.push((process, self.parse(process, &message)?));
        }
        told.sort_unstable_by_key(|&(process, _)| process);
        Ok(told)
    }

    /// Sends another process bytes that it waits for.
    pub(crate) fn tell_bytes(&self, process: usize, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.links.send(process, bytes).map_err(JobError::Peer)?)
    }

    /// Waits for bytes that this process has asked another one for, and no others meanwhile.
    pub(crate) fn hear_bytes(&self, process: usize) -> anyhow::Result<Vec<u8>> {
        match self.next()? {
            (from, bytes) if from == process => Ok(bytes),
            (from, _) => bail!("{} speaks out of turn", self.links.hosts().name(from)),
        }
    }

    fn next(&self) -> anyhow::Result<(usize, Vec<u8>)> {
        let message = self.links.receive(|| self.control.stopped());
        message.context("the other processes ended before this one")
    }

    fn parse<T: DeserializeOwned>(&self, process: usize, message: &[u8]) -> anyhow::Result<T> {
        serde_json::from_slice(message)
            .with_context(|| format!("a message of {}", self.links.hosts().name(process)))
    }
}
