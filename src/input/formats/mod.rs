//! Parsers of formats, one a file.

pub(crate) mod csv;
pub(crate) mod fields;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod json_values;
pub(crate) mod jsonl;
pub(crate) mod lines;
pub(crate) mod mediawiki;
pub(crate) mod noticed;
pub(crate) mod parsers;
pub(crate) mod plain;
pub(crate) mod scan;
pub(crate) mod trec;
pub(crate) mod values;
pub(crate) mod warc;

/// A buffer that grew beyond this many bytes for one long record is given back after the piece.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
