//! NVRTC, which compiles the source of a kernel for a device.
//!
//! It needs neither a driver nor a device. It makes code of one architecture (a cubin), never PTX,
//! which an older driver refuses, and which the driver would compile at every start. Additions and
//! products are never fused, so that scores have the bits of the CPU's.

use super::error::{GpuError, Nvrtc};
use super::version::{Architecture, Version};
use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;
use std::ffi::CString;
use std::ptr;
use tracing::debug;

pub(crate) const LEAST_NVRTC: Version = Version { major: 12, minor: 0 };

/// Of every compilation, beside the architecture.
const OPTIONS: [&str; 3] = ["--std=c++17", "--fmad=false", "--generate-line-info"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelSource {
    /// Without `.cu`.
    pub name: &'static str,
    pub text: &'static str,
    /// Constants by their names in the source.
    pub sizes: Vec<(&'static str, u32)>,
}

impl KernelSource {
    /// The names of its kernels, which may have bounds of their threads before them.
    pub(crate) fn kernels(&self) -> Vec<&'static str> {
        let heads = self.text.split("extern \"C\" __global__ void ").skip(1);
        let name = |head: &'static str| {
            let bounds = head.strip_prefix("__launch_bounds__(").and_then(|it| it.split_once(')'));
            let head = bounds.map_or(head, |(_, behind)| behind.trim_start());
            head.split('(').next().unwrap_or_default()
        };
        heads.map(name).collect()
    }

    pub(crate) fn options(&self, architecture: Architecture) -> Vec<String> {
        let mut options: Vec<String> = OPTIONS.iter().map(ToString::to_string).collect();
        options.push(format!("--gpu-architecture={architecture}"));
        options.extend(self.sizes.iter().map(|(name, value)| format!("-D{name}={value}")));
        options
    }
}

/// Found and new enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    version: Version,
    architectures: Vec<Architecture>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NoCompiler {
    #[error(
        "no libnvrtc, which compiles the kernels: install the CUDA toolkit or the wheel \
         nvidia-cuda-nvrtc, and put the library's folder into LD_LIBRARY_PATH"
    )]
    NoLibrary,
    #[error("NVRTC {found} is too old: {LEAST_NVRTC} is the least")]
    TooOld { found: Version },
    /// It does not tell its version or architectures.
    #[error("NVRTC does not answer: {0}")]
    Silent(Nvrtc),
}

impl Compiler {
    /// By the rules of the dynamic linker.
    pub(crate) fn find() -> Result<Self, NoCompiler> {
        // SAFETY: loading libnvrtc runs its initialisers, which is what it is installed for.
        if !unsafe { sys::is_culib_present() } {
            return Err(NoCompiler::NoLibrary);
        }
        let silent = |error| NoCompiler::Silent(Nvrtc(error));
        let mut major = 0;
        let mut minor = 0;
        // SAFETY: both pointers lead to integers that outlive the call.
        unsafe { sys::nvrtcVersion(&mut major, &mut minor) }.result().map_err(silent)?;
        let number = |n: i32| u32::try_from(n).unwrap_or(0);
        let version = Version { major: number(major), minor: number(minor) };
        if version < LEAST_NVRTC {
            return Err(NoCompiler::TooOld { found: version });
        }
        let mut count = 0;
        // SAFETY: the pointer leads to an integer that outlives the call, which NVRTC 12 has.
        unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) }.result().map_err(silent)?;
        let mut found = vec![0; usize::try_from(count).unwrap_or(0)];
        if !found.is_empty() {
            // SAFETY: the array has the length that the call before told.
            unsafe { sys::nvrtcGetSupportedArchs(found.as_mut_ptr()) }.result().map_err(silent)?;
        }
        let architectures = found.into_iter().map(|n| Architecture(number(n))).collect();
        Ok(Self { version, architectures })
    }

    #[cfg(test)]
    pub(crate) fn pretended(version: Version, architectures: &[u32]) -> Self {
        let architectures = architectures.iter().copied().map(Architecture).collect();
        Self { version, architectures }
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn architectures(&self) -> &[Architecture] {
        &self.architectures
    }

    /// Returns the cubin.
    pub(crate) fn compile(
        &self,
        source: &KernelSource,
        architecture: Architecture,
    ) -> Result<Vec<u8>, GpuError> {
        let options = source.options(architecture);
        debug!(kernel = source.name, %architecture, "compiling");
        let failed = |error: NvrtcError, log: String| GpuError::Compile {
            name: source.name.to_owned(),
            architecture: architecture.to_string(),
            options: options.join(" "),
            nvrtc: self.version,
            log,
            fault: Nvrtc(error),
        };
        let before = |error| failed(error, String::new());
        let invalid = || before(NvrtcError(sys::nvrtcResult::NVRTC_ERROR_INVALID_INPUT));
        let text = CString::new(source.text).map_err(|_| invalid())?;
        let name = CString::new(format!("{}.cu", source.name)).map_err(|_| invalid())?;
        let program = Program(result::create_program(&text, Some(&name)).map_err(before)?);
        // SAFETY: the program was created above and is destroyed when it goes out of scope.
        unsafe { result::compile_program(program.0, &options) }
            .map_err(|error| failed(error, program.log()))?;
        program.cubin().map_err(before)
    }
}

struct Program(sys::nvrtcProgram);

impl Program {
    fn log(&self) -> String {
        // SAFETY: the program lives.
        match unsafe { result::get_program_log(self.0) } {
            Ok(log) => {
                let bytes: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&b| b != 0).collect();
                String::from_utf8_lossy(&bytes).trim_end().to_owned()
            }
            Err(error) => format!("(no log: {error})"),
        }
    }

    fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = 0;
        // SAFETY: the program lives and the pointer leads to an integer that outlives the call.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &mut bytes) }.result()?;
        let mut cubin = vec![0u8; bytes];
        // SAFETY: the array has the length that the call before told.
        unsafe { sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast()) }.result()?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let program = std::mem::replace(&mut self.0, ptr::null_mut());
        // SAFETY: `create_program` made it, and it is destroyed once. A failure would leak memory.
        _ = unsafe { result::destroy_program(program) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_their_heads() {
        let text = "extern \"C\" __global__ void a(u32 b) {}\n__device__ void c() {}\n\
                    extern \"C\" __global__ void __launch_bounds__(32 * D, 2)\ne_f(u32 g) {}\n";
        let source = KernelSource { name: "x", text, sizes: Vec::new() };
        assert_eq!(source.kernels(), ["a", "e_f"]);
    }

    #[test]
    fn options_name_architecture_and_sizes() {
        let source = KernelSource { name: "x", text: "", sizes: vec![("CTA_THREADS", 32)] };
        let options = source.options(Architecture(90));
        assert!(options.contains(&"--gpu-architecture=sm_90".to_owned()));
        assert!(options.contains(&"-DCTA_THREADS=32".to_owned()));
        assert!(options.contains(&"--fmad=false".to_owned()));
    }
}
