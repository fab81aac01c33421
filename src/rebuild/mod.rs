//! How does an index follow its sources? The parts of the job `rebuild` that know no dataflow: the
//! job file, the schedule, the table of what the live generation holds, and the history.

#![forbid(unsafe_code)]

pub mod changes;
pub mod files;
pub mod history;
pub mod job_file;
pub mod links;
pub mod logs;
pub mod nodes;
pub mod page;
pub mod scanned;
pub mod schedule;
pub mod status;
pub mod table;
pub mod values;
