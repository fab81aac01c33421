//! Brings an index of several processes up to date by these, all of it or nothing: process 0 tells
//! the others whether the sources have changed, and if so all is built again, as `build` does it.
//! Process 0 publishes when all are synced, by one rename: whatever fails or is killed leaves one
//! or the other generation whole. Process 0 keeps the history.

use super::live::{OLDER, live};
use super::look::FoundChanges;
use super::{FILES, Rebuild, RebuildError};
use crate::build::{self, Note, Peers, PreparedBuild};
use crate::dataflow::together::Meeting;
use crate::index::error::IndexError;
use crate::index::format::VERSION;
use crate::input::list::InputReading;
use crate::input::splits::InputPlan;
use crate::rebuild::files::{self, Known, read_json, replace_json};
use crate::rebuild::history::{FOLDER, HistoryRecord, InputCounts, RebuildOutcome};

impl Rebuild<'_> {
    /// Takes part in a rebuild of several processes; process 0 gives the record of it.
    pub(super) fn together(
        &self,
        peers: &Peers,
        lead: Option<&mut HistoryRecord>,
    ) -> Result<(), RebuildError> {
        let Some(record) = lead else {
            let plan = self.sources().map_err(|error| self.refuse(peers, error))?;
            return self.build_with(peers, plan, false).map(drop);
        };
        let looked = self.look_together(peers, record);
        let (plan, known, is_held) = looked.map_err(|error| self.refuse(peers, error))?;
        let InputCounts { changed, added, removed, .. } = record.inputs;
        let is_live = record.outcome == RebuildOutcome::Unchanged;
        let wants = !is_held && (!is_live || changed + added + removed > 0);
        let report = record.time("build", || self.build_with(peers, plan, wants))?;
        if !wants && !is_held {
            self.lift()?;
        }
        if let Some(generation) = report {
            record.outcome = RebuildOutcome::Published;
            let known = Known { generation, ..known };
            replace_json(&self.job.index.join(FOLDER).join(FILES), &known)?;
        }
        Ok(())
    }

    /// Compares what there is with what the live generation was built from. The outcome is
    /// `Unchanged` if there is a live generation of this many processes and such settings, or if a
    /// rollback holds, which is told at last.
    fn look_together(
        &self,
        peers: &Peers,
        record: &mut HistoryRecord,
    ) -> Result<(InputPlan, Known, bool), RebuildError> {
        let plan = record.time("list", || self.sources())?;
        build::accept_passed(&self.options()?, &plan)?;
        let mut anew = None;
        let live = match record.time("open", || live(&self.job.index)) {
            Err(newer @ RebuildError::Index(IndexError::Newer { .. })) => return Err(newer),
            _ if self.daemon.from_nothing => None,
            live => live?,
        };
        let processes = peers.hosts.processes();
        let live = live.filter(|live| match live.manifest.format == VERSION {
            true => live.manifest.is_for(processes),
            false => {
                anew = Some(OLDER);
                false
            }
        });
        let mut before: Known = read_json(&self.job.index.join(FOLDER).join(FILES));
        let mark = self.mark()?.map(|hold| hold.generation);
        let of_live = live.as_ref().map(|live| live.manifest.generation);
        if ![of_live, mark].contains(&Some(before.generation)) {
            before = Known::default();
        }
        let paths = (0..plan.inputs.len()).filter_map(|input| plan.inputs.path(input));
        let paths = paths.collect::<Vec<_>>();
        let trust = self.job.trust;
        let known = record
            .time("hash", || files::look(&paths, trust, &before, |_, _| true, self.workers()))?;
        if let Some(live) = &live {
            anew = self.other_settings(&live.manifest.settings)?;
        }
        let live = live.filter(|_| anew.is_none());
        if live.is_some() {
            record.outcome = RebuildOutcome::Unchanged;
        }
        let held = self.held(&plan, &known)?;
        if let Some(hold) = &held {
            record.outcome = RebuildOutcome::Unchanged;
            record.reason = Some(hold.to_string());
        } else if let Some(reason) = anew {
            record.reason = Some(reason.to_string());
            self.note(&Note::Anew(reason));
        }
        let inputs = live.iter().flat_map(|live| &live.inputs).map(InputReading::told_apart);
        record.inputs = FoundChanges::new(&plan, &known, inputs).counts;
        Ok((plan, known, held.is_some()))
    }

    /// Builds if process 0 wants to, and returns the number of the generation.
    fn build_with(
        &self,
        peers: &Peers,
        plan: InputPlan,
        wants: bool,
    ) -> Result<Option<u32>, RebuildError> {
        let mut options = self.options()?;
        options.input = build::Input::Plan(Box::new(plan));
        options.peers = Some(peers.clone());
        let report = PreparedBuild::new(options)?.run_if(wants)?;
        Ok(report.map(|report| report.generation))
    }

    fn refuse(&self, peers: &Peers, error: RebuildError) -> RebuildError {
        let Peers { hosts, wait, secret } = peers.clone();
        let meeting = Meeting { hosts, wait, job: "build", data: false, secret };
        meeting.refuse(&self.control, error.chain());
        error
    }
}
