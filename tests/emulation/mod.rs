//! How does a kernel run without a device? Its source is compiled as C++ against `cuda.h` beside this
//! file, with the address sanitizer, and each launch is a run of that program: buffers and arguments
//! go in through stdin, buffers come back through stdout.
//!
//! The compiler is `CXX`, or `c++`. Without one a test prints that it was skipped, unless
//! `MILLRACE_REQUIRE_CXX` is set: then it fails.

mod faults;

use crate::util::Scratch;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Kernels that were compiled for the CPU.
pub(crate) struct Emulator {
    program: PathBuf,
    _scratch: Scratch,
}

/// An argument of a launch.
pub(crate) enum Arg {
    /// The address of a buffer of the launch, by its place.
    Buffer(u32),
    /// A number of 32 bits.
    U32(u32),
}

/// The threads of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) shared_bytes: u32,
    /// 0 runs lanes in their order, any other number in a random one.
    pub(crate) seed: u64,
}

impl Emulator {
    /// Compiles `kernels` of a source with the sizes that its tuning names; `None`, and a line that
    /// says so, where there is no compiler.
    pub(crate) fn compile(source: &Path, kernels: &[&str], sizes: &[(&str, u32)]) -> Option<Self> {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
        if Command::new(&compiler).arg("--version").output().is_err() {
            let required = std::env::var_os("MILLRACE_REQUIRE_CXX").is_some_and(|v| !v.is_empty());
            assert!(!required, "MILLRACE_REQUIRE_CXX is set, and there is no {compiler:?}");
            eprintln!("skipped: no C++ compiler");
            return None;
        }
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulation/cuda.h");
        let list: Vec<String> = kernels.iter().map(|kernel| format!("KERNEL({kernel})")).collect();
        let main = format!(
            "#include \"{}\"\n#include \"{}\"\nEMULATION_MAIN({})\n",
            header.display(),
            source.display(),
            list.join(", ")
        );
        let scratch = Scratch::new();
        let main = scratch.write("main.cpp", main);
        let program = scratch.path("emulated");
        let compiled = Command::new(&compiler)
            .args(["-std=c++17", "-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"])
            .args(sizes.iter().map(|(name, value)| format!("-D{name}={value}")))
            .arg(&main)
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{}:\n{log}", source.display());
        Some(Self { program, _scratch: scratch })
    }

    /// Runs a kernel; `buffers` are the memory of the device before, and after. An error is what the
    /// emulation or the sanitizer says.
    pub(crate) fn launch(
        &self,
        launch: Launch,
        buffers: &mut [&mut Vec<u8>],
        args: &[Arg],
    ) -> Result<(), String> {
        let mut child = Command::new(&self.program)
            // What is left at the end is no leak.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = Vec::new();
        let mut put = |bytes: &[u8]| input.extend_from_slice(bytes);
        put(&(launch.kernel.len() as u32).to_le_bytes());
        put(launch.kernel.as_bytes());
        for number in [launch.blocks, launch.threads, launch.shared_bytes] {
            put(&number.to_le_bytes());
        }
        put(&launch.seed.to_le_bytes());
        put(&(buffers.len() as u32).to_le_bytes());
        for buffer in &*buffers {
            put(&(buffer.len() as u64).to_le_bytes());
            put(buffer);
        }
        put(&(args.len() as u32).to_le_bytes());
        for arg in args {
            match arg {
                Arg::Buffer(place) => put(&[place.to_le_bytes(), 0u32.to_le_bytes()].concat()),
                Arg::U32(number) => {
                    put(&[u32::MAX.to_le_bytes(), 4u32.to_le_bytes(), number.to_le_bytes()]
                        .concat());
                }
            }
        }
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            // A program that has failed reads no more; its status tells.
            let _ = stdin.write_all(&input);
        });
        let done = child.wait_with_output().unwrap();
        writer.join().unwrap();
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(format!("{}: {}\n{said}", launch.kernel, done.status));
        }
        let mut rest = &done.stdout[..];
        for buffer in buffers {
            let (here, behind) = rest.split_at(buffer.len());
            buffer.copy_from_slice(here);
            rest = behind;
        }
        assert!(rest.is_empty());
        Ok(())
    }
}
