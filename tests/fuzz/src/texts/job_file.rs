//! Any job file is one that can be looked at, or an error that names the file.

use millrace::rebuild::handed::HandedRebuild;
use millrace::rebuild::job_file::JobFile;
use std::path::Path;

/// What is asked of an input.
pub fn job_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // No file of its input is there.
    match JobFile::parse(Path::new("/nowhere/job.toml"), text, HandedRebuild::default()) {
        Ok(job) => assert!(!job.index.as_os_str().is_empty()),
        Err(error) => assert!(error.to_string().contains("job.toml"), "{error}"),
    }
}
