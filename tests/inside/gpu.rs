//! Do kernels compile where there is no device, and does work on a device come back?
//!
//! NVRTC needs no device: with the library every kernel is compiled for the architectures that are
//! supported. What needs the library or a device and finds none prints that it was skipped, unless
//! `MILLRACE_REQUIRE_NVRTC` or `MILLRACE_REQUIRE_GPU` is set: then it fails.

mod streams;

use crate::inside_tests::util::*;
use millrace::gpu;
use millrace::gpu::floor::cache::{ModuleCache, Origin};
use millrace::gpu::floor::device::{Device, Ticket};
use millrace::gpu::floor::discover::{DeviceInfo, Discovery};
use millrace::gpu::floor::error::{Geometry, GpuError, GpuWork};
use millrace::gpu::floor::modules::Toolchain;
use millrace::gpu::floor::nvrtc::{Compiler, Source};
use millrace::gpu::floor::pinned::{PinnedPool, Way};
use millrace::gpu::floor::version::Architecture;
use std::fs;
use std::path::Path;

/// The oldest that is supported, the usual one, and the one that is measured.
const ARCHITECTURES: [Architecture; 3] = [Architecture(75), Architecture(80), Architecture(90)];

const CTA: u32 = 64;

/// The kernels of `turn.cu`: one of them traps.
pub(crate) fn turn() -> Source {
    let text =
        concat!(include_str!("../../kernels/common.cuh"), include_str!("../kernels/turn.cu"));
    Source { name: "turn", text, sizes: vec![("CTA", CTA)] }
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

#[test]
fn every_source_has_a_wrapper() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = fs::read_dir(root.join("kernels"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let mut names: Vec<&str> = gpu::sources().iter().map(|source| source.name).collect();
    names.sort_unstable();
    assert_eq!(names, files, "kernels/ and gpu::sources() differ");
    for name in names {
        assert!(root.join(format!("src/gpu/{name}.rs")).exists(), "{name}.cu has no wrapper");
    }
}

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let Some(compiler) = compiler() else { return };
    for source in gpu::sources().into_iter().chain([turn()]) {
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
    let source = Source { name: "bad", text: "__global__ void f() { x = 1; }", sizes: Vec::new() };
    let error = compiler.compile(&source, ARCHITECTURES[2]).unwrap_err().to_string();
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
    let first = get(ARCHITECTURES[2]);
    assert!(matches!(first.origin, Origin::Compiled), "{:?}", first.origin);
    let again = get(ARCHITECTURES[2]);
    assert!(matches!(again.origin, Origin::Kept), "{:?}", again.origin);
    assert_eq!(first.bytes, again.bytes);
    // A damaged file is replaced.
    let file = files().remove(0);
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let anew = get(ARCHITECTURES[2]);
    assert!(matches!(anew.origin, Origin::Compiled), "{:?}", anew.origin);
    assert!(matches!(get(ARCHITECTURES[2]).origin, Origin::Kept));
    // Another architecture is another file.
    assert!(matches!(get(ARCHITECTURES[0]).origin, Origin::Compiled));
    assert_eq!(files().len(), 2);
    // A folder that cannot be made is no failure.
    let blocked = ModuleCache::in_folder(&scratch.write("file", "").join("below"));
    let cubin = blocked.cubin(&compiler, &turn(), ARCHITECTURES[2]).unwrap();
    assert!(matches!(cubin.origin, Origin::NotKept(_)), "{:?}", cubin.origin);
}

pub(crate) fn wait(ticket: &Ticket) -> Result<(), GpuError> {
    while !ticket.is_done()? {
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn work_on_a_device_comes_back() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let kernel = module.kernel(&device, "turn").unwrap();
    assert!(matches!(module.kernel(&device, "none"), Err(GpuError::NoKernel { .. })));
    let bytes = 1 << 20;
    let mut up = PinnedPool::new(&device, Way::Upload, 2, bytes).unwrap();
    let mut down = PinnedPool::new(&device, Way::Download, 2, bytes).unwrap();
    let mut input = device.alloc::<u32>("input", bytes / 4).unwrap();
    let mut output = device.alloc::<u32>("output", bytes / 4).unwrap();
    assert_eq!(device.memory().used(), 2 * bytes as u64);
    for count in [1, 63, 64, 65, 1000, bytes as u32 / 4] {
        let mut from = up.take().unwrap();
        let values: &mut [u32] = bytemuck::cast_slice_mut(from.bytes_mut().unwrap());
        for (n, value) in (0..count).zip(&mut *values) {
            *value = n.wrapping_mul(0x9e37_79b9);
        }
        let used = count as usize * 4;
        let uploaded =
            device.copy_up::<u32>(device.upload(), &from, 0..used, input.slice_mut()).unwrap();
        device.order(device.upload(), device.compute()).unwrap();
        let shared_bytes = CTA * 4;
        let geometry = Geometry { blocks: count.div_ceil(CTA), threads: CTA, shared_bytes };
        // SAFETY: the kernel stays below `count`, which both buffers hold.
        let launched = unsafe {
            kernel.launch(device.compute(), geometry, |arguments| {
                use cudarc::driver::PushKernelArg;
                arguments.arg(input.slice()).arg(output.slice_mut()).arg(&count);
            })
        };
        let computed = device.ticket(device.compute(), GpuWork::Kernel(launched.unwrap())).unwrap();
        device.order(device.compute(), device.download()).unwrap();
        let mut to = down.take().unwrap();
        let part = output.slice().slice(..count as usize);
        let downloaded = device.copy_down(device.download(), &part, &mut to, 0).unwrap();
        for ticket in [&downloaded, &computed, &uploaded] {
            wait(ticket).unwrap();
        }
        let found: &[u32] = bytemuck::cast_slice(&to.bytes().unwrap()[..used]);
        let expected: Vec<u32> = (0..count)
            .collect::<Vec<u32>>()
            .chunks(CTA as usize)
            .flat_map(|chunk| chunk.iter().rev().map(|n| n.wrapping_mul(0x9e37_79b9)))
            .collect();
        assert_eq!(found, expected, "{count} values");
        up.give(from);
        down.give(to);
    }
    drop((input, output));
    assert_eq!(device.memory().used(), 0);
}

#[test]
fn a_launch_that_the_driver_refuses_names_kernel_geometry_and_device() {
    let Some((device, toolchain)) = device() else { return };
    let module = toolchain.load(&device, &turn()).unwrap();
    let kernel = module.kernel(&device, "trap").unwrap();
    let geometry = Geometry { blocks: 1, threads: 1 << 20, shared_bytes: 0 };
    // SAFETY: no device has thread blocks of so many threads: nothing is launched.
    let error =
        unsafe { kernel.launch(device.compute(), geometry, |_| ()) }.unwrap_err().to_string();
    let named = device.info().to_string();
    for part in [&*named, "trap", "1 blocks of 1048576 threads"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some((device, _)) = device() else { return };
    let error = device.alloc::<u8>("too much", usize::MAX >> 1).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(device.memory().used(), 0);
}

/// A trap ends all work of its process on the device, so it has one of its own: this test, called
/// again.
#[test]
fn work_that_fails_on_the_device_is_an_error_of_its_ticket() {
    const CHILD: &str = "MILLRACE_TEST_TRAP";
    if std::env::var_os(CHILD).is_some() {
        let (device, toolchain) = device().unwrap();
        let kernel = toolchain.load(&device, &turn()).unwrap().kernel(&device, "trap").unwrap();
        let geometry = Geometry { blocks: 1, threads: 32, shared_bytes: 0 };
        // SAFETY: the kernel touches no memory.
        let launched = unsafe { kernel.launch(device.compute(), geometry, |_| ()) }.unwrap();
        let ticket = device.ticket(device.compute(), GpuWork::Kernel(launched)).unwrap();
        let error = wait(&ticket).unwrap_err().to_string();
        let named = device.info().to_string();
        for part in [&*named, "the kernel trap (1 blocks of 32 threads) failed"] {
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
