//! What is written about an answer: its output, its explanation, its latency.

pub(crate) mod explain;
pub(crate) mod latencies;
pub(crate) mod output;
pub(crate) mod returned;
pub(crate) mod snippet;
pub(crate) mod talk;
pub(crate) mod texts;
