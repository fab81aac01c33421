//! Jobs over several processes: meeting, agreeing on settings, and ending together.

use super::control::{Control, JobError};
use crate::cluster::ClusterError;
use crate::cluster::connect::{Call, connect};
use crate::cluster::control_lines::{ControlLines, PeerOutcome};
use crate::cluster::hosts::Hosts;
use crate::cluster::wire::{SealedLine, Secret};
use crate::index::format::VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The name and the value of a setting that all processes must share.
pub type SharedSetting = (String, String);

/// The outcome for the other processes; `message` is the error with its causes.
pub fn outcome_of(error: &JobError, message: impl FnOnce() -> String) -> PeerOutcome {
    match error {
        JobError::OutputClosed => PeerOutcome::Closed,
        JobError::Peer(peer) => PeerOutcome::Peer(peer.clone()),
        _ => PeerOutcome::Failed(message()),
    }
}

#[derive(Clone, Debug)]
pub struct Meeting {
    pub hosts: Hosts,
    /// How long to wait for the others.
    pub wait: Duration,
    pub job: &'static str,
    /// Records of a dataflow cross processes.
    pub data: bool,
    /// Known to the processes of the job alone, if there is one.
    pub secret: Secret,
}

/// How long a process that cannot take part waits for others to tell them.
const REFUSAL: Duration = Duration::from_secs(3);

impl Meeting {
    /// Meets the other processes. The data lines, if there are any, are for
    /// [`run_with_others`](super::workers::run_with_others). `Job` if the job was ended meanwhile.
    pub fn join(
        &self,
        control: &Arc<Control>,
    ) -> Result<(Cluster, Vec<Option<SealedLine>>), JobError> {
        let Self { hosts, wait, job, data, secret } = self.clone();
        let call = Call { hosts: hosts.clone(), job, format: VERSION, data, wait, secret };
        let lines = connect(&call, || control.stopped())
            .map_err(|error| control.take_failure().unwrap_or(error.into()))?;
        let ending = control.clone();
        let end =
            move |why: Option<_>| ending.fail(why.map_or(JobError::OutputClosed, JobError::Peer));
        let links = ControlLines::start(hosts.clone(), lines.control, wait, end)
            .map_err(ClusterError::Start)?;
        let process = hosts.process();
        let processes = hosts.processes();
        Ok((Cluster { links, control: control.clone(), process, processes }, lines.data))
    }

    /// Tells the other processes, as far as they come soon, why this one cannot take part.
    pub fn refuse(&self, control: &Arc<Control>, why: String) {
        let soon = Self { wait: self.wait.min(REFUSAL), ..self.clone() };
        // A process that comes later finds no other.
        if let Ok((cluster, _)) = soon.join(control) {
            cluster.finish(&PeerOutcome::Failed(why));
        }
    }
}

/// Checks that the settings of another process are the same, with the same names.
fn compare(
    process: &str,
    ours: &[SharedSetting],
    theirs: &[SharedSetting],
) -> Result<(), ClusterError> {
    let names = |settings: &[SharedSetting]| {
        settings.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ")
    };
    let process = process.to_string();
    if names(ours) != names(theirs) {
        return Err(ClusterError::Settings { process, theirs: names(theirs), ours: names(ours) });
    }
    match ours.iter().zip(theirs).find(|(here, there)| here != there) {
        None => Ok(()),
        Some(((name, here), (_, there))) => Err(ClusterError::Different {
            process,
            name: name.clone(),
            theirs: there.clone(),
            ours: here.clone(),
        }),
    }
}

pub struct Cluster {
    links: ControlLines,
    control: Arc<Control>,
    pub process: usize,
    pub processes: usize,
}

impl Cluster {
    /// Checks that all processes have the same settings, or `Different`: process 0 compares.
    pub fn agree(&self, ours: &[SharedSetting]) -> Result<(), JobError> {
        if self.process > 0 {
            return self.tell(0, &ours);
        }
        for (process, theirs) in self.hear_others::<Vec<SharedSetting>>()? {
            compare(&self.name(process), ours, &theirs)?;
        }
        Ok(())
    }

    pub(crate) fn tell(&self, process: usize, what: &impl Serialize) -> Result<(), JobError> {
        let message = serde_json::to_vec(what).map_err(ClusterError::Unsayable)?;
        self.tell_bytes(process, &message)
    }

    /// Sends all other processes a message; only process 0 can. Fails when one has gone.
    pub fn tell_others(&self, what: &impl Serialize) -> Result<(), JobError> {
        (1..self.processes).try_for_each(|process| self.tell(process, what))
    }

    /// Waits for a message of process 0. Fails when the job ends, or the message cannot be read.
    pub fn hear_first<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        let (process, message) = self.next()?;
        self.parse(process, &message)
    }

    /// Waits until every other process has sent a message; in their order.
    pub(crate) fn hear_others<T: DeserializeOwned>(&self) -> Result<Vec<(usize, T)>, JobError> {
        let told = self.hear_bytes_of_others()?.into_iter();
        told.map(|(process, message)| Ok((process, self.parse(process, &message)?))).collect()
    }

    /// The same, of messages that are bytes.
    pub(crate) fn hear_bytes_of_others(&self) -> Result<Vec<(usize, Vec<u8>)>, JobError> {
        let mut told = Vec::new();
        while told.len() + 1 < self.processes {
            let (process, message) = self.next()?;
            if told.iter().any(|&(earlier, _)| earlier == process) {
                return Err(ClusterError::OutOfTurn { process: self.name(process) }.into());
            }
            told.push((process, message));
        }
        told.sort_unstable_by_key(|&(process, _)| process);
        Ok(told)
    }

    /// Sends another process bytes that it waits for.
    pub(crate) fn tell_bytes(&self, process: usize, bytes: &[u8]) -> Result<(), JobError> {
        self.links.send(process, bytes).map_err(JobError::Peer)
    }

    /// Waits for bytes that this process has asked another one for; others are an error.
    pub(crate) fn hear_bytes(&self, process: usize) -> Result<Vec<u8>, JobError> {
        match self.next()? {
            (from, bytes) if from == process => Ok(bytes),
            (from, _) => Err(ClusterError::OutOfTurn { process: self.name(from) }.into()),
        }
    }

    /// Sends the others the outcome of this process, and waits a little for them to end too.
    pub fn finish(self, outcome: &PeerOutcome) {
        self.links.finish(outcome);
    }

    fn name(&self, process: usize) -> String {
        self.links.hosts().name(process)
    }

    fn next(&self) -> Result<(usize, Vec<u8>), JobError> {
        self.links.receive(|| self.control.stopped()).ok_or(ClusterError::Left.into())
    }

    fn parse<T: DeserializeOwned>(&self, process: usize, message: &[u8]) -> Result<T, JobError> {
        serde_json::from_slice(message)
            .map_err(|source| ClusterError::Message { process: self.name(process), source }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_compared_whole() {
        let settings = |rows: &[(&str, &str)]| -> Vec<SharedSetting> {
            rows.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let ours = settings(&[("-k", "10"), ("--b", "0.75")]);
        compare("process 1", &ours, &ours).unwrap();
        let other = settings(&[("-k", "10"), ("--b", "0.8")]);
        let error = compare("process 1", &ours, &other).unwrap_err();
        assert!(matches!(&error, ClusterError::Different { name, .. } if name == "--b"), "{error}");
        for wrong in [&ours[..1], &[], &settings(&[("-k", "10"), ("--k1", "0.75")])] {
            let error = compare("process 1", &ours, wrong).unwrap_err();
            assert!(matches!(error, ClusterError::Settings { .. }), "{error}");
        }
    }
}
