//! How is all that spread over workers? Timely operators, one a file, each thin over a plain type
//! of another module.

mod answer;
pub mod answered_by;
mod ask;
mod batch;
pub mod build;
pub mod build_context;
pub mod changes;
mod collect;
mod context;
pub mod control;
mod cores;
pub mod crossing;
mod data_line;
pub mod decompress;
mod desk;
pub mod documents;
pub mod encode;
pub mod feed;
pub mod flow;
pub mod flush;
pub mod follower;
pub mod frequencies;
mod gather;
#[cfg(test)]
mod harness;
pub mod index;
pub mod index_tokens;
mod invert;
mod lay_out;
pub mod links;
pub mod local;
mod look;
pub mod messages;
pub mod pagerank;
pub mod pagerank_iterate;
pub mod parse;
mod query;
pub mod read;
pub mod scan;
pub mod service;
mod sole_time;
mod tell;
pub mod timeline;
pub mod together;
mod weigh;
pub mod workers;
