//! Jobs of the command line over several processes.

use crate::cli::args::Together;
use millrace::Control;
use millrace::inside::cluster::{Hosts, PeerOutcome, SealedLine};
pub(crate) use millrace::inside::dataflow::{Cluster, SharedSetting};
use millrace::inside::dataflow::{Meeting, outcome_of};
use std::sync::Arc;

/// Where the processes of a job meet; `data` lines are made if the job asks for them.
pub(crate) fn meeting(
    hosts: Hosts,
    of: &Together,
    job: &'static str,
    data: bool,
) -> anyhow::Result<Meeting> {
    Ok(Meeting { hosts, wait: of.wait(), job, data, secret: of.secret()? })
}

/// Meets the other processes, does `work`, and sends them its outcome. `work` may take the data
/// lines, if the job asked for them; those that it leaves are closed after that, for the others
/// would report a closed line as the reason.
pub(crate) fn together<T>(
    meeting: Meeting,
    control: &Arc<Control>,
    work: impl FnOnce(&Cluster, &mut Vec<Option<SealedLine>>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (cluster, mut lines) = meeting.join(control)?;
    let done = work(&cluster, &mut lines).map_err(|error| {
        // The control's failure comes before what followed from it.
        control.take_failure().map_or(error, anyhow::Error::from)
    });
    let outcome = match &done {
        Ok(_) => PeerOutcome::Done,
        Err(error) => match error.downcast_ref() {
            Some(job) => outcome_of(job, || format!("{error:#}")),
            None => PeerOutcome::Failed(format!("{error:#}")),
        },
    };
    cluster.finish(&outcome);
    done
}

/// Tells the other processes, as far as they come soon, that this one cannot take part; returns
/// why.
pub(crate) fn refuse(
    meeting: anyhow::Result<Meeting>,
    control: &Arc<Control>,
    error: anyhow::Error,
) -> anyhow::Error {
    // Without the secret no process listens.
    if let Ok(meeting) = meeting {
        meeting.refuse(control, format!("{error:#}"));
    }
    error
}
