//! Runs the tests of the Python module, which are written in Python, with the library that cargo
//! has just built. `MILLRACE_PYTHON` names the Python; it needs numpy, pandas and pytest. Where one
//! is missing, that is said, unless `MILLRACE_REQUIRE_PYTHON` is set: then it fails, and so does a
//! test that is skipped for want of another package.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The tests take a few seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// The Python that has what the tests need.
fn python() -> Result<OsString, String> {
    let python = std::env::var_os("MILLRACE_PYTHON").unwrap_or_else(|| "python3".into());
    let asked = Command::new(&python).args(["-c", "import numpy, pandas, pytest"]).output();
    match asked {
        Ok(output) if output.status.success() => Ok(python),
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {}", python.display(), error.lines().last().unwrap_or_default()))
        }
        Err(error) => Err(format!("{}: {error}", python.display())),
    }
}

/// A folder with the module: the files of the package, and the library beside them.
fn module(package: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-module");
    _ = std::fs::remove_dir_all(&folder);
    let module = folder.join("millrace");
    std::fs::create_dir_all(&module).unwrap();
    for entry in std::fs::read_dir(package.join("millrace")).unwrap() {
        let path = entry.unwrap().path();
        std::os::unix::fs::symlink(&path, module.join(path.file_name().unwrap())).unwrap();
    }
    // Beside the program of this test, which cargo links after it.
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libmillrace_python.so");
    assert!(library.exists(), "{} was not built", library.display());
    std::os::unix::fs::symlink(library, module.join("_native.abi3.so")).unwrap();
    folder
}

#[test]
fn pytest() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => {
            let required =
                std::env::var_os("MILLRACE_REQUIRE_PYTHON").is_some_and(|v| !v.is_empty());
            assert!(!required, "MILLRACE_REQUIRE_PYTHON is set, and: {reason}");
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut path = vec![module(package)];
    path.extend(std::env::split_paths(&std::env::var_os("PYTHONPATH").unwrap_or_default()));
    let path = std::env::join_paths(path).unwrap();
    let mut tests = Command::new(python)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--color", "no", "-c"])
        .args([package.join("pyproject.toml"), package.join("tests")])
        // Not in the package: what Python finds there first has no library beside it.
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("PYTHONPATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = tests.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LIMIT {
            tests.kill().unwrap();
            panic!("the tests took longer than {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "pytest: {status}");
}
