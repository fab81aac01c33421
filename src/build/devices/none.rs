//! The devices of a build without the feature `gpu`: none. Who asks for some is told so.

use crate::build::error::BuildError;
use crate::build::indexer::Indexer;
use crate::build::options::{BuildOptions, Notes};
use crate::build::prepare::Ready;
use crate::dataflow::build::context::MakeIndexer;
use crate::dictionary::btree::indexer::CpuIndexer;
use crate::input::splits::InputPlan;
use crate::order::Budget;
use crate::schedule::roles::Roles;
use crate::settings::{Gpus, SettingError};

const WITHOUT: &str = "this program was built without GPUs (the feature `gpu`)";

pub(in crate::build) struct NoFinding;

pub(in crate::build) struct NoDevices;

/// The memory of indexers on GPUs.
#[derive(Clone, Copy)]
pub(in crate::build) struct NoSizes {
    pub(in crate::build) host_bytes: usize,
}

/// # Errors
/// GPUs were asked for, or an indexer that needs one.
pub(in crate::build) fn begin_to_find(
    gpus: Gpus,
    indexer: Indexer,
) -> Result<NoFinding, BuildError> {
    let refused = match (gpus, indexer) {
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
        let is_wei11 = options.indexer == Indexer::Wei11;
        let is_given = pipeline.cpu_indexers.is_some();
        SettingError::check([("cpu-indexers", is_given, is_wei11, "indexer wei11".into())])?;
        Ok(Roles::new(workers, pipeline.parsers, pipeline.cpu_indexers, 0)?)
    }

    pub(in crate::build) fn indexer(&self, _: &BuildOptions, _: u64) -> Indexer {
        Indexer::Fast
    }

    pub(in crate::build) fn make_indexer(
        &self,
        _: Roles,
        _: NoSizes,
        _: Option<Notes>,
    ) -> MakeIndexer {
        Box::new(|_| Ok(Box::new(CpuIndexer::default())))
    }
}

pub(in crate::build) fn gpu_sizes(_: u64, _: &Budget, _: &Roles, _: &InputPlan) -> NoSizes {
    NoSizes { host_bytes: 0 }
}

/// No device is lost here.
pub(in crate::build) fn on_cpu(
    _: &mut BuildOptions,
    _: &BuildError,
) -> Result<Option<Ready>, BuildError> {
    Ok(None)
}
