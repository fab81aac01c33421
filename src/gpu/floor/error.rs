//! Errors of devices. Each names the device, and the kernel and its geometry where there is one.

use super::lost::is_sticky;
use super::version::Version;
use crate::index::error::IndexError;
use crate::settings::SettingError;
use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUresult};
use cudarc::nvrtc::result::NvrtcError;
use std::ffi::CStr;
use std::fmt;
use std::sync::OnceLock;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    #[error("no GPU can be used: {}", .reasons.join("; "))]
    NoneUsable { reasons: Vec<String> },
    /// Too few GPUs, or the method does not read the lists of the index.
    #[error(transparent)]
    Setting(SettingError),
    /// `wang` needs documents in another order, or another score.
    #[error(transparent)]
    Order(IndexError),
    #[error("{device}: cannot {operation}: {fault}")]
    Call {
        device: String,
        /// Such as `create a stream`.
        operation: &'static str,
        fault: Cuda,
    },
    #[error("{device}: cannot launch the kernel {launch}: {fault}")]
    Launch { device: String, launch: Launched, fault: Cuda },
    /// Work that was under way.
    #[error("{device}: {work} failed: {fault}")]
    Work { device: String, work: GpuWork, fault: Cuda },
    /// Larger than what is left to this owner.
    #[error(
        "{device}: {what} takes {bytes} bytes of device memory, and {left} of {limit} are left"
    )]
    Budget {
        device: String,
        what: &'static str,
        bytes: u64,
        left: u64,
        /// What this owner may use.
        limit: u64,
    },
    #[error("{device}: no {bytes} bytes of {place} for {what}: {fault}")]
    Memory {
        device: String,
        /// Device memory or pinned host memory.
        place: &'static str,
        what: &'static str,
        bytes: u64,
        fault: Cuda,
    },
    #[error("{device}: cannot start a thread for it")]
    Thread {
        device: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{device}: cannot read the lists that it is to have")]
    Index { device: String, source: Box<IndexError> },
    /// Lost before: no call of this process on it can succeed.
    #[error(
        "{device}: it was lost to this process before; start a new one to use it again: {fault}"
    )]
    Lost { device: String, fault: Cuda },
    #[error(
        "NVRTC {nvrtc} cannot compile {name}.cu for {architecture} ({options}):\n{log}: {fault}"
    )]
    Compile {
        /// The source's name under `kernels/`.
        name: String,
        architecture: String,
        options: String,
        nvrtc: Version,
        log: String,
        fault: Nvrtc,
    },
    #[error(
        "{device}: the driver (CUDA {driver}) cannot load {name}.cu as NVRTC {nvrtc} compiled it \
         for {architecture}: {fault}"
    )]
    Load {
        device: String,
        name: String,
        architecture: String,
        driver: Version,
        nvrtc: Version,
        fault: Cuda,
    },
    #[error("{device}: {name}.cu has no kernel `{kernel}`: this is a bug: {fault}")]
    NoKernel { device: String, name: String, kernel: &'static str, fault: Cuda },
}

impl GpuError {
    /// Whether a smaller arena may be tried.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        match self {
            GpuError::Budget { .. } => true,
            GpuError::Memory { fault, .. } => fault.0.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            _ => false,
        }
    }

    /// Work that has not begun on it can be done elsewhere; what was on it is gone.
    pub(crate) fn is_device_lost(&self) -> bool {
        match self {
            GpuError::Lost { .. } => true,
            GpuError::Call { fault, .. }
            | GpuError::Launch { fault, .. }
            | GpuError::Work { fault, .. }
            | GpuError::Memory { fault, .. }
            | GpuError::Load { fault, .. }
            | GpuError::NoKernel { fault, .. } => is_sticky(fault.0),
            GpuError::Budget { .. }
            | GpuError::Index { .. }
            | GpuError::Thread { .. }
            | GpuError::Compile { .. }
            | GpuError::NoneUsable { .. }
            | GpuError::Setting(_)
            | GpuError::Order(_) => false,
        }
    }
}

/// Without libcuda the driver's functions panic.
pub(crate) fn has_driver() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        // SAFETY: loading libcuda runs its initialisers, which is what it is installed for.
        unsafe { sys::is_culib_present() }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cuda(pub DriverError);

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the driver knows the text, and asking for it without one panics.
        let text = if has_driver() { self.0.error_string().ok() } else { None };
        let text = text.map(CStr::to_string_lossy);
        match text {
            Some(text) => write!(f, "{text} ({:?})", self.0.0)?,
            None => write!(f, "{:?}", self.0.0)?,
        }
        match is_sticky(self.0) {
            true => write!(f, ": the device is lost to this process"),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cuda({:?})", self.0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nvrtc(pub NvrtcError);

impl fmt::Display for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub blocks: u32,
    pub threads: u32,
    /// Dynamic, of each block.
    pub shared_bytes: u32,
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks of {} threads", self.blocks, self.threads)?;
        match self.shared_bytes {
            0 => Ok(()),
            bytes => write!(f, " and {bytes} bytes"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    pub kernel: &'static str,
    pub geometry: Geometry,
}

impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kernel, self.geometry)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuWork {
    Upload(u64),
    Kernel(Launched),
    Download(u64),
}

impl fmt::Display for GpuWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuWork::Upload(bytes) => write!(f, "a copy of {bytes} bytes to the device"),
            GpuWork::Kernel(launched) => write!(f, "the kernel {launched}"),
            GpuWork::Download(bytes) => write!(f, "a copy of {bytes} bytes from the device"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_kernel_geometry_and_device() {
        let geometry = Geometry { blocks: 480, threads: 32, shared_bytes: 0 };
        let launch = Launched { kernel: "insert", geometry };
        let fault = Cuda(DriverError(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
        let error = GpuError::Launch { device: "GPU 0 (a device)".into(), launch, fault };
        let not_launched =
            "GPU 0 (a device): cannot launch the kernel insert (480 blocks of 32 threads)";
        assert_eq!(error.to_string(), format!("{not_launched}: {fault}"));
        let work = GpuWork::Kernel(launch);
        let error = GpuError::Work { device: "GPU 0 (a device)".into(), work, fault };
        let failed = "GPU 0 (a device): the kernel insert (480 blocks of 32 threads) failed";
        assert_eq!(error.to_string(), format!("{failed}: {fault}"));
        assert!(!error.is_out_of_memory());
    }

    #[test]
    fn only_memory_that_was_asked_for_is_tried_smaller() {
        let memory = |reason| GpuError::Memory {
            device: "GPU 0 (a device)".into(),
            place: "device memory",
            what: "nodes",
            bytes: 512,
            fault: Cuda(DriverError(reason)),
        };
        let full = memory(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(full.is_out_of_memory() && !full.is_device_lost());
        // A fault shows in whatever is called next.
        let fault = memory(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert!(!fault.is_out_of_memory() && fault.is_device_lost());
        let text = fault.to_string();
        assert!(text.ends_with(": the device is lost to this process"), "{text}");
        let refused = memory(CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(!refused.is_out_of_memory() && !refused.is_device_lost());
    }

    #[test]
    fn shared_memory_belongs_to_the_geometry() {
        let geometry = Geometry { blocks: 1, threads: 1024, shared_bytes: 2048 };
        assert_eq!(geometry.to_string(), "1 blocks of 1024 threads and 2048 bytes");
    }
}
