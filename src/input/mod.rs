//! What are the input's files, how are they cut into pieces, and where do documents begin and end?

pub mod document;
pub mod jsonl;
pub mod plain;
pub mod tsv;
