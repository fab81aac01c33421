//! The cache of compiled kernels, so that the second start compiles nothing.
//!
//! In a folder of the user: `MILLRACE_CACHE`, or `millrace` in `XDG_CACHE_HOME`, or
//! `~/.cache/millrace`. A file holds one cubin; its name has the source's name, the architecture,
//! and a hash of the source, all options, the architecture and the compiler's version. It is
//! written beside its place and renamed, so that no process sees half of it; one that is cut short
//! or changed is compiled again and replaced.
//!
//! ```text
//! magic "MILLCUBN" | the hash of the key, 16 bytes | xxh3 of the cubin, 8 bytes | the cubin
//! ```

use super::error::GpuError;
use super::nvrtc::{Compiler, KernelSource};
use super::version::Architecture;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use twox_hash::{XxHash3_64, XxHash3_128};

const MAGIC: [u8; 8] = *b"MILLCUBN";
const HEAD_BYTES: usize = 32;

#[derive(Debug)]
pub(crate) struct Cubin {
    pub bytes: Vec<u8>,
    pub origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Kept,
    /// Compiled, and in the cache from now on.
    Compiled,
    /// Compiled, but not stored: the next start compiles again.
    NotKept(Arc<io::Error>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleCache {
    folder: Option<PathBuf>,
}

impl ModuleCache {
    pub fn of_user() -> Self {
        Self { folder: folder(|name| std::env::var_os(name)) }
    }

    /// Made when there is something to store.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()) }
    }

    /// None if the environment names none.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Compiles `source` for `architecture` unless the cache has it.
    ///
    /// # Errors
    /// The source does not compile. A folder that cannot be read or written is no error.
    pub(crate) fn cubin(
        &self,
        compiler: &Compiler,
        source: &KernelSource,
        architecture: Architecture,
    ) -> Result<Cubin, GpuError> {
        let key = key(compiler, source, architecture);
        let path = self
            .folder
            .as_ref()
            .map(|folder| folder.join(format!("{}-{architecture}-{key:032x}.cubin", source.name)));
        if let Some(bytes) = path.as_ref().and_then(|path| kept(path, key)) {
            return Ok(Cubin { bytes, origin: Origin::Kept });
        }
        let bytes = compiler.compile(source, architecture)?;
        let no_folder = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                "neither MILLRACE_CACHE, XDG_CACHE_HOME nor HOME names a folder",
            )
        };
        let origin = match path.ok_or_else(no_folder).and_then(|path| keep(&path, key, &bytes)) {
            Ok(()) => Origin::Compiled,
            Err(error) => Origin::NotKept(Arc::new(error)),
        };
        Ok(Cubin { bytes, origin })
    }
}

/// An empty variable counts as none.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("MILLRACE_CACHE")
        // The specification has relative paths ignored.
        .or_else(|| set("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("millrace")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/millrace")))
}

fn key(compiler: &Compiler, source: &KernelSource, architecture: Architecture) -> u128 {
    let mut text = format!("{}\0{}\0", compiler.version(), source.name);
    for option in source.options(architecture) {
        text += &option;
        text.push('\0');
    }
    text += source.text;
    XxHash3_128::oneshot(text.as_bytes())
}

fn kept(path: &Path, key: u128) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let head = bytes.get(..HEAD_BYTES)?;
    let good = head == self::head(key, &bytes[HEAD_BYTES..]);
    good.then(|| bytes.split_off(HEAD_BYTES))
}

fn head(key: u128, cubin: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..24].copy_from_slice(&key.to_le_bytes());
    head[24..].copy_from_slice(&XxHash3_64::oneshot(cubin).to_le_bytes());
    head
}

fn keep(path: &Path, key: u128, cubin: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&head(key, cubin))?;
    file.write_all(cubin)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::floor::version::Version;
    use std::collections::HashMap;

    #[test]
    fn the_environment_names_the_folder() {
        let at = |set: &[(&str, &str)]| {
            let set: HashMap<_, _> = set.iter().copied().collect();
            folder(|name| set.get(name).map(OsString::from))
        };
        assert_eq!(at(&[]), None);
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.cache/millrace".into()));
        assert_eq!(at(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/millrace".into()));
        assert_eq!(
            at(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]),
            Some("/h/.cache/millrace".into())
        );
        assert_eq!(at(&[("MILLRACE_CACHE", "m"), ("XDG_CACHE_HOME", "/x")]), Some("m".into()));
        assert_eq!(
            at(&[("MILLRACE_CACHE", ""), ("HOME", "/h")]),
            Some("/h/.cache/millrace".into())
        );
    }

    #[test]
    fn everything_that_changes_the_code_changes_the_key() {
        let version = Version { major: 13, minor: 0 };
        let compiler = Compiler::pretended(version, &[75, 90]);
        let other = Compiler::pretended(Version { major: 13, minor: 1 }, &[75, 90]);
        let source = KernelSource { name: "a", text: "text", sizes: vec![("N", 1)] };
        let keys = [
            key(&compiler, &source, Architecture(90)),
            key(&compiler, &source, Architecture(75)),
            key(&other, &source, Architecture(90)),
            key(&compiler, &KernelSource { text: "texts", ..source.clone() }, Architecture(90)),
            key(&compiler, &KernelSource { name: "b", ..source.clone() }, Architecture(90)),
            key(
                &compiler,
                &KernelSource { sizes: vec![("N", 2)], ..source.clone() },
                Architecture(90),
            ),
        ];
        for (n, a) in keys.iter().enumerate() {
            assert!(keys[..n].iter().all(|b| a != b), "{n}");
        }
    }

    #[test]
    fn what_is_kept_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a.cubin");
        keep(&path, 7, b"code").unwrap();
        assert_eq!(kept(&path, 7), Some(b"code".to_vec()));
        assert_eq!(kept(&path, 8), None, "another key");
        let good = fs::read(&path).unwrap();
        for length in 0..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            assert_eq!(kept(&path, 7), None, "cut to {length}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            assert_eq!(kept(&path, 7), None, "byte {at}");
        }
        keep(&path, 7, b"again").unwrap();
        assert_eq!(kept(&path, 7), Some(b"again".to_vec()), "replaced");
        let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "nothing is left beside it");
    }
}
