//! Indexers on devices: how many there are, what memory they have, and who stands in for one that
//! cannot be opened.

use super::cpu::CpuIndexer;
use super::gpu::btree::trees::Trees;
use super::gpu::indexer::GpuIndexer;
use super::gpu::indexer::cuda::{self, IndexerSizes};
use super::gpu::indexer::opening::Opening;
use super::indexer::TokenIndexer;
use super::lane::MakeIndexer;
use crate::build::error::BuildError;
use crate::build::handed::{FoundDevices, HandedBuild};
use crate::build::note::{Note, Notes};
use crate::dictionary::closed::ClosedError;
use crate::gpu::floor::cache::Origin;
use crate::gpu::floor::error::GpuError;
use crate::settings::SettingError;
use crate::shown::chain;

/// Indexers on a device by default. One would keep it busy; this many were best while what an
/// indexer had found was encoded by its worker alone. All workers do that now.
const ON_A_DEVICE: usize = 16;

/// What a GPU indexer may pin where memory allows it, however small its share is.
const ENOUGH_HOST_BYTES: usize = 8 << 20;

fn note(notes: Option<&Notes>, note: &Note) {
    if let Some(notes) = notes {
        notes(note);
    }
}

/// The indexers on devices: as `asked`, or [`ON_A_DEVICE`] on each, as far as there are `workers`
/// and `host_bytes` of pinned memory do, but one on each; a note says where memory does not do even
/// for that.
///
/// # Errors
/// There is no device, or not the memory, for those that were asked for.
pub(super) fn indexers(
    found: FoundDevices<'_>,
    asked: Option<usize>,
    workers: usize,
    host_bytes: u64,
) -> Result<usize, BuildError> {
    let devices = found.devices.len();
    let least = IndexerSizes::LEAST_HOST_BYTES as u64;
    let room = usize::try_from(host_bytes / least).unwrap_or(usize::MAX);
    match asked {
        Some(asked) if asked > 0 && devices == 0 => {
            let reasons = found.reasons.join("; ");
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
                note(found.notes, &Note::FewerGpus { used: room, devices });
            }
            let on_each = room.min(workers) / devices.max(1);
            Ok((devices * on_each.clamp(1, ON_A_DEVICE)).min(room))
        }
    }
}

/// Makes each indexer by its number: those on GPUs come first, each on its device modulo their
/// number. One whose device has not enough memory, or is lost, becomes one on the CPU, and a note
/// says so: nothing of it is in use yet, and the index is the same.
pub(super) fn make(build: &HandedBuild<'_>) -> MakeIndexer {
    let roles = build.roles;
    let sizes = sizes(build);
    let devices = build.found.devices.to_vec();
    let toolchain = build.found.toolchain.cloned();
    let notes = build.found.notes.cloned();
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

/// What each GPU indexer may take of the host's memory: room for two blocks on their way, which
/// are its share of what is parsed, and what comes back, out of a quarter of the memory for all
/// that is under way. Pinning is slow, and a larger block goes in parts.
pub(super) fn sizes(build: &HandedBuild<'_>) -> IndexerSizes {
    let HandedBuild { roles, budget, plan, parse_block, .. } = *build;
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
    match opened {
        Ok((trees, origin)) => {
            if let Origin::NotKept(error) = origin {
                note(notes, &Note::KernelsNotKept { reason: error.to_string() });
            }
            Ok(Box::new(GpuIndexer::new(trees)))
        }
        Err(error) if error.is_out_of_memory() || error.is_device_lost() => {
            note(notes, &Note::IndexerOnCpu { indexer: owner, reason: chain(&error) });
            Ok(Box::new(CpuIndexer::default()))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::lock;
    use crate::gpu::floor::discover::DeviceInfo;
    use crate::gpu::floor::version::Architecture;
    use std::sync::{Arc, Mutex};

    fn devices(count: usize) -> Vec<DeviceInfo> {
        let device = |ordinal| DeviceInfo {
            ordinal,
            name: "a device".into(),
            architecture: Architecture(90),
            memory_bytes: 1 << 30,
            multiprocessors: 8,
        };
        (0..count).map(device).collect()
    }

    /// The indexers of this many devices, and how often a note was given.
    fn chosen(
        count: usize,
        asked: Option<usize>,
        workers: usize,
        host_bytes: u64,
    ) -> (Result<usize, String>, Vec<Note>) {
        let told = Arc::<Mutex<Vec<Note>>>::default();
        let tell = told.clone();
        let notes: Notes = Arc::new(move |note: &Note| lock(&tell).push(note.clone()));
        let reasons = ["a reason".to_string()];
        let devices = devices(count);
        let found = FoundDevices {
            devices: &devices,
            toolchain: None,
            reasons: &reasons,
            notes: Some(&notes),
        };
        let chosen = indexers(found, asked, workers, host_bytes).map_err(|error| error.to_string());
        let told = std::mem::take(&mut *lock(&told));
        (chosen, told)
    }

    #[test]
    fn devices_and_memory_bound_the_indexers() {
        let two = 2 * IndexerSizes::LEAST_HOST_BYTES as u64;
        let indexers = |devices, asked| chosen(devices, asked, 16, two).0;
        for (devices, asked, expected) in [
            (0, None, 0),
            (1, None, 2),
            (8, None, 2),
            (8, Some(1), 1),
            (1, Some(2), 2),
            (0, Some(0), 0),
        ] {
            assert_eq!(indexers(devices, asked), Ok(expected), "{devices} {asked:?}");
        }
        // Where memory does for any number.
        for (devices, workers, expected) in
            [(1, 16, 16), (1, 32, 16), (1, 3, 3), (2, 16, 16), (3, 8, 6), (4, 2, 4)]
        {
            let got = chosen(devices, None, workers, u64::MAX).0;
            assert_eq!(got, Ok(expected), "{devices} devices, {workers} workers");
        }
        let expected = "gpu-indexers: 1 indexers on GPUs: no GPU can be used (a reason)";
        assert_eq!(indexers(0, Some(1)), Err(expected.to_string()));
        let expected = "gpu-indexers: 3 indexers on GPUs: the memory has room for 2";
        assert_eq!(indexers(8, Some(3)), Err(expected.to_string()));
        let (_, notes) = chosen(8, None, 16, two);
        assert!(matches!(notes[..], [Note::FewerGpus { used: 2, devices: 8 }]));
    }
}
