//! Streams of bytes: pipes, decompression, and where a file's bytes go.

pub mod buffers;
pub mod decoder;
pub(crate) mod pipe;
pub mod shared_file;
pub mod split_stream;
pub mod unpacked;
pub(crate) mod whole;
