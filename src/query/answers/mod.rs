//! What is told of an answer: its output, why it is so, how long it took.

pub mod explain;
pub mod latencies;
pub mod output;
pub mod snippet;
pub mod talk;
pub mod texts;
