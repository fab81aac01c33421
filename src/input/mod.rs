//! What are the input's files, how are they cut into pieces, and where do documents begin and end?

pub mod cutter;
pub mod decoder;
pub mod document;
pub mod gzip;
pub mod jsonl;
pub mod piece;
pub mod plain;
pub mod splits;
pub mod tsv;
pub mod zstd;
