//! Which devices does a job use, and who works on them?

use crate::Usage;
use anyhow::bail;
use millrace::dataflow::build::MakeIndexer;
use millrace::dictionary::btree::indexer::CpuIndexer;
use millrace::dictionary::closed::ClosedError;
use millrace::dictionary::indexer::TokenIndexer;
use millrace::gpu::cache::{ModuleCache, Origin};
use millrace::gpu::discover::{DeviceInfo, Discovery, Gpus};
use millrace::gpu::error::GpuError;
use millrace::gpu::indexer::GpuIndexer;
use millrace::gpu::indexer::cuda::{CudaTrees, Sizes};
use millrace::gpu::indexer::opening::Opening;
use millrace::gpu::modules::Toolchain;
use millrace::schedule::roles::Roles;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle};

/// The devices that a job uses, and what their kernels are made with.
pub(crate) struct Chosen {
    devices: Vec<DeviceInfo>,
    toolchain: Option<Toolchain>,
    /// Why there are not more.
    reasons: Vec<String>,
}

/// The devices of the machine, while they are found: the driver takes some tenths of a second.
pub(crate) struct Finding {
    gpus: Gpus,
    finding: Result<JoinHandle<Discovery>, String>,
}

/// Begins to find the devices that an index is built with.
///
/// # Errors
/// The indexer uses no GPU and the option asks for some.
pub(crate) fn for_indexer(gpus: Gpus, indexer: &str) -> anyhow::Result<Finding> {
    let finding = match gpus {
        Gpus::Auto | Gpus::Number(_) if indexer == "wei11" => {
            Ok(Builder::new().name("devices".into()).spawn(Discovery::of_machine)?)
        }
        Gpus::Number(n) => {
            let message = format!("--gpus {n}: --indexer {indexer} uses no GPU; give auto or none");
            return Err(Usage(message).into());
        }
        Gpus::Auto | Gpus::None => Err(format!("--gpus none, or --indexer {indexer}, uses none")),
    };
    Ok(Finding { gpus, finding })
}

impl Finding {
    /// Whether devices are looked for at all.
    pub(crate) fn is_under_way(&self) -> bool {
        self.finding.is_ok()
    }

    /// What is used. With `auto` and none that can be used, a note says why, if the indexer could
    /// have used one.
    ///
    /// # Errors
    /// There are fewer than the option asks for.
    pub(crate) fn choose(self, quiet: bool) -> anyhow::Result<Chosen> {
        let discovery = match self.finding {
            Ok(finding) => finding.join().unwrap_or_else(|cause| resume_unwind(cause)),
            Err(reason) => {
                let reasons = vec![reason];
                return Ok(Chosen { devices: Vec::new(), toolchain: None, reasons });
            }
        };
        let devices = discovery.choose(self.gpus)?;
        let reasons = discovery.reasons();
        if devices.is_empty() && !quiet {
            say!("millrace: no GPU is used: {}", reasons.join("; "));
        }
        let toolchain = discovery.driver.zip(discovery.compiler).map(|(driver, compiler)| {
            let cache = ModuleCache::of_user();
            Toolchain { driver, compiler, cache }
        });
        Ok(Chosen { devices, toolchain, reasons })
    }
}

/// How many devices can be used.
///
/// # Errors
/// Why there is none.
pub(crate) fn usable() -> Result<usize, String> {
    let discovery = Discovery::of_machine();
    match discovery.usable().len() {
        0 => Err(discovery.reasons().join("; ")),
        n => Ok(n),
    }
}

/// Indexers on one device if nothing else is asked for. One would keep a device busy; but what it
/// has found is encoded by the workers of its indexers.
const ON_A_DEVICE: usize = 16;

impl Chosen {
    /// Devices that are used.
    pub(crate) fn devices(&self) -> usize {
        self.devices.len()
    }

    /// How many indexers work on devices: [`ON_A_DEVICE`] on each unless it was `asked` otherwise,
    /// as far as there are `workers` and `host_bytes` of pinned memory do, but one on each; a note
    /// says where memory does not do even for that.
    ///
    /// # Errors
    /// There is no device, or not the memory, for those that were asked for.
    pub(crate) fn indexers(
        &self,
        asked: Option<usize>,
        workers: usize,
        host_bytes: u64,
        quiet: bool,
    ) -> anyhow::Result<usize> {
        let (devices, least) = (self.devices.len(), Sizes::LEAST_HOST_BYTES as u64);
        let most = usize::try_from(host_bytes / least).unwrap_or(usize::MAX);
        match asked {
            Some(n) if n > 0 && devices == 0 => {
                bail!("--gpu-indexers {n}: no GPU can be used ({})", self.reasons.join("; "))
            }
            Some(n) if n > most => {
                let message = format!("--gpu-indexers {n}: --memory has room for {most}");
                Err(Usage(message).into())
            }
            Some(n) => Ok(n),
            None => {
                if devices > most && !quiet {
                    say!("millrace: {most} of {devices} GPUs are used: --memory is small");
                }
                let on_each = most.min(workers) / devices.max(1);
                Ok((devices * on_each.clamp(1, ON_A_DEVICE)).min(most))
            }
        }
    }

    /// Makes each indexer of tokens by its number: those on GPUs come first, each on its device
    /// modulo their number. One whose device has not enough memory becomes one on the CPU, and a
    /// warning says so: nothing of it is in use yet, and the index is the same.
    pub(crate) fn make_indexer(&self, roles: Roles, sizes: Sizes, quiet: bool) -> MakeIndexer {
        let (devices, toolchain) = (self.devices.clone(), self.toolchain.clone());
        Box::new(move |owner| {
            let Some(toolchain) = toolchain.as_ref().filter(|_| roles.on_gpu(owner)) else {
                return Ok(Box::new(CpuIndexer::default()));
            };
            let number = owner as usize % devices.len();
            let alike = |g: &usize| g % devices.len() == number;
            let owners = (0..roles.gpu_indexers).filter(alike).count();
            let (device, toolchain) = (devices[number].clone(), toolchain.clone());
            let open = move || CudaTrees::open(&device, owners, &toolchain, &sizes);
            Ok(Box::new(Opening::new(open, move |opened| begin(owner, opened, quiet))?))
        })
    }
}

/// Makes an indexer of what came of opening its device.
fn begin(
    owner: u32,
    opened: Result<CudaTrees, GpuError>,
    quiet: bool,
) -> Result<Box<dyn TokenIndexer>, ClosedError> {
    match opened {
        Ok(trees) => {
            if let Origin::NotKept(error) = trees.origin()
                && !quiet
            {
                say!("millrace: compiled kernels cannot be kept: {error}");
            }
            Ok(Box::new(GpuIndexer::new(trees)))
        }
        Err(error) if error.is_out_of_memory() => {
            if !quiet {
                let error = anyhow::Error::from(error);
                say!("millrace: indexer {owner} works on the CPU: {error:#}");
            }
            Ok(Box::new(CpuIndexer::default()))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace::gpu::version::Architecture;

    fn chosen(devices: usize) -> Chosen {
        let device = |ordinal| DeviceInfo {
            ordinal,
            name: "a device".into(),
            architecture: Architecture(90),
            memory_bytes: 1 << 30,
            multiprocessors: 8,
        };
        let devices = (0..devices).map(device).collect();
        Chosen { devices, toolchain: None, reasons: vec!["a reason".into()] }
    }

    #[test]
    fn devices_and_memory_bound_the_indexers() {
        let two = 2 * Sizes::LEAST_HOST_BYTES as u64;
        let indexers = |devices, asked| chosen(devices).indexers(asked, 16, two, true);
        for (devices, asked, expected) in [
            (0, None, 0),
            (1, None, 2),
            (8, None, 2),
            (8, Some(1), 1),
            (1, Some(2), 2),
            (0, Some(0), 0),
        ] {
            assert_eq!(indexers(devices, asked).unwrap(), expected, "{devices} {asked:?}");
        }
        // Where memory does for any number.
        for (devices, workers, expected) in
            [(1, 16, 16), (1, 32, 16), (1, 3, 3), (2, 16, 16), (3, 8, 6), (4, 2, 4)]
        {
            let got = chosen(devices).indexers(None, workers, u64::MAX, true).unwrap();
            assert_eq!(got, expected, "{devices} devices, {workers} workers");
        }
        let error = indexers(0, Some(1)).unwrap_err();
        assert_eq!(error.to_string(), "--gpu-indexers 1: no GPU can be used (a reason)");
        assert!(!error.is::<Usage>());
        assert!(indexers(8, Some(3)).unwrap_err().is::<Usage>());
    }
}
