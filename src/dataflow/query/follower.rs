//! Lets a running service follow its index. A thread watches for another live generation, opens it
//! beside the one that queries are answered from, and moves the service over. The next batch is
//! answered from the new generation, and what is under way from the one that it began with.
//!
//! The memory of a second snapshot is taken while both are open, and postings that are in use stay
//! mapped. A generation that cannot be opened is reported once, and the service stays where it is.

use super::service::Mover;
use crate::crew::spawn;
use crate::index::error::IndexError;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::watch::Watch;
use crate::query::snapshot::Snapshot;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub enum Followed {
    /// The service has moved over to this.
    Moved(Arc<Snapshot>),
    /// Another generation is live, and cannot be opened; or it is unknown which one is live.
    Failed(IndexError),
}

/// Opens the live generation for the service.
pub(crate) type OpenSnapshot = Box<dyn FnMut() -> Result<Arc<Snapshot>, IndexError> + Send>;

/// A thread that follows an index until all copies of this are dropped.
#[derive(Clone, Debug)]
pub struct Follower {
    look: Arc<UnixStream>,
}

impl Follower {
    /// Lets the service of `mover`, which answers from a generation with this `manifest`, follow
    /// the index in the folder `index`, and calls `tell` with each finding.
    pub fn start(
        index: &Path,
        manifest: &Manifest,
        mover: Mover,
        mut open: OpenSnapshot,
        mut tell: impl FnMut(Followed) + Send + 'static,
    ) -> io::Result<Self> {
        let mut manifest = manifest.clone();
        Self::look_out(index, move |watch, again| {
            match watch
                .is_other(&manifest, again)
                .and_then(|other| other.then(&mut open).transpose())
            {
                Ok(None) => {}
                Ok(Some(snapshot)) => {
                    manifest = snapshot.generation().manifest().clone();
                    mover.move_to(snapshot.clone());
                    tell(Followed::Moved(snapshot));
                }
                Err(error) => tell(Followed::Failed(error)),
            }
        })
    }

    /// For a service that cannot move over: `tell` is called once for each live generation other
    /// than that of the `manifest`.
    pub fn only_tell(
        index: &Path,
        manifest: &Manifest,
        mut tell: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let manifest = manifest.clone();
        Self::look_out(index, move |watch, again| {
            if watch.is_other(&manifest, again).is_ok_and(|other| other) {
                tell();
            }
        })
    }

    pub(super) fn look_out(
        index: &Path,
        mut look: impl FnMut(&mut Watch, bool) + Send + 'static,
    ) -> io::Result<Self> {
        let (look_now, mut asked) = UnixStream::pair()?;
        asked.set_nonblocking(true)?;
        let mut watch = Watch::new(index);
        spawn("follower", move || {
            loop {
                watch.wait(asked.as_fd());
                match asked.read(&mut [0; 64]) {
                    // All copies are dropped.
                    Ok(0) => return,
                    read => look(&mut watch, read.is_ok()),
                }
            }
        })?;
        Ok(Self { look: Arc::new(look_now) })
    }

    /// Looks at once, and tries again what could not be opened.
    pub fn look(&self) {
        // The thread ends after the last copy.
        _ = (&*self.look).write(&[1]);
    }
}
