//! How does a file get to the system while its bytes are still being put together? A thread of its own writes full buffers and takes
//! checksums: of a large file that is half of the work.

#![forbid(unsafe_code)]

use super::{Sums, write_at};
use crate::index::error::IndexError;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Buffers that wait for the thread, at most.
const WAITING: usize = 4;

/// What is taken of the bytes that are written.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) crc: crc32fast::Hasher,
    pub(super) sums: Option<Sums>,
}

/// A thread that writes.
#[derive(Debug)]
pub(super) struct Behind {
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<Result<Taken, IndexError>>,
}

impl Behind {
    /// Starts a thread that writes to `file`, at `path`, from the byte `at` on, and goes on with what is taken of its bytes.
    pub(super) fn start(
        file: File,
        path: PathBuf,
        mut at: u64,
        mut taken: Taken,
    ) -> io::Result<Self> {
        let (full, buffers) = sync_channel::<Vec<u8>>(WAITING);
        let (back, empty) = channel();
        let thread = Builder::new().name("writer".into()).spawn(move || {
            for mut buffer in buffers {
                write_at(&file, &path, &buffer, at)?;
                taken.crc.update(&buffer);
                if let Some(sums) = &mut taken.sums {
                    sums.update(&buffer)?;
                }
                at += buffer.len() as u64;
                buffer.clear();
                // Who has gone needs none.
                _ = back.send(buffer);
            }
            Ok(taken)
        })?;
        Ok(Self { full, empty, thread })
    }

    /// Hands on a full buffer, and gives an empty one; nothing if the thread has failed.
    pub(super) fn write(&self, buffer: Vec<u8>) -> Option<Vec<u8>> {
        self.full.send(buffer).ok()?;
        Some(self.empty.try_recv().unwrap_or_default())
    }

    /// Waits until all is written; what was taken of it.
    pub(super) fn end(self) -> Result<Taken, IndexError> {
        drop(self.full);
        self.thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))
    }
}
