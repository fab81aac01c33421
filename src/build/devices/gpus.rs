//! The devices that a build uses, and who works on them.

use crate::build::error::BuildError;
use crate::build::indexer::Indexer;
use crate::build::note::Note;
use crate::build::options::{BuildOptions, Notes};
use crate::crew::{Awaited, lock};
use crate::dataflow::build::context::MakeIndexer;
use crate::dictionary::btree::indexer::CpuIndexer;
use crate::dictionary::closed::ClosedError;
use crate::dictionary::indexer::TokenIndexer;
use crate::gpu::btree::trees::Trees;
use crate::gpu::floor::cache::{ModuleCache, Origin};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::discover::{DeviceInfo, Discovery};
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::indexer::GpuIndexer;
use crate::gpu::indexer::cuda::{self, IndexerSizes};
use crate::gpu::indexer::opening::Opening;
use crate::gpu::invert::cuda::CudaMachine;
use crate::gpu::invert::machine::{InvertMachine, MakeMachine};
use crate::input::splits::InputPlan;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::settings::{Gpus, SettingError};
use crate::shown::chain;
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
pub(in crate::build) fn begin_to_find(gpus: Gpus, indexer: Indexer) -> Result<Finding, BuildError> {
    let finding = match gpus {
        Gpus::Number(asked) if asked > 1 && matches!(indexer, Indexer::Auto | Indexer::Gpu) => {
            let why = format!(
                "the indexer gpu uses one GPU, and {asked} were asked for: wei11 uses several"
            );
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
        if chosen.devices.is_empty() && options.indexer == Indexer::Wei11 {
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

/// Indexers on a device by default. One would keep it busy, but what it has found is encoded by
/// the workers of its indexers.
const ON_A_DEVICE: usize = 16;

/// One of so many workers does not parse where a device counts words: if all cores parse, what
/// serves the device waits for a core for up to 4 ms each time that it wakes up
/// (docs/measurements/gpu-indexing.md).
const FREE_PART: usize = 6;

/// What a GPU indexer may pin where memory allows it, however small its share is.
const ENOUGH_HOST_BYTES: usize = 8 << 20;

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
        let is_wei11 = options.indexer == Indexer::Wei11;
        SettingError::check([
            ("cpu-indexers", pipeline.cpu_indexers.is_some(), is_wei11, "indexer wei11".into()),
            ("gpu-indexers", pipeline.gpu_indexers.is_some(), is_wei11, "indexer wei11".into()),
        ])?;
        let is_known = pipeline.make_machine.is_none() && self.awaited.is_none();
        if options.indexer == Indexer::Gpu && is_known {
            self.needs_one(options.indexer)?;
        }
        // Half of what may be under way is for pinned memory at most.
        let host_bytes = budget.under_way() * workers as u64 / 2;
        let note = |note| options.note(&note);
        let gpu_indexers = match options.indexer {
            Indexer::Wei11 => self.indexers(pipeline.gpu_indexers, workers, host_bytes, note)?,
            // What a device inverts is encoded by all workers.
            Indexer::Auto | Indexer::Fast | Indexer::Gpu => 0,
        };
        // Whoever feeds devices, takes what they count and makes terms has some cores to itself.
        let free = if options.indexer == Indexer::Gpu { workers / FREE_PART } else { 0 };
        let parsers = pipeline.parsers.or(Some(workers - free));
        let roles = Roles::new(workers, parsers, pipeline.cpu_indexers, gpu_indexers);
        Ok(roles?.on_devices(self.devices.len()))
    }

    /// The indexer where none is named and a GPU pays for so many `bytes`, which a note says.
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

    /// The indexers on devices: as `asked`, or [`ON_A_DEVICE`] on each, as far as there are
    /// `workers` and `host_bytes` of pinned memory do, but one on each; a note says where memory
    /// does not do even for that.
    ///
    /// # Errors
    /// There is no device, or not the memory, for those that were asked for.
    fn indexers(
        &self,
        asked: Option<usize>,
        workers: usize,
        host_bytes: u64,
        note: impl Fn(Note),
    ) -> Result<usize, BuildError> {
        let devices = self.devices.len();
        let least = IndexerSizes::LEAST_HOST_BYTES as u64;
        let room = usize::try_from(host_bytes / least).unwrap_or(usize::MAX);
        match asked {
            Some(asked) if asked > 0 && devices == 0 => {
                let reasons = self.reasons.join("; ");
                let why = format!("{asked} indexers on GPUs: no GPU can be used ({reasons})");
                Err(BuildError::Devices(SettingError::value("gpu-indexers", why)))
            }
            Some(asked) if asked > room => {
                let why = format!("{asked} indexers on GPUs: the memory has room for {room}");
                Err(SettingError::value("gpu-indexers", why).into())
            }
            Some(asked) => Ok(asked),
            None => {
                if devices > room {
                    note(Note::FewerGpus { used: room, devices });
                }
                let on_each = room.min(workers) / devices.max(1);
                Ok((devices * on_each.clamp(1, ON_A_DEVICE)).min(room))
            }
        }
    }

    /// Makes each indexer of tokens by its number: those on GPUs come first, each on its device
    /// modulo their number. One whose device has not enough memory, or is lost, becomes one on the
    /// CPU, and a note says so: nothing of it is in use yet, and the index is the same.
    pub(in crate::build) fn make_indexer(
        &self,
        roles: Roles,
        sizes: IndexerSizes,
        notes: Option<Notes>,
    ) -> MakeIndexer {
        let devices = self.devices.clone();
        let toolchain = self.toolchain.clone();
        Box::new(move |owner| {
            let Some(toolchain) = toolchain.as_ref().filter(|_| roles.on_gpu(owner)) else {
                return Ok(Box::new(CpuIndexer::default()));
            };
            let number = owner as usize % devices.len();
            let alike = |g: &usize| g % devices.len() == number;
            let owners = (0..roles.gpu_indexers).filter(alike).count();
            let device = devices[number].clone();
            let toolchain = toolchain.clone();
            let open = move || cuda::open(&device, owners, &toolchain, &sizes);
            let notes = notes.clone();
            let begin = move |opened| begin(owner, opened, notes.as_ref());
            Ok(Box::new(Opening::new(open, begin)?))
        })
    }
}

/// What each GPU indexer may take of the host's memory: room for two blocks on their way, which
/// are its share of what is parsed, and what comes back, out of a quarter of the memory for all
/// that is under way. Pinning is slow, and a larger block goes in parts.
pub(in crate::build) fn gpu_sizes(
    parse_block: u64,
    budget: &Budget,
    roles: &Roles,
    plan: &InputPlan,
) -> IndexerSizes {
    let under_way = budget.under_way() as usize * roles.workers;
    let indexers = roles.gpu_indexers.max(1);
    let blocks = usize::try_from(parse_block).unwrap_or(usize::MAX).saturating_mul(4);
    let host_bytes = (blocks / indexers).max(ENOUGH_HOST_BYTES).min(under_way / 4 / indexers);
    let host_bytes = host_bytes.max(IndexerSizes::LEAST_HOST_BYTES);
    // A run costs less than its text, for which the bytes of the files stand; twice its share,
    // for shares are not equal. A pipe, which has no size, may bring anything.
    let known = (0..plan.inputs.len()).all(|input| plan.inputs.bytes(input) > 0);
    let text = if known { plan.bytes() / indexers as u64 * 2 } else { u64::MAX };
    IndexerSizes { host_bytes, run_limit: budget.run_limit.min(text) }
}

fn begin(
    owner: u32,
    opened: Result<(Trees, Origin), GpuError>,
    notes: Option<&Notes>,
) -> Result<Box<dyn TokenIndexer>, ClosedError> {
    let note = |note: Note| {
        if let Some(notes) = notes {
            notes(&note);
        }
    };
    match opened {
        Ok((trees, origin)) => {
            if let Origin::NotKept(error) = origin {
                note(Note::KernelsNotKept { reason: error.to_string() });
            }
            Ok(Box::new(GpuIndexer::new(trees)))
        }
        Err(error) if error.is_out_of_memory() || error.is_device_lost() => {
            note(Note::IndexerOnCpu { indexer: owner, reason: chain(&error) });
            Ok(Box::new(CpuIndexer::default()))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::floor::version::Architecture;

    fn chosen(devices: usize) -> ChosenDevices {
        let device = |ordinal| DeviceInfo {
            ordinal,
            name: "a device".into(),
            architecture: Architecture(90),
            memory_bytes: 1 << 30,
            multiprocessors: 8,
        };
        let devices = (0..devices).map(device).collect();
        ChosenDevices { devices, reasons: vec!["a reason".into()], ..ChosenDevices::default() }
    }

    #[test]
    fn devices_and_memory_bound_the_indexers() {
        let two = 2 * IndexerSizes::LEAST_HOST_BYTES as u64;
        let indexers = |devices, asked| chosen(devices).indexers(asked, 16, two, |_| ());
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
            let got = chosen(devices).indexers(None, workers, u64::MAX, |_| ()).unwrap();
            assert_eq!(got, expected, "{devices} devices, {workers} workers");
        }
        let error = indexers(0, Some(1)).unwrap_err();
        let expected = "gpu-indexers: 1 indexers on GPUs: no GPU can be used (a reason)";
        assert_eq!(error.to_string(), expected);
        let error = indexers(8, Some(3)).unwrap_err();
        let expected = "gpu-indexers: 3 indexers on GPUs: the memory has room for 2";
        assert_eq!(error.to_string(), expected);
        let notes = std::cell::RefCell::new(Vec::new());
        chosen(8).indexers(None, 16, two, |note| notes.borrow_mut().push(note)).unwrap();
        assert!(matches!(notes.borrow()[..], [Note::FewerGpus { used: 2, devices: 8 }]));
    }
}
