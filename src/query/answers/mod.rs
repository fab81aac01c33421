//! What is told of an answer: its output, why it is so, how long it took.

pub(crate) mod explain;
pub(crate) mod latencies;
pub(crate) mod output;
pub(crate) mod snippet;
pub(crate) mod talk;
pub(crate) mod texts;
