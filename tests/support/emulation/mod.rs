//! Runs a kernel without a device. Its source is compiled as C++ against `cuda.h` beside this file,
//! with sanitizers, to a program that serves launches: buffers and arguments go in through stdin,
//! buffers come back through stdout. One program serves all launches of a test, and buffers may
//! stay in it between them.
//!
//! The compiler is `CXX`, or `c++`. Without one a test prints that it was skipped, unless
//! `MILLRACE_REQUIRE_CXX` is set: then it fails. Programs are stored below `target/`, by what they
//! were compiled from.

mod arithmetic;
mod faults;
mod headers;
pub(crate) mod machine;
mod resident;
mod server;

use self::headers::HEADERS;
use self::server::Server;
use millrace::gpu::floor::steps::{Argument, Step};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

/// Random numbers, the same for the same seed, for the input of kernels and their twins.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((self.0 >> 33) * u64::from(end)) >> 31) as u32
    }
}

/// Kernels that were compiled for the CPU.
pub(crate) struct Emulator {
    program: PathBuf,
    server: Arc<Mutex<Option<Server>>>,
}

/// Memory that stays on the emulated device until it is dropped, or a launch fails.
pub(crate) struct Buffer {
    number: u32,
    /// Which server has it.
    served: u64,
    len: usize,
    server: Arc<Mutex<Option<Server>>>,
}

/// An argument of a launch.
pub(crate) enum Arg<'a> {
    /// The address of a buffer that comes with the launch, by its place.
    Buffer(u32),
    /// A place in a buffer that is there already, in bytes.
    Resident(&'a Buffer, u64),
    /// A number of 32 bits.
    U32(u32),
    /// A number of 64 bits.
    U64(u64),
    /// A floating-point number of 32 bits.
    F32(f32),
}

/// The threads of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    /// As on a device: `SHARED_GAP`s come on top by themselves.
    pub(crate) shared_bytes: u32,
    /// 0 runs lanes in their order, any other number in a random one, with two to eight blocks
    /// beside each other.
    pub(crate) seed: u64,
}

const OPTIONS: [&str; 8] = [
    "-std=c++17",
    "-O1",
    "-g",
    "-fsanitize=address,alignment,bounds,shift-exponent",
    "-fno-sanitize-recover=all",
    "-fsanitize-coverage=trace-pc",
    "-fno-omit-frame-pointer",
    "-ffp-contract=off",
];

impl Emulator {
    /// Compiles `kernels` of a source's text with the sizes that its tuning names; `None`, and a
    /// line that says so, where there is no compiler.
    ///
    /// # Panics
    /// With the compiler's messages, if it does not compile.
    pub(crate) fn compile(text: &str, kernels: &[&str], sizes: &[(&str, u32)]) -> Option<Self> {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
        let Ok(version) = Command::new(&compiler).arg("--version").output() else {
            let required = std::env::var_os("MILLRACE_REQUIRE_CXX").is_some_and(|v| !v.is_empty());
            assert!(!required, "MILLRACE_REQUIRE_CXX is set, and there is no {compiler:?}");
            eprintln!("skipped: no C++ compiler");
            return None;
        };
        let mut hasher = DefaultHasher::new();
        (HEADERS, OPTIONS, text, kernels, sizes, version.stdout).hash(&mut hasher);
        let folder = target_folder().join("emulation");
        let program = folder.join(format!("{:016x}", hasher.finish()));
        if !program.exists() {
            fs::create_dir_all(&folder).unwrap();
            let work = tempfile::tempdir_in(&folder).unwrap();
            let made = build(&compiler, work.path(), text, kernels, sizes);
            // Others that compile the same put the same there.
            fs::rename(made.unwrap_or_else(|log| panic!("{log}")), &program).unwrap();
        }
        Some(Self { program, server: Arc::default() })
    }

    /// Runs a kernel; `buffers` are memory of the device for this launch, before and after. An
    /// error is what the emulation or a sanitizer says; buffers that are resident are lost with it.
    pub(crate) fn launch(
        &self,
        launch: Launch,
        buffers: &mut [&mut Vec<u8>],
        args: &[Arg],
    ) -> Result<(), String> {
        let here: Vec<Buffer> =
            buffers.iter().map(|buffer| self.upload(buffer)).collect::<Result<_, _>>()?;
        self.served(|server| {
            let mut request = vec![b'L'];
            request.extend((launch.kernel.len() as u32).to_le_bytes());
            request.extend(launch.kernel.as_bytes());
            for number in [launch.blocks, launch.threads, launch.shared_bytes] {
                request.extend(number.to_le_bytes());
            }
            request.extend(launch.seed.to_le_bytes());
            request.extend((args.len() as u32).to_le_bytes());
            for arg in args {
                arg.put(&here, server, &mut request)?;
            }
            server.send(&request)?;
            let mut answer = [0];
            server.receive(&mut answer).map_err(|said| format!("{}: {said}", launch.kernel))?;
            assert_eq!(answer, *b"D");
            Ok(())
        })?;
        for (buffer, to) in here.iter().zip(buffers) {
            **to = buffer.download()?;
        }
        Ok(())
    }

    /// Runs launches one after the other; `place` says where an array and a place in it lie.
    pub(crate) fn run<'a, A: Copy>(
        &self,
        steps: &[Step<A>],
        seed: u64,
        place: impl Fn(A, u64) -> Arg<'a>,
    ) {
        for step in steps {
            let argument = |argument: &Argument<A>| match *argument {
                Argument::Number(number) => Arg::U32(number),
                Argument::Array(array, at) => place(array, at),
            };
            let arguments: Vec<Arg<'_>> = step.arguments.iter().map(argument).collect();
            let launch = Launch {
                kernel: step.kernel,
                blocks: step.geometry.blocks,
                threads: step.geometry.threads,
                shared_bytes: step.geometry.shared_bytes,
                seed,
            };
            self.launch(launch, &mut [], &arguments).unwrap();
        }
    }

    /// Makes a buffer that stays, full of rubbish.
    pub(crate) fn alloc(&self, len: usize) -> Result<Buffer, String> {
        let (number, served) = self.served(|server| {
            let number = server.new_number();
            let len = (len as u64).to_le_bytes();
            server.send(&[&b"A"[..], &number.to_le_bytes(), &len].concat())?;
            Ok((number, server.id()))
        })?;
        Ok(Buffer { number, served, len, server: self.server.clone() })
    }

    /// Makes a buffer that stays, with these bytes.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<Buffer, String> {
        let buffer = self.alloc(bytes.len())?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }

    /// Asks the server, which is started if there is none; one that has failed goes away.
    fn served<T>(&self, ask: impl FnOnce(&mut Server) -> Result<T, String>) -> Result<T, String> {
        let mut server = lock(&self.server);
        let running = server.get_or_insert_with(|| Server::start(&self.program));
        let answer = ask(running);
        if running.has_failed() {
            *server = None;
        }
        answer
    }
}

fn lock(server: &Mutex<Option<Server>>) -> MutexGuard<'_, Option<Server>> {
    server.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Buffer {
    /// Bytes that it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Its bytes.
    pub(crate) fn download(&self) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.len];
        self.ask(|server| {
            server.send(&self.part(b'R', 0, self.len))?;
            server.receive(&mut bytes)
        })?;
        Ok(bytes)
    }

    /// Writes bytes to a place in it.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result<(), String> {
        assert!(at + bytes.len() <= self.len, "a part is not within its buffer");
        self.ask(|server| {
            server.send(&self.part(b'W', at, bytes.len()))?;
            server.send(bytes)
        })
    }

    fn part(&self, request: u8, at: usize, len: usize) -> Vec<u8> {
        let numbers = [at as u64, len as u64].map(u64::to_le_bytes).concat();
        [&[request][..], &self.number.to_le_bytes(), &numbers].concat()
    }

    fn ask<T>(&self, ask: impl FnOnce(&mut Server) -> Result<T, String>) -> Result<T, String> {
        let mut server = lock(&self.server);
        match server.as_mut().filter(|server| server.id() == self.served) {
            Some(server) => ask(server),
            None => Err(LOST.to_owned()),
        }
    }
}

const LOST: &str = "a buffer was lost with a launch that failed";

impl Drop for Buffer {
    fn drop(&mut self) {
        // With the server it is gone anyway.
        _ = self.ask(|server| server.send(&[&b"F"[..], &self.number.to_le_bytes()].concat()));
    }
}

impl Arg<'_> {
    /// Writes it as launch.h reads it.
    fn put(&self, here: &[Buffer], server: &Server, request: &mut Vec<u8>) -> Result<(), String> {
        let number: &[u8] = match self {
            Arg::Buffer(place) => {
                return Arg::Resident(&here[*place as usize], 0).put(here, server, request);
            }
            Arg::Resident(buffer, at) => {
                if buffer.served != server.id() {
                    return Err(LOST.to_owned());
                }
                request.extend(buffer.number.to_le_bytes());
                request.extend(0u32.to_le_bytes());
                request.extend(at.to_le_bytes());
                return Ok(());
            }
            Arg::U32(number) => &number.to_le_bytes(),
            Arg::U64(number) => &number.to_le_bytes(),
            Arg::F32(number) => &number.to_le_bytes(),
        };
        request.extend(u32::MAX.to_le_bytes());
        request.extend((number.len() as u32).to_le_bytes());
        request.extend(number);
        Ok(())
    }
}

/// Where what is compiled is stored: `target/tmp`, which Cargo names to other tests alone. This
/// program lies in `target/debug/deps`.
fn target_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).expect("cargo puts it there").join("tmp")
}

/// Compiles in a folder and returns the program's path, or the compiler's messages.
fn build(
    compiler: &OsStr,
    folder: &Path,
    text: &str,
    kernels: &[&str],
    sizes: &[(&str, u32)],
) -> Result<PathBuf, String> {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/emulation/launch.h");
    let list: Vec<String> = kernels.iter().map(|kernel| format!("KERNEL({kernel})")).collect();
    fs::write(folder.join("kernels.cu"), text).unwrap();
    let main = format!(
        "#include \"{}\"\n#include \"kernels.cu\"\nEMULATION_MAIN({})\n",
        header.display(),
        list.join(", ")
    );
    fs::write(folder.join("main.cpp"), main).unwrap();
    let program = folder.join("program");
    let compiled = Command::new(compiler)
        .args(OPTIONS)
        .args(sizes.iter().map(|(name, value)| format!("-D{name}={value}")))
        .arg(folder.join("main.cpp"))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    match compiled.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&compiled.stderr).into_owned()),
    }
}
