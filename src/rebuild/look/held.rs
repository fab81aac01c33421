//! Whether a rollback holds: the sources and settings are those of the generation that was left,
//! which is kept meanwhile.

use super::{FoundChanges, Rebuild, RebuildError};
use crate::index::error::IndexError;
use crate::index::format::generation_name;
use crate::index::generations::folder::IndexLock;
use crate::index::generations::held::{Hold, held};
use crate::index::generations::manifest::Manifest;
use crate::index::inputs::InputsFile;
use crate::index::order::DocumentOrder;
use crate::input::list::InputReading;
use crate::input::splits::InputPlan;
use crate::rebuild::files::Known;

impl Rebuild<'_> {
    /// The mark of a rollback, which a rebuild from nothing does not look at.
    pub(in crate::rebuild) fn mark(&self) -> Result<Option<Hold>, IndexError> {
        if self.daemon.from_nothing { Ok(None) } else { held(&self.job.index) }
    }

    /// The mark, if it holds.
    pub(in crate::rebuild) fn held(
        &self,
        plan: &InputPlan,
        known: &Known,
    ) -> Result<Option<Hold>, RebuildError> {
        let Some(hold) = self.mark()? else { return Ok(None) };
        let folder = self.job.index.join(generation_name(hold.generation));
        // What cannot be read cannot be compared: it holds until somebody ends it.
        let Ok(left) = Manifest::read(&folder) else { return Ok(Some(hold)) };
        let order = left.order.as_ref().map(|order| &*order.name);
        let is_other = |asked: &DocumentOrder| order != Some(asked.name());
        let processes = self.daemon.peers.as_ref().map_or(1, |peers| peers.hosts.processes());
        if !left.is_for(processes)
            || self.job.build.order.as_ref().is_some_and(is_other)
            || self.other_settings(&left.settings)?.is_some()
        {
            return Ok(None);
        }
        let inputs = InputsFile::open(&folder, &left)?.all()?;
        let found = FoundChanges::new(plan, known, inputs.iter().map(InputReading::told_apart));
        Ok(Some(hold).filter(|_| found.is_empty()))
    }

    /// Ends a hold whose sources or settings are others now.
    pub(in crate::rebuild) fn lift(&self) -> Result<(), IndexError> {
        let lock = self.mark()?.map(|_| IndexLock::acquire(&self.job.index)).transpose()?;
        lock.map_or(Ok(()), |lock| lock.release().map(drop))
    }
}
