//! A build whose device is lost begins again on the CPU, for what was on it is gone. If no device
//! was asked for, any refusal of the device restarts the build on the CPU.

use crate::build::error::BuildError;
use crate::build::indexer::Indexer;
use crate::build::note::Note;
use crate::build::options::{BuildOptions, Input};
use crate::build::prepare::Ready;
use crate::dataflow::control::JobError;
use crate::gpu::floor::error::GpuError;
use crate::settings::Gpus;
use crate::shown::chain;
use std::fs;

/// What a build reads on the CPU whose device was lost, or did not do what nobody had asked of it,
/// if the input can be read again.
pub(in crate::build) fn on_cpu(
    options: &mut BuildOptions,
    failure: &BuildError,
) -> Result<Option<Ready>, BuildError> {
    let BuildError::Job(JobError::Operator { source, .. }) = failure else { return Ok(None) };
    let is_lost = |error: &&GpuError| error.is_device_lost() || options.chose_gpu;
    let Some(lost) = source.downcast_ref::<GpuError>().filter(is_lost) else { return Ok(None) };
    let is_again = options.indexer == Indexer::Gpu && matches!(options.input, Input::Paths(_));
    if !is_again || !options.control.revive() {
        return Ok(None);
    }
    options.indexer = Indexer::Fast;
    options.gpus = Gpus::None;
    let input = Ready::new(options, true)?;
    // A pipe has been read.
    let is_file = |n| fs::metadata(input.plan.path(n)).is_ok_and(|metadata| metadata.is_file());
    if !(0..input.plan.inputs.len() as u32).all(is_file) {
        return Ok(None);
    }
    options.note(&Note::BuildOnCpu { reason: chain(lost) });
    Ok(Some(input))
}
