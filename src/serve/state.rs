//! What all requests share.

use super::committer::Committer;
use super::failure::HttpFailure;
use super::metrics::Metrics;
use super::options::ServeOptions;
use crate::crew::lock;
use crate::dataflow::query::inbox::Asker;
use crate::dataflow::query::waiter::{Outcome, Waiter};
use crate::query::reading::lines::Query;
use crate::query::snapshot::Snapshot;
use axum::http::StatusCode;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, oneshot, watch};

/// What runs beside the dataflow at once, such as explanations.
const MOST_BESIDE: usize = 2;

/// What every request passes, to an index or to a front.
pub(super) struct Door {
    pub(super) options: ServeOptions,
    pub(super) metrics: Metrics,
}

pub(super) struct Served {
    door: Arc<Door>,
    pub(super) asker: Asker,
    /// What the next query is answered from, or something newer.
    pub(super) live: LiveSnapshot,
    /// None if the index is not changed by this server.
    pub(super) writes: Option<Committer>,
    beside: Semaphore,
}

/// Where a server sees what queries are answered from.
pub type LiveSnapshot = watch::Receiver<Arc<Snapshot>>;

/// Takes snapshots that queries are answered from by now, and where a server sees the last of them.
pub fn live(first: Arc<Snapshot>) -> (impl Fn(Arc<Snapshot>), LiveSnapshot) {
    let (sender, receiver) = watch::channel(first);
    (move |snapshot| _ = sender.send_replace(snapshot), receiver)
}

/// A request that waits for a query.
#[derive(Debug)]
struct Waiting(Mutex<Option<oneshot::Sender<Outcome>>>);

impl Waiter for Waiting {
    fn is_gone(&self) -> bool {
        lock(&self.0).as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn told(&self, outcome: Outcome) {
        // It fails where nobody waits any more.
        _ = lock(&self.0).take().map(|sender| sender.send(outcome));
    }
}

/// The answer to a query that was asked.
pub(super) struct AwaitedAnswer(oneshot::Receiver<Outcome>);

impl Deref for Served {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl Served {
    pub(super) fn new(
        door: Arc<Door>,
        asker: Asker,
        live: LiveSnapshot,
        writes: Option<Committer>,
    ) -> Self {
        let beside = Semaphore::new(MOST_BESIDE);
        Self { door, asker, live, writes, beside }
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.live.borrow().clone()
    }

    /// Asks a query; fails at once if there is no room.
    pub(super) fn ask(&self, query: Query) -> Result<AwaitedAnswer, HttpFailure> {
        let (sender, receiver) = oneshot::channel();
        let waiter = Arc::new(Waiting(Mutex::new(Some(sender))));
        match self.asker.try_ask(query, waiter) {
            true => Ok(AwaitedAnswer(receiver)),
            false => Err(HttpFailure::busy()),
        }
    }

    /// Fails where other processes have parts of the index.
    pub(super) fn whole(&self, what: &str) -> Result<(), HttpFailure> {
        match self.options.is_part {
            true => {
                let why = format!("{what} can be had from a server of one process alone");
                Err(HttpFailure::new(StatusCode::NOT_IMPLEMENTED, why))
            }
            false => Ok(()),
        }
    }

    /// Runs what may take long on a thread of its own, once there is room.
    pub(super) async fn beside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, HttpFailure> + Send + 'static,
    ) -> Result<T, HttpFailure> {
        let _place = self.beside.acquire().await.map_err(|_| HttpFailure::ended())?;
        let served = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&served)).await;
        done.unwrap_or_else(|_| {
            let why = "the request stopped because of a bug";
            Err(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, why))
        })
    }
}

impl AwaitedAnswer {
    /// The answer as an object in JSON and a line feed.
    pub(super) async fn text(self) -> Result<Vec<u8>, HttpFailure> {
        match self.0.await {
            Ok(Outcome::Answer(text)) => Ok(text),
            Ok(Outcome::Refused(refused)) => {
                Err(HttpFailure::new(StatusCode::BAD_REQUEST, refused.why.to_string()))
            }
            Ok(Outcome::Late) => Err(HttpFailure::busy()),
            Ok(Outcome::Failed(why)) => {
                Err(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, why))
            }
            Err(_) => Err(HttpFailure::ended()),
        }
    }
}
