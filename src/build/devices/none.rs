//! The devices of a build without the feature `gpu`: none. A build that asks for some gets an
//! error.

use crate::build::error::BuildError;
use crate::build::handed::FoundDevices;
use crate::build::indexer::Indexer;
use crate::build::note::Notes;
use crate::build::options::BuildOptions;
use crate::build::prepare::Ready;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::settings::{Gpus, SettingError};

const WITHOUT: &str = "this program was built without GPUs (the feature `gpu`)";

pub(in crate::build) struct NoFinding;

pub(in crate::build) struct NoDevices;

/// # Errors
/// GPUs were asked for, or an indexer that needs one.
pub(in crate::build) fn begin_to_find(options: &BuildOptions) -> Result<NoFinding, BuildError> {
    let refused = match (options.gpus, options.indexer) {
        (Gpus::Number(_), _) => "gpus",
        (_, Indexer::Gpu) => "indexer gpu",
        _ => return Ok(NoFinding),
    };
    Err(SettingError::value(refused, WITHOUT).into())
}

impl NoFinding {
    pub(in crate::build) fn is_under_way(&self) -> bool {
        false
    }

    pub(in crate::build) fn choose(self, _: &BuildOptions) -> Result<NoDevices, BuildError> {
        Ok(NoDevices)
    }

    pub(in crate::build) fn open(self, options: &BuildOptions) -> Result<NoDevices, BuildError> {
        self.choose(options)
    }
}

impl NoDevices {
    pub(in crate::build) fn device_name(&self) -> Option<&str> {
        None
    }

    pub(in crate::build) fn roles(
        &self,
        options: &BuildOptions,
        _: &Budget,
    ) -> Result<Roles, BuildError> {
        let pipeline = &options.pipeline;
        let workers = options.workers;
        if pipeline.gpu_indexers.is_some_and(|asked| asked > 0) {
            return Err(SettingError::value("gpu-indexers", WITHOUT).into());
        }
        let is_handed = options.indexer.handed().is_some();
        let is_given = pipeline.cpu_indexers.is_some();
        let with = format!("indexer {}", options.indexers_of_tokens());
        SettingError::check([("cpu-indexers", is_given, is_handed, with)])?;
        Ok(Roles::new(workers, pipeline.parsers, pipeline.cpu_indexers, 0)?)
    }

    pub(in crate::build) fn indexer(&self, _: &BuildOptions, _: u64) -> Indexer {
        Indexer::Fast
    }

    pub(in crate::build) fn found<'a>(&'a self, notes: Option<&'a Notes>) -> FoundDevices<'a> {
        FoundDevices { reasons: &[], notes }
    }
}

/// No device is lost here.
pub(in crate::build) fn on_cpu(
    _: &mut BuildOptions,
    _: &BuildError,
) -> Result<Option<Ready>, BuildError> {
    Ok(None)
}
