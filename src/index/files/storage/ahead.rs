//! How does a large file get its place on the disk before its bytes are known? The system looks for
//! the pages of a file one after the other, and lets one thread at a time write to it: of a file in
//! memory that is two thirds of the time. So a thread asks for the pages of the lists of the first
//! run while documents are read. Where the file system has much more room it asks for all that they
//! may take, elsewhere for less than they are expected to, so that nothing is refused that would
//! have had room; what is not needed is given back.

use super::{Durability, FilledFile, StorageFile};
use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::format::{Kind, run_file, run_name};
use crate::pages;
use rustix::fs::StatVfs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};
use tracing::debug;

const RUN: u32 = 0;
/// So many bytes are asked for at a time; a smaller file is written in no time.
const STEP_BYTES: u64 = 64 << 20;

/// A file system has much room that has so many times the lists.
const MUCH: u64 = 4;

/// Whether the file system of a folder has much room.
fn has_much(folder: &Path, list_bytes: u64) -> bool {
    let free = |there: StatVfs| there.f_bavail.saturating_mul(there.f_frsize);
    rustix::fs::statvfs(folder).is_ok_and(|there| free(there) / MUCH >= list_bytes)
}

/// The thread that asks, which gives the file.
struct Asking {
    steps: Sender<u64>,
    thread: JoinHandle<Option<StorageFile>>,
}

#[derive(Default)]
struct State {
    /// Bytes of the lists so far, and those that were asked for.
    expected: u64,
    asked: u64,
    asking: Option<Asking>,
    /// Whoever writes the file has it, or there is no thread.
    is_over: bool,
}

/// The file of the lists of the first run, while nothing is in it.
pub(crate) struct Ahead {
    directory: PathBuf,
    state: Mutex<State>,
}

impl Ahead {
    /// Of a generation in this folder.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is behind it is whole after any panic.
        lock(&self.state)
    }

    /// Lists of an open run will take about so many bytes more:
    /// [`list_bytes`](crate::order::PieceCounts::list_bytes), of which blocks take three to five
    /// sixths of English text, and all where words are rare.
    pub(crate) fn expect(&self, list_bytes: u64) {
        let mut state = self.state();
        state.expected += list_bytes;
        while !state.is_over
            && state.asked + STEP_BYTES <= state.expected
            && (state.asked + STEP_BYTES <= state.expected / 8 * 5
                || has_much(&self.directory, state.expected))
        {
            if state.asking.is_none() {
                state.asking = self.start();
                state.is_over = state.asking.is_none();
            }
            if let Some(asking) = &state.asking {
                // A thread that has ended could get no more.
                state.is_over = asking.steps.send(state.asked).is_err();
            }
            state.asked += STEP_BYTES;
        }
    }

    /// Creates the file, and asks for its pages, on a thread; nothing if there is none.
    fn start(&self) -> Option<Asking> {
        let (steps, asked) = channel::<u64>();
        let directory = self.directory.clone();
        let ask = move || {
            let name = run_file(&run_name(RUN), Kind::Postings);
            // Whoever writes it creates it then, and says what is wrong.
            let mut file = StorageFile::create(&directory, &name, Durability::Scratch).ok()?;
            for at in asked {
                if let Err(error) = pages::of_file(&file.file, at, STEP_BYTES, false) {
                    // Not every file system knows how, and writing says what it has no room for.
                    debug!(%error, at, "no pages ahead");
                    break;
                }
                file.ahead_bytes = at + STEP_BYTES;
            }
            Some(file)
        };
        let thread = Builder::new().name("pages".into()).spawn(ask).ok()?;
        Some(Asking { steps, thread })
    }

    /// The file of a run, if its pages were asked for; nothing is in it.
    pub(crate) fn take(&self, run: u32) -> Option<StorageFile> {
        if run != RUN {
            return None;
        }
        let mut state = self.state();
        state.is_over = true;
        let Asking { steps, thread } = state.asking.take()?;
        drop(steps);
        thread.join().ok()?
    }

    /// The file in which the lists of a run are put by those who know their places, whether its
    /// pages were asked for or not.
    pub(crate) fn lists(&self, run: u32) -> Result<FilledFile, IndexError> {
        let file = match self.take(run) {
            Some(file) => file,
            None => {
                let name = run_file(&run_name(run), Kind::Postings);
                StorageFile::create(&self.directory, &name, Durability::Scratch)?
            }
        };
        FilledFile::mapped(file)
    }
}

impl Drop for Ahead {
    /// Nobody creates a file when the job has ended.
    fn drop(&mut self) {
        drop(self.take(RUN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::format::{HEADER_BYTES, Header};

    #[test]
    fn what_was_asked_for_and_is_not_needed_is_given_back() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let ahead = Ahead::new(folder.path());
        ahead.expect(STEP_BYTES - 1);
        assert!(ahead.state().asking.is_none(), "less than a step");
        ahead.expect(STEP_BYTES);
        let expected = 2 * STEP_BYTES - 1;
        assert!(has_much(folder.path(), expected) && !has_much(folder.path(), u64::MAX));
        assert!(ahead.take(1).is_none());
        let mut file = ahead.take(RUN).unwrap();
        assert!(ahead.take(RUN).is_none());
        ahead.expect(9 * STEP_BYTES);
        assert!(ahead.state().asking.is_none(), "nobody needs more");
        let path = file.path().to_path_buf();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        file.write(b"lists").unwrap();
        let entry = file.finish(Header { kind: Kind::Postings, values: [0; 5], last: 0 }).unwrap();
        let there = std::fs::metadata(&path).unwrap();
        assert_eq!((there.len(), entry.bytes), (HEADER_BYTES as u64 + 5, HEADER_BYTES as u64 + 5));
        assert!(there.blocks() * 512 < STEP_BYTES / 2, "{} blocks", there.blocks());
    }
}
