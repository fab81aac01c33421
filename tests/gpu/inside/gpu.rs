//! Kernels compile where there is no device, and work on a device comes back.
//!
//! NVRTC needs no device: with the library every kernel is compiled for the architectures that are
//! supported. What needs the library or a device and finds none prints that it was skipped, unless
//! `MILLRACE_REQUIRE_NVRTC` or `MILLRACE_REQUIRE_GPU` is set: then it fails.

mod streams;

use crate::inside_tests::util::*;
use millrace::gpu;
use millrace::gpu::floor::arrays::CudaArrays;
use millrace::gpu::floor::cache::{ModuleCache, Origin};
use millrace::gpu::floor::device::Device;
use millrace::gpu::floor::discover::{DeviceInfo, Discovery};
use millrace::gpu::floor::error::{Geometry, GpuError};
use millrace::gpu::floor::machine::{CudaQueue, DeviceWork, Machine, UnderWay};
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::floor::nvrtc::{Compiler, KernelSource};
use millrace::gpu::floor::slab::Slab;
use millrace::gpu::floor::steps::{Argument, Kernels, Step};
use millrace::gpu::floor::version::Architecture;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The oldest that is supported, the usual one, and the one that is measured.
/// The oldest, and one of those that have what came last: no source has parts for one of them.
const ARCHITECTURES: [Architecture; 2] = [Architecture(75), Architecture(90)];

const CTA: u32 = 64;

/// The kernels of `turn.cu`: one of them traps.
pub(crate) fn turn() -> KernelSource {
    let text = concat!(include_str!("../../../kernels/common.cuh"), include_str!("gpu/turn.cu"));
    KernelSource { name: "turn", text, sizes: vec![("CTA", CTA)] }
}

fn skipped(variable: &str, reasons: &[String]) {
    let reasons = reasons.join("; ");
    let required = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    assert!(!required, "{variable} is set, and: {reasons}");
    eprintln!("skipped: {reasons}");
}

fn compiler() -> Option<Compiler> {
    match Compiler::find() {
        Ok(compiler) => Some(compiler),
        Err(reason) => {
            skipped("MILLRACE_REQUIRE_NVRTC", &[reason.to_string()]);
            None
        }
    }
}

/// The first device, and what compiles for it.
pub(crate) fn found() -> Option<(DeviceInfo, Toolchain)> {
    let found = Discovery::of_machine();
    let Some(info) = found.usable().into_iter().next() else {
        skipped("MILLRACE_REQUIRE_GPU", &found.reasons());
        return None;
    };
    let toolchain = Toolchain {
        driver: found.driver.unwrap(),
        compiler: found.compiler.unwrap(),
        cache: ModuleCache::of_user(),
    };
    Some((info, toolchain))
}

/// The first device, opened.
pub(crate) fn device() -> Option<(Device, Toolchain)> {
    found().map(|(info, toolchain)| (Device::open(&info, 1).unwrap(), toolchain))
}

fn sources() -> impl Iterator<Item = KernelSource> {
    let sources = gpu::sources().into_iter();
    #[cfg(feature = "papers")]
    let sources = sources.chain(millrace::papers::sources());
    sources
}

#[cfg(feature = "papers")]
#[test]
fn every_source_has_a_wrapper() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["", "/ding09", "/huang", "/wang", "/wei11"];
    let folders = folders.map(|folder| root.join(format!("kernels{folder}")));
    let mut files: Vec<String> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut names: Vec<&str> = sources().map(|source| source.name).collect();
    names.sort_unstable();
    assert_eq!(names, files, "kernels/ and sources() differ");
    for name in names {
        let wrappers = ["gpu/NAME.rs", "papers/wei11/gpu/NAME.rs", "papers/NAME/gpu/mod.rs"];
        let mut wrappers = wrappers.map(|path| path.replace("NAME", name)).into_iter();
        let has = wrappers.any(|path| root.join("src").join(path).exists());
        assert!(has, "{name}.cu has no wrapper");
    }
}

#[test]
fn every_kernel_compiles_for_old_and_new_architectures() {
    let Some(compiler) = compiler() else { return };
    for source in sources().chain([turn()]) {
        assert!(!source.text.contains("#include"), "{}.cu includes something", source.name);
        for architecture in ARCHITECTURES {
            let cubin = compiler.compile(&source, architecture).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(cubin[..4], *b"\x7fELF", "{}.cu for {architecture}", source.name);
        }
    }
}

#[test]
fn a_source_that_does_not_compile_shows_the_log() {
    let Some(compiler) = compiler() else { return };
    let source =
        KernelSource { name: "bad", text: "__global__ void f() { x = 1; }", sizes: Vec::new() };
    let error = compiler.compile(&source, ARCHITECTURES[1]).unwrap_err().to_string();
    for part in ["bad.cu", "sm_90", "--fmad=false", "identifier \"x\" is undefined"] {
        assert!(error.contains(part), "{error}");
    }
    let unknown = compiler.compile(&turn(), Architecture(20)).unwrap_err().to_string();
    assert!(unknown.contains("sm_20"), "{unknown}");
}

#[test]
fn a_module_is_compiled_once() {
    let Some(compiler) = compiler() else { return };
    let scratch = Scratch::new();
    let folder = scratch.path("cache");
    let cache = ModuleCache::in_folder(&folder);
    let files = || -> Vec<_> {
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let get = |architecture| cache.cubin(&compiler, &turn(), architecture).unwrap();
    let first = get(ARCHITECTURES[1]);
    assert!(matches!(first.origin, Origin::Compiled), "{:?}", first.origin);
    let again = get(ARCHITECTURES[1]);
    assert!(matches!(again.origin, Origin::Kept), "{:?}", again.origin);
    assert_eq!(first.bytes, again.bytes);
    // A damaged file is replaced.
    let file = files().remove(0);
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let anew = get(ARCHITECTURES[1]);
    assert!(matches!(anew.origin, Origin::Compiled), "{:?}", anew.origin);
    assert!(matches!(get(ARCHITECTURES[1]).origin, Origin::Kept));
    // Another architecture is another file.
    assert!(matches!(get(ARCHITECTURES[0]).origin, Origin::Compiled));
    assert_eq!(files().len(), 2);
    // A folder that cannot be made is no failure.
    let blocked = ModuleCache::in_folder(&scratch.write("file", "").join("below"));
    let cubin = blocked.cubin(&compiler, &turn(), ARCHITECTURES[1]).unwrap();
    assert!(matches!(cubin.origin, Origin::NotKept(_)), "{:?}", cubin.origin);
}

/// The arrays of the kernels of `turn.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TurnArray {
    In,
    Out,
    Flag,
}

pub(crate) type Turned = CudaQueue<TurnArray>;

/// A device with these kernels, each with the shared memory that it may have, and this many
/// buffers.
pub(crate) fn arrays(
    (device, toolchain): (Device, Toolchain),
    kernels: &[(&'static str, u32)],
    (buffers, buffer_bytes): (usize, usize),
) -> Turned {
    let kernels = Kernels::load(&toolchain, &device, &turn(), kernels.iter().copied()).unwrap();
    let on = CudaArrays::new(Arc::new(device), kernels, None).unwrap();
    CudaQueue::new(on, buffers, buffer_bytes, 2).unwrap()
}

/// Gives a device work that a buffer is free for.
pub(crate) fn give(
    device: &mut Turned,
    up: Vec<(TurnArray, u64, Vec<&[u8]>)>,
    steps: Vec<Step<TurnArray>>,
    down: Vec<(TurnArray, Range<u64>)>,
) -> Result<Box<dyn UnderWay>, GpuError> {
    Ok(device.give(&DeviceWork { up, steps, down })?.expect("a buffer is free"))
}

pub(crate) fn wait(given: &dyn UnderWay) -> Result<(), GpuError> {
    while !given.is_done()? {
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn work_on_a_device_comes_back() {
    let Some((device, toolchain)) = device() else { return };
    let none = Kernels::load(&toolchain, &device, &turn(), [("none", 0)]);
    assert!(matches!(none, Err(GpuError::NoKernel { .. })));
    let allowance = device.memory().clone();
    let bytes = 1 << 20;
    let mut device = arrays((device, toolchain), &[("turn", 0)], (2, bytes));
    for array in [TurnArray::In, TurnArray::Out] {
        device.reserve(array, bytes as u64).unwrap();
    }
    assert_eq!(allowance.used(), 2 * bytes as u64);
    let values: Vec<u32> = (0..bytes as u32 / 4).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    for count in [1, 63, 64, 65, 1000, bytes as u32 / 4] {
        let geometry =
            Geometry { blocks: count.div_ceil(CTA), threads: CTA, shared_bytes: CTA * 4 };
        let arguments = vec![
            Argument::Array(TurnArray::In, 0),
            Argument::Array(TurnArray::Out, 0),
            Argument::Number(count),
        ];
        let step = Step { kernel: "turn", geometry, arguments };
        let used: &[u8] = bytemuck::cast_slice(&values[..count as usize]);
        let (one, other) = used.split_at(used.len() / 2);
        let up = vec![(TurnArray::In, 0, vec![one, other])];
        let down = vec![(TurnArray::Out, 0..used.len() as u64)];
        let given = give(&mut device, up, vec![step], down).unwrap();
        wait(&*given).unwrap();
        let chunks = values[..count as usize].chunks(CTA as usize);
        let expected: Vec<u32> = chunks.flat_map(|chunk| chunk.iter().rev().copied()).collect();
        let expected: &[u8] = bytemuck::cast_slice(&expected);
        assert!(given.bytes() == expected, "{count} values");
    }
    device.free_all();
    assert_eq!(allowance.used(), 0);
}

#[test]
fn a_launch_that_the_driver_refuses_names_kernel_geometry_and_device() {
    let Some(found) = device() else { return };
    let mut device = arrays(found, &[("trap", 0)], (1, 16));
    // No device has thread blocks of this many threads: nothing is launched.
    let geometry = Geometry { blocks: 1, threads: 1 << 20, shared_bytes: 0 };
    let step = Step { kernel: "trap", geometry, arguments: vec![] };
    let error = give(&mut device, vec![], vec![step], vec![]).err().unwrap().to_string();
    for part in [&*device.device(), "trap", "1 blocks of 1048576 threads"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some((device, _)) = device() else { return };
    let error = Slab::new(&device, "too much", u64::MAX >> 1).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(device.memory().used(), 0);
}

/// A trap ends all work of its process on the device, so it has one of its own: this test, called
/// again.
#[test]
fn work_that_fails_on_the_device_is_an_error_of_its_ticket() {
    const CHILD: &str = "MILLRACE_TEST_TRAP";
    if std::env::var_os(CHILD).is_some() {
        let mut device = arrays(device().unwrap(), &[("trap", 0)], (1, 16));
        let geometry = Geometry { blocks: 1, threads: 32, shared_bytes: 0 };
        let step = Step { kernel: "trap", geometry, arguments: vec![] };
        let given = give(&mut device, vec![], vec![step], vec![]).unwrap();
        let error = wait(&*given).unwrap_err().to_string();
        for part in [&*device.device(), "the kernel trap (1 blocks of 32 threads) failed"] {
            assert!(error.contains(part), "{error}");
        }
        // What is dropped now fails too, and that neither panics nor hangs.
        return;
    }
    if device().is_none() {
        return;
    }
    let test = "inside_tests::gpu::work_that_fails_on_the_device_is_an_error_of_its_ticket";
    again_in_a_process_of_its_own(test, CHILD);
}
