//! Parsers of formats, one a file.

pub mod csv;
pub mod fields;
pub mod html;
pub(crate) mod json;
pub mod json_values;
pub mod jsonl;
pub mod mediawiki;
pub(crate) mod parsers;
pub mod plain;
pub mod plaintext;
pub(crate) mod scan;
pub mod trec;
pub mod tsv;
pub mod warc;
