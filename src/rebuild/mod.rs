//! How does an index follow its sources? The parts of the job `rebuild` that know no dataflow: the
//! job file, the schedule, the table of what the live generation holds, and the history.

#![forbid(unsafe_code)]

pub(crate) mod changes;
pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod job_file;
pub(crate) mod links;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod scanned;
pub(crate) mod schedule;
pub(crate) mod status;
pub(crate) mod table;
pub mod values;
