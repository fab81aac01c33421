//! Brings an index with shards up to date by several processes, all of it or nothing: process 0
//! tells the others whether the sources have changed, and if so all shards are built again, as
//! `build` does it. Process 0 publishes when all are synced, by one rename: whatever fails or is
//! killed leaves one or the other generation whole.
//!
//! Process 0 keeps the history. What is known of the sources is each file's hash and the format
//! that it was read in.

use super::live::OLDER;
use super::look::FoundChanges;
use super::{FILES, Rebuild, RebuildError};
use crate::build::{self, Note, Peers, PreparedBuild};
use crate::dataflow::together::Meeting;
use crate::index::error::IndexError;
use crate::index::generations::folder::current;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::input::list::InputFile;
use crate::input::splits::InputPlan;
use crate::rebuild::files::{self, Known, read_json, replace_json};
use crate::rebuild::history::{FOLDER, HistoryRecord, InputCounts, RebuildOutcome};
use std::collections::HashMap;
use std::path::PathBuf;

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
    /// rollback holds, which is said at the end.
    fn look_together(
        &self,
        peers: &Peers,
        record: &mut HistoryRecord,
    ) -> Result<(InputPlan, Known, bool), RebuildError> {
        let plan = record.time("list", || self.sources())?;
        build::accept_passed(&self.options()?, &plan)?;
        let mut anew = None;
        let live = match current(&self.job.index)?.map(|path| ShardedManifest::read(&path)) {
            Some(Err(IndexError::Older { .. })) => {
                anew = Some(OLDER);
                None
            }
            Some(Err(newer @ IndexError::Newer { .. })) => return Err(newer.into()),
            _ if self.daemon.from_nothing => None,
            read => read.transpose()?.flatten(),
        };
        let mut before: Known = read_json(&self.job.index.join(FOLDER).join(FILES));
        let live = match live {
            Some(live) if live.shards.len() == peers.hosts.processes() => {
                anew = self.other_settings(&live.settings)?;
                anew.is_none().then_some(live.generation)
            }
            _ => None,
        };
        // What is known of files is of the generation that was made of them.
        let mark = self.mark()?.map(|hold| hold.generation);
        if live == Some(before.generation) {
            record.outcome = RebuildOutcome::Unchanged;
        } else if mark != Some(before.generation) {
            before = Known::default();
        }
        let paths = (0..plan.inputs.len()).filter_map(|input| plan.inputs.path(input));
        let paths = paths.collect::<Vec<_>>();
        let trust = self.job.trust;
        let mut known = record
            .time("hash", || files::look(&paths, trust, &before, |_, _| true, self.workers()))?;
        let way = |(number, input): (usize, InputFile)| {
            let way = plan.inputs.reading(number).way(input.format.name());
            Some((input.path?, way))
        };
        let ways: HashMap<PathBuf, String> =
            plan.inputs.iter().enumerate().filter_map(way).collect();
        for file in &mut known.files {
            file.format = ways.get(&file.path).cloned().unwrap_or_default();
        }
        let held = self.held(&plan, &known, &before)?;
        if let Some(hold) = &held {
            record.outcome = RebuildOutcome::Unchanged;
            record.reason = Some(hold.to_string());
        } else if let Some(reason) = anew {
            record.reason = Some(reason.to_string());
            self.note(&Note::Anew(reason));
        }
        let before =
            before.files.iter().map(|file| (&*file.path, &*file.hash, file.format.clone()));
        record.inputs = FoundChanges::new(&plan, &known, before).counts;
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
