//! What do the fuzz targets have in common? How they take decisions from their input, how they damage
//! files, and a small index. Each target says in its first line what it asks.

use std::path::PathBuf;
use tempfile::TempDir;

pub mod damage;
pub mod sample;
pub mod take;

/// Makes a folder for the files of one process, below `TMPDIR`, which is best in memory. libFuzzer
/// ends the process without unwinding, so that nobody but the caller of the process removes it.
pub fn folder() -> PathBuf {
    let made = tempfile::Builder::new().prefix("millrace-fuzz-").tempdir();
    made.map(TempDir::keep).expect("a folder can be made below TMPDIR")
}
