//! Targets for files that people write.

mod filter;
mod job_file;
mod judged;
mod queries;
mod query_line;
mod query_tree;
#[cfg(feature = "serve")]
mod requests;
mod stop_words;

pub use job_file::job_file;
pub use judged::judged;
pub use queries::queries;
pub use query_line::query_line;
pub use stop_words::stop_words;
