//! The mark of a rollback, which makes it hold: rebuilds do not publish again what was left, until
//! an input or a setting is another one. That generation is kept meanwhile, to be compared with.
//!
//! `INDEX/HELD` is sealed as a manifest is. It holds while `CURRENT` names one of its `live`
//! generations, so that the change of `CURRENT` begins and ends that, wherever a job is killed.

use crate::index::error::IndexError;
use crate::index::files::{plain, storage};
use crate::index::format::HELD;
use crate::index::generations::folder::{IndexLock, current, number_of};
use crate::index::generations::manifest::read::Sealed;
use crate::index::generations::manifest::sealed;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// The newest one that was left.
    pub generation: u32,
    /// In UTC.
    pub since: String,
    /// Those that were made live instead, and merges of them.
    pub live: Vec<u32>,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { generation, since, .. } = self;
        write!(f, "held since {since}, when generation {generation} was rolled back")
    }
}

/// What stands in `HELD`, whether it holds or not.
pub(crate) fn marked(index: &Path) -> Result<Option<Hold>, IndexError> {
    let path = index.join(HELD);
    match plain::read(&path) {
        Err(error) if error.is_not_found() => Ok(None),
        read => Sealed::open(&path, &read?)?.parse().map(Some),
    }
}

/// What holds the live generation of the index in the folder `index`.
pub(crate) fn held(index: &Path) -> Result<Option<Hold>, IndexError> {
    let Some(hold) = marked(index)? else { return Ok(None) };
    let live = current(index)?.as_deref().and_then(number_of);
    Ok(Some(hold).filter(|hold| live.is_some_and(|live| hold.live.contains(&live))))
}

impl IndexLock {
    pub(crate) fn hold(&self, hold: &Hold) -> Result<(), IndexError> {
        self.replace(HELD, &sealed(hold))
    }

    /// Removes the mark, even a damaged one; returns whether there was one.
    pub(crate) fn release(&self) -> Result<bool, IndexError> {
        match storage::remove_file(&self.index().join(HELD)) {
            Err(error) if error.is_not_found() => Ok(false),
            removed => removed.and_then(|()| storage::sync_dir(self.index())).map(|()| true),
        }
    }

    /// Before generation `next` becomes live: what holds the live one holds it too if it has no new
    /// input, and else does not, even if the mark names it for a job that died.
    pub(crate) fn hand_on(&self, next: u32) -> Result<(), IndexError> {
        let held = match held(self.index()) {
            Err(_) if !self.merges() => None,
            held => held?,
        };
        let is_other = |hold: &Hold| hold.live.contains(&next) != self.merges();
        let Some(mut hold) = held.filter(is_other) else { return Ok(()) };
        hold.live.retain(|live| *live != next);
        hold.live.extend(self.merges().then_some(next));
        self.hold(&hold)
    }
}

/// Lets rebuilds publish again; returns whether there was a mark.
pub fn release(index: &Path) -> Result<bool, IndexError> {
    current(index)?.ok_or_else(|| IndexError::NoIndex { path: index.to_path_buf() })?;
    IndexLock::acquire(index)?.release()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::keep::rollback;
    use crate::index::testing::{collection, write_generation};

    /// Publishes a generation, up to the change of `CURRENT` alone if the job is `killed` then.
    fn publish(index: &Path, merges: bool, killed: bool) -> u32 {
        let mut lock = IndexLock::acquire(index).unwrap();
        lock.keep = (!merges).then_some(3);
        lock.remove_debris().unwrap();
        let (number, folder) = lock.next_generation().unwrap();
        write_generation(&folder, number, &collection(7, 3, 30), &[]);
        match killed {
            false => lock.publish(number, Vec::new()).unwrap(),
            true => {
                let kept = lock.kept_before(number).unwrap();
                kept.map_or(Ok(()), |kept| lock.write_kept(&kept)).unwrap();
                lock.hand_on(number).unwrap();
            }
        }
        number
    }

    fn of(index: &Path) -> Option<u32> {
        held(index).unwrap().map(|held| held.generation)
    }

    #[test]
    fn the_change_of_current_begins_and_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        (0..2).for_each(|_| _ = publish(index, false, false));
        rollback(index, None).unwrap();
        assert_eq!(of(index), Some(2));
        // A merge is killed before its generation 3 is live, and a build gets the number.
        assert_eq!((publish(index, true, true), of(index)), (3, Some(2)));
        assert_eq!((publish(index, false, true), of(index)), (3, Some(2)));
        let lock = IndexLock::acquire(index).unwrap();
        lock.stage_current(3).unwrap();
        lock.switch(3, || Ok(())).unwrap();
        assert_eq!((of(index), marked(index).unwrap().is_some()), (None, true));
        lock.remove_debris().unwrap();
        assert!(marked(index).unwrap().is_none());
        drop(lock);
        rollback(index, None).unwrap();
        assert_eq!((publish(index, true, false), of(index)), (4, Some(3)));
        assert!(release(index).unwrap() && !release(index).unwrap());
        // Going forward leaves nothing that is better.
        rollback(index, Some(3)).unwrap();
        rollback(index, Some(4)).unwrap();
        assert_eq!(of(index), None);
        assert!(release(&index.join("none")).is_err() && !index.join("none").exists());
    }

    /// What fails behind the rename, or panics there, is reported with the live generation.
    #[test]
    fn what_follows_a_rename_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), false, false);
        let lock = IndexLock::acquire(folder.path()).unwrap();
        let follows: [fn() -> Result<(), IndexError>; 2] =
            [|| panic!("unexpected error during closedir"), || Err(IndexError::Stopped)];
        for follow in follows {
            lock.stage_current(1).unwrap();
            let error = lock.switch(1, follow).unwrap_err();
            let IndexError::Live { generation: 1, source } = &error else { panic!("{error}") };
            let why = crate::shown::chain(source);
            assert!(why.ends_with("closedir") || why.contains("asked to end"), "{why}");
        }
    }
}
