//! Who waits for the answer to one query, such as a request to a server: it has the answer as soon
//! as that is laid out, and not when all of its batch is.

#![warn(missing_docs)]

use crate::query::reading::lines::Refused;
use std::fmt;

/// What became of a query.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The answer, laid out as text.
    Answer(Vec<u8>),
    /// It is no query for this index.
    Refused(Refused),
    /// It has waited too long, or was no longer waited for.
    Late,
    /// The index is damaged where the query looks; names file and offset.
    Failed(String),
}

/// Waits for one query.
pub trait Waiter: fmt::Debug + Send + Sync {
    /// Nobody wants the answer any more: a query that has not begun is dropped.
    fn is_gone(&self) -> bool;

    /// Takes the outcome; called by a worker, which must not wait. Only the first call counts; none
    /// follows when the service ends early, and then this is dropped.
    fn told(&self, outcome: Outcome);
}
