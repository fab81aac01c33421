//! Generations: opened, published, kept, and put together of runs.

pub(crate) mod draft;
pub(crate) mod folder;
pub(crate) mod generation;
pub(crate) mod held;
pub(crate) mod in_use;
pub(crate) mod keep;
pub(crate) mod live_names;
pub(crate) mod manifest;
pub(crate) mod merged;
pub(crate) mod parts;
pub(crate) mod publish;
pub(crate) mod run_files;
pub(crate) mod watch;
