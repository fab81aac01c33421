//! How is all that spread over workers? Timely operators, one a file, each thin over a plain type
//! of another module.

pub mod answer;
pub mod ask;
pub mod asked;
pub mod batch;
pub mod build;
pub mod changes;
pub mod collect;
pub mod control;
mod cores;
pub mod crossing;
mod data_line;
pub mod decompress;
pub mod docp;
pub mod documents;
pub mod encode;
pub mod fgqp;
pub mod flow;
pub mod flush;
pub mod frequencies;
pub mod gather;
pub mod index;
pub mod index_tokens;
pub mod look;
pub mod pagerank;
pub mod pagerank_iterate;
pub mod parse;
pub mod query;
pub mod read;
pub mod sample;
pub mod score;
pub mod together;
