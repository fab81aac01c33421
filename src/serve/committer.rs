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
use std::collections::HashMap;
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

impl WrittenChange {
    fn name(&self) -> &str {
        match self {
            Self::Add(document) => &document.name,
            Self::Delete(name) => name,
        }
    }

    fn deletes(&self) -> bool {
        matches!(self, Self::Delete(_))
    }
}

/// What became of the changes of a request.
#[derive(Clone, Copy)]
pub(super) struct Committed {
    pub(super) generation: u32,
    /// Documents that were deleted by their names, and names that no document had.
    pub(super) deleted: usize,
    pub(super) absent: usize,
}

struct WriteRequest {
    changes: Vec<WrittenChange>,
    committed: oneshot::Sender<Result<Committed, HttpFailure>>,
}

/// The names that requests change which share a commit, and whether they are deleted. A name that
/// is deleted is changed once only, so that it is known which request has deleted it.
#[derive(Default)]
struct SharedNames(HashMap<String, bool>);

impl SharedNames {
    /// Whether the changes of another request may be made too; notes them if so.
    fn take(&mut self, changes: &[WrittenChange]) -> bool {
        let is_free = |change: &WrittenChange| match self.0.get(change.name()) {
            None => true,
            Some(is_deleted) => !is_deleted && !change.deletes(),
        };
        let is_fit = changes.iter().all(is_free);
        if is_fit {
            let names = changes.iter().map(|change| (change.name().to_string(), change.deletes()));
            self.0.extend(names);
        }
        is_fit
    }
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
            let mut next = None;
            while let Some(first) = next.take().or_else(|| requests.blocking_recv()) {
                let mut names = SharedNames::default();
                names.take(&first.changes);
                let mut all = vec![first];
                while let Ok(request) = requests.try_recv() {
                    if !names.take(&request.changes) {
                        next = Some(request);
                        break;
                    }
                    all.push(request);
                }
                let mut answers = Vec::new();
                for WriteRequest { changes, committed } in all {
                    let deletes = changes.iter().filter(|change| change.deletes()).count();
                    answers.push((deletes, committed));
                    for change in changes {
                        match change {
                            WrittenChange::Add(document) => writer.update_document(document),
                            WrittenChange::Delete(name) => writer.delete(name),
                        }
                    }
                }
                let result = commit(&writer, &live);
                let mut of_names = result.iter().flat_map(|(_, of_names)| of_names);
                for (deletes, answer) in answers {
                    let counts: Vec<u32> = of_names.by_ref().take(deletes).copied().collect();
                    let deleted = counts.iter().sum::<u32>() as usize;
                    let absent = counts.iter().filter(|&&count| count == 0).count();
                    let of = |&(generation, _): &_| Committed { generation, deleted, absent };
                    // Who has gone does not hear it.
                    _ = answer.send(result.as_ref().map(of).map_err(Clone::clone));
                }
            }
        })?;
        Ok((Self(sender), thread))
    }

    /// What becomes of changes once they are committed.
    pub(super) fn ask(
        &self,
        changes: Vec<WrittenChange>,
    ) -> Result<oneshot::Receiver<Result<Committed, HttpFailure>>, HttpFailure> {
        let (committed, result) = oneshot::channel();
        let request = WriteRequest { changes, committed };
        self.0.try_send(request).map(|()| result).map_err(|_| HttpFailure::busy())
    }
}

/// Commits, and waits until queries are answered from the new generation or a newer one; returns
/// the number of what is live, and how many documents each name had that was to be deleted.
fn commit(
    writer: &Writer,
    live: &watch::Receiver<Arc<Snapshot>>,
) -> Result<(u32, Vec<u32>), HttpFailure> {
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
    let of_names = updated.of_names;
    let Some(generation) = updated.generation else { return Ok((number(live), of_names)) };
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
    Ok((generation, of_names))
}
