//! One thread commits: it takes all requests that wait, commits what they ask for together, and
//! answers them when the searches of this server see it. What could not be committed is given up
//! whole, so that a request which failed never takes effect later.

use super::failure::HttpFailure;
use super::options::ServeOptions;
use crate::build::BuildError;
use crate::crew::spawn;
use crate::input::memory::OwnedDocument;
use crate::query::snapshot::Snapshot;
use crate::shown::chain;
use crate::update::Writer;
use axum::http::StatusCode;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Requests that wait for the next commit.
const MOST_WAITING: usize = 64;
/// How long the server waits until its searches see what was committed.
const SEEN: Duration = Duration::from_secs(60);

/// A document, or the name of one that goes.
pub(super) enum WrittenChange {
    Add(OwnedDocument),
    Delete(String),
}

struct WriteRequest {
    changes: Vec<WrittenChange>,
    committed: oneshot::Sender<Result<u32, HttpFailure>>,
}

/// Where requests wait for the thread that commits; it ends when this is dropped.
pub(super) struct Committer(mpsc::Sender<WriteRequest>);

impl Committer {
    /// Starts the thread, which ends after this is dropped, and then takes away what a merge beside
    /// commits has left.
    pub(super) fn begin(
        options: &ServeOptions,
        live: watch::Receiver<Arc<Snapshot>>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (sender, mut requests) = mpsc::channel::<WriteRequest>(MOST_WAITING);
        let mut writer = Writer::new(&options.index);
        (writer.memory, writer.allow_shrink) = (options.memory, options.allow_shrink);
        let thread = spawn("writer", move || {
            while let Some(first) = requests.blocking_recv() {
                let mut all = vec![first];
                while let Ok(next) = requests.try_recv() {
                    all.push(next);
                }
                let mut answers = Vec::new();
                for WriteRequest { changes, committed } in all {
                    answers.push(committed);
                    for change in changes {
                        match change {
                            WrittenChange::Add(document) => writer.update_document(document),
                            WrittenChange::Delete(name) => writer.delete(name),
                        }
                    }
                }
                let result = commit(&writer, &live);
                for answer in answers {
                    // Who has gone does not hear it.
                    _ = answer.send(result.clone());
                }
            }
        })?;
        Ok((Self(sender), thread))
    }

    /// What becomes of changes once they are committed.
    pub(super) fn ask(
        &self,
        changes: Vec<WrittenChange>,
    ) -> Result<oneshot::Receiver<Result<u32, HttpFailure>>, HttpFailure> {
        let (committed, result) = oneshot::channel();
        let request = WriteRequest { changes, committed };
        self.0.try_send(request).map(|()| result).map_err(|_| HttpFailure::busy())
    }
}

/// Commits, and waits until queries are answered from the new generation or a newer one; returns
/// the number of what is live.
fn commit(writer: &Writer, live: &watch::Receiver<Arc<Snapshot>>) -> Result<u32, HttpFailure> {
    let number =
        |live: &watch::Receiver<Arc<Snapshot>>| live.borrow().generation().manifest().generation;
    let updated = writer.commit(false).map_err(|error| {
        writer.abort();
        let status = match error {
            BuildError::Shrinks { .. } | BuildError::KeptByJob { .. } => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        HttpFailure::new(status, chain(&error))
    })?;
    let Some(generation) = updated.generation else { return Ok(number(live)) };
    let begun = Instant::now();
    while number(live) < generation {
        if begun.elapsed() > SEEN {
            let why = format!(
                "it is committed as generation {generation}, which this server cannot open: its \
                 log tells why"
            );
            return Err(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, why));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(generation)
}
