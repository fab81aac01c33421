//! Watches whether the live generation is another than the one that a job has open. As long as it
//! is not, a look is one question to the file system. Linux tells when a file of the index's folder
//! gets its name, as `CURRENT` does, so that nobody looks in vain or late; elsewhere, and for
//! folders of other machines, of which it does not hear, jobs look again and again.

use crate::index::error::IndexError;
use crate::index::format::CURRENT;
use crate::index::generations::folder::current;
use crate::index::generations::manifest::Manifest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tells one `CURRENT` from another: each generation replaces the file.
type CurrentStamp = (u64, u64, i64, i64);

#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    seen: Option<CurrentStamp>,
    /// Where Linux tells of names, if it does.
    names: Option<OwnedFd>,
}

/// How often a job looks whose system tells of names, and how often others.
const TOLD: Duration = Duration::from_secs(1);
const UNTOLD: Duration = Duration::from_millis(100);

impl Watch {
    pub fn new(index: &Path) -> Self {
        Self { path: index.to_path_buf(), seen: None, names: None }
    }

    /// Waits until it is time for a look: a file in the index's folder got its name, some time has
    /// passed, or something can be read from `asked`. What was told until now counts as heard.
    pub(crate) fn wait(&mut self, asked: BorrowedFd<'_>) {
        let is_first = self.names.is_none();
        // Once more each time: the folder may be another one of the same name.
        let is_told = self.listen().is_ok();
        if is_told && is_first {
            // Nobody has looked since it listens.
            return;
        }
        let every = Timespec::try_from(if is_told { TOLD } else { UNTOLD }).ok();
        let mut ready = vec![PollFd::from_borrowed_fd(asked, PollFlags::IN)];
        ready.extend(self.names.iter().map(|names| PollFd::new(names, PollFlags::IN)));
        _ = poll(&mut ready, every.as_ref());
        // It does not wait; events do not matter one by one.
        if let Some(names) = &self.names {
            while rustix::io::read(names, &mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {}
        }
    }

    #[cfg(target_os = "linux")]
    fn listen(&mut self) -> rustix::io::Result<()> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        if self.names.is_none() {
            self.names = Some(init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?);
        }
        let names = self.names.as_ref().expect("it was just made");
        add_watch(names, &self.path, WatchFlags::MOVED_TO).map(drop)
    }

    #[cfg(not(target_os = "linux"))]
    fn listen(&mut self) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }

    /// Whether the live generation may be another one than `open`; looks at the same one again only
    /// if `again` is set. Compares manifests too, since an index that was removed and built again
    /// has the same numbers.
    pub fn is_other(&mut self, open: &Manifest, again: bool) -> Result<bool, IndexError> {
        // The index is being removed, or built again.
        let Ok(file) = self.path.join(CURRENT).metadata() else { return Ok(false) };
        let stamp = (file.dev(), file.ino(), file.mtime(), file.mtime_nsec());
        if self.seen.replace(stamp) == Some(stamp) && !again {
            return Ok(false);
        }
        let Some(live) = current(&self.path)? else { return Ok(false) };
        match Manifest::read(&live) {
            Ok(manifest) => Ok(manifest != *open),
            // Opening it tells what is wrong with it, or it was replaced meanwhile.
            Err(_) => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};
    use std::os::fd::AsFd;

    #[test]
    fn whoever_waits_is_told_of_a_generation() {
        let folder = tempfile::tempdir().unwrap();
        let (_asks, asked) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut watch = Watch::new(folder.path());
        watch.wait(asked.as_fd());
        // A machine that is busy may be late once, but not each time.
        let is_early = (0..10).any(|seed| {
            build(folder.path(), &collection(seed, 20, 20), &[]);
            let began = std::time::Instant::now();
            watch.wait(asked.as_fd());
            began.elapsed() < TOLD / 2
        });
        assert!(is_early || watch.names.is_none());
        assert!(watch.names.is_some() || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn only_another_generation_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(1, 20, 20), &[]);
        let first = Generation::open(index).unwrap().manifest().clone();
        let mut watch = Watch::new(index);
        assert!(!watch.is_other(&first, false).unwrap());
        assert!(!watch.is_other(&first, true).unwrap());
        build(index, &collection(2, 20, 20), &[]);
        assert!(watch.is_other(&first, false).unwrap());
        assert!(!watch.is_other(&first, false).unwrap());
        assert!(watch.is_other(&first, true).unwrap());
        assert!(Watch::new(index).is_other(&first, false).unwrap());
        // The same number, and another index.
        for entry in std::fs::read_dir(index).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
                .unwrap();
        }
        assert!(!watch.is_other(&first, false).unwrap());
        build(index, &collection(3, 20, 20), &[]);
        assert!(watch.is_other(&first, false).unwrap());
        std::fs::write(index.join(CURRENT), "nonsense").unwrap();
        assert!(watch.is_other(&first, false).is_err());
    }
}
