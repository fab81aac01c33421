//! The devices that a build uses, and who works on them.

use crate::build::error::BuildError;
use crate::build::handed::FoundDevices;
use crate::build::indexer::Indexer;
use crate::build::note::{Note, Notes};
use crate::build::options::BuildOptions;
use crate::crew::{Awaited, lock};
use crate::dictionary::closed::ClosedError;
use crate::gpu::floor::cache::ModuleCache;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::discover::{DeviceInfo, Discovery};
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::invert::cuda::CudaMachine;
use crate::gpu::invert::machine::{InvertMachine, MakeMachine};
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::settings::{Gpus, SettingError};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(in crate::build) struct ChosenDevices {
    devices: Vec<DeviceInfo>,
    toolchain: Option<Toolchain>,
    /// Why there are not more.
    reasons: Vec<String>,
    /// The device that takes texts, while a thread still finds and opens it.
    awaited: Option<Awaited<Result<Box<dyn InvertMachine>, ClosedError>>>,
}

/// The devices of the machine, while they are found: the driver takes some tenths of a second.
pub(in crate::build) struct Finding {
    gpus: Gpus,
    finding: Result<Looking, String>,
}

/// A thread that looks for devices, and says before when only they are to be found.
struct Looking {
    thread: Awaited<Discovery>,
    seems: Receiver<()>,
}

/// # Errors
/// An indexer that uses no GPU was asked to use some, or one that uses one several; the system
/// gives no thread.
pub(in crate::build) fn begin_to_find(options: &BuildOptions) -> Result<Finding, BuildError> {
    let (gpus, indexer) = (options.gpus, options.indexer);
    let finding = match gpus {
        Gpus::Number(asked) if asked > 1 && matches!(indexer, Indexer::Auto | Indexer::Gpu) => {
            let several = match options.pipeline.handed {
                [] => String::new(),
                _ => format!(": {} uses several", options.indexers_of_tokens()),
            };
            let why = format!("the indexer gpu uses one GPU, and {asked} were asked for{several}");
            return Err(SettingError::value("gpus", why).into());
        }
        Gpus::Auto | Gpus::Number(_) if indexer != Indexer::Fast => {
            let (tell, seems) = channel();
            let look = move || Discovery::look(|| _ = tell.send(()));
            let thread = Awaited::begin("devices", look);
            Ok(Looking { thread: thread.map_err(BuildError::Thread)?, seems })
        }
        Gpus::Number(asked) => {
            let why = format!("the indexer {indexer} uses no GPU, and {asked} were asked for");
            return Err(SettingError::value("gpus", why).into());
        }
        Gpus::Auto => Err(format!("the indexer {indexer} uses none")),
        Gpus::None => Err("none may be used".to_string()),
    };
    Ok(Finding { gpus, finding })
}

impl Finding {
    pub(in crate::build) fn is_under_way(&self) -> bool {
        self.finding.is_ok()
    }

    /// A note says why there is none, if any could have been used.
    pub(in crate::build) fn choose(
        self,
        options: &BuildOptions,
    ) -> Result<ChosenDevices, BuildError> {
        let discovery = match self.finding {
            Ok(looking) => looking.thread.made(),
            Err(reason) => {
                return Ok(ChosenDevices { reasons: vec![reason], ..ChosenDevices::default() });
            }
        };
        let chosen = ChosenDevices::of(&discovery, self.gpus)?;
        // Who names no indexer need not know, and one that needs a device says so itself.
        if chosen.devices.is_empty() && options.indexer.handed().is_some() {
            options.note(&Note::NoGpu { reasons: chosen.reasons.clone() });
        }
        Ok(chosen)
    }

    /// What an indexer that needs a device uses. Where a driver and a compiler are there, a thread
    /// finds and opens it meanwhile; if there is none, [making](ChosenDevices::make_machine) it
    /// says so.
    ///
    /// # Errors
    /// There are fewer than were asked for, as far as that is known; the system gives no thread.
    pub(in crate::build) fn open(
        self,
        options: &BuildOptions,
    ) -> Result<ChosenDevices, BuildError> {
        let is_likely = |looking: &Looking| looking.seems.recv().is_ok();
        if !self.finding.as_ref().is_ok_and(is_likely) {
            return self.choose(options);
        }
        let Self { finding, gpus, .. } = self;
        let indexer = options.indexer;
        let open = move || {
            let discovery = finding.map(|looking| looking.thread.made()).expect("it is under way");
            ChosenDevices::of(&discovery, gpus)?.open(indexer)
        };
        let awaited = Awaited::begin("opening", open).map_err(BuildError::Thread)?;
        Ok(ChosenDevices { awaited: Some(awaited), ..ChosenDevices::default() })
    }
}

/// The names of the devices of this machine that can be used.
///
/// # Errors
/// Why there is none.
pub fn usable_gpus() -> Result<Vec<String>, String> {
    let discovery = Discovery::of_machine();
    let names: Vec<String> = discovery.usable().iter().map(|info| info.name.clone()).collect();
    if names.is_empty() { Err(discovery.reasons().join("; ")) } else { Ok(names) }
}

/// One of this many workers does not parse where a device counts words: if all cores parse, what
/// serves the device waits for a core for up to 4 ms each time that it wakes up
/// (docs/measurements/gpu-indexing.md).
const FREE_PART: usize = 6;

impl ChosenDevices {
    fn of(discovery: &Discovery, gpus: Gpus) -> Result<Self, BuildError> {
        let devices = discovery.choose(gpus).map_err(BuildError::Devices)?;
        let reasons = discovery.reasons();
        let toolchain = Toolchain::of(discovery, ModuleCache::of_user());
        Ok(Self { devices, toolchain, reasons, awaited: None })
    }

    pub(in crate::build) fn device_name(&self) -> Option<&str> {
        self.devices.first().map(|device| device.name.as_str())
    }

    pub(in crate::build) fn roles(
        &self,
        options: &BuildOptions,
        budget: &Budget,
    ) -> Result<Roles, BuildError> {
        let pipeline = &options.pipeline;
        let workers = options.workers;
        let handed = options.indexer.handed();
        let row = |name, given| {
            (name, given, handed.is_some(), format!("indexer {}", options.indexers_of_tokens()))
        };
        SettingError::check([
            row("cpu-indexers", pipeline.cpu_indexers.is_some()),
            row("gpu-indexers", pipeline.gpu_indexers.is_some()),
        ])?;
        let is_known = pipeline.make_machine.is_none() && self.awaited.is_none();
        if options.indexer == Indexer::Gpu && is_known {
            self.needs_one(options.indexer)?;
        }
        // Half of what may be under way is for pinned memory at most.
        let host_bytes = budget.under_way() * workers as u64 / 2;
        let gpu_indexers = match handed {
            Some(indexer) => {
                let found = self.found(options.notes.as_ref());
                indexer.on_devices(found, pipeline.gpu_indexers, workers, host_bytes)?
            }
            // What a device inverts is encoded by all workers.
            None => 0,
        };
        // Threads that feed devices, take counts and make terms have cores to themselves.
        let free = if options.indexer == Indexer::Gpu { workers / FREE_PART } else { 0 };
        let parsers = pipeline.parsers.or(Some(workers - free));
        let roles = Roles::new(workers, parsers, pipeline.cpu_indexers, gpu_indexers);
        Ok(roles?.on_devices(self.devices.len()))
    }

    /// The indexer where none is named and a GPU pays for this many `bytes`, which a note says.
    pub(in crate::build) fn indexer(&self, options: &BuildOptions, bytes: u64) -> Indexer {
        let given = || options.pipeline.make_machine.as_ref().map(|_| "a device".to_owned());
        let Some(device) = self.devices.first().map(ToString::to_string).or_else(given) else {
            return Indexer::Fast;
        };
        options.note(&Note::OnGpu { device, bytes });
        Indexer::Gpu
    }

    fn needs_one(&self, indexer: Indexer) -> Result<&DeviceInfo, BuildError> {
        let none = || {
            let reasons = self.reasons.join("; ");
            let why =
                format!("the indexer {indexer} needs a GPU, and none can be used ({reasons})");
            BuildError::Devices(SettingError::value("indexer", why))
        };
        self.devices.first().ok_or_else(none)
    }

    /// Opens the device that takes texts, which is the first one.
    fn open(&self, indexer: Indexer) -> Result<Box<dyn InvertMachine>, ClosedError> {
        let info = self.needs_one(indexer)?;
        let toolchain = self.toolchain.as_ref().ok_or("what can be used has a compiler")?;
        Ok(Box::new(CudaMachine::open(Device::open(info, 1)?, toolchain)?))
    }

    pub(in crate::build) fn make_machine(self, indexer: Indexer) -> MakeMachine {
        let chosen = Mutex::new(Some(self));
        Arc::new(move || {
            let chosen = lock(&chosen).take();
            let mut chosen = chosen.ok_or("a device takes the texts of one build")?;
            match chosen.awaited.take() {
                Some(awaited) => awaited.made(),
                None => chosen.open(indexer),
            }
        })
    }

    pub(in crate::build) fn found<'a>(&'a self, notes: Option<&'a Notes>) -> FoundDevices<'a> {
        let Self { devices, toolchain, reasons, .. } = self;
        FoundDevices { devices, toolchain: toolchain.as_ref(), reasons, notes }
    }
}
