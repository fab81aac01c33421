//! Where tests write, the data that lies beside the repository, and a process of its own for a
//! test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that goes away with the test.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("millrace-test-").tempdir().unwrap())
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// A file or folder of the data that lies beside the repository; a test that needs it and finds
/// none is skipped and says so.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if !path.exists() {
        eprintln!("skipped: there is no {}", path.display());
        return None;
    }
    Some(path)
}

/// Runs one of these tests again in a process of its own, in which a variable of the environment is
/// set; it has to pass.
pub(crate) fn again_in_a_process_of_its_own(test: &str, variable: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(variable, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
}
