//! Streams of bytes: pipes, decompression, and where a file's bytes go.

pub(crate) mod decoder;
pub(crate) mod encoded;
pub(crate) mod pipe;
pub(crate) mod shared_file;
pub(crate) mod split_stream;
pub(crate) mod unpacked;
pub(crate) mod whole;
