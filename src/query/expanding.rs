//! Expansion of the queries of a stream by several threads, ahead of those that answer, and in
//! order.
//!
//! A thread reads queries and gives each to the next free one; the iterator waits for the results
//! in the order of the queries. So a query is there as soon as it is expanded, while the next one
//! is still being typed.

use super::rm3::Expander;
use crate::crew::{lock, spawn};
use crate::index::error::IndexError;
use crate::query::reading::lines::{Query, Refused};
use crate::shown::chain;
use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

pub type ReadQuery = io::Result<Result<Query, Refused>>;

/// The name of the threads.
const NAME: &str = "expand";

/// Queries that are read ahead for each thread.
const AHEAD: usize = 4;

/// A query to expand, and where it goes.
type Task = (Query, Sender<ReadQuery>);

/// The queries of a stream, expanded, in their order. A query that cannot be expanded is an error
/// that names it.
pub struct Expanded {
    in_order: Receiver<Receiver<ReadQuery>>,
}

impl Expanded {
    /// The threads end with the stream, or after the value is dropped when the next query is read.
    ///
    /// # Errors
    /// If the texts of the index can no longer be had, or the system has no more threads.
    pub fn new(
        queries: impl Iterator<Item = ReadQuery> + Send + 'static,
        expander: Expander,
        threads: NonZeroUsize,
    ) -> Result<Self, IndexError> {
        let no_thread = IndexError::io("starting a thread that expands queries");
        let (give, in_order) = sync_channel(AHEAD * threads.get());
        let (tasks, taken) = channel();
        let taken = Arc::new(Mutex::new(taken));
        let more = (1..threads.get()).map(|_| expander.another()).collect::<Result<Vec<_>, _>>()?;
        for expander in more.into_iter().chain([expander]) {
            let taken = taken.clone();
            spawn(NAME, move || expand(expander, &taken)).map_err(&no_thread)?;
        }
        spawn(NAME, move || deal_out(queries, &tasks, &give)).map_err(&no_thread)?;
        Ok(Self { in_order })
    }
}

impl Iterator for Expanded {
    type Item = ReadQuery;

    fn next(&mut self) -> Option<ReadQuery> {
        let query = self.in_order.recv().ok()?;
        let panicked = |_| Err(io::Error::other("a thread that expands queries panicked"));
        Some(query.recv().unwrap_or_else(panicked))
    }
}

/// Reads queries until the iterator is gone; refused lines go on unchanged.
fn deal_out(
    queries: impl Iterator<Item = ReadQuery>,
    tasks: &Sender<Task>,
    give: &SyncSender<Receiver<ReadQuery>>,
) {
    for read in queries {
        let (to, from) = channel();
        if give.send(from).is_err() {
            return;
        }
        let gone = match read {
            Ok(Ok(query)) => tasks.send((query, to)).is_err(),
            // The iterator may be gone.
            read => to.send(read).is_err(),
        };
        if gone {
            return;
        }
    }
}

fn expand(mut expander: Expander, tasks: &Mutex<Receiver<Task>>) {
    loop {
        // Nothing that holds the lock panics.
        let task = lock(tasks).recv();
        let Ok((query, to)) = task else { return };
        let why =
            |why: IndexError| io::Error::other(format!("query {}: {}", query.qid, chain(&why)));
        // The iterator may be gone.
        _ = to.send(expander.expand(&query).map(Ok).map_err(why));
    }
}
